"""Laws every study keeps: its grid is the published one, its scales grow, its numbers are the paper's."""

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from headcount.studies.table import TableStudy

from headcount._errors import InputError
from headcount.studies import ALIASES, COMPUTED, FIRST_PAPER, LABELLED, STUDIES, Scale, study
from headcount.studies.base import ALL_LENGTHS
from headcount.studies.published import published_table

SCALES = (Scale.SMOKE, Scale.LAPTOP, Scale.PAPER)
every_study = pytest.mark.parametrize("name", STUDIES)
of_the_first_paper = pytest.mark.parametrize("name", [module.STUDY.name for module in FIRST_PAPER])
TABLES = [name for name, known in STUDIES.items() if isinstance(known, TableStudy)]
every_table = pytest.mark.parametrize("name", TABLES)
REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "paper_tables.csv"


@every_study
def test_its_scales_grow(name):
    efforts = [STUDIES[name].efforts[scale] for scale in SCALES]
    sweeps = [STUDIES[name].sweep(scale) for scale in SCALES]
    examples = [sum(cell.train.steps * cell.train.batch for cell in sweep.cells) for sweep in sweeps]
    assert examples == sorted(set(examples)), "training on more"
    for smaller, larger in itertools.pairwise(efforts):
        assert max(smaller.lengths) <= max(larger.lengths)
        assert smaller.steps < larger.steps


@of_the_first_paper
def test_its_smaller_grids_are_parts_of_the_larger(name):
    efforts = [STUDIES[name].efforts[scale] for scale in SCALES]
    for smaller, larger in itertools.pairwise(efforts):
        assert set(smaller.lengths) <= set(larger.lengths)
        assert smaller.seeds <= larger.seeds


@of_the_first_paper
def test_its_paper_scale_is_the_papers(name):
    sweep = STUDIES[name].sweep(Scale.PAPER)
    assert len({cell.seed for cell in sweep.cells}) >= 10
    assert max(cell.length for cell in sweep.cells) == 128
    assert {(cell.train.train_examples, cell.train.validation_examples) for cell in sweep.cells} == {(8000, 2000)}


@every_study
@pytest.mark.parametrize("scale", Scale)
def test_its_cells_are_distinct_and_no_other_scale_shares_them_all(name, scale):
    keys = STUDIES[name].keys(scale)
    assert len(keys) == len(STUDIES[name].sweep(scale).cells)
    assert all(keys != STUDIES[name].keys(other) for other in Scale if other is not scale)


@every_table
def test_a_tables_paper_grid_covers_every_published_cell(name):
    table = STUDIES[name]
    assert isinstance(table, TableStudy)
    trained = {(cell.model.heads, cell.length) for cell in table.sweep(Scale.PAPER).cells}
    assert trained == {(heads, length) for heads in table.published.heads for length in ALL_LENGTHS}
    assert np.isfinite(table.published.values).all()


@every_table
def test_a_tables_smoke_scale_has_heads_on_both_sides_of_its_transition(name):
    table = STUDIES[name]
    assert isinstance(table, TableStudy)
    heads = {cell.model.heads for cell in table.sweep(Scale.SMOKE).cells}
    assert {table.transition - 1, table.transition, table.transition + 1} <= heads


def test_the_models_are_the_published_ones():
    shapes = {
        name: {(cell.model.heads, cell.model.head_dim, cell.model.hidden, cell.model.layers) for cell in sweep.cells}
        for name in TABLES
        if (sweep := STUDIES[name].sweep(Scale.PAPER))
    }
    assert shapes["table2"] == {(h, 8, 32, 1) for h in range(1, 6)}
    assert shapes["table3"] == {(1, 32, 32, 1), (2, 16, 32, 1), (3, 11, 32, 1), (4, 8, 32, 1), (5, 7, 32, 1)}
    assert shapes["table5"] == {(h, n, hidden, 2) for h, n, hidden, _ in shapes["table3"]}
    assert {cell.task["intrinsic_dim"] for cell in STUDIES["table4"].sweep(Scale.PAPER).cells} == {3}


@pytest.mark.parametrize("reader", ["figure2e", "figure3"])
@pytest.mark.parametrize("scale", Scale)
def test_two_figures_read_table_2(reader, scale):
    assert STUDIES[reader].keys(scale) == STUDIES["table2"].keys(scale)


def test_figure_4_holds_figure_1b_at_paper_scale():
    assert STUDIES["figure1b"].keys(Scale.PAPER) < STUDIES["figure4"].keys(Scale.PAPER)


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
    found = published_table(table, statistic="minimum")
    place = found.heads.index(heads), found.lengths.index(length)
    assert found.values[place] == value
    assert np.isnan(found.std[place]) if std is None else found.std[place] == std


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the reference tables are not beside this checkout")
def test_the_carried_tables_are_the_reference_tables():
    carried = Path(__file__).parents[2] / "src/headcount/studies/data/paper_tables.csv"
    rows = [list(csv.DictReader(path.read_text().splitlines())) for path in (REFERENCE, carried)]
    assert rows[0] == rows[1]


def test_names_and_aliases_are_found_and_others_refused_with_the_nearest():
    known = STUDIES | COMPUTED | LABELLED
    assert {name: study(name) for name in known} == known
    assert all(each.title and each.asks for each in known.values())
    assert {study(alias).name for alias in ALIASES} == {"table2"}
    with pytest.raises(InputError, match=r'unknown study "tabel2".*table2'):
        study("tabel2")
    suggestion = r"Did you mean .rank-random-features.\?.*rank-random-features, cifar, marco, all"
    with pytest.raises(InputError, match=suggestion):
        study("rank-random-feature")
