"""`headcount bounds`: what the theorems say for one setting."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

import numpy as np
import typer
from jaxtyping import Float

from ..._choices import MODEL_CLASSES, require_choice
from ..._limits import require_size
from ...cli.app import say
from ...errors import require
from ...report.chart import Chart, Series
from ...report.document import Document, Text, Words, text
from ...tasks import alphabet_values
from .. import (
    Bound,
    BoundedClass,
    RankSetting,
    Setting,
    all_bounds,
    all_rank_bounds,
    alphabet_floor,
    many_points_floor,
    phase_diagram,
    rank_floor,
    rank_one_floor,
)
from ..bounds import exponent
from ..doors import require_positive
from ..floors.alphabet import MAX_WORK, check_work, hard_bound, score_gap_bound, work
from ..floors.bounded import class_bounds
from ..floors.one_head import one_head_bounds

LENGTHS = (32, 64, 128, 256, 512, 1024)
DIMS = (8, 16, 32, 64, 128)
MAX_DRAWN = 1000
"""Head counts in a chart."""
MARKS: dict[bool | None, Words] = {True: ("yes", "green"), False: ("no", "red"), None: "assumed"}
"""Whether a condition holds."""
HEADS = tuple(2**power for power in range(17))
SYMBOLS = 5
"""Of the alphabet, where none is given."""
MAX_LISTED = 1000
"""Heads of --class hard, each with a bound of its own, and maxima."""
HARD_LENGTHS = (4, 8, 16, 32, 64)
PHASE_LENGTHS = (32, 512, 8192, 131072)
PHASE_CELLS = tuple(2**power for power in range(10))
"""Numbers per component of the heads in the phase diagram."""
LOWEST = 0.1
"""Decades of slope at the bottom of the phase diagram."""
ONE_CLASS = {"alphabet": "hard", "task_seed": "hard", "rise": "bounded", "positions": "bounded"}
"""Options of one class alone."""


def bounds(
    heads: Annotated[int, typer.Option(help="Heads h.")],
    length: Annotated[int, typer.Option(help="Sequence length T; with --rank the number of points N.")],
    intrinsic_dim: Annotated[int | None, typer.Option(help="The task's D; the first paper needs it.")] = None,
    rank: Annotated[
        int | None, typer.Option(help="Rank of a head's scores, r: the second paper's bounds, on the nearest point.")
    ] = None,
    head_dim: Annotated[int, typer.Option(help="Width of a head, n.")] = Setting.head_dim,
    layers: Annotated[int, typer.Option(help="Attention layers L.")] = Setting.layers,
    dim: Annotated[int, typer.Option(help="Numbers per token, d.")] = Setting.dim,
    eps: Annotated[
        float, typer.Option(help="The largest error allowed; with --rank the expected squared one.")
    ] = Setting.eps,
    outer_slope: Annotated[float | None, typer.Option(help="sup |grad F0|_1 (default: D, a sum's).")] = None,
    gamma: Annotated[float, typer.Option(help="Rate of the component nets: width C / delta^gamma.")] = Setting.gamma,
    terms: Annotated[
        int | None,
        typer.Option(
            help=f"With --rank: biased nearest neighbours in a target of its Theorem 3 (default: {RankSetting.terms})."
        ),
    ] = None,
    model_class: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="|".join(MODEL_CLASSES),
            help="What every model of a class misses: hard heads on an alphabet, or bounded values and readout slope.",
        ),
    ] = None,
    alphabet: Annotated[int | None, typer.Option(help="Symbols of the alphabet of --class hard (default: 5).")] = None,
    task_seed: Annotated[int | None, typer.Option(help="Draw of the symbols' values, of --class hard.")] = None,
    slope: Annotated[
        float | None, typer.Option(help="Largest slope K of the readout of --class bounded (default: 1000).")
    ] = None,
    values: Annotated[float | None, typer.Option(help="Largest value V of a head, of --class (default: 1).")] = None,
    rise: Annotated[
        float | None,
        typer.Option(help="How far the target moves within one basin, of --class bounded (default: 0.5, max + min)."),
    ] = None,
    positions: Annotated[
        bool, typer.Option("--positions", help="Models of --class bounded see the place of a token.")
    ] = False,
) -> Document:
    """Every bound of a paper at one setting: value, claim, source, and whether its conditions hold.

    With --intrinsic-dim the first paper's (how many heads), with --rank the second's (of which rank), with --class what
    every model of a class misses.
    """
    require(terms is None or rank is not None, "--terms is an option of --rank; give --rank too.")
    for_class = {"alphabet": alphabet, "task_seed": task_seed, "slope": slope, "values": values, "rise": rise}
    for_class = {name: value for name, value in for_class.items() if value is not None}
    _require_class_options(model_class, [*for_class, *(["positions"] if positions else [])])
    if model_class is not None:
        require(rank is None, "give --class or --rank, not both.")
        require(intrinsic_dim is not None, "--class needs the task's --intrinsic-dim.")
        assert intrinsic_dim is not None
        symbols, draw = for_class.pop("alphabet", SYMBOLS), for_class.pop("task_seed", 0)
        sizes = {"heads": heads, "intrinsic_dim": intrinsic_dim, "length": length, "head_dim": head_dim}
        if model_class == "hard":
            require_positive(eps=eps)
            require_size("heads", heads, MAX_LISTED)
            require_size("intrinsic_dim", intrinsic_dim, MAX_LISTED)
            setting = BoundedClass(**sizes, **for_class)
            check_work(int(symbols), min(heads, max(1, intrinsic_dim - 1)))
            drawn = alphabet_values(intrinsic_dim, int(symbols), int(draw))
            return _bounds_document(_hard_bounds(setting, drawn, eps), lambda: _hard_chart(setting, drawn))
        setting = BoundedClass(**sizes, **for_class, positions=positions)
        steepness = float(intrinsic_dim) if outer_slope is None else outer_slope
        require_positive(outer_slope=steepness)
        found = *class_bounds(setting, eps), *one_head_bounds(setting, eps, outer_slope=steepness)
        return _bounds_document(found, lambda: _phase_chart(setting, eps, steepness))
    require(
        intrinsic_dim is not None or rank is not None,
        "give --intrinsic-dim for the bounds on how many heads, or --rank for those on their rank.",
    )
    if rank is not None:
        require(intrinsic_dim is None, "give --intrinsic-dim or --rank, not both: they belong to different papers.")
        require(dim > 1, f"--rank needs the --dim of the points, of at least 2, got {dim}.")
        terms = RankSetting.terms if terms is None else terms
        rank_setting = RankSetting(heads=heads, rank=rank, dim=dim, length=length, layers=layers, eps=eps, terms=terms)
        return _bounds_document(all_rank_bounds(rank_setting), lambda: _floor_chart(rank_setting))
    assert intrinsic_dim is not None
    setting = Setting(
        heads=heads,
        intrinsic_dim=intrinsic_dim,
        length=length,
        head_dim=head_dim,
        layers=layers,
        dim=dim,
        eps=eps,
        outer_slope=outer_slope,
        gamma=gamma,
    )
    return _bounds_document(all_bounds(setting), lambda: _exponent_chart(setting))


def _bounds_document(values: Sequence[Bound], figure: Callable[[], Chart]) -> Document:
    """Bounds one under the other: value, claim, conditions."""
    return Document(
        content=lambda: [dataclasses.asdict(bound) | {"applies": bound.applies} for bound in values],
        blocks=tuple(part for bound in values for part in _lines(bound)),
        figure=figure,
    )


def _lines(bound: Bound) -> Iterator[Text]:
    """Where a condition of a bound fails, that takes the value's place."""
    failed = [condition.text for condition in bound.conditions if condition.holds is False]
    value = "says nothing" if bound.value is None else f"{bound.value:.4g}"
    value = f"does not apply, {', '.join(failed)} fails" if bound.value is not None and failed else value
    kind = "" if bound.kind == "theorem" else bound.kind
    style = "bold" if bound.applies else "dim"
    yield text((f"{bound.name}: {value}", style), f"  {bound.source} ", (kind, "yellow"))
    yield text(bound.why or bound.claim, indent=2)
    if bound.conditions:
        conditions: list[Words] = []
        for condition in bound.conditions:
            conditions += ["; " if conditions else " ", f"{condition.text}: ", MARKS[condition.holds]]
        yield text(("needs", "dim"), *conditions, indent=2)


def _series(rows: dict[str, list[float]], heads: tuple[int, ...]) -> tuple[Series, ...]:
    return tuple(Series(name, heads, tuple(row), place=place) for place, (name, row) in enumerate(rows.items()))


def _exponent_chart(setting: Setting) -> Chart:
    """k against heads below D, one line per length; a gap where the bound says nothing."""
    require_size("intrinsic_dim", setting.intrinsic_dim, MAX_DRAWN)
    heads = tuple(range(1, max(2, setting.intrinsic_dim)))
    lengths = sorted({*LENGTHS, setting.length})
    dims, head_dim = setting.intrinsic_dim, setting.head_dim
    rows = {f"{t} tokens": [exponent(h, dims, t, head_dim) for h in heads] for t in lengths}
    rows = {name: [k if k > 0 else float("nan") for k in row] for name, row in rows.items()}
    return Chart(
        name="exponent",
        title=f"Too few heads for D = {setting.intrinsic_dim}, heads of width {setting.head_dim}",
        x_label="attention heads",
        y_label="exponent k of M = Omega(eps^-k)",
        x_ticks=heads,
        log_y=False,
        series=_series(rows, heads),
        caption="Theorem 2(2), arXiv 2510.06662, as eps goes to 0; a gap where the bound is vacuous",
    )


def _floor_chart(setting: RankSetting) -> Chart:
    """The smallest error of any heads of this rank against their number, one line per dimension.

    For two points where the dimension has not as many orthogonal ones as the setting.
    """
    if setting.length > setting.dim:
        say(
            f"two points are drawn: R^{setting.dim} has no {setting.length} orthogonal points; use --length up to "
            f"{setting.dim}"
        )
    points, rank = setting.length if setting.length <= setting.dim else 2, setting.rank
    dims = sorted({*(dim for dim in DIMS if dim > rank and dim >= points), setting.dim})
    one = rank == 1 and points == 2

    def least_error(heads: int, dim: int) -> float:
        if points > 2:
            return many_points_floor(heads, rank, dim, points)
        return rank_one_floor(heads, dim) if one else rank_floor(heads, rank, dim)

    rows = {f"points in {d} dimensions": [least_error(h, d) for h in HEADS] for d in dims}
    kind = "hard heads of rank one" if one else f"heads of rank {rank}"
    return Chart(
        name="floor",
        title=f"The nearest of {'two' if points == 2 else points} orthogonal points by {kind}",
        x_label="attention heads",
        y_label="least expected squared error",
        x_ticks=HEADS[::4],
        log_x=True,
        log_y=False,
        series=_series(rows, HEADS),
        caption="A lower bound for any directions, values and outputs; ours, after Theorem 2, arXiv 2407.16153",
    )


def _require_class_options(model_class: str | None, given: Iterable[str]) -> None:
    """Raise `InputError` unless the class is known and has these options."""
    if model_class is not None:
        require_choice("class", model_class, MODEL_CLASSES)
    for name in given:
        flag, only = f"--{name.replace('_', '-')}", ONE_CLASS.get(name, model_class)
        known = " or ".join(MODEL_CLASSES)
        require(model_class is not None, f"{flag} is an option of --class {known}; give --class too.")
        require(only == model_class, f"{flag} is an option of --class {only}, got --class {model_class}.")


def _hard_bounds(setting: BoundedClass, values: Float[np.ndarray, "D symbols"], eps: float) -> tuple[Bound, ...]:
    """The floors of 1, 2, .. hard heads, and the gap from which on soft heads are as hard."""
    floors = [alphabet_floor(values, count, setting.length) for count in range(1, setting.heads + 1)]
    return (
        *(hard_bound(floor, setting.intrinsic_dim, setting.length) for floor in floors),
        score_gap_bound(setting.length, setting.heads * setting.head_dim, setting.values, setting.slope, eps),
    )


def _hard_chart(setting: BoundedClass, values: Float[np.ndarray, "D symbols"]) -> Chart:
    """The least error of hard heads against their number, one line per length."""
    heads = tuple(range(1, setting.heads + 1))
    # Of large alphabets one length is all that a minute allows.
    others = HARD_LENGTHS if work(values.shape[1], min(setting.heads, setting.intrinsic_dim)) < MAX_WORK / 20 else ()
    lengths = sorted({*others, setting.length})
    rows = {f"{t} tokens": [alphabet_floor(values, count, t).nmse for count in heads] for t in lengths}
    return Chart(
        name="hard-floor",
        title=f"Any hard heads on {values.shape[1]} symbols, a sum of {setting.intrinsic_dim} maxima",
        x_label="attention heads",
        y_label="least error (NMSE)",
        x_ticks=heads,
        log_y=False,
        series=_series(rows, heads),
        caption="The least over all orders of the symbols, with the best readout",
    )


def _phase_chart(setting: BoundedClass, eps: float, outer_slope: float) -> Chart:
    """Decades of slope against head width; between the two lines of one colour nothing is proved."""
    lengths = tuple(sorted({*PHASE_LENGTHS, setting.length}))
    widths = tuple(sorted({*(setting.intrinsic_dim * cells for cells in PHASE_CELLS), setting.head_dim}))
    phases = phase_diagram(setting, lengths, [eps], outer_slope=outer_slope, widths=widths)
    series = []
    for place, length in enumerate(lengths):
        row = [phase for phase in phases if phase.length == length]
        fails = tuple(phase.fails_below if phase.fails_below > LOWEST else float("nan") for phase in row)
        enough = tuple(phase.enough_from for phase in row)
        band = (tuple(max(phase.fails_below, LOWEST) for phase in row), enough)
        low, high = band if length == setting.length else (None, None)
        name = f"{length:,} tokens"
        series.append(Series(f"{name}: one head is enough", widths, enough, place, low=low, high=high))
        series.append(Series(f"{name}: all fail below", widths, fails, place, thin=True))
    heads = "1 head" if setting.heads == 1 else f"{setting.heads} heads"
    return Chart(
        name="phase",
        title=f"Where heads matter: {heads} with values at most {setting.values:g}, D = {setting.intrinsic_dim}, eps = "
        f"{eps:g}",
        x_label="numbers per head (n)",
        y_label="decades of readout slope (log10 K)",
        x_ticks=widths,
        log_x=True,
        series=tuple(series),
        caption="marked: one head of at most this width and a readout of this slope answers within eps, the best of "
        "three constructions; thin: below it every model errs by more than eps on some sequence; between them (shaded: "
        f"{setting.length:,} tokens) nothing is proved",
    )
