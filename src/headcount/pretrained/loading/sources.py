"""Where a trained model lies: a folder, or a name on the hub, refused in a sentence before anything is loaded."""

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import InputError, require
from ..plugin import need

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
WHOLE = ("model.safetensors", "pytorch_model.bin")
"""The weights in one file; FILE.index.json names several."""
WANTED = ("*.json", "*.txt", "*.model", "*.jinja")
"""Files of a model on the hub that are downloaded with its weights."""
LONGEST_REASON = 300
"""Characters that are shown of another package's message."""


def found_folder(name: str, check: Callable[[Path], object]) -> Path:
    """The folder itself, or the one that a hub name was downloaded to; it has a config and all files of weights.

    `check` raises for a folder with the config.json of a model that cannot be used, before weights are downloaded.
    """
    need()
    folder = Path(name).expanduser()
    if folder.is_dir():
        _refuse_missing(folder)
        return folder
    require(
        folder.suffix != ".gguf",
        f"{name}: a GGUF file holds quantised weights; give the original model's folder (config.json, safetensors).",
    )
    require(not folder.exists(), f"{name} is a file; give the folder with config.json and the weights.")
    looks_local = name.startswith((".", "/", "~")) or not HUB_NAME.fullmatch(name)
    require(not looks_local, f"{name}: no such folder; give one with config.json and the weights.")
    return _downloaded(name, check)


def _downloaded(name: str, check: Callable[[Path], object]) -> Path:
    import huggingface_hub
    from huggingface_hub import hf_hub_download, hf_hub_url, list_repo_files, snapshot_download

    cached = None
    with contextlib.suppress(Exception):  # nothing was downloaded before, or the cache cannot be read
        cached = Path(snapshot_download(name, local_files_only=True))
    if cached is not None and _missing_file(cached) is None:
        return cached
    try:
        if huggingface_hub.constants.HF_HUB_OFFLINE or os.environ.get("TRANSFORMERS_OFFLINE"):
            raise OSError("HF_HUB_OFFLINE is set")
        # Without a network this fails at once; the others would retry for half a minute.
        huggingface_hub.get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=10)
        check(Path(hf_hub_download(name, "config.json")).parent)
        safe = any(file.endswith(".safetensors") for file in list_repo_files(name))
        folder = Path(snapshot_download(name, allow_patterns=[*WANTED, WEIGHTS[0] if safe else WEIGHTS[1]]))
        _refuse_missing(folder)
        return folder
    except InputError:
        raise
    except Exception as error:  # the package raises its own kinds, those of its HTTP client, and OSError
        raise InputError(
            f"{name} is no folder here and could not be downloaded from the Hugging Face hub ({reason(error)}); "
            "give a local folder with config.json and the weights."
        ) from error


def _refuse_missing(folder: Path) -> None:
    """Raise InputError unless the folder has a config and all files of weights."""
    missing = _missing_file(folder)
    require(
        missing != "config.json" or not any(folder.glob("*.gguf")),
        f"{folder} has only GGUF files, which are quantised; give the folder of the original model.",
    )
    require(missing is None, f"{folder} has no {missing}; give a complete folder, as save_pretrained writes it.")


def _missing_file(folder: Path) -> str | None:
    """The first file without which a model cannot be loaded, None where all are there."""
    if not (folder / "config.json").is_file():
        return "config.json"
    for whole in WHOLE:
        if (folder / whole).is_file():
            return None
        index = folder / f"{whole}.index.json"
        if index.is_file():
            try:
                shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
                raise InputError(f"{index} is not an index of weights ({reason(error)}); copy it again.") from error
            return next((shard for shard in shards if not (folder / shard).is_file()), None)
    return WHOLE[0]


def read_config(folder: Path) -> Any:
    """The config as transformers reads it; raises InputError for what cannot be a model that headcount measures."""
    import transformers

    from ..layers.find import refuse_config

    try:
        stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{folder / 'config.json'} is not JSON ({reason(error)}); copy it again.") from error
    kind = stored.get("model_type") if isinstance(stored, dict) else None
    require(isinstance(kind, str), f"{folder / 'config.json'} names no model_type; give a folder of transformers.")
    if kind not in transformers.CONFIG_MAPPING:
        raise InputError(
            f"{folder}: transformers {transformers.__version__} does not know the model_type {kind}; "
            "update transformers, or load the model yourself and give the object to hc.inspect."
        )
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
    except Exception as error:  # each config class validates in its own way
        raise InputError(f"{folder / 'config.json'}: transformers refuses it ({reason(error)}); correct it.") from error
    refuse_config(config)
    return config


def reason(error: Exception) -> str:
    """What another package's error says, in one line."""
    words = " ".join(str(error).split()) or type(error).__name__
    return (words if len(words) <= LONGEST_REASON else f"{words[:LONGEST_REASON]} ...").rstrip(".:")
