"""`headcount inspect` and `hc.inspect`, on tiny models of random weights. Needs torch."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

import headcount as hc
from headcount.errors import InputError
from headcount.pretrained.inspection.inspecting import prepare
from headcount.pretrained.inspection.order import kept_by_order
from headcount.pretrained.inspection.result import Inspection
from headcount.pretrained.loading.load import fingerprint_of
from headcount.store import Store

from ..helpers.commands import headcount, strict_json
from ..helpers.tiny_models import tiny_folder, tiny_model

SMALL = ("--length", 8, "--examples", 9, "--effort", "quick")
KILLED = """
import os, signal, sys
from headcount.cli import main
from headcount.store import Store
put, left = Store.put, int(sys.argv.pop())
def put_and_die(*arguments):
    global left
    put(*arguments)
    left -= 1
    left or os.kill(os.getpid(), signal.SIGKILL)
Store.put = put_and_die
main()
"""


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("models") / "llama", "llama")


@pytest.fixture(scope="module")
def inspected(llama, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspected") / "results"
    result = headcount("inspect", llama, "--out", folder, *SMALL, "--json")
    assert result.code == 0, result.err
    return folder, strict_json(result.out)


def facts_in(folder):
    with Store.open_for_reading(folder) as store:
        (experiment,) = store.experiments()
        return store.facts(experiment.name)


def untimed(facts):
    """All facts but what depends on the machine's speed and the folder's name."""
    kept = {name: fact for name, fact in facts.items() if name not in ("cost", "spent", "configurations")}
    for name in kept:
        if name.startswith("configuration/"):
            kept[name] = {**kept[name], "seconds": None, "command": None}
    return kept


def test_what_is_printed_is_what_is_kept(inspected):
    folder, printed = inspected
    facts = facts_in(folder)
    assert printed["missing"] == []
    assert len(printed["layers"]) == facts["model"]["layers"] == 2
    assert printed["model"]["fingerprint"] == facts["model"]["fingerprint"]
    assert facts["cost"]["peak_bytes"] > 0
    assert not list((folder / "weights").glob("*")), "statistics are only kept while a run is unfinished"
    assert headcount("report", folder).code == 0


def test_the_same_command_measures_nothing_again(llama, inspected):
    folder, printed = inspected
    before = facts_in(folder)
    again = headcount("inspect", llama, "--out", folder, *SMALL, "--json")
    assert strict_json(again.out) == printed
    assert facts_in(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("stored", [2, 9, 21])
def test_a_killed_inspection_goes_on_to_the_same_facts(llama, inspected, tmp_path, stored):
    arguments = [str(part) for part in ("inspect", llama, "--out", tmp_path, *SMALL)]
    # As many threads as here: sums of floats depend on how they are shared out.
    alike = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", KILLED, *arguments, str(stored)]
    ended = subprocess.run(command, capture_output=True, check=False, env=alike)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    kept = facts_in(tmp_path)
    assert headcount(*arguments).code == 0
    after = facts_in(tmp_path)
    assert untimed(after) == untimed(facts_in(inspected[0]))
    measured = after["cost"]["facts"]
    assert all(measured[name] == seconds for name, seconds in kept.get("spent", {"facts": {}})["facts"].items())


def test_another_seed_is_another_experiment(llama, tmp_path):
    assert headcount("inspect", llama, "--out", tmp_path, *SMALL, "--dry-run").code == 0
    assert not list(tmp_path.iterdir()), "a dry run writes nothing"
    prepared = [
        prepare(llama, length=8, examples=9, seed=seed, effort="quick").experiment.identity for seed in (0, 0, 1)
    ]
    assert prepared[0] == prepared[1] != prepared[2]


@pytest.mark.parametrize(
    ("options", "given"),
    [(("--effort", "hasty"), "hasty"), (("--tolerance", "2"), "2.0"), (("--data", "/nowhere.txt"), "nowhere.txt")],
)
def test_a_wrong_request_is_one_sentence(llama, tmp_path, options, given):
    result = headcount("inspect", llama, "--out", tmp_path / "out", *options)
    assert (result.code, result.out) == (2, "")
    assert given in result.err
    assert not (tmp_path / "out").exists()


def test_ctrl_c_names_the_command_that_goes_on(llama, tmp_path, monkeypatch):
    put = Store.put

    def interrupted(self, experiment, name, content):
        put(self, experiment, name, content)
        if name == "base":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Store, "put", interrupted)
    result = headcount("inspect", llama, "--out", tmp_path, *SMALL)
    assert result.code == 130
    assert f"headcount inspect {llama} --out {tmp_path}" in result.err


def test_a_module_in_memory_is_left_as_it_was():
    model = tiny_model("llama").train()
    before, training = fingerprint_of(model), model.training
    inspection = hc.inspect(model, effort="quick", length=8, examples=9, progress=False)
    assert (fingerprint_of(model), model.training) == (before, training)
    assert inspection.importance.shape == (2, 4)
    assert np.isfinite(inspection.importance).all()
    assert str(inspection).splitlines()[0] == inspection.document.headline
    assert "own" in str(inspection) or "itself" in str(inspection), "the model was judged on what it wrote"
    assert not any(each.command for each in inspection.reading.configurations), "no command reads a module in memory"
    plan = inspection.plan(key_heads=1)
    smaller = plan.apply(model)
    assert smaller.config.num_key_value_heads == 1
    with torch.no_grad():
        assert smaller(torch.arange(1, 9)[None]).logits.shape == (1, 8, 32)
    assert fingerprint_of(model) == before


def test_a_plan_removes_the_heads_that_the_inspection_found(monkeypatch):
    def searched(*_, **__):
        pytest.fail("the order is known")

    inspection = hc.inspect(tiny_model("llama"), effort="quick", length=8, examples=9, progress=False)
    monkeypatch.setattr("headcount.pretrained.removal.descent.descend", searched)
    (layer, head), *_ = inspection.facts["descent"]["removed"]
    assert [head for head in range(4) if head not in inspection.plan(remove=1).kept[layer]] == [head]
    layers = inspection.subject.evaluation.layers
    expected = [
        kept_by_order(inspection.facts[f"curve/{each.index}"]["order"], each.heads, each.key_heads, 2)
        for each in layers
    ]
    assert [list(kept) for kept in inspection.plan(keep=2).kept] == expected


def test_the_tolerance_of_the_command_is_that_of_the_page(llama, inspected):
    folder, printed = inspected
    assert printed["tolerance"] == 0.01
    other = headcount("inspect", llama, "--out", folder, *SMALL, "--tolerance", "0.5", "--json")
    assert strict_json(other.out)["tolerance"] == 0.5
    assert "0.5 x" in headcount("show", folder).out
    assert headcount("inspect", llama, "--out", folder, *SMALL).code == 0
    assert "0.01 x" in headcount("show", folder).out
    count = len(facts_in(folder)["asked"]["facts"])
    assert f"{count} of {count} facts" in headcount("status", folder).out


def test_a_folder_with_another_model_says_so(llama, inspected, tmp_path):
    other = tiny_folder(tmp_path / "gpt2", "gpt2")
    shutil.copytree(inspected[0], tmp_path / "results")
    result = headcount("inspect", other, "--out", tmp_path / "results", *SMALL)
    assert result.code == 0, result.err
    assert f"also holds an inspection of {llama.name}" in result.err


def test_as_many_tokens_are_held_out_as_the_effort_allows(llama):
    """A small model is judged on all tokens of the effort, in enough examples for an interval."""
    counts = prepare(llama, effort="quick").examples.counts()
    assert 0.9 * 1024 <= counts["tokens"]["held_out"] <= 1.2 * 1024
    assert counts["examples"]["held_out"] >= 24
    assert counts["tokens"]["calibration"] >= 2 * counts["tokens"]["held_out"] * 0.9


def test_a_plan_needs_one_wish(inspected):
    with Store.open_for_reading(inspected[0]) as store:
        (experiment,) = store.experiments()
    inspection = Inspection(facts={}, experiment=experiment)
    for wishes in ({}, {"keep": 2, "remove": 3}):
        with pytest.raises(InputError, match="keep"):
            inspection.plan(**wishes)
