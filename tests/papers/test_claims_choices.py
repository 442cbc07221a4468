"""Claims about what a table owes to its draws and to its training, on errors that decide them."""

import pytest

from headcount.answer import Verdict
from headcount.papers.base import Scale
from headcount.papers.head_count import converged, draws
from headcount.papers.head_count.converged import TABLES
from headcount.store import Outcome

from ..helpers import fabricated

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED


def verdicts(study, error, kept=lambda at: True, scale=Scale.SMOKE):
    made = fabricated.study_sweep(study, scale)
    records = [
        record for record, at in zip(fabricated.finished(made, error), made.coordinates(), strict=True) if kept(at)
    ]
    return [claim.verdict for claim in study.document(made.experiment, records, scale).claims]


def as_claimed(at) -> float:
    """Errors of the published magnitude that fall at 4 heads, and grow with length below."""
    error = {1: 2e-2, 2: 1e-2, 3: 2e-3, 4: 3e-5, 5: 3e-5}[at["heads"]] * (1 + 0.01 * at["seed"])
    return error * ((at["length"] / 8) ** 0.3 if at["heads"] < 4 else 1)


def early_in_one_draw(at) -> float:
    """One draw of the a_i needs 2 heads: they err as much as 4."""
    heads = max(at["heads"], 4) if at["task_seed"] == 1 and at["heads"] > 1 else at["heads"]
    return as_claimed(at | {"heads": heads})


def test_draws_as_the_table_claims_bear_out_every_claim():
    assert verdicts(draws.STUDY, as_claimed) == [HOLDS] * 5


def test_a_draw_with_another_transition_refutes_that_it_does_not_matter():
    same, _, _, drop, every = verdicts(draws.STUDY, early_in_one_draw)
    assert (same, drop, every) == (DIFFERS, DIFFERS, DIFFERS)


def test_growth_is_judged_by_the_share_of_draws():
    below, above = verdicts(draws.STUDY, fabricated.sharp)[1:3]
    assert (below, above) == (HOLDS, DIFFERS), "errors that grow everywhere"


def test_one_draw_says_nothing_of_others():
    one = verdicts(draws.STUDY, as_claimed, lambda at: at["task_seed"] == at["data_seed"] == 0)
    assert one == [UNDECIDED] * 5


def times(factors):
    """Errors as multiples of the published ones, by variant."""

    def error(at):
        table = TABLES[at["table"]]
        published = table.published.at(heads=table.transition, length=at["length"])
        return published * factors.get(at["variant"], 100) * (1 + 0.01 * at["seed"])

    return error


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({"examples 80k": 2}, (HOLDS, HOLDS, DIFFERS, DIFFERS, HOLDS)),
        ({"steps 2k": 2}, (HOLDS, HOLDS, DIFFERS, DIFFERS, DIFFERS)),
        ({"examples 80k": 10, "steps 2k, examples 80k": 1}, (DIFFERS, DIFFERS, HOLDS, HOLDS, HOLDS)),
    ],
)
def test_a_change_is_near_where_every_error_is_within_threefold(factors, expected):
    assert tuple(verdicts(converged.STUDY, times(factors))) == expected


def test_a_table_without_a_variant_is_undecided():
    single3, single4, *_ = verdicts(converged.STUDY, times({}), lambda at: at["table"] == "table3")
    assert (single3, single4) == (DIFFERS, UNDECIDED)


def test_variants_of_the_paper_scale_keep_the_names_of_stored_results():
    names = list(converged.variants_of(converged.STUDY.efforts[Scale.PAPER]))
    assert {"base", "steps 400k", "examples 80k", "fresh examples", "beta2 0.999", "clip 100"} < set(names)
    assert "steps 200k, batch 512, examples 80k" in names


def test_a_length_that_was_lost_decides_nothing():
    made = fabricated.study_sweep(converged.STUDY, Scale.LAPTOP)
    records = [
        fabricated.record(
            cell,
            Outcome.DIVERGED if (at["length"] == 32) is (at["variant"] != "base") else Outcome.FINISHED,
            nmse=times({})(at),
            train_nmse=1.0,
        )
        for cell, at in zip(made.cells, made.coordinates(), strict=True)
    ]
    section = converged.STUDY.document(made.experiment, records, Scale.LAPTOP)
    assert [claim.verdict for claim in section.claims[:4]] == [UNDECIDED] * 4
