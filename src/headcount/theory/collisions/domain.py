"""The box of tokens that collisions are searched in, and the pairs that searches start from."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...errors import require
from ...keys import named_generator
from ...tasks import AbstractTask, GeneratedTask
from ..doors import require_positive

MARGIN = 1e-6
"""Distance that searches keep from the faces of a domain, as a share of its width."""

Pair = Float[np.ndarray, "2 length dim"]
Pairs = Float[np.ndarray, "starts 2 length dim"]


@dataclass(frozen=True)
class Domain:
    """All tokens whose coordinates lie between `low` and `high`."""

    low: float
    high: float

    def __post_init__(self):
        require(
            -np.inf < self.low < self.high < np.inf,
            f"a domain needs finite ends with low < high, got {self.low!r} and {self.high!r}.",
        )

    @property
    def inner(self) -> tuple[float, float]:
        """Its ends moved inwards: searches stay there, so that a certificate has room around their pairs."""
        margin = MARGIN * (self.high - self.low)
        return self.low + margin, self.high - margin

    def clip(self, tokens: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        return np.clip(tokens, *self.inner)

    def require_inside(self, name: str, tokens: np.ndarray) -> None:
        low, high = float(tokens.min()), float(tokens.max())
        ends = f"[{self.low:g}, {self.high:g}]"
        inside = self.low <= low and high <= self.high
        require(inside, f"{name} must lie in {ends}, got values from {low:g} to {high:g}.")


CUBE = Domain(0.0, 1.0)


def domain_of(task: AbstractTask, radius: float = 3.0) -> Domain:
    """Return the cube for tasks on the cube; for Gaussian tokens, which are unbounded, the box [-radius, radius].

    Raises `InputError` where the task has stored examples only, or `radius` is not positive and finite.
    """
    distribution = getattr(task, "distribution", None)
    require(
        distribution is not None,
        f"{task.name} has stored examples only; a collision needs a target that can be computed at any sequence.",
    )
    if distribution == "cube":
        return CUBE
    require_positive(radius=radius)
    return Domain(-radius, radius)


def shared_places(heads: int, length: int) -> tuple[int, ...]:
    """Return one place per head, spread over the sequence: a shared token can take the attention weight of one head."""
    if heads >= length:
        return ()
    return tuple(int(place) for place in np.unique(np.linspace(0, length - 1, heads).round().astype(int)))


def free_starts(task: GeneratedTask, domain: Domain, starts: int, seed: int) -> Pairs:
    """Return pairs of which both sequences are free.

    A quarter are two independent sequences, a quarter a sequence and a neighbour, half a sequence of clustered tokens
    and a neighbour: no head prefers one of several clustered tokens by much.
    """
    generator = named_generator(seed, "starts of collisions")
    middle, half = (domain.low + domain.high) / 2, (domain.high - domain.low) / 2
    shape = (starts, task.length, task.dim)
    first = middle + half / 3 * generator.standard_normal(shape)
    width = half * np.exp(generator.uniform(np.log(0.02), np.log(0.5), (starts, 1, 1)))
    centre = middle + half / 3 * generator.standard_normal((starts, 1, task.dim))
    clustered = np.arange(starts)[:, None, None] % 2 == 1
    first = np.where(clustered, centre + width * generator.standard_normal(shape), first)
    second = first + 0.1 * np.where(clustered, width, half) * generator.standard_normal(shape)
    second[::4] = middle + half / 3 * generator.standard_normal(second[::4].shape)
    return domain.clip(np.stack([first, second], axis=1))


def anchored_starts(
    anchors: Float[np.ndarray, "anchors length dim"], which: int, domain: Domain, starts: int, seed: int
) -> Pairs:
    """Return pairs whose first sequence is one anchor; the second is a neighbour at growing distances.

    Every third neighbour is one of another anchor.
    """
    generator = named_generator(seed, "neighbours of anchors")
    width = (domain.high - domain.low) / 2 * np.exp(np.linspace(np.log(0.01), np.log(0.5), starts))[:, None, None]
    anchor = anchors[which]
    others = anchors[(which + 1 + np.arange(starts)) % len(anchors)]
    centre = np.where(np.arange(starts)[:, None, None] % 3 == 2, others, anchor)
    near = centre + width * generator.standard_normal((starts, *anchor.shape))
    return np.stack([np.broadcast_to(anchor, near.shape), domain.clip(near)], axis=1)
