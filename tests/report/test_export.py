"""Exported rows: one per cell and experiment, with coordinates, and the same bytes for the same results."""

import csv
import io
import json

from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.report.export import exported_rows as rows_of
from headcount.report.export import rows_text, summary_csv
from headcount.store import Cell, Experiment, Outcome, Store, TrainSpec

from ..helpers.fabricated import LINE, MAP, descent, finished, graded, lost, record, sharp, sweep, write

MODELS = (
    ClassTokenSpec(heads=2),
    ClassTokenSpec(heads=2, rank=3),
    EncoderSpec(heads=2, rank=1, width=4, answered_at="sequence"),
)


def exported(experiments, records) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(rows_text(rows_of(experiments, records), "csv"))))


def test_every_row_has_its_experiment_its_coordinates_and_its_numbers():
    made = sweep(LINE, name="mine")
    rows = exported([made.experiment], finished(made))
    assert len(rows) == len(made.cells)
    for row, at in zip(rows, made.coordinates(), strict=True):
        assert (row["experiment"], row["task"], row["outcome"]) == ("mine", "own", "finished")
        assert {axis: row[axis] for axis in at} == {axis: str(value) for axis, value in at.items()}
        assert float(row["nmse"]) == sharp(at)


def test_two_experiments_that_share_a_cell_have_it_each():
    one = sweep({"heads": (1, 2), "length": (8,), "seed": (0,)}, name="one")
    two = sweep({"heads": (2, 3), "length": (8,), "seed": (0,)}, name="two")
    records = {r.cell.key: r for made in (one, two) for r in finished(made)}.values()
    rows = exported([one.experiment, two.experiment], records)
    assert [(row["experiment"], row["heads"]) for row in rows] == [
        ("one", "1"),
        ("one", "2"),
        ("two", "2"),
        ("two", "3"),
    ]
    assert rows[1]["key"] == rows[2]["key"]


def test_every_row_says_where_training_started():
    plain, searched = sweep(LINE), descent(task="searched")
    records = finished(plain) + finished(searched)
    rows = exported([plain.experiment, searched.experiment], records)
    cells = {cell.key: cell for cell in (*plain.cells, *searched.cells)}
    assert {row["start"] for row in rows} == {"random", "descended"}
    for row in rows:
        cell = cells[row["key"]]
        assert (row["start"], row["parent"]) == (cell.start, cell.parent)
        assert tuple(json.loads(row["removed"] or "[]")) == cell.removed
        assert bool(row["parent"]) == bool(row["removed"]) == (row["start"] == "descended")
        assert row["parent"] == "" or row["parent"] in cells


def test_equal_results_make_equal_bytes(tmp_path):
    made, labelled = sweep(MAP), sweep(LINE, task="labels")
    records = finished(made)[:-1] + lost(made.cells[-1:], Outcome.FAILED, 'a "reason",\nin two lines')
    records += graded(labelled, lambda at: {"error": 0.5, "baseline": 0.5})
    texts = []
    for order in (1, -1):
        root = write(tmp_path / f"{order}", records[::order], {"a": made, "b": labelled})
        with Store.open_for_reading(root) as store:
            stored = store.experiments(), store.records()
        texts.append(tuple(rows_text(rows_of(*stored), form) for form in ("csv", "json")))
    assert texts[0] == texts[1]
    rows = json.loads(texts[0][1])
    assert {row["message"] for row in rows} == {"", 'a "reason",\nin two lines'}
    assert [
        {name: "" if row.get(name) is None else str(row[name]) for name in row if name != "curve"} for row in rows
    ] == [
        {name: row[name] for name in of_json if name != "curve"}
        for row, of_json in zip(csv.DictReader(io.StringIO(texts[0][0])), rows, strict=True)
    ]


def test_timing_is_added_only_when_asked_for():
    made = sweep(LINE)
    plain, timed = (
        rows_text(rows_of([made.experiment], finished(made), timing=timing), "csv") for timing in (False, True)
    )
    assert "seconds" not in plain
    assert {row["device"] for row in csv.DictReader(io.StringIO(timed))} == {"a test"}


def test_no_records_make_no_rows():
    made = sweep(LINE)
    rows = rows_of([made.experiment], [])
    assert (rows_text(rows, "csv"), json.loads(rows_text(rows, "json"))) == ("", [])


def test_kinds_of_models_share_a_table_in_any_order():
    for models in (MODELS, MODELS[::-1]):
        cells = [Cell(task={"task": "own"}, length=8, model=m.as_dict(), train=TrainSpec(), seed=0) for m in models]
        places = {cell.key: (i,) for i, cell in enumerate(cells)}
        experiment = Experiment(name="own", question="", task="own", axes=("number",), places=places)
        rows = exported([experiment], [record(cell, nmse=0.1) for cell in cells])
        assert [row["multiplier"] for row in rows] == ["1" if isinstance(m, EncoderSpec) else "" for m in models]
        assert [row["beta"] for row in rows] == ["" if isinstance(m, EncoderSpec) else "1.0" for m in models]
        assert all(row["heads"] == "2" and row["outcome"] == "finished" for row in rows)


def test_a_summary_has_a_row_per_place_and_says_where_it_comes_from():
    one, other = sweep(LINE, name="one"), sweep(MAP, name="other")
    records = [*finished(one), *lost(other.cells, Outcome.DIVERGED)]
    text = summary_csv([one.experiment, other.experiment], records, {"one": [("headcount measure one", "")]})
    first, second = text.split("\n\n")
    facts = [line for line in first.splitlines() if line.startswith("# ")]
    assert {"# command: headcount measure one", "# device: a test", "# models: 24 finished of 24"} <= set(facts)
    rows = list(csv.DictReader(io.StringIO("\n".join(first.splitlines()[len(facts) :]))))
    assert len(rows) == len(LINE["heads"]) * len(LINE["length"])
    (row,) = [row for row in rows if (row["heads"], row["length"]) == ("4", "8")]
    errors = [sharp({"heads": 4, "length": 8, "seed": seed}) for seed in LINE["seed"]]
    assert [row[name] for name in ("seeds", "minimum", "mean")] == ["2", f"{min(errors):.4g}", f"{sum(errors) / 2:.4g}"]
    assert all(line.startswith("# ") for line in second.splitlines())
    assert "# command: run from Python" in second


def test_a_summary_has_the_training_error_at_the_end_where_it_was_measured():
    made = sweep({"heads": (1, 2), "seed": (0, 1, 2)}, name="labels")
    records = graded(made, lambda at: {"error": 0.9, "baseline": 0.9, "fitted_error": 0.1 * at["heads"] + at["seed"]})
    text = summary_csv([made.experiment], records, {})
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("# ")))
    assert [row["median"] for row in rows] == ["0.9", "0.9"]
    assert [[row[f"fitted_{name}"] for name in ("minimum", "median", "maximum")] for row in rows] == [
        ["0.1", "1.1", "2.1"],
        ["0.2", "1.2", "2.2"],
    ]
    assert "fitted_median" not in summary_csv([made.experiment], finished(made), {})
