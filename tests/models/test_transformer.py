"""Weights are drawn by name, heads can be added without a trace, and units can be folded in."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from headcount.models import POSITIONS, ClassTokenSpec, folded, in_raw_units, init, resize_heads, textbook

from ..tasks.laws import compile_quickly  # noqa: F401
from ..tolerance import assert_close, assert_trees_close, assert_trees_equal, in_double

LENGTH, DIM, OUTPUTS = 4, 3, 2
TOKENS = np.random.default_rng(0).normal(size=(LENGTH, DIM))


def make(seed=0, *, outputs=OUTPUTS, **changes):
    return init(
        ClassTokenSpec(**({"heads": 2, "head_dim": 3, "hidden": 5} | changes)),
        seed,
        length=LENGTH,
        dim=DIM,
        outputs=outputs,
    )


def combined(model):
    """One number that every answer to `TOKENS` moves."""
    answer = folded.predict(model, TOKENS)
    return jnp.sum(answer * jnp.arange(1, OUTPUTS + 1))


def adam(model, *, steps: int):
    optimiser = optax.adam(1e-2)
    state = optimiser.init(model)
    update = jax.jit(optimiser.update)
    for _ in range(steps):
        updates, state = update(jax.grad(combined)(model), state)
        model = jax.tree.map(np.add, model, updates)
    return jax.tree.map(np.asarray, model)


class TestInit:
    @pytest.mark.parametrize("positions", POSITIONS)
    def test_the_same_seed_draws_the_same_weights(self, positions):
        assert_trees_equal(make(5, positions=positions, layers=2), make(5, positions=positions, layers=2))

    @pytest.mark.parametrize("positions", POSITIONS)
    def test_another_seed_draws_others_everywhere(self, positions):
        first, second = make(0, positions=positions, layers=2), make(1, positions=positions, layers=2)
        for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
            assert not np.any(one == other)

    def test_another_name_is_another_stream(self):
        model = make(head_dim=4, hidden=8, layers=2)  # E = hidden, so that many arrays have one size
        arrays = [np.ravel(leaf) for leaf in jax.tree.leaves(model)]
        for i, one in enumerate(arrays):
            for other in arrays[:i]:
                size = min(one.size, other.size)
                scale = np.max(np.abs(other)) / np.max(np.abs(one)) if one.size == other.size else 1.0
                assert not np.allclose(one[:size] * scale, other[:size])

    def test_weights_fill_their_bounds(self):
        model = make(heads=6, head_dim=8, hidden=50, positions="concatenated", outputs=40)
        fan_in = {DIM + 8: model.encoder_in, 50: model.encoder_out, 48: model.readout_in}
        arrays = [(fan, array) for fan, linear in fan_in.items() for array in (linear.weight, linear.bias)]
        arrays += [(50, model.readout_out.weight), (50, model.readout_out.bias)]
        arrays += [(48, leaf) for leaf in jax.tree.leaves(model.attention)]
        for fan, array in arrays:
            furthest = float(np.max(np.abs(array))) * fan**0.5
            # The largest of k uniform numbers is within 10 / k of the bound but for a chance of 5e-5.
            assert 1 - 10 / array.size <= furthest <= 1 + 1e-6, (array.shape, fan, furthest)
            assert abs(float(np.mean(array))) * fan**0.5 < 4 / (3 * array.size) ** 0.5

    def test_class_token_and_positions_are_small_normals(self):
        model = init(ClassTokenSpec(heads=8, positions="additive"), 0, length=50, dim=DIM, outputs=1)
        assert model.position_table is not None
        assert model.position_table.shape == (50, 64)
        assert float(np.std(model.position_table)) == pytest.approx(0.1, rel=0.1)
        assert float(np.std(model.class_token)) == pytest.approx(0.1, rel=0.4)

    def test_everything_is_float32(self):
        assert {str(leaf.dtype) for leaf in jax.tree.leaves(make(positions="additive"))} == {"float32"}


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("positions", POSITIONS)
class TestResizeHeads:
    def test_added_heads_change_nothing_and_learn_nothing(self, positions, layers):
        small = make(heads=1, positions=positions, layers=layers)
        added = jax.tree.leaves(self._added(small, 2))
        with jax.enable_x64(True):
            small, large = in_double(small), in_double(resize_heads(small, 2))
            want, got = folded.predict(small, TOKENS), folded.predict(large, TOKENS)
            gradient = jax.tree.map(np.asarray, jax.grad(combined)(large))
            trained = adam(large, steps=4)
        assert_close(got, want)
        for before, slope, after, new in zip(
            *(jax.tree.leaves(tree) for tree in (large, gradient, trained)), added, strict=True
        ):
            assert np.all(slope[new] == 0)
            assert np.all(after[new] == 0)
            assert np.any(before[~new] != after[~new])

    def test_cropping_undoes_growing(self, positions, layers):
        model = make(positions=positions, layers=layers)
        assert_trees_equal(resize_heads(resize_heads(model, 5), 2), model)
        assert_trees_equal(resize_heads(model, 2), model)

    def test_a_resized_model_has_the_shapes_of_its_spec(self, positions, layers):
        for heads in (1, 4):
            resized = resize_heads(make(positions=positions, layers=layers), heads)
            drawn = make(positions=positions, layers=layers, heads=heads)
            assert jax.tree.map(np.shape, resized) == jax.tree.map(np.shape, drawn)

    @staticmethod
    def _added(small, heads):
        """True at every weight that the small model lacks."""
        return jax.tree.map(lambda leaf: leaf == 0, resize_heads(jax.tree.map(np.ones_like, small), heads))


def test_cropping_keeps_the_first_heads():
    model = make(heads=3)
    cropped = resize_heads(model, 1)
    assert_trees_equal(cropped.attention[0].query, model.attention[0].query[:1, :, :3])
    assert_trees_equal(cropped.attention[0].output, model.attention[0].output[:3, :1])
    assert_trees_equal(cropped.class_token, model.class_token[:3])


@pytest.mark.parametrize("predict", [folded.predict, textbook.predict], ids=["folded", "textbook"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_raw_units(positions, predict):
    token_mean, token_scale = np.array([5.0, -2.0, 0.0]), np.array([3.0, 0.5, 10.0])
    target_mean, target_scale = np.array([100.0, -1.0]), np.array([0.01, 7.0])
    raw_tokens = TOKENS * token_scale + token_mean
    with jax.enable_x64(True):
        model = in_double(make(positions=positions, layers=2))
        raw = in_raw_units(model, token_mean, token_scale, target_mean, target_scale)
        assert_close(predict(raw, raw_tokens), predict(model, TOKENS) * target_scale + target_mean)
    assert jax.tree.map(np.shape, raw) == jax.tree.map(np.shape, model)


@pytest.mark.parametrize("positions", POSITIONS)
def test_raw_units_of_jax_weights_are_those_of_numpy_weights(positions):
    model = make(positions=positions)
    units = [np.array(v, np.float32) for v in ([5, -2, 0], [3, 0.5, 10], [100, -1], [0.01, 7])]
    from_jax = in_raw_units(jax.tree.map(jnp.asarray, model), *(jnp.asarray(unit) for unit in units))
    assert_trees_close(from_jax, in_raw_units(model, *units))
