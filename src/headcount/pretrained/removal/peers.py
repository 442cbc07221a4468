"""What others would remove: orders of heads by one score each, and the losses along them, with and without refit."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._draws import named_generator
from ..layers.weights import HeadWeights
from .elimination import allowed, equal_step
from .importance import Importance
from .refit import refitted_in_order, removed_plainly

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

Order = tuple[tuple[int, int], ...]
"""(layer, head), first removed first."""

RANDOM_ORDERS = 3


def ascending(scores: Sequence[Float[np.ndarray, " heads"]], *, per_layer: bool = False) -> Order:
    """All heads, the least important first.

    Args:
        scores: Importances per layer.
        per_layer: Divide by the norm of each layer's scores first, as Michel et al. (2019) do.
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
) -> Order:
    """Heads that may go, by the mean squared derivative of the loss by their gates; none where it was not measured.

    Args:
        original: The layers.
        gradients: Derivatives by the gates, per layer.
        least: Heads that every layer keeps.
        uniform: Equally many of every layer and of every key head, so that each step leaves what stock classes store.
    """
    if any(layer is None for layer in gradients):
        return ()
    scores = [np.mean(np.square(layer), axis=0) for layer in gradients if layer is not None]
    kept = [list(range(weights.heads)) for weights in original]
    order: list[tuple[int, int]] = []

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
                heads = allowed(weights, kept[layer], equal_groups=True)
                take(layer, min(heads, key=scores[layer].__getitem__))
    return tuple(order)


def random_order(heads: Sequence[int], seed: int) -> Order:
    """All heads in a random order; `heads` are the layers' counts."""
    pairs = [(index, head) for index, count in enumerate(heads) for head in range(count)]
    return tuple(pairs[place] for place in named_generator(seed, "order of heads").permutation(len(pairs)))


def peer_orders(importances: Sequence[Importance], *, random_orders: int = RANDOM_ORDERS) -> dict[str, Order]:
    """The order of removal of each published criterion, by name; criteria that were not measured are left out."""
    heads = [len(layer.magnitude) for layer in importances]
    orders = {f"random {seed + 1}": random_order(heads, seed) for seed in range(random_orders)}
    for name, field, per_layer in (
        ("gradient (Michel)", "gradient", True),
        ("gradient, layers as they are", "gradient", False),
        ("Fisher", "fisher", False),
        ("leave-one-out", "leave_one_out", False),
        ("norm of the output", "output_norm", False),
        ("magnitude of the output projection", "magnitude", False),
    ):
        scores = [getattr(layer, field) for layer in importances]
        if all(layer is not None for layer in scores):
            orders[name] = ascending(scores, per_layer=per_layer)
    return orders


def losses_along(
    evaluation: "Evaluation", order: Order, removed: Iterable[int], *, with_refit: bool, ridge: float | None = None
) -> Float[np.ndarray, "points examples"]:
    """Held-out losses after so many heads of an order are gone. Leaves the evaluation settled on the original.

    Args:
        evaluation: Runs the model.
        order: Heads in the order of their removal.
        removed: Numbers of removed heads.
        with_refit: Whether the layers are refitted, in order.
        ridge: See `refit`.
    """
    rows = []
    for count in removed:
        gone = set(order[:count])
        kept = [
            [head for head in range(weights.heads) if (index, head) not in gone]
            for index, weights in enumerate(evaluation.original)
        ]
        evaluation.settle({})
        changes = refitted_in_order(evaluation, kept, ridge=ridge) if with_refit else removed_plainly(evaluation, kept)
        rows.append(evaluation.losses(changes))
        evaluation.settle({})
    return np.stack(rows)
