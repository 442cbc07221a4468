"""Kernels that fail, or that a model does not have: plain JAX trains it, nothing is lost, and it is said once."""

import threading
from collections import Counter
from dataclasses import replace

import jax
import pytest

from headcount.backends import choose
from headcount.engine import plan_sweep, trainer
from headcount.engine.hardware import CPU_MEMBERS
from headcount.engine.train import program
from headcount.store import Outcome

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import CPU, class_token, swept
from .test_run import do


def refusing(monkeypatch, refuses):
    """Kernels that refuse the programs that `refuses(sizes)` says. Gives the tokens and back end of each one made."""
    programs = []

    def made(shape, sizes, side_by_side, backend):
        programs.append((sizes.tokens, backend))
        compiled = program(shape, sizes, side_by_side, "reference")
        parts = replace(compiled)

        def start(*arguments, **options):
            if backend == "fused" and refuses(sizes):
                raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: too long")
            return type(parts).start(parts, *arguments, **options)

        parts.__dict__.update(start=start, _advance=compiled._advance)
        return parts

    monkeypatch.setattr(trainer, "program", made)
    monkeypatch.setattr(choose, "_told", set())
    return programs


def test_buckets_that_kernels_refuse_at_the_same_time_are_all_trained(tmp_path, monkeypatch):
    both = threading.Barrier(2, timeout=60)
    programs = refusing(monkeypatch, lambda sizes: both.wait() >= 0)
    sweep = swept(heads=[2], length=[4], seed=range(CPU_MEMBERS + 1))
    assert len(plan_sweep(sweep, machine=CPU).buckets) == 2
    assert do(sweep, tmp_path, replace(CPU, backend="fused", workers=2)).outcomes == {
        Outcome.FINISHED: len(sweep.cells)
    }
    assert Counter(programs) == {(4, "fused"): 2, (4, "reference"): 2}


def test_a_length_that_kernels_refuse_leaves_them_the_others(tmp_path, monkeypatch, caplog):
    programs = refusing(monkeypatch, lambda sizes: sizes.tokens == 4)
    do(swept(heads=[2], seed=range(CPU_MEMBERS + 1)), tmp_path, replace(CPU, backend="fused"))
    assert Counter(programs) == {(4, "fused"): 1, (4, "reference"): 2, (5, "fused"): 2}
    (sentence,) = caplog.messages
    assert "length 4" in sentence
    assert "too long" in sentence
    assert "--backend reference" in sentence


@pytest.mark.parametrize("asked", [True, False])
def test_a_model_without_kernels_is_said_where_they_were_asked_for(tmp_path, monkeypatch, caplog, asked):
    refusing(monkeypatch, lambda sizes: False)
    monkeypatch.setattr(trainer.BucketTrainer, "_train", lambda self, bucket, backend: trainer.Trained((), {}))
    sweep = swept(model=lambda heads: class_token(heads, layers=2))
    do(sweep, tmp_path, replace(CPU, backend="fused", asked=asked))
    assert len(caplog.messages) == asked
    assert all("class-token" in sentence for sentence in caplog.messages)
