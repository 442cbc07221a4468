"""Check that a written folder computes what was measured: run a few stored inputs through stock transformers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from ..._draws import named_generator
from ..._files import read_regular
from ...errors import InputError, require
from ..loading.load import quiet
from ..loading.sources import read_config, reason
from ..plugin import RECORD

EXAMPLES, LENGTH, TILES = 2, 24, 4
"""Probe inputs: sequences or images, tokens per sequence, coloured tiles per side of an image."""
VALUES = 512
"""Outputs that are stored, drawn from all."""
TOLERANCE = 1e-5
"""Largest difference that is rounding, per unit of the largest output."""


def check_folder(folder: Path) -> dict[str, Any]:
    """Load a written folder with stock transformers, run the probe inputs in it, and compare; the result is JSON.

    Raises InputError where the folder has no record of headcount, cannot be loaded, or does not take the inputs.
    """
    record = read_record(folder)
    model, missing = load_stock(folder)
    try:
        stored, values = record["probe"], np.array(record["probe"]["values"], dtype=np.float64)
        outputs = probe_outputs(model, stored["inputs"])
        now = outputs.reshape(-1)[stored["places"]] if list(outputs.shape) == stored["shape"] else np.inf
    except Exception as error:  # a config or record that was edited fails anywhere in the model
        raise InputError(
            f"{folder}: {type(model).__name__} cannot run the inputs recorded in {RECORD} ({reason(error)}); "
            "write the folder again."
        ) from error
    difference, allowed = float(np.max(np.abs(now - values))), tolerance(values)
    return {
        "folder": str(folder),
        "architecture": type(model).__name__,
        "words": record["words"],
        "agrees": not missing and difference <= allowed,
        "difference": difference if np.isfinite(difference) else None,
        "allowed": allowed,
        "outputs": len(values),
        "missing": missing,
    }


def check_words(check: Mapping[str, Any]) -> str:
    """The result of `check_folder` in a sentence."""
    folder, architecture = check["folder"], check["architecture"]
    if check["missing"]:
        names = ", ".join(check["missing"][:3])
        return f"{folder}: {architecture} finds no weights for {names}; the folder is not what was written."
    verdict = "computes what was measured" if check["agrees"] else "does not compute what was measured"
    difference = "inf" if check["difference"] is None else f"{check['difference']:.1e}"
    return (
        f"{folder} {verdict}: {check['outputs']} recorded outputs of {architecture} differ by at most {difference} "
        f"(allowed: {check['allowed']:.1e})."
    )


def read_record(folder: Path) -> dict[str, Any]:
    """Read the record that `write_folder` wrote next to the weights."""
    try:
        record = json.loads(read_regular(folder / RECORD))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{folder / RECORD} cannot be read as a record of headcount ({reason(error)}).") from error
    whole = isinstance(record, dict) and {"words", "probe"} <= record.keys()
    require(whole, f"{folder / RECORD} is not the record that headcount wrote; write the folder again.")
    return record


def load_stock(folder: Path) -> tuple[nn.Module, list[str]]:
    """The model as its config's class loads it, in float32, and the names of weights that are missing or left over."""
    name = (read_config(folder).architectures or ["AutoModel"])[0]
    kind: Any = getattr(transformers, name, None)
    if not hasattr(kind, "from_pretrained"):
        raise InputError(
            f"{folder / 'config.json'} names the class {name}, which transformers {transformers.__version__} does not "
            "have; write the folder again or update transformers."
        )
    try:
        with quiet():
            model, report = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    except Exception as error:  # transformers, safetensors and torch each raise their own kinds
        raise InputError(f"{folder} cannot be loaded by transformers ({reason(error)}); write it again.") from error
    return model.eval(), sorted({*report["missing_keys"], *report["unexpected_keys"]})


def probe_inputs(config: Any) -> dict[str, Any]:
    """Inputs as JSON: random tokens, or images of coloured tiles with the side that they are drawn at."""
    draw = named_generator(0, "probe inputs")
    side = getattr(config, "image_size", None)
    if side is not None:
        tiles = draw.normal(size=(EXAMPLES, getattr(config, "num_channels", 3), TILES, TILES)).round(3)
        return {"tiles": tiles.tolist(), "side": side if isinstance(side, int) else side[0]}
    most = (getattr(config, "max_position_embeddings", None) or LENGTH) - 4  # RoBERTa counts from its padding id
    return {"input_ids": draw.integers(0, config.vocab_size, (EXAMPLES, min(LENGTH, most))).tolist()}


@torch.no_grad()
def probe_outputs(model: nn.Module, inputs: Mapping[str, Any]) -> np.ndarray:
    """The first output of a model for probe inputs: its logits, or its last hidden states."""
    if "input_ids" in inputs:
        tensors = {"input_ids": torch.tensor(inputs["input_ids"])}
    else:
        places = np.arange(inputs["side"]) * TILES // inputs["side"]
        images = np.array(inputs["tiles"])[:, :, places][:, :, :, places]
        tensors = {"pixel_values": torch.tensor(images, dtype=torch.float32)}
    return first_output(model, tensors)


@torch.no_grad()
def first_output(model: nn.Module, tensors: Mapping[str, torch.Tensor]) -> np.ndarray:
    device = next(model.parameters()).device
    outputs = model(**{name: tensor.to(device) for name, tensor in tensors.items()})
    first = outputs if isinstance(outputs, torch.Tensor) else next(iter(outputs.values()))
    return first.detach().double().cpu().numpy()


def probe_record(inputs: Mapping[str, Any], outputs: np.ndarray) -> dict[str, Any]:
    """Inputs and a draw of the outputs, as JSON."""
    draw = named_generator(0, "probe outputs")
    places = np.sort(draw.choice(outputs.size, size=min(VALUES, outputs.size), replace=False))
    return {
        "inputs": dict(inputs),
        "shape": list(outputs.shape),
        "places": places.tolist(),
        "values": outputs.reshape(-1)[places].tolist(),
    }


def tolerance(outputs: np.ndarray) -> float:
    """Return the largest difference that counts as rounding."""
    return TOLERANCE * max(1.0, float(np.max(np.abs(outputs), initial=0.0)))
