"""`headcount bounds --class`: what every model of a class misses, and the model that misses little."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from ..._choices import MODEL_CLASSES, require_choice
from ...errors import require
from ...report.chart import Chart, Series
from ...tasks import alphabet_values
from .. import Bound, BoundedClass, alphabet_floor, phase_diagram
from ..floors.alphabet import MAX_WORK, check_work, hard_bound, score_gap_bound, work
from ..floors.bounded import class_bounds
from ..floors.one_head import one_head_bounds

SYMBOLS = 5
"""Of the alphabet, where none is given."""
MAX_LISTED = 1000
"""Heads of --class hard, each with a bound of its own, and maxima."""
LENGTHS = (4, 8, 16, 32, 64)
PHASE_LENGTHS = tuple(2**power for power in range(3, 15))
PHASE_ERRORS = (0.02, 0.01, 0.005)
LOWEST = 0.1
"""Decades of slope at the bottom of the phase diagram."""
ONE_CLASS = {"alphabet": "hard", "task_seed": "hard", "rise": "bounded", "positions": "bounded"}
"""Options of one class alone."""


def require_class_options(model_class: str | None, given: Iterable[str]) -> None:
    """Raise `InputError` unless the class is known and has these options."""
    if model_class is not None:
        require_choice("class", model_class, MODEL_CLASSES)
    for name in given:
        flag, only = f"--{name.replace('_', '-')}", ONE_CLASS.get(name, model_class)
        known = " or ".join(MODEL_CLASSES)
        require(model_class is not None, f"{flag} is an option of --class {known}; give --class too.")
        require(only == model_class, f"{flag} is an option of --class {only}, got --class {model_class}.")


def drawn_values(setting: BoundedClass, symbols: int, task_seed: int) -> Float[np.ndarray, "D symbols"]:
    """The values of the symbols, of an alphabet that can be enumerated."""
    check_work(symbols, min(setting.heads, max(1, setting.intrinsic_dim - 1)))
    return alphabet_values(setting.intrinsic_dim, symbols, task_seed)


def hard_bounds(setting: BoundedClass, values: Float[np.ndarray, "D symbols"], eps: float) -> tuple[Bound, ...]:
    """The floors of 1, 2, .. hard heads, and the gap from which on soft heads are as hard."""
    floors = [alphabet_floor(values, count, setting.length) for count in range(1, setting.heads + 1)]
    return (
        *(hard_bound(floor, setting.intrinsic_dim, setting.length) for floor in floors),
        score_gap_bound(setting.length, setting.heads * setting.head_dim, setting.values, setting.slope, eps),
    )


def bounded_bounds(setting: BoundedClass, eps: float, outer_slope: float) -> tuple[Bound, ...]:
    """What every model with bounded values and slope misses, and what one head can do."""
    sizes = {"intrinsic_dim": setting.intrinsic_dim, "head_dim": setting.head_dim, "values": setting.values}
    one_head = one_head_bounds(setting.length, eps, setting.slope, outer_slope=outer_slope, **sizes)
    return *class_bounds(setting, eps), *one_head


def hard_chart(setting: BoundedClass, values: Float[np.ndarray, "D symbols"]) -> Chart:
    """The least error of hard heads against their number, one line per length."""
    heads = tuple(range(1, setting.heads + 1))
    # Of large alphabets one length is all that a minute allows.
    others = LENGTHS if work(values.shape[1], min(setting.heads, setting.intrinsic_dim)) < MAX_WORK / 20 else ()
    lengths = sorted({*others, setting.length})
    rows = {length: tuple(alphabet_floor(values, count, length).nmse for count in heads) for length in lengths}
    return Chart(
        name="hard-floor",
        title=f"Any hard heads on {values.shape[1]} symbols, a sum of {setting.intrinsic_dim} maxima",
        x_label="attention heads",
        y_label="least error (NMSE)",
        x_ticks=heads,
        log_y=False,
        series=tuple(
            Series(f"{length} tokens", heads, row, place=place) for place, (length, row) in enumerate(rows.items())
        ),
        caption="The least over all orders of the symbols, with the best readout",
    )


def phase_chart(setting: BoundedClass, eps: float, outer_slope: float) -> Chart:
    """Decades of slope against length; between the two lines of one colour nothing is proved."""
    errors = tuple(sorted({*PHASE_ERRORS, eps}, reverse=True))
    lengths = tuple(sorted({*PHASE_LENGTHS, setting.length}))
    phases = phase_diagram(setting, lengths, errors, outer_slope=outer_slope)
    series = []
    for place, error in enumerate(errors):
        row = [phase for phase in phases if phase.eps == error]
        fails = tuple(phase.fails_below if phase.fails_below > LOWEST else float("nan") for phase in row)
        enough = tuple(phase.enough_from for phase in row)
        band = (tuple(max(phase.fails_below, LOWEST) for phase in row), enough) if error == eps else (None, None)
        name = f"eps = {error:g}"
        series.append(Series(f"{name}: one head is enough", lengths, enough, place, low=band[0], high=band[1]))
        series.append(Series(f"{name}: all fail below", lengths, fails, place, thin=True))
    heads = "1 head" if setting.heads == 1 else f"{setting.heads} heads"
    return Chart(
        name="phase",
        title=f"Where heads matter: {heads} of {setting.head_dim} numbers at most {setting.values:g} for D = "
        f"{setting.intrinsic_dim}",
        x_label="sequence length T (tokens)",
        y_label="decades of readout slope (log10 K)",
        x_ticks=lengths,
        log_x=True,
        series=tuple(series),
        caption="marked: one head with this slope answers within eps, the better of two constructions (one counts, for "
        "T below about 1 / eps; one averages exponentials); thin: below it every model errs by more than eps on some "
        f"sequence; between them (shaded: eps = {eps:g}) nothing is proved",
    )
