"""The section of a trained model: a sound page, a terminal that fits, and every verb on a folder of inspections."""

import csv
import io

import pytest

import headcount as hc
from headcount.errors import StoreError
from headcount.pretrained.inspection.model import read_trained_model
from headcount.pretrained.inspection.page import trained_model_document
from headcount.report.chart import Chart, HeatMap
from headcount.report.document import Steps
from headcount.report.reading import documents_of
from headcount.report.render.html import page
from headcount.serve.folder import Folder
from headcount.store import Experiment, Store

from ..helpers.commands import a_sentence, headcount, strict_json
from ..helpers.documents import evidence, printed
from ..helpers.fabricated_inspection import COMMAND, facts, killed_after, write_inspection
from ..report.laws import check_page

SHAPES = [(6, 6), (12, 12), (30, 9)]


def a_section(made, **options):
    experiment = Experiment(name="tiny", question="What can go?", task="tiny", axes=(), places={}, study="inspect")
    section = trained_model_document(experiment, made, **options)
    assert section is not None
    return section


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A complete inspection, a killed one, one that was only begun."""
    root, made = tmp_path_factory.mktemp("inspections"), facts(layers=2, heads=3)
    write_inspection(root / "complete", made)
    write_inspection(root / "killed", killed_after(made, layers=1))
    write_inspection(root / "begun", {"model": made["model"]})
    return root


@pytest.mark.parametrize(("layers", "heads"), SHAPES)
def test_every_head_has_a_cell_that_can_be_read(layers, heads):
    made = facts(layers=layers, heads=heads, examples=8)
    section = a_section(made)
    first, *others = section.charts
    assert isinstance(first, HeatMap)
    assert first.values.shape == (layers, heads)
    removed = {(i, j) for i, row in enumerate(first.words) for j, word in enumerate(row) if word.startswith("\u00d7")}
    assert removed == set(read_trained_model(made).removed)
    assert {"loss-against-heads-kept", "heads-needed", "loss-against-rank"} <= {chart.name for chart in others}
    for chart in others:
        if isinstance(chart, Chart) and chart.log_y:
            assert all(y > 0 for series in chart.series for y in series.y)


def test_the_page_is_sound_and_says_what_is_missing_first():
    made = facts(layers=2, heads=3, examples=8)
    whole = check_page(page([a_section(made)], folder="results")).said
    assert "What this does not say" in whole
    assert "not complete" not in whole
    part = check_page(page([a_section(killed_after(made, layers=1), command=COMMAND)], folder="results")).said
    assert part.index("not complete") < part.index("Importance of every head")
    assert COMMAND in part


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_of_any_width_has_every_layer(width):
    text = printed(a_section(facts(layers=12, heads=12, examples=8), folder="dir"), width=width)
    lines = text.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= max(width, 60)  # a word is never broken
    assert "headcount report dir --open" in " ".join(text.split())


@pytest.mark.parametrize("verb", ["status", "show", "report", "export"])
@pytest.mark.parametrize("name", ["complete", "killed", "begun"])
def test_every_verb_ends_in_words(folders, verb, name):
    for options in ((), ("--json",)):
        ended = headcount(verb, folders / name, *options)
        refused = (verb, name) == ("report", "begun")
        assert ended.code == (2 if refused else 0)
        assert " 0 of 0" not in ended.out + ended.err
        if refused:
            a_sentence(ended, 2, COMMAND)
        elif options and verb != "export":
            strict_json(ended.out)


def test_json_has_the_reading(folders):
    (section,) = strict_json(headcount("show", folders / "complete", "--json").out)
    reading = section["trained_model"]
    assert [layer["layer"] for layer in reading["layers"]] == [0, 1]
    assert reading["whole"]["removable"].keys() == {"at", "low", "high"}
    (partial,) = strict_json(headcount("show", folders / "killed", "--json").out)
    assert partial["trained_model"]["missing"]
    status = strict_json(headcount("status", folders, "--json").out)["folders"]
    complete = {one["folder"].rsplit("/")[-1]: one["experiments"][0]["complete"] for one in status}
    assert complete == {"begun": False, "complete": True, "killed": False}


def test_export_has_a_row_per_head(folders):
    rows = list(csv.DictReader(io.StringIO(headcount("export", folders / "complete").out)))
    assert [(row["layer"], row["head"]) for row in rows] == [(str(i), str(j)) for i in range(2) for j in range(3)]
    assert all(float(row["leave_one_out"]) > 0 for row in rows)
    assert sorted(row["removed_from_layer"] for row in rows) == ["0", "0", "1", "1", "2", "2"]


def test_inspections_are_compared_and_one_alone_is_refused(folders):
    both = headcount("compare", folders / "complete", folders / "killed")
    assert both.code == 0
    assert "complete" in both.out
    assert headcount("compare", folders / "complete", folders / "begun").code == 2


def test_a_server_knows_whether_an_inspection_has_ended(folders):
    for name, status in (("complete", "finished"), ("killed", "unfinished"), ("begun", "unfinished")):
        folder = Folder(folders / name, name)
        folder.look()
        folder.update(draw=False)
        assert not folder.contents.error
        assert folder.status == status


def test_inspections_are_no_measurements(folders):
    with pytest.raises(StoreError, match="complete"):
        hc.load(folders / "complete")


def test_damaged_facts_are_one_sentence(tmp_path):
    write_inspection(tmp_path, facts(layers=1, heads=2) | {"base": {"losses": [1.0]}})
    a_sentence(headcount("show", tmp_path), 1)


def test_a_folder_may_hold_inspections_of_several_models(tmp_path):
    write_inspection(tmp_path, facts(layers=1, heads=2), name="one")
    with Store.open_for_writing(tmp_path) as store:
        store.begin(Experiment(name="two", question="", task="two", axes=(), places={}, study="inspect"), "")
    sections, warnings = documents_of(tmp_path)
    assert [section.name for section in sections] == ["one"]
    assert len(warnings) == 1


def test_a_page_has_no_empty_column_and_says_what_quick_omits():
    made = facts(layers=2, heads=3, examples=8)
    columns = {column for grid in a_section(made).grids for column in grid.columns}
    assert "cache bytes/token" in columns
    for each in made["configurations"]:
        each["cache_bytes_per_token"] = None
    made["asked"] = {"tolerance": 0.01, "effort": "quick", "facts": []}
    section = a_section(made, command=f"{COMMAND} --effort quick")
    assert "cache bytes/token" not in {column for grid in section.grids for column in grid.columns}
    assert all(len(row) == len(grid.columns) for grid in section.grids for row in grid.rows)
    assert f"{COMMAND} --effort normal" in [step.command for block in section.blocks_of(Steps) for step in block.steps]
    assert "effort quick" in section.grids[0].title


def test_pairs_are_counted_as_they_are_listed():
    words = evidence(a_section(facts(layers=1, heads=3, examples=8)))["read the same tokens"]
    assert words.startswith("1 pair with")
    words = evidence(a_section(facts(layers=9, heads=3, examples=8)))["read the same tokens"]
    assert words.endswith("more")
