"""One place of defaults: what is tried on a task, whoever asks."""

from dataclasses import replace

import numpy as np
import pytest

from headcount import recipes
from headcount.engine import sweep
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.request import Request
from headcount.store import TrainSpec
from headcount.tasks import PRESETS, ArrayTask, max_plus_min, preset, sum_of_maxima

from .helpers.refusals import refused
from .helpers.sweeps import Numbers

RNG = np.random.default_rng(0)
ARRAYS = ArrayTask(RNG.normal(size=(100, 6, 2)), RNG.normal(size=100), name="mine")
LABELLED = {layout: Numbers(layout) for layout in ("classes", "candidates", "pairs")}
TASKS = ("max-plus-min", "farthest-point", "classes")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_measured_with_nothing_said(name):
    task = preset(name)
    made = Request(task=task, heads=[1, 2], seeds=recipes.SEEDS).planned
    lengths = recipes.lengths_for(task)
    assert len(made.cells) == 2 * len(lengths) * recipes.SEEDS
    assert made.experiment.values("length") == lengths
    for heads in (1, 2):
        spec = recipes.model_for(task)(heads)
        assert (spec.heads, spec.answered_at) == (heads, task.answered_at)
        if task.answered_at == "sequence":
            assert spec == ClassTokenSpec(heads=heads, positions="additive" if task.uses_positions else "none")
            assert recipes.train_for(task) == TrainSpec()
        else:
            assert isinstance(spec, EncoderSpec)
            assert (spec.width, spec.rank, spec.hidden) == (task.dim, task.dim, recipes.ENCODER_HIDDEN)
            assert recipes.train_for(task) == TrainSpec(train_examples=0), "a stream"


@pytest.mark.parametrize("layout", LABELLED)
def test_data_with_labels_gets_encoders_that_grow_with_their_heads(layout):
    task = LABELLED[layout]
    one, three = (recipes.model_for(task)(heads) for heads in (1, 3))
    head_dim, dropout = (16, 0.1) if layout == "classes" else (32, 0.0)
    assert (three.layers, three.head_dim, three.rank, three.dropout) == (2, head_dim, head_dim, dropout)
    assert (three.width, three.hidden) == (3 * head_dim, 12 * head_dim)
    assert (three.answered_at, three.masks_padding, three.positions) == (task.answered_at, False, "none")
    assert (three.norm, three.norm_first, three.final_norm, three.activation) == ("layer", True, True, "gelu")
    assert replace(one, heads=3, width=three.width, hidden=three.hidden) == three, "head counts are one family"
    assert recipes.train_for(task) == recipes.LABELLED_TRAIN
    assert recipes.LABELLED_TRAIN.train_examples >= 10**6, "all there are"
    made = Request(task=task, seeds=recipes.SEEDS).planned
    assert made.experiment.values("heads") == recipes.HEADS


def test_a_rank_keeps_the_head_dim_of_models_on_labels():
    """`ranks=[4]` once trained heads of 4 numbers from Python and of 16 from the command line."""
    for heads in (1, 2):
        spec = recipes.model_for(LABELLED["classes"])(heads, rank=4)
        assert (spec.rank, spec.head_dim, spec.width) == (4, 16, 16 * heads)
    assert recipes.model_for(LABELLED["classes"], head_dim=8)(2, rank=4).head_dim == 8
    assert recipes.model_for(max_plus_min())(2, rank=4) == ClassTokenSpec(heads=2, rank=4, head_dim=8)


def test_lengths_are_three_where_the_task_has_every_length_and_else_its_own():
    assert recipes.lengths_for(max_plus_min(length=5)) == (8, 16, 32)
    assert recipes.lengths_for(ARRAYS) == (6,)
    assert recipes.lengths_for(LABELLED["pairs"]) == (4,)


def test_stored_arrays_are_no_stream():
    assert recipes.train_for(ARRAYS) == TrainSpec()
    assert recipes.model_for(ARRAYS)(2) == ClassTokenSpec(heads=2, positions=recipes.model_for(ARRAYS)(1).positions)


def test_arrays_get_models_that_read_what_they_hold():
    ids, mask = RNG.integers(0, 5, (100, 6)), np.arange(6) < 2 + np.arange(100)[:, None] % 5
    task = ArrayTask(ids, ARRAYS.y, mask=mask)
    assert recipes.model_for(task)(2) == ClassTokenSpec(heads=2, positions="additive", masks_padding=True, vocabulary=5)
    asked = ArrayTask(ids, ARRAYS.y, mask=mask, answered_at="query")
    one, three = (recipes.model_for(asked)(heads) for heads in (1, 3))
    assert (one.vocabulary, one.masks_nan, one.answered_at, one.standardises) == (5, True, "query", True)
    assert replace(one, heads=3) == three, "head counts differ in nothing else"
    assert recipes.model_for(asked, head_dim=4)(2).rank == 4
    at_tokens = ArrayTask(ARRAYS.x, ARRAYS.x, answered_at="tokens")
    assert recipes.model_for(at_tokens)(2).masks_padding is False
    for each in (task, asked, at_tokens):
        assert recipes.train_for(each) == recipes.TRAIN
        sweep(each, axes={"heads": [1]}, model=recipes.model_for(each), train=recipes.TRAIN)
    for each, word in ((task, "vocabulary=5"), (ArrayTask(ARRAYS.x, ARRAYS.y, mask=mask), "masks_padding")):
        with refused(word):
            plain = lambda heads: ClassTokenSpec(heads=heads, masks_padding=word == "vocabulary=5")  # noqa: B023, E731
            sweep(each, axes={"heads": [1]}, model=plain, train=recipes.TRAIN)


def test_labels_of_arrays_are_learned_by_the_models_of_numbers():
    labelled = ArrayTask(ARRAYS.x, ARRAYS.y[:, 0] > 0, labels=True)
    assert recipes.train_for(labelled) == recipes.TRAIN
    assert recipes.model_for(labelled)(2) == recipes.model_for(ARRAYS)(2)
    made = Request(task=labelled, seeds=recipes.SEEDS).planned
    assert made.experiment.values("heads") == recipes.HEADS


def test_positions_are_encoded_where_they_matter():
    halves = sum_of_maxima(intrinsic_dim=2, windows=[(0.0, 0.5), (0.5, 1.0)])
    for given in (None, "auto"):
        assert recipes.model_for(sum_of_maxima(), positions=given)(1).positions == "none"
        assert recipes.model_for(halves, positions=given)(1).positions == "additive"
    assert recipes.model_for(halves, positions="none")(1).positions == "none"


@pytest.mark.parametrize(
    ("name", "value", "tasks"),
    [
        ("head_dim", 4, ("max-plus-min", "farthest-point", "classes")),
        ("hidden", 7, ("max-plus-min", "farthest-point")),
        ("layers", 3, ("max-plus-min", "farthest-point", "classes")),
        ("beta", 2.0, ("max-plus-min",)),
        ("multiplier", 2, ("farthest-point",)),
    ],
)
def test_an_option_changes_that_field_or_is_refused(name, value, tasks):
    for each in TASKS:
        task = LABELLED[each] if each in LABELLED else preset(each)
        if each in tasks:
            assert getattr(recipes.model_for(task, **{name: value})(2), name) == value
        else:
            with refused(name, task.name) as caught:
                recipes.model_for(task, **{name: value})
            assert (caught.value.what, caught.value.given) == (name, value)


def test_a_total_dim_is_shared_by_the_heads():
    of_class_token, of_encoder = (
        recipes.model_for(preset(name), total_dim=8) for name in ("average", "farthest-point")
    )
    assert [of_class_token(heads).head_dim for heads in (1, 2, 4)] == [8, 4, 2]
    assert [of_encoder(heads).rank for heads in (1, 2, 4)] == [8, 4, 2]
    with refused("head_dim", "total_dim"):
        recipes.model_for(max_plus_min(), head_dim=4, total_dim=8)
    with refused("rank", "total_dim"):
        of_class_token(2, rank=4)
    with refused("3", "8"):
        of_class_token(3)
    with refused("total_dim"):
        recipes.model_for(LABELLED["classes"], total_dim=8)


def test_a_width_above_the_one_that_is_projected_is_refused_by_the_name_it_was_given_by():
    task = ArrayTask(ARRAYS.x, ARRAYS.y, answered_at="query", name="mine")
    model = recipes.model_for(task, head_dim=48)
    with refused("head_dim", "at most", "32", "48") as caught:
        model(1)
    assert caught.value.what == "head_dim"


def test_an_encoder_of_arrays_is_as_wide_as_what_its_heads_share():
    task = ArrayTask(ARRAYS.x, ARRAYS.y, answered_at="query", name="mine")
    wide, narrow = (recipes.model_for(task, total_dim=total) for total in (48, 16))
    assert [(wide(heads).width, wide(heads).rank) for heads in (1, 4)] == [(48, 48), (48, 12)]
    assert (narrow(2).width, narrow(2).rank) == (32, 8)


def test_training_is_the_recipe_s_but_for_what_is_said():
    assert recipes.train_for(max_plus_min(), steps=7, batch=None) == TrainSpec(steps=7)
    assert recipes.train_for(LABELLED["classes"], steps=7) == replace(recipes.LABELLED_TRAIN, steps=7)


def test_axes_name_only_what_is_varied():
    task = max_plus_min()
    assert Request(task=task, seeds=2).planned.experiment.axes == ("heads", "length", "seed")
    asked = Request(task=task, heads=[2], ranks=[1, 4], lengths=[5], seeds=2, learning_rates=[0.1, 0.2])
    chosen = {"heads": (2,), "rank": (1, 4), "length": (5,), "learning_rate": (0.1, 0.2), "seed": (0, 1)}
    experiment = asked.planned.experiment
    assert {axis: experiment.values(axis) for axis in experiment.axes} == chosen
    with refused("seeds", "0") as caught:
        _ = Request(task=task, seeds=0).planned
    assert (caught.value.what, caught.value.given) == ("seeds", 0)
