"""Studies are found by name, read without JAX, and carry the papers' numbers."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headcount.answer.metric import TRAIN_ERROR
from headcount.errors import InputError
from headcount.papers.published import published_accuracies, published_points, published_table
from headcount.papers.registry import ALIASES, CLOSED_FORM, REAL_DATA, STUDIES, readers_of, study

DATA = Path(__file__).parents[2] / "src" / "headcount" / "studies" / "data"
REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "paper_tables.csv"


def test_names_and_aliases_are_found_and_others_refused_with_the_nearest():
    known = STUDIES | CLOSED_FORM | REAL_DATA
    assert {name: study(name) for name in known} == known
    assert all(each.title and each.asks for each in known.values())
    assert {study(alias).name for alias in ALIASES} == {"table2", "converged"}
    for wrong, right in (("tabel2", "table2"), ("rank-random-feature", "rank-random-features")):
        with pytest.raises(InputError, match=rf"{wrong}.*{right}.*marco"):
            study(wrong)


def test_every_experiment_has_its_readers_and_its_own_study_first():
    for name in STUDIES | REAL_DATA:
        expected = {"table2": ["table2", "figure2e", "figure3"]}.get(name, [name])
        if study(name).trained_by == name:
            assert [each.name for each in readers_of(name)] == expected
        else:
            assert readers_of(name) == []


def test_reading_studies_needs_no_jax():
    code = (
        "import sys, headcount.papers.registry, headcount.report.reading; "
        "sys.exit(any(name in sys.modules for name in ('jax', 'equinox', 'scipy.stats', 'headcount.theory')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("table", "heads", "length", "value", "std"),
    [
        ("table2", 1, 8, 0.0701, 0.0599),
        ("table2", 5, 128, 3.99e-06, 4.29e-06),
        ("table3", 4, 32, 3.4e-07, None),
        ("table4", 3, 64, 3.58e-07, None),
        ("table5", 2, 16, 2.69e-06, None),
    ],
)
def test_published_numbers_are_the_papers(table, heads, length, value, std):
    carried = published_table(table, statistic="minimum")
    assert carried.at(heads=heads, length=length) == value
    deviation = carried.deviation[carried.values("heads").index(heads), carried.values("length").index(length)]
    assert np.isnan(deviation) if std is None else deviation == std
    assert table.removeprefix("table") in carried.source


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the reference tables are not beside this checkout")
def test_the_carried_tables_are_the_reference_tables():
    rows = [list(csv.DictReader(path.read_text().splitlines())) for path in (REFERENCE, DATA / "paper_tables.csv")]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("table", ["table6", "table7", "table8", "table9"])
def test_published_accuracies_are_shares_of_wrong_answers(table):
    errors = published_accuracies(table, TRAIN_ERROR).errors
    there = np.isfinite(errors)
    assert np.all((errors[there] >= 0) & (errors[there] < 1))
    rows = [
        row for row in csv.DictReader((DATA / "paper_tables.csv").read_text().splitlines()) if row["table"] == table
    ]
    assert len(rows) == there.sum()
    row, unit = rows[0], 100 if max(float(row["value"]) for row in rows) > 1 else 1
    carried = published_accuracies(table, TRAIN_ERROR)
    right = 1 - carried.at(heads=int(row["heads"]), length=int(row["length"]))
    assert right * unit == pytest.approx(float(row["value"]))


@pytest.mark.parametrize(("figure", "points"), [("figure1", 6), ("figureN", 15)])
def test_published_points_are_those_of_the_file(figure, points):
    carried = published_points(figure)
    rows = [
        row for row in csv.DictReader((DATA / "rank_figures.csv").read_text().splitlines()) if row["figure"] == figure
    ]
    assert len(rows) == np.isfinite(carried.errors).sum() == points
    for row in rows:
        at = {axis: int(row[axis]) for axis in ("rank", "layers", "multiplier", "dim", "length")}
        assert carried.at(**at, positions="none") == float(row["value"])
    assert published_points("no such figure") is None
