"""What a bound is, and the setting of the first paper that its formulas are evaluated at.

Symbols: h heads, n head_dim, D intrinsic_dim, T length, L layers, d dim, M parameters of the two feed-forward nets, eps
the largest error over the domain, L0 = sup |grad F0|_1 the Lipschitz constant of the outer map, gamma the rate of the
component nets (within delta by two-layer nets of width C / delta^gamma).
Source: Yu et al. (arXiv 2510.06662), section 4.
"""

import math
from dataclasses import dataclass

from ..._errors import require, require_count

PAPER = "arXiv 2510.06662"


@dataclass(frozen=True)
class Condition:
    """What a bound requires, and whether it holds; None where the setting does not determine it."""

    text: str
    holds: bool | None


@dataclass(frozen=True, kw_only=True)
class Bound:
    """`value` is None where the bound is vacuous, `why` gives the reason. `kind`: theorem, repaired or conjecture."""

    name: str
    value: float | None
    claim: str
    source: str
    conditions: tuple[Condition, ...] = ()
    kind: str = "theorem"
    why: str = ""

    @property
    def applies(self) -> bool:
        """Whether it is not vacuous and no condition is known to fail."""
        return self.value is not None and all(condition.holds is not False for condition in self.conditions)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The sizes of a task and a model that the theorems use."""

    heads: int
    intrinsic_dim: int
    length: int
    head_dim: int = 8
    layers: int = 1
    dim: int = 1
    eps: float = 1e-2
    outer_slope: float | None = None
    """L0; by default D, that of a sum of the components."""
    gamma: float = 1.0

    def __post_init__(self):
        for name in ("heads", "intrinsic_dim", "length", "head_dim", "layers", "dim"):
            require_count(name, getattr(self, name))
        require(0 < self.eps < 1, what="eps", given=self.eps, needed="between 0 and 1")
        if self.outer_slope is None:
            object.__setattr__(self, "outer_slope", float(self.intrinsic_dim))
        for name in ("outer_slope", "gamma"):
            value = getattr(self, name)
            require(0 < value < math.inf, what=name, given=value, needed="positive and finite")

    @property
    def slope(self) -> float:
        """L0."""
        assert self.outer_slope is not None
        return self.outer_slope
