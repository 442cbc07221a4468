"""The attention layers of a model in torch, and the model with other weights in some of them."""

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from ...errors import InputError, require
from .architectures import FAMILIES, LAYOUTS, MULTIHEAD, OWN_LAYOUTS, UNREADABLE, Family, Layout
from .attention_layer import AttentionLayer, Projection, is_projection, projection_at
from .roles import Roles, read_roles
from .weights import HeadWeights, Rotary

__all__ = ["AttentionLayer", "attention_layers", "rewritten"]

HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead")
HEAD_DIMS = ("head_dim", "attention_head_size", "d_head", "head_size")
STATE = (
    'state it: hc.inspect(model, data, layout={"packed": "qkv", "output": "proj", "heads": 4}), or "query", "key" and '
    '"value" in place of "packed": paths below the module of one layer.'
)
_stated: WeakKeyDictionary[nn.Module, Layout] = WeakKeyDictionary()
"""Layouts that a user stated, by model."""


def state_layout(model: nn.Module, layout: Mapping[str, Any] | Layout) -> Layout:
    """Read this model's attention layers by this layout, the fields of `Layout`, from now on."""
    if not isinstance(layout, Layout):
        names = [each.name for each in fields(Layout)]
        wrong = sorted(set(layout) - set(names))
        require(not wrong, what="layout", given=", ".join(wrong), needed=f"a mapping of {', '.join(names)}")
        layout = Layout(**{"output": "", **layout})
    require(
        bool(layout.output) and all(layout.inputs),
        what="layout",
        given=layout,
        needed='the paths "output" and either "packed" or "query", "key" and "value"',
    )
    _stated[model] = layout
    return layout


def attention_layers(model: nn.Module) -> tuple[AttentionLayer, ...]:
    """All attention layers of a model, in their order.

    The model is one of transformers, a module that contains one, or any module with attention of torch's own or with
    projections of usual names (`OWN_LAYOUTS`) or of those stated (`state_layout`). Raises InputError where no layer is
    recognised, weights are quantised, adapters are not merged, a layer mixes tokens otherwise than by softmax
    attention, or the model has an encoder and a decoder.
    """
    prefix, config = configured(model)
    inner = model.get_submodule(prefix) if prefix else model
    refuse_config(config)
    refuse_modules(inner)
    family = FAMILIES.get(getattr(config, "model_type", ""))
    stated = _stated.get(model)
    known = stated or (family and family.layout)
    places = attention_holders(inner, (known,) if known else OWN_LAYOUTS if config is None else LAYOUTS)
    if not places and known is None:
        places = attention_holders(inner, OWN_LAYOUTS)
    kind = getattr(config, "model_type", None) or type(inner).__name__
    require(bool(places), f"{kind}: no attention layer recognised{_found(inner)}; {STATE}")
    expected = getattr(config, "num_hidden_layers", None) or len(places)
    require(
        len(places) <= expected,
        f"{kind}: {len(places)} attention modules in {expected} layers; cross-attention is not supported, "
        "give an encoder or a decoder alone.",
    )
    require(
        len(places) == expected,
        f"{kind}: {len(places)} of {expected} layers have an attention that headcount can read; "
        "a model must have one in every layer.",
    )
    return tuple(
        _layer(model, index, ".".join(part for part in (prefix, path) if part), layouts, config, family, stated)
        for index, (path, layouts) in enumerate(places)
    )


Rewritten = WeakKeyDictionary[HeadWeights, dict[int, list[tuple[torch.Tensor, torch.Tensor]]]]
"""Results of `AttentionLayer.stored_values` for weights that are still in use, by layer."""


@contextmanager
def rewritten(
    model: nn.Module,
    changes: Mapping[int, HeadWeights],
    layers: Sequence[AttentionLayer] | None = None,
    known: Rewritten | None = None,
) -> Iterator[None]:
    """The model with other weights in some layers, by index, inside the `with`; put back after, also after an error.

    The parameters' own numbers are set aside, not overwritten, so that what is put back is what was there. `known` are
    weights that were written into this model before; those of `changes` are added.
    """
    layers = attention_layers(model) if layers is None else layers
    known = WeakKeyDictionary() if known is None else known
    for index, weights in changes.items():
        values = known.setdefault(weights, {})
        if index not in values:
            values[index] = layers[index].stored_values(model, weights)
    pairs = [pair for index, weights in changes.items() for pair in known[weights][index]]
    before = [parameter.data for parameter, _ in pairs]
    try:
        for parameter, values in pairs:
            parameter.data = values
        yield
    finally:
        for (parameter, _), values in zip(pairs, before, strict=True):
            parameter.data = values


def _layer(
    model: nn.Module,
    index: int,
    path: str,
    layouts: Sequence[Layout],
    config: Any,
    family: Family | None,
    stated: Layout | None,
) -> AttentionLayer:
    holder = model.get_submodule(path)
    known = stated is None and (family is not None or (config is not None and layouts[0] in LAYOUTS))
    layout, roles = (layouts[0], None) if known else _computed(holder, layouts, path, stated)
    core = holder.get_submodule(layout.core)
    *inputs, output = (projection_at(holder, name) for name in layout.paths)
    if roles is None:
        heads, head_dim = _head_shape(path, (layout, core, config), output.shape[1])
        roles = Roles(
            heads,
            _key_heads(path, layout, [each.features for each in inputs], heads, head_dim),
            head_dim,
            layout.packed_order(heads, inputs[0].features),
            _rotary(core, head_dim, config, family),
            any(submodule_at(core, name) is not None for name in ("q_norm", "q_layernorm", "query_norm")),
        )
    return AttentionLayer(
        index=index,
        name=".".join(part for part in (path, layout.core) if part),
        block=_block(path),
        width=inputs[0].shape[1],
        holder=path,
        layout=layout,
        **vars(roles),
    )


def _computed(
    holder: nn.Module, layouts: Sequence[Layout], path: str, stated: Layout | None
) -> tuple[Layout, Roles | None]:
    """The first layout by which the module computes a softmax attention, and what its columns are.

    The roles are None where the module does not run alone and only one order is possible, or the layout is stated.
    """
    refusals = []
    for layout in layouts:
        if layout == MULTIHEAD:
            return layout, None
        try:
            roles = read_roles(holder, layout, path or type(holder).__name__)
        except InputError as error:
            refusals.append(error)
            continue
        if roles is not None:
            _require_heads(path, layout.heads in (None, roles.heads), layout.heads, f"{roles.heads}, as it computes")
            return layout, roles
    if refusals and stated is None:
        raise refusals[0]
    require(
        stated is not None or not layouts[0].packed or layouts[0] in LAYOUTS,
        f"{path}: queries, keys and values are packed in {layouts[0].packed} in an order that cannot be found, since "
        f"{type(holder).__name__} does not run on one input of shape (1, tokens, width) alone; {STATE}",
    )
    return layouts[0], None


def _require_heads(path: str, holds: bool, given: Any, needed: str) -> None:
    require(holds, f"{path}: the heads of layout must be {needed}, got {given!r}.")


def _key_heads(path: str, layout: Layout, rows: Sequence[int], heads: int, head_dim: int) -> int:
    key_rows = (rows[0] - heads * head_dim) // 2 if layout.packed else rows[1]
    require(
        (bool(layout.packed) or rows[0] == heads * head_dim)
        and key_rows >= head_dim
        and key_rows % head_dim == 0
        and heads % (key_rows // head_dim) == 0,
        f"{path}: {rows[0]} query rows and {key_rows} key rows are not {heads} heads of {head_dim} with shared keys; "
        "this kind of attention (gated or latent) is not supported.",
    )
    return key_rows // head_dim


def _block(path: str) -> str:
    """The path to the last number: "model.layers.3" of "model.layers.3.self_attn"; the path where it has none."""
    parts = path.split(".")
    numbers = [place for place, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbers[-1] + 1]) if numbers else path


def _head_shape(path: str, sources: tuple[Layout, nn.Module, Any], features: int) -> tuple[int, int]:
    """Heads and head_dim, from the stated layout, else the attention's own attributes, else the config's."""
    given = sources[0].heads
    fits = given is None or (isinstance(given, int) and given > 0 and features % given == 0)
    _require_heads(path, fits, given, f"a divisor of {features}, the columns of its output projection")
    for source in sources:
        for name in HEAD_DIMS:
            head_dim = getattr(source, name, None)
            if isinstance(head_dim, int) and head_dim > 0 and features % head_dim == 0:
                return features // head_dim, head_dim
        for name in HEAD_COUNTS:
            heads = getattr(source, name, None)
            if isinstance(heads, int) and heads > 0 and features % heads == 0:
                return heads, features // heads
    raise InputError(
        f"{path}: the number of heads is not stated; set an attribute num_heads on the module, or give layout=."
    )


def _rotary(core: nn.Module, head_dim: int, config: Any, family: Family | None) -> Rotary | None:
    if family is not None and not family.rotary:
        return None
    if family is None and "position_embeddings" not in inspect.signature(core.forward).parameters:
        return None
    if not getattr(core, "use_rope", True):  # SmolLM 3 rotates three layers of four
        return None
    factor = (getattr(config, "rope_parameters", None) or {}).get("partial_rotary_factor", 1.0)
    return Rotary(dims=int(head_dim * factor), interleaved=_interleaves(core))


def _interleaves(core: nn.Module) -> bool:
    """Which numbers the class pairs, seen by letting its own function rotate four of them."""
    rotate = getattr(sys.modules[type(core).__module__], "rotate_half", None)
    return rotate is not None and rotate(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist()[1] == 1.0


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
            not isinstance(module, nn.TransformerDecoderLayer),
            f"{path or 'the model'} has cross-attention (nn.TransformerDecoderLayer); give an encoder alone.",
        )
        require(
            not any(part in kind for part in OTHER_MIXERS),
            f"{path or 'the model'} is a {kind}, which is not softmax attention; give a model whose layers all are.",
        )


def attention_holders(model: nn.Module, layouts: tuple[Layout, ...]) -> list[tuple[str, list[Layout]]]:
    """The path of every module that holds the projections of one attention layer, and the layouts that fit it."""
    fitting = (
        (path, [each for each in layouts if _fits(module, each, path)]) for path, module in model.named_modules()
    )
    return [(path, layouts) for path, layouts in fitting if layouts]


def _fits(module: nn.Module, layout: Layout, path: str) -> bool:
    if isinstance(module, nn.MultiheadAttention):
        return layout == MULTIHEAD and _reads_one_input(module, path)
    if submodule_at(module, layout.inputs[0]) is None:
        return False
    projections = {name: submodule_at(module, name) for name in layout.paths}
    if not all(hasattr(each, "weight") or hasattr(each, "base_layer") for each in projections.values()):
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


def _found(model: nn.Module) -> str:
    """The projections of the first module that has several, as words for an error; "" where there are none."""
    for path, module in model.named_modules():
        parts = {name: Projection(each) for name, each in module.named_children() if is_projection(each)}
        if len(parts) > 1:
            listed = ", ".join(f"{name} {each.shape[1]} -> {each.shape[0]}" for name, each in parts.items())
            return f", found in {path or 'the model'} ({type(module).__name__}): {listed}"
    return ""


def _reads_one_input(module: nn.MultiheadAttention, path: str) -> bool:
    require(
        module._qkv_same_embed_dim,
        f"{path}: keys or values are read from another input (kdim, vdim), which is cross-attention; "
        "give a model whose attention layers read one input.",
    )
    require(
        module.bias_k is None and not module.add_zero_attn,
        f"{path} attends to a token that no input has (add_bias_kv, add_zero_attn); give a model without.",
    )
    return True


def submodule_at(module: nn.Module, path: str) -> nn.Module | None:
    """The submodule at this path, None where there is none; the module itself where the path is empty."""
    inner: nn.Module | None = module
    for name in filter(None, path.split(".")):
        inner = None if inner is None else inner._modules.get(name)
    return inner
