"""Tables and figure of a benchmark run that was stopped early, with a program that failed."""

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def results():
    def row(length, members, program, **measured):
        return {"length": length, "members": members, "heads": 4, "program": program} | measured

    return {
        "device": "a machine",
        "kind": "cpu",
        "versions": {"python": "3"},
        "centre": {"length": 32, "heads": 4, "members": 8},
        "peak_flops": 1e11,
        "rows": [
            row(32, 8, "fused", us=20.0, memory_bytes=8_000_000),
            row(32, 8, "reference", us=10.0, memory_bytes=16_000_000),
            row(32, 8, "plain", us=400.0, memory_bytes=5_000_000),
            row(8, 8, "fused", us=5.0, memory_bytes=4_000_000),
            row(8, 8, "reference", failed="MemoryError: 7 bytes"),
            row(32, 1, "all", failed="not measured: out of time"),
        ],
    }


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module


def test_the_tables_say_where_it_is_slower_and_what_failed(module, results):
    text = module("tables").curves_markdown(results)
    assert "T = 32, 8 members, 4 heads (2.00 times)" in text
    assert "MemoryError: 7 bytes" in text
    assert "| 32 | 20 | 10 | - | 400 | - | 0.5 | - | 20 |" in text


def test_whole_trainings_are_derived_from_steps(module, results):
    assert "| 32 | 0.06 | 0.03 | 1.2 |" in module("tables").expectation_markdown([results])


def test_the_figure_is_drawn_from_what_there_is(module, results, tmp_path):
    module("curves_figure").draw([results, results], tmp_path / "speed.svg")
    assert (tmp_path / "speed.svg").read_text().count('id="fused') == 8
