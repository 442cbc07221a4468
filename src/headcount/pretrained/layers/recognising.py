"""Which modules of a model hold the projections of an attention layer, and what cannot be read as such."""

from typing import Any

from torch import nn

from ...errors import require
from .architectures import UNREADABLE, Layout
from .attention_layer import is_projection

SOFTMAX_LAYERS = {"full_attention", "sliding_attention", "chunked_attention", "attention"}
"""The entries of a config's `layer_types` that are softmax attention."""
OTHER_MIXERS = ("Mamba", "DeltaNet", "Rwkv", "LinearAttention", "ShortConv", "RecurrentBlock", "Lightning", "Retention")
"""Parts of class names of layers that mix tokens without a softmax."""


def configured(model: nn.Module) -> tuple[str, Any]:
    """The path and the config of the one part that has a config; ("", None) for a plain module.

    Raises InputError where several parts that are not inside each other have one.
    """
    parts: dict[str, Any] = {}
    for path, module in model.named_modules():
        config = getattr(module, "config", None)
        if hasattr(config, "model_type") and not any(f"{path}.".startswith(f"{part}.") for part in parts if part):
            parts[path] = config
            if not path:
                break
    require(
        len(parts) <= 1,
        f"{type(model).__name__} contains {len(parts)} models ({', '.join(parts)}); give one of them.",
    )
    return next(iter(parts.items()), ("", None))


def refuse_config(config: Any) -> None:
    if config is None:
        return
    kind = config.model_type
    require(
        getattr(config, "quantization_config", None) is None,
        f"{kind}: the weights are quantised; give the model in float32, float16 or bfloat16.",
    )
    require(
        kind not in UNREADABLE,
        f"{kind}: not supported, since it {UNREADABLE.get(kind)}; give a model of plain softmax attention.",
    )
    require(
        not getattr(config, "is_encoder_decoder", False),
        f"{kind}: models with an encoder and a decoder are not supported; give one that is an encoder or a decoder.",
    )
    parts = [
        name for name in ("text_config", "vision_config", "audio_config") if getattr(config, name, None) is not None
    ]
    require(
        not parts,
        f"{kind}: a model of several parts ({', '.join(part.removesuffix('_config') for part in parts)}); "
        "load it in Python and give one part, such as model.language_model.",
    )
    others = sorted(set(getattr(config, "layer_types", None) or ()) - SOFTMAX_LAYERS)
    require(
        not others,
        f"{kind}: layers of type {', '.join(others)} are not softmax attention; give a model whose layers all are.",
    )


def refuse_modules(model: nn.Module) -> None:
    for path, module in model.named_modules():
        kind = type(module).__name__
        require(
            not any(part in kind for part in OTHER_MIXERS),
            f"{path or 'the model'} is a {kind}, which is not softmax attention; give a model whose layers all are.",
        )


def attention_holders(model: nn.Module, layouts: tuple[Layout, ...]) -> list[tuple[str, Layout]]:
    """The path and layout of every module that holds the projections of one attention layer."""
    return [
        (path, layout) for path, module in model.named_modules() for layout in layouts if _fits(module, layout, path)
    ]


def _fits(module: nn.Module, layout: Layout, path: str) -> bool:
    projections = {name: submodule_at(module, name) for name in layout.paths}
    if None in projections.values():
        return False
    for name, projection in projections.items():
        where = f"{path}.{name}" if path else name
        require(
            not hasattr(projection, "base_layer"),
            f"{where} has an adapter; merge it first (model.merge_and_unload()).",
        )
        require(
            is_projection(projection),
            f"{where} is a {type(projection).__name__}, not a plain matrix of floating-point numbers (quantised?); "
            "give the model in float32, float16 or bfloat16.",
        )
    return True


def submodule_at(module: nn.Module, path: str) -> nn.Module | None:
    """The submodule at this path, None where there is none; the module itself where the path is empty."""
    inner: nn.Module | None = module
    for name in filter(None, path.split(".")):
        inner = None if inner is None else inner._modules.get(name)
    return inner
