"""The PyTorch module answers as the model does, for one sequence and for a batch, under the same names."""

import sys

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount._choices import POSITIONS
from headcount.models import ClassTokenSpec, EncoderSpec

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.refusals import refused
from .encoders import options, slowly
from .mean_pool import MeanPoolSpec

BATCH, LENGTH = 3, 4


def assert_same_module(spec, respond, *, seed: int, dim: int, outputs: int) -> None:
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(seed)
    dim = 1 if spec.vocabulary else dim
    model = spec.init(seed, length=LENGTH, dim=dim, outputs=outputs)
    model = jax.tree.map(lambda leaf: np.asarray(leaf + 0.3 * generator.normal(size=leaf.shape), np.float32), model)
    module = model.to_torch()
    named = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    assert named == {name: array.shape for name, array in model.to_arrays().items()}
    tokens = generator.normal(size=(BATCH, LENGTH, dim)).astype(np.float32)
    if spec.vocabulary:
        tokens = generator.integers(0, spec.vocabulary, tokens.shape).astype(np.float32)
    tokens[0, 1] = np.nan if spec.masks_nan else 0  # padding, where the spec says so
    want = np.stack([respond(model, sequence) for sequence in tokens])
    with torch.no_grad():
        got = module(torch.from_numpy(tokens)).numpy()
        alone = module(torch.from_numpy(tokens[0])).numpy()
    assert got.dtype == np.float32
    assert got.shape == want.shape
    scale = max(1.0, float(np.max(np.abs(want))))
    assert np.max(np.abs(got - want)) <= 1e-5 * scale
    assert np.max(np.abs(alone - want[0])) <= 1e-5 * scale
    if spec.masks_nan and spec.answered_at != "tokens":
        with torch.no_grad():
            short, there = module(torch.from_numpy(tokens[1, 2:])), model(tokens[1, 2:])
        assert np.max(np.abs(short.numpy() - there)) <= 1e-5 * scale


@settings(deadline=None, max_examples=8)
@given(
    st.fixed_dictionaries(
        {"layers": st.integers(1, 3), "positions": st.sampled_from(POSITIONS), "beta": st.floats(0.1, 5)},
        optional={"masks_padding": st.just(True), "vocabulary": st.just(3)},
    ),
    st.sampled_from(
        [
            {},
            {"kv_heads": 1, "window": 2},
            {"causal": True, "attention": "linear", "beta": 1.0},
            {"attention": "top-k", "top_k": 2, "kv_heads": 1},
            {"attention": "hard", "window": 1, "causal": True},
        ]
    ),
    st.integers(0, 2**16),
)
def test_a_class_token_transformer(chosen, way, seed):
    spec = ClassTokenSpec(**({"heads": 2, "head_dim": 3, "rank": 4, "hidden": 5} | chosen | way))
    assert_same_module(spec, lambda model, tokens: model(tokens), seed=seed, dim=3, outputs=2)


@pytest.mark.parametrize(
    "spec",
    [
        ClassTokenSpec(heads=2, head_dim=2, hidden=3, layers=2, window=2, causal=True),
        EncoderSpec(heads=2, rank=2, width=4, window=2),
        EncoderSpec(heads=2, rank=2, width=4, causal=True, answered_at="tokens"),
    ],
    ids=str,
)
def test_a_module_answers_on_another_device(spec):
    torch = pytest.importorskip("torch")
    module = spec.init(0, length=LENGTH, dim=4, outputs=2).to_torch().to("meta")
    answers = module(torch.zeros(BATCH, LENGTH, 4, device="meta"))
    assert answers.device.type == "meta"


@settings(deadline=None, max_examples=40)
@given(options, st.integers(0, 2**16), st.sampled_from([2, 4]), st.sampled_from([1, 4]))
def test_an_encoder_of_any_options(chosen, seed, dim, outputs):
    """Against the slow one, which needs no compilation and is the model itself by another test."""
    assert_same_module(EncoderSpec(**chosen), slowly, seed=seed, dim=dim, outputs=outputs)


@pytest.mark.parametrize(
    "chosen",
    [
        {"answered_at": "sequence"},
        {"answered_at": "query", "positions": "additive", "masks_padding": True, "padding": "nan", "vocabulary": 3},
    ],
    ids=str,
)
def test_an_encoder_against_the_model_itself(chosen):
    spec = EncoderSpec(heads=2, rank=3, width=4, hidden=3, layers=2, norm="layer", **chosen)
    assert_same_module(spec, lambda model, tokens: model(tokens), seed=0, dim=2, outputs=1)


def test_the_module_can_be_trained():
    torch = pytest.importorskip("torch")
    module = EncoderSpec(heads=2, rank=3, width=4, hidden=3).init(0, length=4, dim=2, outputs=1).to_torch()
    module(torch.ones(4, 2)).sum().backward()
    assert any(bool(parameter.grad.abs().sum() > 0) for parameter in module.parameters())


def test_a_kind_without_a_module_is_refused():
    pytest.importorskip("torch")
    with refused("mean-pool"):
        MeanPoolSpec(heads=1).init(0, length=2, dim=2, outputs=1).to_torch()


def test_without_pytorch_the_way_to_install_it_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with refused("pip install 'headcount[torch]'"):
        ClassTokenSpec(heads=1).init(0, length=2, dim=2, outputs=1).to_torch()
