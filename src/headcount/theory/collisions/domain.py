"""The box of tokens that a collision is searched in and a certificate holds on."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..._errors import require
from ...tasks import GeneratedTask

MARGIN = 1e-6
"""Distance that searches keep from the faces of a domain, as a share of its width."""


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
        """Tokens clipped to the inner domain."""
        return np.clip(tokens, *self.inner)


CUBE = Domain(0.0, 1.0)


def domain_of(task: GeneratedTask, radius: float = 3.0) -> Domain:
    """The cube for tasks on the cube; for Gaussian tokens, which are unbounded, the box [-radius, radius].

    Raises:
        InputError: the task has stored examples only, or `radius` is not positive and finite.
    """
    distribution = getattr(task, "distribution", None)
    require(
        distribution is not None,
        f"{task.name} has stored examples only; a collision needs a target that can be computed at any sequence.",
    )
    if distribution == "cube":
        return CUBE
    require(0 < radius < np.inf, f"radius must be positive and finite, got {radius!r}.")
    return Domain(-radius, radius)
