"""What the study of memory shows: capacities beside what is proved, and the errors they were read from."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...answer import ErrorTable
from ...report.chart import Chart, Series
from ...report.section import Grid
from ..claims.memorise import WRONG, Capacity, contexts_of, heads_exponent, lines


@dataclass(frozen=True)
class Along:
    """An axis that capacities are drawn along: the field of `Capacity`, what a chart calls it, and its title."""

    axis: str
    field: str
    label: str
    title: str


ALONG = (
    Along("heads", "heads", "attention heads H", "Examples memorised, by heads"),
    Along("length", "tokens", "tokens of the context n", "Examples memorised, by context size"),
    Along("rank", "rank", "key width d_h", "Examples memorised, by key width"),
)


def headline(found: Sequence[Capacity]) -> str:
    """How the capacity grows with the heads."""
    parts = []
    for (context, *_), line in lines(found, "heads").items():
        fit = heads_exponent(line)
        if fit is not None:
            low, value, high = fit
            known = [each for each in line if not each.missing]
            ends = f"{known[0].examples:.0f} to {known[-1].examples:.0f} at {known[0].heads} to {known[-1].heads} heads"
            parts.append(f"{context} context: as H^{value:.2f} [{low:.2f}, {high:.2f}], {ends}")
    return f"Examples memorised: {'; '.join(parts)}" if parts else "Too few models have finished to tell"


def capacity_grid(found: Sequence[Capacity]) -> Grid:
    """Every shape: what is proved, and what was memorised."""
    rows = []
    for each in found:
        ratio = "-" if each.missing else f"{each.examples / each.bound:.1f}"
        sizes = (str(each.heads), str(each.tokens), str(each.rank))
        rows.append((each.context, *sizes, str(each.bound), str(each.exact), each.words(), ratio))
    columns = ("context", "H", "n", "d_h", "proved", "every label right", "memorised (90 %)", "times proved")
    title = f"examples memorised: at least {100 * (1 - WRONG):g} % of labels right, median of seeds"
    return Grid(title=title, columns=columns, rows=tuple(rows))


def error_grid(table: ErrorTable) -> Grid:
    """The errors that capacities were read from, a row per shape."""
    rows = []
    kept = {axis: sorted(table.values(axis)) for axis in ("length", "rank", "heads")}
    part = table.reduced("seed", "median").select(context=contexts_of(table), **kept)
    part = part.ordered("context", "length", "rank", "heads", "examples")
    for at, line in part.lines("examples"):
        cells = "; ".join(f"{count}: {100 * error:.1f}" for count, error in sorted(line.items()))
        sizes = (str(at["heads"]), str(at["length"] - 1), str(at["rank"]))
        rows.append((at["context"], *sizes, cells))
    columns = ("context", "H", "n", "d_h", "examples: wrong labels in %")
    return Grid(title="training labels wrong at the end, median of seeds", columns=columns, rows=tuple(rows))


def capacity_charts(found: Sequence[Capacity]) -> tuple[Chart, ...]:
    """Capacity against heads, context size and key width, a chart for each that has two values."""
    return tuple(chart for along in ALONG if (chart := _chart(found, along)) is not None)


def _chart(found: Sequence[Capacity], along: Along) -> Chart | None:
    series, proved = [], {}
    for (context, *_), line in lines(found, along.axis).items():
        known = [each for each in line if not each.missing]
        if len(known) < 2:
            continue
        x, y, low, high = (
            tuple(float(getattr(each, name)) for each in known) for name in (along.field, "examples", "low", "high")
        )
        series.append(Series(f"{context} context", x, y, place=len(series), low=low, high=high))
        proved |= {float(getattr(each, along.field)): float(each.bound) for each in line}
    if not series:
        return None
    ticks = tuple(sorted(proved))
    bound = Series(
        "H (min(n, d_h) - 1) + 1", ticks, tuple(proved[x] for x in ticks), place=6, kind="published", thin=True
    )
    return Chart(
        name=f"capacity-{along.axis}",
        title=along.title,
        x_label=along.label,
        y_label="examples memorised",
        x_ticks=ticks,
        log_y=False,
        series=(*series, bound),
        caption=(
            f"at least {100 * (1 - WRONG):g} % of random labels right, median of seeds; bands hold 90 % of resamples; "
            "dashed: what Mahdavi et al. prove that some weights memorise"
        ),
    )
