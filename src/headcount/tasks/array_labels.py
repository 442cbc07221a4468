"""Class labels of a user, of examples or of tokens: which targets are labels, and by what heads are compared."""

import numpy as np
from jaxtyping import Bool, Int

from .._choices import LabelMetric
from ..data.values import as_array, kind_of
from ..errors import InputError, require
from .objective import AbstractObjective, Balanced, Classification, Regression

Label = int | bool | str
WHOLE_LABELS = "integers, booleans or strings, as class labels are"
LARGEST_LABEL = 2**53
"""Up to which whole numbers stored as floats are exact."""
MAX_DETECTED_CLASSES, MIN_PER_CLASS = 20, 10
"""Whole numbers are classes up to this many different ones, with this many examples of each on average."""
NOT_ASKED = -100
"""The label of a token that is not to be answered, as Hugging Face and PyTorch mark it."""
FREQUENT = 0.8
"""Where one class has more than this share of the labels, every class counts alike."""


def objective_of(
    y: np.ndarray, classes: tuple[Label, ...] | None, metric: LabelMetric | None
) -> tuple[AbstractObjective, list[str]]:
    """Return what is learned, by the metric that was asked for or that suits the labels; and a note where one class is
    frequent."""
    if classes is None:
        numbers = f'y holds numbers, which are compared by their squared error, not by metric="{metric}"; leave it out.'
        require(metric is None, numbers, what="metric")
        return Regression(), []
    counts = np.bincount(y[y >= 0], minlength=len(classes))
    shares, rarest = counts / counts.sum(), classes[int(counts.argmin())]
    few = f"class {str(rarest)[:40]} has {counts.min()} of {counts.sum():,} labels, too few to count like the others"
    fix = f"leave it out, or join it to another class (at least {MIN_PER_CLASS})"
    enough = bool(counts.min() >= MIN_PER_CLASS)
    require(metric != "balanced" or enough, f"{few}; {fix}.", what="metric")
    if metric == "error" or (metric is None and shares.max() <= FREQUENT):
        return Classification(), []
    most = f"{100 * shares.max():.3g} % of the labels are {str(classes[int(counts.argmax())])[:40]}"
    if not enough:
        return Classification(), [f"{most}, so the share of wrong answers says little, but {few}; {fix}"]
    alike = "heads are compared by the balanced error, in which every class counts alike"
    return Balanced(tuple(shares.tolist())), [f'{most}: {alike}; --metric error (metric="error") counts wrong answers']


def are_of_tokens(array: np.ndarray, there: Bool[np.ndarray, "examples length"], labels: bool | None) -> bool:
    """Return whether targets can only be labels of the tokens: words, or what is said to be labels, for every token, or
    as many values in every example as it has tokens, which are not the same in all."""
    if _is_ragged(array):
        return len(array) == len(there) and [np.shape(each) for each in array] == [(int(row.sum()),) for row in there]
    return array.shape == there.shape and (labels is True or (labels is None and kind_of(array) == "words"))


def labels_of_tokens(
    array: np.ndarray, there: Bool[np.ndarray, "examples length"], labels: bool | None
) -> tuple[np.ndarray, Bool[np.ndarray, "examples length"] | None, str]:
    """Return the labels of the tokens that are asked about, which these are, and the word "tokens".

    Targets that are no labels are returned as they are, with None.
    """
    rows = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    if _is_ragged(rows):
        parts = [as_array(each, "y") for each in rows]  # words may be objects
        kinds = sorted({kind_of(each) for each in parts})
        require(len(kinds) == 1, f"y holds {' and '.join(kinds)}; labels must be of one kind.", what="y")
        sizes = [(np.shape(each), (int(row.sum()),)) for each, row in zip(rows, there, strict=False)]
        wrong = next((place for place, (given, wanted) in enumerate(sizes) if given != wanted), None)
        if wrong is not None:
            given, (wanted,) = sizes[wrong]
            needed = f"example {wrong} has {wanted} tokens but targets of shape {given}"
            raise InputError(f"y must have a label per token: {needed}.", what="y")
        require(len(rows) == len(there), f"x has {len(there)} examples but y has {len(rows)}; they must match.")
        flat = np.concatenate(parts)
    elif rows.shape == there.shape:
        flat = rows[there]
    else:
        one = "of shape (examples, length), one class label per token"
        require(not labels and kind_of(rows) != "words", what="y", given=array.shape, needed=one)
        return array, None, "tokens"
    asked = there.copy()
    if flat.dtype.kind in "if" and labels is not False:
        asked[there] = flat != NOT_ASKED
        flat = flat[flat != NOT_ASKED]
    if labels or (labels is None and is_labels(flat)):
        return flat, asked, "tokens"
    unequal = 'answered_at="tokens" needs sequences of one length, without mask, unless y holds labels.'
    require(not _is_ragged(rows), unequal, what="answered_at")
    return array, None, "tokens"


def _is_ragged(array: np.ndarray) -> bool:
    return array.dtype == object and array.ndim == 1 and all(isinstance(each, np.ndarray) for each in array)


def require_one_axis(array: np.ndarray) -> None:
    require(array.ndim == 1, what="y", given=array.shape, needed="of shape (examples,), one class label per example")


def is_labels(array: np.ndarray) -> bool:
    """Return whether targets are taken for classes: words and booleans are, and whole numbers of few values."""
    if array.ndim != 1 or array.dtype.kind not in "iu":
        return array.ndim == 1 and array.dtype.kind in "UTb"
    distinct = len(np.unique(array))
    return 2 <= distinct <= min(MAX_DETECTED_CLASSES, len(array) // MIN_PER_CLASS)


def class_indices(array: np.ndarray, words: str) -> tuple[Int[np.ndarray, " examples"], tuple[Label, ...]]:
    """Return the place of each label among the classes, and the classes: the distinct labels, sorted.

    `words` says what has a label each: "examples" or "tokens".
    """
    require_one_axis(array)
    array = array.astype(str) if array.dtype.kind == "T" else array
    if array.dtype.kind == "f":
        wrong = array[~((array == np.rint(array)) & (np.abs(array) <= LARGEST_LABEL))]  # NaN compares as unequal
        if wrong.size:
            raise InputError(what="y", given=float(wrong[0]), needed=WHOLE_LABELS)
        array = array.astype(np.int64)
    require(array.dtype.kind in "iubU", what="y", given=str(array.dtype), needed=WHOLE_LABELS)
    classes, indices = np.unique(array, return_inverse=True)
    plain = tuple(classes.tolist())
    require(len(plain) != 1, what="y", given=plain, needed="labels of at least 2 classes")
    is_text, repeat = array.dtype.kind == "U", len(plain) <= len(array) / 2
    text = f"y holds text, such as {str(plain[0])[:40]!r}, with {len(plain)} different values in {len(array)} {words}"
    require(not is_text or repeat, f"{text}: neither numbers nor class labels, which must repeat.", what="y")
    many = f"y has {len(plain)} classes in {len(array)} {words}, more than half of them"
    fix = "numbers to be predicted are targets of a regression: labels=False (--regression), not labels=True (--labels)"
    require(repeat, f"{many}; {fix}.", what="labels")
    return indices.astype(np.int32), plain
