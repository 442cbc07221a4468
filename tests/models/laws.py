"""What every kind of model promises. A new kind is tested by a class that inherits `ModelLaws`."""

import dataclasses
import json
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax.extend.core import jaxprs_in_params

from headcount.errors import InputError
from headcount.models import AbstractSpec, from_arrays, spec_from_dict

from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close, assert_trees_close, assert_trees_equal, in_double

SIZES = {"length": 4, "dim": 3, "outputs": 2}
BATCH = 2
sizes = st.fixed_dictionaries({name: st.integers(1, 5) for name in SIZES})
drawn = settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow]
)


def some_tokens(*, examples: int = BATCH, length: int = SIZES["length"], dim: int = SIZES["dim"]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(examples, length, dim))


def sizes_for(spec: AbstractSpec) -> dict[str, int]:
    """A token that is an id is one number."""
    return SIZES | ({"dim": 1} if spec.vocabulary else {})


def tokens_for(spec: AbstractSpec, examples: int = BATCH) -> np.ndarray:
    """Tokens that the spec's models read, the second of them absent where it can be."""
    generator = np.random.default_rng(0)
    tokens = some_tokens(examples=examples)
    if spec.vocabulary:
        tokens = generator.integers(0, spec.vocabulary, (examples, SIZES["length"], 1)).astype(float)
    if spec.masks_nan:
        tokens[:, 1] = np.nan
    return tokens


def default(spec: AbstractSpec, name: str) -> object:
    return next(field.default for field in dataclasses.fields(spec) if field.name == name)


@jax.jit
def answer(model, tokens):
    return model(tokens)


@jax.jit
def answers(model, tokens):
    """The answers to a batch of sequences."""
    return jax.vmap(model)(tokens)


@jax.jit
def differentiated(model, tokens):
    def combined(model):
        got = model(tokens)
        return jnp.sum(got * jnp.reshape(jnp.arange(1.0, got.size + 1), got.shape)), got

    (_, got), gradient = jax.value_and_grad(combined, has_aux=True)(model)
    return got, gradient


def answer_and_gradient(model, tokens):
    """The answer to one sequence, and the derivative of a combination of its numbers by every weight, in float64."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, differentiated(in_double(model), tokens))


class ModelLaws:
    """The class attributes below say what is tried; laws that compile are tried on `examples` alone."""

    spec_class: ClassVar[type[AbstractSpec]]
    options: ClassVar[st.SearchStrategy[dict]]
    """Fields of any spec. The spec is made in the test, where a bad one is a failure."""
    examples: ClassVar[tuple[dict, ...]]
    """Fields of the specs that are compiled: few, and every option in one of them."""
    bad: ClassVar[tuple[tuple[str, object], ...]]
    """Field and value that are refused, the other fields being those of the first example."""

    @pytest.fixture
    def spec(self, fields):
        return self.spec_class(**fields)

    def pytest_generate_tests(self, metafunc):
        if "fields" in metafunc.fixturenames:
            metafunc.parametrize("fields", self.examples, ids=str)

    # The spec.

    def test_the_spec_is_final_frozen_and_equal_by_content(self, fields, spec):
        assert self.spec_class.__final__
        with pytest.raises(dataclasses.FrozenInstanceError):
            spec.heads = 9
        assert spec == self.spec_class(**fields)
        assert hash(spec) == hash(self.spec_class(**fields))

    @drawn
    @given(data=st.data())
    def test_json_there_and_back(self, data):
        one, other = (self.spec_class(**data.draw(self.options)) for _ in range(2))
        content = json.loads(json.dumps(one.as_dict(), allow_nan=False))
        left_out = {name for name in one.left_out_at_default if getattr(one, name) == default(one, name)}
        assert content.keys() == {"kind"} | {field.name for field in dataclasses.fields(one)} - left_out
        assert spec_from_dict(content) == one
        assert (content == other.as_dict()) == (one == other)

    def test_bad_values_are_refused(self):
        for name, value in self.bad:
            with refused(name, repr(value) if not isinstance(value, str) else value):
                self.spec_class(**(self.examples[0] | {name: value}))
        with refused(self.spec_class.kind, "no_such_field"):
            spec_from_dict(self.spec_class(**self.examples[0]).as_dict() | {"no_such_field": 1})

    def test_rank_can_be_changed(self, spec):
        assert spec.with_rank(1).rank == 1
        assert spec.with_rank(spec.rank) == spec

    @drawn
    @given(data=st.data())
    def test_padding_adds_heads_and_nothing_else(self, data):
        spec = self.spec_class(**data.draw(self.options))
        padded = spec.padded()
        assert padded.heads >= spec.heads
        assert padded == dataclasses.replace(spec, heads=padded.heads)
        assert padded.padded() == padded

    # What it costs.

    @drawn
    @given(data=st.data(), sizes=sizes)
    def test_parameters_are_the_numbers_of_the_model(self, data, sizes):
        spec = self.spec_class(**data.draw(self.options))
        sizes |= {"dim": 1} if spec.vocabulary else {}
        model = spec.init(0, **sizes)
        assert model.spec == spec
        assert spec.parameters(**sizes) == sum(leaf.size for leaf in jax.tree.leaves(model))
        assert jax.tree.map(np.shape, spec.init(None, **sizes)) == jax.tree.map(np.shape, model)

    def test_flops_are_the_matrix_products_performed(self, spec):
        sizes = sizes_for(spec)
        assert spec.flops(**sizes) == products_performed(lambda model, tokens: model(tokens), spec, **sizes)

    def test_longer_sequences_cost_more(self, spec):
        longer = SIZES | {"length": 5}
        assert spec.flops(**longer) > spec.flops(**SIZES)
        assert spec.activations(length=5, dim=3) > spec.activations(length=4, dim=3) > 0

    # The weights.

    def test_initial_weights_are_a_function_of_spec_and_seed(self, spec):
        model, other = spec.init(5, **sizes_for(spec)), spec.init(6, **sizes_for(spec))
        assert_trees_equal(spec.init(5, **sizes_for(spec)), model)
        varied = [(one, two) for one, two in zip(*map(jax.tree.leaves, (model, other)), strict=True) if np.ptp(one)]
        assert len(varied) > 0
        for one, two in varied:
            assert one.dtype == np.float32
            assert not np.any(one == two)
        first = [tuple(np.sign(np.ravel(one)[:24])) for one, _ in varied if one.size >= 24]
        assert len(set(first)) == len(first), "two arrays are drawn from one stream"

    @drawn
    @given(data=st.data(), sizes=sizes)
    def test_arrays_there_and_back(self, data, sizes):
        spec = self.spec_class(**data.draw(self.options))
        sizes |= {"dim": 1} if spec.vocabulary else {}
        model = spec.init(3, **sizes)
        arrays = model.to_arrays()
        assert {type(array) for array in arrays.values()} == {np.ndarray}
        assert_trees_equal(from_arrays(spec, arrays), model)

    def test_arrays_that_do_not_fit_are_refused_by_name(self, spec):
        arrays = spec.init(3, **sizes_for(spec)).to_arrays()
        with refused("no_such_array"):
            from_arrays(spec, arrays | {"no_such_array": np.zeros(1)})
        for name, array in arrays.items():
            with refused(name):
                from_arrays(spec, arrays | {name: np.zeros((*array.shape, 7), np.float32)})
        for name in arrays:
            with refused(name.split(".")[0]):
                from_arrays(spec, {other: array for other, array in arrays.items() if other != name})

    # What it computes.

    def test_absent_tokens_change_nothing(self, spec):
        """Where NaN tokens are absent, the answer and its gradient are those of the tokens that are there."""
        if not spec.masks_nan:
            return
        model, tokens = spec.init(1, **sizes_for(spec)), tokens_for(spec)[0]
        in_front = spec.answered_at == "query"
        there = tokens[[0, 2, 3]]
        padded = np.concatenate([tokens[1:2], there] if in_front else [there, tokens[1:2]])
        got, gradient = answer_and_gradient(model, padded)
        want, want_gradient = answer_and_gradient(model, there)
        assert_close(got, want)
        assert_trees_close(gradient, want_gradient)

    def test_ids_are_tokens_of_one_1_and_zeros(self, spec):
        """Where ids are looked up, the model without a vocabulary reads the same from one-hot tokens."""
        if not spec.vocabulary:
            return
        model, ids = spec.init(1, **sizes_for(spec)), tokens_for(spec)[0]
        one_hot = np.where(np.isnan(ids), np.nan, np.arange(spec.vocabulary) == ids)
        plain = dataclasses.replace(model, spec=dataclasses.replace(spec, vocabulary=0))
        got, gradient = answer_and_gradient(model, ids)
        want, want_gradient = answer_and_gradient(plain, one_hot)
        assert_close(got, want)
        for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(want_gradient), strict=True):
            assert_close(one, other)
        for strange in (-1, spec.vocabulary, 0.5, *(() if spec.masks_nan else (np.nan,))):
            with refused("tokens", str(strange)):
                model(np.full_like(ids, strange))

    def test_answers_and_gradients(self, spec):
        """Of the promised shape, the same in a batch as alone, the same each time, and finite with their gradients."""
        tokens, model = tokens_for(spec), spec.init(1, **sizes_for(spec))
        alone = [answer_and_gradient(model, sequence) for sequence in tokens]
        places = (SIZES["length"],) if spec.answered_at == "tokens" else ()
        with jax.enable_x64(True):
            batch = answers(in_double(model), tokens)
        assert batch.shape == (BATCH, *places, SIZES["outputs"])
        assert_close(batch, np.stack([got for got, _ in alone]))
        assert_trees_equal(answer_and_gradient(model, tokens[0]), alone[0])
        single = jax.eval_shape(answers, model, tokens.astype(np.float32))
        assert (single.shape, single.dtype) == (batch.shape, np.float32)
        _, gradient = alone[0]
        for leaf in jax.tree.leaves(gradient):
            assert np.all(np.isfinite(leaf))
        assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient))

    def test_a_key_is_used_only_for_what_is_dropped(self, spec):
        model, tokens = spec.init(1, **sizes_for(spec)), np.asarray(tokens_for(spec, 1)[0], np.float32)

        def program(model, tokens, key):
            return model(tokens, key=key)

        draws = "random_bits" in str(jax.make_jaxpr(program)(model, tokens, jr.key(0)))
        assert draws == spec.drops
        if spec.drops:
            respond = jax.jit(program)
            first, again, other = (respond(model, tokens, jr.key(seed)) for seed in (0, 0, 1))
            assert_trees_equal(first, again)
            assert not np.array_equal(first, other)

    def test_precisions(self, spec):
        assert "float32" in spec.precisions
        if "bfloat16" in spec.precisions:
            model, tokens = jax.tree.map(
                lambda leaf: leaf.astype(jnp.bfloat16), (spec.init(1, **sizes_for(spec)), tokens_for(spec))
            )
            assert jax.eval_shape(answers, model, tokens).dtype == jnp.bfloat16

    def test_added_heads_change_nothing_and_learn_nothing(self, spec):
        small = spec.init(1, **sizes_for(spec))
        padded = spec.padded().heads
        heads = padded + 1 if padded == spec.heads else padded
        try:
            large = small.with_heads(heads)
        except InputError:  # a kind that is never padded refuses, or returns itself
            assert small.with_heads(spec.heads) is small
            return
        assert_trees_equal(large.with_heads(spec.heads), small)
        if large is small:
            return
        assert large.spec == dataclasses.replace(spec, heads=heads)
        assert jax.tree.map(np.shape, large) == jax.tree.map(np.shape, large.spec.init(1, **sizes_for(spec)))
        want, want_gradient = answer_and_gradient(small, tokens_for(spec)[0])
        got, gradient = answer_and_gradient(large, tokens_for(spec)[0])
        assert_close(got, want)
        assert_trees_close(gradient.with_heads(spec.heads), want_gradient)
        ones = jax.tree.map(np.ones_like, small).with_heads(heads)
        for slope, one in zip(jax.tree.leaves(gradient), jax.tree.leaves(ones), strict=True):
            assert not np.any(slope[one == 0]), "an added weight would be trained"

    def test_units_are_put_back(self, spec):
        """Where tokens and targets are standardised, the model can be rewritten to read and answer in raw units."""
        generator = np.random.default_rng(2)
        mean, scale = (generator.normal(size=3), generator.uniform(0.5, 2, 3))
        if spec.vocabulary:  # which have no units
            mean, scale = np.zeros(1), np.ones(1)
        to, by = generator.normal(size=2), generator.uniform(0.5, 2, 2)
        model = in_double(spec.init(1, **sizes_for(spec)))
        raw = model.in_raw_units(mean, scale, to, by)
        assert jax.tree.map(np.shape, raw) == jax.tree.map(np.shape, model)
        if not spec.standardises:
            assert raw is model
            return
        with jax.enable_x64(True):
            for tokens in tokens_for(spec):
                assert_close(answer(raw, tokens * scale + mean), np.asarray(answer(model, tokens)) * by + to)

    def test_calibration_keeps_the_shape(self, spec):
        model = spec.init(1, **sizes_for(spec))
        tokens = np.asarray(tokens_for(spec, 8), np.float32)
        calibrated = jax.eval_shape(lambda model, tokens: model.calibrated(tokens), model, tokens)
        assert jax.tree.map(np.shape, calibrated) == jax.tree.map(np.shape, model)


def products_performed(respond, spec: AbstractSpec, *, length: int, dim: int, outputs: int) -> int:
    """Operations of the matrix products that one more example adds to a batch."""
    model = spec.init(0, length=length, dim=dim, outputs=outputs)

    def of_batch(batch: int) -> int:
        tokens = np.zeros((batch, length, dim), np.float32)
        return _products(jax.make_jaxpr(jax.vmap(respond, in_axes=(None, 0)))(model, tokens).jaxpr)

    return of_batch(3) - of_batch(2)


def _products(jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left, result = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
            total += 2 * math.prod(result) * math.prod(left[axis] for axis in contracted)
        turns = equation.params["length"] if equation.primitive.name == "scan" else 1
        total += turns * sum(_products(inner) for inner in jaxprs_in_params(equation.params))
    return total
