"""Tasks made of stored examples with labels: images as bytes, passages as numbers.

Such data has no distribution to draw from and no formula for the target. An example is tokenised whenever it is used,
inside the training program: what is stored stays small, and an image can be placed differently each time.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .._shapes import AnyArray
from ..errors import require
from ..keys import named_generator

MIN_EXAMPLES = 100
MIN_VALIDATION = 20
MAX_VALIDATION = 2000


def train_and_validation(count: int, held_out: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of training and of validation examples, whatever the seed.

    The last `held_out` are for validation; by default a random fifth, at most 2,000.
    """
    if held_out is None:
        order = named_generator(0, "set apart").permutation(count)
        train, validation = np.split(order, [train_count(count)])
        return train, validation
    return np.arange(count - held_out), np.arange(count - held_out, count)


def train_count(count: int) -> int:
    """Return how many of `count` examples are for training, where validation examples are drawn."""
    return count - min(count // 5, MAX_VALIDATION)


def split_indices(
    count: int, held_out: int | None, train_examples: int, validation_examples: int, seed: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of training and validation examples, each in a random order."""
    train, validation = train_and_validation(count, held_out)
    require(
        len(train) >= MIN_EXAMPLES and len(validation) >= MIN_VALIDATION,
        f"{name}: {len(train)} training and {len(validation)} validation examples are too few to tell head counts "
        f"apart; there must be at least {MIN_EXAMPLES} and {MIN_VALIDATION}.",
    )
    train = named_generator(seed, "train examples").permutation(train)[:train_examples]
    validation = named_generator(seed, "validation examples").permutation(validation)[:validation_examples]
    return train, validation


def examples_at(content: PyTree[AnyArray], index: Any) -> PyTree[AnyArray]:
    """Return the example, or the examples, at an index."""
    return jax.tree.map(lambda part: jnp.asarray(part)[index], content)
