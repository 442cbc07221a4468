"""Experiments and the grids of a study, as a terminal shows them."""

from dataclasses import replace

import pytest

from headcount.answer import ClaimResult, Verdict
from headcount.report.document import Document, Grid, Steps, Text
from headcount.report.experiment import experiment_document, study_document
from headcount.store import Outcome

from ..helpers.documents import printed
from ..helpers.fabricated import DESCENT, LINE, MAP, descent, finished, lost, sharp, sharp_in_rank, sweep

SMALL = MAP | {"heads": (1, 4), "rank": (2, 8)}


def shown(axes, error=sharp, *, task: str = "own", colour: bool = False) -> str:
    made = sweep(axes, task=task)
    return printed(experiment_document(made.experiment, finished(made, error)), colour=colour)


def test_solved_errors_are_green_and_the_smallest_solved_model_bold():
    text = shown(SMALL, sharp_in_rank, colour=True)
    assert text.count("\x1b[1;32m0.050\x1b[0m") == 1
    assert text.count("\x1b[32m0.050\x1b[0m") == 1
    assert "\x1b[32m0.55" not in text


def test_the_row_of_the_heads_that_are_needed_is_green():
    (row,) = [line for line in shown(LINE, colour=True).splitlines() if "\x1b[1;32m" in line]
    assert "\x1b[1;32m    4\x1b[0m" in row


def test_random_starts_and_descended_models_stand_apart_in_80_columns():
    made = descent(DESCENT | {"length": (8, 16, 32)})
    records = finished(made)
    text = printed(experiment_document(made.experiment, records), width=80)
    lines = [line.split() for line in text.splitlines()]
    assert ["heads", *["random", "descended"] * 3] in lines
    assert ["4", *["-", "1.9e-04", "-", "2.3e-04", "-", "2.8e-04"]] in lines
    assert [line[0] for line in lines if line[1:2] and line[0].isdigit()][:5] == list("13458")
    assert "missing" not in text, "what was never asked for"
    gone = {"heads": 4, "length": 16, "data_seed": 0, "start": "descended", "seed": 1}
    kept = [each for each, at in zip(records, made.coordinates(), strict=True) if at != gone]
    assert len(kept) == len(records) - 1
    assert printed(experiment_document(made.experiment, kept), width=80).count("1 missing") == 1


def test_the_answer_is_said_in_words_and_then_what_to_do_with_commands_that_can_be_copied():
    made, command = sweep(LINE), f"headcount measure {'long-' * 6}name.npz --steps 500 --seeds 2"
    flat = finished(made, lambda at: 0.11)
    document = experiment_document(made.experiment, flat, folder="results/own", command=command)
    text = printed(document, width=70)
    (prose,) = (each for each in document.blocks_of(Text) if each.role == "prose")
    assert prose.plain in " ".join(text.split())
    after = text.split("Next\n")[1]
    copied = after.replace("\\\n", " ").splitlines()
    assert [" ".join(line.split()) for line in copied if line.split()[:1] == ["headcount"]] == [
        step.command for block in document.blocks_of(Steps) for step in block.steps
    ]
    assert document.as_dict()["next_steps"][0]["command"] == f"{command} --layers 2 --out results/own-layers-2"


WIDE = {"heads": (1, 2, 4), "length": (8, 16, 32, 64, 128, 256, 512), "seed": (0, 1)}


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize(
    "made",
    [sweep(WIDE), sweep(MAP), descent(DESCENT | {"length": (8, 16, 32, 64, 128)})],
    ids=["line", "map", "descent"],
)
def test_no_terminal_is_too_narrow_for_whole_words(made, width):
    errors = sharp_in_rank if "rank" in made.experiment.axes else sharp
    experiment = replace(made.experiment, settings=made.experiment.settings | {"model": {"kind": "x" * (width + 9)}})
    document = experiment_document(experiment, finished(made, errors))
    assert_whole(document, width)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_grids_and_claims_keep_their_words_whole(width):
    columns = ("", *(f"rank {rank}" for rank in (1, 2, 4, 8, 16, 32, 64)))
    grid = Grid(title="errors " * 20, columns=columns, rows=(("1 layer", *["0.5 (0.7)"] * 7),))
    claim = ClaimResult("It falls. " * 12, Verdict.HOLDS, "--validation-fraction " * 5 + "y" * 90)
    assert_whole(
        study_document(name="s", title="t", question="a", headline="so " * 50, grids=(grid,), claims=(claim,)), width
    )


def assert_whole(document: Document, width: int) -> None:
    """At this width the same words are written as on a terminal that is wide enough, and none is cut."""
    wide, narrow = printed(document, width=5000).split(), printed(document, width=width)
    assert set(narrow.split()) - {"\\"} == set(wide)  # a long command ends its lines so
    assert all(len(line.rstrip()) <= width or len(line.split()) == 1 for line in narrow.splitlines())


@pytest.mark.parametrize("name", ["[red]own[/red]", "$x$"])
def test_a_name_is_shown_as_it_is(name):
    assert name in shown(SMALL, task=name)
    assert shown({"[b]kind[/b]": (name, "other"), "length": (8,), "seed": (0, 1)}).count(name) == 2  # row and note


@pytest.mark.parametrize("axes", [{"heads": (1, 2), "rank": (1, 2)}, {"heads": (1, 2)}], ids=["map", "line"])
def test_what_did_not_finish_is_a_dash_and_the_reason_is_said(axes):
    made = sweep(axes | {"length": (8,), "seed": (0, 1)})
    records = finished(made)[:-2] + lost(made.cells[-2:], Outcome.DIVERGED)
    text = printed(experiment_document(made.experiment, records))
    (row,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["2"]]
    assert "-" in row
    assert "nan" not in text
    assert "excluded (fewer than 2 finished seeds" in text
