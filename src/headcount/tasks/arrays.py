"""A user's data as a task: x of shape (examples, length, dim) and y, from memory or from .npz / .npy files.

The user chooses how sequences are shortened, because only they know what a shortened sequence means:

    given     only the length of the data is used (the default)
    leading   the first tokens of each sequence, its target unchanged
    trailing  the last tokens of each sequence, its target unchanged

Targets are numbers, or class labels where the user says so: whole numbers can be either.
"""

import copy
from typing import Any, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, Int

from .._choices import require_choice
from .._errors import InputError, require, require_count
from .._keys import named_key
from .._shapes import AnyArray, Key, Target, Tokens
from .base import Examples, GeneratedTask, Split, check_examples, fingerprint
from .objective import AbstractObjective, Classification, Regression

ShorterRule = Literal["given", "leading", "trailing"]
MIN_EXAMPLES = 100
MIN_VALIDATION = 20
Label = int | bool | str
WHOLE_LABELS = "integers, booleans or strings, as class labels are"
LARGEST_LABEL = 2**53
"""Up to which whole numbers stored as floats are exact."""


class ArrayTask(GeneratedTask):
    """A task of stored examples: a regression, or with `labels` a classification.

    Args:
        x: Sequences, numbers of shape (examples, length, dim).
        y: Targets, numbers of shape (examples,) or (examples, outputs); with `labels` one integer, boolean or string
            per example.
        length: Tokens per sequence; by default those of `x`.
        name: Name of the task in tables and reports.
        shorter: How sequences are shortened: "given" (not at all), "leading" or "trailing" (the tokens that are kept).
        validation_fraction: Share of the examples that is drawn for validation, 0.05 to 0.5.
        held_out: Use the last `held_out` examples for validation instead, 20 to half of them.
        uses_positions: Whether the order of tokens can matter.
        labels: Whether `y` holds class labels. `classes` are the distinct labels, sorted; None for a regression.

    Raises:
        InputError: Data are not finite numbers of these shapes, are fewer than 100 examples, have constant targets, or
            an option is out of range; labels are of one class, or of more classes than half of the examples.

    Example:
        >>> import numpy as np
        >>> import headcount as hc
        >>> x = np.random.default_rng(0).normal(size=(200, 8, 3))
        >>> task = hc.ArrayTask(x, x[:, :, 0].max(axis=1), shorter="leading")
        >>> task.length, task.dim, task.outputs, task.at(4).length
        (8, 3, 1, 4)
        >>> signs = hc.ArrayTask(x, np.where(x[:, 0, 0] > 0, "positive", "negative"), labels=True)
        >>> signs.outputs, signs.classes
        (2, ('negative', 'positive'))
    """

    x: Float[AnyArray, "examples longest dim"]
    y: Float[AnyArray, "examples outputs"] | Int[AnyArray, " examples"]
    length: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    shorter: ShorterRule = eqx.field(static=True)
    validation_fraction: float = eqx.field(static=True)
    held_out: int | None = eqx.field(static=True)
    uses_positions: bool = eqx.field(static=True)
    intrinsic_dim: int | None = eqx.field(static=True)
    classes: tuple[Label, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        x: Any,
        y: Any,
        *,
        length: int | None = None,
        name: str = "arrays",
        shorter: ShorterRule = "given",
        validation_fraction: float = 0.2,
        held_out: int | None = None,
        uses_positions: bool = True,
        labels: bool = False,
    ):
        x = _numbers(x, "x")
        require(x.ndim == 3, what="x", given=x.shape, needed="of shape (examples, length, dim)")
        y, self.classes = _class_indices(y) if labels else (_targets(y), None)
        require(len(x) == len(y), f"{name}: x has {len(x)} examples but y has {len(y)}; they must match.")
        require(0 not in x.shape and 0 not in y.shape, f"{name}: x {x.shape} and y {y.shape} must not be empty.")
        require(
            len(x) >= MIN_EXAMPLES,
            f"{name}: {len(x)} examples are too few to tell head counts apart; give at least {MIN_EXAMPLES}.",
        )
        require_choice("shorter", shorter, get_args(ShorterRule))
        require(
            0.05 <= validation_fraction <= 0.5,
            what="validation_fraction",
            given=validation_fraction,
            needed="between 0.05 and 0.5",
        )
        self.x, self.y = x, y  # pyright: ignore[reportAttributeAccessIssue]
        self.length, self.name, self.shorter = self._length(length, x.shape[1], name, shorter), name, shorter
        require(
            held_out is None or MIN_VALIDATION <= held_out <= len(x) // 2,
            what="held_out",
            given=held_out,
            needed=f"between {MIN_VALIDATION} and half of the {len(x)} examples",
        )
        self.validation_fraction, self.held_out = validation_fraction, held_out
        self.uses_positions = uses_positions
        self.intrinsic_dim = None
        check_examples(self.examples(len(x), len(x)), name, objective=self.objective)

    @property
    def outputs(self) -> int:
        """Numbers per target, or the number of classes."""
        return self.y.shape[1] if self.classes is None else len(self.classes)

    @property
    def objective(self) -> AbstractObjective:
        """Squared error; of labels cross-entropy and the share of wrong answers."""
        return Regression() if self.classes is None else Classification()

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Numbers per token."""
        return self.x.shape[2]

    @property
    def endless(self) -> bool:
        """False: only the stored examples are used."""
        return False

    @property
    def resamples(self) -> bool:
        """Whether another seed gives another split; validation examples that were given stay."""
        return self.held_out is None

    def sample(self, key: Key) -> Tokens:
        """A stored sequence, drawn at random."""
        return jnp.asarray(self._shortened())[jr.randint(key, (), 0, len(self.x))]

    def target(self, tokens: Tokens) -> Target | Int[AnyArray, ""]:
        """The stored target of the stored sequence nearest to `tokens`; exact for sequences of the data.

        A label is given by its place in `classes`.
        """
        distance = jnp.sum((jnp.asarray(self._shortened()) - tokens) ** 2, axis=(1, 2))
        return jnp.asarray(self.y)[jnp.argmin(distance)]

    def at(self, length: int) -> "ArrayTask":
        other = copy.copy(self)  # the data were checked at every length
        object.__setattr__(other, "length", self._length(length, self.x.shape[1], self.name, self.shorter))
        return other

    @staticmethod
    def _length(asked: int | None, stored: int, name: str, shorter: ShorterRule) -> int:
        if asked is None or asked == stored:
            return stored
        require_count("length", asked)
        require(asked < stored, what="length", given=asked, needed=f"at most {stored}, the tokens of {name}")
        require(
            shorter != "given",
            f"{name}: the data have length {stored}; for length {asked}, say which tokens to keep: "
            'shorter="leading" or "trailing" (--shorter leading).',
            what="shorter",
            given=shorter,
            needed='"leading" or "trailing"',
        )
        return asked

    def spec(self) -> dict[str, Any]:
        return {
            "task": self.name,
            "fingerprint": fingerprint(np.asarray(self.x), np.asarray(self.y)),
            "examples": len(self.x),
            "dim": self.dim,
            "shorter": self.shorter,
            "validation_fraction": self.validation_fraction if self.held_out is None else None,
            "held_out": self.held_out,
        } | ({} if self.classes is None else {"labels": len(self.classes)})

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        """The stored examples, split by `seed`."""
        if self.held_out is None:
            order = np.asarray(jr.permutation(named_key(seed, "validation split"), len(self.x)))
            held_out = round(self.validation_fraction * len(self.x))
        else:
            order, held_out = np.roll(np.arange(len(self.x)), self.held_out), self.held_out
        validation, train = order[:held_out][:validation_examples], order[held_out:][:train_examples]
        x = self._shortened()
        return Split(Examples(x[train], self.y[train]), Examples(x[validation], self.y[validation]))

    def _shortened(self) -> Float[AnyArray, "examples length dim"]:
        return self.x[:, : self.length] if self.shorter != "trailing" else self.x[:, self.x.shape[1] - self.length :]


def _as_array(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged: every sequence must have the same length and dim.") from error


def _numbers(values: Any, name: str) -> np.ndarray:
    """`values` as float32; `InputError` unless they are finite numbers in one rectangular array."""
    array = _as_array(values, name)
    require(
        array.dtype.kind in "fiub",
        f"{name} must hold numbers in one rectangular array, got dtype {array.dtype} (ragged or object data?).",
    )
    with np.errstate(over="ignore"):  # what overflows float32 becomes infinite and is refused below
        array = array.astype(np.float32)
    bad = int(np.sum(~np.isfinite(array)))
    require(bad == 0, f"{name} must be finite numbers, found {bad} NaN or infinite values in {array.size}.")
    return array


def _targets(values: Any) -> np.ndarray:
    """The targets of a regression, of shape (examples, outputs)."""
    array = _as_array(values, "y")
    require(
        array.dtype.kind not in "UT",
        f"y holds words (dtype {array.dtype}); class labels need labels=True (--labels).",
        what="labels",
        given=False,
    )
    array = _numbers(array, "y")
    array = array[:, None] if array.ndim == 1 else array
    require(array.ndim == 2, what="y", given=array.shape, needed="of shape (examples,) or (examples, outputs)")
    return array


def _class_indices(values: Any) -> tuple[np.ndarray, tuple[Label, ...]]:
    """The place of each label among the classes, and the classes: the distinct labels, sorted."""
    array = _as_array(values, "y")
    require(array.ndim == 1, what="y", given=array.shape, needed="of shape (examples,), one class label per example")
    if array.dtype.kind in "OT" and all(isinstance(label, str) for label in array.tolist()):
        array = array.astype(str)  # words, as pandas has them
    if array.dtype.kind == "f":
        wrong = array[~((array == np.rint(array)) & (np.abs(array) <= LARGEST_LABEL))]  # NaN compares as unequal
        require(len(wrong) == 0, what="y", given=float(wrong[0]) if len(wrong) else None, needed=WHOLE_LABELS)
        array = array.astype(np.int64)
    require(array.dtype.kind in "iubU", what="y", given=str(array.dtype), needed=WHOLE_LABELS)
    classes, indices = np.unique(array, return_inverse=True)
    plain = tuple(classes.tolist())
    require(len(plain) != 1, what="y", given=plain, needed="labels of at least 2 classes")
    require(
        len(plain) <= len(array) / 2,
        f"y has {len(plain)} classes in {len(array)} examples, more than half of them; numbers to be predicted are "
        "targets of a regression, without labels=True (--labels).",
        what="labels",
        given=True,
    )
    return indices.astype(np.int32), plain
