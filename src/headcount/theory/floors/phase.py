"""Where heads matter: the slope below which fewer than D heads provably fail, and that with which one is enough."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from ...errors import require
from .bounded import BoundedClass, slope_needed
from .one_head import least_slope


@dataclass(frozen=True, kw_only=True)
class Phase:
    """log10 of two slopes at one length and error. Between them nothing is proved.

    Every model of s heads with the setting's largest value and a slope below `fails_below` errs by more than eps on
    some sequence; with `enough_from`, the lesser slope of two constructions, there is one head of D numbers that never
    does.
    """

    length: int
    eps: float
    fails_below: float
    enough_from: float


def phase_diagram(
    setting: BoundedClass, lengths: Iterable[int], errors: Iterable[float], *, outer_slope: float
) -> list[Phase]:
    """The two slopes at every length and error.

    Args:
        setting: The class and the task; its length and slope are not used.
        lengths: T.
        errors: eps.
        outer_slope: L0, sup |grad F0|_1, of the one head's readout.

    Returns:
        One `Phase` per error and length, in that order.

    Example:
        >>> from headcount.theory import BoundedClass, phase_diagram
        >>> one = BoundedClass(heads=1, intrinsic_dim=2, length=128)
        >>> (phase,) = phase_diagram(one, [128], [0.01], outer_slope=2.0)
        >>> 3 < phase.fails_below < phase.enough_from < 210
        True
    """
    require(
        setting.head_dim >= setting.intrinsic_dim,
        what="head_dim",
        given=setting.head_dim,
        needed=f"at least intrinsic_dim, {setting.intrinsic_dim}: one head answers with D numbers",
    )
    lengths = list(lengths)
    return [
        Phase(
            length=length,
            eps=eps,
            fails_below=slope_needed(dataclasses.replace(setting, length=length), eps),
            enough_from=least_slope(length, eps, outer_slope=outer_slope, share=setting.share, values=setting.values),
        )
        for eps in errors
        for length in lengths
    ]
