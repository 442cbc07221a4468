"""What people hand over as sequences, as one array; anything else is refused in one sentence.

Lists, NumPy, JAX and PyTorch arrays and pandas objects are read. Absent tokens become NaN. How the data were taken is
said in notes, because whole numbers can be quantities or token ids.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ..data.values import as_array, read_mask, require_numbers
from ..errors import InputError, require, require_count

MAX_VOCABULARY = 2**18
"""Ids of the largest table that is learned; most tokenisers have fewer."""
PADDING = "where a token is missing, pass mask, True where a token is there"
AS_NUMBERS = "pass x.astype(float) if x holds quantities"


class Sequences(NamedTuple):
    """Sequences of equal length, absent tokens all NaN; `vocabulary` counts the ids, 0 where tokens are numbers."""

    tokens: Float[np.ndarray, "examples length dim"]
    vocabulary: int
    padded: bool
    notes: tuple[str, ...]


def read_sequences(x: Any, mask: Any = None, vocabulary: int | None = None) -> Sequences:
    """The sequences of a user; see `ArrayTask` for what they may be. Raises `InputError` for anything else."""
    array, notes = as_array(x, "x"), []
    require(0 not in array.shape, f"x of shape {array.shape} must not be empty.")  # its other sizes may be any
    if array.dtype == object and array.size and isinstance(array.flat[0], np.ndarray):
        require(
            mask is None,
            "x has sequences of unequal length, which say what is there; mask goes with x of one shape.",
            what="mask",
        )
        array, there = _stacked(array)
    else:
        require_numbers(array, "x")
        shapes = "of shape (examples, length, dim), or (examples, length) with one number or token id per token"
        require(array.ndim in (2, 3), what="x", given=array.shape, needed=shapes)
        there = np.ones(array.shape[:2], bool) if mask is None else read_mask(mask, array.shape[:2])
    counts = np.sum(there, axis=1)
    empty = np.flatnonzero(counts == 0)
    require(
        not empty.size,
        f"sequence {empty[0] if empty.size else ''} of x has no token; leave it out (mask is True where a token is "
        "there).",
        what="mask",
    )
    is_ids = vocabulary is not None or (array.ndim == 2 and array.dtype.kind in "iu")
    if is_ids:
        tokens, vocabulary = _read_ids(array, there, vocabulary)
        notes.append(
            f"x holds whole numbers, taken for token ids from 0 to {vocabulary - 1} with a learned embedding; "
            f"{AS_NUMBERS}"
        )
    else:
        tokens = finite(array.reshape(*array.shape[:2], -1), "x", there)
    padded = not bool(np.all(there))
    if padded:
        tokens[~there] = np.nan
        notes.append(f"sequences have {min(counts)} to {max(counts)} tokens; no head reads the padding of shorter ones")
    return Sequences(tokens, vocabulary or 0, padded, tuple(notes))


def _stacked(sequences: np.ndarray) -> tuple[np.ndarray, Bool[np.ndarray, "examples length"]]:
    """Sequences of unequal length in one array, filled up with zeros, and which tokens are there."""
    first: np.ndarray = sequences[0]
    for place, sequence in enumerate(sequences):
        require(len(sequence) > 0, f"sequence {place} of x has no token; leave it out.", what="x")
        require_numbers(sequence, f"sequence {place} of x")
        fits = sequence.ndim in (1, 2) and sequence.ndim == first.ndim and sequence.shape[1:] == first.shape[1:]
        require(
            fits,
            f"sequence {place} of x has shape {sequence.shape} and sequence 0 {first.shape}; each must be (length, "
            "dim) with one dim, or (length,).",
            what="x",
        )
    counts = np.array([len(sequence) for sequence in sequences])
    there = np.arange(counts.max()) < counts[:, None]
    flat = np.concatenate(list(sequences))
    stacked = np.zeros((*there.shape, *first.shape[1:]), flat.dtype)
    stacked[there] = flat
    return stacked, there


def _read_ids(
    array: np.ndarray, there: Bool[np.ndarray, "examples length"], vocabulary: int | None
) -> tuple[Float[np.ndarray, "examples length 1"], int]:
    """Token ids as numbers, and how many ids there are."""
    if vocabulary is not None:
        require_count("vocabulary", vocabulary)
    array = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    require(
        array.ndim == 2,
        f"vocabulary is for token ids, x of shape (examples, length); x has shape {array.shape}.",
        what="vocabulary",
        given=vocabulary,
    )
    real = array[there]
    strange = real[real != np.rint(real)]  # NaN compares as unequal
    require(
        not strange.size,
        f"token ids must be whole numbers, got {strange[0] if strange.size else None}; {PADDING}, or leave vocabulary "
        "out if x holds quantities.",
        what="vocabulary",
        given=vocabulary,
    )
    smallest, largest = real.min().item(), real.max().item()
    require(smallest >= 0, f"token ids must be 0 or more, got {smallest:.0f}; {PADDING}, or {AS_NUMBERS}.", what="x")
    count = int(largest) + 1 if vocabulary is None else vocabulary
    message = f"token ids must be below vocabulary = {count}, got {largest:.0f}."
    require(largest < count, message, what="vocabulary", given=count)
    require(
        count <= MAX_VOCABULARY,
        f"a table of {count} token ids is too large to learn (at most {MAX_VOCABULARY}); {AS_NUMBERS}, or number the "
        "ids that occur: np.unique(x, return_inverse=True)[1].reshape(x.shape).",
        what="vocabulary",
        given=count,
    )
    return np.where(there, array, 0).astype(np.float32)[..., None], count


def finite(
    array: np.ndarray, name: str, there: Bool[np.ndarray, "examples length"] | None = None
) -> Float[np.ndarray, "..."]:
    """Numbers as float32; `InputError` unless those that are there are finite."""
    with np.errstate(over="ignore"):  # what overflows float32 becomes infinite and is refused below
        array = array.astype(np.float32)
    real = array if there is None else array[there]
    bad = int(np.sum(~np.isfinite(real)))
    if bad:
        faults = ~np.isfinite(array) if there is None else ~np.isfinite(array) & there[..., None]
        first = f"the first in example {np.argwhere(faults)[0][0] if array.ndim else 0} (counted from 0)"
        advice = "leave those examples out" if there is None else PADDING
        count = f"got {bad} NaN or infinite values in {real.size}, {first}"
        raise InputError(f"{name} must be finite numbers, {count}; {advice}.", what=name)
    return array
