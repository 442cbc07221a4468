"""A changed model as a folder that stock transformers loads: whole, checked, or not at all."""

import copy
import importlib.metadata
import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ..._version import __version__
from ...errors import HeadcountError
from ..layers.find import attention_layers, rewritten
from ..loading.load import Loaded, quiet
from ..plugin import RECORD
from .card import model_card
from .checking import load_stock, probe_inputs, probe_outputs, probe_record, tolerance
from .cost import cached_bytes, stored_dtype
from .plan import Plan
from .preflight import NOTHING_SAVED, Stored
from .request import free_place, written_whole

WEIGHT_FILES = re.compile(
    r".*\.(safetensors|bin|gguf|h5|msgpack|onnx|ot|pt|pth|ckpt)(\.index\.json)?$|.*\.index\.json$"
)
"""Files that hold the original's weights."""
OURS = ("config.json", "README.md", RECORD)
"""Files that are written anew."""
SHARD = "5GB"


def write_folder(
    plan: Plan,
    loaded: Loaded,
    out: str | Path,
    *,
    model: nn.Module | None = None,
    zeroed: bool = False,
    command: str = "",
) -> Path:
    """Write the changed model as a folder of stock transformers, with tokenizer, model card and record.

    The folder is written next to its place, loaded again by stock transformers, compared with what was measured, and
    only then renamed. The source is never written to. `model` is the changed one where there is one already (after
    recovery); `command` is for the card.

    Raises:
        InputError: The place is taken or is the source, or no stock class stores the plan.
        HeadcountError: It cannot be written, or the written model computes something else. Nothing is left there.
    """
    out = free_place(out, loaded.source)
    changed = plan.apply(loaded.model, zeroed=zeroed) if model is None else model
    inputs = probe_inputs(changed.config)
    # Measured was the original with the change in its own shapes, or what a recovery trained.
    with rewritten(loaded.model, dict(enumerate(plan.masked))) if model is None else nullcontext():
        measured = probe_outputs(loaded.model if model is None else model, inputs)
    with written_whole(out) as folder:
        _save(changed, folder, getattr(torch, stored_dtype(loaded.folder)), loaded)
        stock, missing = load_stock(folder)
        if missing:
            raise HeadcountError(
                f"stock transformers misses {', '.join(missing[:3])} in the folder; nothing was written."
            )
        outputs = probe_outputs(stock, inputs)
        # Where weights are stored in half precision, the model is compared before they are rounded.
        compared = outputs if _same_weights(changed, stock) else probe_outputs(changed, inputs)
        _require_same(compared, measured)
        record = _record(plan, loaded, stock, command, zeroed=zeroed) | {
            "difference": float(np.max(np.abs(outputs - measured))),
            "probe": probe_record(inputs, outputs),
        }
        (folder / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
        (folder / "README.md").write_text(model_card(record, loaded.folder), encoding="utf-8")
    return out


def _save(model: Any, folder: Path, dtype: torch.dtype, loaded: Loaded) -> None:
    """Weights and config by `save_pretrained`, and all other files of the source as they are."""
    stored = model if model.dtype == dtype else copy.deepcopy(model).to(dtype)
    with quiet():
        stored.save_pretrained(folder, max_shard_size=SHARD)
    source = loaded.folder
    if source is None:
        for part in (loaded.tokenizer, loaded.processor):
            if part is not None:
                part.save_pretrained(folder)
        return
    for path in sorted(source.iterdir()):
        ours = path.name in OURS or path.name.startswith(".") or WEIGHT_FILES.match(path.name)
        if path.is_file() and not ours:
            shutil.copyfile(path, folder / path.name)
    for name in _module_folders(source):
        shutil.copytree(source / name, folder / name)


def _module_folders(source: Path) -> list[str]:
    """Folders of further modules (pooling, dense) that sentence-transformers lists."""
    try:
        modules = json.loads((source / "modules.json").read_text(encoding="utf-8"))
        paths = [module.get("path", "") for module in modules]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return []
    return [path for path in paths if path and Path(path).name == path and (source / path).is_dir()]


def _require_same(outputs: np.ndarray, measured: np.ndarray) -> None:
    """Raise HeadcountError where a model differs from the measured one by more than rounding."""
    difference = float(np.max(np.abs(outputs - measured)))
    if not difference <= tolerance(measured):
        raise HeadcountError(
            f"the written model differs by {difference:.1e} from what was measured, more than "
            f"{tolerance(measured):.1e}; nothing was written."
        )


def _same_weights(changed: nn.Module, stock: nn.Module) -> bool:
    """Whether both hold the same numbers in float32."""
    given = stock.state_dict()
    return all(parameter.dtype == torch.float32 for parameter in changed.parameters()) and all(
        name in given and torch.equal(tensor.cpu(), given[name]) for name, tensor in changed.state_dict().items()
    )


def _record(plan: Plan, loaded: Loaded, stock: nn.Module, command: str, *, zeroed: bool) -> dict[str, Any]:
    shapes = {"original": attention_layers(loaded.model), "stored": attention_layers(stock)}
    unequal = len({(weights.heads, weights.key_heads) for weights in plan.layers}) > 1
    how: Stored = "zeroed" if zeroed else "padded" if unequal else "small"
    record = {
        "format": 1,
        "kind": plan.kind,
        "words": plan.words,
        "source": loaded.source,
        "fingerprint": loaded.fingerprint,
        "architecture": type(stock).__name__,
        "stored": how,
        "stored_words": _stored_words(how, loaded, stock),
        "shape": {name: _shape_record(layers[0]) for name, layers in shapes.items()},
        "kept": plan.kept,
        "parameters": {"original": _parameter_count(loaded.model), "stored": _parameter_count(stock)},
        "measured": dict(plan.measured),
        "command": command,
        "versions": {
            "headcount": __version__,
            **{name: importlib.metadata.version(name) for name in ("torch", "transformers")},
        },
    }
    cached = {name: cached_bytes(loaded, layers) for name, layers in shapes.items()}
    if None not in cached.values():
        record["cache_bytes_per_token"] = cached
    return record


def _stored_words(how: Stored, loaded: Loaded, stock: nn.Module) -> str:
    if how == "zeroed":
        return f"Removed heads are zero in the shapes of the original: {NOTHING_SAVED}."
    kind = type(stock).__name__
    other = "" if kind == type(loaded.model).__name__ else ", a class that computes the same and takes any head count"
    padded = " Layers with fewer heads are padded with zero heads." if how == "padded" else ""
    return f"Stored as `{kind}`{other}; an unmodified transformers loads it.{padded}"


def _shape_record(layer: Any) -> dict[str, int]:
    return {name: getattr(layer, name) for name in ("heads", "key_heads", "head_dim")}


def _parameter_count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
