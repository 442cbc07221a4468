"""From a request (keep 8 heads, share 3 key heads, head_dim 16) to a plan that is measured."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ...answer.bootstrap import COVERAGE
from ..inspection.facts import resampled
from .plan import Plan, plan_of_layers, pruned_plan

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation


def prune_plan(
    evaluation: "Evaluation", *, remove: int, uniform: bool, refit: bool = True, inspection: Path | None = None
) -> Plan:
    """Remove heads of the whole model, those that are missed least, and refit the output projections.

    `uniform`: as many of every layer, and of every key head. `inspection` is a results folder whose order of heads is
    used instead of a search.
    """
    from ..removal.descent import descend
    from ..removal.refit import heads_left, refitted_in_order

    if inspection is not None:
        kept, order = _inspected(evaluation, inspection, remove, uniform)
        changes = refitted_in_order(evaluation, kept) if refit else {}
        evaluation.settle({})
    else:
        descent = descend(evaluation, remove, uniform=uniform)
        kept, changes = heads_left(evaluation.original, descent.removed), descent.changes if refit else {}
        order = "The order of heads was searched anew on the calibration examples; no inspection was read."
        if descent.order == "Fisher":
            order += " The order by Fisher's score lost less there than the search's, and was used."
    return replace(pruned_plan(evaluation, changes, kept), measured={"order": order})


def _inspected(evaluation: "Evaluation", folder: Path, remove: int, uniform: bool) -> tuple[list[list[int]], str]:
    """Heads that stay by the order of a stored inspection, and a sentence about it."""
    from ..inspection.order import chosen_inspection, inspected_kept

    facts = chosen_inspection(folder, evaluation.loaded.fingerprint)
    shapes = [(layer.heads, layer.key_heads) for layer in evaluation.layers]
    kept = inspected_kept(folder, facts, shapes, remove=remove, uniform=uniform)
    data = facts.get("data", {}).get("words", "unknown").rstrip(".")
    return kept, f"The order of heads is that of the inspection in {folder}, whose data were: {data}."


def group_plan(evaluation: "Evaluation", *, key_heads: int) -> Plan:
    """Let the heads of every layer share `key_heads`: aligned, grouped by search, output projections refitted."""
    from ..sharing.grouping import group_model

    words = f"{key_heads} of {evaluation.original[0].key_heads} key heads per layer"
    return plan_of_layers("group", evaluation, group_model(evaluation, key_heads), words)


def shrink_plan(evaluation: "Evaluation", *, head_dim: int) -> Plan:
    """Lower head_dim in every layer, output projections refitted."""
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
