"""The folded layer is the layer: its ends enclose the exact products, and its heads read what the textbook's do."""

from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount._choices import POSITIONS
from headcount._precision import in_double
from headcount.errors import InputError
from headcount.models import ClassTokenSpec
from headcount.theory.collisions.heads import coordinates_read, fold_heads, stack_heads
from headcount.theory.collisions.observables import HeadOutputs
from tests.helpers.tolerance import assert_close

from ...helpers import textbook

LENGTH, DIM = 5, 3


def random_model(positions: str = "none", seed: int = 0, **spec):
    shape = {"heads": 2, "head_dim": 3, "hidden": 7, "beta": 1.7} | spec
    return ClassTokenSpec(positions=positions, **shape).init(seed, length=LENGTH, dim=DIM, outputs=1)  # pyright: ignore


def exact(array) -> np.ndarray:
    """The array's numbers as rational ones."""
    numbers = np.asarray(array, np.float64)
    return np.array([Fraction(number) for number in numbers.ravel().tolist()], dtype=object).reshape(numbers.shape)


def leaves(ends) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (np.asarray(low), np.asarray(high)) for low, high in zip(*(jax.tree.leaves(end) for end in ends), strict=True)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("positions", POSITIONS)
def test_both_ends_are_the_same_number_to_twelve_digits_the_lower_below_the_upper(positions, seed):
    model = random_model(positions, seed)
    for low, high in leaves(fold_heads(model, coordinates_read([model]), LENGTH)):
        assert low.dtype == high.dtype == np.float64
        assert np.all(low <= high)
        assert np.all(high - low <= 1e-12 * (np.abs(low) + np.abs(high).max()))


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_ends_hold_the_exact_products_of_the_weights(positions):
    model = random_model(positions, seed=4)
    (layer,) = model.attention
    first, second = exact(model.encoder_in.weight), exact(model.encoder_out.weight)
    bias = exact(model.encoder_in.bias)[None].repeat(LENGTH, axis=0)
    added = exact(model.encoder_out.bias)[None].repeat(LENGTH, axis=0)
    if positions == "concatenated":
        bias = bias + exact(model.position_table).dot(first[:, DIM:].T)
    if positions == "additive":
        added = added + exact(model.position_table)
    token = exact(model.class_token)
    directions = [
        Fraction(model.spec.beta) * exact(layer.query)[head].dot(token).dot(exact(layer.key)[head]) for head in range(2)
    ]
    values = exact(layer.value).reshape(6, -1)
    wanted = {
        "inwards": first[:, :DIM],
        "bias": bias,
        "score_weight": np.array(directions).dot(second),
        "score_bias": added.dot(np.array(directions).T),
        "value_weight": values.dot(second),
        "value_bias": added.dot(values.T),
    }
    low, high = fold_heads(model, coordinates_read([model]), LENGTH)
    for name, numbers in wanted.items():
        below, above = (np.asarray(getattr(end, name)) for end in (low, high))
        assert below.shape == numbers.shape, name
        assert np.all(exact(below) <= numbers), name
        assert np.all(numbers <= exact(above)), name


def test_single_weights_are_kept_to_the_last_bit():
    model = random_model()
    low, high = fold_heads(model, coordinates_read([model]), LENGTH)
    for end in (low, high):
        assert np.array_equal(np.asarray(end.inwards), np.asarray(model.encoder_in.weight, np.float64))
        assert np.array_equal(np.asarray(end.bias)[0], np.asarray(model.encoder_in.bias, np.float64))


@pytest.mark.parametrize(("positions", "seed"), [*zip(POSITIONS, range(3), strict=True)])
def test_folded_heads_read_what_the_textbooks_heads_read(positions, seed):
    model = random_model(positions, seed)
    tokens = np.random.default_rng(seed).standard_normal((LENGTH, DIM))
    with jax.enable_x64(True):
        wide = in_double(model)
        coordinates = coordinates_read([model])
        observables = HeadOutputs(
            heads=jax.tree.map(jnp.asarray, fold_heads(model, coordinates, LENGTH)[0]), coordinates=coordinates
        )
        (layer,) = wide.attention
        embedded = textbook.embed(wide, jnp.asarray(tokens))
        wanted = []
        for head in range(2):
            scores = embedded @ (layer.key[head].T @ (layer.query[head] @ wide.class_token))
            wanted.append(layer.value[head] @ (embedded.T @ jax.nn.softmax(wide.spec.beta * scores)))
        assert_close(observables.observe(jnp.asarray(tokens), None), jnp.concatenate(wanted), "what the heads read")


def test_numbers_that_are_zero_in_w_v_or_in_w_o_are_left_out():
    model = random_model()
    (layer,) = model.attention
    value, output = np.array(layer.value), np.array(layer.output)
    value[0, 1] = 0
    output[:, 1, 2] = 0
    cut = eqx.tree_at(lambda m: (m.attention[0].value, m.attention[0].output), model, (value, output))
    assert coordinates_read([model]) == tuple((head, row) for head in range(2) for row in range(3))
    assert coordinates_read([cut]) == ((0, 0), (0, 2), (1, 0), (1, 1))
    assert coordinates_read([cut, model]) == coordinates_read([model])
    low, _ = fold_heads(cut, coordinates_read([cut]), LENGTH)
    assert low.value_weight.shape == (4, 7)
    assert low.score_weight.shape == (2, 7)


@pytest.mark.parametrize("part", ["value", "output"])
def test_a_model_whose_readout_sees_nothing_is_refused(part):
    model = random_model()
    blind = eqx.tree_at(lambda m: getattr(m.attention[0], part), model, replace_fn=np.zeros_like)
    with pytest.raises(InputError, match="W_V or W_O is zero"):
        coordinates_read([blind])


def test_two_layers_are_refused():
    with pytest.raises(InputError, match="only one layer can be folded, the model has 2"):
        fold_heads(random_model(layers=2), ((0, 0),), LENGTH)


def test_stacked_models_are_the_single_ones():
    models = [random_model(seed=seed) for seed in range(3)]
    with jax.enable_x64(True):
        together = stack_heads(models, LENGTH)
        for i, model in enumerate(models):
            for many, one in zip(
                jax.tree.leaves(together),
                jax.tree.leaves(fold_heads(model, coordinates_read(models), LENGTH)[0]),
                strict=True,
            ):
                assert np.array_equal(np.asarray(many[i]), np.asarray(one))
