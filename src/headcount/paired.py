"""How far the errors of two head counts can differ by the choice of validation examples, which both answer.

Two models answer the same examples, and much the same ones wrongly. The standard error of the difference between their
errors is that of the differences per example, far below what two samples of their own would give.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from ._compile import on_device
from .answer.answer import PAIRED
from .engine.data import validation_of
from .models import AbstractModel, from_arrays, spec_from_dict
from .store import Record, Store
from .tasks import AbstractObjective, AbstractTask
from .tasks.objective import AbstractLabelObjective

MAX_NUMBERS = 4_000_000
"""Numbers of the validation tokens that are answered once more, at most; longer ones are left to the binomial error."""


def attach_paired_errors(store: Store, experiment: str, records: Iterable[Record], task: AbstractTask) -> None:
    """Store, per draw of the data and length, the standard errors of the differences between head counts.

    They are those of the models of smallest error, as they are stored: at the end of training.
    """
    places: dict[tuple[int, int], dict[int, Record]] = {}
    for record in sorted((each for each in records if each.finished), key=lambda each: (each.error, each.cell.key)):
        at = (record.cell.train.data_seed, record.cell.length)
        places.setdefault(at, {}).setdefault(record.cell.model["heads"], record)
    stored = {tuple(entry["cells"]): entry for entry in store.get(experiment, PAIRED, [])}
    entries = []
    for (draw, length), best in sorted(places.items()):
        chosen = [best[heads] for heads in sorted(best)]
        cells = tuple(record.cell.key for record in chosen)
        known = stored.get(cells)
        if known is None and (errors := _errors_of(store, chosen, task.at(length))) is not None:
            heads, deviations = sorted(best), standard_errors(errors, is_share=_counts_wrong(task.objective))
            known = {"data_seed": draw, "length": length, "heads": heads, "cells": list(cells)}
            stored_examples = task.spec().get("examples")  # of which another draw may validate some again
            share = errors.shape[1] / stored_examples if stored_examples else 0.0
            known |= {"share": share, "errors": deviations.tolist()}
        entries += [] if known is None else [known]
    store.put(experiment, PAIRED, entries)


def standard_errors(
    errors: Float[np.ndarray, "models examples"], *, is_share: bool
) -> Float[np.ndarray, "models models"]:
    """Return the standard errors of the differences between the mean errors of all models over the same examples.

    Shares of wrong answers that agree on every example may differ on the next: one example counts as another.
    """
    count = errors.shape[1]
    apart = errors[:, None] - errors[None]
    squares = np.mean(apart**2, axis=-1) + (1 - np.eye(len(errors))) * (is_share / count)
    return np.sqrt(np.maximum(squares - np.mean(apart, axis=-1) ** 2, 0.0) / count)


def _counts_wrong(objective: AbstractObjective) -> bool:
    return isinstance(objective, AbstractLabelObjective)


def _errors_of(
    store: Store, records: Sequence[Record], task: AbstractTask
) -> Float[np.ndarray, "models examples"] | None:
    """Return the errors of models on every validation example; None where computing them takes long."""
    if task.tokenise is not None:
        return None
    specs = [spec_from_dict(record.cell.model) for record in records]
    tokens, targets, scale = validation_of(task, specs[0], records[0].cell.train)
    if tokens.size > MAX_NUMBERS:
        return None
    shown, right = on_device(tokens), on_device(targets if scale is None else targets / scale)
    most = max(spec.heads for spec in specs)
    errors = []
    for spec, record in zip(specs, records, strict=True):
        model = jax.device_put(from_arrays(spec, store.weights(record.cell.key)).with_heads(most))
        errors.append(np.asarray(_example_errors(model, shown, right, task.objective, scale), np.float64))
    return np.stack(errors)


@eqx.filter_jit
def _example_errors(
    model: AbstractModel, tokens: Array, targets: Array, objective: AbstractObjective, scale: Any
) -> Float[Array, " examples"]:
    answers = jax.vmap(model)(tokens)
    return objective.example_errors(answers if scale is None else answers / scale, targets)
