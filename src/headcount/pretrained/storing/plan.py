"""The layers of a changed model: a value that is saved, applied, written. No torch at import."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from ...answer.bootstrap import COVERAGE
from ...errors import InputError
from ...report.files import write_whole
from ..inspection.facts import resampled
from ..layers.weights import HeadWeights
from ..sharing.in_order import SmallLayer
from .preflight import AttentionShape, Preflight, common_shape, described, preflight

if TYPE_CHECKING:
    from torch import nn

    from ..evaluation.evaluate import Evaluation

Kind = Literal["prune", "group", "shrink"]
SAVED = ("kind", "source_fingerprint", "source", "words", "kept", "pairs", "measured")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan:
    """The layers of a changed model.

    `layers` is the small form: only what is kept. `masked` is the same function in the original's shapes, which is what
    losses are measured on. Both are as they were before a recovery, which trains the model that `apply` makes. `kept`
    lists the original's heads that stay, by layer; `pairs` the rotary pairs that stay where head_dim was lowered.
    `measured` holds numbers for the model card.
    """

    kind: Kind
    layers: tuple[HeadWeights, ...]
    masked: tuple[HeadWeights, ...]
    words: str = ""
    kept: tuple[tuple[int, ...], ...] | None = None
    pairs: tuple[int, ...] | None = None
    measured: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    source_fingerprint: str = ""

    def __repr__(self) -> str:
        return f"Plan({self.kind} {self.source or 'a model in memory'}: {self.words or described(self.shape)})"

    @property
    def shape(self) -> AttentionShape:
        """The one shape that all layers fit into."""
        return common_shape(self.layers)

    def preflight(self, config: Any) -> Preflight:
        """What a stock class stores of it; zeroed heads where nothing smaller can be stored."""
        check = preflight(config, self.layers)
        return check if check.possible else preflight(config, self.layers, zeroed=True)

    def apply(self, model: "nn.Module", *, zeroed: bool = False) -> "nn.Module":
        """A new model with this change; the argument is untouched.

        Args:
            model: The original that the plan was made for.
            zeroed: Keep the original's class and shapes, with the removed heads zero.

        Returns:
            A model of the stock class that stores the change (`preflight` says which).

        Raises:
            InputError: The model has other layers than the plan, or no stock class stores it.
        """
        from .hosts import stock_model

        return stock_model(model, self, zeroed=zeroed)

    def save(self, path: str | Path) -> None:
        """Write PATH.safetensors; `Plan.load` reads it."""
        from safetensors.numpy import save

        about = {"layers": len(self.layers), **{name: getattr(self, name) for name in SAVED}}
        arrays = _arrays("layers", self.layers) | _arrays("masked", self.masked)
        write_whole(_file(path), save(arrays, {"plan": json.dumps(about)}), "the plan")

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read what `save` wrote; InputError where that is not there or is not whole."""
        from safetensors import safe_open

        path = _file(path)
        try:
            with safe_open(path, framework="np") as file:
                about = json.loads(file.metadata()["plan"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 not a mapping
            layers, masked = (_layers(name, about["layers"], arrays) for name in ("layers", "masked"))
            given = {name: about[name] for name in SAVED}
        except Exception as error:  # safetensors has its own errors, all of them mean the same here
            raise InputError(f"{path} is no plan that headcount saved: {error}.") from error
        given["kept"] = None if given["kept"] is None else tuple(map(tuple, given["kept"]))
        given["pairs"] = None if given["pairs"] is None else tuple(given["pairs"])
        return cls(layers=layers, masked=masked, **given)


def plan_of_layers(kind: Kind, evaluation: "Evaluation", layers: Sequence[SmallLayer], words: str, **more: Any) -> Plan:
    """Make the plan of these layers of the model that is evaluated."""
    small, masked = tuple(layer.small for layer in layers), tuple(layer.masked for layer in layers)
    source, fingerprint = evaluation.loaded.source, evaluation.loaded.fingerprint
    return Plan(
        kind=kind, layers=small, masked=masked, words=words, source=source, source_fingerprint=fingerprint, **more
    )


def pruned_plan(evaluation: "Evaluation", changes: Mapping[int, HeadWeights], kept: Sequence[Sequence[int]]) -> Plan:
    """A plan that keeps these heads of every layer; none of a layer is allowed (one zero head is stored).

    `changes` are the layers as they were measured, in the original's shapes.
    """
    layers = []
    for index, (weights, heads) in enumerate(zip(evaluation.original, kept, strict=True)):
        masked = changes.get(index, weights).without(set(range(weights.heads)) - set(heads))
        layers.append(SmallLayer(compact(masked, heads), masked))
    counts = sorted({len(heads) for heads in kept})
    total, left = sum(weights.heads for weights in evaluation.original), sum(map(len, kept))
    per_layer = f"{counts[0]} per layer" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} per layer"
    words = f"{left} of {total} heads kept ({per_layer})"
    return plan_of_layers("prune", evaluation, layers, words, kept=tuple(tuple(sorted(heads)) for heads in kept))


def refitted_plan(evaluation: "Evaluation", kept: list[list[int]]) -> Plan:
    """A plan that keeps these heads of every layer, all layers refitted in order."""
    from ..removal.refit import refitted_in_order

    try:
        changes = refitted_in_order(evaluation, kept)
    finally:
        evaluation.settle({})
    return pruned_plan(evaluation, changes, kept)


def compact(masked: HeadWeights, kept: Sequence[int]) -> HeadWeights:
    """Only these heads of a layer whose others are zero. Where key heads keep unequal numbers, zero heads fill them up;
    of none, a zero head stays."""
    share = masked.heads // masked.key_heads
    groups = [range(start, start + share) for start in range(0, masked.heads, share)]
    stay = [[head for head in group if head in kept] for group in groups]
    most = max(map(len, stay))
    chosen = []
    for group, heads in zip(groups, stay, strict=True):
        if heads:
            chosen += heads + [head for head in group if head not in heads][: most - len(heads)]
    return masked.kept(chosen or groups[0])


def fitted(weights: HeadWeights, shape: AttentionShape) -> HeadWeights:
    """The same function in a shape with at least as many key heads and heads per key head: zeros fill it up."""
    share, most = weights.heads // weights.key_heads, shape.heads // shape.key_heads
    heads = [group * most + place for group in range(weights.key_heads) for place in range(share)]

    def placed(name: str) -> Any:
        array, places, count = getattr(weights, name), list(range(weights.key_heads)), shape.key_heads
        if name.startswith("query"):
            places, count = heads, shape.heads
        if array is None:
            return None
        filled = np.zeros((count, *array.shape[1:]))
        filled[places] = array
        return filled

    output = np.zeros((len(weights.output), shape.heads, weights.value_dim))
    output[:, heads] = weights.output
    names = ("query", "key", "value", "query_bias", "key_bias", "value_bias")
    return replace(weights, output=output, **{name: placed(name) for name in names})


def _file(path: str | Path) -> Path:
    return Path(path).with_suffix(".safetensors")


def _arrays(name: str, layers: Sequence[HeadWeights]) -> dict[str, np.ndarray]:
    return {
        f"{name}.{place}.{part}": np.ascontiguousarray(array)
        for place, weights in enumerate(layers)
        for part, array in vars(weights).items()
        if array is not None
    }


def _layers(name: str, count: int, arrays: Mapping[str, np.ndarray]) -> tuple[HeadWeights, ...]:
    parts = [each.name for each in fields(HeadWeights)]
    return tuple(
        HeadWeights(**{part: arrays.get(f"{name}.{place}.{part}") for part in parts})  # pyright: ignore[reportArgumentType]
        for place in range(count)
    )


def prune_plan(
    evaluation: "Evaluation", *, remove: int, uniform: bool, refit: bool = True, inspection: Path | None = None
) -> Plan:
    """Remove heads of the whole model, those that are missed least, and refit the output projections.

    `uniform`: as many of every layer, and of every key head. `inspection` is a results folder whose order of heads is
    used instead of a search.
    """
    from ..removal.descent import descend
    from ..removal.refit import heads_left

    if inspection is not None:
        kept, order = _inspected(evaluation, inspection, remove, uniform)
        plan = refitted_plan(evaluation, kept) if refit else pruned_plan(evaluation, {}, kept)
    else:
        descent = descend(evaluation, remove, uniform=uniform)
        kept = heads_left(evaluation.original, descent.removed)
        plan = pruned_plan(evaluation, descent.changes if refit else {}, kept)
        order = "The order of heads was searched anew on the calibration examples; no inspection was read."
        if descent.order == "Fisher":
            order += " The order by Fisher's score lost less there than the search's, and was used."
    return replace(plan, measured={"order": order})


def _inspected(evaluation: "Evaluation", folder: Path, remove: int, uniform: bool) -> tuple[list[list[int]], str]:
    """Heads that stay by the order of a stored inspection, and a sentence about it."""
    from ..inspection.order import chosen_inspection, inspected_kept

    facts = chosen_inspection(folder, evaluation.loaded.fingerprint)
    kept = inspected_kept(folder, facts, evaluation.original, remove=remove, uniform=uniform)
    data = facts.get("data", {}).get("words", "unknown").rstrip(".")
    return kept, f"The order of heads is that of the inspection in {folder}, whose data were: {data}."


def group_plan(evaluation: "Evaluation", *, key_heads: int) -> Plan:
    """Let the heads of every layer share `key_heads`: align them, search the groups, refit the output projections."""
    from ..sharing.grouping import group_model

    words = f"{key_heads} of {evaluation.original[0].key_heads} key heads per layer"
    return plan_of_layers("group", evaluation, group_model(evaluation, key_heads), words)


def shrink_plan(evaluation: "Evaluation", *, head_dim: int) -> Plan:
    """Lower head_dim in every layer, and refit the output projections."""
    from ..rank.shrink import shrink_model

    layers, pairs = shrink_model(evaluation, head_dim)
    words = f"head_dim {head_dim} in place of {evaluation.original[0].head_dim}"
    return plan_of_layers("shrink", evaluation, layers, words, pairs=pairs)


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


def measured_losses(plan: Plan, evaluation: "Evaluation") -> dict[str, Any]:
    """Held-out losses of the original and of the plan in the original's shapes, what the data are, what was known."""
    examples = evaluation.examples
    return {
        **plan.measured,
        "data": examples.words,
        "cannot": [examples.cannot] if examples.cannot else [],
        "loss": loss_facts(examples.loss.name, evaluation.losses(), evaluation.losses(dict(enumerate(plan.masked)))),
    }
