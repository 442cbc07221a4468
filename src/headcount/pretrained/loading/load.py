"""A trained model from a folder, the hub or memory, ready to be measured: eval mode, float32, no gradients."""

import copy
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from ..._draws import named_generator
from ...errors import InputError
from ..layers.find import attention_layers, configured, state_layout
from ..layers.open_attention import has_closed_attention, open_attention
from .sources import found_folder, read_config, reason


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model and what came with it; `tokenizer` and `processor` (of images) are None where the folder has none.

    `source` is the name or folder it was loaded from, or the class's name for a model in memory, which has no `folder`.
    `family` is the config's `model_type`; the class's name for a module without a config.
    """

    model: nn.Module
    tokenizer: Any
    processor: Any
    source: str
    fingerprint: str
    family: str
    folder: Path | None = None


def load_model(name_or_folder: str | Path, *, device: str = "cpu") -> Loaded:
    """Load a model from a folder or the hub, in float32 and eval mode, without gradients.

    Raises InputError for no such folder or name, no config.json, quantised weights, an architecture that headcount
    cannot read, weights that are missing or damaged, a device that is not there, or a hub that cannot be reached.

    Example:
        >>> loaded = load_model("models/smollm2-135m")  # doctest: +SKIP
        >>> loaded.family, len(attention_layers(loaded.model))  # doctest: +SKIP
        ('llama', 30)
    """
    folder = found_folder(str(name_or_folder), _recognised)
    kind, config = _recognised(folder)
    model = _loaded_weights(folder, kind).to(_usable(device))
    model.requires_grad_(False)
    return Loaded(
        model=model,
        tokenizer=_optional_part(
            folder, transformers.AutoTokenizer, ("tokenizer.json", "tokenizer_config.json", "vocab.txt")
        ),
        processor=_optional_part(folder, transformers.AutoImageProcessor, ("preprocessor_config.json",)),
        source=str(name_or_folder),
        fingerprint=fingerprint_of(model),
        family=config.model_type,
        folder=folder,
    )


def of_module(
    model: nn.Module,
    tokenizer: Any = None,
    processor: Any = None,
    *,
    device: str | None = None,
    layout: Mapping[str, Any] | None = None,
) -> Loaded:
    """Prepare a model in memory: a copy, unless it is in float32 and eval mode, without gradients, on `device`.

    Of a model with torch's own attention always a copy, whose attention is opened. `layout` has the fields of `Layout`
    where the layers are not found by themselves.
    """
    stated = None if layout is None else state_layout(model, layout)
    attention_layers(model)
    place = None if device is None else _usable(device)
    closed = has_closed_attention(model)
    ready = not (model.training or closed) and all(
        parameter.dtype == torch.float32
        and not parameter.requires_grad
        and (place is None or (parameter.device.type, parameter.device.index or 0) == (place.type, place.index or 0))
        for parameter in model.parameters()
    )
    if not ready:
        model = copy.deepcopy(model).float().eval().requires_grad_(False)
        model = model if place is None else model.to(place)
    if closed:
        open_attention(model)
    if stated is not None:
        state_layout(model, stated)
    _, config = configured(model)
    kind = type(model).__name__
    return Loaded(model, tokenizer, processor, kind, fingerprint_of(model), getattr(config, "model_type", kind))


def fingerprint_of(model: nn.Module) -> str:
    """20 hex digits of the SHA-256 over names, shapes and values of all weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:20]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars and the advice of transformers inside the `with`."""
    verbosity = transformers.logging.get_verbosity()
    bars = transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if bars:
            transformers.logging.enable_progress_bar()


def _recognised(folder: Path) -> tuple[Any, Any]:
    """The class and config of the folder's model, after its layers were recognised without loading a weight."""
    config = read_config(folder)
    name = (config.architectures or [""])[0]
    kind = getattr(transformers, name, None) if name else transformers.MODEL_MAPPING.get(type(config), None)
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        raise InputError(
            f"{folder}: transformers {transformers.__version__} has no model class {name or config.model_type}; "
            "update transformers, or load the model yourself and give the object to hc.inspect."
        )
    try:
        with torch.device("meta"), quiet():
            model = kind(config)
    except Exception as error:  # each class validates in its own way
        raise InputError(f"{folder / 'config.json'}: {name} refuses it ({reason(error)}); correct it.") from error
    attention_layers(model)
    return kind, config


def _usable(device: str) -> torch.device:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(what="device", given=device, needed="one that torch can use here, such as cpu") from error
    return torch.device(device)


def _loaded_weights(folder: Path, kind: Any) -> nn.Module:
    try:
        # Weights that a file lacks are drawn at random: the same ones every time.
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(int(named_generator(0, "weights that a file lacks").integers(2**31)))
            model, report = kind.from_pretrained(
                folder, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True
            )
    except Exception as error:  # transformers, safetensors and torch each raise their own kinds
        raise InputError(
            f"{folder}: the weights cannot be loaded ({reason(error)}); download or copy the folder again."
        ) from error
    if report["mismatched_keys"]:
        key, stored, expected = min(report["mismatched_keys"])
        raise InputError(
            f"{folder}: {key} is stored as {tuple(stored)} where config.json asks for {tuple(expected)}; "
            "one of the two is another model's."
        )
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(
            f"{folder}: the files lack {len(missing)} weights of {type(model).__name__}, such as {missing[0]}; "
            "give a complete folder."
        )
    return model.eval()


def _optional_part(folder: Path, kind: Any, files: tuple[str, ...]) -> Any:
    """Load the tokenizer or processor, where the folder has its files."""
    if not any((folder / name).is_file() for name in files):
        return None
    try:
        return kind.from_pretrained(folder)
    except Exception as error:  # a missing package, a damaged file, an unknown class
        raise InputError(
            f"{folder}: its {kind.__name__.removeprefix('Auto').lower()} cannot be loaded ({reason(error)}); "
            "correct or remove its files."
        ) from error
