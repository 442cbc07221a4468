"""A results folder as sections: its studies, the user's own experiments, and what has not finished."""

from dataclasses import replace

import pytest

from headcount.errors import StoreError
from headcount.papers.base import Scale
from headcount.papers.registry import REAL_DATA, STUDIES
from headcount.report.reading import documents_of, what_was_lost
from headcount.store import Outcome

from ..helpers import fabricated
from .test_real_data import metrics

TABLE2 = "headcount reproduce table2 --scale smoke"
OWN = "headcount measure own"


def names(root) -> list[str]:
    return [section.name for section in documents_of(root)[0]]


@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if not study.reads])
def test_a_study_is_known_by_its_experiment(tmp_path, name):
    for scale in (Scale.SMOKE, Scale.LAPTOP):
        made = fabricated.study_sweep(STUDIES[name], scale)
        root = fabricated.write(tmp_path / scale, fabricated.finished(made)[:1], {"any words": made})
        readers = {"table2": ["table2", "figure2e", "figure3"]}.get(name, [name])
        sections, warnings = documents_of(root)
        assert [section.name for section in sections] == readers
        assert sections[0].title == f"{STUDIES[name].title}, {scale} scale"
        assert warnings == []
        for section in sections:
            assert section.provenance.commands == ("any words",)
            assert (section.provenance.cells, section.provenance.missing) == (1, len(made.cells) - 1)


@pytest.mark.parametrize("name", REAL_DATA)
def test_a_study_of_real_data_is_known_without_the_data(tmp_path, name):
    made = fabricated.study_sweep(REAL_DATA[name])
    records = fabricated.graded(made, lambda _: metrics(0.5))
    (section,), warnings = documents_of(fabricated.write(tmp_path, records, {"reproduce": made}))
    assert (section.name, section.provenance.missing, warnings) == (name, 0, [])


@pytest.mark.parametrize("outcome", [Outcome.DIVERGED, Outcome.FAILED])
@pytest.mark.parametrize("study", ["table5", ""])
def test_a_folder_where_nothing_finished_says_why(tmp_path, outcome, study):
    made = fabricated.study_sweep(STUDIES[study]) if study else fabricated.sweep()
    records = fabricated.lost(made.cells[:1], outcome)
    records += fabricated.lost(made.cells[1:], outcome, "the reason\nin two lines")
    fabricated.write(tmp_path, records, {"any command": made})
    sections, (warning,) = documents_of(tmp_path)
    assert sections == []
    assert "the reason" in warning
    assert "\n" not in warning
    assert ("any command" in warning) == (outcome is Outcome.FAILED), "a diverged model is not trained again"


def test_a_folder_where_nothing_has_begun_says_how_to_go_on(tmp_path):
    with pytest.raises(StoreError):
        documents_of(tmp_path / "nowhere")
    for number, begun in enumerate(
        ({}, {OWN: fabricated.sweep()}, {TABLE2: fabricated.study_sweep(STUDIES["table2"])})
    ):
        sections, (warning,) = documents_of(fabricated.write(tmp_path / str(number), [], begun))
        assert sections == []
        assert next(iter(begun), "headcount measure") in warning


def test_every_study_of_a_folder_has_a_section_with_its_own_provenance(tmp_path):
    begun = {f"headcount reproduce {name}": fabricated.study_sweep(STUDIES[name]) for name in ("table2", "table5")}
    records = [record for made in begun.values() for record in fabricated.finished(made)]
    sections, warnings = documents_of(fabricated.write(tmp_path, records, begun))
    assert [section.name for section in sections] == ["table2", "figure2e", "figure3", "table5"]
    assert warnings == []
    for section in sections:
        command = f"headcount reproduce {'table5' if section.name == 'table5' else 'table2'}"
        assert section.provenance.commands == (command,)
        assert section.provenance.cells == len(begun[command].cells)


def test_two_scales_of_a_study_are_two_sections(tmp_path):
    begun = {scale: fabricated.study_sweep(STUDIES["table5"], scale) for scale in (Scale.SMOKE, Scale.LAPTOP)}
    records = [record for made in begun.values() for record in fabricated.finished(made)]
    sections, _ = documents_of(fabricated.write(tmp_path, records, begun))
    assert len({section.name for section in sections}) == len({section.title for section in sections}) == 2


def test_cells_of_a_study_may_be_run_without_a_scale_and_under_its_first_name(tmp_path):
    made = fabricated.study_sweep(STUDIES["converged"])
    made = replace(made, experiment=replace(made.experiment, study="variants", scale=""))
    (section,), _ = documents_of(fabricated.write(tmp_path, fabricated.finished(made), {"python": made}))
    assert section.name == "converged"
    assert section.title == f"{STUDIES['converged'].title}, run from Python"


def test_an_unknown_scale_is_refused(tmp_path):
    made = fabricated.study_sweep(STUDIES["table5"])
    made = replace(made, experiment=replace(made.experiment, scale="huge"))
    with pytest.raises(StoreError, match="huge"):
        documents_of(fabricated.write(tmp_path, fabricated.finished(made), {"python": made}))


def test_a_study_that_is_not_known_is_named_beside_those_that_are(tmp_path):
    known = fabricated.study_sweep(STUDIES["table2"])
    other = fabricated.study_sweep(STUDIES["table3"])
    other = replace(other, experiment=replace(other.experiment, name="newer-smoke", study="newer"))
    with pytest.raises(StoreError, match="newer-smoke of a study that is not known here, 'newer'"):
        documents_of(fabricated.write(tmp_path / "alone", fabricated.finished(other), {"python": other}))
    records = [*fabricated.finished(known), *fabricated.finished(other)]
    sections, (warning,) = documents_of(fabricated.write(tmp_path / "both", records, {"one": known, "other": other}))
    assert "table2" in [section.name for section in sections]
    assert "newer-smoke of a study that is not known" in warning


def test_what_has_not_begun_or_came_to_nothing_is_named_beside_what_has(tmp_path):
    table2, table5 = (fabricated.study_sweep(STUDIES[name]) for name in ("table2", "table5"))
    broken = fabricated.sweep(task="broken")
    records = fabricated.finished(table5) + fabricated.lost(broken.cells, Outcome.FAILED, "the reason")
    sections, warnings = documents_of(fabricated.write(tmp_path, records, {"5": table5, "2": table2, "b": broken}))
    assert [section.name for section in sections] == ["table5"]
    waiting, failed = warnings
    assert "table2" in waiting
    assert str(len(table2.cells)) in waiting
    assert "broken" in failed
    assert "the reason" in failed


def test_a_study_and_the_users_experiments_do_not_mix(tmp_path):
    table5, own, other = fabricated.study_sweep(STUDIES["table5"]), fabricated.sweep(), fabricated.sweep(steps=7)
    records = fabricated.finished(table5) + fabricated.finished(own)[:-2] + fabricated.finished(other)[:-1]
    begun = {"five": table5, OWN: own, "again": other}
    (study, *mine), warnings = documents_of(fabricated.write(tmp_path, records, begun))
    assert (study.name, study.provenance.missing, study.provenance.commands) == ("table5", 0, ("five",))
    assert [(each.name, each.provenance.missing, each.provenance.commands) for each in mine] == [
        ("own", 2, (OWN,)),
        ("own-2", 1, ("again",)),
    ]
    assert all(each.claims == () for each in mine)
    assert warnings == []


def test_a_command_given_twice_is_shown_once(tmp_path):
    made = fabricated.sweep()
    fabricated.write(tmp_path, fabricated.finished(made), {OWN: made})
    (section,), _ = documents_of(fabricated.write(tmp_path, [], {OWN: made}))
    assert (section.provenance.commands, section.provenance.missing) == ((OWN,), 0)


def test_reading_a_folder_changes_nothing_in_it(tmp_path):
    made = fabricated.study_sweep(STUDIES["table5"])
    fabricated.write(tmp_path, fabricated.finished(made), {"five": made})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    documents_of(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_was_lost_is_counted_with_the_first_reason():
    made = fabricated.sweep()
    assert what_was_lost(fabricated.finished(made)) == ""
    lost = fabricated.lost(made.cells[:2], Outcome.DIVERGED) + fabricated.lost(made.cells[2:3], Outcome.FAILED, "why")
    assert what_was_lost(lost) == "2 diverged, 1 failed: why."
