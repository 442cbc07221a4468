"""A node of a Ray cluster is lost in the middle of a sweep, and another one comes: nothing is lost or trained twice."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headcount.engine import run_sweep
from headcount.events import Event
from headcount.store import Outcome, Store

from ..helpers.sweeps import TRAIN, swept

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SWEEP = swept(seed=range(24), train=replace(TRAIN, steps=2000))


@pytest.fixture
def nodes(monkeypatch):
    """A head that trains nothing; nodes with one core each are added by whoever tests."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    Path("/tmp/ray").mkdir(exist_ok=True)  # where Ray writes the cluster's address, whatever its own folder is
    with tempfile.TemporaryDirectory(prefix="hc-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        settings = {"num_cpus": 0, "include_dashboard": False, "temp_dir": folder}
        cluster = Cluster(initialize_head=True, head_node_args=settings)
        try:
            yield cluster
        finally:
            cluster.shutdown()


def stored(root, **options):
    """The records and weights of a run, and how many it says were trained."""
    with Store.open_for_writing(root) as store:
        summary = run_sweep(SWEEP, store, **options)
        return summary, {record.cell.key: (record, store.weights(record.cell.key)) for record in store.records()}


def test_a_sweep_survives_the_loss_of_a_node(nodes, tmp_path):
    from headcount.cluster import ray_executor

    _, expected = stored(tmp_path / "threads")
    _, leaves = nodes.add_node(num_cpus=1), nodes.add_node(num_cpus=1)
    seen: list[tuple[int, int | None]] = []

    def hear(event: Event) -> None:
        if event.kind != "workers":
            return
        done = event.done
        seen.append((done, event.total))
        if done >= 1 and len(nodes.worker_nodes) == 2 and leaves in nodes.worker_nodes:
            nodes.remove_node(leaves, allow_graceful=False)
            nodes.add_node(num_cpus=1)

    with ray_executor(nodes.address) as executor:
        assert executor.machine.machines == 2
        summary, found = stored(tmp_path / "ray", executor=executor, events=hear)
    assert not nodes.worker_nodes & {leaves}, "a node was lost"
    done, buckets = zip(*seen, strict=True)
    assert done[-1] == buckets[-1] > done[0]
    assert summary.trained == len(SWEEP.cells)
    assert summary.outcomes == {Outcome.FINISHED: len(SWEEP.cells)}
    assert found.keys() == expected.keys()
    for key, (record, weights) in expected.items():
        assert found[key][0].metrics == record.metrics
        assert found[key][0].curve == record.curve
        for name, array in weights.items():
            np.testing.assert_array_equal(found[key][1][name], array)
