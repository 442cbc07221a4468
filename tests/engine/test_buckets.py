"""What is trained together: cells of one shape, whatever else is in the sweep."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.engine import spec_of, sweep
from headcount.engine.buckets import BucketShape, buckets, shape_of
from headcount.models import ClassTokenSpec

from ..helpers.sweeps import FARTHEST, TASK, TRAIN, class_token, encoder, swept

some = st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True)
axes = st.fixed_dictionaries(
    {
        "heads": some,
        "length": some,
        "seed": some,
        "learning_rate": st.lists(st.sampled_from([0.1, 0.01, 0.001]), min_size=1, max_size=2, unique=True),
    }
)


def cells_of(axes):
    return sweep(TASK, axes=axes, model=class_token, train=TRAIN).cells


def whole(cells):
    return buckets(cells, lambda shape: len(cells), exact)


def exact(shape: BucketShape, members: int, most: int) -> int:
    """As many slots as members."""
    return members


@given(axes)
def test_buckets_partition_the_cells_into_shapes(axes):
    cells = cells_of(axes)
    made = whole(cells)
    assert Counter(cell.key for bucket in made for cell in bucket.cells) == Counter(cell.key for cell in cells)
    assert len({bucket.shape for bucket in made}) == len(made)
    for bucket in made:
        for cell in bucket.cells:
            assert bucket.shape == shape_of(cell)
            assert bucket.shape.length == cell.length
            assert bucket.shape.model == spec_of(cell).padded()
            assert whole([cell])[0].shape == bucket.shape, "alone as among others"


@given(axes, st.randoms(use_true_random=False))
def test_buckets_do_not_depend_on_the_order_of_cells(axes, random):
    cells = list(cells_of(axes))
    orders = (cells, random.sample(cells, len(cells)))
    first, second = ({(b.shape, frozenset(c.key for c in b.cells)) for b in whole(order)} for order in orders)
    assert first == second


@given(axes, st.integers(0, 7))
def test_a_group_that_is_too_large_is_split_evenly(axes, most):
    cells = cells_of(axes)
    pieces = buckets(cells, lambda shape: most, exact)
    for bucket in whole(cells):
        split = [piece.cells for piece in pieces if piece.shape == bucket.shape]
        assert tuple(cell for piece in split for cell in piece) == bucket.cells
        sizes = [len(piece) for piece in split]
        assert len(set(sizes[:-1])) <= 1
        assert sizes[-1] <= sizes[0] <= max(1, most)
        assert len(sizes) == math.ceil(len(bucket.cells) / max(1, most))


def test_narrow_heads_of_one_layer_share_a_program_and_encoders_do_not():
    assert {shape_of(cell).model.heads for cell in swept(heads=(1, 2, 3, 4), length=[4]).cells} == {4}
    made = sweep(FARTHEST, axes={"heads": [1, 2]}, model=encoder, train=TRAIN)
    assert {shape_of(cell).model.heads for cell in made.cells} == {1, 2}


def test_rates_and_seeds_share_a_program_and_ranks_and_data_seeds_do_not():
    cells = swept(heads=[1], length=[4], learning_rate=[0.1, 0.2]).cells
    assert len({shape_of(cell) for cell in cells}) == 1
    cells = swept(heads=[1], length=[4], rank=[1, 2], data_seed=[0, 1]).cells
    assert len({shape_of(cell) for cell in cells}) == 4


@pytest.mark.parametrize("spec", [class_token(3, rank=2, beta=2), encoder(2, dropout=0.5, head_dim=2)])
def test_a_cell_knows_its_spec(spec):
    task = TASK if isinstance(spec, ClassTokenSpec) else FARTHEST
    (cell,) = sweep(task, axes={"heads": [spec.heads]}, model=lambda heads: spec, train=TRAIN).cells
    assert spec_of(cell) == spec
