"""A user's data as a task: sequences x and targets y.

The user chooses how sequences are shortened, because only they know what a shortened sequence means:

    given     only the length of the data is used (the default)
    leading   the first tokens of each sequence, its target unchanged
    trailing  the last tokens of each sequence, its target unchanged

Tokens are counted that are there: a shortened sequence has always one. Where the last token is the query it stays, and
"leading" keeps the first of the others.
"""

from typing import Any, Literal, get_args

import equinox as eqx
import jax.random as jr
import numpy as np
from jaxtyping import Bool, Float, Int

from .._choices import ANSWERED_AT, LABEL_METRICS, AnsweredAt, LabelMetric, require_choice
from ..errors import require, require_count
from ..keys import named_key
from .array_inputs import read_sequences, read_targets
from .array_labels import Label, objective_of
from .base import AbstractTask, Examples, Split, fingerprint, require_varied
from .hints import hints
from .labelled import MIN_EXAMPLES as MANY_EXAMPLES
from .labelled import MIN_VALIDATION
from .objective import AbstractObjective, Balanced

ShorterRule = Literal["given", "leading", "trailing"]
"""Which tokens are kept of a shorter sequence; "given": there is none."""
MIN_EXAMPLES = 2 * MIN_VALIDATION


class ArrayTask(AbstractTask):
    """A task of stored examples: a regression, or a classification where `y` holds labels.

    `x` and `y` may be lists, NumPy, JAX or PyTorch arrays, or pandas objects. How they were taken is said in `notes`.

    Args:
        x: Sequences:

            * numbers of shape (examples, length, dim), or floats of shape (examples, length), one number per token;
            * integers of shape (examples, length): token ids, for which models learn an embedding;
            * a list of sequences of unequal length, each (length, dim) numbers, (length,) floats or (length,) ids.
        y: Targets: numbers of shape (examples,) or (examples, outputs), or one class label per example, an integer,
            boolean or string; one target per token with `answered_at="tokens"`, labels also as a list of sequences of
            unequal length. Of a token with the label -100 nothing is asked.
        length: Tokens per sequence; by default those of `x`.
        name: Name of the task in tables and reports.
        shorter: How sequences are shortened: "given" (not at all), "leading" or "trailing" (the tokens that are kept).
        validation_fraction: Share of the examples that is drawn for validation, 0.05 to 0.5; of fewer than 100
            examples at least 20 are.
        held_out: Use the last `held_out` examples for validation instead, 20 to half of them.
        uses_positions: Whether the order of tokens can matter.
        labels: Whether `y` holds class labels. None: strings and booleans are, and integers where there are at most 20
            different ones and at least 10 examples of each on average. `classes` are the distinct labels, sorted; None
            for a regression.
        answered_at: Where the answer is read: once per "sequence" (where None), at the "query", which is the last token
            and asks about the others, or at all "tokens", `y` being of shape (examples, length) or (examples, length,
            outputs).
        metric: What head counts are compared by where `y` holds labels: "error", the share of wrong answers, or
            "balanced", its mean over classes. None: "balanced" where one class has more than 80 % of the labels and
            every class at least 10 of them.
        mask: Of shape (examples, length), True where a token is there. Of `x` of unequal lengths none is needed.
        vocabulary: The number of token ids; None: the largest of `x` and one more.
        columns: What the numbers of a sequence, or those of a token, are called where notes name one.
        notes: How `x` and `y` were read, to which this task adds what it took them for.

    Raises:
        InputError: Data are not finite numbers of these shapes, are fewer than 40 examples, have constant targets or a
            sequence without tokens, or an option is out of range; labels are of one class, or of more classes than half
            of the examples.

    Example:
        >>> import numpy as np
        >>> import headcount as hc
        >>> x = np.random.default_rng(0).normal(size=(200, 8, 3))
        >>> task = hc.ArrayTask(x, x[:, :, 0].max(axis=1), shorter="leading")
        >>> task.length, task.dim, task.outputs, task.at(4).length
        (8, 3, 1, 4)

        Class labels, sequences of unequal length, token ids, and a last token that asks:

        >>> signs = hc.ArrayTask(x, np.where(x[:, 0, 0] > 0, "positive", "negative"))
        >>> signs.outputs, signs.classes
        (2, ('negative', 'positive'))
        >>> ragged = hc.ArrayTask([each[: 3 + i % 6] for i, each in enumerate(x)], x[:, 0, 0])
        >>> ragged.notes[1]
        'sequences have 3 to 8 tokens; no head reads the padding of shorter ones'
        >>> ids = hc.ArrayTask(np.arange(1600).reshape(200, 8) % 7, x[:, 0, 0])
        >>> ids.vocabulary, ids.dim
        (7, 1)
        >>> hc.ArrayTask(x, x[:, 0, 0] * x[:, -1, 0], answered_at="query").answered_at
        'query'
    """

    x: Float[np.ndarray, "examples longest dim"]
    y: Float[np.ndarray, "examples *places outputs"] | Int[np.ndarray, "examples *places"]
    length: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    shorter: ShorterRule = eqx.field(static=True)
    validation_fraction: float = eqx.field(static=True)
    held_out: int | None = eqx.field(static=True)
    uses_positions: bool = eqx.field(static=True)
    classes: tuple[Label, ...] | None = eqx.field(static=True)
    answered_at: AnsweredAt = eqx.field(static=True)
    objective: AbstractObjective = eqx.field(static=True)
    padded: bool = eqx.field(static=True)
    vocabulary: int = eqx.field(static=True)
    notes: tuple[str, ...] = eqx.field(static=True)

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
        labels: bool | None = None,
        answered_at: AnsweredAt | None = None,
        metric: LabelMetric | None = None,
        mask: Any = None,
        vocabulary: int | None = None,
        columns: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ):
        words = "True, False or None, which detects them"
        require(labels is None or isinstance(labels, bool), what="labels", given=labels, needed=words)
        require_choice("answered_at", "sequence" if answered_at is None else answered_at, ANSWERED_AT)
        require_choice("metric", "error" if metric is None else metric, LABEL_METRICS)
        require_choice("shorter", shorter, get_args(ShorterRule))
        share = isinstance(validation_fraction, float) and 0.05 <= validation_fraction <= 0.5
        require(share, what="validation_fraction", given=validation_fraction, needed="between 0.05 and 0.5")
        require_one_index(x, y)
        tokens, self.vocabulary, about_x = read_sequences(x, mask, vocabulary)
        there = ~np.all(np.isnan(tokens), axis=-1)
        targets, self.classes, at, about_y = read_targets(y, there, labels=labels, answered_at=answered_at)
        self.padded, asks = not there.all(), at == "query"
        _require_match(tokens, targets, name, answered_at, is_labels=self.classes is not None, padded=self.padded)
        count = len(tokens)
        require(
            held_out is None or (isinstance(held_out, int | np.integer) and MIN_VALIDATION <= held_out <= count // 2),
            what="held_out",
            given=held_out,
            needed=f"between {MIN_VALIDATION} and half of the {count} examples",
        )
        # In one memory layout: sums over columns come out otherwise in the last digits, under the same fingerprint.
        tokens, targets = np.ascontiguousarray(tokens), np.ascontiguousarray(targets)
        self.x, self.y = _ending_together(tokens) if asks and self.padded else tokens, targets
        self.name, self.shorter, self.answered_at, self.uses_positions = name, shorter, at, uses_positions
        self.objective, about_metric = objective_of(self.y, self.classes, metric)
        self.length = self._length(length, tokens.shape[1])
        self.validation_fraction, self.held_out = validation_fraction, None if held_out is None else int(held_out)
        asking = ("the last token of a sequence asks about the others, and is answered",) if asks else ()
        about_both = hints(tokens, targets, self.classes, columns, ids=self.vocabulary > 0)
        about_both += [self._few_in_words()] if count < MANY_EXAMPLES else []
        self.notes = (*(notes or (self._shape_in_words(),)), *about_x, *about_y, *about_metric, *asking, *about_both)
        for part, places in zip(Split._fields, self._places(0), strict=True):
            require_varied(self.y[places], name, part)

    def _few_in_words(self) -> str:
        held_out = len(self._places(0)[1])
        few = f"{len(self.x)} examples are few: {held_out} of them are for validation, so that errors are rough"
        return f"{few}; with {MANY_EXAMPLES} or more the answer would be safer"

    def _shape_in_words(self) -> str:
        count, length, dim = self.x.shape
        numbers = "one id" if self.vocabulary else "one number" if dim == 1 else f"{dim} numbers"
        answer = "one number" if self.outputs == 1 else f"{self.outputs} numbers"
        per = " per token" if self.answered_at == "tokens" else ""
        y = ("one label" if self.classes is not None else answer) + per
        return f"{count:,} sequences of {'up to ' if self.padded else ''}{length} tokens, {numbers} each; y: {y}"

    @property
    def outputs(self) -> int:
        """Numbers per target, or the number of classes."""
        return self.y.shape[-1] if self.classes is None else len(self.classes)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Numbers per token."""
        return self.x.shape[2]

    @property
    def resamples(self) -> bool:
        """Whether another seed gives another split; validation examples that were given stay."""
        return self.held_out is None

    def at(self, length: int) -> "ArrayTask":
        return self._with_length(self._length(length, self.x.shape[1]))  # the data were checked at every length

    def _length(self, asked: int | None, stored: int) -> int:
        if asked is None or asked == stored:
            return stored
        require_count("length", asked, least=2 if self.answered_at == "query" else 1)
        require(asked < stored, what="length", given=asked, needed=f"at most {stored}, the tokens of {self.name}")
        require(
            self.shorter != "given",
            f"{self.name}: the data have length {stored}; for length {asked}, say which tokens to keep: "
            'shorter="leading" or "trailing" (--shorter leading).',
            what="shorter",
        )
        return asked

    def spec(self) -> dict[str, Any]:
        content = {
            "task": self.name,
            "fingerprint": fingerprint(self.x, self.y),
            "examples": len(self.x),
            "dim": self.dim,
            "shorter": self.shorter,
            "validation_fraction": self.validation_fraction if self.held_out is None else None,
            "held_out": self.held_out,
        }
        content |= {} if self.classes is None else {"labels": len(self.classes)}
        content |= {} if self.answered_at == "sequence" else {"answered_at": self.answered_at}
        content |= {"padded": True} if self.padded else {}
        content |= {"metric": "balanced"} if isinstance(self.objective, Balanced) else {}
        return content | ({"vocabulary": self.vocabulary} if self.vocabulary else {})

    def examples(self, train_examples: int, validation_examples: int, seed: int = 0) -> Split:
        """Return the stored examples, split by `seed`."""
        train, validation = self._places(seed)
        train, validation = train[:train_examples], validation[:validation_examples]
        x: Any = self._shortened(self.x, np.nan)
        y: Any = self.y
        if self.answered_at == "tokens":
            y = self._shortened(y, np.nan) if self.classes is None else self._shortened(y[..., None], -1)[..., 0]
        return Split(Examples(x[train], y[train]), Examples(x[validation], y[validation]))

    def _places(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the stored examples are for training, and which for validation."""
        if self.held_out is None:
            order = np.asarray(jr.permutation(named_key(seed, "validation split"), len(self.x)))
            held_out = round(self.validation_fraction * len(self.x))
            held_out = held_out if len(self.x) >= MANY_EXAMPLES else max(held_out, MIN_VALIDATION)
        else:
            order, held_out = np.roll(np.arange(len(self.x)), self.held_out), self.held_out
        return order[held_out:], order[:held_out]

    def _shortened(self, values: np.ndarray, missing: float) -> np.ndarray:
        """Return tokens, or the targets of tokens, at this task's length."""
        if self.length == self.x.shape[1]:
            return values
        absent = np.all(np.isnan(self.x), axis=-1)
        places = _kept_places(absent, self.length, self.shorter, self.answered_at == "query")[..., None]
        return np.where(places < 0, missing, np.take_along_axis(values, np.maximum(places, 0), axis=1))


def require_one_index(x: Any, y: Any) -> None:
    """Refuse pandas objects whose rows are called differently: pandas would pair them by name, arrays by place."""
    one, other = (getattr(each, "index", None) for each in (x, y))  # of a list it is a method
    if hasattr(one, "equals") and hasattr(other, "equals") and len(x) == len(y):
        same = "x and y have different indexes, so their rows may not belong together; align them, or pass .to_numpy()."
        require(one.equals(other), same, what="y")  # pyright: ignore[reportOptionalMemberAccess]


def _require_match(
    x: np.ndarray, y: np.ndarray, name: str, answered_at: AnsweredAt | None, *, is_labels: bool, padded: bool
) -> None:
    """Raise `InputError` unless sequences and targets belong together."""
    require(len(x) == len(y), f"{name}: x has {len(x)} examples but y has {len(y)}; they must match.")
    require(0 not in y.shape, f"{name}: x {x.shape} and y {y.shape} must not be empty.")
    count = f"{len(x)} examples are" if len(x) != 1 else "1 example is"
    too_few = f"{name}: {count} too few to tell head counts apart; give at least {MIN_EXAMPLES}, better 1,000."
    require(len(x) >= MIN_EXAMPLES, too_few)
    swapped = (
        "are x and y swapped? A time series is cut into sequences by np.lib.stride_tricks.sliding_window_view(x, 24)"
    )
    one = f"{name}: every sequence has one token, so attention has nothing to choose from; {swapped}."
    require(x.shape[1] > 1, one, what="x")
    if answered_at == "query":
        short = np.flatnonzero(np.sum(~np.all(np.isnan(x), axis=-1), axis=1) < 2)
        require(
            not short.size,
            f"{name}: sequence {short[0] if short.size else ''} has one token, which would ask about no other; "
            'leave it out, or read the answer for the whole sequence: answered_at="sequence".',
            what="answered_at",
        )
    elif answered_at == "tokens":
        unequal = f'{name}: answered_at="tokens" needs sequences of one length, without mask, unless y holds labels.'
        require(is_labels or not padded, unequal, what="answered_at")
        sizes = f"x has {x.shape[1]} tokens per sequence but y has {y.shape[1]} targets"
        require(y.shape[1] == x.shape[1], f"{name}: {sizes}; they must match.", what="answered_at")
    elif answered_at is None and not is_labels:
        # As many outputs as tokens are more often a target per token, and as outputs they would be learned badly.
        require(
            y.shape[1] != x.shape[1],
            f"{name}: y of shape {y.shape} has as many numbers as a sequence has tokens; say what they are: "
            'answered_at="tokens" (one target per token) or "sequence" (that many outputs) (--answered-at tokens).',
            what="answered_at",
        )


def _ending_together(x: Float[np.ndarray, "examples length dim"]) -> Float[np.ndarray, "examples length dim"]:
    """Return the sequences moved so that each ends at the last place."""
    length = x.shape[1]
    behind = np.argmax(~np.all(np.isnan(x), axis=-1)[:, ::-1], axis=1)  # absent tokens after the last
    places = (np.arange(length) - behind[:, None]) % length
    return np.take_along_axis(x, places[..., None], axis=1)


def _kept_places(
    absent: Bool[np.ndarray, "examples longest"], length: int, shorter: ShorterRule, asks: bool
) -> Int[np.ndarray, "examples length"]:
    """Return where the tokens of the shortened sequences come from, -1 for none.

    They are placed at the end where the last one is the query, else at the start.
    """
    places = np.argsort(absent, axis=1, stable=True)  # those that are there first, in their order
    there = np.sum(~absent, axis=1)[:, None]
    kept = np.minimum(there, length)
    number = np.arange(length)[None] - (length - kept if asks else 0)  # of the kept token that goes there
    source = number + there - kept if shorter == "trailing" else number
    if asks:
        source = np.where(number == kept - 1, there - 1, source)
    taken = np.take_along_axis(places, np.clip(source, 0, places.shape[1] - 1), axis=1)
    return np.where((number >= 0) & (number < kept), taken, -1)
