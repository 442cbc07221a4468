"""Heads that share keys and values: does the transition stay at D query heads? By kv_heads and head_dim, D = 4.

Predicted (theory/constructions/shared_keys.py): with one set of keys and values of head_dim >= D numbers, D heads are
enough, as where each has its own; below, the construction does not exist.
"""

from collections.abc import Iterable
from typing import Any

from ...answer import Answer, ErrorTable, answer
from ...answer.answer_base import HeadsAt
from ...answer.bootstrap import MIN_SEEDS
from ...answer.claim import ClaimResult, Verdict, verdict_of
from ...answer.heads_map import OWN
from ...report.heads_map import heads_map_charts, heads_needed_grid, place_name
from ..base import Effort, Part, Results, Scale, Study
from ..claims.heads import TENFOLD
from ..claims.ratios import Decades, folds, log_ratios
from ..head_count.tables import TASK_SEED, class_token, paper_task

INTRINSIC_DIM = 4


def _parts(effort: Effort) -> Iterable[Part]:
    for heads in effort.axes["heads"]:
        shared = tuple(count for count in range(1, heads + 1) if heads % count == 0)
        axes = effort.over(heads=(heads,), kv_heads=shared, head_dim=effort.axes["head_dim"])
        yield Part(task=paper_task, model=class_token, axes=axes)


def _report(results: Results) -> dict[str, Any]:
    table = results.table()
    found = answer(table)
    return {
        "headline": f"The sum of four maxima {found.sentence}" if found.needs else f"No map yet: {found.sentence}",
        "claims": (
            own_claim(found, INTRINSIC_DIM),
            stays_claim(found, INTRINSIC_DIM),
            near_claim(table, INTRINSIC_DIM),
            far_claim(table, INTRINSIC_DIM),
        ),
        "grids": (heads_needed_grid(found),) if found.map else (),
        "charts": heads_map_charts(table, found) if found.map else (),
    }


def stays_claim(found: Answer, intrinsic_dim: int) -> ClaimResult:
    """Wide enough, one key head is as good as many."""
    statement = "With one key head of head_dim >= D the transition stays at D query heads."
    places = [each for each in found.map if each.kv_heads == 1 and (each.head_dim or 0) >= intrinsic_dim]
    return _judged(statement, places, intrinsic_dim)


def near_claim(table: ErrorTable, intrinsic_dim: int) -> ClaimResult:
    """Wide enough, D heads with one key head lose little."""
    statement = (
        "With one key head of head_dim >= D, D heads have an error within tenfold of D heads with their own keys."
    )
    ratios = {dim: ratio for dim, ratio in _ratios(table, intrinsic_dim).items() if dim >= intrinsic_dim}
    within = [high <= TENFOLD for _, _, high in ratios.values()]
    return _judged_ratios(statement, ratios, within, [low > TENFOLD for low, _, _ in ratios.values()])


def far_claim(table: ErrorTable, intrinsic_dim: int) -> ClaimResult:
    """Too narrow, D query heads are not enough."""
    statement = (
        "With one key head of head_dim < D, D heads are more than tenfold worse than D heads with their own keys."
    )
    ratios = {dim: ratio for dim, ratio in _ratios(table, intrinsic_dim).items() if dim < intrinsic_dim}
    beyond = [low > TENFOLD for low, _, _ in ratios.values()]
    return _judged_ratios(statement, ratios, beyond, [high <= TENFOLD for _, _, high in ratios.values()])


def _ratios(table: ErrorTable, heads: int) -> dict[int, Decades]:
    """By head_dim, the error of D heads that share one set of keys over that of D heads with their own.

    Head_dims with too few finished seeds are left out.
    """
    if not {1, heads} <= set(table.values("kv_heads")):
        return {}
    ratios = {}
    for head_dim in table.values("head_dim"):
        one, own = (table.select(head_dim=head_dim, kv_heads=count) for count in (1, heads))
        ratios[head_dim] = log_ratios(one, heads, own, heads)
    return {head_dim: ratio for head_dim, ratio in ratios.items() if ratio is not None}


def _judged_ratios(statement: str, ratios: dict[int, Decades], holds: list[bool], differs: list[bool]) -> ClaimResult:
    """A claim about ratios at several head_dims; undecided where the interval of one has tenfold within."""
    if not ratios:
        return ClaimResult(statement, Verdict.UNDECIDED, f"not measured with {MIN_SEEDS} seeds of D heads")
    evidence = "; ".join(f"head_dim {dim}: {folds(ratio)}" for dim, ratio in ratios.items())
    return ClaimResult(statement, verdict_of(holds, differs), f"{evidence} (best of seeds)")


def own_claim(found: Answer, intrinsic_dim: int) -> ClaimResult:
    """What the other two are compared with."""
    statement = "Where every head has its own keys and values, the transition is at D heads for every head_dim tried."
    places = [each for each in found.map if each.kv_heads == OWN]
    return _judged(statement, places, intrinsic_dim)


def _judged(statement: str, places: list[HeadsAt], intrinsic_dim: int) -> ClaimResult:
    """A claim that places need D heads; a place without a transition, or not measured above D, decides nothing."""
    both = {intrinsic_dim - 1, intrinsic_dim}
    measured = [each for each in places if both <= set(each.tried) and max(each.tried) > intrinsic_dim]
    if not measured:
        return ClaimResult(statement, Verdict.UNDECIDED, "not measured on both sides of D heads")
    evidence = "; ".join(f"{place_name(each.kv_heads, each.head_dim)}: {each.sentence}" for each in places)
    holds = [each.needed == intrinsic_dim for each in measured]
    differs = [each.needs is not None and each.needed != intrinsic_dim for each in measured]
    return ClaimResult(statement, verdict_of(holds, differs), evidence)


def _effort(
    length: int, *, seeds: int, steps: int, head_dims: tuple[int, ...], heads: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
) -> Effort:
    return Effort(lengths=(length,), seeds=seeds, steps=steps, axes={"heads": heads, "head_dim": head_dims})


STUDY = Study(
    name="shared-keys",
    title="Shared keys and values",
    asks="Do heads that share keys and values count as heads? Heads needed by kv_heads and head_dim, D = 4.",
    parts=_parts,
    report=_report,
    notes=(
        f"One draw of the a_i (number {TASK_SEED}). A head count has only the kv_heads that divide it; models with "
        "as many as heads are the column own. The rank of queries and keys is head_dim.",
    ),
    efforts={
        Scale.SMOKE: _effort(8, seeds=2, steps=200, heads=(3, 4), head_dims=(2, 4)),
        Scale.LAPTOP: _effort(8, seeds=4, steps=8000, head_dims=(2, 4, 8)),
        Scale.PAPER: _effort(16, seeds=8, steps=10_000, head_dims=(2, 3, 4, 8)),
    },
)
