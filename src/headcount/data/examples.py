"""Examples read from a file: sequences x with targets y.

A reader hands its arrays to `examples_of_arrays`, which checks their names and joins validation to training examples.
Sequences of unequal lengths are an array of objects. What the arrays hold is checked by the task that is made of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

from ..errors import InputError, did_you_mean, require
from .texts import as_texts, token_ids
from .values import as_array, kind_of, read_mask

NAMES = ("x", "y", "mask", "lengths", "x_validation", "y_validation", "mask_validation", "lengths_validation")


class Wanted(NamedTuple):
    """What a user says about examples.

    The target's file or columns, the column of sequences, a target per token; how texts are read, and the most ids.
    """

    targets: str | None = None
    sequence: str | None = None
    per_token: bool = False
    tokens: str | None = None
    vocabulary: int | None = None


@dataclass(frozen=True, eq=False)
class LoadedExamples:
    """Examples as `ArrayTask` takes them; `notes` say how they were read, `columns` name their numbers."""

    x: np.ndarray
    y: np.ndarray
    mask: Bool[np.ndarray, "examples length"] | None = None
    held_out: int | None = None
    notes: tuple[str, ...] = ()
    vocabulary: int | None = None
    columns: tuple[str, ...] = ()


def ending(path: Path) -> str:
    """Return the ending of a file's name in lower case, with .gz where the file is packed."""
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix + (".gz" if name.endswith(".gz") else "")


def with_lines(sentence: str, path: Path, *lines: str) -> InputError:
    """Return a refusal, and lines of Python that convert the file at `path`."""
    stem = path.with_name(path.name.split(".")[0] or "data")
    code = "\n".join(f"    {line}" for line in lines)
    names = {"{path}": path, "{stem}": stem, "{npz}": f"{stem}.npz", "{csv}": f"{stem}.csv", "{pt}": f"{stem}_xy.pt"}
    for mark, name in names.items():
        code = code.replace(mark, repr(str(name)))
    return InputError(f"{sentence} In Python this converts it:\n{code}")


def examples_of_arrays(
    path: Path, named: Mapping[str, Any], wanted: Wanted, notes: tuple[str, ...] = (), held_out: int | None = None
) -> LoadedExamples:
    """Return the examples of a file from its arrays by name, of which `held_out` at the end are for validation.

    Texts become token ids.

    Raises `InputError` if an array is missing or unknown, or if training and validation, x and y, or x and mask do not
    match.
    """
    for name in ("x", "y"):
        listed = ", ".join(map(str, named)) or "none"
        near = did_you_mean(name, [other for other in named if str(other).lower().startswith(name)])
        require(name in named, f"{path} must hold arrays named x and y, found {listed}.{near}", what=name)
    for name in named:
        hint = f"{did_you_mean(str(name), NAMES)} Known: {', '.join(NAMES)}; remove it or rename it."
        require(name in NAMES, f'{path} has the array "{name}", which is not read.{hint}')
    try:
        named, vocabulary, how = _with_ids(dict(named), wanted, held_out or 0)
        train = _read_part(named, "")
        if any(name.endswith("_validation") for name in named):
            train, held_out = _with_validation(train, named)
        notes += (f"{path.name}: texts are read as {how}",) if how else ()
        return replace(train, held_out=held_out, notes=notes, vocabulary=vocabulary)
    except InputError as error:
        raise InputError(f"{path}: {error}", what=error.what) from error


def _with_ids(named: dict[str, Any], wanted: Wanted, held_out: int) -> tuple[dict[str, Any], int | None, str]:
    """Return the arrays with token ids in place of texts, how many ids there are, and how texts are read."""
    texts = as_texts(named["x"])
    if texts is None:
        none = f"tokens {wanted.tokens} says how texts are read, and x holds none; leave it out."
        require(wanted.tokens is None, none, what="tokens")
        return named, None, ""
    others = as_texts(named.get("x_validation", ())) or []
    read = token_ids([*texts, *others], len(texts) - held_out, wanted.tokens, wanted.vocabulary)
    ids = {"x": read.ids[: len(texts)]} | ({"x_validation": read.ids[len(texts) :]} if others else {})
    return named | ids, read.vocabulary, read.note


def _with_validation(train: LoadedExamples, named: Mapping[str, Any]) -> tuple[LoadedExamples, int]:
    """Return training and validation examples, and how many are for validation."""
    for name in ("x_validation", "y_validation"):
        require(name in named, f"there are validation examples but no {name}; add it.", what=name)
    validation = _read_part(named, "_validation")
    masks = [part.mask for part in (train, validation) if part.mask is not None]
    require(len(masks) != 1, "training and validation examples must both have a mask, or neither.", what="mask")
    x, y = _joined("x", train.x, validation.x), _joined("y", train.y, validation.y)
    return LoadedExamples(x, y, np.concatenate(masks) if masks else None), len(validation.y)


def _read_part(named: Mapping[str, Any], ending: str) -> LoadedExamples:
    """Return the training examples, or with an ending the validation examples."""
    x, y = (as_array(named[name + ending], name + ending) for name in ("x", "y"))
    for name, array in (("x", x), ("y", y)):
        require(array.ndim > 0, f"{name}{ending} must be one {name} per example, got a single value.", what=name)
        # Its other sizes may be any: NumPy would take their memory for a mask, or not be able to join them.
        require(0 not in array.shape, f"{name}{ending} of shape {array.shape} must not be empty.", what=name)
    require(len(x) == len(y), f"x{ending} has {len(x)} examples but y{ending} has {len(y)}; they must match.")
    return LoadedExamples(x, y, _mask(x, named.get("mask" + ending), named.get("lengths" + ending), ending))


def _mask(x: np.ndarray, mask: Any, lengths: Any, ending: str) -> Bool[np.ndarray, "examples length"] | None:
    """Return which tokens are there, from a mask or from the number of tokens per example."""
    if mask is None and lengths is None:
        return None
    both = f"there are both mask{ending} and lengths{ending}; one is enough, remove the other."
    require(mask is None or lengths is None, both)
    equal = x.dtype != object and x.ndim > 1
    require(equal, f"a mask or lengths need x{ending} of one length, of shape (examples, length) or more axes.")
    if mask is not None:
        return read_mask(mask, x.shape[:2], f"mask{ending}")
    name = f"lengths{ending}"
    counts = as_array(lengths, name)
    needed = f"one whole number per example, each from 1 to {x.shape[1]}"
    whole = counts.shape == (len(x),) and counts.dtype.kind in "iu"
    require(whole, what=name, given=f"{counts.dtype} of shape {counts.shape}", needed=needed)
    wrong = counts[(counts < 1) | (counts > x.shape[1])]
    require(not wrong.size, what=name, given=wrong[:1].tolist(), needed=needed)
    return np.arange(x.shape[1]) < counts[:, None]


def _joined(name: str, train: np.ndarray, validation: np.ndarray) -> np.ndarray:
    """Append validation examples to training examples, where both are of one kind and shape."""
    kinds = kind_of(train), kind_of(validation)
    if "object" in kinds:  # of unequal lengths, or refused later
        return np.fromiter([*train, *validation], object)
    require(kinds[0] == kinds[1], f"{name} holds {kinds[0]} but {name}_validation {kinds[1]}; they must match.")
    shapes = f"{name} has shape {train.shape} but {name}_validation {validation.shape}"
    require(train.shape[1:] == validation.shape[1:], f"{shapes}; all axes but the first must match.")
    return np.concatenate([train, validation])
