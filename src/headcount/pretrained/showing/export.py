"""The heads of inspected models as a table for other programs."""

from collections.abc import Mapping
from typing import Any

from ..reading.read import read_trained_model


def head_rows(experiment: str, attachments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One flat row per head: every measured importance, its place in the order of removal from its layer and from the
    whole model (0 is removed first), and how many heads its layer needs. None: not measured."""
    model, table = read_trained_model(attachments), []
    removed = () if model.whole is None else model.whole.removed
    for layer in model.layers:
        for head in range(layer.heads):
            row: dict[str, Any] = {"experiment": experiment, "model": model.name, "layer": layer.index, "head": head}
            row |= {measure: values[head] for measure, values in layer.importance.items()}
            row |= {"removed_from_layer": layer.order.index(head) if head in layer.order else None}
            at = (layer.index, head)
            row |= {"removed_from_model": removed.index(at) if at in removed else None}
            table.append(row | {"needed_in_layer": None if layer.needed is None else layer.needed.at})
    return table
