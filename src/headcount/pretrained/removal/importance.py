"""How much each head matters, by the loss itself and by cheaper estimates that others publish, and orders by them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._draws import named_generator
from ..layers.weights import HeadWeights, LayerStatistics, equal_step
from .elimination import most_read
from .refit import Head

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

RANDOM_ORDERS = 3
CRITERIA = {
    "gradient (Michel)": "gradient",
    "gradient, layers as they are": "gradient",
    "Fisher": "fisher",
    "leave-one-out": "leave_one_out",
    "norm of the output": "output_norm",
    "magnitude of the output projection": "magnitude",
}
"""Published criteria, and the importance that each orders by."""


def layer_importance(
    evaluation: "Evaluation", index: int, statistics: LayerStatistics, *, leave_one_out: bool = True
) -> dict[str, Float[np.ndarray, " heads"]]:
    """Importances of one layer's heads, more is more important; gradient and Fisher where gradients were measured.

    magnitude: Frobenius norm of the head's part of the output projection.
    output_norm: Root of the mean squared norm of what the head adds to the attention output.
    gradient: Mean over examples of the absolute derivative of the loss by the head's gate (Michel et al. 2019).
    fisher: Mean over examples of its square (Kwon et al. 2022).
    leave_one_out: Increase of the mean calibration loss when the head alone is removed, nothing refitted.
    leave_one_out_error: Its standard error; losses of the same examples are compared. One evaluation per head.
    """
    weights, gradients = evaluation.original[index], statistics.gradients
    found = {
        "magnitude": np.sqrt(np.sum(weights.output**2, axis=(0, 2))),
        "output_norm": output_norms(weights, statistics),
    }
    if gradients is not None:
        found |= {"gradient": np.mean(np.abs(gradients), axis=0), "fisher": np.mean(gradients**2, axis=0)}
    if leave_one_out:
        base = evaluation.losses({}, part="calibration")
        changes = [{index: weights.without([head])} for head in range(weights.heads)]
        rises = np.stack([evaluation.losses(change, part="calibration") - base for change in changes])
        mean, examples = rises.mean(axis=1), rises.shape[1]
        error = rises.std(axis=1, ddof=1) / np.sqrt(examples) if examples > 1 else np.full_like(mean, np.nan)
        found |= {"leave_one_out": mean, "leave_one_out_error": error}
    return found


def output_norms(weights: HeadWeights, statistics: LayerStatistics) -> Float[np.ndarray, " heads"]:
    """Root of E |O_h z_h|^2 for each head, from the moments."""
    heads, dim = weights.heads, weights.value_dim
    blocks = statistics.moments[: heads * dim, : heads * dim].reshape(heads, dim, heads, dim)
    own = np.einsum("hihj->hij", blocks)
    return np.sqrt(np.maximum(np.einsum("ohi,hij,ohj->h", weights.output, own, weights.output, optimize=True), 0.0))


def ascending(scores: Sequence[Float[np.ndarray, " heads"]], *, per_layer: bool = False) -> tuple[Head, ...]:
    """All heads, the least important first.

    `per_layer`: by the scores divided by the norm of their layer's, as Michel et al. (2019) do.
    """
    if per_layer:
        scores = [layer / max(float(np.linalg.norm(layer)), np.finfo(float).tiny) for layer in scores]
    pairs = [(index, head) for index, layer in enumerate(scores) for head in range(len(layer))]
    return tuple(sorted(pairs, key=lambda pair: scores[pair[0]][pair[1]]))


def fisher_order(
    original: Sequence[HeadWeights],
    gradients: Sequence[Float[np.ndarray, "examples heads"] | None],
    *,
    least: int = 1,
    uniform: bool = False,
) -> tuple[Head, ...]:
    """Heads that may go, by the mean squared derivative of the loss by their gates; none where it was not measured.

    Every layer keeps `least`. `uniform`: equally many of every layer and of every key head, so that each step leaves
    what stock classes store.
    """
    if any(layer is None for layer in gradients):
        return ()
    scores = [np.mean(np.square(layer), axis=0) for layer in gradients if layer is not None]
    kept = [list(range(weights.heads)) for weights in original]
    order: list[Head] = []

    def take(layer: int, head: int) -> None:
        kept[layer].remove(head)
        order.append((layer, head))

    if not uniform:
        for layer, head in ascending(scores):
            if len(kept[layer]) > least:
                take(layer, head)
        return tuple(order)
    while all(len(left) - equal_step(weights) >= max(least, 1) for left, weights in zip(kept, original, strict=True)):
        for layer, weights in enumerate(original):
            for _ in range(equal_step(weights)):
                take(layer, min(most_read(weights, kept[layer]), key=scores[layer].__getitem__))
    return tuple(order)


def random_order(heads: Sequence[int], seed: int) -> tuple[Head, ...]:
    """All heads in a random order; `heads` are the layers' counts."""
    pairs = [(index, head) for index, count in enumerate(heads) for head in range(count)]
    return tuple(pairs[place] for place in named_generator(seed, "order of heads").permutation(len(pairs)))


def peer_orders(
    importances: Sequence[Mapping[str, Float[np.ndarray, " heads"]]], *, random_orders: int = RANDOM_ORDERS
) -> dict[str, tuple[Head, ...]]:
    """The order of removal of each published criterion, by name; criteria that were not measured are left out."""
    heads = [len(layer["magnitude"]) for layer in importances]
    orders = {f"random {seed + 1}": random_order(heads, seed) for seed in range(random_orders)}
    for name, measure in CRITERIA.items():
        if all(measure in layer for layer in importances):
            scores = [layer[measure] for layer in importances]
            orders[name] = ascending(scores, per_layer=name == "gradient (Michel)")
    return orders
