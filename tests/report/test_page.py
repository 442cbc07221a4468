"""The report's page: it needs nothing but itself, says all that is there, and lets nothing in a name become markup."""

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from headcount.answer.coverage import Coverage
from headcount.answer.next_steps import NextStep
from headcount.report.chart import Chart, HeatMap
from headcount.report.document import Document, Grid, Steps, Text
from headcount.report.experiment import experiment_document, study_document, with_coverage
from headcount.report.heads import HeadsRead
from headcount.report.provenance import provenance
from headcount.report.render import write_report
from headcount.report.render.html import page, style, summary
from headcount.store import Outcome, Record, Store

from ..helpers import fabricated
from ..helpers.documents import bests, error_grids
from ..helpers.fabricated import LINE, MAP, descent, finished, graded, lost, sharp, sharp_in_rank, sweep, write
from .laws import Reader, check_page, contrast

NASTY = """<script>alert("1")</script> & 'quotes' <!-- ]]> </section>"""
STARTED = "2026-01-01T00:00:00"


def a_section(made, records, missing: int = 0, command: str = "headcount measure") -> Document:
    origin = provenance(records, missing=missing, runs=[(command, STARTED)])
    return with_coverage(experiment_document(made.experiment, records), Coverage(trained=1, asked=1), origin)


def some_lost(axes, gone, outcome: Outcome, message: str, error=sharp):
    """A sweep and its records; cells at `gone` coordinates did not finish."""
    made = sweep(axes)
    records = finished(made, error)
    for i, (cell, at) in enumerate(zip(made.cells, made.coordinates(), strict=True)):
        if gone.items() <= at.items():
            (records[i],) = lost([cell], outcome, message)
    return made, records


def whole(axes, error=sharp):
    made = sweep(axes)
    return made, finished(made, error)


KINDS = {
    "plain": whole(LINE),
    "one cell": whole({"heads": (2,), "length": (8,), "seed": (0,)}),
    "twenty head counts": whole(LINE | {"heads": range(1, 21)}),
    "twelve lengths": whole(LINE | {"heads": (1, 2), "length": range(4, 16)}),
    "errors of 0": whole(LINE, lambda _: 0.0),
    "errors of 0 for one seed": whole(LINE, lambda at: sharp(at) * at["seed"]),
    "a seed lost": some_lost(LINE, {"seed": 1}, Outcome.DIVERGED, "not finite"),
    "a head count lost": some_lost(LINE, {"heads": 1}, Outcome.FAILED, "no memory"),
    "another axis": whole({"hidden": (8, 16, 32), "length": (8, 16), "seed": (0, 1)}),
    "words": whole({"kind": ("plain", "wide"), "length": (8,), "seed": (0, 1)}),
    "rank": whole(MAP, sharp_in_rank),
    "heads, not rank": whole(MAP | {"length": (8, 16)}),
    "one seed of heads and rank": whole(MAP | {"seed": (0,)}),
    "a rank lost": some_lost(MAP, {"rank": 4}, Outcome.DIVERGED, "not finite"),
    "descended": (descent(), finished(descent())),
    "a cell of heads and rank lost": some_lost(MAP, {"heads": 1, "rank": 1, "seed": 0}, Outcome.FAILED, "no memory"),
}


def undrawn(section: Document) -> Document:
    return replace(section, blocks=tuple(each for each in section.blocks if not isinstance(each, Chart | HeatMap)))


DRAWN = ("plain", "a head count lost", "words", "rank", "descended")
"""The charts of the others are drawn no differently; drawing them costs most of a page."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_everything_that_is_there(kind):
    made, records = KINDS[kind]
    section = a_section(made, records, missing=3, command="headcount measure own")
    section = section if kind in DRAWN else undrawn(section)
    text = page([section], folder="results")
    reader = check_page(text)
    grid, answer = error_grids(section)[0], section.source.answer
    for column in grid.columns:
        assert f'<th scope="col">{column}</th>' in text
    for row, words in zip(grid.rows, bests(grid), strict=True):
        assert f'<th scope="row">{row[0]}</th>' in text
        assert all(each in reader.words for each in words)
    heading = section.headline.removesuffix(f": {answer.reason}")
    for said in (heading, section.question, "headcount measure own", answer.reason, *answer.notes):
        assert said in reader.said
    assert all(record.message in reader.said for record in records)
    assert f"3 of {len(records) + 3} models are not trained yet" in reader.said
    assert text.count('<svg viewBox="0 0') == len(section.charts)
    assert reader.said.count(heading) == 1


def test_a_page_tells_descended_models_and_draws_of_the_data_apart():
    section = a_section(*KINDS["descended"])
    text = page([section], folder="results")
    reader = check_page(text)
    assert ("data-kind", "descended") in reader.attributes
    assert text.count('class="series descended"') == 4  # points and an empty line per length
    assert "draw 2 of 2 of the data" in reader.said
    first, second = error_grids(section)
    assert [row[0] for row in first.rows] == list("13458")
    assert [row[0] for row in second.rows] == list("3458")
    assert "missing" not in reader.said


def test_errors_are_what_the_experiments_of_a_page_measured():
    made = sweep(LINE, task="labelled")
    labelled = experiment_document(
        made.experiment, graded(made, lambda at: {"error": 0.5 / at["heads"], "baseline": 0.5})
    )
    plain = a_section(*KINDS["plain"])
    for sections, shares, variance in (
        ([labelled], True, False),
        ([plain], False, True),
        ([labelled, plain], True, True),
    ):
        heat = [replace(each, blocks=(*undrawn(each).blocks, each.charts[-2])) for each in sections]
        said = check_page(page(heat, folder="results")).said
        assert said.count("shares of wrong answers.") == shares
        assert said.count("predicting the mean") == variance


def test_a_page_holds_several_results_and_an_overview_that_leads_to_each():
    sections = [a_section(*KINDS[kind]) for kind in ("plain", "rank")]
    sections += [replace(undrawn(sections[0]), name=name) for name in ("own", "theme", "tip", NASTY)]
    reader = check_page(page(sections, folder="results"))
    assert reader.links == ["#main", *(f"#result-{place + 1}" for place in range(len(sections)))]
    assert "nav" in reader.tags
    assert all(section.headline in reader.said for section in sections)


def test_a_grid_is_a_table_whose_first_column_names_its_rows():
    grids = tuple(
        Grid(title=f"{kind} {NASTY}", columns=("", f"rank 1 {NASTY}"), rows=(("one layer", "0.5 (0.7)"), (NASTY, "-")))
        for kind in ("first", "second")
    )
    text = page([study_document(name="s", title="t", question="a", headline="h", grids=grids)], folder="results")
    reader = check_page(text)
    assert [f"{kind} {NASTY}" in reader.said for kind in ("first", "second")] == [True, True]
    assert text.count('<th scope="row">one layer</th><td>0.5 (0.7)</td>') == 2
    assert (reader.tags.count("caption"), reader.tags.count("table")) == (2, 2)


def test_a_section_needs_no_table():
    check_page(page([study_document(name="bare", title="t", question="a", headline="h")], folder="results"))


@pytest.mark.parametrize("place", ["task", "word", "message", "command", "folder", "warning", "device", "version"])
def test_what_others_wrote_is_shown_as_it_is(place, monkeypatch):
    names = ("task", "word", "message", "command", "folder", "warning", "device", "version")
    given = {name: NASTY if name == place else "plain" for name in names}
    origin = {"device": given["device"], "versions": {given["version"]: "1"}, "seconds": 1.0}
    monkeypatch.setattr(fabricated, "PROVENANCE", origin)
    made = sweep({"kind": (given["word"], "other"), "length": (8,), "seed": (0, 1)}, task=given["task"])
    records = finished(made)[:-1] + lost(made.cells[-1:], Outcome.FAILED, given["message"])
    section = undrawn(a_section(made, records, command=given["command"]))
    text = page([section, section], folder=given["folder"], warnings=[given["warning"]])
    assert "<!--" not in text
    assert NASTY in check_page(text).said


def test_equal_results_make_equal_pages(tmp_path):
    made, records = KINDS["a seed lost"]
    pages = []
    for order in (1, -1):
        root = write(tmp_path / f"{order}", records[::order], {"headcount measure": made})
        with Store.open_for_reading(root) as store:
            (experiment,) = store.experiments()
            pages.append(page([a_section(replace(made, experiment=experiment), store.records())], folder="results"))
    assert pages[0] == pages[1]


def themes() -> list[dict[str, str]]:
    """The variables of the style: light, dark, dark by choice of the system, printed."""
    return [dict(re.findall(r"(--[\w-]+): ([^;]+);", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", style())]


def test_every_colour_of_a_page_is_defined_for_every_theme():
    light, dark, dark_by_choice_of_the_system, printed = map(set, themes())
    used = set(re.findall(r"var\((--[\w-]+)\)", style()))
    assert printed == light == dark == dark_by_choice_of_the_system >= used


@pytest.mark.parametrize("theme", range(4))
def test_text_stands_out_from_its_ground_in_every_theme(theme):
    colours = themes()[theme]
    pairs = [(ink, ground) for ink in ("ink", "quiet", "accent") for ground in ("paper", "raised")]
    pairs += [(kind, f"{kind}-ground") for kind in ("holds", "differs", "undecided")]
    for ink, ground in pairs:
        assert contrast(colours[f"--{ink}"], colours[f"--{ground}"]) >= 4.5, (ink, ground)
    for line in ("p0", "p1", "p2", "p3", "p4", "p5", "edge"):  # what is not text
        assert contrast(colours[f"--{line}"], colours["--raised"]) >= (3 if line == "edge" else 2.3), line


def trained(made) -> list[Record]:
    """Records with curves of twenty checkpoints."""
    steps = range(0, 1001, 50)
    return [
        replace(each, curve=tuple((step, each.error * (1 + 30 * 0.99**step)) for step in steps))
        for each in finished(made)
    ]


def attached(length: int, heads: int, examples: int = 4) -> dict[str, Any]:
    """What each head reads, as a run would store it."""
    weights = [[1.0] + [0.0] * (length - 1)] * examples
    return {
        "model": "heads 4, seed 0",
        "length": length,
        "error": 1e-4,
        "examples": [{"tokens": [[0.1, -2.0]] * (length - 1) + [None], "target": [1.5], "answer": [1.4]}] * examples,
        "heads": [{"name": f"head {i + 1}", "weights": weights, "reads": 1.2, "without": 0.0012} for i in range(heads)],
    }


def test_a_normal_page_has_everything_once_and_is_small():
    made = sweep({"heads": range(1, 13), "length": (8, 16, 32), "seed": range(4)})
    extra = {"heads": attached(length=64, heads=12), "baselines": [
        {"length": 32, "name": "linear", "label": "a linear model", "error": 0.43}
    ]}  # fmt: skip
    section = experiment_document(made.experiment, trained(made), extra)
    steps = (NextStep("Why so.", "headcount measure own --seeds 8"), NextStep(f"Because {NASTY}", NASTY))
    others = (each for each in section.blocks if not isinstance(each, Steps) and getattr(each, "role", "") != "prose")
    prose = Text.of_sentences(("With 3 heads it is 0.02.", NASTY))
    section = replace(section, blocks=(*others, prose, Steps(steps)))
    text = page([section], folder="results")
    reader = check_page(text)
    assert len(text.encode()) < 300_000
    once = ["Error against heads", "Training curves", "Training and validation error", "What each head reads",
            "What to do next", "With 3 heads it is 0.02.", "Why so:", section.headline, section.question]  # fmt: skip
    assert {words: reader.said.count(words) for words in once} == dict.fromkeys(once, 1)
    assert "12 times larger" in reader.said
    assert "4 heads: 200 times less" in reader.said
    labels = [value for name, value in reader.attributes if name == "aria-label"]
    assert labels.count("100% of token 1 (0.1, -2)") == 4 * 12
    assert text.count('class="absent"') == 4 * 12


def test_what_another_version_attached_is_left_out():
    made, records = KINDS["plain"]
    for stored in ({"heads": []}, {"heads": {"error": "x"}}, {"heads": attached(8, 2) | {"examples": None}}):
        assert not experiment_document(made.experiment, records, stored).blocks_of(HeadsRead)


def test_the_summary_for_a_notebook_is_short_and_shows_names_as_they_are():
    axes = {"kind": (NASTY, "other"), "length": (8, 16), "seed": (0, 1)}
    for made, records, said in ((*KINDS["plain"], "own needs 4 heads"), (*whole(axes), NASTY)):
        section = experiment_document(made.experiment, records)
        reader = Reader(text := summary(section))
        assert said in reader.said
        assert reader.tags[0] == "div"
        assert not {"script", "svg", "style", "section"} & set(reader.tags)
        assert len(text) < 1300
        (prose,) = (each for each in section.blocks_of(Text) if each.role == "prose")
        assert prose.words[0] in reader.said
        assert all(words in reader.said for row in bests(error_grids(section)[0]) for words in row)


def test_a_page_is_written_in_every_script(tmp_path):
    section = study_document(name="s", title="t", question="a", headline="\u00e9 \u4e2d \U0001f600 \udcff")
    write_report([section], tmp_path / "new" / "report.html", folder="results")
    assert "\u00e9 \u4e2d \U0001f600 ?" in (tmp_path / "new" / "report.html").read_text(encoding="utf-8")


def test_nothing_that_draws_is_imported_before_something_is_drawn():
    code = "import sys, headcount.cli; print(sorted({'matplotlib', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
