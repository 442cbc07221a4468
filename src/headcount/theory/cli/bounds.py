"""`headcount bounds`: what the theorems say for one setting."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from ..._choices import MODEL_CLASSES
from ..._limits import require_size
from ...cli.app import say
from ...errors import require
from ...report.chart import Chart, Series
from ...report.document import Document, Text, Words, text
from .. import (
    Bound,
    BoundedClass,
    RankSetting,
    Setting,
    all_bounds,
    all_rank_bounds,
    many_points_floor,
    rank_floor,
    rank_one_floor,
)
from ..bounds import exponent
from .class_bounds import (
    MAX_LISTED,
    SYMBOLS,
    bounded_bounds,
    drawn_values,
    hard_bounds,
    hard_chart,
    phase_chart,
    require_class_options,
)

LENGTHS = (32, 64, 128, 256, 512, 1024)
DIMS = (8, 16, 32, 64, 128)
MAX_DRAWN = 1000
"""Head counts in a chart."""
MARKS: dict[bool | None, Words] = {True: ("yes", "green"), False: ("no", "red"), None: "assumed"}
"""Whether a condition holds."""
HEADS = tuple(2**power for power in range(17))


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
    require_class_options(model_class, [*for_class, *(["positions"] if positions else [])])
    if model_class is not None:
        require(rank is None, "give --class or --rank, not both.")
        require(intrinsic_dim is not None, "--class needs the task's --intrinsic-dim.")
        assert intrinsic_dim is not None
        symbols, draw = for_class.pop("alphabet", SYMBOLS), for_class.pop("task_seed", 0)
        sizes = {"heads": heads, "intrinsic_dim": intrinsic_dim, "length": length, "head_dim": head_dim}
        if model_class == "hard":
            require_size("heads", heads, MAX_LISTED)
            require_size("intrinsic_dim", intrinsic_dim, MAX_LISTED)
            setting = BoundedClass(**sizes, **for_class)
            drawn = drawn_values(setting, int(symbols), int(draw))
            return _document(hard_bounds(setting, drawn, eps), lambda: hard_chart(setting, drawn))
        setting = BoundedClass(**sizes, **for_class, positions=positions)
        steepness = float(intrinsic_dim) if outer_slope is None else outer_slope
        return _document(bounded_bounds(setting, eps, steepness), lambda: phase_chart(setting, eps, steepness))
    require(
        intrinsic_dim is not None or rank is not None,
        "give --intrinsic-dim for the bounds on how many heads, or --rank for those on their rank.",
    )
    if rank is not None:
        require(intrinsic_dim is None, "give --intrinsic-dim or --rank, not both: they belong to different papers.")
        require(dim > 1, f"--rank needs the --dim of the points, of at least 2, got {dim}.")
        terms = RankSetting.terms if terms is None else terms
        rank_setting = RankSetting(heads=heads, rank=rank, dim=dim, length=length, layers=layers, eps=eps, terms=terms)
        return _document(all_rank_bounds(rank_setting), lambda: _floor_chart(rank_setting))
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
    return _document(all_bounds(setting), lambda: _exponent_chart(setting))


def _document(values: Sequence[Bound], figure: Callable[[], Chart]) -> Document:
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


def _exponent_chart(setting: Setting) -> Chart:
    """k against heads below D, one line per length; a gap where the bound says nothing."""
    require_size("intrinsic_dim", setting.intrinsic_dim, MAX_DRAWN)
    heads = tuple(range(1, max(2, setting.intrinsic_dim)))
    lengths = sorted({*LENGTHS, setting.length})
    rows = {t: [exponent(h, setting.intrinsic_dim, t, setting.head_dim) for h in heads] for t in lengths}
    return Chart(
        name="exponent",
        title=f"Too few heads for D = {setting.intrinsic_dim}, heads of width {setting.head_dim}",
        x_label="attention heads",
        y_label="exponent k of M = Omega(eps^-k)",
        x_ticks=heads,
        log_y=False,
        series=tuple(
            Series(f"{t} tokens", heads, tuple(k if k > 0 else float("nan") for k in row), place=place)
            for place, (t, row) in enumerate(rows.items())
        ),
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

    def floor(heads: int, dim: int) -> float:
        if points > 2:
            return many_points_floor(heads, rank, dim, points)
        return rank_one_floor(heads, dim) if one else rank_floor(heads, rank, dim)

    rows = {d: [floor(h, d) for h in HEADS] for d in dims}
    kind = "hard heads of rank one" if one else f"heads of rank {rank}"
    return Chart(
        name="floor",
        title=f"The nearest of {'two' if points == 2 else points} orthogonal points by {kind}",
        x_label="attention heads",
        y_label="least expected squared error",
        x_ticks=HEADS[::4],
        log_x=True,
        log_y=False,
        series=tuple(
            Series(f"points in {d} dimensions", HEADS, tuple(row), place=place)
            for place, (d, row) in enumerate(rows.items())
        ),
        caption="A lower bound for any directions, values and outputs; ours, after Theorem 2, arXiv 2407.16153",
    )
