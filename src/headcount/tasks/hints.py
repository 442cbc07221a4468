"""What a user should know of their arrays before heads are counted: leaks, constants, classes with one example.

Each is a sentence that says what to do. Nothing is changed.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from ..errors import InputError

LISTED, MAX_OUTPUTS = 5, 16
"""How many columns or classes a sentence names, and how many outputs are compared with every column."""


def hints(
    x: Float[np.ndarray, "examples length dim"], y: np.ndarray, classes: Any, columns: tuple[str, ...], *, ids: bool
) -> list[str]:
    """Return a sentence for each peculiarity of sequences and targets, tokens being NaN where they are absent.

    Args:
        x: The sequences.
        y: Numbers of one axis or more, or places among the classes.
        classes: The class labels, None for numbers.
        columns: What all numbers of a sequence are called, or those of a token; empty where they have no names.
        ids: Whether a token is an id.

    Raises:
        InputError: All sequences are equal.
    """
    spread = np.fmax.reduce(x, axis=0) - np.fmin.reduce(x, axis=0)  # NaN where no token is
    if not np.any(spread > 0):
        raise InputError("x is the same in all examples, so that nothing can be told from it; give x that varies.")
    found = []
    leaks = _named(_decided_by(x, y, is_labels=classes is not None), x.shape[1:], columns, ids=ids)
    if leaks:
        found.append(
            f"{leaks} alone decides the target, one value for each: is it a copy? Then leave it out, as one head is "
            "enough to read it, or none"
        )
    per_token = np.nanmax(x, axis=(0, 1)) == np.nanmin(x, axis=(0, 1))
    constant = (
        spread == 0
        if len(columns) == spread.size
        else np.broadcast_to(per_token, spread.shape) & (np.arange(len(spread)) == 0)[:, None]
    )
    same = "" if ids else _named(np.argwhere(constant), x.shape[1:], columns, everywhere=len(columns) != spread.size)
    if same:
        found.append(f"{same} is the same in all examples, which tells models nothing; leave it out")
    if classes is not None:
        counts = np.bincount(y.ravel(), minlength=len(classes))
        single = [str(classes[place])[:40] for place in np.flatnonzero(counts == 1)]
        words = f"of {_listed(single)} there is one example, which is either learned from or tested on"
        found += [f"{words}; leave such classes out, or join them to others"] if single else []
    return found


def _decided_by(x: np.ndarray, y: np.ndarray, *, is_labels: bool) -> np.ndarray:
    """Return (token, number) of every number of a sequence that is the target by another name.

    Those are in rising or falling order as the target is, or of labels have one value for each class.
    """
    if len(y) != y.size and (y.ndim > 2 or y.shape[1] > MAX_OUTPUTS):  # one target per token, or very many
        return np.zeros((0, 2), int)
    decides = np.zeros(x.shape[1:], bool)
    for output in y.reshape(len(y), -1).T:
        order = np.argsort(output, kind="stable")
        changes = np.diff(output[order]) != 0
        steps = np.diff(x[order], axis=0)  # NaN of absent tokens is no step of 0, and not above it
        as_often = np.all(steps[~changes] == 0, axis=0)
        decides |= as_often & (np.all(steps[changes] > 0, axis=0) | np.all(steps[changes] < 0, axis=0))
        for token, number in np.argwhere(as_often & ~decides) if is_labels else ():
            values = x[:, token, number]
            decides[token, number] = len(np.unique(values)) == np.sum(changes) + 1 and not np.isnan(values).any()
    return np.argwhere(decides)


def _named(
    places: np.ndarray, shape: tuple[int, ...], columns: tuple[str, ...], *, ids: bool = False, everywhere: bool = False
) -> str:
    """Return the names of numbers of a sequence, given as (token, number)."""
    length, dim = shape
    names = []
    for token, number in places.tolist():
        if len(columns) == length * dim:
            names.append(f"column {columns[token * dim + number]}")
            continue
        what = f"column {columns[number]}" if columns else "" if dim == 1 else f"number {number + 1}"
        where = "every token" if everywhere else f"token {'id ' if ids else ''}{token + 1}"
        names.append(f"{what} of {where}" if what else where)
    return _listed(names)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
