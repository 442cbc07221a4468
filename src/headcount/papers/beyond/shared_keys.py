"""Heads that share keys and values: does the transition stay at D query heads? By kv_heads and head_dim, D = 4.

Predicted (theory/constructions/shared_keys.py): with one set of keys and values of head_dim >= D numbers, D heads are
enough, as where each has its own; below, the construction does not exist.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ...answer import ErrorTable, answer
from ...answer.answer_base import HeadsAt
from ...answer.bootstrap import MIN_SEEDS
from ...answer.heads_map import OWN
from ...report.heads_map import heads_map_charts, heads_needed_grid, place_name
from ..base import Part, Scale, Study, StudyEffort, StudyResults, effort_over
from ..claims.heads import TENFOLD
from ..claims.judge import Case, Cases, above, at_most, claims_that, folds, log_ratios
from ..fits import Estimate
from ..head_count.tables import TASK_SEED, class_token, paper_task

D, HEADS = 4, (1, 2, 3, 4, 5, 6)
OF_OWN_KEYS = "Where every head has its own keys and values, the transition is at D heads for every head_dim tried."
OF_ONE_KEY = "With one key head of head_dim >= D the transition stays at D query heads."


def _swept_parts(effort: StudyEffort) -> Iterable[Part]:
    for heads in effort.axes["heads"]:
        shared = tuple(count for count in range(1, heads + 1) if heads % count == 0)
        axes = effort.over(heads=(heads,), kv_heads=shared, head_dim=effort.axes["head_dim"])
        yield Part(task=paper_task, model=class_token, axes=axes)


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table()
    found = answer(table)
    own = [each for each in found.map if each.kv_heads == OWN]
    wide = [each for each in found.map if each.kv_heads == 1 and (each.head_dim or 0) >= D]
    return {
        "headline": f"The sum of four maxima {found.sentence}" if found.needs else f"No map yet: {found.sentence}",
        "claims": (needs_claim(own, OF_OWN_KEYS), needs_claim(wide, OF_ONE_KEY), near_claim(table), far_claim(table)),
        "grids": (heads_needed_grid(found),) if found.map else (),
        "charts": heads_map_charts(table, found) if found.map else (),
    }


@claims_that("{statement}", "not measured on both sides of D heads")
def needs_claim(places: list[HeadsAt], statement: str) -> Cases:
    """Places need D heads; one without a transition, or not measured above D, decides nothing."""
    measured = [each for each in places if {D - 1, D} <= set(each.tried) and max(each.tried) > D]
    for each in places if measured else ():
        holds = each not in measured or each.needed == D
        differs = each in measured and each.needs is not None and each.needed != D
        yield Case(f"{place_name(each.kv_heads, each.head_dim)}: {each.sentence}", holds, differs)


NOT_MEASURED = f"not measured with {MIN_SEEDS} seeds of D heads"


@claims_that(
    "With one key head of head_dim >= D, D heads have an error within tenfold of D heads with their own keys.",
    NOT_MEASURED,
)
def near_claim(table: ErrorTable) -> Cases:
    for dim, words, ratio in _ratios(table):
        if dim >= D:
            yield at_most(words, ratio, TENFOLD)
    yield " (best of seeds)"


@claims_that(
    "With one key head of head_dim < D, D heads are more than tenfold worse than D heads with their own keys.",
    NOT_MEASURED,
)
def far_claim(table: ErrorTable) -> Cases:
    for dim, words, ratio in _ratios(table):
        if dim < D:
            yield above(words, ratio, TENFOLD)
    yield " (best of seeds)"


def _ratios(table: ErrorTable) -> Iterator[tuple[int, str, Estimate]]:
    """By head_dim, the error of D heads that share one set of keys over that of D heads with their own.

    Head_dims with too few finished seeds are left out.
    """
    for dim in table.values("head_dim") if {1, D} <= set(table.values("kv_heads")) else ():
        one, own = (table.select(head_dim=dim, kv_heads=count) for count in (1, D))
        ratio = log_ratios(one, D, own, D)
        if ratio is not None:
            yield dim, f"head_dim {dim}: {folds(ratio)}", ratio


STUDY = Study(
    name="shared-keys",
    title="Shared keys and values",
    asks="Do heads that share keys and values count as heads? Heads needed by kv_heads and head_dim, D = 4.",
    parts=_swept_parts,
    report=_document_fields,
    notes=(
        f"One draw of the a_i (number {TASK_SEED}). A head count has only the kv_heads that divide it; models with "
        "as many as heads are the column own. The rank of queries and keys is head_dim.",
    ),
    efforts={
        Scale.SMOKE: effort_over((8,), 2, 200, heads=(3, 4), head_dim=(2, 4)),
        Scale.LAPTOP: effort_over((8,), 4, 8000, heads=HEADS, head_dim=(2, 4, 8)),
        Scale.PAPER: effort_over((16,), 8, 10_000, heads=HEADS, head_dim=(2, 3, 4, 8)),
    },
)
