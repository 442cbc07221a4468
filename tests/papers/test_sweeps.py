"""What a study trains: its grid is the published one, its scales grow, its models are the paper's."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from headcount.engine import plan_sweep
from headcount.models import spec_from_dict
from headcount.papers.base import Scale
from headcount.papers.head_count.tables import ALL_LENGTHS, TableStudy
from headcount.papers.published import published_points
from headcount.papers.rank.figures import RankEffort
from headcount.papers.rank.norms import RECIPES
from headcount.papers.real_data import cifar, marco, passages
from headcount.papers.real_data.base import LabelledEffort
from headcount.papers.registry import REAL_DATA, STUDIES

from ..helpers import fabricated

SCALES = (Scale.SMOKE, Scale.LAPTOP, Scale.PAPER)
every_study = pytest.mark.parametrize("study", (STUDIES | REAL_DATA).values(), ids=STUDIES | REAL_DATA)
FIRST_PAPER = ("table2", "table3", "table4", "table5", "figure1b", "figure2e", "figure3", "figure4")
of_the_first_paper = pytest.mark.parametrize("study", [STUDIES[name] for name in FIRST_PAPER])
every_rank_study = pytest.mark.parametrize("study", [each for name, each in STUDIES.items() if name[:5] == "rank-"])
TABLES = {name: known for name, known in STUDIES.items() if isinstance(known, TableStudy)}
every_table = pytest.mark.parametrize("study", TABLES.values(), ids=TABLES)


@pytest.fixture(scope="module")
def sweep_of():
    """Every sweep is made once."""
    made = {}

    def sweep(study, scale):
        key = study.trained_by, scale
        if key not in made:
            made[key] = study.sweep(scale)
        return made[key]

    return sweep


LARGE = {"depth", "architectures", "table2-draws"}
"""Studies whose sweeps join a hundred parts, or have thousands of cells."""


@pytest.mark.parametrize(
    "study",
    [
        pytest.param(each, marks=pytest.mark.slow if name in LARGE else (), id=name)
        for name, each in (STUDIES | REAL_DATA).items()
    ],
)
def test_its_experiment_is_the_one_its_sections_are_tested_on(study, sweep_of):
    for scale in SCALES:
        trained, fabricated_one = sweep_of(study, scale).experiment, fabricated.study_sweep(study, scale).experiment
        assert trained.axes == fabricated_one.axes
        assert sorted(map(str, trained.places.values())) == sorted(map(str, fabricated_one.places.values()))
        assert (trained.study, trained.scale) == (study.trained_by, scale.value)
        assert len(trained.places) == len(sweep_of(study, scale).cells), "cells are distinct"


@every_study
def test_its_scales_grow(study, sweep_of):
    sweeps = [sweep_of(study, scale) for scale in SCALES]
    examples = [sum(cell.train.steps * cell.train.batch for cell in sweep.cells) for sweep in sweeps]
    assert examples == sorted(set(examples)), "training on more"
    for smaller, larger in itertools.pairwise(study.efforts[scale] for scale in SCALES):
        assert max(smaller.lengths) <= max(larger.lengths)
        assert smaller.steps < larger.steps


@of_the_first_paper
def test_its_smaller_grids_are_parts_of_the_larger(study, sweep_of):
    for smaller, larger in itertools.pairwise(study.efforts[scale] for scale in SCALES):
        assert set(smaller.lengths) <= set(larger.lengths)
        assert smaller.seeds <= larger.seeds
    paper = sweep_of(study, Scale.PAPER)
    assert len(paper.experiment.values("seed")) >= 10
    assert max(paper.experiment.values("length")) == 128
    assert {(cell.train.train_examples, cell.train.validation_examples) for cell in paper.cells} == {(8000, 2000)}


@every_table
def test_a_tables_paper_grid_covers_every_published_cell(study, sweep_of):
    paper, smoke = (sweep_of(study, scale).experiment for scale in (Scale.PAPER, Scale.SMOKE))
    assert paper.values("heads") == study.published.values("heads")
    assert paper.values("length") == ALL_LENGTHS == study.published.values("length")
    assert np.isfinite(study.published.errors).all()
    assert {study.transition - 1, study.transition, study.transition + 1} <= set(smoke.values("heads"))


def test_the_models_of_the_tables_are_the_published_ones(sweep_of):
    shapes = {
        name: {
            (m["heads"], m["head_dim"], m["hidden"], m["layers"])
            for m in (spec_from_dict(cell.model).__dict__ for cell in sweep_of(study, Scale.PAPER).cells)
        }
        for name, study in TABLES.items()
    }
    assert shapes["table2"] == {(h, 8, 32, 1) for h in range(1, 6)}
    assert shapes["table3"] == {(1, 32, 32, 1), (2, 16, 32, 1), (3, 11, 32, 1), (4, 8, 32, 1), (5, 7, 32, 1)}
    assert shapes["table5"] == {(h, n, hidden, 2) for h, n, hidden, _ in shapes["table3"]}
    assert {cell.task["intrinsic_dim"] for cell in sweep_of(TABLES["table4"], Scale.PAPER).cells} == {3}


def test_figure_4_holds_figure_1b_at_paper_scale(sweep_of):
    small, large = (sweep_of(STUDIES[name], Scale.PAPER).experiment.places for name in ("figure1b", "figure4"))
    assert small.keys() < large.keys()


@every_rank_study
def test_every_rank_has_the_same_number_of_parameters(study, sweep_of):
    """Exactly, biases included: rank x heads is the width that is projected, and a head carries as much as it compares.
    A concatenated position code doubles that width."""
    for scale in SCALES:
        sweep = sweep_of(study, scale)
        counts: dict[tuple, set[int]] = {}
        for cell in sweep.cells:
            at, model = sweep.experiment.coordinates(cell.key), spec_from_dict(cell.model)
            assert model.rank == model.head_dim == at["rank"]
            assert model.rank * model.heads == at["dim"] * (2 if at["positions"] == "concatenated" else 1)
            others = tuple(value for axis, value in at.items() if axis not in ("rank", "seed"))
            count = model.parameters(length=cell.length, dim=model.width, outputs=model.width)
            counts.setdefault(others, set()).add(count)
            places = [RECIPES[at["recipe"]]["norm_first"]] if "recipe" in at else [study.efforts[scale].norm_first]
            assert (model.hidden, [model.norm_first]) == (study.efforts[scale].hidden, places)
        assert {len(several) for several in counts.values()} == {1}
        answered = {task.answered_at for task in sweep.tasks}
        assert answered == {spec_from_dict(cell.model).answered_at for cell in sweep.cells}


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
def test_its_paper_scale_has_the_published_sizes(name, sweep_of):
    study = STUDIES[name]
    effort = study.efforts[Scale.PAPER]
    assert effort == PUBLISHED[name]
    train = effort.train
    assert (train.second_moment_decay, train.warmup * 20, train.train_examples) == (0.95, train.steps, 0)
    models = [spec_from_dict(cell.model) for cell in sweep_of(study, Scale.PAPER).cells]
    shared = {(m.norm, m.norm_first, m.bias, m.residual, m.attention, m.answered_at) for m in models}
    assert shared == {("unit", False, True, True, "soft", "tokens")}


def test_in_context_regression_has_the_sizes_of_garg_et_al(sweep_of):
    sweep = sweep_of(STUDIES["rank-in-context"], Scale.PAPER)
    assert {sweep.experiment.coordinates(cell.key)["dim"] for cell in sweep.cells} == {256}
    assert {(cell.model["layers"], cell.length, cell.task["inputs"]) for cell in sweep.cells} == {(12, 41, 20)}


@pytest.mark.parametrize(("name", "figure"), [("rank-figure1", "figure1"), ("rank-figure-n", "figureN")])
def test_every_published_point_is_measured_at_paper_scale(name, figure, sweep_of):
    experiment = sweep_of(STUDIES[name], Scale.PAPER).experiment
    trained = [experiment.coordinates(key) for key in experiment.places]
    for at, error in published_points(figure).cells():
        assert np.isnan(error) or any(at.items() <= place.items() for place in trained)


LABELLED_GRIDS = {
    "cifar": ((1, 2, 4, 8, 10, 11, 12, 13, 14, 16, 20, 24), (65, 145, 257, 577, 1025), cifar),
    "marco": ((1, 2, 4, 6, 8, 10, 12, 14, 16), (8, 16, 32, 64), passages),
}
LABELLED_GRIDS["cifar-places"] = LABELLED_GRIDS["cifar"]
LABELLED_GRIDS |= dict.fromkeys(("marco-epochs", "marco-queries"), LABELLED_GRIDS["marco"])


@pytest.mark.parametrize("name", REAL_DATA)
def test_the_paper_scale_of_real_data_is_the_published_grid(name, sweep_of):
    heads, lengths, module = LABELLED_GRIDS[name]
    study, experiment = REAL_DATA[name], sweep_of(REAL_DATA[name], Scale.PAPER).experiment
    assert experiment.values("heads") == heads
    assert tuple(map(study.printed, experiment.values("length"))) == lengths
    assert experiment.values("seed") == tuple(range(5))
    for table in (module.TRAINING, module.VALIDATION):
        assert set(table.values("heads")) <= set(heads)
        assert table.values("length") == lengths


@pytest.mark.parametrize("scale", Scale)
def test_models_of_real_data_are_the_published_ones(scale, sweep_of):
    passage_studies = ((name, 2, 32, 0.0) for name in ("marco", "marco-epochs", "marco-queries"))
    for name, layers, head_dim, dropout in (("cifar", 4, 16, 0.1), *passage_studies):
        sweep = sweep_of(REAL_DATA[name], scale)
        for cell in sweep.cells:
            model, at = spec_from_dict(cell.model), sweep.experiment.coordinates(cell.key)
            assert (model.layers, model.head_dim, model.dropout) == (layers, head_dim, dropout)
            assert (model.heads, model.width) == (at["heads"], head_dim * at["heads"])
            usual = "sequence" if name == "cifar" else "tokens"
            places = {"candidates": "tokens", "pairs": "query"}.get(at.get("layout"), usual)
            assert model.answered_at == places
            assert cell.train.warmup == cell.train.steps // 20


@pytest.mark.parametrize("name", REAL_DATA)
def test_the_cost_of_real_data_is_known_before_the_data(name, sweep_of):
    sweep = sweep_of(REAL_DATA[name], Scale.LAPTOP)
    plan = plan_sweep(sweep)
    assert (plan.cells, plan.settled) == (len(sweep.cells), 0)
    assert plan.seconds > 0
    assert plan.bytes > 0


def test_a_patch_of_8_pixels_has_a_quarter_of_the_tokens(sweep_of):
    coarse = replace(REAL_DATA["cifar"], patch=8).sweep(Scale.SMOKE)
    fine = sweep_of(REAL_DATA["cifar"], Scale.SMOKE)
    assert [4 * length for length in coarse.experiment.values("length")] == list(fine.experiment.values("length"))
    assert coarse.experiment.identity != fine.experiment.identity


def test_epochs_become_steps_by_the_number_of_queries():
    effort = LabelledEffort(
        lengths=(8,), heads=(1,), seeds=1, steps=7, batch=10, train_examples=500, validation_examples=20
    )
    assert effort.for_examples(100) is effort
    counted = replace(effort, epochs=3)
    assert [counted.for_examples(count).steps for count in (100, 205, 500, 9999)] == [30, 61, 150, 150]
    study = marco.STUDY
    for task, written in zip(
        study.stand_ins(), (study.efforts[Scale.PAPER], study.efforts[Scale.PAPER].pairs), strict=True
    ):
        assert marco.effort_of(study.efforts[Scale.PAPER], task).steps == written.steps, (
            "as written down for the published 28,000"
        )
        fewer = marco.effort_of(study.efforts[Scale.PAPER], replace(task, count=1000))
        assert fewer.steps == written.epochs * 800 // written.batch, "a fifth is set apart"
    assert cifar.STUDY.efforts[Scale.PAPER].steps == 60 * 50_000 // 256
