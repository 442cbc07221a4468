"""What people hand over as sequences and as targets, as arrays; anything else is refused in one sentence.

Lists, NumPy, JAX and PyTorch arrays and pandas objects are read. Absent tokens become NaN. How the data were taken is
said in notes, because whole numbers can be quantities, token ids or class labels.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from .._choices import AnsweredAt
from ..data.values import as_array, read_mask, require_numbers
from ..errors import InputError, require, require_count
from .array_labels import Label, are_of_tokens, class_indices, is_labels, labels_of_tokens, require_one_axis

MAX_VOCABULARY = 2**18
"""Ids of the largest table that is learned; most tokenisers have fewer."""
PADDING = "where a token is missing, pass mask, True where a token is there"
AS_NUMBERS = "pass x.astype(float) if x holds quantities"


def read_sequences(
    x: Any, mask: Any = None, vocabulary: int | None = None
) -> tuple[Float[np.ndarray, "examples length dim"], int, list[str]]:
    """Return the sequences of a user, absent tokens all NaN; how many ids there are, 0 of numbers; and notes.

    `ArrayTask` says what they may be. Raises `InputError` for anything else.
    """
    array, notes = as_array(x, "x"), []
    require(0 not in array.shape, f"x of shape {array.shape} must not be empty.")  # its other sizes may be any
    if array.dtype == object and isinstance(array.flat[0], np.ndarray):
        twice = "x has sequences of unequal length, which say what is there; mask goes with x of one shape."
        require(mask is None, twice, what="mask")
        array, there = _stacked(array)
    else:
        require_numbers(array, "x")
        shapes = "of shape (examples, length, dim), or (examples, length) with one number or token id per token"
        require(array.ndim in (2, 3), what="x", given=array.shape, needed=shapes)
        there = np.ones(array.shape[:2], bool) if mask is None else read_mask(mask, array.shape[:2])
    counts = np.sum(there, axis=1)
    if not counts.all():
        empty = f"sequence {np.argmin(counts)} of x has no token; leave it out (mask is True where a token is there)."
        raise InputError(empty, what="mask")
    if vocabulary is not None or (array.ndim == 2 and array.dtype.kind in "iu"):
        said = f"; {AS_NUMBERS}" if vocabulary is None else ""
        tokens, vocabulary = _read_ids(array, there, vocabulary)
        ids = f"token ids from 0 to {vocabulary - 1} with a learned embedding"
        notes.append(f"x holds whole numbers, taken for {ids}{said}")
    else:
        tokens = _finite(array.reshape(*array.shape[:2], -1), "x", there)
    if not there.all():
        tokens[~there] = np.nan
        notes.append(f"sequences have {min(counts)} to {max(counts)} tokens; no head reads the padding of shorter ones")
    return tokens, vocabulary or 0, notes


def _stacked(sequences: np.ndarray) -> tuple[np.ndarray, Bool[np.ndarray, "examples length"]]:
    """Fill sequences of unequal length up with zeros to one array; return it, and which tokens are there."""
    first: np.ndarray = sequences[0]
    for place, sequence in enumerate(sequences):
        require(len(sequence) > 0, f"sequence {place} of x has no token; leave it out.", what="x")
        require_numbers(sequence, f"sequence {place} of x")
        shapes = f"sequence {place} of x has shape {sequence.shape} and sequence 0 {first.shape}"
        each = f"{shapes}; each must be (length, dim) with one dim, or (length,)."
        fits = sequence.ndim in (1, 2) and sequence.ndim == first.ndim and sequence.shape[1:] == first.shape[1:]
        require(fits, each, what="x")
    counts = np.array([len(sequence) for sequence in sequences])
    there = np.arange(counts.max()) < counts[:, None]
    flat = np.concatenate(list(sequences))
    stacked = np.zeros((*there.shape, *first.shape[1:]), flat.dtype)
    stacked[there] = flat
    return stacked, there


def _read_ids(
    array: np.ndarray, there: Bool[np.ndarray, "examples length"], vocabulary: int | None
) -> tuple[Float[np.ndarray, "examples length 1"], int]:
    """Return token ids as numbers, and how many ids there are."""
    if vocabulary is not None:
        require_count("vocabulary", vocabulary)
    array = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    shape = f"vocabulary is for token ids, x of shape (examples, length); x has shape {array.shape}."
    require(array.ndim == 2, shape, what="vocabulary")
    real = array[there]
    strange = real[real != np.rint(real)]  # NaN compares as unequal
    if strange.size:
        fix = f"{PADDING}, or leave vocabulary out if x holds quantities"
        raise InputError(f"token ids must be whole numbers, got {strange[0]}; {fix}.", what="vocabulary")
    smallest, largest = real.min().item(), real.max().item()
    require(smallest >= 0, f"token ids must be 0 or more, got {smallest:.0f}; {PADDING}, or {AS_NUMBERS}.", what="x")
    count = int(largest) + 1 if vocabulary is None else vocabulary
    require(largest < count, f"token ids must be below vocabulary = {count}, got {largest:.0f}.", what="vocabulary")
    require(
        count <= MAX_VOCABULARY,
        f"a table of {count} token ids is too large to learn (at most {MAX_VOCABULARY}); {AS_NUMBERS}, or number the "
        "ids that occur: np.unique(x, return_inverse=True)[1].reshape(x.shape).",
        what="vocabulary",
    )
    return np.where(there, array, 0).astype(np.float32)[..., None], count


def _finite(
    array: np.ndarray, name: str, there: Bool[np.ndarray, "examples length"] | None = None
) -> Float[np.ndarray, "..."]:
    """Convert numbers to float32; raise `InputError` unless those that are there are finite."""
    with np.errstate(over="ignore"):  # what overflows float32 becomes infinite and is refused below
        array = array.astype(np.float32)
    real = array if there is None else array[there]
    bad = int(np.sum(~np.isfinite(real)))
    if bad:
        faults = ~np.isfinite(array) if there is None else ~np.isfinite(array) & there[..., None]
        first = f"the first in example {np.argwhere(faults)[0][0] if array.ndim else 0} (counted from 0)"
        keep = f"keep = np.isfinite({name}).reshape(len({name}), -1).all(axis=1), then x[keep] and y[keep]"
        out = f"leave those examples out: {keep}"
        advice = out if there is None else f"{PADDING}; otherwise {out}"
        count = f"got {bad} NaN or infinite values in {real.size}, {first}"
        raise InputError(f"{name} must be finite numbers, {count}; {advice}.", what=name)
    return array


def read_targets(
    y: Any, there: Bool[np.ndarray, "examples length"], *, labels: bool | None, answered_at: AnsweredAt | None
) -> tuple[
    Float[np.ndarray, "examples *places outputs"] | Int[np.ndarray, "examples *places"],
    tuple[Label, ...] | None,
    AnsweredAt,
    list[str],
]:
    """Return the targets of a user, or the places of labels among the sorted classes, -1 for none; the classes; where
    they are answered, with `answered_at` None where y says so; and notes.

    `there` are the tokens of x. `ArrayTask` says what targets may be. Raises `InputError` for anything else.
    """
    array, notes = as_array(y, "y"), []
    at: AnsweredAt = answered_at or "sequence"
    if answered_at is None and are_of_tokens(array, there, labels):
        at, notes = "tokens", ['y has a label per token, so every token is answered (answered_at="tokens")']
    if at == "tokens":
        array, asked, words = labels_of_tokens(array, there, labels)
    else:
        is_column = array.ndim == 2 and array.shape[1] == 1
        array = array[:, 0] if is_column and (labels or is_labels(array[:, 0])) else array
        asked = np.ones(len(array), bool) if labels or (labels is None and is_labels(array)) else None
        words = "examples"
    if asked is None:
        return _numbers(array, at == "tokens"), None, at, [] if labels is False else [*notes, *_about_numbers(array)]
    kind, (indices, classes) = array.dtype.kind, class_indices(array, words)
    placed = np.full(asked.shape, -1, np.int32)
    placed[asked] = indices
    names = ", ".join(str(each)[:40] for each in classes[:5]) + (", .." if len(classes) > 5 else "")
    otherwise = "" if labels or kind in "UT" else "; --regression (labels=False) takes them as numbers"
    notes.append(f"y has {len(classes)} classes ({names}), learned with cross-entropy{otherwise}")
    return placed, classes, at, notes


def _numbers(array: np.ndarray, per_token: bool) -> Float[np.ndarray, "examples *places outputs"]:
    """Return the targets of a regression."""
    if array.dtype.kind in "UT":
        require_one_axis(array)
        words = f"y holds words (dtype {array.dtype}), which are class labels; leave out labels=False (--regression)."
        raise InputError(words, what="labels")
    require_numbers(array, "y")
    array = _finite(array, "y")
    if array.ndim == 1 + per_token:
        array = array[..., None]
    needed = "of shape (examples,) or (examples, outputs)"
    if per_token:
        needed = 'of shape (examples, length) or (examples, length, outputs) with answered_at="tokens"'
    elif array.ndim == 3:
        needed += '; y with a target per token needs answered_at="tokens" (--answered-at tokens)'
    require(array.ndim == 2 + per_token, what="y", given=array.shape, needed=needed)
    return array


def _about_numbers(array: np.ndarray) -> list[str]:
    """Return a hint where targets of a regression could be classes."""
    if array.ndim == 2 and array.shape[1] > 1 and np.isin(array, (0, 1)).all() and np.all(array.sum(axis=1) == 1):
        return ["y is one-hot, learned as numbers; y.argmax(axis=1) makes class labels of it"]
    if array.ndim > 1 and array.dtype.kind in "iub":
        return [f"y has shape {array.shape} and is learned as numbers; --labels (labels=True) takes a class per token"]
    distinct = len(np.unique(array)) if array.ndim == 1 and np.all(array == np.rint(array)) else 0
    if not 2 <= distinct <= min(100, len(array) // 2):
        return []
    taken = f"y has {distinct} different whole numbers, learned as numbers"
    return [f"{taken}; --labels (labels=True) takes them as classes"]
