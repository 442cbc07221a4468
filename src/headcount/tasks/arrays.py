"""A user's own data as a task: x of shape (examples, length, dim) and y, from memory or from .npz / .npy files.

Shorter lengths are made by a rule that the user chooses, because only they know what a shortened sequence means:

    given     only the length of the data is used (the default)
    leading   the first tokens of each sequence, its target unchanged
    trailing  the last tokens of each sequence, its target unchanged
"""

from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float

from .._errors import InputError, require, require_count
from .._keys import named_key
from .._shapes import AnyArray, Key, Target, Tokens
from .base import Examples, GeneratedTask, Split, check_examples, fingerprint

ShorterRule = Literal["given", "leading", "trailing"]
MIN_EXAMPLES = 100


class ArrayTask(GeneratedTask):
    """The task that stored examples define.

    A fixed share of them, drawn by a named key, is kept for validation; or, with `held_out`, the last ones as given.
    """

    x: Float[AnyArray, "examples longest dim"]
    y: Float[AnyArray, "examples outputs"]
    length: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    shorter: ShorterRule = eqx.field(static=True)
    validation_fraction: float = eqx.field(static=True)
    held_out: int | None = eqx.field(static=True)
    uses_positions: bool = eqx.field(static=True)
    intrinsic_dim: int | None = eqx.field(static=True)

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
    ):
        x, y = _numbers(x, "x"), _numbers(y, "y")
        require(x.ndim == 3, f"{name}: x must have shape (examples, length, dim), got {x.shape}.")
        y = y[:, None] if y.ndim == 1 else y
        require(y.ndim == 2, f"{name}: y must have shape (examples,) or (examples, outputs), got {y.shape}.")
        require(len(x) == len(y), f"{name}: x has {len(x)} examples but y has {len(y)}; they must match.")
        require(0 not in x.shape and 0 not in y.shape, f"{name}: x {x.shape} and y {y.shape} must not be empty.")
        require(
            len(x) >= MIN_EXAMPLES,
            f"{name}: {len(x)} examples are too few to tell head counts apart; give at least {MIN_EXAMPLES}.",
        )
        require(
            shorter in ("given", "leading", "trailing"),
            f'the rule for shorter lengths must be "given", "leading" or "trailing", got "{shorter}".',
        )
        require(
            0.05 <= validation_fraction <= 0.5,
            f"validation_fraction must lie between 0.05 and 0.5, got {validation_fraction:g}.",
        )
        self.x, self.y = x, y  # pyright: ignore[reportAttributeAccessIssue]
        self.length, self.name, self.shorter = self._length(length, x.shape[1], name, shorter), name, shorter
        require(
            held_out is None or 20 <= held_out <= len(x) // 2,
            f"{name}: {held_out} validation examples of {len(x)} in all; give between 20 and half of them.",
        )
        self.validation_fraction, self.held_out = validation_fraction, held_out
        self.uses_positions = uses_positions
        self.intrinsic_dim = None
        check_examples(self.examples(len(x), len(x)), name)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.x.shape[2]

    @property
    def endless(self) -> bool:
        return False

    def sample(self, key: Key) -> Tokens:
        """A stored sequence, drawn at random."""
        return jnp.asarray(self._shortened())[jr.randint(key, (), 0, len(self.x))]

    def target(self, tokens: Tokens) -> Target:
        """The stored target of the stored sequence nearest to `tokens`; exact for sequences of the data."""
        distance = jnp.sum((jnp.asarray(self._shortened()) - tokens) ** 2, axis=(1, 2))
        return jnp.asarray(self.y)[jnp.argmin(distance)]

    def at(self, length: int) -> "ArrayTask":
        return ArrayTask(
            self.x,
            self.y,
            length=length,
            name=self.name,
            shorter=self.shorter,
            validation_fraction=self.validation_fraction,
            held_out=self.held_out,
            uses_positions=self.uses_positions,
        )

    @staticmethod
    def _length(asked: int | None, stored: int, name: str, shorter: ShorterRule) -> int:
        if asked is None or asked == stored:
            return stored
        require_count("length", asked)
        require(1 <= asked < stored, f"{name}: the data have {stored} tokens, so length {asked} cannot be made.")
        require(
            shorter != "given",
            f"{name}: the data have length {stored} and no rule for length {asked}; "
            'choose one with shorter="leading" or "trailing" (--shorter leading).',
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
        }

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


def _numbers(values, name: str) -> np.ndarray:
    """`values` as float32, or a sentence about why they are not numbers of one shape."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged: every sequence must have the same length and dim.") from error
    require(
        array.dtype.kind in "fiub",
        f"{name} must hold numbers in one rectangular array, got dtype {array.dtype} (ragged or object data?).",
    )
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and refused below
        array = array.astype(np.float32)
    bad = int(np.sum(~np.isfinite(array)))
    require(bad == 0, f"{name} must be finite numbers, found {bad} NaN or infinite values in {array.size}.")
    return array


def load_arrays(path: Path | str, targets: Path | str | None = None, **options) -> ArrayTask:
    """The task stored in `path`: an .npz with arrays x and y, or x alone in an .npy with y in the .npy `targets`.

    Where the .npz also holds x_validation and y_validation, those are the validation examples.
    """
    path, targets = Path(path), None if targets is None else Path(targets)
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        require(targets is not None, f"{path} holds x alone; give y in another .npy with --targets.")
        assert targets is not None
        x, y = loaded, _load(targets)
        if not isinstance(y, np.ndarray):
            raise InputError(f"{targets} must be an .npy file with y, as {path} is one with x.")
    else:
        require(targets is None, f"{path} holds both x and y, so --targets {targets} has no use.")
        require(
            {"x", "y"} <= loaded.keys(),
            f"{path} must hold arrays named x and y, found {', '.join(sorted(loaded)) or 'none'}.",
        )
        x, y = loaded["x"], loaded["y"]
        if "x_validation" in loaded and "y_validation" in loaded:
            x, y, options["held_out"] = _with_validation(x, y, loaded["x_validation"], loaded["y_validation"], path)
    return ArrayTask(x, y, name=options.pop("name", path.stem), **options)


def _with_validation(x, y, x_validation, y_validation, path: Path) -> tuple[np.ndarray, np.ndarray, int]:
    for name, part, more in (("x", x, x_validation), ("y", y, y_validation)):
        require(
            part.shape[1:] == more.shape[1:],
            f"{path}: {name} {part.shape} and {name}_validation {more.shape} must agree but for their examples.",
        )
    require(
        len(x_validation) == len(y_validation),
        f"{path}: x_validation has {len(x_validation)} examples and y_validation {len(y_validation)}.",
    )
    return np.concatenate([x, x_validation]), np.concatenate([y, y_validation]), len(x_validation)


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}.") from error
    except Exception as error:  # numpy and zipfile raise many kinds for a damaged or pickled file
        if "Object arrays" in str(error):
            raise InputError(
                f"{path} holds Python objects (ragged arrays?); save rectangular arrays of numbers instead."
            ) from error
        raise InputError(f"{path} cannot be read as .npz or .npy ({type(error).__name__}).") from error
