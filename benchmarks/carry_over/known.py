"""Tasks of known D outside the calibration set, as stored arrays.

    readers    y_i = another number of the token whose a_i . x(t) is largest
    ranges     y = sum over i of max minus min over t of a_i . x(t): two heads a direction
    means      y = the product of the means of two numbers: one head
    lookup     y_i = the value of the token whose key is the i-th of those that the last token asks for
    contrast   y = the first value less the second, of the two keys that the last token asks for
    compare    whether the first of these values is larger: two classes
    products   y = sum over i of max over t of x_a(t) x_b(t), whose score is no linear function of a token: a stock
               encoder of one layer has no net before its attention

Each number is a function of another token, so that D heads of one layer are needed, and enough.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headcount.keys import named_generator

EXAMPLES = 5_000
"""Of which a fifth is for validation."""
LENGTH = 16
KEY = 4
"""Numbers of a key that is looked up."""
ASKED = ("lookup", "contrast", "compare")
"""Families whose last token asks."""
Arrays = tuple[Float[np.ndarray, "examples length dim"], np.ndarray]


@dataclass(frozen=True)
class KnownD:
    """A task that D heads of one layer solve, and fewer do not."""

    family: str
    intrinsic_dim: int

    @property
    def name(self) -> str:
        """Unique within the set."""
        return f"{self.family}-{self.intrinsic_dim}"

    def arrays(self, examples: int = EXAMPLES) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return x, y and options of `headcount.measure`."""
        draw = named_generator(0, "carry-over", self.family, self.intrinsic_dim)
        x, y = FAMILIES[self.family](self.intrinsic_dim, examples, draw)
        y = y if y.dtype.kind == "i" else y.astype(np.float32)
        return x.astype(np.float32), y, {"answered_at": "query"} if self.family in ASKED else {}


def _readers(count: int, examples: int, draw: np.random.Generator) -> Arrays:
    x = draw.standard_normal((examples, LENGTH, 5))
    scores = x[..., :4] @ _directions(count, draw).T
    return x, np.take_along_axis(x[..., 4], scores.argmax(axis=1), axis=1)


def _directions(count: int, draw: np.random.Generator) -> Float[np.ndarray, "count 4"]:
    """Return orthogonal directions, and a fifth opposite to their sum."""
    turned = np.linalg.qr(draw.standard_normal((4, 4)))[0]
    return np.concatenate([turned, -turned.sum(axis=0, keepdims=True) / 2])[:count]


def _ranges(count: int, examples: int, draw: np.random.Generator) -> Arrays:
    x = draw.standard_normal((examples, LENGTH, 4))
    return x, np.ptp(x @ _directions(count // 2, draw).T, axis=1).sum(axis=-1)


def _means(count: int, examples: int, draw: np.random.Generator) -> Arrays:
    """One head takes all means: `count` is 1."""
    x = draw.standard_normal((examples, LENGTH, 4)) + draw.standard_normal((examples, 1, 4))
    means = x.mean(axis=1)
    return x, means[:, 0] * means[:, 1]


def _contrast(count: int, examples: int, draw: np.random.Generator) -> Arrays:
    """Attention weights are positive: no one head takes a difference. `count` is 2."""
    x, values = _lookup(count, examples, draw)
    return x, values[:, 0] - values[:, 1]


def _compare(count: int, examples: int, draw: np.random.Generator) -> Arrays:
    x, difference = _contrast(count, examples, draw)
    return x, (difference > 0).astype(int)


def _products(count: int, examples: int, draw: np.random.Generator) -> Arrays:
    x = draw.standard_normal((examples, LENGTH, 5))
    pairs = [(0, 1), (2, 3), (1, 4), (0, 2), (3, 4)][:count]
    return x, sum(np.max(x[..., a] * x[..., b], axis=1) for a, b in pairs)  # type: ignore[return-value]


def _lookup(count: int, examples: int, draw: np.random.Generator) -> Arrays:
    keys = draw.standard_normal((examples, LENGTH - 1, KEY))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    values = draw.standard_normal((examples, LENGTH - 1))
    asked = np.argsort(draw.random((examples, LENGTH - 1)), axis=1)[:, :count]
    x = np.zeros((examples, LENGTH, KEY * count + 1))
    x[:, :-1, :KEY], x[:, :-1, -1] = keys, values
    x[:, -1, :-1] = np.take_along_axis(keys, asked[..., None], axis=1).reshape(examples, -1)
    return x, np.take_along_axis(values, asked, axis=1)


FAMILIES: dict[str, Callable[[int, int, np.random.Generator], Arrays]] = {
    "readers": _readers,
    "ranges": _ranges,
    "means": _means,
    "lookup": _lookup,
    "contrast": _contrast,
    "compare": _compare,
    "products": _products,
}
COUNTS = {
    "readers": (1, 2, 3, 4, 5),
    "ranges": (2, 4),
    "means": (1,),
    "lookup": (1, 2, 3, 4),
    "contrast": (2,),
    "compare": (2,),
    "products": (2, 3),
}
KNOWN_TASKS = tuple(KnownD(family, count) for family, counts in COUNTS.items() for count in counts)
"""The tasks of known D, of which every stock model is trained."""
