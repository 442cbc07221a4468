"""`verify` of a written folder: it agrees, until something in the folder is changed."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file

from headcount.pretrained.loading.load import load_model
from headcount.pretrained.storing.checking import check_folder, probe_inputs, probe_outputs
from headcount.pretrained.storing.writing import write_folder
from tests.helpers.commands import a_sentence, headcount, strict_json
from tests.helpers.fabricated_inspection import facts, write_inspection
from tests.helpers.refusals import refused
from tests.helpers.tiny_models import FAMILIES, tiny_config, tiny_folder, tiny_model

from .changed_models import pruned


@pytest.fixture
def written(tmp_path):
    loaded = load_model(tiny_folder(tmp_path / "original", "mistral"))
    return write_folder(pruned(loaded.model), loaded, tmp_path / "out")


def test_verify_says_the_largest_difference(written):
    shown = headcount("verify", written)
    assert (shown.code, shown.err) == (0, "")
    check = strict_json(headcount("verify", written, "--json").out)
    assert check["agrees"]
    assert check["difference"] <= check["allowed"]
    assert f"{check['difference']:.1e}" in shown.out


def test_verify_notices_other_weights(written):
    tensors = load_file(written / "model.safetensors")
    name = "model.layers.1.self_attn.o_proj.weight"
    save_file({**tensors, name: tensors[name] * 1.01}, written / "model.safetensors", metadata={"format": "pt"})
    shown = headcount("verify", written, "--json")
    assert (shown.code, strict_json(shown.out)["agrees"]) == (1, False)
    save_file(
        {key: value for key, value in tensors.items() if key != name},
        written / "model.safetensors",
        metadata={"format": "pt"},
    )
    assert name in strict_json(headcount("verify", written, "--json").out)["missing"]


def test_a_folder_that_is_not_whole_is_refused(written):
    (written / "model.safetensors").write_bytes(b"cut")
    with refused(str(written)):
        check_folder(written)
    (written / "headcount.json").write_text(json.dumps({"kind": "prune"}))
    with refused("headcount.json"):
        check_folder(written)
    assert headcount("verify", written).code == 2


def test_files_that_were_edited_end_in_a_sentence(written):
    config = json.loads((written / "config.json").read_text())
    whole = (written / "config.json").read_text()
    faults = {"{": "JSON", "[]": "model_type", '{"model_type": "nothing"}': "nothing"}
    faults[json.dumps({**config, "architectures": ["NoSuchModel"]})] = "NoSuchModel"
    for text, word in faults.items():
        (written / "config.json").write_text(text)
        with refused(str(written), word):
            check_folder(written)
    (written / "config.json").write_text(whole)
    record = json.loads((written / "headcount.json").read_text())
    record["probe"]["inputs"] = {"input_ids": [[10**6]]}
    for edited in ([], {**record, "probe": []}, record):
        (written / "headcount.json").write_text(json.dumps(edited))
        with refused("headcount.json"):
            check_folder(written)


def test_verify_says_what_a_folder_is_that_it_cannot_check(written, tmp_path):
    a_sentence(headcount("verify", tmp_path / "original"), 2, str(tmp_path / "original"), "headcount.json")
    a_sentence(headcount("verify", tmp_path / "nowhere"), 1, str(tmp_path / "nowhere"), "no such folder")
    inspected = write_inspection(tmp_path / "inspected", facts(layers=1, heads=2, examples=4))
    a_sentence(headcount("verify", inspected), 2, str(inspected), "no cells to train again")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_takes_its_probe_inputs(family):
    inputs = probe_inputs(tiny_config(family))
    assert json.loads(json.dumps(inputs)) == inputs
    outputs = probe_outputs(tiny_model(family), inputs)
    assert np.isfinite(outputs).all()
    assert np.ptp(outputs.reshape(2, -1), axis=0).max() > 0
