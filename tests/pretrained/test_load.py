"""Models are loaded ready to be measured, and what cannot be loaded ends in one sentence."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import transformers
from torch import nn

from headcount.pretrained.layers.find import attention_layers
from headcount.pretrained.loading.load import load_model, of_module
from tests.helpers.refusals import refused
from tests.helpers.tiny_models import FAMILIES, VISION, tiny_folder, tiny_input, tiny_model


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("models") / "llama", "llama")


@pytest.fixture
def folder(llama, tmp_path):
    """A copy that a test may damage."""
    for file in llama.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stored_model_is_the_one_in_memory(family, tmp_path):
    loaded, model = load_model(tiny_folder(tmp_path, family)), tiny_model(family)
    inputs = tiny_input(family)
    torch.testing.assert_close(loaded.model(**inputs)[0], model(**inputs)[0], atol=1e-6, rtol=1e-6)
    assert loaded.family == family
    assert (loaded.tokenizer is None) == (family in VISION)
    assert not loaded.model.training
    assert all(weight.dtype == torch.float32 and not weight.requires_grad for weight in loaded.model.parameters())
    assert loaded.fingerprint == of_module(model).fingerprint


def test_half_precision_on_disk_is_float32_in_memory(tmp_path):
    tiny_model("llama").to(torch.bfloat16).save_pretrained(tmp_path)
    assert next(load_model(tmp_path).model.parameters()).dtype == torch.float32


def test_the_fingerprint_is_of_the_weights(llama):
    fingerprint = load_model(llama).fingerprint
    assert len(fingerprint) == 20
    assert load_model(llama).fingerprint == fingerprint
    assert of_module(tiny_model("llama", seed=1)).fingerprint != fingerprint


def test_a_pooler_that_the_files_lack_does_not_change_the_fingerprint(tmp_path):
    model = tiny_model("bert")
    model.pooler = None
    model.save_pretrained(tmp_path)
    assert load_model(tmp_path).fingerprint == load_model(tmp_path).fingerprint


def test_a_model_in_training_is_copied_and_left_alone():
    model = tiny_model("gpt2").requires_grad_(True).train()
    loaded = of_module(model)
    assert model.training
    assert all(weight.requires_grad for weight in model.parameters())
    assert not loaded.model.training
    assert loaded.source == "GPT2LMHeadModel"
    ready = tiny_model("gpt2")
    assert of_module(ready).model is ready
    assert of_module(ready, device="cpu").model is ready
    with refused("nowhere"):
        of_module(ready, device="nowhere")


def changed_config(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("damage", "given"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json"),
        (lambda folder: (folder / "config.json").write_text('{"model_ty'), "JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "model_type"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "model.safetensors.index.json"), "index"),
        (lambda folder: changed_config(folder, quantization_config={"quant_method": "gptq", "bits": 4}), "quantised"),
        (lambda folder: changed_config(folder, model_type="novel_7"), "novel_7"),
        (lambda folder: changed_config(folder, architectures=["NovelForCausalLM"]), "NovelForCausalLM"),
        (lambda folder: changed_config(folder, architectures=["pipeline"]), "pipeline"),
        (lambda folder: changed_config(folder, num_hidden_layers=3), "model.layers.2"),
        (lambda folder: changed_config(folder, num_attention_heads=5), "5"),
        (lambda folder: changed_config(folder, head_dim=16), "(32, 32)"),
        (lambda folder: changed_config(folder, is_encoder_decoder=True), "encoder"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer"),
    ],
)
def test_a_damaged_folder_is_refused(folder, damage, given):
    damage(folder)
    with refused(given):
        load_model(folder)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.99])
def test_a_truncated_file_of_weights_is_refused(folder, part):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with refused(str(folder)):
        load_model(folder)


def test_a_missing_shard_is_refused(tmp_path):
    tiny_model("llama").save_pretrained(tmp_path, max_shard_size="20KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 1
    shards[-1].unlink()
    with refused(shards[-1].name):
        load_model(tmp_path)


@pytest.mark.parametrize("device", ["cuda:77", "abacus"])
def test_a_device_that_is_not_there_is_refused(llama, device):
    with refused(device):
        load_model(llama, device=device)


def test_places_without_a_model_are_refused(tmp_path, llama):
    with refused(f"{tmp_path}/none"):
        load_model(tmp_path / "none")
    with refused("a file"):
        load_model(llama / "config.json")
    with refused("GGUF"):
        load_model("models/tiny.gguf")
    (tmp_path / "tiny-q4.gguf").touch()
    with refused("GGUF"):
        load_model(tmp_path)


@pytest.fixture
def cached(llama, monkeypatch, tmp_path):
    """A cache of the hub that holds the tiny model as someone/llama, without its weights."""
    snapshot = tmp_path / "models--someone--llama" / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(snapshot.name)
    for file in llama.iterdir():
        if file.suffix != ".safetensors":
            (snapshot / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return snapshot


def test_a_complete_download_is_used_and_an_incomplete_one_is_not(cached, llama):
    with refused("someone/llama", "HF_HUB_OFFLINE"):
        load_model("someone/llama")
    (cached / "model.safetensors").write_bytes((llama / "model.safetensors").read_bytes())
    assert load_model("someone/llama").fingerprint == load_model(llama).fingerprint


def test_a_hub_that_is_not_asked_is_named(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with refused("nobody/no-such-model", "HF_HUB_OFFLINE", "folder"):
        load_model("nobody/no-such-model")


def test_a_hub_that_cannot_be_reached_is_named(monkeypatch):
    """Nothing is tried twice."""
    calls = []

    def unreachable(url, **_):
        calls.append(url)
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
    with refused("nobody/no-such-model", "no route", "folder"):
        load_model("nobody/no-such-model")
    assert len(calls) == 1


def small(kind, **fields):
    with torch.device("meta"):
        return transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, **fields))


WIDTHS = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 32, "intermediate_size": 16}


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (lambda: small("t5", d_model=16, d_kv=4, d_ff=16, num_layers=1, vocab_size=32), "t5"),
        (lambda: small("bart", d_model=16, encoder_layers=1, decoder_layers=1, vocab_size=32), "bart"),
        (lambda: small("mamba", **WIDTHS), "mamba"),
        (lambda: small("qwen3_next", **WIDTHS, num_attention_heads=2, num_key_value_heads=1), "linear_attention"),
        (lambda: small("lfm2", **WIDTHS, num_attention_heads=2, layer_types=["conv", "full_attention"]), "conv"),
        (lambda: small("clip"), "text, vision"),
        (lambda: tiny_model("bert", is_decoder=True, add_cross_attention=True), "cross"),
        (lambda: nn.ModuleDict({name: tiny_model("bert", layers=1) for name in ("left", "right")}), "left, right"),
        (lambda: small("albert", **WIDTHS, num_attention_heads=2), "albert"),
        (lambda: nn.Sequential(nn.Linear(2, 2)), "Sequential"),
        (lambda: nn.TransformerDecoderLayer(8, 2), "TransformerDecoderLayer"),
    ],
)
def test_what_is_not_softmax_attention_that_we_know_is_refused(model, given):
    with refused(given):
        attention_layers(model())


def replaced(model, name, module):
    model.set_submodule(name, module)
    return model


class Wrapped(nn.Module):
    """What an adapter puts around a projection."""

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer


def test_projections_that_are_no_plain_matrices_are_refused():
    name = "model.layers.1.self_attn.k_proj"
    model = tiny_model("llama")
    with refused(name, "merge"):
        attention_layers(replaced(model, name, Wrapped(nn.Linear(32, 16))))
    integers = nn.Linear(32, 16, bias=False)
    integers.weight = nn.Parameter(torch.zeros(16, 32, dtype=torch.int8), requires_grad=False)
    with refused(name, "quantised"):
        attention_layers(replaced(model, name, integers))
    with refused("gated or latent"):
        attention_layers(replaced(tiny_model("llama"), "model.layers.1.self_attn.q_proj", nn.Linear(32, 64)))


def test_a_layer_without_attention_is_not_passed_over():
    with refused("1 of 2"):
        attention_layers(replaced(tiny_model("llama"), "model.layers.1.self_attn", nn.Identity()))
