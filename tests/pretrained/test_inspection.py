"""The facts of an inspection, on layers in numpy: no torch is needed."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headcount.errors import InputError
from headcount.pretrained.inspection.effort import LEVELS, schedule
from headcount.pretrained.inspection.facts import LAST_FACT, SPENT
from headcount.pretrained.inspection.inspecting import facts_of
from headcount.pretrained.inspection.measuring import Fact, Subject, from_arrays, measure_facts, to_arrays
from headcount.pretrained.inspection.model import read_trained_model
from headcount.pretrained.loading.describing import digest_of
from headcount.store import Experiment, Store

from ..helpers.fake_evaluation import FakeEvaluation, FakeLoss

EXPERIMENT = Experiment(name="fake", question="q", task="fake", axes=(), places={}, study="inspect")
MODEL = {"name": "fake", "layers": 2, "heads": 4, "key_heads": 4, "head_dim": 2, "parameters": 100}


def subject(path: Path | None = None, effort: str = "normal") -> Subject:
    evaluation = FakeEvaluation()
    sizes = {"layers": 2, "heads": 8, "used_parameters": 100}
    return Subject(
        evaluation=evaluation,  # pyright: ignore[reportArgumentType]
        experiment=EXPERIMENT,
        file=path,
        schedule=schedule(effort, **sizes, held_out=35, scored=35, calibration=35),
        model=MODEL,
        data={"kind": "own", "words": "numbers", "cannot": "", "loss": FakeLoss.name},
    )


def inspect_into(root: Path | str, die_after: int | None = None) -> dict[str, Any]:
    """What `headcount inspect` does with a results folder; killed right after a number of facts, if asked."""
    with Store.open_for_writing(root) as store:
        store.begin(EXPERIMENT)
        of, kept = subject(store.root / "weights" / "statistics.safetensors"), store.facts("fake")
        count = 0

        def keep(name: str, value: Any) -> None:
            nonlocal count
            store.put("fake", name, value)
            count += 1
            if count == die_after:
                os.kill(os.getpid(), signal.SIGKILL)

        return measure_facts(of, facts_of(of), kept, keep)


def comparable(values: Mapping[str, Any]) -> str:
    """All facts but those that are times."""
    return json.dumps({name: value for name, value in values.items() if name not in (LAST_FACT, SPENT)}, sort_keys=True)


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    of = subject()
    return measure_facts(of, facts_of(of), {}, lambda name, value: None)


def test_an_inspection_reads_as_a_trained_model(whole):
    reading = read_trained_model(json.loads(json.dumps(whole)))
    assert reading.missing == ()
    assert [layer.heads for layer in reading.layers] == [4, 4]
    assert all(layer.needed is not None for layer in reading.layers)
    assert reading.whole is not None
    assert set(reading.whole.peers) >= {"Fisher", "random 1, refit"}


def test_the_curve_begins_at_the_original_and_falls_to_no_head(whole):
    base = np.array(whole["base"]["losses"])
    for layer in range(2):
        losses = np.array(whole[f"curve/{layer}"]["losses"])
        np.testing.assert_allclose(losses[0], base)
        assert losses[-1].mean() > losses[1].mean()
        assert sorted(whole[f"curve/{layer}"]["order"]) == [0, 1, 2, 3]


def test_what_is_kept_is_not_measured_again(whole):
    again = subject()
    calls = again.evaluation.calls
    assert measure_facts(again, facts_of(again), whole, pytest.fail) == whole
    assert calls == []


def test_the_evaluation_stands_on_the_original_after_a_failure():
    of = subject()

    def fails(values: Mapping[str, Any]) -> None:
        of.evaluation.settle({0: of.evaluation.original[0].without([0])})
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        measure_facts(of, [Fact(name="x", phase="x", work=1.0, measure=fails)], {}, pytest.fail)
    assert of.evaluation.settled == {}


@pytest.mark.parametrize("die_after", [pytest.param(3, marks=pytest.mark.slow), 24])
def test_a_killed_inspection_goes_on_to_the_same_facts(tmp_path, whole, die_after):
    script = f"from {__name__} import inspect_into; inspect_into({str(tmp_path)!r}, {die_after})"
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with Store.open_for_reading(tmp_path) as store:
        kept = store.facts("fake")
    assert len(kept.keys() - {SPENT}) == (die_after + 1) // 2
    assert comparable(inspect_into(tmp_path)) == comparable(whole)


def test_another_setting_is_another_experiment(tmp_path):
    with Store.open_for_writing(tmp_path) as store:
        names = [store.begin(Experiment(**{**vars(EXPERIMENT), "settings": {"seed": seed}})).name for seed in (0, 1, 0)]
    assert names == ["fake", "fake-2", "fake"]


def test_statistics_survive_their_file(tmp_path):
    statistics = FakeEvaluation().statistics()
    for before, after in zip(statistics, from_arrays(to_arrays(statistics)), strict=True):
        for name, value in vars(before).items():
            np.testing.assert_array_equal(value, getattr(after, name))
    path = tmp_path / "weights" / "damaged.safetensors"
    path.parent.mkdir()
    path.write_bytes(b"no safetensors")
    assert len(subject(path).statistics) == len(statistics)
    again = subject(path)
    assert len(again.statistics) == len(statistics)
    assert again.evaluation.calls == [], "read, not measured"


def test_efforts_grow():
    sizes = {"layers": 6, "heads": 36, "used_parameters": 15_000_000}
    work = [schedule(effort, **sizes, held_out=1024, scored=1024, calibration=2048).operations for effort in LEVELS]
    assert work == sorted(work)
    assert len(set(work)) == len(work)
    with pytest.raises(InputError, match="hasty"):
        schedule("hasty", **sizes, held_out=1, scored=1, calibration=1)


def test_a_model_that_is_too_large_is_not_left_one_out():
    plans = [
        schedule("normal", layers=30, heads=270, used_parameters=used, held_out=1024, scored=1024, calibration=4096)
        for used in (10**6, 10**10)
    ]
    assert [plan.leave_one_out for plan in plans] == [True, False]


def test_a_digest_tells_data_apart():
    batches = [{"x": np.arange(6).reshape(2, 3)}, {"x": np.arange(6).reshape(3, 2)}, {"y": np.arange(6).reshape(2, 3)}]
    assert len({digest_of(batch) for batch in batches}) == 3
    assert digest_of(batches) == digest_of([dict(batch) for batch in batches])


@pytest.mark.parametrize(("layers", "heads", "parameters"), [(6, 72, 10_600_000), (30, 270, 134_500_000), (1, 1, 10)])
def test_the_whole_model_is_measured_at_few_removals_first(layers, heads, parameters):
    """How many heads can go is often a small share: 1 and 2 are measured, and no step is much longer than the last."""
    sizes = {"layers": layers, "heads": heads, "used_parameters": parameters}
    for effort in LEVELS:
        plan = schedule(effort, **sizes, held_out=394, scored=394, calibration=3456)
        counts = plan.removed_counts
        assert counts == tuple(sorted(set(counts)))
        assert counts[:2] == (1, 2)[: len(counts)]
        assert not counts or counts[-1] == plan.removed
        assert len(counts) <= 15
        assert all(after <= 2.5 * before for before, after in itertools.pairwise(counts))
        assert {*plan.stretches, *plan.peer_counts, *plan.zeroed_counts} <= set(counts)
