"""What a user should know of their arrays before heads are counted: leaks, constants, classes with one example.

Each is a sentence that says what to do. Nothing is changed.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from ..errors import InputError

LISTED, MAX_OUTPUTS, FEW = 5, 16, 500
"""Columns or classes that a sentence names; outputs, and examples at first, that are compared with every column."""


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
    high, low = np.fmax.reduce(x, axis=0), np.fmin.reduce(x, axis=0)  # NaN where no token is
    if not np.any(high > low):
        raise InputError("x is the same in all examples, so that nothing can be told from it; give x that varies.")
    found, each = [], len(columns) == high.size
    deciding = _decided_by(x, y, is_labels=classes is not None)
    if len(deciding):
        names = f"{'each of ' if len(deciding) > 1 else ''}{_named(deciding, high.shape, columns)}"
        copy = "leave out what is a copy of the target, which one head, or none, can read"
        found.append(f"the target is decided by {names} alone, one value for one; {copy}")
    if not ids:  # of which the first is often the same
        alike = high == low if each else (np.fmax.reduce(high, axis=0) == np.fmin.reduce(low, axis=0))[None]
        same = _named(np.argwhere(alike), high.shape, columns, "" if each else "every token")
        found += (
            [f"the same in all examples: {same}; models learn nothing from it, and it may be left out"] if same else []
        )
    if classes is not None:
        counts = np.bincount(y[y >= 0], minlength=len(classes))
        single = [str(classes[place])[:40] for place in np.flatnonzero(counts == 1)]
        words = f"of {_listed(single)} there is one example, which is either learned from or tested on"
        found += [f"{words}; leave such classes out, or join them to others"] if single else []
    return found


def _decided_by(x: np.ndarray, y: np.ndarray, *, is_labels: bool) -> np.ndarray:
    """Return (token, number) of every number of a sequence that is the target by another name.

    Those are in rising or falling order as the target is, or of labels have one value for each class.
    """
    outputs = y.reshape(len(y), -1)
    decides = np.zeros(x.shape[1:], bool)
    for output in outputs.T if y.ndim < 3 and outputs.shape[1] <= MAX_OUTPUTS else ():
        order = np.argsort(output, kind="stable")
        few = order[:: max(1, len(order) // FEW)]  # what fails on them fails on all
        for token, number in np.argwhere(_follows(x[few], output[few], is_labels=is_labels)):
            column = x[:, token, number][order]
            follows = bool(_follows(column[:, None, None], output[order], is_labels=is_labels))
            decides[token, number] |= follows and len(np.unique(column)) >= len(np.unique(output)) > 1
    return np.argwhere(decides)


def _follows(x: np.ndarray, y: np.ndarray, *, is_labels: bool) -> np.ndarray:
    """Return which numbers of sequences change where `y` does, in its order, and nowhere else; labels have no order."""
    changes, steps = np.diff(y) != 0, np.diff(x, axis=0)  # NaN of absent tokens is neither a step nor none
    in_order = np.all(steps[changes] > 0, axis=0) | np.all(steps[changes] < 0, axis=0)
    return np.all(steps[~changes] == 0, axis=0) & (in_order | (is_labels & np.all(steps[changes] != 0, axis=0)))


def _named(places: np.ndarray, shape: tuple[int, ...], columns: tuple[str, ...], where: str = "") -> str:
    """Return the names of numbers of a sequence, given as (token, number)."""
    names = []
    for token, number in places.tolist():
        if len(columns) == shape[0] * shape[1]:
            names.append(f"column {columns[token * shape[1] + number]}")
        else:
            what = f"column {columns[number]} of " if columns else f"number {number + 1} of " if shape[1] > 1 else ""
            names.append(what + (where or f"token {token + 1}"))
    return _listed(names)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
