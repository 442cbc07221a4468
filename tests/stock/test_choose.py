"""The smallest configuration that does as well as the best is chosen, from made-up errors, in few runs."""

import numpy as np
import pytest

from headcount.stock import StockConfig, StockResult
from headcount.stock.choose import SHORT, choose, configuration, is_above_chance, paired_error, smallest
from headcount.stock.config import StockShape

SHAPE = StockShape(length=8, dim=4, outputs=1)
EXAMPLES, STEPS = 400, 100


def result(error, config=None, *, noise=0.0, seed=0):
    config = config or StockConfig(library="torch", layers=1, width=16, heads=2)
    losses = error + noise * np.random.default_rng(seed).normal(size=EXAMPLES)
    losses += error - losses.mean()
    return StockResult(config, error, losses, config.parameters(SHAPE), 1.0, STEPS, ((STEPS, error),))


class Trainer:
    """Pretends to train: the error is a function of the configuration, and somewhat larger in short runs."""

    def __init__(self, error_of, noise=0.0):
        self.error_of, self.noise, self.runs = error_of, noise, []

    def __call__(self, config, steps):
        self.runs.append((config, steps))
        error = self.error_of(config) * (1 if steps == STEPS else 1.5)
        return result(error, config, noise=self.noise, seed=len(self.runs))

    @property
    def cost(self):
        return sum(steps for _, steps in self.runs) / STEPS

    def chosen(self, library="torch", heads=4, **options):
        return choose(self, library, heads=heads, shape=SHAPE, steps=STEPS, **options).chosen.config


def test_where_size_makes_no_difference_the_smallest_is_chosen():
    train = Trainer(lambda config: 0.5, noise=0.1)
    chosen = train.chosen()
    assert (chosen.layers, chosen.width) == (1, 16)
    assert train.cost < 5


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_the_shape_that_is_needed_is_found(layers, width):
    train = Trainer(lambda config: 0.1 if config.layers >= layers and config.width >= width else 1 / config.width)
    chosen = train.chosen()
    assert chosen.layers >= layers or train.error_of(chosen) <= 0.11
    assert chosen.width >= width or train.error_of(chosen) <= 0.11
    assert train.cost < 8


def test_more_heads_are_tried_as_long_as_they_help():
    assert Trainer(lambda config: 1 / config.heads).chosen(heads=4).heads == 8  # 16 heads of width 16 have one number


def test_fewer_heads_are_chosen_where_they_do_as_well():
    assert Trainer(lambda config: 0.3).chosen(heads=4).heads == 2
    assert Trainer(lambda config: 0.3).chosen(heads=4, fewer=1).heads == 1
    needed = Trainer(lambda config: 0.01 if config.heads >= 3 else 0.4)
    assert needed.chosen(heads=3).heads == 3


def test_key_heads_are_shared_in_hf_where_that_does_as_well():
    assert Trainer(lambda config: 0.3 if config.heads == 4 else 0.9).chosen("hf").key_heads == 1
    own = Trainer(lambda config: 0.3 if config.heads == config.key_heads == 4 else 0.9)
    assert own.chosen("hf").key_heads == 4


def test_short_runs_are_short():
    train = Trainer(lambda config: 1 / config.width)
    train.chosen()
    assert {steps for _, steps in train.runs} == {STEPS, STEPS // SHORT}


def test_pairs_show_a_difference_that_errors_alone_do_not():
    noise = np.random.default_rng(0).normal(size=EXAMPLES)
    one, other = result(0.5), result(0.45)
    one.losses[:], other.losses[:] = 0.5 + noise, 0.45 + noise
    assert paired_error(one, other) < 1e-12
    assert is_above_chance(one, other)
    assert not is_above_chance(result(0.5, noise=3, seed=1), result(0.45, noise=3, seed=2))


def test_a_tenth_above_the_best_counts_and_more_does_not():
    small = StockConfig(library="torch", layers=1, width=16, heads=2)
    large = StockConfig(library="torch", layers=2, width=16, heads=2)
    assert smallest([result(0.109, small), result(0.1, large)]).config == small
    assert smallest([result(0.115, small), result(0.1, large)]).config == large


@pytest.mark.parametrize("heads", range(1, 17))
@pytest.mark.parametrize("library", ["torch", "hf"])
def test_every_head_count_has_a_configuration_of_about_the_width(library, heads):
    for width in (16, 32, 64):
        config = configuration(library, 1, width, heads)
        assert config.head_dim % 2 == 0
        assert width - 2 * heads < config.heads * config.head_dim <= max(width, 2 * heads)
