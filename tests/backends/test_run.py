"""Sweeps by every back end: the same cells, nearly the same curves, and a name in the provenance."""

import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from headcount import doctor
from headcount.backends import Kernels, backend_name, choose, kernels_here
from headcount.engine import hardware, plan_sweep, run_sweep, trainer
from headcount.engine.train import program
from headcount.store import Outcome, Store

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.sweeps import CPU, TRAIN, swept
from ..helpers.tolerance import assert_trees_close

ROOT = Path(__file__).parents[2]
SWEEP = swept(train=replace(TRAIN, steps=40), heads=(2,), length=(4,))


def records_of(folder, backend: str):
    with Store.open_for_writing(folder) as store:
        run_sweep(SWEEP, store, plan=plan_sweep(SWEEP, machine=replace(CPU, backend=backend)))
        return store.records()


def test_a_sweep_has_the_same_cells_and_nearly_the_same_curves(fused, tmp_path):
    """The curves agree to the tests' tolerance over these 40 steps; rounding grows over thousands."""
    by_kernels, plain = (records_of(tmp_path / backend, backend) for backend in (fused, "reference"))
    assert [record.cell.key for record in by_kernels] == [record.cell.key for record in plain]
    assert {record.provenance["backend"] for record in by_kernels} == {backend_name(fused)}
    assert {record.provenance["backend"] for record in plain} == {"reference"}
    for got, want in zip(by_kernels, plain, strict=True):
        assert np.allclose(got.curve, want.curve, rtol=1e-3)


def test_what_a_kernel_cannot_do_is_trained_by_the_reference_and_said_once(tmp_path, monkeypatch, caplog):
    def refusing(*shape):
        if shape[-1] == "fused":
            raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: 9000 heads are too many")
        return program(*shape)

    monkeypatch.setattr(trainer, "program", refusing)
    monkeypatch.setattr(choose, "_told", set())
    with caplog.at_level(logging.WARNING):
        records = records_of(tmp_path, "fused")
    assert {record.outcome for record in records} == {Outcome.FINISHED}
    assert {record.provenance["backend"] for record in records} == {"reference"}
    (said,) = caplog.messages
    assert "9000 heads" in said


def test_the_doctor_says_what_is_lost_without_kernels(monkeypatch):
    monkeypatch.setattr(doctor, "choose_backend", lambda: "reference")
    monkeypatch.setattr(doctor, "kernels_here", lambda: Kernels(installed=False, problem="not installed"))
    fine, found = doctor._backend()
    assert fine
    assert "not installed" in found
    monkeypatch.undo()
    monkeypatch.setenv("HEADCOUNT_BACKEND", "auto")
    monkeypatch.setenv("HEADCOUNT_KERNELS_LIBRARY", "/none.so")
    fine, found = doctor._backend()
    assert not fine
    assert "/none.so" in found


def test_the_doctor_names_the_kernels(fused, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_BACKEND", "auto")
    assert doctor._backend() == (True, backend_name(fused))
    assert hardware().backend == fused


FORCED = """
import sys
import jax, numpy as np
from headcount.backends import choose_backend, kernels_here
from tests.backends.test_advance import ADDED, LABELS, SHORT, trained
from tests.backends.test_pool import Case, changes_of, run
generator = np.random.default_rng(0)
shapes = ((37, 6, 3), (19, 3), (1, 19), (5, 19), (6, 5))
case = Case(*(generator.normal(size=shape).astype(np.float32) for shape in shapes))
pooled = run(choose_backend("fused"), False, case, *changes_of(case))
moved = [trained(setting, "fused")[0].model for setting in (ADDED, LABELS, SHORT)]
np.savez(sys.argv[1], *jax.tree.leaves((pooled, moved)))
print(kernels_here().unit)
"""
"""Pooling, its gradient, and whole steps."""


@pytest.mark.slow
@pytest.mark.parametrize(("forced", "unit"), [("plain", "plain"), ("avx2", "AVX2")])
def test_a_lower_instruction_set_gives_the_same_answers_within_rounding(fused, tmp_path, forced, unit):
    if jax.default_backend() != "cpu" or kernels_here().unit in ("NEON", unit, "plain"):
        pytest.skip("for x86 processors that have a higher one")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    answers = []
    for name, given in (("usual", {}), (forced, {"HEADCOUNT_KERNELS_CPU": forced})):
        file = tmp_path / f"{name}.npz"
        environment = os.environ | {"PYTHONPATH": path} | given
        said = subprocess.run(
            [sys.executable, "-c", FORCED, file], env=environment, capture_output=True, text=True, check=True
        )
        with np.load(file) as arrays:
            answers.append(dict(arrays))
    assert said.stdout.strip() == unit
    assert_trees_close(*answers)
    assert any(not np.array_equal(answers[0][name], answers[1][name]) for name in answers[0])  # two sets, not one twice
