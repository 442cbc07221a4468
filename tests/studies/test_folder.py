"""A results folder as sections: which studies it was asked for, what else it holds, and what is not there."""

import pytest

from headcount._errors import InputError
from headcount.report.render.html import page
from headcount.store import Outcome, Store
from headcount.studies import STUDIES, Scale
from headcount.studies.folder import sections_of, studies_in

from .. import made_up
from ..report.laws import check_page

TABLE2 = "headcount reproduce table2 --scale smoke"
OWN = "headcount measure own"


def told(root) -> str:
    """All that the page of a folder says."""
    sections, warnings = sections_of(root)
    return " ".join(check_page(page(sections, folder="results", warnings=warnings)).said.split())


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("scale", Scale)
def test_a_study_is_known_by_what_was_asked_for(tmp_path, name, scale):
    with Store.open_for_writing(tmp_path) as store:
        store.begin_sweep("any words", made_up.study_cells(name, scale))
        found = [(study.name, each) for study, each in studies_in(store)]
    assert (name, scale) in found
    assert {each for _, each in found} == {scale}
    assert len({each in {known for known, _ in found} for each in ("table2", "figure2e", "figure3")}) == 1


@pytest.mark.parametrize("done", [1, 7, 19, 20, 24])
def test_a_half_finished_study_says_how_much_is_missing(tmp_path, done):
    cells = made_up.study_cells("table2")
    done = min(done, len(cells))
    made_up.write(tmp_path, made_up.finished(cells[:done]), {TABLE2: cells})
    said = told(tmp_path)
    assert (f"{len(cells) - done} of {len(cells)} models are not trained yet" in said) == (done < len(cells))
    assert TABLE2 in said
    assert {section.name for section in sections_of(tmp_path)[0]} == {"table2", "figure2e", "figure3"}


@pytest.mark.parametrize("outcome", [Outcome.DIVERGED, Outcome.FAILED])
@pytest.mark.parametrize("kind", ["study", "own"])
def test_a_folder_where_nothing_finished_says_why(tmp_path, outcome, kind):
    cells = made_up.study_cells("table5") if kind == "study" else made_up.own_cells()
    made_up.write(tmp_path, made_up.lost(cells, outcome, "the reason\nin two lines"), {"any command": cells})
    with pytest.raises(InputError) as refused:
        sections_of(tmp_path)
    assert "the reason" in str(refused.value)
    assert "\n" not in str(refused.value), "one sentence"


def test_the_reason_is_found_wherever_it_is(tmp_path):
    first, *rest = made_up.own_cells()
    made_up.write(
        tmp_path, made_up.lost([first], Outcome.FAILED) + made_up.lost(rest, Outcome.FAILED, "the reason"), {}
    )
    with pytest.raises(InputError, match="the reason"):
        sections_of(tmp_path)


def test_a_folder_that_was_only_asked_says_how_to_begin(tmp_path):
    for asked in ({}, {OWN: made_up.own_cells()}, {TABLE2: made_up.study_cells("table2")}):
        with pytest.raises(InputError, match="no finished model yet"):
            sections_of(made_up.write(tmp_path / str(len(str(asked))), [], asked))


@pytest.mark.parametrize("others", [("table5",), ("table5", "table3")])
def test_every_study_of_a_folder_has_a_section(tmp_path, others):
    names = ("table2", *others)
    asked = {f"headcount reproduce {name}": made_up.study_cells(name) for name in names}
    made_up.write(tmp_path, made_up.finished(cell for cells in asked.values() for cell in cells), asked)
    sections, warnings = sections_of(tmp_path)
    assert {section.name for section in sections} == {*names, "figure2e", "figure3"}
    assert warnings == []
    for section in sections:
        own = section.name if section.name in names else "table2"
        assert section.account.commands == (f"headcount reproduce {own}",)
        assert section.account.cells == len(made_up.study_cells(own))
    told(tmp_path)


def test_two_scales_of_a_study_are_two_sections(tmp_path):
    asked = {f"reproduce {scale}": made_up.study_cells("table5", scale) for scale in (Scale.SMOKE, Scale.LAPTOP)}
    made_up.write(tmp_path, made_up.finished(cell for cells in asked.values() for cell in cells), asked)
    sections, _ = sections_of(tmp_path)
    assert len({section.name for section in sections}) == len({section.title for section in sections}) == 2
    told(tmp_path)


def test_the_title_is_the_answer_of_one_result_and_a_count_of_several(tmp_path):
    table2, table5 = made_up.study_cells("table2"), made_up.study_cells("table5")
    one = made_up.write(tmp_path / "one", made_up.finished(table2), {"headcount reproduce all": table2})
    (first, *_), _ = sections_of(one)
    assert f"<h1>{first.headline}</h1>" in page(sections_of(one)[0], folder="one")
    several = made_up.write(one, made_up.finished(table5), {"headcount reproduce all": table5})
    assert "<h1>4 results in several</h1>" in page(sections_of(several)[0], folder="several")


def test_a_study_that_has_not_begun_is_named_beside_one_that_has(tmp_path):
    table2, table5 = made_up.study_cells("table2"), made_up.study_cells("table5")
    made_up.write(tmp_path, made_up.finished(table5), {"five": table5, TABLE2: table2})
    assert [section.name for section in sections_of(tmp_path)[0]] == ["table5"]
    assert f"none of its {len(table2)} models" in told(tmp_path)


def test_a_study_and_an_own_experiment_do_not_mix(tmp_path):
    table5, own = made_up.study_cells("table5"), made_up.own_cells()
    made_up.write(tmp_path, made_up.finished(table5 + own[:-2]), {"five": table5, OWN: own})
    study, experiment = sections_of(tmp_path)[0]
    assert (study.name, study.account.cells, study.account.missing, study.account.commands) == (
        "table5",
        len(table5),
        0,
        ("five",),
    )
    assert (experiment.title, experiment.account.cells, experiment.account.missing, experiment.account.commands) == (
        "own",
        len(own) - 2,
        2,
        (OWN,),
    )


def test_an_own_experiment_on_a_studys_task_keeps_its_cells(tmp_path):
    table5 = made_up.study_cells("table5")
    made_up.write(tmp_path, made_up.finished(table5[:-2]), {"a part of it": table5[:-2]})
    sections, _ = sections_of(tmp_path)
    assert sum(section.account.cells for section in sections) == len(table5) - 2
    assert all(section.claims == () for section in sections)


def test_two_experiments_each_say_what_is_missing(tmp_path):
    short, long = made_up.own_cells(steps=100), made_up.own_cells(steps=200)
    made_up.write(tmp_path, made_up.finished(short[:-1] + long[:-2]), {"short": short, "long": long})
    sections, warnings = sections_of(tmp_path)
    assert sorted(section.account.missing for section in sections) == [1, 2]
    assert "2 experiments" in " ".join(warnings)
    assert {section.account.commands for section in sections} == {("short",), ("long",)}


def test_an_experiment_that_has_not_begun_is_named_beside_one_that_has(tmp_path):
    begun, waiting = made_up.own_cells(), made_up.own_cells(task={"task": "waiting"})
    made_up.write(tmp_path, made_up.finished(begun), {OWN: begun, "headcount measure waiting": waiting})
    assert "headcount measure waiting" in told(tmp_path)


def test_an_experiment_that_came_to_nothing_is_named_beside_one_that_did_not(tmp_path):
    fine, broken = made_up.own_cells(), made_up.own_cells(task={"task": "broken"})
    made_up.write(tmp_path, made_up.finished(fine) + made_up.lost(broken, Outcome.FAILED, "the reason"))
    said = told(tmp_path)
    assert "none of the 12 models on broken finished: the reason." in said
    assert len(sections_of(tmp_path)[0]) == 1


def test_a_command_given_twice_is_shown_once(tmp_path):
    cells = made_up.own_cells()
    made_up.write(tmp_path, made_up.finished(cells), {OWN: cells[:4]})
    made_up.write(tmp_path, [], {OWN: cells})
    (section,) = sections_of(tmp_path)[0]
    assert section.account.commands == (OWN,)
    assert section.account.missing == 0


def test_reading_a_folder_changes_nothing_in_it(tmp_path):
    cells = made_up.study_cells("table5")
    made_up.write(tmp_path, made_up.finished(cells), {"five": cells})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    told(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before
