"""Changes of tiny models that need no search: other heads removed in each layer, keys averaged, dimensions left out."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from headcount.pretrained.layers.find import attention_layers
from headcount.pretrained.layers.weights import HeadWeights
from headcount.pretrained.storing.plan import Plan, pruned_plan


def weights_of(model: Any) -> list[HeadWeights]:
    return [layer.read_weights(model) for layer in attention_layers(model)]


def pruned(model: Any, fingerprint: str = "") -> Plan:
    """Of every key head (or of all heads) one is removed, another one in each layer."""
    kept = []
    for place, weights in enumerate(weights_of(model)):
        share = weights.heads // weights.key_heads
        groups = [(group * share, share) for group in range(weights.key_heads)] if share > 1 else [(0, weights.heads)]
        removed = {start + (place + start) % size for start, size in groups}
        kept.append(sorted(set(range(weights.heads)) - removed))
    return plan_that_keeps(model, kept, fingerprint)


def plan_that_keeps(model: Any, kept: Any, fingerprint: str = "") -> Plan:
    """These heads of every layer, nothing refitted."""
    loaded: Any = SimpleNamespace(source="", fingerprint=fingerprint)
    evaluation: Any = SimpleNamespace(original=weights_of(model), loaded=loaded)
    return pruned_plan(evaluation, {}, kept)


def grouped(model: Any) -> Plan:
    """All heads share the mean of the keys and values."""
    original = weights_of(model)
    small = tuple(
        replace(
            weights,
            **{
                name: array.mean(axis=0, keepdims=True)
                for name, array in vars(weights).items()
                if name.startswith(("key", "value")) and array is not None
            },
        )
        for weights in original
    )
    masked = tuple(weights.repeated(original[0].key_heads) for weights in small)
    return Plan(kind="group", layers=small, words="one key head", masked=masked)


def shrunk(model: Any) -> Plan:
    """The first pair of dimensions, and the last, are left out; the scale of the smaller head is made up for."""
    layer, half = attention_layers(model)[0], attention_layers(model)[0].head_dim // 2
    pairs = tuple(range(1, half - 1))
    places = [*pairs, *(pair + half for pair in pairs)]
    small, masked = [], []
    for weights in weights_of(model):
        parts = {
            name: array[..., places] if name in ("output", "query_bias", "key_bias", "value_bias") else array[:, places]
            for name, array in vars(weights).items()
            if array is not None and name != "output_bias"
        }
        scale = np.sqrt(len(places) / layer.head_dim)
        for name in ("query", "query_bias"):
            if name in parts:
                parts[name] = parts[name] * scale
        small.append(HeadWeights(**parts, output_bias=weights.output_bias))
        gone = np.ones(layer.head_dim, bool)
        gone[places] = False
        masked.append(
            replace(
                weights,
                query=np.where(gone[:, None], 0.0, weights.query),
                query_bias=None if weights.query_bias is None else np.where(gone, 0.0, weights.query_bias),
                output=np.where(gone, 0.0, weights.output),
            )
        )
    rotated = pairs if any(layer.rotary for layer in attention_layers(model)) else None
    return Plan(kind="shrink", layers=tuple(small), words="narrower", masked=tuple(masked), pairs=rotated)
