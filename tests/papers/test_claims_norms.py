"""Claims about where norms are: judged by every seed of the models of full rank."""

import math

import pytest

from headcount.answer import Verdict
from headcount.papers.base import Scale
from headcount.papers.rank.norms import AFTER, FIRST, GENTLE, LONG, RECIPES, SLOW, STUDY

from ..helpers import fabricated

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
FULL = 16


def section(error, kept=lambda at: True):
    made = fabricated.study_sweep(STUDY, Scale.LAPTOP)
    records = [
        record for record, at in zip(fabricated.finished(made, error), made.coordinates(), strict=True) if kept(at)
    ]
    return STUDY.document(made.experiment, records, Scale.LAPTOP)


def verdicts(error, kept=lambda at: True) -> tuple[Verdict, ...]:
    """First trains, after collapses; a long warm-up, a small rate and both train; the same rank."""
    return tuple(claim.verdict for claim in section(error, kept).claims)


def needs_full_rank(at) -> float:
    return 0.02 if at["rank"] == FULL else 0.5


def but(changed: dict[str, float], where=lambda at: True):
    """Errors that need full rank, but for those of some recipes."""
    return lambda at: changed[at["recipe"]] if at["recipe"] in changed and where(at) else needs_full_rank(at)


def deep(at) -> bool:
    return at["layers"] > 1


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (needs_full_rank, (HOLDS, DIFFERS, HOLDS, HOLDS, HOLDS, HOLDS)),
        (but({AFTER: 1.0}, deep), (HOLDS, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS)),
        (but({AFTER: 1.0}, lambda at: deep(at) and at["seed"] == 1), (HOLDS, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS)),
        (but({AFTER: 1.0}, lambda at: not deep(at)), (HOLDS, DIFFERS, HOLDS, HOLDS, HOLDS, HOLDS)),
        (but({AFTER: 1.0}, lambda at: at["rank"] < FULL), (HOLDS, DIFFERS, HOLDS, HOLDS, HOLDS, HOLDS)),
        (but({LONG: 1.0}, lambda at: deep(at) and at["seed"] == 0), (HOLDS, DIFFERS, DIFFERS, HOLDS, HOLDS, HOLDS)),
        (but({SLOW: 0.95}), (HOLDS, DIFFERS, HOLDS, DIFFERS, HOLDS, HOLDS)),
        (but({GENTLE: 0.95}), (HOLDS, DIFFERS, HOLDS, HOLDS, DIFFERS, HOLDS)),
        (but({FIRST: 0.95}), (DIFFERS, DIFFERS, HOLDS, HOLDS, HOLDS, DIFFERS)),
        (but({LONG: 0.02}), (HOLDS, DIFFERS, HOLDS, HOLDS, HOLDS, DIFFERS)),
        (but({FIRST: 0.02, LONG: 0.03}), (HOLDS, DIFFERS, HOLDS, HOLDS, HOLDS, UNDECIDED)),
    ],
)
def test_its_claims_are_those_of_the_table(error, wanted):
    assert verdicts(error) == wanted


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_that_was_not_trained_decides_nothing_about_itself(recipe):
    judged = verdicts(but({AFTER: 1.0}), lambda at: at["recipe"] != recipe)
    missing = {FIRST: {0, 5}, AFTER: {1}, LONG: {2, 5}, SLOW: {3}, GENTLE: {4}}[recipe]
    assert {place for place, verdict in enumerate(judged) if verdict is UNDECIDED} == missing


def test_one_rank_or_one_depth_decides_what_it_can():
    assert verdicts(needs_full_rank, lambda at: at["rank"] == FULL) == (HOLDS, DIFFERS, HOLDS, HOLDS, HOLDS, UNDECIDED)
    assert verdicts(needs_full_rank, lambda at: not deep(at)) == (HOLDS, UNDECIDED, HOLDS, HOLDS, HOLDS, HOLDS)
    assert verdicts(needs_full_rank, deep) == (HOLDS, DIFFERS, HOLDS, HOLDS, HOLDS, UNDECIDED)


def test_the_evidence_is_the_error_of_every_seed():
    shown = section(but({AFTER: 1.0}, lambda at: deep(at) and at["seed"] == 1))
    assert "1 layer 0.02, 0.02; 3 layers 0.02, 1" in shown.claims[1].evidence
    assert "norms first: 25-fold; norms after, warm-up over half: 25-fold" in shown.claims[5].evidence
    smallest, largest = shown.grids
    rows = [{row[0]: row[1:] for row in grid.rows}[f"3 layers, {AFTER}"] for grid in (smallest, largest)]
    assert rows == [("0.5", "0.02"), ("1", "1")]
    assert not any("nan" in claim.evidence for claim in section(lambda at: math.nan if deep(at) else 0.5).claims)


def test_recipes_differ_in_what_they_say_and_in_nothing_else():
    sweep = STUDY.sweep(Scale.LAPTOP)
    seen = {}
    for cell in sweep.cells:
        train, recipe = cell.train, sweep.experiment.coordinates(cell.key)["recipe"]
        rise = min(train.warmup, int(train.max_warmup * train.steps))
        seen.setdefault(recipe, set()).add((cell.model["norm_first"], train.learning_rate, rise))
    assert seen == {
        FIRST: {(True, 0.01, 150)},
        AFTER: {(False, 0.01, 150)},
        LONG: {(False, 0.01, 1500)},
        SLOW: {(False, 0.001, 150)},
        GENTLE: {(False, 0.003, 1500)},
    }
    models = {tuple(v for k, v in sorted(cell.model.items()) if k != "norm_first") for cell in sweep.cells}
    assert len(models) == 4, "two ranks, two depths"
