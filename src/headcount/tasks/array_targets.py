"""What people hand over as targets: numbers, or class labels. Which of the two is said in notes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .._choices import AnsweredAt
from ..data.values import as_array, require_numbers
from ..errors import require
from .array_values import finite

Label = int | bool | str
WHOLE_LABELS = "integers, booleans or strings, as class labels are"
LARGEST_LABEL = 2**53
"""Up to which whole numbers stored as floats are exact."""
MAX_DETECTED_CLASSES, MIN_PER_CLASS = 20, 10
"""Whole numbers are taken for classes where there are at most so many, and on average at least so many examples."""


class Targets(NamedTuple):
    """Numbers, or the place of each label among the sorted `classes`."""

    values: Float[np.ndarray, "examples *places outputs"] | Int[np.ndarray, " examples"]
    classes: tuple[Label, ...] | None
    notes: tuple[str, ...]


def read_targets(y: Any, *, labels: bool | None, answered_at: AnsweredAt) -> Targets:
    """The targets of a user; see `ArrayTask` for what they may be. Raises `InputError` for anything else."""
    array = as_array(y, "y")
    if array.ndim == 2 and array.shape[1] == 1 and answered_at != "tokens" and (labels or _is_labels(array[:, 0])):
        array = array[:, 0]
    if labels is None:
        labels, asked = answered_at != "tokens" and _is_labels(array), False
    else:
        asked = True
    if labels:
        require(
            answered_at != "tokens",
            "a class for every token is not supported with labels; pass y as numbers of shape (examples, length, "
            "classes), 1 for the class and 0 for the others.",
            what="labels",
            given=True,
        )
        indices, classes = _class_indices(array)
        return Targets(indices, classes, (_about_classes(array, classes, asked),))
    return Targets(_numbers(array, answered_at), None, () if asked else _about_numbers(array))


def _numbers(array: np.ndarray, answered_at: AnsweredAt) -> Float[np.ndarray, "examples *places outputs"]:
    """The targets of a regression."""
    is_words = array.dtype.kind in "UT"
    needed = "of shape (examples,), one class label per example"
    require(not is_words or array.ndim == 1, what="y", given=array.shape, needed=needed)
    require(
        not is_words,
        f"y holds words (dtype {array.dtype}), which are class labels; leave out labels=False (--regression).",
        what="labels",
        given=False,
    )
    require_numbers(array, "y")
    array = finite(array, "y")
    if answered_at == "tokens":
        array = array[..., None] if array.ndim == 2 else array
        require(
            array.ndim == 3,
            what="y",
            given=array.shape,
            needed='of shape (examples, length) or (examples, length, outputs) with answered_at="tokens"',
        )
        return array
    array = array[:, None] if array.ndim == 1 else array
    hint = '; y with a target per token needs answered_at="tokens" (--answered-at tokens)' if array.ndim == 3 else ""
    require(array.ndim == 2, what="y", given=array.shape, needed=f"of shape (examples,) or (examples, outputs){hint}")
    return array


def _is_labels(array: np.ndarray) -> bool:
    """Whether targets are classes where nobody says so: words and booleans are, and whole numbers of few values."""
    if array.ndim != 1 or array.dtype.kind not in "iu":
        return array.ndim == 1 and array.dtype.kind in "UTb"
    distinct = len(np.unique(array))
    return 2 <= distinct <= min(MAX_DETECTED_CLASSES, len(array) // MIN_PER_CLASS)


def _class_indices(array: np.ndarray) -> tuple[Int[np.ndarray, " examples"], tuple[Label, ...]]:
    """The place of each label among the classes, and the classes: the distinct labels, sorted."""
    require(array.ndim == 1, what="y", given=array.shape, needed="of shape (examples,), one class label per example")
    array = array.astype(str) if array.dtype.kind == "T" else array
    if array.dtype.kind == "f":
        wrong = array[~((array == np.rint(array)) & (np.abs(array) <= LARGEST_LABEL))]  # NaN compares as unequal
        require(len(wrong) == 0, what="y", given=float(wrong[0]) if len(wrong) else None, needed=WHOLE_LABELS)
        array = array.astype(np.int64)
    require(array.dtype.kind in "iubU", what="y", given=str(array.dtype), needed=WHOLE_LABELS)
    classes, indices = np.unique(array, return_inverse=True)
    plain = tuple(classes.tolist())
    require(len(plain) != 1, what="y", given=plain, needed="labels of at least 2 classes")
    require(
        array.dtype.kind != "U" or len(plain) <= len(array) / 2,
        f"y holds text, such as {str(plain[0])[:40]!r}, with {len(plain)} different values in {len(array)} examples: "
        "neither numbers nor class labels, which must repeat.",
        what="y",
    )
    require(
        len(plain) <= len(array) / 2,
        f"y has {len(plain)} classes in {len(array)} examples, more than half of them; numbers to be predicted are "
        "targets of a regression: labels=False (--regression), not labels=True (--labels).",
        what="labels",
        given=True,
    )
    return indices.astype(np.int32), plain


def _about_classes(array: np.ndarray, classes: Sequence[Label], asked: bool) -> str:
    names = ", ".join(str(each)[:40] for each in classes[:5]) + (", .." if len(classes) > 5 else "")
    otherwise = "" if asked or array.dtype.kind in "UT" else "; --regression (labels=False) takes them as numbers"
    return f"y has {len(classes)} classes ({names}), learned with cross-entropy{otherwise}"


def _about_numbers(array: np.ndarray) -> tuple[str, ...]:
    """A hint where targets of a regression could be classes."""
    if (
        array.ndim == 2
        and array.shape[1] > 1
        and np.all((array == 0) | (array == 1))
        and np.all(array.sum(axis=1) == 1)
    ):
        return ("y is one-hot, learned as numbers; y.argmax(axis=1) makes class labels of it",)
    if array.ndim > 1 and array.dtype.kind in "iub":
        return (f"y has shape {array.shape} and is learned as numbers",)
    if array.ndim != 1 or not np.all(array == np.rint(array)):
        return ()
    distinct = len(np.unique(array))
    if not 2 <= distinct <= min(100, len(array) // 2):
        return ()
    taken = f"y has {distinct} different whole numbers, learned as numbers"
    return (f"{taken}; --labels (labels=True) takes them as classes",)
