"""Folders that stock transformers loads: what is in them, and that nothing half-written is ever left."""

import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file

from headcount.errors import HeadcountError
from headcount.pretrained.layers.architectures import FAMILIES as KNOWN
from headcount.pretrained.layers.find import rewritten
from headcount.pretrained.loading.load import fingerprint_of, load_model, of_module
from headcount.pretrained.storing import writing
from headcount.pretrained.storing.checking import check_folder, first_output
from headcount.pretrained.storing.writing import write_folder
from tests.helpers.commands import contents
from tests.helpers.refusals import refused
from tests.helpers.tiny_models import DECODERS, FAMILIES, VISION, tiny_folder, tiny_input, tiny_model, tiny_tokenizer

from .changed_models import grouped, pruned, shrunk

FRESH = """
import sys
import numpy as np
import torch, transformers
torch.set_num_threads(1)
root, decoders, vision = sys.argv[1], sys.argv[2].split(","), sys.argv[3].split(",")
for folder in sys.argv[4:]:
    family = folder.split(".")[0]
    kinds = [transformers.AutoModel]
    if family in decoders:
        kinds = [transformers.AutoModel, transformers.AutoModelForCausalLM]
    if family in vision:
        kinds = [transformers.AutoModel, transformers.AutoModelForImageClassification]
    for kind in kinds:
        model, report = kind.from_pretrained(f"{root}/{folder}", output_loading_info=True)
        missing = [name for name in report["missing_keys"] if "pooler" not in name]
        assert not missing, (folder, kind, report)
        assert not report["mismatched_keys"], (folder, kind, report)
    assert not report["unexpected_keys"], (folder, report)
    given = np.load(f"{root}/{folder}.npz")
    inputs = {name: torch.from_numpy(given[name]) for name in given if name != "wanted"}
    with torch.no_grad():
        np.save(f"{root}/{folder}.npy", model(**inputs)[0].numpy())
    if family not in vision:
        assert transformers.AutoTokenizer.from_pretrained(f"{root}/{folder}").vocab_size
assert not [name for name in sys.modules if name.startswith("headcount")]
"""


def plans_of(family: str, model) -> dict:
    plans = {"pruned": pruned(model)}
    if KNOWN[family].key_heads:
        plans["grouped"] = grouped(model)
    if family in ("llama", "vit"):
        plans["shrunk"] = shrunk(model)
    return plans


def test_every_family_is_loaded_by_a_process_without_headcount(tmp_path):
    folders = []
    for family in FAMILIES:
        loaded = load_model(tiny_folder(tmp_path / f"{family}-original", family))
        before = contents(tmp_path / f"{family}-original")
        inputs = tiny_input(family)
        for kind, plan in plans_of(family, loaded.model).items():
            folder = f"{family}.{kind}"
            with rewritten(loaded.model, dict(enumerate(plan.masked))):
                wanted = first_output(loaded.model, inputs)
            write_folder(plan, loaded, tmp_path / folder, zeroed=plan.preflight(loaded.model.config).stored == "zeroed")
            np.savez(tmp_path / f"{folder}.npz", wanted=wanted, **{name: each.numpy() for name, each in inputs.items()})
            folders.append(folder)
        assert contents(tmp_path / f"{family}-original") == before
        assert fingerprint_of(loaded.model) == loaded.fingerprint
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", FRESH, str(tmp_path), ",".join(DECODERS), ",".join(VISION), *folders]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr[-2000:]
    for folder in folders:
        wanted = np.load(tmp_path / f"{folder}.npz")["wanted"]
        np.testing.assert_allclose(np.load(tmp_path / f"{folder}.npy"), wanted, atol=1e-5, err_msg=folder)
    assert not list(tmp_path.glob(".*"))


@pytest.fixture
def llama(tmp_path):
    return load_model(tiny_folder(tmp_path / "original", "llama"))


def test_the_folder_says_what_was_done(llama, tmp_path):
    out = write_folder(pruned(llama.model), llama, tmp_path / "new" / "out", command="headcount prune original")
    record = json.loads((out / "headcount.json").read_text())
    assert record["fingerprint"] == llama.fingerprint
    assert record["shape"]["stored"] == {"heads": 2, "key_heads": 2, "head_dim": 8}
    assert record["parameters"]["stored"] == sum(
        tensor.numel() for tensor in load_file(out / "model.safetensors").values()
    )
    card = (out / "README.md").read_text()
    for words in (
        "headcount prune original",
        llama.fingerprint,
        f"{record['parameters']['original']:,}",
        "Not covered",
    ):
        assert words in card
    assert check_folder(out)["agrees"]


def test_half_precision_stays_and_tied_embeddings_stay_tied(tmp_path):
    tiny_model("qwen2", tie_word_embeddings=True).to(torch.bfloat16).save_pretrained(tmp_path / "original")
    loaded = load_model(tmp_path / "original")
    out = write_folder(pruned(loaded.model), loaded, tmp_path / "out")
    stored = load_file(out / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.bfloat16}
    assert json.loads((out / "config.json").read_text())["dtype"] == "bfloat16"
    assert "lm_head.weight" not in stored
    assert check_folder(out)["agrees"]


def test_files_beside_the_model_are_copied_and_its_other_weights_are_not(tmp_path):
    folder = tiny_folder(tmp_path / "original", "vit")
    (folder / "modules.json").write_text('[{"path": ""}, {"path": "1_Pooling"}, {"path": "../escaped"}]')
    for name in ("1_Pooling", "onnx"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"old")
    (folder / "README.md").write_text("---\nlicense: mit\n---\nold")
    loaded = load_model(folder)
    out = write_folder(pruned(loaded.model), loaded, tmp_path / "out")
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert names == {
        "config.json",
        "model.safetensors",
        "headcount.json",
        "README.md",
        "modules.json",
        "1_Pooling/config.json",
    }
    assert "license: mit" in (out / "README.md").read_text()


def test_a_model_in_memory_is_written_with_its_tokenizer(tmp_path):
    loaded = of_module(tiny_model("mistral"), tiny_tokenizer())
    out = write_folder(pruned(loaded.model), loaded, tmp_path / "out")
    assert (out / "tokenizer.json").is_file()
    assert check_folder(out)["agrees"]


def test_a_place_that_is_taken_or_the_originals_is_refused(llama, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = contents(tmp_path)
    for place in ("taken", "file", "original", "original/inside", "."):
        with refused(str((tmp_path / place).resolve())):
            write_folder(pruned(llama.model), llama, tmp_path / place)
    with pytest.raises(HeadcountError) as caught:
        write_folder(pruned(llama.model), llama, "/proc/nowhere/out")
    assert "/proc" in str(caught.value)
    assert contents(tmp_path) == before
    (tmp_path / "empty").mkdir()
    assert check_folder(write_folder(pruned(llama.model), llama, tmp_path / "empty"))["agrees"]


def test_a_full_disk_leaves_nothing(llama, tmp_path):
    # A file size limit is how a process without rights meets a full disk.
    before, limits = contents(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(HeadcountError) as caught:
            write_folder(pruned(llama.model), llama, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(tmp_path / "out") in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["original"]
    assert contents(tmp_path) == before


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), RuntimeError("broken")])
def test_what_is_stopped_leaves_nothing(llama, tmp_path, monkeypatch, fault):
    def stopped(folder):
        raise fault

    monkeypatch.setattr(writing, "load_stock", stopped)
    with pytest.raises(type(fault)):
        write_folder(pruned(llama.model), llama, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["original"]


def test_a_model_that_computes_something_else_is_not_written(llama, tmp_path):
    plan = pruned(llama.model)
    wrong = plan.layers[0].with_output(plan.layers[0].output * 1.01)
    with pytest.raises(HeadcountError) as caught:
        write_folder(type(plan)(**{**vars(plan), "layers": (wrong, *plan.layers[1:])}), llama, tmp_path / "out")
    assert "nothing was written" in str(caught.value)
    assert not (tmp_path / "out").exists()


KILLED = """
import os, signal, sys
from headcount.pretrained.storing import writing
from headcount.pretrained.loading.load import load_model
from tests.pretrained.changed_models import pruned
writing.load_stock = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
loaded = load_model(sys.argv[1])
writing.write_folder(pruned(loaded.model), loaded, sys.argv[2])
"""


@pytest.mark.slow
def test_a_killed_process_leaves_no_folder_and_the_next_one_cleans_up(llama, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "original"), str(tmp_path / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    assert not (tmp_path / "out").exists()
    assert len(list(tmp_path.glob(".out.*.unfinished"))) == 1
    write_folder(pruned(llama.model), llama, tmp_path / "out")
    assert not list(tmp_path.glob(".*"))
