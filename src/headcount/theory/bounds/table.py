"""Every bound of the first paper at one setting."""

from .bound import Bound, Setting
from .lower import (
    deeper_readout_exponent,
    depth_conjecture,
    too_few_heads_exponent,
    too_few_heads_size,
    unique_dim,
)
from .upper import (
    component_accuracy,
    enough_heads_rate,
    head_error,
    max_net_width,
    selector_error,
    sharpness,
    sharpness_needed,
    wide_head_rate,
)


def all_bounds(setting: Setting) -> tuple[Bound, ...]:
    """Every bound of the first paper at one setting, in its order."""
    return (
        selector_error(1 / setting.eps**2),
        component_accuracy(setting),
        sharpness(setting),
        head_error(sharpness_needed(setting), setting.length, setting.length),
        enough_heads_rate(setting),
        too_few_heads_exponent(setting),
        too_few_heads_size(setting),
        deeper_readout_exponent(setting),
        wide_head_rate(setting),
        max_net_width(setting.length, setting.eps),
        unique_dim(setting.intrinsic_dim, setting.intrinsic_dim + 1, setting.length),
        depth_conjecture(setting),
    )
