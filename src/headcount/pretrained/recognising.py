"""Which modules of a model hold the projections of an attention layer, and what cannot be read as such."""

from typing import Any

from torch import nn

from .._errors import require
from .architectures import Layout
from .projections import is_projection

SOFTMAX_LAYERS = {"full_attention", "sliding_attention", "chunked_attention", "attention"}
"""The entries of a config's `layer_types` that are softmax attention."""
OTHER_MIXERS = ("Mamba", "DeltaNet", "Rwkv", "LinearAttention", "ShortConv", "RecurrentBlock", "Lightning", "Retention")
"""Parts of class names of layers that mix tokens without a softmax."""


def configured(model: nn.Module) -> tuple[str, Any]:
    """The path and the config of the outermost part that has one; ("", None) for a plain module."""
    for path, module in model.named_modules():
        config = getattr(module, "config", None)
        if hasattr(config, "model_type"):
            return path, config
    return "", None


def refuse_config(config: Any) -> None:
    if config is None:
        return
    kind = config.model_type
    require(
        getattr(config, "quantization_config", None) is None,
        f"{kind}: the weights are quantised; give the model in float32, float16 or bfloat16.",
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
        f"{kind}: layers of type {', '.join(others)} have no heads of softmax attention; "
        "give a model whose layers all have.",
    )


def refuse_modules(model: nn.Module) -> None:
    for path, module in model.named_modules():
        kind = type(module).__name__
        require(
            not any(part in kind for part in OTHER_MIXERS),
            f"{path or 'the model'} is a {kind}, which has no heads of softmax attention; "
            "give a model whose layers all have.",
        )


def holders(model: nn.Module, layouts: tuple[Layout, ...]) -> list[tuple[str, Layout]]:
    """The path and layout of every module that holds the projections of one attention layer."""
    return [
        (path, layout) for path, module in model.named_modules() for layout in layouts if _fits(module, layout, path)
    ]


def _fits(module: nn.Module, layout: Layout, path: str) -> bool:
    projections = [at(module, name) for name in layout.paths]
    if any(projection is None for projection in projections):
        return False
    for name, projection in zip(layout.paths, projections, strict=True):
        where = f"{path}.{name}" if path else name
        require(
            not hasattr(projection, "base_layer"),
            f"{where} has an adapter; merge it first (model.merge_and_unload()).",
        )
        require(
            is_projection(projection) and projection.weight.is_floating_point(),
            f"{where} is a {type(projection).__name__} with quantised or packed weights; "
            "give the model in float32, float16 or bfloat16.",
        )
        require(not projection.weight.is_meta, f"{where} has no weights yet (device meta); load them first.")
    return True


def at(module: nn.Module, path: str) -> nn.Module | None:
    for name in path.split("."):
        module = module._modules.get(name)
        if module is None:
            return None
    return module
