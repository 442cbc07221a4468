"""Examples read from a file: sequences x with targets y, checked where the file can still be named.

Every reader gives arrays by name; `assembled` checks the names, the shapes and the numbers, and joins validation
examples to the training ones. Sequences of unequal lengths are a list of arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

from .._errors import InputError, did_you_mean, require

NAMES = ("x", "y", "mask", "lengths", "x_validation", "y_validation", "mask_validation", "lengths_validation")
Sequences = np.ndarray | list[np.ndarray]


class Wanted(NamedTuple):
    """What a user says about a file: the target's file or columns, the column of sequences, a target per token."""

    targets: str | None = None
    sequence: str | None = None
    per_token: bool = False


@dataclass(frozen=True, eq=False)
class Arrays:
    """The arrays of a file by name, and in sentences how they were read; `held_out` rows at the end are validation."""

    named: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    held_out: int | None = None


@dataclass(frozen=True, eq=False)
class Loaded:
    """Examples as `ArrayTask` takes them; `notes` say how the file was read."""

    x: Sequences
    y: np.ndarray
    mask: Bool[np.ndarray, "examples length"] | None = None
    held_out: int | None = None
    notes: tuple[str, ...] = ()


def no_options(path: Path, wanted: Wanted, *, but: str = "") -> None:
    """Raise `InputError` if targets or a sequence were named for a file that says itself which is which."""
    if wanted.targets is not None and but != "targets":
        message = f"{path} holds both x and y, so targets {wanted.targets} is not needed."
        raise InputError(message, what="targets", given=wanted.targets)
    if wanted.sequence is not None:
        message = f"{path} is no table of one token per row, so sequence {wanted.sequence} is not needed."
        raise InputError(message, what="sequence", given=wanted.sequence)


def assembled(path: Path, arrays: Arrays) -> Loaded:
    """The examples of a file, from its arrays.

    Raises:
        InputError: An array is missing, unknown, of another shape or length, or not finite numbers (y: or labels).
    """
    named = arrays.named
    for name in ("x", "y"):
        listed = ", ".join(map(str, named)) or "none"
        near = did_you_mean(name, [other for other in named if str(other).lower().startswith(name)])
        require(name in named, f"{path} must hold arrays named x and y, found {listed}.{near}", what=name)
    unknown = [str(name) for name in named if name not in NAMES]
    if unknown:
        hint = f"{did_you_mean(unknown[0], NAMES)} Known: {', '.join(NAMES)}; remove it or rename it."
        raise InputError(f'{path} has the array "{unknown[0]}", which is not read.{hint}', given=unknown[0])
    parts = [_part(path, named, "")]
    later = [name for name in NAMES if name.endswith("_validation") and name in named]
    if later:
        for name in ("x_validation", "y_validation"):
            require(name in named, f"{path} has {later[0]} but no {name}.", what=name)
        parts.append(_part(path, named, "_validation"))
        for name, train, validation in (("x", parts[0].x, parts[1].x), ("y", parts[0].y, parts[1].y)):
            _require_joinable(path, name, train, validation)
        masks = [part.mask is None for part in parts]
        require(masks[0] == masks[1], f"{path}: training and validation examples must both have a mask, or neither.")
    held_out = len(parts[1].y) if later else arrays.held_out
    return Loaded(
        x=_joined([part.x for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        mask=None if parts[0].mask is None else np.concatenate([part.mask for part in parts if part.mask is not None]),
        held_out=held_out,
        notes=arrays.notes,
    )


def _part(path: Path, named: Mapping[str, Any], ending: str) -> Loaded:
    """The training examples, or with an ending the validation examples."""
    x, y = sequences(path, named["x" + ending], "x" + ending), _targets(path, named["y" + ending], "y" + ending)
    require(len(x) == len(y), f"{path}: x{ending} has {len(x)} examples but y{ending} has {len(y)}; they must match.")
    require(len(x) > 0, f"{path} has no examples: x{ending} is empty.")
    mask = _mask(path, x, named.get("mask" + ending), named.get("lengths" + ending), ending)
    _require_finite(path, x, mask, "x" + ending)
    return Loaded(x, y, mask)


def sequences(path: Path, values: Any, name: str) -> Sequences:
    """Sequences of numbers: one array of shape (examples, length) or (examples, length, dim), or a list of arrays."""
    array = rectangular(values)
    if array is not None and array.dtype.kind != "O":
        _require_numbers(path, array, name)
        needed = "(examples, length) or (examples, length, dim)"
        require(array.ndim in (2, 3), f"{path}: {name} must be of shape {needed}, got {array.shape}.")
        require(0 not in array.shape[1:], f"{path}: {name} has no tokens or no numbers, its shape is {array.shape}.")
        return array
    require(isinstance(values, Sequence | np.ndarray), f"{path}: {name} must be sequences, got {_kind(values)}.")
    tokens = [_one_sequence(path, sequence, name, place) for place, sequence in enumerate(values)]
    require(len(tokens) > 0, f"{path} has no examples: {name} is empty.")
    first = tokens[0].shape[1:]
    for place, sequence in enumerate(tokens):
        dims = [(shape or (1,))[0] for shape in (first, sequence.shape[1:])]
        hint = f"{path}: tokens of {name} must all have as many numbers, got {dims[0]} in example 0 and {dims[1]} in"
        require(sequence.shape[1:] == first, f"{hint} example {place}.")
    return tokens


def _one_sequence(path: Path, values: Any, name: str, place: int) -> np.ndarray:
    array = rectangular(values)
    if array is None or array.dtype.kind == "O":
        fault = "tokens with different numbers of values, or a missing value"
        raise InputError(f"{path}: example {place} of {name} has {fault}.")
    _require_numbers(path, array, f"example {place} of {name}")
    shapes = f"{path}: example {place} of {name} must be of shape (length,) or (length, dim), got {array.shape}."
    require(array.ndim in (1, 2), shapes)
    require(array.size > 0, f"{path}: example {place} of {name} has no tokens.")
    return array


def rectangular(values: Any) -> np.ndarray | None:
    """`values` as one array; None where they are ragged."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        return None


def _require_numbers(path: Path, array: np.ndarray, name: str) -> None:
    kinds = {
        "U": "text",
        "S": "bytes (make text of them: y.astype(str))",
        "T": "text",
        "O": "Python objects",
        "c": "complex numbers",
        "V": "records",
    }
    kinds |= {"M": "dates", "m": "time spans"}
    kind = kinds.get(array.dtype.kind, str(array.dtype))
    require(array.dtype.kind in "fiub", f"{path}: {name} must hold numbers, got {kind} (dtype {array.dtype}).")


def _targets(path: Path, values: Any, name: str) -> np.ndarray:
    array = rectangular(values)
    if array is None:
        raise InputError(f"{path}: {name} is ragged; every example must have as many targets.")
    if array.dtype.kind in "OT" and array.size and all(isinstance(label, str) for label in array.ravel().tolist()):
        array = array.astype(str)
    if array.dtype.kind != "U":
        _require_numbers(path, array, name)
    require(1 <= array.ndim <= 3, f"{path}: {name} must have one target per example, got shape {array.shape}.")
    _require_finite(path, array, None, name)
    return array


def _mask(path: Path, x: Sequences, mask: Any, lengths: Any, ending: str) -> np.ndarray | None:
    """Which tokens are there, from a mask or from the number of tokens per example."""
    if mask is None and lengths is None:
        return None
    require(mask is None or lengths is None, f"{path} has both mask{ending} and lengths{ending}; one is enough.")
    if not isinstance(x, np.ndarray):
        raise InputError(f"{path}: x{ending} is ragged, so a mask or lengths are not needed.")
    if mask is not None:
        array = rectangular(mask)
        wrong = array is None or array.shape != x.shape[:2]
        shape = "ragged" if array is None else array.shape
        require(not wrong, f"{path}: mask{ending} must be of shape {x.shape[:2]}, as x{ending}, got {shape}.")
        assert array is not None
        booleans = array.dtype.kind in "fiub" and bool(np.all((array == 0) | (array == 1)))
        require(booleans, f"{path}: mask{ending} must hold booleans, or 0 and 1.")
        present = array.astype(bool)
        empty = np.flatnonzero(~present.any(axis=1))
        require(len(empty) == 0, f"{path}: mask{ending} leaves no token of example {', '.join(map(str, empty[:1]))}.")
        return present
    array = rectangular(lengths)
    good = array is not None and array.shape == (len(x),) and array.dtype.kind in "iu"
    needed = f"one whole number per example, each from 1 to {x.shape[1]}"
    require(good, f"{path}: lengths{ending} must be {needed}.")
    assert array is not None
    wrong = np.flatnonzero((array < 1) | (array > x.shape[1]))
    got = ", ".join(f"got {array[place]} for example {place}" for place in wrong[:1])
    require(len(wrong) == 0, f"{path}: lengths{ending} must be {needed}; {got}.")
    return np.arange(x.shape[1]) < array[:, None]


def _require_finite(path: Path, values: Sequences, mask: np.ndarray | None, name: str) -> None:
    for start, array in [(0, values)] if isinstance(values, np.ndarray) else enumerate(values):
        if array.dtype.kind != "f":
            continue
        bad = ~np.isfinite(array)
        if mask is not None:
            bad = bad & mask.reshape(mask.shape + (1,) * (array.ndim - 2))
        if bad.any():
            example = int(np.argwhere(bad)[0][0]) if isinstance(values, np.ndarray) else start
            count = f"{int(bad.sum())} NaN or infinite values in {array.size}"
            raise InputError(f"{path}: {name} must be finite numbers, found {count}, the first in example {example}.")


def _require_joinable(path: Path, name: str, train: Sequences, validation: Sequences) -> None:
    if isinstance(train, np.ndarray) and isinstance(validation, np.ndarray):
        message = f"{path}: {name} {train.shape} and {name}_validation {validation.shape} must agree in all axes but"
        require(train.shape[1:] == validation.shape[1:], f"{message} the first.")
        return
    dims = [sequences[0].shape[1:] for sequences in (train, validation)]
    require(dims[0] == dims[1], f"{path}: tokens of {name} and {name}_validation have different numbers of values.")


def _joined(parts: list[Sequences]) -> Sequences:
    whole = [part for part in parts if isinstance(part, np.ndarray)]
    return np.concatenate(whole) if len(whole) == len(parts) else [row for part in parts for row in part]


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
