"""Every study on whatever part of its cells is there: it says what it can, and never falls over."""

import dataclasses
import io
import re

import numpy as np
import pytest
from headcount.analysis.comparison import Verdict
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headcount.report.provenance import provenance
from headcount.report.render.figure import draw
from headcount.report.render.html import page
from headcount.report.section import with_provenance
from headcount.store import Cell, Outcome, Record
from headcount.studies import STUDIES, Scale

from .. import made_up
from ..store.laws import law, unchecked_randomness
from .telling import show

every_study = pytest.mark.parametrize("name", STUDIES)
errors = st.floats(1e-12, 1e3) | st.sampled_from([1e-12, 1e-3, 1.0, 1e3])
# Shrinking a list of cells takes minutes, and says little more than the list.
quick_to_fail = settings(law, phases=[Phase.explicit, Phase.reuse, Phase.generate])
CLAIMS = {
    "table2": 5,
    "table3": 5,
    "table4": 5,
    "table5": 5,
    "figure1b": 4,
    "figure4": 4,
    "figure2e": 2,
    "figure3": 2,
    "rank-figure1": 5,
    "rank-figure-n": 5,
    "rank-figure-d": 2,
    "rank-positions": 3,
    "rank-in-context": 1,
}


@st.composite
def some_records(draw, cells: tuple[Cell, ...]) -> list[Record]:
    """Some of the cells, some of them finished and at least one."""
    chosen = draw(st.lists(st.sampled_from(range(len(cells))), min_size=1, unique=True))
    outcomes = draw(st.lists(st.sampled_from(Outcome), min_size=len(chosen), max_size=len(chosen)))
    outcomes[0] = Outcome.FINISHED
    nmse = draw(st.lists(errors, min_size=len(chosen), max_size=len(chosen)))
    triples = zip(sorted(chosen), outcomes, nmse, strict=True)
    return [made_up.settled(cells[i], outcome, nmse=value) for i, outcome, value in triples]


def tell(name: str, records: list[Record], scale: Scale = Scale.SMOKE):
    """A study's section, shown in every way there is."""
    section = STUDIES[name].section(records, scale)
    section = with_provenance(
        section, provenance(records, missing=len(made_up.study_cells(name, scale)) - len(records)), scale
    )
    said = show(section)
    assert len(section.claims) == CLAIMS[name]
    if section.table is not None:
        for heads in {record.cell.model.heads for record in records}:
            assert f'<th scope="row">{heads}</th>' in page([dataclasses.replace(section, charts=())], folder="results")
        assert all(f"T = {length}" in said for length in {record.cell.length for record in records})
    for grid in section.grids:
        ranks = {record.cell.model.rank for record in records if record.outcome is Outcome.FINISHED}
        assert {f"rank {rank}" for rank in ranks} == set(grid.columns[1:])
    return section


@every_study
@unchecked_randomness
@quick_to_fail
@given(st.data())
def test_a_study_speaks_of_any_part_of_its_cells(name, data):
    tell(name, data.draw(some_records(made_up.study_cells(name))))


PARTS = {
    "one cell": lambda cell, first: cell == first,
    "one head count": lambda cell, first: cell.model.heads == first.model.heads,
    "only many heads": lambda cell, _: cell.model.heads >= 4,
    "only few heads": lambda cell, _: cell.model.heads < 4,
    "one length": lambda cell, first: cell.length == first.length,
    "one seed": lambda cell, _: cell.seed == 0,
    "one width": lambda cell, first: cell.model.hidden == first.model.hidden,
    "one head count without its last length": lambda cell, _: cell.model.heads != 4 or cell.length == 8,
}


@every_study
@pytest.mark.parametrize("part", PARTS)
def test_a_half_finished_study_is_told(name, part):
    cells = made_up.study_cells(name)
    tell(name, made_up.finished([cell for cell in cells if PARTS[part](cell, cells[0])]))


def zero_somewhere(cell: Cell) -> float:
    return 0.0 if cell.model.heads == 4 and cell.seed == 0 else made_up.sharp(cell)


ERRORS = {"0": lambda _: 0.0, "0 for one seed": zero_somewhere, "1e-12": lambda _: 1e-12, "1e3": lambda _: 1e3}


@every_study
@pytest.mark.parametrize("size", ERRORS)
def test_errors_of_every_size_are_told(name, size):
    tell(name, made_up.finished(made_up.study_cells(name), ERRORS[size]))


@every_study
def test_head_counts_that_all_diverged_are_told(name):
    cells = made_up.study_cells(name)
    few, many = ([cell for cell in cells if (cell.model.heads < 3) is kind] for kind in (True, False))
    section = tell(name, made_up.finished(many) + made_up.lost(few, Outcome.DIVERGED, "not finite after step 3"))
    for chart in section.charts:
        draw(chart).savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("name", ["table2", "table3", "table4", "table5"])
def test_the_published_numbers_are_of_their_own_magnitude_and_drop(name):
    study = STUDIES[name]
    records = made_up.finished(
        made_up.study_cells(name, Scale.LAPTOP), lambda cell: study.published.at(cell.model.heads, cell.length)[0]
    )
    transition, *_, drop, magnitude = tell(name, records, Scale.LAPTOP).claims
    assert {transition.verdict, drop.verdict, magnitude.verdict} == {Verdict.HOLDS}


@pytest.mark.parametrize("name", ["table2", "table3", "table4", "table5"])
def test_a_drop_is_compared_with_the_published_one_at_the_same_lengths(name):
    study = STUDIES[name]
    cells = made_up.study_cells(name, Scale.LAPTOP)
    there = [cell for cell in cells if cell.length == 8 or cell.model.heads != study.transition]
    records = made_up.finished(there, lambda cell: study.published.at(cell.model.heads, cell.length)[0])
    (drop,) = [claim for claim in study.section(records, Scale.LAPTOP).claims if "-fold at these" in claim.evidence]
    theirs, ours = re.findall(r"(\S+)-fold", drop.evidence)
    assert theirs == ours


@pytest.mark.parametrize("name", ["figure1b", "figure4"])
def test_an_error_that_grows_with_width_is_not_said_to_fall(name):
    section = tell(name, made_up.finished(made_up.study_cells(name), lambda cell: 1e-3 * cell.model.hidden))
    assert section.claims[0].verdict is Verdict.DIFFERS
    assert "falls" not in section.headline


@every_study
def test_a_study_does_not_depend_on_the_order_of_its_records(name):
    records = made_up.finished(made_up.study_cells(name))
    shuffled = [records[i] for i in np.random.default_rng(0).permutation(len(records))]
    pages = [page([STUDIES[name].section(each, Scale.SMOKE)], folder="results") for each in (records, shuffled)]
    assert pages[0] == pages[1]
