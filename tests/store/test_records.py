"""Records by column say what a list of the same records says."""

import json
import math
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.answer import answer, error_table
from headcount.answer.next_steps import Situation, next_steps
from headcount.report.provenance import provenance
from headcount.store import Experiment, Outcome, Record, Records, Store, TrainSpec

from ..helpers import fabricated
from .drawn import finite, law, unchecked_randomness
from .records import a_cell, a_record

pytestmark = unchecked_randomness
METRICS = ("nmse", "error", "mrr")


@st.composite
def some_records(draw: st.DrawFn) -> list[Record]:
    """Records that have much in common, as those of a sweep do."""
    cells = st.builds(
        a_cell,
        seed=st.integers(0, 3),
        length=st.sampled_from([8, 16]),
        task=st.sampled_from([{"task": "one"}, {"task": "other", "d": 2}]),
        model=st.sampled_from([{"heads": 2}, {"heads": 10}, {"kind": "none"}]),
        train=st.sampled_from([TrainSpec(), TrainSpec(steps=5), TrainSpec(learning_rate=1.0)]),
        parent=st.sampled_from(["", "p"]),
    )
    return [
        a_record(
            draw(st.sampled_from(Outcome)),
            cell=cell,
            metrics=draw(st.dictionaries(st.sampled_from(METRICS), finite)),
            provenance=draw(st.sampled_from([{}, {"device": "a", "seconds": 1.5}, {"device": "a", "seconds": 2.0}])),
            message=draw(st.sampled_from(["", "why"])),
        )
        for cell in draw(st.lists(cells, max_size=8, unique_by=lambda cell: cell.key))
    ]


def texts(contents: Any) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in contents)


def distinct(contents: Any) -> list[str]:
    return sorted(set(texts(contents)))


def require_equal(records: Records, plain: list[Record]) -> None:
    assert len(records) == len(plain)
    assert records == plain
    assert plain == records
    assert records == tuple(plain)
    assert records != [*plain, a_record()]
    assert [records[at] for at in range(len(plain))] == plain == list(records)
    assert [records[-at] for at in range(1, len(plain) + 1)] == plain[::-1] == list(reversed(records))
    assert all(one is same for one, same in zip(records, records, strict=True))
    for outside in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError):
            records[outside]
    assert list(records.keys) == [each.cell.key for each in plain]
    assert list(records.outcomes) == [each.outcome for each in plain]
    assert list(records.messages) == [each.message for each in plain]
    assert records.metric_names() == {name for each in plain for name in each.metrics}
    for name in (*METRICS, "no such metric"):
        np.testing.assert_array_equal(records.metric(name), [each.metrics.get(name, math.nan) for each in plain])
    np.testing.assert_array_equal(records.errors, [each.error for each in plain])
    measured = [each for each in plain if not math.isnan(each.error)]
    assert records.best() == (min(measured, key=lambda each: each.error) if measured else None)
    for title in ("task", "model"):
        assert texts(records.settings(title)) == distinct(getattr(each.cell, title) for each in plain)
    assert texts(records.settings("train")) == distinct(asdict(each.cell.train) for each in plain)
    assert texts(records.settings("sweep")) == distinct(
        {"length": each.cell.length, "seed": each.cell.seed} for each in plain
    )
    assert records.trains() == list(dict.fromkeys(each.cell.train for each in plain))
    assert records.trains(random=True) == list(dict.fromkeys(e.cell.train for e in plain if not e.cell.parent))
    counts: Counter[str] = Counter()
    for content, count in records.provenances:
        counts[json.dumps(content, sort_keys=True)] += count
    assert counts == Counter(texts(each.provenance for each in plain))


def read_back(committed: list[Record]) -> Records:
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(folder) as store:
        store.commit(committed)
        return store.records()


@law
@given(some_records(), st.data())
def test_records_by_column_say_what_a_list_says(committed, data):
    stored, by_key = read_back(committed), {each.cell.key: each for each in committed}
    in_order = [by_key[key] for key in stored.keys]
    for records, plain in ((stored, in_order), (Records.of(committed), committed)):
        require_equal(records, plain)
        assert Records.of(records) is records
        # Parts, and parts of parts.
        for _ in range(2):
            part = data.draw(st.slices(len(plain)))
            keys = {each.cell.key for each in plain if data.draw(st.booleans())}
            model = plain[0].cell.model if plain else {}
            parts = {
                "slice": (records[part], plain[part]),
                "among": (records.among(keys), [each for each in plain if each.cell.key in keys]),
                "finished": (records.finished(), [each for each in plain if each.outcome is Outcome.FINISHED]),
                "settled": (records.settled(), [each for each in plain if each.outcome is not Outcome.FAILED]),
                "models": (records.of_models(model.__eq__), [each for each in plain if each.cell.model == model]),
            }
            for of_columns, of_list in parts.values():
                require_equal(of_columns, of_list)
            assert parts["among"][0].among(keys) == parts["among"][1]
            records, plain = parts[data.draw(st.sampled_from(list(parts)))]


# What is made of records.

DESCENT, LINE = fabricated.descent(), fabricated.sweep()
SWEEPS = {
    "finished": (LINE, fabricated.finished(LINE)),
    "some lost": (
        LINE,
        fabricated.finished(LINE)[:-4]
        + fabricated.lost(LINE.cells[-4:-2], Outcome.DIVERGED)
        + fabricated.lost(LINE.cells[-2:-1], Outcome.FAILED, "out of memory"),
    ),
    "a descent": (DESCENT, fabricated.finished(DESCENT)),
    "error rates": (
        LINE,
        fabricated.graded(LINE, lambda at: {"error": 0.8 / at["heads"], "baseline": 0.9, "train_error": 0.01}),
    ),
    "not converged": (
        LINE,
        [
            replace(record, curve=tuple((step, 1.0 / (1 + step)) for step in range(20)))
            for record in fabricated.finished(LINE, lambda at: 0.5 / at["heads"])
        ],
    ),
}


def made_of(experiment: Experiment, records: Any) -> dict[str, Any]:
    table = error_table(experiment, records)
    situation = Situation(
        experiment=experiment,
        records=Records.of(records),
        table=table,
        answer=answer(table),
        command="headcount measure own.npz --out own",
        folder="own",
    )
    arrays = {name: getattr(table, name).tolist() for name in ("errors", "baseline", "noise")}
    steps, source = next_steps(situation), provenance(records, missing=2, runs=[("typed", "2026-01-01")])
    return {"axes": table.axes, "metric": table.metric, "steps": steps, "provenance": source} | arrays


@pytest.mark.parametrize("kind", SWEEPS)
def test_tables_provenance_and_advice_are_the_same_for_a_list(kind):
    swept, records = SWEEPS[kind]
    other = fabricated.finished(fabricated.sweep({"heads": (1,), "seed": (0,)}, task="another"))
    stored = read_back([*records, *other])
    in_order = [next(r for r in (*records, *other) if r.cell.key == key) for key in stored.keys]
    np.testing.assert_equal(made_of(swept.experiment, stored), made_of(swept.experiment, in_order))


def test_the_best_of_records_without_a_finite_error_is_not_one_without_an_error():
    records = [a_record(cell=a_cell(seed=seed), metrics=m) for seed, m in enumerate(({}, {"nmse": math.inf}))]
    assert Records.of(records).best() == records[1]
    assert Records.of(records[:1]).best() is None
