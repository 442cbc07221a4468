"""The controls keep the laws of every kind, have as many parameters as what they are compared with, and compute what
their equations say."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.models.controls import CONTROLS, ConvolutionSpec, PoolingSpec, RecurrentSpec

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_close, in_double
from .laws import ModelLaws, answers, drawn, sizes_for, tokens_for

every_control = pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.kind)
SHARED = {
    "heads": st.integers(1, 9),
    "width": st.integers(1, 6),
    "hidden": st.integers(1, 6),
    "positions": st.sampled_from(["none", "concatenated"]),
    "answered_at": st.sampled_from(["sequence", "query"]),
    "masks_padding": st.booleans(),
    "vocabulary": st.sampled_from([0, 3]),
}
BAD = (("heads", 0), ("width", 1.5), ("rank", None), ("vocabulary", -1), ("positions", "additive"))
BAD += (("answered_at", "tokens"), ("masks_padding", 1))
PLAIN = {"heads": 3, "width": 4, "hidden": 5}
EVERYTHING = PLAIN | {"positions": "concatenated", "answered_at": "query", "masks_padding": True}


class TestPooling(ModelLaws):
    spec_class = PoolingSpec
    pools, places = st.sampled_from(["max", "mean", "both"]), st.sampled_from(["readout", "tokens"])
    options = st.fixed_dictionaries(SHARED | {"pool": pools, "query_at": places})
    examples = (PLAIN | {"vocabulary": 3}, EVERYTHING | {"pool": "both", "query_at": "tokens"})
    bad = (*BAD, ("pool", "sum"), ("query_at", "nowhere"))


class TestRecurrent(ModelLaws):
    spec_class = RecurrentSpec
    options = st.fixed_dictionaries(SHARED)
    examples = (PLAIN, EVERYTHING | {"vocabulary": 3})
    bad = BAD


class TestConvolution(ModelLaws):
    spec_class = ConvolutionSpec
    options = st.fixed_dictionaries(SHARED | {"layers": st.integers(1, 3)})
    examples = (PLAIN, EVERYTHING | {"vocabulary": 3, "layers": 2})
    bad = (*BAD, ("layers", 0))


@drawn
@given(
    heads=st.sampled_from([1, 2, 4, 8]),
    dim=st.integers(1, 8),
    control=st.sampled_from(CONTROLS),
    query=st.booleans(),
    positions=st.sampled_from(["none", "additive"]),
)
def test_matched_has_as_many_parameters(heads, dim, control, query, positions):
    sizes = {"length": 16, "dim": dim, "outputs": 1}
    of_sequence = ClassTokenSpec.with_total_dim(32, heads=heads, positions=positions)
    of_query = EncoderSpec(heads=heads, rank=dim, width=dim, hidden=512, answered_at="query", positions=positions)
    like = of_query if query else of_sequence
    spec = control.matched(like, **sizes)
    assert (spec.heads, spec.rank, spec.head_dim) == (like.heads, like.rank, like.head_dim)
    assert (spec.answered_at, spec.positions == "none") == (like.answered_at, like.positions == "none")
    wanted, counts = like.parameters(**sizes), {}
    for width in (spec.width - 1, spec.width, spec.width + 1):
        counts[width] = abs(dataclasses.replace(spec, width=width).parameters(**sizes) - wanted) if width else np.inf
    assert min(counts, key=counts.get) == spec.width
    if wanted > 6000:
        assert counts[spec.width] <= 0.04 * wanted


@every_control
def test_a_transformer_too_small_to_be_matched_is_refused(control):
    with refused("hidden", "400"):
        control.matched(ClassTokenSpec(heads=1), length=8, dim=4, outputs=1, hidden=400)


def test_a_maximum_over_tokens_is_read_exactly():
    """max_t a . x(t), by a net that is the identity: what a maximum pools is one retrieval per feature."""
    model = PoolingSpec(heads=1, width=1, hidden=2).init(0, length=5, dim=2, outputs=1)
    direction = np.array([0.6, -0.8])
    model = dataclasses.replace(
        model,
        token_in=type(model.token_in)(np.stack([direction, -direction]), np.zeros(2)),
        token_out=type(model.token_out)(np.array([[1.0, -1.0]]), np.zeros(1)),
    )
    tokens = np.random.default_rng(0).normal(size=(5, 2))
    with jax.enable_x64(True):
        got = model.reads(jnp.asarray(tokens), jnp.zeros(5, bool))
    assert_close(got, np.max(tokens @ direction, keepdims=True))


def test_the_gru_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    model = RecurrentSpec(heads=1, width=4).init(0, length=6, dim=3, outputs=2)
    module = torch.nn.GRU(3, 4, batch_first=True).double()
    names = {"weight_ih_l0": model.token_in.weight, "bias_ih_l0": model.token_in.bias}
    names |= {"weight_hh_l0": model.state_in.weight, "bias_hh_l0": model.state_in.bias}
    module.load_state_dict({name: torch.tensor(array) for name, array in names.items()})
    tokens = np.random.default_rng(0).normal(size=(6, 3))
    want = module(torch.tensor(tokens)[None])[1][0, 0].detach().numpy()
    with jax.enable_x64(True):
        assert_close(in_double(model).reads(jnp.asarray(tokens), jnp.zeros(6, bool)), want)


def test_the_convolution_is_the_sum_over_shifted_tokens():
    model = in_double(ConvolutionSpec(heads=1, width=4, layers=2).init(0, length=6, dim=3, outputs=2))
    tokens = np.random.default_rng(0).normal(size=(6, 3))
    state = tokens @ model.token_in.weight.T + model.token_in.bias
    for reach, convolution in ((1, model.convolutions[0]), (2, model.convolutions[1])):
        before, now, after = np.split(convolution.weight, 3, axis=1)
        active, new = np.maximum(state, 0), state + convolution.bias
        for t in range(6):
            for weight, place in ((before, t - reach), (now, t), (after, t + reach)):
                new[t] += weight @ active[place] if 0 <= place < 6 else 0
        state = new
    with jax.enable_x64(True):
        got = model.reads(jnp.asarray(tokens), jnp.zeros(6, bool))
    assert_close(got, np.concatenate([state.max(axis=0), state.mean(axis=0)]))


@pytest.mark.parametrize("laws", [TestPooling, TestRecurrent, TestConvolution])
def test_they_are_the_same_in_pytorch(laws):
    torch = pytest.importorskip("torch")
    for fields in laws.examples:
        spec = laws.spec_class(**fields)
        model, tokens = spec.init(0, **sizes_for(spec)), tokens_for(spec).astype(np.float32)
        module = model.to_torch()
        assert dict(module.named_parameters()).keys() == model.to_arrays().keys()
        assert_close(module(torch.tensor(tokens)).detach().numpy(), answers(model, tokens))
        assert_close(module(torch.tensor(tokens[0])).detach().numpy(), answers(model, tokens)[0])
