"""`--on`: every verb that trains hands its buckets to what was asked for, and lets it go."""

import sys

import pytest

import headcount as hc
from headcount.engine import Threads

from ..helpers import fabricated
from ..helpers.commands import a_sentence, contents, headcount, start, strict_json
from ..helpers.sweeps import CPU


class PretendedCluster(Threads):
    """A cluster of six workers that counts how often it is opened and closed."""

    def __init__(self, opened: list, *how):
        super().__init__(CPU)
        self.opened, self.how, self.closed = opened, how, 0
        opened.append(self)

    def close(self):
        self.closed += 1


@pytest.fixture
def clusters(monkeypatch) -> list[PretendedCluster]:
    """The clusters that were started, with what each was asked for."""
    opened = []

    def ray_executor(on, *, workers=None, backend=None):
        return PretendedCluster(opened, on, workers)

    monkeypatch.setattr("headcount.cluster.ray_executor", ray_executor)
    return opened


@pytest.mark.parametrize("words", [("--seeds", 2), ()], ids=["sweep", "question"])
def test_a_measurement_is_trained_where_it_is_asked_for(tmp_path, pretended, clusters, words):
    measure = ("measure", "sum-of-maxima", "--lengths", 8, *words, "--out", tmp_path)
    result = headcount(*measure, "--on", "ray", "--workers", 4)
    assert result.code == 0, result.err
    (cluster,) = clusters
    assert (cluster.how, cluster.closed) == (("ray", 4), 1)
    assert set(pretended.executors) == {cluster}
    assert "Ray" in result.err
    if words:  # a sweep that is stored needs no cluster
        assert headcount(*measure, "--on", "ray://head:10001").out == result.out
        assert len(clusters) == 1


def test_python_says_where_too(tmp_path, pretended, clusters):
    hc.measure("sum-of-maxima", lengths=[8], seeds=2, out=tmp_path, on="ray", workers=2, progress=False)
    shared = PretendedCluster([])
    hc.measure("max-plus-min", lengths=[8], seeds=2, out=tmp_path, on=shared, progress=False)
    assert pretended.executors == [clusters[0], shared]
    assert (clusters[0].closed, shared.closed) == (1, 0)


def test_a_study_is_trained_where_it_is_asked_for(tmp_path, pretended, clusters, monkeypatch):
    monkeypatch.setattr("headcount.papers.cli.reproduce.run_sweep", pretended.run_sweep)
    result = headcount("reproduce", "table5", "--scale", "smoke", "--out", tmp_path, "--on", "ray")
    assert result.code == 0, result.err
    assert pretended.executors == clusters
    assert clusters[0].closed == 1


def test_cells_are_verified_where_it_is_asked_for(table5, clusters, monkeypatch):
    asked = []

    def pretend(sweep, store, *, executor, **_):
        asked.append(executor)
        store.commit(fabricated.finished(fabricated.Sweep(sweep.experiment, sweep.cells)))

    monkeypatch.setattr("headcount.verify.run_sweep", pretend)
    result = headcount("verify", table5, "--cells", 2, "--on", "head:6379")
    assert result.code in (0, 1), result.err
    assert asked == clusters
    assert (clusters[0].how, clusters[0].closed) == (("head:6379", None), 1)


def test_a_dry_run_plans_for_the_cluster(tmp_path, clusters, no_training):
    measure = ("measure", "sum-of-maxima", "--lengths", 8, "--out", tmp_path / "none", "--dry-run", "--json")
    for words in ((), ("--seeds", 2)):
        plan = strict_json(headcount(*measure, *words, "--on", "ray").out)
        assert plan["device"] == CPU.description
    assert [cluster.closed for cluster in clusters] == [1, 1]
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("words", "offending"),
    [
        (("--on", "rey"), ("--on", "rey")),
        (("--on", "ray://head"), ("--on", "ray://head")),
        (("--on", "ray", "--workers", "0"), ("--workers", "0")),
        (("--on", "ray", "--workers", 10**18), ("--workers", str(10**18))),
        (("--on", "head:0"), ("--on", "head:0", "65535")),
        (("--workers", "2"), ("--workers", "--on", "2")),
        (("--on", "threads", "--workers", "2"), ("--workers", "--on", "2")),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_any_work(tmp_path, no_training, clusters, words, offending):
    out = tmp_path / "out"
    commands = [("measure", "sum-of-maxima", "--out", out), ("verify", out)]
    commands += [("reproduce", "table5", "--scale", "smoke", "--out", out)]
    for command in commands:
        a_sentence(headcount(*command, *words), 2, *offending)
    assert not out.exists()
    assert not clusters


def test_nobody_else_imports_ray(tmp_path, pretended, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for words in ((), ("--on", "threads")):
        assert headcount("measure", "sum-of-maxima", "--lengths", 8, "--seeds", 2, "--out", tmp_path, *words).code == 0
    assert all(type(each) is Threads for each in pretended.executors)


@pytest.mark.slow
def test_a_local_cluster_writes_the_bytes_of_threads(tmp_path):
    """In processes of their own: Ray stays in one that has started it."""
    pytest.importorskip("ray", reason="an extra, which the default tests do without")
    exports = []
    for where in ((), ("--on", "ray", "--workers", 2)):
        out = tmp_path / f"results{len(exports)}"
        sweep = ("sum-of-maxima", "--seeds", 2, "--heads", "1:2", "--lengths", "4,8", "--steps", 20)
        process = start("measure", *sweep, "--out", out, *where)
        _, err = process.communicate()
        assert process.returncode == 0, err
        assert "Traceback" not in err
        assert "Warning" not in err
        exports.append([headcount("export", out, "--format", kind).out for kind in ("csv", "json")])
    assert exports[0] == exports[1]
    again = headcount("verify", tmp_path / "results1", "--cells", 2, "--json")
    assert {each["agreement"] for each in strict_json(again.out)} == {"same"}
