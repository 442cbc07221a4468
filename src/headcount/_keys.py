"""Named keys: every random draw in headcount is a function of a seed and the words that say what it is for."""

import zlib

import jax.random as jr
import numpy as np

from ._shapes import Key


def named_key(seed: int, *names: str | int) -> Key:
    """The key of `seed` for one purpose, e.g. `named_key(3, "batches")`. Other names, other streams."""
    key = jr.key(seed)
    for number in _numbers(names):
        key = jr.fold_in(key, number)
    return key


def named_generator(seed: int, *names: str | int) -> np.random.Generator:
    """The same for draws of many small shapes outside a compiled program, where each would cost a compilation."""
    return np.random.default_rng([seed, *_numbers(names)])


def _numbers(names: tuple[str | int, ...]) -> list[int]:
    return [zlib.crc32(str(name).encode()) for name in names]
