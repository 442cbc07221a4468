"""What a benchmark says where PyTorch is not installed."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = ("cost_curves", "rank_speed", "training_speed", "two_layer_speed")


@pytest.mark.parametrize("name", SCRIPTS)
def test_without_torch_a_benchmark_ends_with_a_sentence_before_it_measures(name, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    machine, script = importlib.import_module("machine"), importlib.import_module(name)
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(script, "device_jax_sees", lambda: pytest.fail("measured"))
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert f"{name}.py" in str(ended.value.code)
    assert "pip install torch" in str(ended.value.code)
