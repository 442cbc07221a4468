"""A layer norm before the readout: is the transition where it was?

The paper's model has no norm; its authors suspect that the bound survives one. The same task, models, data and seeds
are trained with and without a norm of the class token before the readout net.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer import NMSE, Answer, ErrorTable, answer
from ...answer.bootstrap import MIN_SEEDS
from ...answer.claim import ClaimResult, Verdict, decided
from ...answer.signals import MIN_DROP
from ...report.chart import Chart, Series
from ...report.charts import error_chart
from ...report.document import Grid
from ..base import Effort, Part, Results, Scale, Study
from ..claims.heads import TENFOLD, same_answer_claim, transition_claim
from ..claims.ratios import folds, log_ratios
from ..head_count.tables import ALL_LENGTHS, OUR_CHOICES, class_token, paper_task

if TYPE_CHECKING:
    from ...models import ClassTokenSpec

INTRINSIC_DIM = 4
HEADS = (1, 2, 3, 4, 5, 6)
NORMS = {"none": "without a norm", "layer": "with a norm"}
"""The values of the axis "norm", and their names."""


def _parts(effort: Effort) -> Iterable[Part]:
    def model(heads: int, norm: str) -> "ClassTokenSpec":
        return class_token(heads, head_dim=8, hidden=32, final_norm=norm == "layer")

    yield Part(task=paper_task, model=model, axes=effort.over(heads=HEADS, norm=tuple(NORMS)))


def _report(results: Results) -> dict[str, Any]:
    table = results.table()
    halves = {norm: half for norm in NORMS if (half := _half(table, norm)) is not None}
    answers = {norm: answer(half) for norm, half in halves.items()}
    charts = [replace(error_chart(half, answers[norm]), **_titled(norm)) for norm, half in halves.items()]
    return {
        "headline": f"The sum of four maxima: {_both(answers)}",
        "claims": (
            *(_transition_claim(halves, answers, norm) for norm in NORMS),
            same_answer_claim("A norm before the readout does not move the transition.", answers, NORMS),
            *(_drop_claim(halves, norm) for norm in NORMS),
            _cost_claim(halves),
        ),
        "grids": (_grid(halves),) if halves else (),
        "charts": (*_comparison(halves), *charts),
    }


def _half(table: ErrorTable, norm: str) -> ErrorTable | None:
    """The part of the table with or without a norm; None where none of its models has finished."""
    if norm not in table.values("norm"):
        return None
    half = table.select(norm=norm).ordered("heads", "length", "seed")
    return half.trimmed() if np.isfinite(half.errors).any() else None


def _both(answers: dict[str, Answer]) -> str:
    return "; ".join(f"{NORMS[norm]}, {each.sentence}" for norm, each in answers.items()) or "no model has finished"


def _titled(norm: str) -> dict[str, str]:
    return {"name": f"error-against-heads-{norm}", "title": f"Error against heads, {NORMS[norm]}"}


def _transition_claim(halves: dict[str, ErrorTable], answers: dict[str, Answer], norm: str) -> ClaimResult:
    statement = f"{NORMS[norm].capitalize()} the transition is at h = D = {INTRINSIC_DIM} heads."
    if norm not in halves:
        return ClaimResult(statement, Verdict.UNDECIDED, "no such model has finished")
    judged = transition_claim(halves[norm], answers[norm], INTRINSIC_DIM, statement)
    return replace(judged, evidence=answers[norm].sentence)  # nothing is published of a norm


def _drop_claim(halves: dict[str, ErrorTable], norm: str) -> ClaimResult:
    """How far the best of seeds falls at D heads: the geometric mean over lengths, and 90 % of resamples of seeds."""
    before = INTRINSIC_DIM - 1
    statement = f"{NORMS[norm].capitalize()} the error falls sharply from {before} to {INTRINSIC_DIM} heads."
    ratio = log_ratios(halves.get(norm), before, halves.get(norm), INTRINSIC_DIM)
    if ratio is None:
        missing = f"no length has {MIN_SEEDS} finished seeds at both {before} and {INTRINSIC_DIM} heads"
        return ClaimResult(statement, Verdict.UNDECIDED, missing)
    low, _, high = ratio
    verdict = decided(low >= MIN_DROP) if low >= MIN_DROP or high < MIN_DROP else Verdict.UNDECIDED
    return ClaimResult(statement, verdict, f"{folds(ratio)} (geometric mean over lengths; best of seeds)")


def _cost_claim(halves: dict[str, ErrorTable]) -> ClaimResult:
    """At every head count the errors with and without the norm are of one order of magnitude."""
    statement = "At every head count the error with a norm is within tenfold of that without."
    ratios = {heads: log_ratios(halves.get("layer"), heads, halves.get("none"), heads) for heads in HEADS}
    known = {heads: ratio for heads, ratio in ratios.items() if ratio is not None}
    if not known:
        return ClaimResult(statement, Verdict.UNDECIDED, f"no head count has {MIN_SEEDS} seeds with and without a norm")
    evidence = "with over without, best of seeds: " + "; ".join(f"h = {h} {folds(r)}" for h, r in known.items())
    outside = [low > TENFOLD or high < -TENFOLD for low, _, high in known.values()]
    within = [low >= -TENFOLD and high <= TENFOLD for low, _, high in known.values()]
    if any(outside):
        return ClaimResult(statement, Verdict.DIFFERS, evidence)
    return ClaimResult(statement, Verdict.HOLDS if all(within) and len(known) > 1 else Verdict.UNDECIDED, evidence)


def _grid(halves: dict[str, ErrorTable]) -> Grid:
    """The best and the median of seeds, a row per length and half."""
    rows = []
    for length in sorted({length for half in halves.values() for length in half.values("length")}):
        for norm, half in halves.items():
            best, median = half.reduced("seed"), half.reduced("seed", "median")
            cells = [(best.at(heads=heads, length=length), median.at(heads=heads, length=length)) for heads in HEADS]
            words = tuple(f"{low:.1e} ({middle:.1e})" if np.isfinite(low) else "-" for low, middle in cells)
            rows.append((f"{length} tokens, {NORMS[norm]}", *words))
    columns = ("", *(f"{heads} head{'s' if heads > 1 else ''}" for heads in HEADS))
    return Grid(title="smallest (median) NMSE over seeds", columns=columns, rows=tuple(rows))


def _comparison(halves: dict[str, ErrorTable]) -> tuple[Chart, ...]:
    """Both halves in one chart, at the longest length that both have."""
    shared = [length for length in ALL_LENGTHS if all(length in half.values("length") for half in halves.values())]
    if len(halves) < len(NORMS) or not shared:
        return ()
    series = []
    for place, (norm, half) in enumerate(halves.items()):
        errors = half.select(length=shared[-1]).ordered("heads", "seed")
        points = tuple(
            (heads, float(error))
            for heads, row in zip(errors.values("heads"), errors.errors, strict=True)
            for error in row[np.isfinite(row)]
        )
        series.append(Series(NORMS[norm], errors.values("heads"), tuple(errors.best), place=place, points=points))
    return (
        Chart(
            name="norm-or-none",
            title=f"Error with and without a norm, {shared[-1]} tokens",
            x_label="attention heads",
            y_label=NMSE.label,
            x_ticks=HEADS,
            log_y=not any(value == 0 for each in series for _, value in each.points),
            series=tuple(series),
            caption="line: best of seeds; points: every seed",
        ),
    )


STUDY = Study(
    name="norm",
    title="A norm before the readout",
    asks="Is the transition of the sum of four maxima at four heads with a layer norm before the readout too?",
    parts=_parts,
    report=_report,
    notes=(
        "Both halves have the same task, data, seeds, training and number of parameters: the norm has neither gain nor "
        "shift. Its floor of 1e-5 is added to the variance.",
        "At one head of 8 numbers the norm leaves 7 of them: it does not see the mean of the class token, and its "
        "length only through the floor.",
        *OUR_CHOICES,
    ),
    efforts={
        Scale.SMOKE: Effort(lengths=(8,), seeds=2, steps=4000),
        Scale.LAPTOP: Effort(lengths=(8, 16), seeds=4, steps=6000),
        Scale.PAPER: Effort(lengths=ALL_LENGTHS, seeds=10, steps=20_000),
    },
)
