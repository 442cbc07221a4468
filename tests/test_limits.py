"""What is larger than a limit is refused by arithmetic; the message has the limit and what raises it."""

import contextlib
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headcount as hc
from headcount._limits import DEFAULTS, MAX_COUNT, limit, max_bytes, require_fits, require_within
from headcount.cli.arguments import counts
from headcount.data.files import read_examples
from headcount.engine import Sweep, plan_sweep, run_sweep
from headcount.request import Request
from headcount.search import effort_of
from headcount.search.costs import costs
from headcount.store import Store

from .data.written import write_parquet, write_text_table
from .helpers.refusals import refused
from .helpers.sweeps import CPU, swept

QUICK = effort_of("quick")


@given(size=st.integers(0, 2**80), most=st.floats(0.001, 1000))
def test_memory_is_refused_exactly_above_the_limit(size, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADCOUNT_MAX_GB", str(most))
        allowed = size <= max_bytes()
        with contextlib.nullcontext() if allowed else refused("mine", "HEADCOUNT_MAX_GB"):
            require_fits("mine", size)


@given(name=st.sampled_from(sorted(DEFAULTS)), count=st.integers(0, 10**12), most=st.integers(1, 10**9))
def test_every_limit_is_raised_by_its_variable(name, count, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, str(most))
        with contextlib.nullcontext() if count <= most else refused(f"{most:,}", name):
            require_within("it", count, name)


@pytest.mark.parametrize("text", ["", "many", "0", "-1", "nan", "inf"])
def test_a_limit_that_is_no_number(monkeypatch, text):
    monkeypatch.setenv("HEADCOUNT_MAX_COLUMNS", text)
    with refused("HEADCOUNT_MAX_COLUMNS"):
        limit("HEADCOUNT_MAX_COLUMNS")


@pytest.mark.parametrize("text", ["1000000000000000000", "1:1000000000000", "1:9999999", "9" * 5000, "1:2:3:4"])
def test_ranges_are_counted_before_they_are_made(text):
    with refused("--lengths", text[:20]):
        counts(text, "--lengths")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"lengths": [10**18]}, "length"),
        ({"lengths": [MAX_COUNT]}, "length"),
        ({"seeds": 10**12}, "HEADCOUNT_MAX_MODELS"),
        ({"heads": range(1, 10**9), "seeds": 2}, "HEADCOUNT_MAX_MODELS"),
        ({"heads": [10**9]}, "heads"),
        ({"options": {"steps": 10**18}}, "steps"),
        ({"options": {"batch": 10**18}}, "batch"),
    ],
)
def test_sizes_that_no_machine_has(asked, words):
    with refused(words):
        _ = Request(task=hc.find_task("max-plus-min"), **asked).planned


def _plan(machine, task=None, **asked):
    planned = Request(task=task or hc.find_task("max-plus-min"), **asked).planned
    return plan_sweep(planned, machine=machine) if isinstance(planned, Sweep) else costs(planned, QUICK, machine).least


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"heads": [10**5], "seeds": 1}, "weights"),
        ({"heads": [1, 2], "options": {"hidden": 10**9}}, "weights"),
        ({"options": {"batch": 10**9}}, "a batch of 1,000,000,000"),
        ({"options": {"train_examples": 10**9}, "lengths": [64]}, "examples of 64 tokens"),
        (
            {"task": hc.FunctionTask(function=lambda tokens: jnp.tile(tokens[0, 0], 10**6), length=8, dim=2)},
            "1,000,000 outputs",
        ),
    ],
)
def test_anything_is_planned_and_only_training_needs_the_memory(monkeypatch, asked, words):
    plan = _plan(replace(CPU, memory=2**33), **asked)
    with refused(words, "8.0 GiB", "HEADCOUNT_MAX_GB"):
        plan.require_trainable()
    replace(plan, machine=replace(CPU, memory=plan.largest[0])).require_trainable()
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "1e9")
    plan.require_trainable()


def test_training_is_refused_before_anything_is_stored(tmp_path):
    sweep = swept(heads=[1], seed=[0])
    plan = plan_sweep(sweep, machine=replace(CPU, memory=100))
    with Store.open_for_writing(tmp_path) as store:
        with refused("HEADCOUNT_MAX_GB"):
            run_sweep(sweep, store, plan=plan)
        assert not store.experiments()


@pytest.mark.parametrize(
    "sizes", [{"intrinsic_dim": 10**18}, {"intrinsic_dim": 10**9, "dim": 10**9}, {"task_seed": -1}]
)
def test_sizes_of_a_task(sizes):
    with refused(next(iter(sizes)) if len(sizes) == 1 else "HEADCOUNT_MAX_GB"):
        hc.find_task("sum-of-maxima", **sizes)


def test_a_header_that_claims_more_than_the_file_has(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((4, 2, 2)))
    path.write_bytes(path.read_bytes().replace(b"(4, 2, 2)", b"(9, 9, 9)"))
    with refused("x.npy", f"{8 * 9**3:,} bytes"):
        read_examples(path, targets=path)


def test_columns_and_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_MAX_COLUMNS", "2")
    wide = write_text_table(tmp_path / "wide.csv", {"a": [1], "b": [2], "y": [3]})
    with refused("wide.csv", "3 columns", "HEADCOUNT_MAX_COLUMNS"):
        read_examples(wide)
    monkeypatch.delenv("HEADCOUNT_MAX_COLUMNS")
    monkeypatch.setenv("HEADCOUNT_MAX_GB", "1e-5")
    pytest.importorskip("pyarrow")
    long = write_parquet(tmp_path / "long.parquet", {"a": [0.5] * 10_000, "y": [1.0] * 10_000})
    with refused("long.parquet", "HEADCOUNT_MAX_GB"):
        read_examples(long)


def test_a_line_over_its_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_MAX_LINE_MB", "1")
    (tmp_path / "mine.csv").write_text("a,y\n" + "1" * 2**20 + ",2\n")
    with refused("mine.csv", "line 2", "HEADCOUNT_MAX_LINE_MB"):
        read_examples(tmp_path / "mine.csv")
