"""From axes to cells to buckets: what is in a sweep, and what is trained together."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._errors import InputError
from headcount.engine import grid
from headcount.engine.sweep import buckets, default_model, default_train, shape_of
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.store import TrainSpec
from headcount.tasks import (
    ArrayTask,
    FarthestPoint,
    InContextRegression,
    NearestNeighbour,
    max_plus_min,
    sum_of_maxima,
)

TASK = max_plus_min(length=8)
FARTHEST, NEAREST = FarthestPoint(length=4, dim=3), NearestNeighbour(length=5, dim=3)
quick = settings(deadline=None, max_examples=30)
some = st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True)
axes = st.fixed_dictionaries(
    {
        "heads": some,
        "lengths": some,
        "seeds": some,
        "learning_rates": st.lists(st.sampled_from([0.1, 0.01, 0.001]), min_size=1, max_size=2, unique=True),
    }
)


def test_the_grid_is_every_combination_lengths_slowest_and_seeds_fastest():
    sweep = grid(TASK, heads=[2, 1], lengths=[8, 4], seeds=[5, 3], learning_rates=[0.1, 0.01])
    found = [(c.length, c.model.heads, c.train.learning_rate, c.seed) for c in sweep.cells]
    assert found == [(t, h, rate, s) for t in (8, 4) for h in (2, 1) for rate in (0.1, 0.01) for s in (5, 3)]
    assert len({cell.key for cell in sweep.cells}) == 16


def test_what_is_not_said_is_one_length_one_rate_and_four_seeds():
    train = TrainSpec(learning_rate=0.5)
    cells = grid(TASK, heads=[1], train=train).cells
    assert [cell.seed for cell in cells] == [0, 1, 2, 3]
    assert {(cell.length, cell.train) for cell in cells} == {(8, train)}


def encoder(heads: int, **changes) -> EncoderSpec:
    return EncoderSpec(**({"heads": heads, "rank": 3, "width": 3, "hidden": 4} | changes))


def test_ranks_are_an_axis_between_heads_and_rates():
    axes = {"heads": [2, 1], "ranks": [1, 3, 2], "learning_rates": [0.1, 0.01], "seeds": [5, 3]}
    cells = grid(FARTHEST, model=encoder, lengths=[4, 3], **axes).cells
    found = [(c.length, c.model.heads, c.model.rank, c.train.learning_rate, c.seed) for c in cells]
    assert found == [
        (t, h, r, rate, s) for t in (4, 3) for h in (2, 1) for r in (1, 3, 2) for rate in (0.1, 0.01) for s in (5, 3)
    ]
    assert all(cell.model == encoder(cell.model.heads, rank=cell.model.rank) for cell in cells)
    assert len({cell.key for cell in cells}) == len(cells) == 48


def test_ranks_are_set_on_class_token_transformers_too():
    cells = grid(TASK, heads=[1, 2], ranks=[1, 8], seeds=[0]).cells
    assert [cell.model for cell in cells] == [ClassTokenSpec(heads=h, rank=r) for h in (1, 2) for r in (1, 8)]
    assert {shape_of(cell).model.rank for cell in cells} == {1, 8}, "another rank is another program"


def test_without_ranks_every_spec_keeps_its_own():
    cells = grid(FARTHEST, heads=[1, 3], seeds=[0], model=lambda heads: encoder(heads, rank=heads)).cells
    assert [(cell.model.heads, cell.model.rank) for cell in cells] == [(1, 1), (3, 3)]


def test_half_precision_is_for_encoders():
    half = TrainSpec(precision="bfloat16")
    with pytest.raises(InputError, match=r"float32.*got bfloat16"):
        grid(TASK, heads=[1], train=half)
    assert {cell.train.precision for cell in grid(NEAREST, heads=[1], train=half).cells} == {"bfloat16"}


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([1, 2, 1], r"ranks must not repeat a value, got \[1, 2, 1\]"),
        ([], "ranks must name at least one value"),
        ([0], "rank must be a whole number of at least 1, got 0"),
        ([1, 4], "rank must be at most the width that is projected, 3; got 4"),
    ],
)
def test_ranks_that_cannot_be_right_are_refused(ranks, message):
    with pytest.raises(InputError, match=message):
        grid(FARTHEST, heads=[1], ranks=ranks, model=encoder)


def test_seeds_may_come_from_a_generator():
    assert [cell.seed for cell in grid(TASK, heads=[1], seeds=(s for s in (4, 2))).cells] == [4, 2]


@pytest.mark.parametrize("name", ["heads", "lengths", "seeds", "learning_rates"])
@pytest.mark.parametrize(("values", "message"), [([1, 2, 1], "must not repeat"), ([], "at least one value")])
def test_repeated_and_missing_values_are_refused(name, values, message):
    values = [float(v) for v in values] if name == "learning_rates" else values
    with pytest.raises(InputError, match=f"{name} {message}|{name} must name {message}"):
        grid(TASK, **({"heads": [1]} | {name: values}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"heads": [0]}, "heads must be a whole number of at least 1, got 0"),
        ({"lengths": [8, 0]}, "length must be a whole number of at least 1, got 0"),
        ({"learning_rates": [-0.1]}, "learning_rate must be positive and finite, got -0.1"),
        ({"seeds": [-1]}, "seed"),
    ],
)
def test_a_value_that_cannot_be_trained_is_refused_before_training(wrong, message):
    with pytest.raises(InputError, match=message):
        grid(TASK, **({"heads": [1]} | wrong))


def test_a_length_the_task_cannot_have_is_refused_before_training():
    generator = np.random.default_rng(0)
    stored = ArrayTask(generator.normal(size=(100, 6, 2)), generator.normal(size=100))
    with pytest.raises(InputError, match="no rule for length 4"):
        grid(stored, heads=[1], lengths=[6, 4])
    with pytest.raises(InputError, match="at least a quarter"):
        grid(max_plus_min(windows=[(0.0, 0.26), (0.26, 1.0)]), heads=[1], lengths=[16, 5])


def test_a_cell_left_out_keeps_its_reason():
    def too_long_for_one_head(cell):
        return "one head saturates" if cell.model.heads == 1 and cell.length > 8 else None

    sweep = grid(TASK, heads=[1, 2], lengths=[8, 16], seeds=[0, 1], skip=too_long_for_one_head)
    assert [(s.cell.model.heads, s.cell.length, s.cell.seed, s.reason) for s in sweep.skipped] == [
        (1, 16, 0, "one head saturates"),
        (1, 16, 1, "one head saturates"),
    ]
    assert len(sweep.cells) == 6
    assert not {cell.key for cell in sweep.cells} & {skipped.cell.key for skipped in sweep.skipped}


def test_places_are_encoded_where_they_matter():
    whole, halves = sum_of_maxima(intrinsic_dim=2), sum_of_maxima(intrinsic_dim=2, windows=[(0.0, 0.5), (0.5, 1.0)])
    assert grid(whole, heads=[1]).cells[0].model == ClassTokenSpec(heads=1, positions="none")
    assert grid(halves, heads=[1]).cells[0].model == ClassTokenSpec(heads=1, positions="additive")


def test_what_is_tried_where_nothing_is_said():
    assert default_model(TASK)(3) == ClassTokenSpec(heads=3)
    assert default_train(TASK) == TrainSpec()
    for task in (FARTHEST, NEAREST, InContextRegression(inputs=2)):
        model = default_model(task)(2)
        sizes = {"heads": 2, "rank": 3, "width": 3, "hidden": 256}
        assert model == EncoderSpec(**sizes, norm_first=True, answered_at=task.answered_at)
        assert default_train(task) == TrainSpec(train_examples=0)
        assert {(cell.model, cell.train) for cell in grid(task, heads=[2]).cells} == {(model, default_train(task))}


def test_stored_examples_are_no_stream():
    generator = np.random.default_rng(0)
    stored = ArrayTask(generator.normal(size=(100, 6, 2)), generator.normal(size=100), name="mine")
    assert default_train(stored) == TrainSpec()
    with pytest.raises(InputError, match=r"mine is stored examples, which cannot be drawn afresh; .* got 0"):
        grid(stored, heads=[1], train=TrainSpec(train_examples=0))


@pytest.mark.parametrize(
    ("task", "model", "takes", "gives"),
    [
        (FARTHEST, lambda heads: ClassTokenSpec(heads=heads), "tokens", "sequence"),
        (NEAREST, lambda heads: ClassTokenSpec(heads=heads), "query", "sequence"),
        (NEAREST, encoder, "query", "tokens"),
        (FARTHEST, lambda heads: encoder(heads, answered_at="query"), "tokens", "query"),
        (TASK, encoder, "sequence", "tokens"),
    ],
)
def test_a_model_that_answers_elsewhere_is_refused(task, model, takes, gives):
    with pytest.raises(InputError, match=f'{task.name} is answered at "{takes}", the model at "{gives}"; take an'):
        grid(task, heads=[1], model=model)


def test_an_encoder_may_answer_for_the_sequence():
    (cell,) = grid(TASK, heads=[1], seeds=[0], model=lambda heads: encoder(heads, answered_at="sequence")).cells
    assert cell.model.answered_at == "sequence"


@quick
@given(axes)
def test_buckets_partition_the_cells_into_shapes(axes):
    cells = grid(TASK, **axes).cells
    made = buckets(cells)
    assert Counter(cell.key for bucket in made for cell in bucket.cells) == Counter(cell.key for cell in cells)
    assert len({bucket.shape for bucket in made}) == len(made)
    for bucket in made:
        for cell in bucket.cells:
            assert bucket.shape == shape_of(cell)
            assert bucket.shape.length == cell.length
            assert bucket.shape.model == cell.model.padded()


@quick
@given(axes, st.randoms(use_true_random=False))
def test_buckets_do_not_depend_on_the_order_of_cells(axes, random):
    cells = list(grid(TASK, **axes).cells)
    orders = (cells, random.sample(cells, len(cells)))
    first, second = ({(b.shape, frozenset(c.key for c in b.cells)) for b in buckets(order)} for order in orders)
    assert first == second


@quick
@given(axes)
def test_a_cell_has_its_shape_whatever_else_is_in_the_sweep(axes):
    cells = grid(TASK, **axes).cells
    whole = {cell.key: bucket.shape for bucket in buckets(cells) for cell in bucket.cells}
    assert {cell.key: buckets([cell])[0].shape for cell in cells} == whole


@quick
@given(axes, st.integers(0, 7))
def test_a_group_that_is_too_large_is_split_evenly(axes, most):
    cells = grid(TASK, **axes).cells
    pieces = buckets(cells, lambda shape: most)
    for whole in buckets(cells):
        split = [bucket.cells for bucket in pieces if bucket.shape == whole.shape]
        assert tuple(cell for piece in split for cell in piece) == whole.cells
        sizes = [len(piece) for piece in split]
        assert len(set(sizes[:-1])) <= 1
        assert sizes[-1] <= sizes[0] <= max(1, most)
        assert len(sizes) == math.ceil(len(whole.cells) / max(1, most))
