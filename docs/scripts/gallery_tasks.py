"""The tasks of the gallery. A function's docstring is what the page says of it, its body the code that the page shows.

`expected` is the head count that is known to be enough and needed, 0 where none should be called needed (nothing can be
learned, no head count stands out, or a floor stays whatever the heads), and None where nobody knows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

import headcount as hc


@dataclass(frozen=True)
class Entry:
    """A task of the gallery.

    Args:
        make: Makes the task.
        title: What it is called on the page.
        expected: Its head count; 0: none should be named; None: unknown.
        why: Where that is known from, or what makes it unknown.
        options: What `hc.measure` is given beside the gallery's own options.
    """

    make: Callable[[], Any]
    title: str
    expected: int | None
    why: str
    options: dict[str, Any] = field(default_factory=dict)


def one_maximum():
    """The largest of eight projections `a · x(t)`."""
    return hc.find_task("sum-of-maxima", intrinsic_dim=1, length=8)


def two_maxima():
    """The sum of two such maxima, along two directions."""
    return hc.find_task("sum-of-maxima", intrinsic_dim=2, length=8)


def three_maxima():
    """The sum of three."""
    return hc.find_task("sum-of-maxima", intrinsic_dim=3, length=8)


def four_maxima():
    """The sum of four: the first paper's task."""
    return hc.find_task("sum-of-maxima", intrinsic_dim=4, length=8)


def five_maxima():
    """The sum of five."""
    return hc.find_task("sum-of-maxima", intrinsic_dim=5, dim=5, length=8)


def max_plus_min():
    """The largest plus the smallest of eight numbers."""
    return hc.find_task("max-plus-min", length=8)


def basins():
    """How near the tokens come to each of three points: the sum of the three smallest squared distances."""
    return hc.find_task("quadratic-basins", intrinsic_dim=3, dim=2, length=8)


def halves():
    """Your own components and position sets: the largest first coordinate of each half of the sequence, two outputs."""
    return hc.Retrieval(
        [lambda x: -x[0], lambda x: -x[0]],
        outer=lambda z: jnp.stack([-z[0], -z[1]]),
        windows=[(0, 0.5), (0.5, 1)],
        length=8,
        dim=2,
        name="halves",
    )


def recall():
    """Two look-ups: the value (number 2) of the token with the largest number 0, plus that of the largest number 1."""
    return hc.FunctionTask(
        lambda tokens: tokens[jnp.argmax(tokens[:, 0]), 2] + tokens[jnp.argmax(tokens[:, 1]), 2],
        length=8,
        dim=3,
        name="recall",
    )


def average():
    """The mean over the tokens, which attention does by not attending."""
    return hc.find_task("average", length=8)


def variance():
    """The variance over the tokens: the mean of squares less the square of the mean, both averages."""
    return hc.FunctionTask(lambda tokens: jnp.var(tokens[:, 0]), length=8, dim=2, name="variance")


def count():
    """How many tokens have a positive first number."""
    return hc.FunctionTask(lambda tokens: jnp.sum(tokens[:, 0] > 0.0).astype(float), length=8, dim=2, name="count")


def median():
    """The median over the tokens: not a function of a few minima."""
    return hc.FunctionTask(lambda tokens: jnp.median(tokens[:, 0]), length=8, dim=2, name="median")


def parity():
    """The sign of the product of all tokens."""
    return hc.FunctionTask(lambda tokens: jnp.sign(jnp.prod(tokens[:, 0])), length=8, dim=1, name="parity")


def largest_position():
    """Labels: the position (0 to 7) of the largest first number. The model must know positions."""
    x = np.random.default_rng(0).normal(size=(8000, 8, 2))
    y = x[:, :, 0].argmax(axis=1)
    return hc.ArrayTask(x, y, labels=True, name="largest-position", uses_positions=True)


def two_classes():
    """Labels: whether the largest number 0 plus the largest number 1 is above its median."""
    x = np.random.default_rng(1).normal(size=(8000, 8, 2))
    total = x[:, :, 0].max(axis=1) + x[:, :, 1].max(axis=1)
    y = np.where(total > np.median(total), "high", "low")
    return hc.ArrayTask(x, y, labels=True, name="two-classes")


def noise():
    """Targets that have nothing to do with the tokens."""
    generator = np.random.default_rng(2)
    return hc.ArrayTask(generator.normal(size=(4000, 8, 2)), generator.normal(size=4000), name="noise")


def spike():
    """A sine of random phase with a spike in one place; the target is the spike's height, measured with noise."""
    generator = np.random.default_rng(3)
    x = 0.1 * np.sin(np.arange(16) / 2 + generator.uniform(0, 6.3, size=(4000, 1)))
    height = generator.uniform(0.5, 2, size=4000)
    x[np.arange(4000), generator.integers(0, 16, size=4000)] += height
    y = height + generator.normal(scale=0.15, size=4000)
    return hc.ArrayTask(x[:, :, None], y, name="spike")


def nearest():
    """The last token asks: which of eight points on a sphere is nearest to it? The model is read at the query."""
    return hc.find_task("nearest-neighbour", dim=3, length=9)


def regression():
    """Eight pairs (x, y) of a linear function, then an x: predict its y in context."""
    return hc.find_task("in-context-regression", inputs=2, length=9)


RETRIEVAL = "D minima or maxima over tokens: D heads are needed and enough (Yu et al.)"
ENCODER = {"heads": [1, 2, 4], "steps": 1000, "train_examples": 8000}
"""Encoders are wider, and drawing examples in every step takes longest: fewer of them, fewer steps, stored examples."""

GROUPS: dict[str, tuple[Entry, ...]] = {
    "Retrievals": (
        Entry(one_maximum, "One maximum", 1, RETRIEVAL),
        Entry(two_maxima, "Two maxima", 2, RETRIEVAL),
        Entry(three_maxima, "Three maxima", 3, RETRIEVAL),
        Entry(four_maxima, "Four maxima", 4, RETRIEVAL),
        Entry(five_maxima, "Five maxima", 5, RETRIEVAL),
        Entry(max_plus_min, "Largest plus smallest", 2, RETRIEVAL),
        Entry(basins, "Three basins", 3, RETRIEVAL),
        Entry(halves, "A maximum in each half", 2, RETRIEVAL),
        Entry(recall, "Two look-ups by key", 2, "each look-up is one place to attend to"),
    ),
    "Averages": (
        Entry(average, "The mean", 1, "uniform attention computes it"),
        Entry(variance, "The variance", 1, "one head carries several averages side by side"),
        Entry(count, "Counting", 1, "an average of a step function of the token"),
    ),
    "Labels": (
        Entry(largest_position, "Where is the largest?", 1, "one place to attend to, whose position is read"),
        Entry(two_classes, "Two classes", 2, RETRIEVAL),
    ),
    "The last token asks": (
        Entry(nearest, "The nearest point", 1, "one head of full rank is enough (Amsel et al.)", ENCODER),
        Entry(
            regression, "In-context regression", None, "no theorem says how many heads one softmax layer needs", ENCODER
        ),
    ),
    "Without an answer, or with a floor": (
        Entry(median, "The median", 0, "no count of heads makes it a function of few minima"),
        Entry(parity, "Parity", 0, "the sign flips with every token, which training does not find"),
        Entry(noise, "Noise", 0, "there is nothing to learn"),
        Entry(spike, "A spike on a sine", 0, "a tenth of the variance of y is noise: a floor, whatever the heads"),
    ),
}
