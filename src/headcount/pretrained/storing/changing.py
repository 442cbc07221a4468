"""From a request (keep 8 heads, share 3 key heads, head_dim 16) to a plan that is measured."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from ...answer.bootstrap import COVERAGE
from ...errors import InputError, require
from ..evaluation.layer_statistics import LayerStatistics
from ..layers.weights import HeadWeights
from ..reading.facts import resampled
from .cost import BYTES, cache_bytes_per_token, keeps_cache, stored_dtype
from .plan import Plan, pruned_plan
from .preflight import LayerShape, Preflight, original_shape, preflight, requested, width_of

if TYPE_CHECKING:
    from torch import nn

    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Tick
    from ..loading.load import Loaded

What = Literal["output", "low-rank"]
"""What a recovery trains: the output projections, or a low-rank update of every attention projection."""
PIECES = 16
"""Batches that a recovery gets at least."""


@dataclass(frozen=True)
class Request:
    """One shape for every layer of a model, before anything is computed."""

    folder: Path
    config: Any
    layers: int
    original: LayerShape
    shape: LayerShape
    check: Preflight

    def costs(self) -> dict[str, dict[str, int]]:
        """Attention parameters, and a decoder's cached bytes per token, of the original and of what is stored."""
        width = width_of(self.config.to_dict())
        shapes = {"original": self.original, "stored": self.check.shape}
        costs = {
            "attention parameters": {
                name: self.layers * 2 * width * shape.head_dim * (shape.heads + shape.key_heads)
                for name, shape in shapes.items()
            }
        }
        if keeps_cache((self.config.architectures or [""])[0]):
            number = BYTES[stored_dtype(self.folder)]
            costs["KV-cache bytes per token"] = {
                name: cache_bytes_per_token([shape] * self.layers, number) for name, shape in shapes.items()
            }
        return costs


def request(model: str | Path, shape: LayerShape, *, zeroed: bool = False) -> Request:
    """What a stock class stores of a request, by the model's config alone: no weights are read.

    Raises:
        InputError: There is no such model, or its config cannot be read.
    """
    folder, config, layers = read_request(model)
    check = preflight(config, [shape] * layers, zeroed=zeroed)
    return Request(folder, config, layers, original_shape(config), shape, check)


def read_request(model: str | Path) -> tuple[Path, Any, int]:
    """Folder, config and number of layers of a model, without its weights."""
    from ..extra import need

    need()
    from ..layers.recognising import refuse_config
    from ..loading.sources import found_folder, read_config, refuse_files

    folder = found_folder(str(model), read_config)
    refuse_files(folder)
    config = read_config(folder)
    refuse_config(config)
    return folder, config, config.num_hidden_layers


def kept_count(original: LayerShape, layers: int, *, keep: int | None, remove: str | None) -> int:
    """How many heads every layer keeps: as given, or the nearest to a share ("20%") or a number of all heads ("12").

    Raises:
        InputError: Both or neither were given, as many cannot be kept, or the text is no share or number.

    Example:
        >>> kept_count(LayerShape(heads=12, key_heads=12, head_dim=32), 6, keep=None, remove="20%")
        10
    """
    require((keep is None) != (remove is None), "give one of --keep and --remove.", what="keep remove")
    if keep is not None:
        return requested(original, heads=keep).heads
    assert remove is not None
    share = removed_share(remove, original.heads * layers)
    step = 1 if original.heads == original.key_heads else original.key_heads
    return min(original.heads, max(step, round(original.heads * (1 - share) / step) * step))


def removed_share(text: str, heads: int) -> float:
    """ "20%" or "12" of all heads as a share."""
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else int(text) / heads
    except ValueError:
        raise InputError(
            what="remove", given=text, needed="a share such as 20% or a number of heads such as 12"
        ) from None
    require(0 < share < 1, what="remove", given=text, needed=f"more than none and fewer than all {heads} heads")
    return share


def prune_plan(
    evaluation: "Evaluation",
    loaded: "Loaded",
    *,
    remove: int,
    uniform: bool,
    refit: bool = True,
    inspection: Path | None = None,
) -> Plan:
    """Remove so many heads of the whole model, those that are missed least; output projections refitted.

    Args:
        evaluation: Runs the original.
        loaded: The original.
        remove: How many heads go in all.
        uniform: As many of every layer, and of every key head.
        refit: Fit the output projections of the heads that stay to the original's attention output.
        inspection: A results folder whose order of heads is used instead of a search.

    Returns:
        The plan; `measured["order"]` says where the order of heads comes from.
    """
    from ..inspection.inspected import chosen_inspection, inspected_kept
    from ..removal.descent import descend
    from ..removal.refit import refitted_in_order

    changes: Mapping[int, HeadWeights] = {}
    if inspection is not None:
        shapes = [(layer.heads, layer.key_heads) for layer in evaluation.layers]
        kept = inspected_kept(inspection, loaded.fingerprint, shapes, remove=remove, uniform=uniform)
        data = chosen_inspection(inspection, loaded.fingerprint).get("data", {}).get("words", "unknown")
        order = f"The order of heads is that of the inspection in {inspection}, whose data were: {data.rstrip('.')}."
        if refit:
            changes = refitted_in_order(evaluation, kept)
            evaluation.settle({})
    else:
        descent = descend(evaluation, remove, uniform=uniform, points=(remove,), tick=evaluation.tick)
        kept = descent.kept_after(len(descent.removed), [layer.heads for layer in evaluation.layers])
        changes = descent.changes if refit else {}
        order = "The order of heads was searched anew on the calibration examples; no inspection was read."
        if descent.order == "Fisher":
            order += " The order by Fisher's score lost less there than the search's, and was used."
    return pruned_plan(
        evaluation.original,
        changes,
        kept,
        source_fingerprint=loaded.fingerprint,
        source=loaded.source,
        words=prune_words(evaluation.layers, kept),
        measured={"order": order},
    )


def group_plan(evaluation: "Evaluation", loaded: "Loaded", *, key_heads: int) -> Plan:
    """Let the heads of every layer share so many key heads: aligned, grouped by search, output projections refitted."""
    from ..sharing.grouping import group_model, repeated

    before = evaluation.original[0].key_heads
    small = group_model(evaluation, key_heads)
    return Plan(
        kind="group",
        source_fingerprint=loaded.fingerprint,
        layers=small,
        words=f"{key_heads} of {before} key heads per layer",
        masked=tuple(repeated(weights, before) for weights in small),
        source=loaded.source,
    )


def shrink_plan(evaluation: "Evaluation", loaded: "Loaded", *, head_dim: int) -> Plan:
    """Lower head_dim in every layer, outputs refitted; each layer is fitted to what those before it have become."""
    from ..rank.shrink import full_shape, kept_pairs, shrink_layer
    from ..sharing.shared import rotary_frequencies

    layers, original = evaluation.layers, evaluation.original
    rotated = [layer.index for layer in layers if layer.rotary is not None]
    rotary = next((layer.rotary for layer in layers if layer.rotary is not None), None)
    pairs = frequencies = None
    if rotary is not None:
        frequencies = rotary_frequencies(evaluation.model, rotary)
        statistics = [evaluation.layer_statistics(index) for index in rotated]
        pairs = kept_pairs([original[index] for index in rotated], statistics, head_dim, rotary, frequencies)
    changes: dict[int, HeadWeights] = {}
    small = []
    try:
        for layer, weights in zip(layers, original, strict=True):
            evaluation.settle(changes)
            how = (evaluation.layer_statistics(layer.index), head_dim, layer.rotary)
            some = (pairs, frequencies) if layer.rotary is not None else (None, None)
            narrow, full = shrink_layer(weights, *how, *some), full_shape(weights, *how, *some)
            evaluation.settle({**changes, layer.index: full})
            narrow, full = refitted_narrow(weights, narrow, full, evaluation.layer_statistics(layer.index))
            changes[layer.index] = full
            small.append(narrow)
    finally:
        evaluation.settle({})
    return Plan(
        kind="shrink",
        source_fingerprint=loaded.fingerprint,
        layers=tuple(small),
        words=f"head_dim {head_dim} in place of {original[0].head_dim}",
        masked=tuple(changes[layer.index] for layer in layers),
        pairs=pairs,
        source=loaded.source,
    )


def refitted_narrow(
    weights: HeadWeights, narrow: HeadWeights, full: HeadWeights, statistics: LayerStatistics
) -> tuple[HeadWeights, HeadWeights]:
    """The output projection of a layer of smaller head_dim fitted again, in its small and in its full shapes.

    Args:
        weights: The layer of the original.
        narrow: The layer in its small shapes.
        full: The same function in the original's shapes, whose head outputs z the small ones are R z of.
        statistics: Of `full` in its place.
    """
    from ..sharing.grouping import refit_output

    maps = [np.linalg.pinv(narrow.output[:, head]) @ full.output[:, head] for head in range(narrow.heads)]
    (small, large), heads = maps[0].shape, narrow.heads
    rows = np.zeros((heads * small + 1, heads * large + 1))
    rows[-1, -1] = 1.0
    for head, each in enumerate(maps):
        rows[head * small : (head + 1) * small, head * large : (head + 1) * large] = each
    reduced = replace(statistics, moments=rows @ statistics.moments @ rows.T, cross=statistics.cross @ rows.T)
    narrow = refit_output(replace(narrow, output_bias=weights.output_bias), reduced)
    output = np.stack([narrow.output[:, head] @ maps[head] for head in range(narrow.heads)], axis=1)
    return narrow, full.with_output(output, narrow.output_bias)


def prune_words(layers: Sequence[Any], kept: Sequence[Sequence[int]]) -> str:
    """The change in a few words."""
    counts = sorted({len(heads) for heads in kept})
    total, left = sum(layer.heads for layer in layers), sum(map(len, kept))
    per_layer = f"{counts[0]} per layer" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} per layer"
    return f"{left} of {total} heads kept ({per_layer})"


def loss_facts(
    name: str, before: Float[np.ndarray, " examples"], after: Float[np.ndarray, " examples"]
) -> dict[str, Any]:
    """Mean losses before and after, the increase, and its interval over resampled examples, as `inspect` gives it."""
    found = resampled((after - before)[None])
    (increase,), (low, high) = found.mean, found.bounds[:, 0]
    return {
        "name": name,
        "before": float(before.mean()),
        "after": float(after.mean()),
        "increase": float(increase),
        "increase_interval": [float(low), float(high)],
        "coverage": COVERAGE,
        "examples": len(before),
    }


def measured_facts(plan: Plan, evaluation: "Evaluation") -> dict[str, Any]:
    """Held-out losses of the original and of the plan in the original's shapes, what the data are, what was known."""
    assert plan.masked is not None
    before = evaluation.losses()
    after = evaluation.losses(dict(enumerate(plan.masked)))
    examples = evaluation.examples
    return {
        **plan.measured,
        "data": examples.words,
        "cannot": [examples.cannot] if examples.cannot else [],
        "loss": loss_facts(examples.loss.name, before, after),
    }


def recovered(
    plan: Plan,
    loaded: "Loaded",
    evaluation: "Evaluation",
    *,
    steps: int,
    zeroed: bool,
    what: What = "output",
    seed: int = 0,
    tick: "Tick | None" = None,
) -> tuple["nn.Module", dict[str, Any]]:
    """The plan's model after a short training towards the original's answers, and the numbers before and after."""
    from ..layers.find import attention_layers
    from ..losses.loss import device_of
    from .recover import recover

    model = plan.apply(loaded.model, zeroed=zeroed)
    device = device_of(loaded.model)
    batches = pieces([batch.inputs_on(device) for batch in evaluation.examples.calibration])
    layers = attention_layers(model)
    recovery = recover(model, loaded.model, layers, batches, steps=steps, what=what, seed=seed, tick=tick)
    return model, facts_of_recovery(plan, model, evaluation, str(recovery), steps)


def pieces(batches: Sequence[Mapping[str, Any]], least: int = PIECES) -> list[dict[str, Any]]:
    """Batches split by rows where there are few, so that some train and others say when to stop."""
    parts = math.ceil(least / max(1, len(batches)))
    split = []
    for batch in batches:
        rows = len(next(iter(batch.values()), ()))
        size = max(1, math.ceil(rows / parts))
        split += [{name: each[start : start + size] for name, each in batch.items()} for start in range(0, rows, size)]
    return split


def facts_of_recovery(
    plan: Plan, model: "nn.Module", evaluation: "Evaluation", words: str, steps: int
) -> dict[str, Any]:
    """Losses with the recovered model in place of the plan's."""
    import torch

    examples = evaluation.examples
    with torch.no_grad():
        after = [examples.loss.values(model, batch).double().cpu().numpy() for batch in examples.held_out]
    facts: Mapping[str, Any] = plan.measured
    loss = loss_facts(examples.loss.name, evaluation.losses(), np.concatenate(after))
    recovery = {"steps": steps, "words": words, "increase_before": facts["loss"]["increase"]}
    return {**facts, "loss": loss, "recovery": recovery}
