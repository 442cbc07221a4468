"""What an answer rests on, and what would make it more certain."""

from dataclasses import replace

import pytest

from headcount.answer import Interval, answer, error_table
from headcount.report.document import Document, NamedFacts
from headcount.report.experiment import experiment_document

from ..helpers.documents import evidence
from ..helpers.fabricated import LINE, descent, finished, sweep

SURE = Interval(4, 4, 4)


def a_document(made, records=None, attachments=None, **changes) -> Document:
    """An own experiment; `changes` of its answer."""
    records = records or finished(made)
    found = replace(answer(error_table(made.experiment, records)), notes=(), **changes)
    return experiment_document(made.experiment, records, attachments or {}, found=found)


def rows_of(document: Document) -> list[tuple[str, str]]:
    return [row for block in document.blocks_of(NamedFacts) for row in block.rows]


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
    rows = evidence(a_document(made, unknowns=unknowns))
    assert all(words in rows["widest"] for words in said)
    for name, interval in unknowns.items():
        assert f"[{interval.low}, {interval.high}]" in rows[name]
    assert ("one draw" in rows["data"]) == ("data" not in unknowns)
    assert ("90 % interval over seeds and data" in rows["interval"]) == ("data" in unknowns)


def test_thorough_is_not_said_after_thorough():
    asked = {"effort": {"level": "thorough"}}
    document = a_document(descent(), attachments=asked, unknowns={"seeds": Interval(4, 3, 5)})
    assert "thorough" not in evidence(document)["widest"]


def test_what_was_not_computed_and_how_data_were_read_is_said():
    made, skipped = sweep(LINE), {"name": "linear", "label": "a linear model", "error": None, "note": "too large"}
    attachments = {"baselines": [skipped | {"length": 16}], "notes": ["y has 3 classes"]}
    document = experiment_document(made.experiment, finished(made), attachments)
    assert evidence(document)["not computed"] == "a linear model: too large"
    assert ("note", "y has 3 classes") in rows_of(document)
    assert document.as_dict()["data_notes"] == ["y has 3 classes"]
    assert [each["name"] for each in document.as_dict()["baselines"]] == ["constant"]


@pytest.mark.parametrize(
    ("support", "silent", "shares"),
    [(0.59, 0.41, ["59%", "41% show no transition"]), (0.6, 0.25, ["60%", "25%", "15%"]), (1.0, 0.0, ["100%"])],
)
def test_resamples_without_a_transition_are_counted(support, silent, shares):
    words = evidence(a_document(sweep(LINE), support=support, silent=silent))["seeds"]
    assert all(share in words for share in shares)
    assert words.count("%") == len(shares)


def test_the_early_estimate_is_the_one_that_was_made_first():
    made = descent()
    records = finished(made)
    assert "early estimate" not in evidence(a_document(made, records))
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
    document = a_document(made, records)
    assert evidence(document)["early estimate"] == "7 heads after 1,050 of 3,000 steps (12 s)"
    assert document.as_dict()["early"] == {"heads": 7, "step": 1050, "steps": 3000, "seconds": 12.0}
