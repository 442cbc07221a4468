"""The second paper's studies: every rank has the same parameters, published sizes, and claims that are judged right."""

import csv
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from headcount.analysis.comparison import Verdict
from headcount.studies.rank_claims import (
    blocks_claim,
    depth_claim,
    full_rank_claim,
    magnitude_claim,
    more_heads_claim,
    shorter_claim,
)

from headcount.engine import grid, joined, run_sweep
from headcount.models import EncoderSpec
from headcount.store import Outcome, Store, TrainSpec
from headcount.studies import SECOND_PAPER, STUDIES, Scale, rank_figure_n, rank_in_context, rank_positions
from headcount.studies.rank import Curves, RankEffort, RankStudy, Variant, curves, published_curves
from headcount.tasks import FarthestPoint

from .. import made_up
from .telling import show

NAMES = [module.STUDY.name for module in SECOND_PAPER]
every_rank_study = pytest.mark.parametrize("name", NAMES)
every_scale = pytest.mark.parametrize("scale", Scale)
HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED


def effort_of(name: str, scale: Scale) -> RankEffort:
    study = STUDIES[name]
    assert isinstance(study, RankStudy)
    return study.efforts[scale]


@every_rank_study
@every_scale
def test_its_cells_are_what_the_effort_says(name, scale):
    effort, cells = effort_of(name, scale), made_up.study_cells(name, scale)
    found = {
        (c.model.width, c.length, c.model.layers, c.model.multiplier, c.model.positions, c.model.heads, c.seed)
        for c in cells
    }
    assert found == {
        (d, n, layers, m, positions, h, seed)
        for d in effort.dims
        for n in effort.lengths
        for layers in effort.layers
        for m in effort.multipliers
        for positions in effort.positions
        for h in effort.heads
        for seed in range(effort.seeds)
    }
    assert len(cells) == len(found)
    assert {c.train for c in cells} == {effort.train}
    assert {(c.model.hidden, c.model.norm, c.model.norm_first) for c in cells} == {
        (effort.hidden, effort.norm, effort.norm_first)
    }


@every_rank_study
@every_scale
def test_every_rank_has_the_same_number_of_parameters(name, scale):
    """Exactly, biases included: rank x heads is the width that is projected, and a head carries as much as it compares.
    A concatenated position code doubles that width."""
    counts: dict[tuple, set[int]] = {}
    for cell in made_up.study_cells(name, scale):
        model = cell.model
        assert model.rank == model.head_dim
        assert model.rank * model.heads == model.width * (2 if model.positions == "concatenated" else 1)
        count = model.parameters(length=cell.length, dim=model.width, outputs=model.width)
        counts.setdefault((replace(model, heads=1, rank=1, head_dim=1), cell.length), set()).add(count)
    assert {len(found) for found in counts.values()} == {1}


@every_rank_study
@every_scale
def test_its_models_read_the_task_they_are_trained_on(name, scale):
    sweep = STUDIES[name].sweep(scale)
    assert {task.answered_at for task in sweep.tasks} == {cell.model.answered_at for cell in sweep.cells}
    assert len(sweep.tasks) == len({task.dim for task in sweep.tasks}) == len({str(cell.task) for cell in sweep.cells})
    if name != "rank-in-context":
        assert {cell.task["dim"] == cell.model.width for cell in sweep.cells} == {True}


PUBLISHED = {
    "rank-figure1": RankEffort(
        lengths=(16,), seeds=5, steps=100_000, dims=(64,), heads=(1, 2, 4, 8, 16, 32, 64), layers=(1, 3, 5),
        multipliers=(1, 8, 64), hidden=2048, batch=256, learning_rate=0.01,
    ),
    "rank-figure-n": RankEffort(
        lengths=(4, 16, 64, 256), seeds=5, steps=200_000, dims=(64,), heads=(1, 2, 4, 8, 64), layers=(1, 2),
        multipliers=(64,), hidden=2048, batch=256, learning_rate=0.005,
    ),
    "rank-figure-d": RankEffort(
        lengths=(16,), seeds=5, steps=200_000, dims=(16, 64, 128, 256), heads=(1, 2, 4, 8, 16), layers=(2,),
        multipliers=(8,), hidden=2048, batch=256, learning_rate=0.005,
    ),
    "rank-positions": RankEffort(
        lengths=(16,), seeds=5, steps=200_000, dims=(64,), heads=(1, 2, 4, 8, 16, 32, 64), layers=(1, 3),
        multipliers=(1, 8), positions=("none", "additive", "concatenated"), hidden=2048, batch=256,
        learning_rate=0.005,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_its_paper_scale_has_the_published_sizes(name):
    effort = effort_of(name, Scale.PAPER)
    assert effort == PUBLISHED[name]
    train = effort.train
    assert (train.second_moment_decay, train.warmup * 20, train.train_examples) == (0.95, train.steps, 0)
    models = {cell.model for cell in made_up.study_cells(name, Scale.PAPER)}
    shared = {(m.norm, m.norm_first, m.bias, m.residual, m.attention, m.answered_at) for m in models}
    assert shared == {("unit", False, True, True, "soft", "tokens")}


def test_in_context_regression_has_the_sizes_of_garg_et_al():
    sweep = STUDIES["rank-in-context"].sweep(Scale.PAPER)
    assert {(c.model.width, c.model.layers, c.length, c.task["inputs"]) for c in sweep.cells} == {(256, 12, 41, 20)}


def plot_rows(figure: str) -> dict[tuple[int, ...], float]:
    path = Path(__file__).parents[2] / "src/headcount/studies/data/rank_figures.csv"
    names = ("layers", "multiplier", "dim", "length", "rank")
    rows = [row for row in csv.DictReader(path.read_text().splitlines()) if row["figure"] == figure]
    return {tuple(int(row[name]) for name in names): float(row["value"]) for row in rows}


@pytest.mark.parametrize(("figure", "points"), [("figure1", 6), ("figureN", 15)])
def test_published_points_are_those_of_the_file(figure, points):
    found = published_curves(figure)
    flat = {(*variant[:4], rank): value for variant, line in found.items() for rank, value in line.items()}
    assert flat == plot_rows(figure)
    assert len(flat) == points
    assert {variant.positions for variant in found} == {"none"}
    assert published_curves("no such figure") == published_curves("") == {}


@pytest.mark.parametrize(("name", "figure"), [("rank-figure1", "figure1"), ("rank-figure-n", "figureN")])
def test_every_published_point_is_measured_at_paper_scale(name, figure):
    trained = {
        (c.model.layers, c.model.multiplier, c.model.width, c.length, c.model.rank)
        for c in made_up.study_cells(name, Scale.PAPER)
    }
    assert plot_rows(figure).keys() <= trained


def test_a_curve_is_the_least_error_of_the_seeds_that_finished():
    cells = [c for c in made_up.study_cells("rank-figure1", Scale.PAPER) if c.model.layers == c.model.multiplier == 1]
    lost = [cell for cell in cells if cell.model.rank == 64 or cell.seed == 0]
    kept = [cell for cell in cells if cell not in lost]
    records = made_up.finished(kept, lambda cell: cell.seed / cell.model.rank) + made_up.lost(lost, Outcome.DIVERGED)
    (variant, line), *others = curves(records).items()
    assert others == []
    assert variant == Variant(layers=1, multiplier=1, dim=64, length=16, positions="none")
    assert line == {rank: 1 / rank for rank in (1, 2, 4, 8, 16, 32)}, "of rank 64 no seed finished"
    assert list(line) == sorted(line)
    assert curves(made_up.finished(made_up.own_cells())) == {}, "other models have no place on it"


def of(line: dict[int, float], **changes) -> Curves:
    """One curve of width 8."""
    return {Variant(**({"layers": 1, "multiplier": 1, "dim": 8, "length": 8, "positions": "none"} | changes)): line}


SHARP = {1: 0.9, 4: 0.8, 8: 0.01}
SMOOTH = {1: 0.9, 4: 0.05, 8: 0.01}
FLAT = {1: 0.5, 4: 0.5, 8: 0.5}
RISING = {1: 0.1, 4: 0.2, 8: 0.5}
IN_CONTEXT = {1: 0.5, 4: 0.2, 16: 0.05}


def named(claims, words: str):
    """Of several claims the one that says this, alone."""

    def judge(measured: Curves):
        (claim,) = [claim for claim in claims(measured) if words in claim.statement]
        return claim

    return judge


codes_claim = named(rank_positions._claims, "Position codes")
longer_claim = named(rank_figure_n._claims, "the more points")
in_context_claim = named(rank_in_context._claims, "fewer, wider heads")
of_figure_1 = partial(magnitude_claim, figure="figure1")
of_figure_n = partial(magnitude_claim, figure="figureN")


def published_times(factor: float) -> Curves:
    """Figure 1, all errors larger by a factor."""
    return {
        variant: {rank: factor * value for rank, value in line.items()}
        for variant, line in published_curves("figure1").items()
    }


JUDGED = {
    "full rank": (full_rank_claim, of(SHARP), HOLDS),
    "full rank of two ranks": (full_rank_claim, of({4: 0.8, 8: 0.01}), HOLDS),
    "full rank with other blocks": (full_rank_claim, of(FLAT) | of(SHARP, multiplier=4), HOLDS),
    "full rank: blocks of half rank do it": (full_rank_claim, of(SHARP) | of({4: 0.01}, multiplier=4), DIFFERS),
    "full rank: it falls before": (full_rank_claim, of(SMOOTH), DIFFERS),
    "full rank: it does not fall": (full_rank_claim, of(FLAT), DIFFERS),
    "full rank at one length of two": (full_rank_claim, of(SHARP) | of(FLAT, length=16), DIFFERS),
    "full rank: nothing": (full_rank_claim, {}, UNDECIDED),
    "full rank: one rank": (full_rank_claim, of({8: 0.1}), UNDECIDED),
    "full rank: other layers": (full_rank_claim, of(SHARP, layers=2), UNDECIDED),
    "full rank: not measured": (full_rank_claim, of({1: 0.9, 4: 0.01}), UNDECIDED),
    "full rank, two layers": (partial(full_rank_claim, layers=2), of(SHARP, layers=2) | of(FLAT), HOLDS),
    "more heads": (more_heads_claim, of(SHARP) | of(SMOOTH, layers=3), HOLDS),
    "more heads: within a tenth": (more_heads_claim, of({1: 0.5, 4: 0.52, 8: 0.1}), HOLDS),
    "more heads help": (more_heads_claim, of(RISING), DIFFERS),
    "more heads help once": (more_heads_claim, of(SHARP) | of({1: 0.2, 4: 0.9, 8: 0.1}, layers=3), DIFFERS),
    "more heads: nothing": (more_heads_claim, {}, UNDECIDED),
    "more heads: one rank": (more_heads_claim, of({8: 0.1}), UNDECIDED),
    "blocks": (blocks_claim, of(SHARP) | of({4: 0.5}, multiplier=8), HOLDS),
    "blocks make up for it": (blocks_claim, of(SHARP) | of({4: 0.01}, multiplier=8), DIFFERS),
    "some blocks do": (
        blocks_claim, of(SHARP) | of({4: 0.5}, multiplier=8) | of({4: 1e-3}, multiplier=64), DIFFERS,
    ),
    "blocks: one number of them": (blocks_claim, of(SHARP), UNDECIDED),
    "blocks: no half rank": (blocks_claim, of(SHARP) | of({1: 0.5, 8: 0.1}, multiplier=8), UNDECIDED),
    "blocks: deep ones only": (blocks_claim, of(SHARP, layers=3) | of(SHARP, layers=3, multiplier=8), UNDECIDED),
    "blocks: full rank not measured": (
        blocks_claim, of({2: 0.9, 4: 0.8}) | of({2: 0.9, 4: 0.8}, multiplier=8), UNDECIDED,
    ),
    "depth": (depth_claim, of(SHARP) | of({1: 0.3, 4: 0.2, 8: 0.9}, layers=3), HOLDS),
    "depth on the whole": (depth_claim, of(SHARP) | of({1: 0.3, 4: 0.8}, layers=3), HOLDS),
    "depth, but at one rank it hurts": (depth_claim, of(SHARP) | of({1: 0.3, 4: 0.95}, layers=3), DIFFERS),
    "depth gains nothing": (depth_claim, of(SHARP) | of(SHARP, layers=3), DIFFERS),
    "depth: the deepest counts": (depth_claim, of(SHARP) | of(SHARP, layers=3) | of({4: 0.1}, layers=5), HOLDS),
    "depth: nothing": (depth_claim, {}, UNDECIDED),
    "depth: one depth": (depth_claim, of(SHARP), UNDECIDED),
    "depth: full rank alone": (depth_claim, of(SHARP) | of({8: 0.001}, layers=3), UNDECIDED),
    "shorter": (
        shorter_claim,
        of(SHARP) | of({1: 0.1, 4: 0.1}, layers=2) | of(SHARP, length=64) | of(SHARP, length=64, layers=2), HOLDS,
    ),
    "longer gains as much": (
        shorter_claim,
        of(SHARP) | of({1: 0.1}, layers=2) | of(SHARP, length=64) | of({1: 0.1}, length=64, layers=2), DIFFERS,
    ),
    "short gains nothing": (
        shorter_claim, of(SHARP) | of(SHARP, layers=2) | of(SHARP, length=64) | of(SHARP, length=64, layers=2), DIFFERS,
    ),
    "shorter: one length": (shorter_claim, of(SHARP) | of({1: 0.1}, layers=2), UNDECIDED),
    "magnitude": (of_figure_1, published_times(9), HOLDS),
    "magnitude: too large": (of_figure_1, published_times(11), DIFFERS),
    "magnitude: zero has none": (of_figure_n, of({1: 1.0}, dim=64, length=4, layers=2, multiplier=64), UNDECIDED),
    "magnitude: other sizes": (of_figure_1, of(SHARP), UNDECIDED),
    "codes": (codes_claim, of(SHARP) | of({4: 0.5}, positions="additive"), HOLDS),
    "codes: twice the width": (codes_claim, of(SHARP) | of({4: 0.5, 8: 1e-3}, positions="concatenated"), HOLDS),
    "codes make up for it": (codes_claim, of(SHARP) | of({4: 0.01}, positions="additive"), DIFFERS),
    "codes: none": (codes_claim, of(SHARP), UNDECIDED),
    "codes: nothing beside them": (codes_claim, of(SHARP, positions="additive"), UNDECIDED),
    "codes: full rank not measured": (codes_claim, of({4: 0.8}) | of({4: 0.5}, positions="additive"), UNDECIDED),
    "longer": (longer_claim, of({1: 0.1}, layers=2) | of({1: 0.5}, layers=2, length=64), HOLDS),
    "longer errs less": (longer_claim, of({1: 0.5}, layers=2) | of({1: 0.1}, layers=2, length=64), DIFFERS),
    "longer: one length": (longer_claim, of(SHARP, layers=2), UNDECIDED),
    "longer: one layer": (longer_claim, of(SHARP) | of(SHARP, length=64), UNDECIDED),
    "longer: at the lowest rank of both": (
        longer_claim, of({1: 0.3, 4: 0.1}, layers=2) | of({4: 0.2}, layers=2, length=64), HOLDS,
    ),
    "in context": (in_context_claim, of(IN_CONTEXT, dim=16), HOLDS),
    "in context: lower rank does as well": (in_context_claim, of({1: 0.05, 4: 0.05, 16: 0.05}), DIFFERS),
    "in context: one depth of two": (in_context_claim, of(IN_CONTEXT) | of(RISING, layers=3), DIFFERS),
    "in context: two ranks": (in_context_claim, of({1: 0.5, 16: 0.05}), UNDECIDED),
    "in context: nothing": (in_context_claim, {}, UNDECIDED),
}  # fmt: skip


@pytest.mark.parametrize("kind", JUDGED)
def test_a_claim_holds_differs_or_is_undecided(kind):
    claim, measured, verdict = JUDGED[kind]
    found = claim(measured)
    assert found.verdict is verdict, found.evidence
    assert found.statement.endswith(".")
    assert found.evidence


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e-300, 1e300])
@pytest.mark.parametrize("kind", JUDGED)
def test_no_claim_falls_over_an_error_that_is_no_number_or_extreme(kind, bad):
    claim, measured, _ = JUDGED[kind]
    for variant, line in measured.items():
        for rank in line:
            if claim is in_context_claim and not math.isfinite(bad):
                continue
            assert claim(measured | {variant: line | {rank: bad}}).verdict in Verdict


def test_the_evidence_is_the_numbers():
    assert "80-fold (1.12-fold)" in full_rank_claim(of(SHARP)).evidence
    assert "positions none 80-fold" in full_rank_claim(of(SHARP) | of(FLAT, positions="additive")).evidence
    assert "in 1 of 2 steps" in more_heads_claim(of({1: 0.2, 4: 0.9, 8: 0.1})).evidence
    assert "from rank 4 to 1" in more_heads_claim(of({1: 0.2, 4: 0.9, 8: 0.1})).evidence
    assert "8 blocks of half rank 0.5, one of full rank 0.01" in JUDGED["blocks"][0](JUDGED["blocks"][1]).evidence
    assert "3 to 4, mean 3.46" in depth_claim(JUDGED["depth"][1]).evidence
    assert "6 of 6 points" in of_figure_1(published_times(9)).evidence
    assert "error ~ rank^-0.83" in in_context_claim(of(IN_CONTEXT, dim=16)).evidence


def theirs_where_there_are(figure: str):
    """The published error where one is printed, else one that falls sharply at full rank."""
    known = plot_rows(figure)

    def error(cell) -> float:
        model = cell.model
        place = (model.layers, model.multiplier, model.width, cell.length, model.rank)
        return known.get(place) or (0.9 / model.layers if model.rank < model.width else 0.01)

    return error


@pytest.mark.parametrize(
    ("name", "figure", "lines", "printed"),
    # Of figure N the published zeros have no place on a logarithmic axis, but have one in the table.
    [("rank-figure1", "figure1", 6, "0.015 (0.015)"), ("rank-figure-n", "figureN", 2, "0.01 (0)")],
)
def test_published_points_stand_beside_ours_at_paper_scale(name, figure, lines, printed):
    cells = [cell for cell in made_up.study_cells(name, Scale.PAPER) if cell.seed == 0]
    section = STUDIES[name].section(made_up.finished(cells, theirs_where_there_are(figure)), Scale.PAPER)
    show(section)
    drawn = [series for chart in section.charts for series in chart.series if series.kind == "published"]
    assert len(drawn) == lines
    points = {value for series in drawn for value in series.y}
    assert points == {value for value in plot_rows(figure).values() if value > 0}
    (grid,) = section.grids
    assert "published" in grid.title
    assert printed in {cell for row in grid.rows for cell in row}
    assert sum("(" in cell for row in grid.rows for cell in row[1:]) == len(plot_rows(figure))
    (magnitude,) = [claim for claim in section.claims if "order of magnitude" in claim.statement]
    assert magnitude.verdict is HOLDS


@every_rank_study
def test_smaller_scales_have_no_published_points_and_say_what_they_are(name):
    section = STUDIES[name].section(made_up.finished(made_up.study_cells(name)), Scale.SMOKE)
    assert {series.kind for chart in section.charts for series in chart.series} == {"measured"}
    assert all("published" not in grid.title and "(" not in "".join(row) for grid in section.grids for row in grid.rows)
    assert any(note.startswith("At smoke scale: width") for note in section.notes)
    assert section.headline.endswith((": holds", ": differs", ": undecided"))


@every_rank_study
def test_there_is_a_chart_for_every_number_of_layers_and_a_line_for_every_variant(name):
    records = made_up.finished(made_up.study_cells(name))
    section = STUDIES[name].section(records, Scale.SMOKE)
    found = curves(records)
    assert sum(len(chart.series) for chart in section.charts) == len(found) == len(section.grids[0].rows)
    assert len(section.charts) == len({variant.layers for variant in found})
    for chart in section.charts:
        names = [series.name for series in chart.series]
        assert len(names) == len(set(names)), "told apart"
    rows = [row[0] for row in section.grids[0].rows]
    assert len(rows) == len(set(rows))


def test_a_rank_that_is_not_there_yet_is_a_dash():
    cells = made_up.study_cells("rank-figure1")
    kept = [cell for cell in cells if cell.model.layers == 1 or cell.model.rank == 8]
    (grid,) = STUDIES["rank-figure1"].section(made_up.finished(kept), Scale.SMOKE).grids
    assert grid.columns == ("", "rank 1", "rank 4", "rank 8")
    rows = {row[0]: row[1:] for row in grid.rows}
    assert rows["3 layers, 4 blocks"][:2] == ("-", "-")
    assert "-" not in rows["1 layer, 4 blocks"]


def test_tasks_trained_in_one_sweep_come_out_as_each_alone(tmp_path):
    train = TrainSpec(steps=20, batch=8, train_examples=0, validation_examples=20)

    def of_dim(dim: int):
        spec = EncoderSpec(heads=1, rank=dim, width=dim, hidden=0, norm="none")
        task = FarthestPoint(length=3, dim=dim)
        return grid(task, heads=[1], seeds=range(2), train=train, model=lambda _: spec)

    alone, together = [of_dim(2), of_dim(3)], joined(of_dim(dim) for dim in (2, 3))
    assert together.cells == alone[0].cells + alone[1].cells
    assert [task.dim for task in together.tasks] == [2, 3]
    assert len(joined([of_dim(2), of_dim(2)]).tasks) == 1
    with Store.open_for_writing(tmp_path / "alone") as store:
        for sweep in alone:
            run_sweep(sweep, store)
        apart = store.records()
    with Store.open_for_writing(tmp_path / "together") as store:
        run_sweep(together, store)
        found = store.records()
    assert [(r.cell, r.outcome, r.metrics, r.curve) for r in found] == [
        (r.cell, r.outcome, r.metrics, r.curve) for r in apart
    ]
    assert {record.outcome for record in found} == {Outcome.FINISHED}
    assert len(found) == 4
