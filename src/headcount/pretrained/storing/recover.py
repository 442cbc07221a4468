"""A short training of a changed model's attention projections towards the original's answers.

After heads were removed, keys shared or ranks lowered, the output projections are refitted in closed form, layer by
layer. What a closed form cannot do is let layers make up for each other; some hundred steps on the calibration examples
can. Shapes never change, and the output columns of a zeroed head stay zero.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from ..._draws import named_generator
from ...errors import require
from ..layers.find import attention_layers
from ..losses.loss import device_of
from .plan import Plan, loss_facts
from .request import What

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Tick

Inputs = dict[str, Any]
"""Keyword arguments of a forward pass."""
PIECES = 16
"""Batches that a recovery gets at least."""
TRAINED: dict[What, str] = {
    "output": "the output projections",
    "low-rank": "a low-rank update of all attention projections",
}
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
    """Result of a recovery. `distances` are those to the original's answers on the batches that choose, from before the
    first step on; `chosen` is the step whose weights were kept, 0 where no step was better than none."""

    what: What
    steps: int
    chosen: int
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
    batches = split_batches([batch.inputs_on(device_of(original)) for batch in examples.calibration])
    recovery = recover(model, original, batches, steps=steps, what=what, seed=seed, tick=evaluation.tick)
    with torch.no_grad():
        after = [examples.loss.example_losses(model, batch).double().cpu().numpy() for batch in examples.held_out]
    return model, {
        **plan.measured,
        "loss": loss_facts(examples.loss.name, evaluation.losses(), np.concatenate(after)),
        "recovery": {
            "steps": steps,
            "words": str(recovery),
            "increase_before": plan.measured["loss"]["increase"],
        },
    }


def split_batches(batches: Sequence[Mapping[str, Any]]) -> list[Inputs]:
    """Split batches by rows where there are few, so that some train and others say when to stop."""
    parts = math.ceil(PIECES / max(1, len(batches)))
    split = []
    for batch in batches:
        rows = len(next(iter(batch.values()), ()))
        size = max(1, math.ceil(rows / parts))
        split += [{name: each[start : start + size] for name, each in batch.items()} for start in range(0, rows, size)]
    return split


def recover(
    model: nn.Module,
    original: nn.Module,
    batches: Sequence[Inputs],
    *,
    steps: int,
    what: What = "output",
    seed: int = 0,
    tick: "Tick | None" = None,
) -> Recovery:
    """Train attention projections of `model`, in place, towards the answers of `original`, which is not changed.

    A step takes one batch. `what`: "output" trains the output projections, "low-rank" an update of rank 8 of every
    attention projection, which is added to the weights at the end. Where no step comes nearer to the original, the
    model stays as it was. Raises InputError for fewer than two batches: one trains, another says when to stop.
    """
    require(
        len(batches) >= 2,
        f"recovery needs at least 2 calibration batches, got {len(batches)}; give more data or a smaller length.",
    )
    began = time.perf_counter()
    choosing = max(1, round(CHOOSING * len(batches)))
    training, judging = list(batches[:-choosing]), list(batches[-choosing:])
    generator = named_generator(seed, "recovery")
    updates = _updates(model, what, generator)
    trained = [factor for update in updates.values() for factor in update.factors]
    optimiser = torch.optim.Adam(trained, lr=RATE[what])

    def distance(batch: Inputs) -> torch.Tensor:
        with torch.no_grad():
            wanted = original(**batch)
        weights = {name: update.weight() for name, update in updates.items()}
        return _distance(functional_call(model, weights, (), batch), wanted, batch.get("attention_mask"))

    def judged_distance() -> float:
        with torch.no_grad():
            return float(np.mean([distance(batch).item() for batch in judging]))

    distances, chosen = [judged_distance()], 0
    kept = [factor.detach().clone() for factor in trained]
    order: list[int] = []
    for step in range(1, steps + 1):
        order = order or list(generator.permutation(len(training)))
        optimiser.param_groups[0]["lr"] = RATE[what] * _rate(step - 1, steps)
        optimiser.zero_grad(set_to_none=True)
        distance(training[order.pop()]).backward()
        torch.nn.utils.clip_grad_norm_(trained, MAX_NORM)
        optimiser.step()
        if step == steps or step % max(1, steps // CHECKS) == 0:
            distances.append(judged_distance())
            if distances[-1] < min(distances[:-1]):
                chosen, kept = step, [factor.detach().clone() for factor in trained]
        if tick is not None:
            tick(step, steps, "recovering")
    with torch.no_grad():
        for factor, value in zip(trained, kept, strict=True):
            factor.copy_(value)
        for name, update in updates.items():
            model.get_parameter(name).copy_(update.weight())
    return Recovery(
        what=what,
        steps=steps,
        chosen=chosen,
        distances=tuple(distances),
        trained_parameters=sum(factor.numel() for factor in trained),
        seconds=time.perf_counter() - began,
    )


@dataclass(frozen=True, eq=False)
class _Update:
    """A projection's weight and what is added to it: one array, or a product of two; where `mask` is 0, nothing."""

    before: torch.Tensor
    factors: list[torch.Tensor]
    mask: torch.Tensor | None

    def weight(self) -> torch.Tensor:
        added = self.factors[0] if len(self.factors) == 1 else self.factors[0] @ self.factors[1]
        return self.before + (added if self.mask is None else added * self.mask)


def _updates(model: nn.Module, what: What, generator: np.random.Generator) -> dict[str, _Update]:
    """Return what is trained by the name of its weight: the output projections, or every attention projection."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    updates = {}
    for layer in attention_layers(model):
        output = layer.output_module(model).get_parameter("weight")
        inner = model.get_submodule(layer.name).modules() if what == "low-rank" else ()
        weights: list[Any] = [getattr(module, "weight", None) for module in inner]
        matrices = [each for each in weights if isinstance(each, nn.Parameter) and each.ndim == 2]
        for weight in (*(each for each in matrices if each is not output), output):
            mask = None
            if weight is output:
                # A zeroed or padded head has zero columns (rows, where weights are stored transposed).
                mask = (weight != 0).any(dim=0, keepdim=True) & (weight != 0).any(dim=1, keepdim=True)
                mask = mask.to(weight.dtype)
            updates[names[id(weight)]] = _Update(weight.detach(), _factors(weight, what, generator), mask)
    return updates


def _factors(weight: torch.Tensor, what: What, generator: np.random.Generator) -> list[torch.Tensor]:
    if what == "output":
        return [torch.zeros_like(weight).requires_grad_()]
    rows, columns = weight.shape
    rank = min(RANK, rows, columns)
    start = torch.as_tensor(generator.normal(size=(rank, columns)) / math.sqrt(columns))
    return [weight.new_zeros(rows, rank).requires_grad_(), start.to(weight).requires_grad_()]


def _rate(step: int, steps: int) -> float:
    warm = max(1.0, WARM_UP * steps)
    return min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))


def _distance(given: Any, wanted: Any, mask: torch.Tensor | None) -> torch.Tensor:
    """How far apart answers are: divergence of the predictions in nats, or relative squared error of the states."""
    if getattr(wanted, "logits", None) is not None:
        divergence = nn.functional.kl_div(
            torch.log_softmax(given.logits, -1), torch.log_softmax(wanted.logits, -1), reduction="none", log_target=True
        ).sum(-1)
        return _mean(divergence, mask)
    target = wanted.last_hidden_state
    difference = ((given.last_hidden_state - target) ** 2).sum(-1)
    return _mean(difference, mask) / _mean((target**2).sum(-1), mask)


def _mean(values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    if mask is None or mask.shape != values.shape:
        return values.mean()
    return (values * mask).sum() / mask.sum()
