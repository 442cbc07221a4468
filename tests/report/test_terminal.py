"""Experiments and the grids of a study, as a terminal shows them."""

import io

import pytest
from headcount.analysis.comparison import Claim, Verdict
from rich.console import Console

from headcount.analysis import experiments
from headcount.report.render.terminal import experiment_view, section_view
from headcount.report.section import Grid, Section, experiment_section

from .. import made_up


def shown(records, *, colour: bool = False) -> str:
    (experiment,) = experiments(records)
    written = io.StringIO()
    console = Console(file=written, width=160, force_terminal=colour, highlight=False)
    console.print(experiment_view(experiment.settings, experiment_section(experiment, "experiment")))
    return written.getvalue()


def test_errors_stand_by_heads_and_rank_and_the_verdict_under_them():
    text = shown(made_up.finished(made_up.map_cells(heads=(1, 4), ranks=(2, 8)), made_up.sharp_in_rank))
    lines = [line.split() for line in text.splitlines()]
    assert ["heads", "rank", "2", "rank", "8"] in lines
    assert ["1", "5.5e-01", "5.0e-02"] in lines
    assert ["4", "5.5e-01", "5.0e-02"] in lines
    assert ["bottleneck", "rank"] in lines
    assert "1 head of rank 8, heads x rank = 8" in text
    assert "the error falls 11-fold" in text
    assert "100% of resamples agree" in text


def test_solved_errors_are_green_and_the_smallest_solved_model_bold():
    text = shown(made_up.finished(made_up.map_cells(heads=(1, 4)), made_up.sharp_in_rank), colour=True)
    assert text.count("\x1b[1;32m5.0e-02\x1b[0m") == 1
    assert text.count("\x1b[32m5.0e-02\x1b[0m") == 1
    assert "\x1b[32m5.5e-01" not in text


@pytest.mark.parametrize("name", ["[red]own[/red]", "$x$"])
def test_a_name_is_shown_as_it_is(name):
    assert name in shown(made_up.finished(made_up.map_cells(task={"task": name})))


def test_what_did_not_finish_is_a_dash_and_the_reason_is_said():
    cells = made_up.map_cells(heads=(1, 2), ranks=(1, 2))
    text = shown(made_up.finished(cells[:-2]) + made_up.lost(cells[-2:], made_up.Outcome.DIVERGED))
    (row,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["2"]]
    assert row[-1] == "-"
    assert "left out for want of two finished seeds at every length: 2 heads of rank 2" in text


def test_a_grid_stands_above_the_claims_with_its_numbers_as_they_are():
    grid = Grid(title="errors", columns=("", "rank 1", "rank 8"), rows=(("[bold]1 layer[/bold]", "0.5 (0.7)", "-"),))
    claim = Claim("It falls.", Verdict.HOLDS, "from 0.5 [to] 0.1")
    section = Section(name="s", title="t", asks="a", headline="h", grids=(grid, grid), claims=(claim,))
    written = io.StringIO()
    Console(file=written, width=160).print(section_view(section))
    lines = [line.split() for line in written.getvalue().splitlines()]
    shown = [["errors"], ["rank", "1", "rank", "8"], ["[bold]1", "layer[/bold]", "0.5", "(0.7)", "-"]]
    assert [line for line in lines if line][:7] == [*shown, *shown, ["holds", "It", "falls."]]
    assert "from 0.5 [to] 0.1" in written.getvalue()
