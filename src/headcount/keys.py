"""Named keys: every random draw in headcount is a function of a seed and the words that say what it is for."""

import jax.random as jr
import jaxtyping
import numpy as np
from jaxtyping import Array, UInt32

from ._compile import on_device
from ._draws import named_generator, numbers_of
from ._shapes import Key

__all__ = ["named_generator", "named_key", "named_keys"]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Of Threefry-2x32 with 20 rounds, JAX's generator (Salmon et al., "Parallel random numbers", 2011)."""
PARITY = 0x1BD11BDA


def named_key(seed: int, *names: str | int) -> Key:
    """Return the key of `seed` for one purpose, e.g. `named_key(3, "batches")`. Other names, other streams."""
    return jr.wrap_key_data(on_device(_key_data(seed, names)), impl="threefry2x32")


def named_keys(seeds: list[int], *names: str | int) -> jaxtyping.Key[Array, " seeds"]:
    """Return `named_key` of every seed, along the first axis."""
    data = np.stack([_key_data(seed, names) for seed in seeds])
    return jr.wrap_key_data(on_device(data), impl="threefry2x32")


def _key_data(seed: int, names: tuple[str | int, ...]) -> UInt32[np.ndarray, "2"]:
    """Compute `jr.fold_in` over the names, from `jr.key(seed)`, in integers: JAX would compile four programs for it."""
    key = 0, int(seed) & 0xFFFFFFFF
    for number in numbers_of(names):
        key = _threefry(key, (0, number))
    return np.array(key, np.uint32)


def _threefry(key: tuple[int, int], count: tuple[int, int]) -> tuple[int, int]:
    """Compute one block of Threefry-2x32."""
    schedule = (*key, key[0] ^ key[1] ^ PARITY)
    first, second = (count[0] + key[0]) & 0xFFFFFFFF, (count[1] + key[1]) & 0xFFFFFFFF
    for turn in range(5):
        for bits in ROTATIONS[turn % 2]:
            first = (first + second) & 0xFFFFFFFF
            second = ((second << bits | second >> (32 - bits)) & 0xFFFFFFFF) ^ first
        first = (first + schedule[(turn + 1) % 3]) & 0xFFFFFFFF
        second = (second + schedule[(turn + 2) % 3] + turn + 1) & 0xFFFFFFFF
    return first, second
