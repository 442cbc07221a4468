"""Stock models learn, the same every time, and padding changes nothing."""

import subprocess
import sys

import numpy as np
import pytest

import headcount as hc
from headcount.errors import InputError
from headcount.stock import StockConfig, StockExamples, train_stock
from headcount.stock.config import StockShape
from headcount.stock.train import need_library

LIBRARIES = {"torch": "torch", "hf": "transformers"}


@pytest.fixture(params=LIBRARIES)
def config(request):
    pytest.importorskip("torch")
    pytest.importorskip(LIBRARIES[request.param])
    return StockConfig(library=request.param, layers=1, width=16, heads=2)


def examples_of(length=4, **options):
    x = np.random.default_rng(0).normal(size=(300, length, 2)).astype(np.float32)
    return StockExamples.of_task(hc.ArrayTask(x, x[:, 0, 0] + x[:, 1, 1], **options))


def drawn_model(config, shape):
    """Return a model with weights of size 1, so that what is read shows in the answer."""
    import torch

    from headcount.stock.models import stock_model

    torch.manual_seed(0)
    model = stock_model(config, shape).eval()
    for each in model.parameters():
        torch.nn.init.uniform_(each, -1, 1)
    return model


def test_it_learns_the_same_every_time(config):
    one, other = (train_stock(config, examples_of(), steps=120, learning_rate=3e-3) for _ in range(2))
    assert one.error < 0.5
    assert one.error == pytest.approx(one.losses.mean())
    assert one.error == min(error for _, error in one.curve)
    assert one.curve == other.curve
    assert one.parameters == config.parameters(examples_of().shape)
    drawn = [train_stock(config, examples_of(), steps=20, seed=seed).curve for seed in (0, 1)]
    assert drawn[0] != drawn[1]


def test_without_learning_it_does_not(config):
    assert train_stock(config, examples_of(), steps=3, learning_rate=1e-6).error > 0.8


def test_patience_ends_training(config):
    ended = train_stock(config, examples_of(), steps=200, learning_rate=1e-30, patience=2)
    assert ended.steps < 200


@pytest.mark.parametrize("answered_at", ["sequence", "query", "tokens"])
def test_padding_changes_nothing(config, answered_at):
    import torch

    model = drawn_model(config, StockShape(length=7, dim=2, outputs=3, answered_at=answered_at))
    tokens = torch.randn(2, 4, 2)
    padded = torch.cat([torch.full((2, 3, 2), 1e3), tokens], 1)
    mask = torch.tensor([[False] * 3 + [True] * 4] * 2)
    own = model(tokens, torch.ones(2, 4, dtype=torch.bool))
    with torch.no_grad():
        among = model(padded, mask)[:, -4:] if answered_at == "tokens" else model(padded, mask)
        unmasked = model(padded)[:, -4:] if answered_at == "tokens" else model(padded)
    assert torch.allclose(among, own, atol=1e-5)
    assert not torch.allclose(unmasked, own, atol=1e-2)


def test_order_is_seen_only_where_it_can_matter(config):
    import torch

    tokens = torch.randn(1, 5, 2)
    for uses_positions in (True, False):
        model = drawn_model(config, StockShape(length=5, dim=2, outputs=1, uses_positions=uses_positions))
        assert torch.allclose(model(tokens), model(tokens.flip(1)), atol=1e-4) is not uses_positions


def test_no_jax_is_imported_by_the_satellite():
    code = "import sys, headcount.stock, headcount.stock.plugin; print('torch' in sys.modules, 'jax' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


def test_a_missing_library_is_named_with_the_line_to_type(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for library, extra in (("torch", "headcount[torch]"), ("hf", "headcount[hf]")):
        with pytest.raises(InputError) as refused:
            need_library(library)
        assert extra in str(refused.value)
