"""Every study on whatever part of its models has finished: it says what it can."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headcount.answer import Verdict
from headcount.papers.base import Scale
from headcount.papers.head_count.tables import TableStudy
from headcount.papers.registry import STUDIES
from headcount.store import Outcome

from ..helpers import fabricated

every_study = pytest.mark.parametrize("name", STUDIES)
TABLES = [name for name, study in STUDIES.items() if isinstance(study, TableStudy)]
errors = st.floats(1e-12, 1e3) | st.sampled_from([1e-12, 1e-3, 1.0, 1e3])
CLAIMS = {
    "table2": 5, "table3": 5, "table4": 5, "table5": 5, "figure1b": 4, "figure4": 4, "figure2e": 2, "figure3": 2,
    "rank-figure1": 5, "rank-figure-n": 5, "rank-figure-d": 2, "rank-positions": 3, "rank-in-context": 1,
    "rank-norms": 6,
    "table2-draws": 5, "converged": 5,
    "norm": 6,
    "depth": 6,
    "alphabet": 3,
    "architectures": 7,
    "shared-keys": 4, "sparse": 4,
    "memorise": 9,
}  # fmt: skip
# Shrinking a list of cells takes minutes, and says little more than the list.
quick_to_fail = settings(
    deadline=None,
    max_examples=8,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def section_of(name, records, made=None, scale=Scale.SMOKE):
    """A study's section of some records of its experiment, checked for what every section has."""
    study = STUDIES[name]
    section = study.document((made or fabricated.study_sweep(study, scale)).experiment, records, scale)
    assert len(section.claims) == CLAIMS[name]
    assert all(claim.statement.endswith(".") and claim.evidence for claim in section.claims)
    assert section.headline
    assert "nan" not in section.headline
    assert len({chart.name for chart in section.charts}) == len(section.charts)
    for grid in section.grids:
        assert all(len(row) == len(grid.columns) for row in grid.rows)
    assert any(note.startswith(f"At {scale} scale") for note in section.notes) == (scale is not Scale.PAPER)
    return section


@every_study
@quick_to_fail
@given(st.data())
def test_a_study_speaks_of_any_part_of_its_models(name, data):
    made = fabricated.study_sweep(STUDIES[name])
    chosen = data.draw(st.lists(st.sampled_from(range(len(made.cells))), min_size=1, unique=True))
    outcomes = data.draw(st.lists(st.sampled_from(Outcome), min_size=len(chosen), max_size=len(chosen)))
    outcomes[0] = Outcome.FINISHED
    values = data.draw(st.lists(errors, min_size=len(chosen), max_size=len(chosen)))
    section_of(
        name,
        [
            fabricated.record(made.cells[i], outcome, nmse=value, train_nmse=value, fitted_error=value)
            for i, outcome, value in zip(chosen, outcomes, values, strict=True)
        ],
        made,
    )


PARTS = {
    "one cell": lambda at, first: at == first,
    "one head count": lambda at, first: at.get("heads") == first.get("heads") and at.get("rank") == first.get("rank"),
    "only many heads": lambda at, _: at.get("heads", 4) >= 4,
    "only few heads": lambda at, _: at.get("heads", 1) < 4,
    "one length": lambda at, first: at["length"] == first["length"],
    "one seed": lambda at, _: at["seed"] == 0,
    "one width": lambda at, first: at.get("hidden") == first.get("hidden"),
    "one head count without its last length": lambda at, _: at.get("heads") != 4 or at["length"] == 8,
}


@every_study
def test_a_half_finished_study_has_a_section(name):
    made = fabricated.study_sweep(STUDIES[name])
    records, places = fabricated.finished(made), made.coordinates()
    for part in PARTS.values():
        kept = [record for record, at in zip(records, places, strict=True) if part(at, places[0])]
        section_of(name, kept, made)


def zero_somewhere(at) -> float:
    return 0.0 if at.get("heads", 4) == 4 and at["seed"] == 0 else fabricated.sharp(at)


@every_study
@pytest.mark.parametrize("error", [lambda _: 0.0, zero_somewhere, lambda _: 1e-12, lambda _: 1e3])
def test_errors_of_every_size_have_a_section(name, error):
    made = fabricated.study_sweep(STUDIES[name])
    section_of(name, fabricated.finished(made, error), made)


@every_study
def test_a_study_does_not_depend_on_the_order_of_its_records(name):
    made = fabricated.study_sweep(STUDIES[name])
    records = fabricated.finished(made)
    shuffled = [records[i] for i in np.random.default_rng(0).permutation(len(records))]
    one, other = (section_of(name, each, made) for each in (records, shuffled))
    assert (one.headline, one.claims, one.grids, one.notes) == (other.headline, other.claims, other.grids, other.notes)


def as_published(name: str):
    """A table's laptop scale with the published errors."""
    study = STUDIES[name]
    made = fabricated.study_sweep(study, Scale.LAPTOP)
    return made, lambda at: study.published.at(heads=at["heads"], length=at["length"])


@pytest.mark.parametrize("name", TABLES)
def test_the_published_numbers_are_of_their_own_magnitude_and_drop(name):
    made, error = as_published(name)
    section = section_of(name, fabricated.finished(made, error), made, Scale.LAPTOP)
    transition, *_, drop, magnitude = section.claims
    assert {transition.verdict, drop.verdict, magnitude.verdict} == {Verdict.HOLDS}
    assert section.source.answer.heads == STUDIES[name].transition
    assert all(cell["published"] == cell["minimum"] for cell in section.as_dict()["cells"])


@pytest.mark.parametrize("name", TABLES)
def test_a_drop_is_compared_with_the_published_one_at_the_same_lengths(name):
    made, error = as_published(name)
    records = fabricated.finished(made, error)
    there = [
        record
        for record, at in zip(records, made.coordinates(), strict=True)
        if at["length"] == 8 or at["heads"] != STUDIES[name].transition
    ]
    claims = section_of(name, there, made, Scale.LAPTOP).claims
    (drop,) = [claim for claim in claims if "-fold at these" in claim.evidence]
    theirs, ours = re.findall(r"(\S+)-fold", drop.evidence)
    assert theirs == ours


@pytest.mark.parametrize("name", ["figure1b", "figure4"])
def test_an_error_that_grows_with_width_is_not_said_to_fall(name):
    made = fabricated.study_sweep(STUDIES[name])
    section = section_of(name, fabricated.finished(made, lambda at: 1e-3 * at["hidden"]), made)
    assert section.claims[0].verdict is Verdict.DIFFERS
    assert "falls" not in section.headline


def test_a_grid_of_ranks_has_the_published_points_beside_ours():
    study = STUDIES["rank-figure-n"]
    made = fabricated.study_sweep(study, Scale.PAPER)
    (grid,) = section_of(study.name, fabricated.finished(made, lambda at: 0.5), made, Scale.PAPER).grids
    assert grid.columns == ("", "rank 1", "rank 8", "rank 16", "rank 32", "rank 64")
    cells = [cell for row in grid.rows for cell in row[1:]]
    assert sum("(" in cell for cell in cells) == 15
    assert "published" in grid.title
    (other,) = section_of("rank-figure-d", fabricated.finished(fabricated.study_sweep(STUDIES["rank-figure-d"]))).grids
    assert "published" not in other.title
    assert any("-" in row[1:] for row in other.rows), "of two widths each has ranks that the other has not"


def test_a_line_is_the_smallest_error_of_the_seeds_that_finished():
    study = STUDIES["rank-figure1"]
    made = fabricated.study_sweep(study, Scale.PAPER)
    one = {"layers": 1, "multiplier": 1}
    kept, lost = [], []
    for cell, at in zip(made.cells, made.coordinates(), strict=True):
        if one.items() <= at.items():
            (lost if at["rank"] == 64 or at["seed"] == 0 else kept).append((cell, at))
    records = [fabricated.record(cell, nmse=at["seed"] / at["rank"]) for cell, at in kept]
    records += fabricated.lost((cell for cell, _ in lost), Outcome.DIVERGED)
    section = section_of(study.name, records, made, Scale.PAPER)
    ours, theirs = section.charts[0].series
    assert dict(zip(ours.x, ours.y, strict=True)) == {rank: 1 / rank for rank in (1, 2, 4, 8, 16, 32)}
    assert (ours.kind, theirs.kind) == ("measured", "published")
