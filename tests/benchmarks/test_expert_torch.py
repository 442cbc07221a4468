"""The PyTorch program that benchmarks compare with does the work of headcount's own step."""

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import headcount as hc
from headcount.engine.steps import schedule

pytestmark = pytest.mark.slow

SIZES = {"length": 5, "dim": 3, "outputs": 2}
MEMBERS = 3


@pytest.fixture
def expert(monkeypatch):
    pytest.importorskip("torch")  # here: importing it takes seconds, also where these tests are not run
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("expert_torch")


@pytest.fixture
def models():
    spec = hc.ClassTokenSpec(heads=2, head_dim=4, hidden=6)
    drawn = [spec.init(seed, **SIZES) for seed in range(MEMBERS)]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *drawn)


@pytest.mark.parametrize("form", ["products", "sums"])
def test_its_gradient_is_headcounts(expert, models, form):
    generator = np.random.default_rng(0)
    tokens = generator.normal(size=(16, SIZES["length"], SIZES["dim"])).astype(np.float32)
    targets = generator.normal(size=(16, SIZES["outputs"])).astype(np.float32)
    gradients = jax.vmap(jax.grad(lambda model: jnp.mean((jax.vmap(model)(tokens) - targets) ** 2)))(models)
    weights, expected = (expert.weights_of(part, "cpu") for part in (models, gradients))
    assert expert.gradient_difference(weights, tokens, targets, expected, form) < 1e-4


def test_its_update_is_headcounts(expert, models):
    """Clipping, Adam and the schedule, on gradients above and below the clip."""
    import torch

    recipe = expert.Recipe(batch=16, steps=40, learning_rate=1e-2, warmup=200, clip=1.0, second_moment_decay=0.99)
    chain = optax.chain(optax.clip_by_global_norm(recipe.clip), optax.scale_by_adam(b2=recipe.second_moment_decay))
    weights = expert.weights_of(models, "cpu")
    means, squares = ({name: torch.zeros_like(part) for name, part in weights.items()} for _ in range(2))
    step = torch.zeros(())
    expected, moments = models, jax.vmap(chain.init)(models)
    for count in range(6):
        gradients = jax.tree.map(lambda part, count=count: jnp.cos((count + 1) * part) * 10.0 ** (count - 4), models)
        changes, moments = jax.vmap(chain.update)(gradients, moments)
        rate = recipe.learning_rate * schedule(jnp.asarray(count), recipe.steps, recipe.warmup)
        expected = jax.tree.map(lambda weight, change, rate=rate: weight - rate * change, expected, changes)
        expert.update(weights, expert.weights_of(gradients, "cpu"), means, squares, step, recipe)
    for name, part in expert.weights_of(expected, "cpu").items():
        torch.testing.assert_close(weights[name], part, rtol=1e-4, atol=1e-6)
