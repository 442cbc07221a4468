"""Table 2 over draws of the a_i and of the examples, which the paper does not name: what depends on the draw?"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...answer import Answer, ErrorTable, answer, count_of_heads
from ...answer.bootstrap import TAIL
from ...answer.claim import OF_MEASUREMENTS, ClaimResult, Verdict
from ...answer.signals import MIN_DROP
from ...report.chart import Chart, Series
from ...report.document import Grid
from ..base import Part, Scale, Study, StudyEffort, StudyResults, effort_over, parts_along
from ..charts import chart_along, grid_of
from ..claims.heads import FLAT_SLOPE, drop_factor, exponents, magnitude_claim, measured_like
from ..claims.judge import Case, Cases, claims_that, estimate_words, exactly, judge
from ..fits import Estimate
from .tables import ALL_LENGTHS, OUR_CHOICES, TABLE2

HEADS, D = TABLE2.published.values("heads"), TABLE2.transition
MIN_DRAWS = 4
"""Fewer draws say nothing of nine in ten."""
MOST = 0.9
"""The share of draws in which something holds that holds in nearly all."""
LIMIT = 0.05
"""A share of exceptions is ruled out where as many draws without one have at most this probability."""


class Draw(NamedTuple):
    """Table 2 for one draw of the a_i, `task_seed`, and one of the examples, `data_seed`.

    `slopes` are d log(error) / d log(length) of the best of seeds by heads, where two lengths are there; `drop` is the
    factor by which the error falls at the transition, under the published statistic over seeds.
    """

    task_seed: int
    data_seed: int
    answer: Answer
    claims: tuple[ClaimResult, ...]
    slopes: dict[int, float]
    drop: float | None

    @property
    def name(self) -> str:
        return f"a_i {self.task_seed}, data {self.data_seed}"


def draws_in(table: ErrorTable) -> list[Draw]:
    """Every draw of which a model has finished, with its answer and Table 2's claims."""
    draws = []
    for task_seed, part in parts_along(table, "task_seed").items():
        for data_seed, one in parts_along(part, "data_seed").items():
            found, heads = answer(one), one.values("heads")
            slopes = exponents(heads, one.reduced("seed").ordered("heads", "length").errors, one.values("length"))
            known = {heads: slope for heads, slope in slopes.items() if np.isfinite(slope)}
            measured = measured_like(one, TABLE2.published).ordered("heads", "length").errors
            claims = (*TABLE2.rules(one, found), magnitude_claim(one, TABLE2.published))
            draws.append(Draw(task_seed, data_seed, found, claims, known, drop_factor(heads, measured, D)))
    return draws


def spread(values: Sequence[float], form: str) -> str:
    """The median and the interval that holds 90 % of the draws, in words."""
    return estimate_words(Estimate(*np.quantile(values, [TAIL, 0.5, 1 - TAIL])), form)


def same_transition_claim(draws: Sequence[Draw]) -> ClaimResult:
    """It differs where two draws' intervals share no head count, and holds where all draws have the same answer."""
    needs = {draw.name: draw.answer.needs["heads"] for draw in draws if draw.answer.kind == "needs"}
    answers = Counter(draw.answer.heads for draw in draws)
    words = "; ".join(
        f"{'no answer' if heads is None else count_of_heads(heads)} in {count} of {len(draws)} draws"
        for heads, count in answers.most_common()
    )
    wide = "; ".join(f"{name}: {need}" for name, need in needs.items() if need.low < need.high)
    words += f"; more than one head count in the interval of: {wide}" if wide else ""
    apart = bool(needs) and max(need.low for need in needs.values()) > min(need.high for need in needs.values())
    same, enough = len(answers) == 1 and None not in answers, len(draws) >= MIN_DRAWS
    if same and enough:
        independent = len({draw.task_seed for draw in draws})
        words += (
            f" (published: {D}); {independent} draws of the a_i without an exception rule out that more than "
            f"{100 * (1 - LIMIT ** (1 / independent)):.0f} % of all draws are one ({100 * (1 - LIMIT):.0f} % limit)"
        )
    cases = [Case(words, same, apart)] if enough else []
    return judge("The transition does not depend on the draw.", cases, f"{words}; {_too_few(draws)}")


def growth_claims(draws: Sequence[Draw], theirs: ErrorTable, heads: Sequence[int]) -> tuple[ClaimResult, ClaimResult]:
    published = exponents(HEADS, theirs.errors, theirs.values("length"))

    def cases(chosen: list[int], holds: Callable[[float], bool], word: str) -> Cases:
        slopes = {count: [draw.slopes[count] for draw in draws if count in draw.slopes] for count in chosen}
        if not chosen or min(map(len, slopes.values())) < MIN_DRAWS:
            return
        yield "d log(error) / d log(length), best of seeds, median [90 % of the draws] (published): "
        for count, values in slopes.items():
            kept = sum(map(holds, values))
            slope = f"{count_of_heads(count)} {spread(values, '+.2f')} ({published[count]:+.2f})"
            yield exactly(f"{slope}, {word} {FLAT_SLOPE:g} in {kept} of {len(values)}", kept / len(values) >= MOST)

    few, many = ([count for count in heads if (count < D) is side] for side in (True, False))
    missing = f"{_too_few(draws)} at two lengths and every head count"
    below = "In nine of ten draws the error grows with length at every head count below the transition."
    above = "In nine of ten draws the error does not grow with length at any head count from the transition on."
    return (
        judge(below, cases(few, lambda slope: slope > FLAT_SLOPE, "above"), missing),
        judge(above, cases(many, lambda slope: slope <= FLAT_SLOPE, "at most"), missing),
    )


@claims_that(
    f"In nine of ten draws the error falls sharply from {D - 1} to {D} heads.",
    f"{{finished}} draws finished, judged are {MIN_DRAWS} or more with {D - 1} and {D} heads",
)
def drop_claim(draws: Sequence[Draw], theirs: ErrorTable, finished: int) -> Cases:
    drops = {draw.name: draw.drop for draw in draws if draw.drop is not None}
    if len(drops) < MIN_DRAWS:
        return
    values, printed = list(drops.values()), drop_factor(HEADS, theirs.errors, D) or np.nan
    sharp = sum(drop >= 10**MIN_DROP for drop in values)
    smallest, largest = min(drops, key=drops.__getitem__), max(drops, key=drops.__getitem__)
    yield exactly(
        f"{TABLE2.published.statistic} over seeds, median {spread(values, '.3g')}-fold [90 % of the draws], from "
        f"{drops[smallest]:.3g}-fold ({smallest}) to {drops[largest]:.3g}-fold ({largest}); fivefold or more in "
        f"{sharp} of {len(values)}; published {printed:.3g}-fold, less than in "
        f"{sum(drop > printed for drop in values)} of {len(values)} draws",
        sharp / len(values) >= MOST,
    )


def every_rule_claim(draws: Sequence[Draw]) -> ClaimResult:
    words = "; ".join(
        f"{said} {', '.join(f'{counts[verdict]} {verdict.value}' for verdict in Verdict if counts[verdict])}"
        for said, counts in verdicts_by_rule(draws).items()
    )
    verdicts = [claim.verdict for draw in draws for claim in draw.claims]
    holds, differs = (sum(verdict is each for verdict in verdicts) for each in (Verdict.HOLDS, Verdict.DIFFERS))
    cases = [Case(words, holds == len(verdicts), differs > 0)] if len(draws) >= MIN_DRAWS else []
    return judge("Every claim of Table 2 holds in every draw tried.", cases, f"{words}; {_too_few(draws)}")


def verdicts_by_rule(draws: Sequence[Draw]) -> dict[str, Counter[Verdict]]:
    counts: dict[str, Counter[Verdict]] = {}
    for draw in draws:
        for claim in draw.claims:
            counts.setdefault(claim.statement, Counter())[claim.verdict] += 1
    return counts


def _too_few(draws: Sequence[Draw]) -> str:
    return f"{len(draws)} draws finished, judged are {MIN_DRAWS} or more"


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    from ...tasks import sum_of_maxima

    axes = effort.over(heads=HEADS, data_seed=effort.axes["data_seed"])
    for draw in effort.axes["task_seed"]:
        task = partial(sum_of_maxima, intrinsic_dim=D, dim=4, directions="gaussian", task_seed=draw)
        yield Part(task=task, model=TABLE2.model, axes=axes, at={"task_seed": draw})


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table()
    draws = draws_in(table)
    lengths = [length for length in table.values("length") if length in TABLE2.published.values("length")]
    theirs = TABLE2.published.select(length=lengths)
    at = sum(draw.answer.heads == D for draw in draws)
    return {
        "headline": f"The transition is at {D} heads in {at} of {len(draws)} draws",
        "claims": (
            same_transition_claim(draws),
            *growth_claims(draws, theirs, table.values("heads")),
            drop_claim(draws, theirs, len(draws)),
            every_rule_claim(draws),
        ),
        "grids": (_rules_grid(draws), _errors_grid(table, theirs), _draws_grid(draws)),
        "charts": (_draws_chart(table, theirs),),
    }


def _rules_grid(draws: Sequence[Draw]) -> Grid:
    rows = [
        (statement, *(str(counts[verdict]) for verdict in OF_MEASUREMENTS))
        for statement, counts in verdicts_by_rule(draws).items()
    ]
    title = f"Table 2's claims, judged in each of {len(draws)} draws"
    return grid_of(title, ("claim", *(verdict.value for verdict in OF_MEASUREMENTS)), rows)


def _over_lengths(errors: np.ndarray) -> np.ndarray:
    """The geometric mean along the last axis, of the errors that have a logarithm; NaN where none has."""
    known = np.isfinite(errors) & (errors > 0)
    total, count = np.log(np.where(known, errors, 1.0)).sum(axis=-1), known.sum(axis=-1)
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
    title = "error, geometric mean over lengths: best of seeds, median [90 % of the draws]; published mean"
    return grid_of(title, ("", "ours", "published"), rows)


def _draws_grid(draws: Sequence[Draw]) -> Grid:
    rows = [
        (
            draw.name,
            str(draw.answer.needs.get("heads", "none")),
            "-" if draw.drop is None else f"{draw.drop:.3g}",
            *(f"{draw.slopes[heads]:+.2f}" if heads in draw.slopes else "-" for heads in HEADS),
        )
        for draw in draws
    ]
    title = "every draw: transition, drop of the means, exponent of T of the best of seeds"
    return grid_of(title, ("draw", "heads needed", "drop", *map(count_of_heads, HEADS)), rows, folded=True)


def _draws_chart(table: ErrorTable, theirs: ErrorTable) -> Chart:
    heads, lines = table.values("heads"), _lines(table)
    median = [np.median(column[np.isfinite(column)]) if np.isfinite(column).any() else np.nan for column in lines.T]
    series = [Series("one draw", heads, tuple(line), place=5, thin=True) for line in lines]
    series.append(Series("median of the draws", heads, tuple(median), place=0))
    printed = tuple(_over_lengths(theirs.errors))
    series.append(Series("Table 2, published means", HEADS, printed, place=1, kind="published"))
    caption = "best of seeds, geometric mean over lengths; thin: one draw; dashed: published means"
    return chart_along("heads", HEADS, series, "draws", "Error against heads, a line per draw", caption)


STUDY = Study(
    name="table2-draws",
    title="Table 2 over draws",
    asks="Which claims of Table 2 depend on the draw of the a_i and of the data?",
    parts=_swept_parts,
    report=_document_fields,
    notes=(
        "A draw is one of the a_i, which are normal, with one of the training and validation examples. Draws that "
        "share the a_i or the data are not independent. Table 2 is one draw of each; which is not published.",
        OUR_CHOICES[0],
    ),
    efforts={
        Scale.SMOKE: effort_over((8, 16), 2, 1000, task_seed=(0, 1), data_seed=(0, 1)),
        Scale.LAPTOP: effort_over((8, 16, 32), 3, 4000, task_seed=(0, 1, 2, 3), data_seed=(0, 1)),
        Scale.PAPER: effort_over(ALL_LENGTHS, 5, 20_000, task_seed=tuple(range(10)), data_seed=(0, 1, 2)),
    },
)
