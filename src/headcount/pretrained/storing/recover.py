"""A short training of a changed model's attention projections towards the original's answers.

After heads were removed, keys shared or ranks lowered, the output projections are refitted in closed form, layer by
layer. What a closed form cannot do is let layers make up for each other; some hundred steps on the calibration examples
can. Shapes never change, and the output columns of a zeroed head stay zero.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from ..._draws import named_generator
from ...errors import require, require_count
from ..layers.find import AttentionLayer, attention_layers
from ..losses.loss import device_of
from .changing import loss_facts
from .plan import Plan
from .request import What

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation

PIECES = 16
"""Batches that a recovery gets at least."""
TRAINED: dict[What, str] = {
    "output": "the output projections",
    "low-rank": "a low-rank update of all attention projections",
}
STEPS = 300
RANK = 8
RATE = {"output": 3e-4, "low-rank": 3e-3}
"""Adam's step for every entry of an output projection, and for the factors of a low-rank update."""
WARM_UP = 0.1
"""Share of the steps in which the rate rises; after it, it falls to zero as a cosine."""
CHOOSING = 0.2
"""Share of the calibration batches that choose the step at which to stop; the others train."""
CHECKS = 10
MAX_NORM = 1.0


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What a recovery did. `distances` are those to the original's answers on the batches that choose, at `checked`
    steps; `chosen` is the step whose weights were kept, 0 where no step was better than none."""

    what: What
    steps: int
    chosen: int
    checked: tuple[int, ...]
    distances: tuple[float, ...]
    trained_parameters: int
    seconds: float

    def __str__(self) -> str:
        if self.chosen == 0:
            return (
                f"recovery trained {TRAINED[self.what]}, but none of {self.steps} steps came nearer to the original's "
                "answers; the weights are as before"
            )
        first, best = self.distances[0], min(self.distances)
        return (
            f"recovery trained {TRAINED[self.what]} ({self.trained_parameters:,} parameters) for {self.seconds:.0f} s "
            f"and was best after step {self.chosen} of {self.steps}: distance to the original's answers "
            f"{first:.4g} before, {best:.4g} after"
        )


def recovered(
    plan: Plan, evaluation: "Evaluation", *, steps: int, zeroed: bool, what: What = "output", seed: int = 0
) -> tuple[nn.Module, dict[str, Any]]:
    """The plan's model after a short training towards the original's answers, and the numbers before and after."""
    original, examples = evaluation.loaded.model, evaluation.examples
    model = plan.apply(original, zeroed=zeroed)
    batches = pieces([batch.inputs_on(device_of(original)) for batch in examples.calibration])
    recovery = recover(
        model, original, attention_layers(model), batches, steps=steps, what=what, seed=seed, tick=evaluation.tick
    )
    with torch.no_grad():
        after = [examples.loss.values(model, batch).double().cpu().numpy() for batch in examples.held_out]
    return model, {
        **plan.measured,
        "loss": loss_facts(examples.loss.name, evaluation.losses(), np.concatenate(after)),
        "recovery": {
            "steps": steps,
            "words": str(recovery),
            "increase_before": plan.measured["loss"]["increase"],
        },
    }


def pieces(batches: Sequence[Mapping[str, Any]], least: int = PIECES) -> list[dict[str, Any]]:
    """Batches split by rows where there are few, so that some train and others say when to stop."""
    parts = math.ceil(least / max(1, len(batches)))
    split = []
    for batch in batches:
        rows = len(next(iter(batch.values()), ()))
        size = max(1, math.ceil(rows / parts))
        split += [{name: each[start : start + size] for name, each in batch.items()} for start in range(0, rows, size)]
    return split


def recover(
    model: nn.Module,
    original: nn.Module,
    layers: Sequence[AttentionLayer],
    batches: Sequence[dict[str, Any]],
    *,
    steps: int = STEPS,
    what: What = "output",
    seed: int = 0,
    tick: Callable[[int, int, str], None] | None = None,
) -> Recovery:
    """Train attention projections of `model`, in place, towards the answers of `original`, which is not changed.

    Args:
        model: The changed model.
        original: The model it was made from.
        layers: The attention layers of `model`.
        batches: Keyword arguments of both models' forward: the calibration batches.
        steps: Optimiser steps, a batch each.
        what: "output" trains the output projections, "low-rank" an update of rank 8 of every attention projection,
            which is added to the weights at the end.
        seed: Draws the order of the batches and the factors' start.
        tick: Called with steps done, steps in all, and words.

    Returns:
        What was done; where no step was nearer to the original than none, the model is as it was.

    Raises:
        InputError: No steps, or fewer than two batches: one trains, another says when to stop.
    """
    require_count("steps", steps)
    require(what in RATE, what="what", given=what, needed='"output" or "low-rank"')
    require(
        len(batches) >= 2,
        f"recovery needs at least 2 calibration batches, got {len(batches)}; give more data or a smaller length.",
    )
    began = time.perf_counter()
    choosing = max(1, round(CHOOSING * len(batches)))
    training, judging = list(batches[:-choosing]), list(batches[-choosing:])
    generator = named_generator(seed, "recovery")
    needed = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    model.requires_grad_(False)
    updates = _updates(model, layers, what, generator)
    trained = [parameter for update in updates for parameter in update.parameters()]
    for parameter in trained:
        parameter.requires_grad_(True)
    optimiser = torch.optim.Adam(trained, lr=RATE[what])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, steps))
    best, chosen = _mean_distance(model, original, judging), 0
    kept = [parameter.detach().clone() for parameter in trained]
    checked, distances = [0], [best]
    try:
        order: list[int] = []
        for step in range(1, steps + 1):
            order = order or list(generator.permutation(len(training)))
            loss = _distance(model, original, training[order.pop()])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, MAX_NORM)
            optimiser.step()
            schedule.step()
            if step == steps or step % max(1, steps // CHECKS) == 0:
                distance = _mean_distance(model, original, judging)
                checked.append(step)
                distances.append(distance)
                if distance < best:
                    best, chosen = distance, step
                    kept = [parameter.detach().clone() for parameter in trained]
            if tick is not None:
                tick(step, steps, "recovering")
    finally:
        with torch.no_grad():
            for parameter, value in zip(trained, kept, strict=True):
                parameter.copy_(value)
        for layer in layers:
            for module in _projections(model, layer, what):
                if parametrize.is_parametrized(module, "weight"):
                    parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(needed[name])
    return Recovery(
        what=what,
        steps=steps,
        chosen=chosen,
        checked=tuple(checked),
        distances=tuple(distances),
        trained_parameters=sum(parameter.numel() for parameter in trained),
        seconds=time.perf_counter() - began,
    )


class _Update(nn.Module):
    """A weight and what is added to it; entries of `mask` that are 0 stay as they are."""

    mask: torch.Tensor | None

    def __init__(
        self, weight: torch.Tensor, mask: torch.Tensor | None, rank: int | None, generator: np.random.Generator
    ):
        super().__init__()
        rows, columns = weight.shape
        self.register_buffer("mask", mask, persistent=False)
        if rank is None:
            self.added = nn.Parameter(torch.zeros_like(weight))
            self.left = None
            return
        start = generator.normal(size=(rank, columns)) / math.sqrt(columns)
        self.left = nn.Parameter(torch.zeros(rows, rank, dtype=weight.dtype, device=weight.device))
        self.right = nn.Parameter(torch.as_tensor(start, dtype=weight.dtype, device=weight.device))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        added = self.added if self.left is None else self.left @ self.right
        return weight + (added if self.mask is None else added * self.mask)


def _updates(
    model: nn.Module, layers: Sequence[AttentionLayer], what: What, generator: np.random.Generator
) -> list[_Update]:
    updates = []
    for layer in layers:
        for module in _projections(model, layer, what):
            weight = module.get_parameter("weight")
            mask = None
            if module is layer.output_module(model):
                # A zeroed or padded head has zero columns (rows, where weights are stored transposed).
                mask = (weight != 0).any(dim=0, keepdim=True) & (weight != 0).any(dim=1, keepdim=True)
                mask = mask.to(weight.dtype)
            update = _Update(weight.detach(), mask, None if what == "output" else min(RANK, *weight.shape), generator)
            parametrize.register_parametrization(module, "weight", update)
            updates.append(update)
    return updates


def _projections(model: nn.Module, layer: AttentionLayer, what: What) -> list[nn.Module]:
    """The modules of a layer that are trained, each once: the output projection, or every one with a weight matrix."""
    output = layer.output_module(model)
    if what == "output":
        return [output]
    attention = model.get_submodule(layer.name)
    matrices = [
        module
        for module in attention.modules()
        if module is not output
        and isinstance(getattr(module, "weight", None), torch.Tensor)
        and module.weight.ndim == 2
    ]
    return [*matrices, output]


def _rate(step: int, steps: int) -> float:
    warm = max(1.0, WARM_UP * steps)
    return min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))


def _mean_distance(model: nn.Module, original: nn.Module, batches: Sequence[dict[str, Any]]) -> float:
    with torch.no_grad():
        return float(np.mean([_distance(model, original, batch).item() for batch in batches]))


def _distance(model: nn.Module, original: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """How far apart the answers are: divergence of the predictions in nats, or relative squared error of the states."""
    with torch.no_grad():
        wanted = original(**batch)
    given = model(**batch)
    mask = batch.get("attention_mask")
    if getattr(wanted, "logits", None) is not None:
        divergence = nn.functional.kl_div(
            torch.log_softmax(given.logits, -1), torch.log_softmax(wanted.logits, -1), reduction="none", log_target=True
        ).sum(-1)
        return _mean(divergence, mask)
    target = wanted.last_hidden_state
    difference = ((given.last_hidden_state - target) ** 2).sum(-1)
    return _mean(difference, mask) / _mean((target**2).sum(-1), mask)


def _mean(values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """The mean over tokens that are not padding."""
    if mask is None or mask.shape != values.shape:
        return values.mean()
    return (values * mask).sum() / mask.sum()
