"""What people hand over, as one array: lists, NumPy, JAX and PyTorch arrays and pandas objects, from memory or a file.

Values of several kinds are never made one: NumPy would make words of numbers among words, and numbers of booleans.
"""

import itertools
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
from jaxtyping import Bool

from .._limits import require_fits
from ..errors import InputError, require

MAX_AXES = 64
"""Of an array of NumPy."""
LETTER_BYTES = 12
"""Of a word in an array, which NumPy sorts: 4 bytes there, in a copy and in a sorted copy."""


def kind_of(array: np.ndarray) -> str:
    """Name what an array of one kind holds: "words", "booleans", "numbers" or something else."""
    kinds = {"b": "booleans", "U": "words", "T": "words"} | dict.fromkeys("iuf", "numbers")
    return kinds.get(array.dtype.kind, str(array.dtype))


def kinds_in(values: Iterable[Any]) -> list[str]:
    """Return the kinds of single values, sorted by name."""
    kinds = {type(None): "None", bool: "booleans", np.bool_: "booleans"} | dict.fromkeys((str, np.str_), "words")
    return sorted({kinds.get(type(each), "numbers" if isinstance(each, Number) else "other values") for each in values})


def as_array(values: Any, name: str) -> np.ndarray:
    """Return `values` as one array; sequences of unequal shapes as an array of objects, each of them an array."""
    masked = f"{name} is a masked array; pass {name}.data and mask=~np.ma.getmaskarray(x), one entry per token."
    require(not isinstance(values, np.ma.MaskedArray), masked, what=name)
    try:
        values = _plain(values)
        if isinstance(values, list | tuple):
            values = [_plain(each) for each in values]
            require_words_fit(values, name)
        array = np.asarray(values)
        if isinstance(values, list) and array.dtype.kind in "Uiuf" and _is_mixed(values, array):
            array = np.asarray(values, object)
    except InputError:  # a ValueError, too
        raise
    except ValueError:
        array = np.fromiter([_element(each, name) for each in values], object)
    except Exception as error:  # other libraries raise many types for arrays that NumPy cannot have
        kind, reason = type(values).__name__, str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{name} of type {kind} cannot be made a NumPy array: {reason}.", what=name) from error
    if array.dtype.name == "bfloat16":
        return array.astype(np.float32)
    return _of_objects(array, name) if array.dtype == object else array


def _is_mixed(values: list[Any], array: np.ndarray) -> bool:
    """Return whether NumPy may have made one kind of several: words of anything among words, numbers of booleans."""
    if array.dtype.kind == "U":
        return not all(isinstance(each, str) for each in values)
    return array.ndim == 1 and any(isinstance(each, bool | np.bool_) for each in values)


def require_words_fit(values: Sequence[Any], name: str) -> None:
    """Raise `InputError` where words in lists need too much memory as an array: each is as wide as the widest."""
    for _ in range(MAX_AXES):
        if not {list, tuple} & set(map(type, values)):
            break
        values = list(itertools.chain.from_iterable(each if isinstance(each, list | tuple) else () for each in values))
    if any(issubclass(kind, str) for kind in set(map(type, values))):
        widest = max(len(each) for each in values if isinstance(each, str))
        what = f"{name} of {len(values):,} words, with room in each for the {widest:,} letters of the longest,"
        require_fits(what, LETTER_BYTES * len(values) * widest)


def _plain(values: Any) -> Any:
    """Make NumPy arrays of PyTorch and pandas objects; leave anything else as it is."""
    library = type(values).__module__.partition(".")[0]
    if library == "torch" and hasattr(values, "detach"):
        values = values.detach().cpu()
        return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def _element(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(_plain(values))
    except ValueError as error:
        message = f"{name} is ragged inside a sequence: its tokens must all have the same number of values."
        raise InputError(message, what=name) from error


def _of_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Make numbers or sequences of objects that are such; leave others as they were."""
    if array.ndim == 1 and array.size and all(np.ndim(each) > 0 or hasattr(each, "to_numpy") for each in array):
        rows = [_element(each, name) for each in array]
        return np.stack(rows) if len({row.shape for row in rows}) == 1 else np.fromiter(rows, object)
    kinds = kinds_in(array.flat)
    if len(kinds) > 1 or "None" in kinds:
        return array  # NumPy would make one kind of them, and NaN of None
    if kinds == ["words"]:
        require_words_fit(array.ravel().tolist(), name)
    try:
        plain = np.asarray(array.tolist())  # numbers or words that were stored as objects
        return plain if plain.dtype != object else array.astype(float)  # such as decimals
    except (ValueError, TypeError, OverflowError):
        return array


def read_mask(mask: Any, shape: tuple[int, ...], name: str = "mask") -> Bool[np.ndarray, "examples length"]:
    """Read which tokens of sequences of this shape are there; refuse anything but True and False, 1 and 0."""
    array = as_array(mask, name)
    require(array.shape == shape, what=name, given=array.shape, needed=f"of shape {shape}, one entry per token")
    usable = array.dtype.kind in "biuf" and bool(np.all((array == 0) | (array == 1)))
    given = array.dtype if array.dtype.kind not in "biuf" else array[(array != 0) & (array != 1)][:1].tolist()
    require(usable, what=name, given=given, needed="True (or 1) where a token is there and False (or 0) elsewhere")
    return array.astype(bool)


def require_numbers(array: np.ndarray, name: str) -> None:
    """Raise `InputError`, with how to convert them, unless values are numbers or booleans; `name` ends in x or y."""
    which = name.split()[-1]
    words = "words must be token ids: np.unique(x, return_inverse=True)[1].reshape(x.shape), or those of a tokeniser"
    objects = "give one array of shape (examples, length, dim), or a list of (length, dim) arrays, without None"
    if which == "y":
        words = "class labels are strings, not bytes: y.astype(str)"
        objects = "give one number, or one class label, per example, and leave out examples without (None, NaN)"
    advice = {
        "c": f"split complex numbers into real and imaginary parts, np.stack([{which}.real, {which}.imag], axis=-1)",
        "M": "subtract a date and divide by np.timedelta64(1, 's')",
        "m": "divide by np.timedelta64(1, 's')",
        "O": objects,
    } | dict.fromkeys("UST", words)
    hint = advice.get(array.dtype.kind, "give an array of floats")
    kinds = kinds_in(array.flat) if array.dtype == object else []
    mixture = f" ({', '.join(kinds)})" if len(kinds) > 1 else ""
    message = f"{name} must hold numbers, got dtype {array.dtype}{mixture}; {hint}."
    require(array.dtype.kind in "fiub", message, what=which)
