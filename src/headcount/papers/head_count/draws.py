"""Table 2 over draws of the a_i and of the examples, which the paper does not name: what depends on the draw?"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...answer import NMSE, ErrorTable, answer, count_of_heads
from ...answer.claim import OF_MEASUREMENTS
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Effort, Part, Results, Scale, Study
from ..claims.draws import (
    Draw,
    drop_over_draws,
    every_rule_claim,
    growth_over_draws,
    same_transition_claim,
    spread,
    verdicts_by_rule,
)
from ..claims.heads import drop_factor, exponents, magnitude_claim
from .tables import ALL_LENGTHS, OUR_CHOICES, TABLE2

HEADS = TABLE2.published.values("heads")


def _parts(effort: Effort) -> Iterable[Part]:
    from ...tasks import sum_of_maxima

    axes = effort.over(heads=HEADS, data_seed=effort.axes["data_seed"])
    for draw in effort.axes["task_seed"]:
        task = partial(sum_of_maxima, intrinsic_dim=TABLE2.transition, dim=4, directions="gaussian", task_seed=draw)
        yield Part(task=task, model=TABLE2.model, axes=axes, at={"task_seed": draw})


def _report(results: Results) -> dict[str, Any]:
    table = results.table()
    draws, theirs = _draws(table), _published(table)
    exponents_printed = exponents(HEADS, theirs.errors, theirs.values("length"))
    drop_printed = drop_factor(HEADS, theirs.errors, TABLE2.transition) or np.nan
    return {
        "headline": _headline(draws),
        "claims": (
            same_transition_claim(draws, TABLE2.transition),
            *growth_over_draws(draws, exponents_printed, table.values("heads"), TABLE2.transition),
            drop_over_draws(draws, TABLE2.published, drop_printed, TABLE2.transition),
            every_rule_claim(draws),
        ),
        "grids": (_rules_grid(draws), _errors_grid(table, theirs), _draws_grid(draws)),
        "charts": (_chart(table, theirs),),
    }


def _draws(table: ErrorTable) -> list[Draw]:
    """Every draw of which a model has finished, with its answer and Table 2's claims."""
    draws = []
    for task_seed in table.values("task_seed"):
        for data_seed in table.values("data_seed"):
            one = table.select(task_seed=task_seed, data_seed=data_seed).trimmed()
            if not one.errors.size:
                continue
            found = answer(one)
            claims = (*TABLE2.rules(one, found), magnitude_claim(one, TABLE2.published))
            draws.append(Draw(task_seed=task_seed, data_seed=data_seed, table=one, answer=found, claims=claims))
    return draws


def _published(table: ErrorTable) -> ErrorTable:
    """Table 2 at our lengths."""
    lengths = [length for length in table.values("length") if length in TABLE2.published.values("length")]
    return TABLE2.published.select(length=lengths)


def _headline(draws: Sequence[Draw]) -> str:
    at = sum(draw.answer.heads == TABLE2.transition for draw in draws)
    return f"The transition is at {TABLE2.transition} heads in {at} of {len(draws)} draws"


def _rules_grid(draws: Sequence[Draw]) -> Grid:
    rows = [
        (statement, *(str(counts[verdict]) for verdict in OF_MEASUREMENTS))
        for statement, counts in verdicts_by_rule(draws).items()
    ]
    return Grid(
        title=f"Table 2's claims, judged in each of {len(draws)} draws",
        columns=("claim", *(verdict.value for verdict in OF_MEASUREMENTS)),
        rows=tuple(rows),
    )


def _over_lengths(errors: np.ndarray) -> np.ndarray:
    """The geometric mean along the last axis, of what is there."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(errors > 0, errors, np.nan))
    known = np.isfinite(logs)
    count = known.sum(axis=-1)
    total = np.where(known, logs, 0.0).sum(axis=-1)
    return np.where(count > 0, np.exp(total / np.maximum(count, 1)), np.nan)


def _lines(table: ErrorTable) -> np.ndarray:
    """The best of seeds by draw and heads, the geometric mean over lengths; draws with nothing left out."""
    best = table.reduced("seed").ordered("task_seed", "data_seed", "heads", "length").errors
    lines = _over_lengths(best).reshape(-1, len(table.values("heads")))
    return lines[np.isfinite(lines).any(axis=1)]


def _errors_grid(table: ErrorTable, theirs: ErrorTable) -> Grid:
    printed = dict(zip(HEADS, _over_lengths(theirs.errors), strict=True))
    rows = []
    for heads, errors in zip(table.values("heads"), _lines(table).T, strict=True):
        known = errors[np.isfinite(errors)]
        if len(known):
            rows.append((count_of_heads(heads), spread(known.tolist(), ".1e"), f"{printed[heads]:.1e}"))
    return Grid(
        title="error, geometric mean over lengths: best of seeds, median [90 % of the draws]; published mean",
        columns=("", "ours", "published"),
        rows=tuple(rows),
    )


def _draws_grid(draws: Sequence[Draw]) -> Grid:
    rows = []
    for draw in draws:
        drop, slopes = draw.drop(TABLE2.published, TABLE2.transition), draw.slopes
        needs = draw.answer.needs.get("heads")
        rows.append(
            (
                draw.name,
                "none" if needs is None else str(needs),
                "-" if drop is None else f"{drop:.3g}",
                *(f"{slopes[heads]:+.2f}" if heads in slopes else "-" for heads in HEADS),
            )
        )
    return Grid(
        title="every draw: transition, drop of the means, exponent of T of the best of seeds",
        columns=("draw", "heads needed", "drop", *map(count_of_heads, HEADS)),
        rows=tuple(rows),
        folded=True,
    )


def _chart(table: ErrorTable, theirs: ErrorTable) -> Chart:
    heads, lines = table.values("heads"), _lines(table)
    median = [np.median(column[np.isfinite(column)]) if np.isfinite(column).any() else np.nan for column in lines.T]
    series = [Series("one draw", heads, tuple(line), place=5, thin=True) for line in lines]
    series.append(Series("median of the draws", heads, tuple(median), place=0))
    printed = tuple(_over_lengths(theirs.errors))
    series.append(Series("Table 2, published means", HEADS, printed, place=1, kind="published"))
    return Chart(
        name="draws",
        title="Error against heads, a line per draw",
        x_label="attention heads",
        y_label=NMSE.label,
        x_ticks=HEADS,
        series=tuple(series),
        caption="best of seeds, geometric mean over lengths; thin: one draw; dashed: published means",
    )


def _effort(lengths: tuple[int, ...], seeds: int, steps: int, draws: int, data_draws: int) -> Effort:
    axes = {"task_seed": tuple(range(draws)), "data_seed": tuple(range(data_draws))}
    return Effort(lengths=lengths, seeds=seeds, steps=steps, axes=axes)


STUDY = Study(
    name="table2-draws",
    title="Table 2 over draws",
    asks="Which claims of Table 2 depend on the draw of the a_i and of the data?",
    parts=_parts,
    report=_report,
    notes=(
        "A draw is one of the a_i, which are normal, with one of the training and validation examples. Draws that "
        "share the a_i or the data are not independent. Table 2 is one draw of each; which is not published.",
        OUR_CHOICES[0],
    ),
    efforts={
        Scale.SMOKE: _effort((8, 16), seeds=2, steps=1000, draws=2, data_draws=2),
        Scale.LAPTOP: _effort((8, 16, 32), seeds=3, steps=4000, draws=4, data_draws=2),
        Scale.PAPER: _effort(ALL_LENGTHS, seeds=5, steps=20_000, draws=10, data_draws=3),
    },
)
