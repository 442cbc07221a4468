"""`headcount bounds --class`: what every model of a class misses, and the model that misses little."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..._choices import MODEL_CLASSES, require_choice
from ..._limits import require_size
from ...errors import require
from ...report.chart import Chart, Series
from ...tasks import alphabet_values
from .. import Bound, BoundedClass, alphabet_floor, class_floor, phase_diagram
from ..floors.alphabet import MAX_WORK, check_work, hard_bound, score_gap_bound, work
from ..floors.bounded import length_bound, slope_bound
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


@dataclass(frozen=True, kw_only=True)
class ClassRequest:
    """What was typed; None where nothing was."""

    model_class: str
    heads: int
    intrinsic_dim: int
    length: int
    head_dim: int
    eps: float
    outer_slope: float | None
    alphabet: int | None
    task_seed: int | None
    slope: float | None
    values: float | None
    rise: float | None
    positions: bool

    def __post_init__(self):
        require_choice("class", self.model_class, MODEL_CLASSES)
        others = {
            "hard": {"--rise": self.rise, "--positions": self.positions or None},
            "bounded": {"--alphabet": self.alphabet, "--task-seed": self.task_seed},
        }
        for flag, value in others[self.model_class].items():
            wanted = "bounded" if self.model_class == "hard" else "hard"
            require(value is None, f"{flag} is an option of --class {wanted}, got --class {self.model_class}.")
        if self.model_class == "hard":
            for name in ("heads", "intrinsic_dim"):
                require_size(name, getattr(self, name), MAX_LISTED)

    @property
    def setting(self) -> BoundedClass:
        given = {"slope": self.slope, "values": self.values, "rise": self.rise}
        return BoundedClass(
            heads=self.heads,
            intrinsic_dim=self.intrinsic_dim,
            length=self.length,
            head_dim=self.head_dim,
            positions=self.positions,
            **{name: value for name, value in given.items() if value is not None},
        )

    @property
    def readout_slope(self) -> float:
        """L0, by default a sum's."""
        return float(self.intrinsic_dim) if self.outer_slope is None else self.outer_slope


def class_bounds(request: ClassRequest) -> tuple[Bound, ...]:
    """The bounds of a class at one setting."""
    setting = request.setting
    if request.model_class == "hard":
        values = _values(request)
        floors = [alphabet_floor(values, heads, request.length) for heads in _heads(request)]
        outputs = setting.heads * setting.head_dim
        gap = score_gap_bound(request.length, outputs, setting.values, setting.slope, request.eps)
        return (*(hard_bound(floor, request.intrinsic_dim, request.length) for floor in floors), gap)
    steep = one_head_bounds(
        request.length,
        request.eps,
        setting.slope,
        intrinsic_dim=request.intrinsic_dim,
        head_dim=request.head_dim,
        outer_slope=request.readout_slope,
        values=setting.values,
    )
    return (
        class_floor(setting),
        slope_bound(setting, request.eps),
        length_bound(setting, request.eps),
        *steep,
    )


def class_chart(request: ClassRequest) -> Chart:
    """Of hard heads the least error against heads, a line per length; of bounded ones the phase diagram."""
    return _floor_chart(request) if request.model_class == "hard" else _phase_chart(request)


def _values(request: ClassRequest) -> Float[np.ndarray, "D symbols"]:
    symbols = SYMBOLS if request.alphabet is None else request.alphabet
    check_work(symbols, min(request.heads, max(1, request.intrinsic_dim - 1)))
    return alphabet_values(request.intrinsic_dim, symbols, request.task_seed or 0)


def _heads(request: ClassRequest) -> range:
    return range(1, request.heads + 1)


def _floor_chart(request: ClassRequest) -> Chart:
    values, heads = _values(request), tuple(_heads(request))
    # Of large alphabets one length is all that a minute allows.
    others = LENGTHS if work(values.shape[1], min(request.heads, request.intrinsic_dim)) < MAX_WORK / 20 else ()
    lengths = sorted({*others, request.length})
    rows = {length: tuple(alphabet_floor(values, count, length).nmse for count in heads) for length in lengths}
    return Chart(
        name="hard-floor",
        title=f"Any hard heads on {values.shape[1]} symbols, a sum of {request.intrinsic_dim} maxima",
        x_label="attention heads",
        y_label="least error (NMSE)",
        x_ticks=heads,
        log_y=False,
        series=tuple(
            Series(f"{length} tokens", heads, row, place=place) for place, (length, row) in enumerate(rows.items())
        ),
        caption="The least over all orders of the symbols, with the best readout",
    )


def _phase_chart(request: ClassRequest) -> Chart:
    """Decades of slope against length; between the two lines of one colour nothing is proved."""
    errors = tuple(sorted({*PHASE_ERRORS, request.eps}, reverse=True))
    lengths = tuple(sorted({*PHASE_LENGTHS, request.length}))
    phases = phase_diagram(request.setting, lengths, errors, outer_slope=request.readout_slope)
    series = []
    for place, eps in enumerate(errors):
        row = [phase for phase in phases if phase.eps == eps]
        fails = tuple(phase.fails_below if phase.fails_below > LOWEST else float("nan") for phase in row)
        enough = tuple(phase.enough_from for phase in row)
        band = (tuple(max(phase.fails_below, LOWEST) for phase in row), enough) if eps == request.eps else (None, None)
        name = f"eps = {eps:g}"
        series.append(Series(f"{name}: one head is enough", lengths, enough, place, low=band[0], high=band[1]))
        series.append(Series(f"{name}: all fail below", lengths, fails, place, thin=True))
    heads = "1 head" if request.heads == 1 else f"{request.heads} heads"
    return Chart(
        name="phase",
        title=f"Where heads matter: {heads} of {request.head_dim} numbers at most {request.setting.values:g} for D = "
        f"{request.intrinsic_dim}",
        x_label="sequence length T (tokens)",
        y_label="decades of readout slope (log10 K)",
        x_ticks=lengths,
        log_x=True,
        series=tuple(series),
        caption="marked: one head with this slope answers within eps, the better of two constructions (one counts, for "
        "T below about 1 / eps; one averages exponentials); thin: below it every model errs by more than eps on some "
        f"sequence; between them (shaded: eps = {request.eps:g}) nothing is proved",
    )
