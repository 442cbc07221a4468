"""A changed model as a module of the stock class that stores it. The original is read, never written."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import transformers
from torch import nn
from transformers.initialization import no_init_weights

from ...errors import InputError, require
from ..layers.find import AttentionLayer, attention_layers, configured
from ..layers.weights import HeadWeights
from .plan import Plan, fitted
from .preflight import Preflight, preflight, require_possible


def stock_model(model: nn.Module, plan: Plan, *, zeroed: bool = False) -> nn.Module:
    """A new model with the plan's layers; see `Plan.apply`."""
    layers = attention_layers(model)
    require(
        len(layers) == len(plan.layers),
        f"the plan has {len(plan.layers)} layers but the model has {len(layers)}; give the model it was made for.",
    )
    prefix, config = configured(model)
    if zeroed or config is None:
        return _written(copy.deepcopy(model), layers, plan.masked)
    check = require_possible(preflight(config, plan.layers))
    inner = model.get_submodule(prefix) if prefix else model
    if not isinstance(inner, transformers.PreTrainedModel):
        raise InputError(f"{type(inner).__name__} is no class of transformers; apply the plan with zeroed=True.")
    host = host_model(inner, check, plan.pairs)
    # A class that scales by another number than head_dim keeps it; queries of a smaller head were scaled for head_dim.
    fixed = hasattr(config, "query_pre_attn_scalar")
    scale = (layers[0].head_dim / check.shape.head_dim) ** 0.5 if fixed else 1.0
    _written(host, attention_layers(host), [_scaled(fitted(weights, check.shape), scale) for weights in plan.layers])
    return copy.deepcopy(model, {id(inner): host}) if prefix else host


def host_model(
    model: transformers.PreTrainedModel, check: Preflight, pairs: Sequence[int] | None
) -> transformers.PreTrainedModel:
    """A model of the host class with all weights of the original but the attention projections, which are zero.

    `pairs` are the rotary pairs that stay, where head_dim is lowered.
    """
    kind = host_class(type(model), check)
    config = host_config(model, kind, check, pairs)
    options = {"add_pooling_layer": False} if getattr(model, "pooler", model) is None else {}
    with no_init_weights():
        host = kind._from_config(
            config, dtype=model.dtype, attn_implementation=model.config._attn_implementation, **options
        )
    host = host.to(model.device)
    host.tie_weights()
    wanted, given = host.state_dict(), model.state_dict()
    same = {name: given[name] for name, tensor in wanted.items() if name in given and given[name].shape == tensor.shape}
    host.load_state_dict(same, strict=False)
    projections = [parameter for layer in attention_layers(host) for parameter in layer.stored_parameters(host)]
    written = {id(parameter) for parameter in projections}
    lost = [name for name, parameter in host.named_parameters() if name not in same and id(parameter) not in written]
    lost += [name for name in given if name not in wanted]
    require(not lost, f"{kind.__name__} cannot hold {', '.join(lost[:3])} of {type(model).__name__}; use zeroed=True.")
    with torch.no_grad():
        for parameter in projections:
            parameter.zero_()
    if model.can_generate():
        host.generation_config = copy.deepcopy(model.generation_config)
    for name, parameter in model.named_parameters():
        host.get_parameter(name).requires_grad_(parameter.requires_grad)
    return host.train(model.training)


def host_class(kind: type, check: Preflight) -> Any:
    """The class of transformers that stores the change: the original's own, or its namesake in another family."""
    original = kind.config_class.model_type
    if check.host == original:
        return kind
    stem, other = (
        type(transformers.AutoConfig.for_model(name)).__name__.removesuffix("Config") for name in (original, check.host)
    )
    name = kind.__name__.replace(stem, other, 1)
    found = getattr(transformers, name, None)
    require(found is not None, f"transformers has no {name} to store this {kind.__name__} as; use zeroed=True.")
    return found


def host_config(model: transformers.PreTrainedModel, kind: Any, check: Preflight, pairs: Sequence[int] | None) -> Any:
    """Return the config of the host: the original's, with what the change needs."""
    values = {name: value for name, value in model.config.to_dict().items() if name not in check.left_out}
    values |= check.config
    if check.config:
        values["architectures"] = [kind.__name__]
    if pairs is not None:
        values["rope_parameters"] = rope_of_pairs(model, pairs, check.shape.head_dim)
    return kind.config_class.from_dict(values)


def rope_of_pairs(model: transformers.PreTrainedModel, pairs: Sequence[int], head_dim: int) -> dict[str, Any]:
    """Rotary parameters of a stock config that give a head of `head_dim` the frequencies of these pairs.

    The kind "longrope" divides each frequency of the smaller head by a stored factor; the factors are chosen so that
    the frequencies come out as those of the original, to the last bit.
    """
    rotary: Any = next(each for each in model.modules() if hasattr(each, "inv_freq"))
    stored = dict(getattr(model.config, "rope_parameters", None) or {})
    kept = rotary.inv_freq.detach().cpu().float()[list(pairs)]
    theta = stored.get("rope_theta", getattr(model.config, "default_theta", 10000.0))
    powers = theta ** (torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim)
    factors = [_factor(power, frequency) for power, frequency in zip(powers, kept, strict=True)]
    return {
        "rope_type": "longrope",
        "rope_theta": theta,
        "short_factor": factors,
        "long_factor": factors,
        "factor": 1.0,
        "attention_factor": float(getattr(rotary, "attention_scaling", 1.0)),
        "original_max_position_embeddings": model.config.max_position_embeddings,
    }


def _factor(power: torch.Tensor, frequency: torch.Tensor) -> float:
    """The float32 factor with 1 / (factor * power) equal to the frequency, or the nearest there is."""
    near = (1.0 / (power.double() * frequency.double())).float()
    tried = [near, near]
    for _ in range(4):
        tried += [torch.nextafter(tried[-2], torch.tensor(0.0)), torch.nextafter(tried[-1], torch.tensor(math.inf))]
    results = 1.0 / (torch.stack(tried) * power)
    return float(tried[int((results - frequency).abs().argmin())])


def _scaled(weights: HeadWeights, scale: float) -> HeadWeights:
    bias = None if weights.query_bias is None else weights.query_bias * scale
    return replace(weights, query=weights.query * scale, query_bias=bias)


def _written(model: nn.Module, layers: Sequence[AttentionLayer], changed: Sequence[HeadWeights]) -> nn.Module:
    for layer, weights in zip(layers, changed, strict=True):
        layer.write_weights(model, weights)
    return model
