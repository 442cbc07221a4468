"""Studies of error against hidden width N: power laws fitted for every head count and length."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..analysis import error_table
from ..analysis.comparison import FLAT_SLOPE, Claim, Verdict, count_of_heads, decided, verdict_of
from ..analysis.fits import PowerLaw, power_law
from ..engine import Sweep, grid, joined
from ..models import ClassTokenSpec
from ..report.chart import Chart, Series
from ..report.charts import ERROR
from ..report.section import Section
from ..store import Record
from .base import AbstractStudy, Scale, paper_task

INTRINSIC_DIM = 4
HEADS = (1, 2, 3, 4)


@dataclass(frozen=True)
class WidthErrors:
    """The least error over seeds, `errors[i, j, k]` for heads[i], lengths[j], widths[k]; NaN where there is none."""

    heads: tuple[int, ...]
    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    errors: Float[np.ndarray, "heads lengths widths"]

    def fit(self, i: int, j: int) -> PowerLaw | None:
        return power_law(np.asarray(self.widths, float), self.errors[i, j])

    def fits(self) -> dict[tuple[int, int], PowerLaw]:
        """The power law of every (heads, length) that has two widths."""
        places = itertools.product(range(len(self.heads)), range(len(self.lengths)))
        found = {(self.heads[i], self.lengths[j]): self.fit(i, j) for i, j in places}
        return {place: fit for place, fit in found.items() if fit is not None}


@dataclass(frozen=True, kw_only=True)
class WidthStudy(AbstractStudy):
    """Heads 1 to D, each at several hidden widths. `widths` are the N tried at a scale."""

    widths: dict[Scale, tuple[int, ...]]

    def sweep(self, scale: Scale) -> Sweep:
        effort = self.efforts[scale]
        task = paper_task(INTRINSIC_DIM)
        parts = [
            grid(
                task,
                heads=HEADS,
                lengths=effort.lengths,
                seeds=range(effort.seeds),
                model=lambda heads, width=width: ClassTokenSpec(heads=heads, head_dim=8, hidden=width),
                train=effort.train,
            )
            for width in self.widths[scale]
        ]
        return joined(parts)

    def section(self, records: Iterable[Record], scale: Scale) -> Section:
        measured = width_errors(records)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(measured),
            claims=(
                _falls_claim(measured),
                _longer_is_worse_claim(measured),
                _flatter_claim(measured),
                _missing_head_claim(measured),
            ),
            charts=tuple(width_chart(measured, i) for i in range(len(measured.heads))),
            notes=(
                "The paper draws this figure and prints no numbers; its claims are judged. Which N it used is not "
                f"published; ours: {', '.join(map(str, self.widths[scale]))}.",
                *self.choices(scale),
            ),
        )


def width_errors(records: Iterable[Record]) -> WidthErrors:
    by_width: dict[int, list[Record]] = {}
    for record in records:
        by_width.setdefault(record.cell.model.hidden, []).append(record)
    tables = {width: error_table(group) for width, group in sorted(by_width.items())}
    heads = tuple(sorted({count for table in tables.values() for count in table.heads}))
    lengths = tuple(sorted({length for table in tables.values() for length in table.lengths}))
    errors = np.full((len(heads), len(lengths), len(tables)), np.nan)
    for k, table in enumerate(tables.values()):
        rows = [heads.index(count) for count in table.heads]
        columns = [lengths.index(length) for length in table.lengths]
        errors[np.ix_(rows, columns, [k])] = table.best[..., None]
    return WidthErrors(heads, lengths, tuple(tables), errors)


def width_chart(measured: WidthErrors, i: int) -> Chart:
    """One head count: the least error against N for every length, with the fitted lines."""
    series = []
    for j, length in enumerate(measured.lengths):
        fit = measured.fit(i, j)
        name = f"{length} tokens" if fit is None else f"{length} tokens, N^{fit.exponent:+.2f}"
        series.append(Series(name, measured.widths, tuple(measured.errors[i, j]), place=j))
        if fit is not None:
            line = tuple(fit.at(np.asarray(measured.widths, float)))
            series.append(Series(f"{name} fitted", measured.widths, line, place=j, kind="fit"))
    heads = measured.heads[i]
    return Chart(
        name=f"width-{heads}-heads",
        title=count_of_heads(heads),
        x_label="hidden width N (units)",
        y_label=ERROR,
        x_ticks=measured.widths,
        log_x=True,
        series=tuple(series),
        caption="points: best of seeds; lines: fitted powers of N",
    )


def _finite_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotients that are there: neither side lost, nor zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = above / below
    return ratio[np.isfinite(ratio)]


def _interval(fit: PowerLaw) -> str:
    if not np.isfinite(fit.low):
        return f"{fit.exponent:+.2f} (no interval from two widths)"
    return f"{fit.exponent:+.2f} [{fit.low:+.2f}, {fit.high:+.2f}]"


def _headline(measured: WidthErrors) -> str:
    few = [fit.exponent for (heads, _), fit in measured.fits().items() if heads < INTRINSIC_DIM]
    if not few:
        return "Too few widths are there to fit a power"
    return f"With fewer than D heads the fitted powers of N range from {min(few):+.2f} to {max(few):+.2f}"


def _falls_claim(measured: WidthErrors) -> Claim:
    statement = "With fewer than D heads the error falls as a power of N."
    fits = {place: fit for place, fit in measured.fits().items() if place[0] < INTRINSIC_DIM}
    if not fits:
        return Claim(statement, Verdict.UNDECIDED, "no head count below D was measured at two widths")
    evidence = "exponents with 90 % intervals: " + "; ".join(
        f"{count_of_heads(heads)}, length {length} {_interval(fit)}" for (heads, length), fit in fits.items()
    )
    falling, level = ([fit.high < 0 for fit in fits.values()], [fit.low > -FLAT_SLOPE for fit in fits.values()])
    return Claim(statement, verdict_of(falling, level), evidence)


def _longer_is_worse_claim(measured: WidthErrors) -> Claim:
    statement = "With fewer than D heads the longest sequences have a larger error than the shortest at the same N."
    few = measured.errors[[heads < INTRINSIC_DIM for heads in measured.heads]]
    ratio = _finite_ratio(few[:, -1], few[:, 0])
    shortest, longest = measured.lengths[0], measured.lengths[-1]
    if shortest == longest or not len(ratio):
        return Claim(statement, Verdict.UNDECIDED, "the shortest and the longest length were not both measured")
    worse = int(np.sum(ratio > 1))
    evidence = f"from length {shortest} to {longest} the error grows in {worse} of {len(ratio)} pairs of heads and N"
    return Claim(statement, decided(worse == len(ratio)), evidence)


def _flatter_claim(measured: WidthErrors) -> Claim:
    """Theorem 2(2): err ~ M^(-1/k) with k growing in T, so the power is nearer to zero for longer sequences."""
    statement = "With fewer than D heads size buys less on longer sequences: the power is nearer to zero."
    fits = measured.fits()
    short, long = measured.lengths[0], measured.lengths[-1]
    both = [h for h in measured.heads if h < INTRINSIC_DIM and (h, short) in fits and (h, long) in fits]
    if short == long or not both:
        return Claim(statement, Verdict.UNDECIDED, "the shortest and the longest length were not both measured")
    evidence = f"exponent at length {short} and at {long}, with 90 % intervals: " + "; ".join(
        f"{count_of_heads(h)} {_interval(fits[h, short])}, {_interval(fits[h, long])}" for h in both
    )
    nearer = [fits[h, long].low > fits[h, short].high for h in both]
    further = [fits[h, long].high < fits[h, short].low for h in both]
    return Claim(statement, verdict_of(nearer, further), evidence)


def _missing_head_claim(measured: WidthErrors) -> Claim:
    statement = "No size tried makes up for a missing head: D heads do better at every N."
    if INTRINSIC_DIM not in measured.heads or INTRINSIC_DIM - 1 not in measured.heads:
        return Claim(statement, Verdict.UNDECIDED, "D and D - 1 heads were not both measured")
    enough, few = (measured.errors[measured.heads.index(h)] for h in (INTRINSIC_DIM, INTRINSIC_DIM - 1))
    ratio = _finite_ratio(few, enough)
    if not len(ratio):
        return Claim(statement, Verdict.UNDECIDED, "D and D - 1 heads were not both measured")
    evidence = f"D - 1 heads err {ratio.min():.3g} to {ratio.max():.3g} times as much as D heads at the same N"
    return Claim(statement, decided(bool(ratio.min() > 1)), evidence)
