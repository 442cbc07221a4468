"""What an answer rests on, and what would make it more certain."""

from dataclasses import replace

import pytest

from headcount.answer import Interval
from headcount.report.render.evidence import evidence_rows
from headcount.report.section import Section, experiment_section

from ..helpers.fabricated import LINE, descent, finished, sweep

SURE = Interval(4, 4, 4)


def a_section(made, records=None, **changes) -> Section:
    section = experiment_section(made.experiment, records or finished(made))
    assert section.answer is not None
    return replace(section, answer=replace(section.answer, notes=(), **changes))


def evidence(section: Section) -> dict[str, str]:
    return dict(evidence_rows(section))


@pytest.mark.parametrize(
    ("unknowns", "made", "said"),
    [
        ({"seeds": Interval(4, 3, 4), "search": SURE}, sweep(LINE), ("seeds", "--seeds 16")),
        ({"seeds": SURE, "search": Interval(4, 3, 4)}, sweep(LINE | {"seed": range(10)}), ("search", "--seeds 20")),
        ({"seeds": Interval(4, 3, 5), "search": SURE, "data": SURE}, descent(), ("seeds", "--effort thorough")),
        ({"seeds": SURE, "search": SURE, "data": Interval(4, 4, 5)}, descent(), ("data", "--effort thorough")),
        ({"seeds": Interval(4, 2, 4), "search": SURE}, descent(), ("seeds", "add 2 to --heads")),
        ({"seeds": SURE, "search": SURE, "data": SURE}, descent(), ("none",)),
    ],
)
def test_the_widest_of_the_unknowns_is_named_with_what_narrows_it(unknowns, made, said):
    rows = evidence(a_section(made, unknowns=unknowns))
    assert all(words in rows["widest"] for words in said)
    for name, interval in unknowns.items():
        assert f"[{interval.low}, {interval.high}]" in rows[name]
    assert ("one draw" in rows["data"]) == ("data" not in unknowns)
    assert ("90 % interval over seeds and data" in rows["interval"]) == ("data" in unknowns)


def test_thorough_is_not_said_after_thorough():
    section = a_section(descent(), unknowns={"seeds": Interval(4, 3, 5)})
    assert "thorough" not in evidence(replace(section, effort={"level": "thorough"}))["widest"]


def test_what_was_not_computed_and_how_data_were_read_is_said():
    made, skipped = sweep(LINE), {"name": "linear", "label": "a linear model", "error": None, "note": "too large"}
    attachments = {"baselines": [skipped | {"length": 16}], "notes": ["y has 3 classes"]}
    section = experiment_section(made.experiment, finished(made), attachments)
    assert evidence(section)["not computed"] == "a linear model: too large"
    assert ("note", "y has 3 classes") in evidence_rows(section)
    assert section.as_dict()["data_notes"] == ["y has 3 classes"]
    assert [each["name"] for each in section.as_dict()["baselines"]] == ["constant"]


@pytest.mark.parametrize(
    ("support", "silent", "shares"),
    [(0.59, 0.41, ["59%", "41% show no transition"]), (0.6, 0.25, ["60%", "25%", "15%"]), (1.0, 0.0, ["100%"])],
)
def test_resamples_without_a_transition_are_counted(support, silent, shares):
    words = evidence(a_section(sweep(LINE), support=support, silent=silent))["seeds"]
    assert all(share in words for share in shares)
    assert words.count("%") == len(shares)


def test_the_early_estimate_is_the_one_that_was_made_first():
    made = descent()
    records = finished(made)
    assert "early estimate" not in evidence(a_section(made, records))
    seen = {1: (2, 30.0), 8: (7, 12.0)}

    def early(heads: int) -> dict:
        estimate, seconds = seen[heads]
        return {"early": {"heads": estimate, "step": 1050, "seconds": seconds}}

    records = [
        replace(each, provenance=each.provenance | early(heads))
        if (heads := each.cell.model["heads"]) in seen
        else each
        for each in records
    ]
    section = a_section(made, records)
    assert evidence(section)["early estimate"] == "7 heads after 1,050 of 3,000 steps (12 s)"
    assert section.as_dict()["early"] == {"heads": 7, "step": 1050, "steps": 3000, "seconds": 12.0}
