"""Studies of error against hidden width N: power laws fitted for every head count and length."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...answer import NMSE, ErrorTable, count_of_heads, error_table
from ...report.chart import Chart, Series
from ...report.section import Section
from ...store import Experiment, Record
from ..base import Scale
from ..claims.width import falls_claim, flatter_claim, longer_is_worse_claim, missing_head_claim, width_fits
from .table import HeadCountStudy, paper_task

if TYPE_CHECKING:
    from ...engine import Sweep
    from ...models import ClassTokenSpec

INTRINSIC_DIM = 4
HEADS = (1, 2, 3, 4)


@dataclass(frozen=True, kw_only=True)
class WidthStudy(HeadCountStudy):
    """Heads 1 to D, each at several hidden widths. `widths` are the N tried at a scale."""

    widths: dict[Scale, tuple[int, ...]]

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import sweep

        effort = self.efforts[scale]
        axes = {"heads": HEADS, "hidden": self.widths[scale], "length": effort.lengths, "seed": range(effort.seeds)}
        return sweep(paper_task(INTRINSIC_DIM), axes=axes, model=_model, train=effort.train, **self.named(scale))

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(experiment, records)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=_headline(table),
            claims=(
                falls_claim(table, INTRINSIC_DIM),
                longer_is_worse_claim(table, INTRINSIC_DIM),
                flatter_claim(table, INTRINSIC_DIM),
                missing_head_claim(table, INTRINSIC_DIM),
            ),
            charts=tuple(width_chart(table, heads) for heads in table.values("heads")),
            notes=(
                "The paper draws this figure and prints no numbers; its claims are judged. Which N it used is not "
                f"published; ours: {', '.join(map(str, self.widths[scale]))}.",
                *self.choices(scale),
            ),
        )


def _model(heads: int, hidden: int) -> "ClassTokenSpec":
    from ...models import ClassTokenSpec

    return ClassTokenSpec(heads=heads, head_dim=8, hidden=hidden)


def width_chart(table: ErrorTable, heads: int) -> Chart:
    """One head count: the smallest error against N for every length, with the fitted lines."""
    best = table.reduced("seed").select(heads=heads).ordered("length", "hidden")
    widths, fits = best.values("hidden"), width_fits(table)
    series = []
    for place, (length, errors) in enumerate(zip(best.values("length"), best.errors, strict=True)):
        fit = fits.get((heads, length))
        name = f"{length} tokens" if fit is None else f"{length} tokens, N^{fit.exponent:+.2f}"
        series.append(Series(name, widths, tuple(errors), place=place))
        if fit is not None:
            line = tuple(fit.at(np.asarray(widths, float)))
            series.append(Series(f"{name} fitted", widths, line, place=place, kind="fit"))
    return Chart(
        name=f"width-{heads}-heads",
        title=count_of_heads(heads),
        x_label="hidden width N (units)",
        y_label=NMSE.label,
        x_ticks=widths,
        log_x=True,
        series=tuple(series),
        caption="points: best of seeds; lines: fitted powers of N",
    )


def _headline(table: ErrorTable) -> str:
    few = [fit.exponent for (heads, _), fit in width_fits(table).items() if heads < INTRINSIC_DIM]
    if not few:
        return "Too few widths are there to fit a power"
    return f"With fewer than D heads the fitted powers of N range from {min(few):+.2f} to {max(few):+.2f}"
