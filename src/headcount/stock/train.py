"""Train one stock model: AdamW, warm-up and cosine, gradient clipping, the smallest validation error kept."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..errors import require, require_count
from .config import StockConfig
from .examples import StockExamples, StockPart

if TYPE_CHECKING:
    from torch import Tensor, nn

LEARNING_RATE = 3e-3
"""Of small models in few steps: on digits by rows, 400 steps, the errors of 1e-3 are half as large again or twice."""
WARMUP_SHARE, MAX_WARMUP = 0.1, 100
CLIP = 1.0
VALIDATED = 512
"""Validation examples at a time."""
VALIDATIONS = 20
"""How often a model is validated, evenly over its steps."""


@dataclass(frozen=True)
class StockResult:
    """A trained stock model's error.

    Args:
        config: What was trained.
        error: The smallest validation error: a share of the targets' variance (nmse), or of wrong answers.
        losses: What every validation example adds to `error`, which is their mean, at that step.
        parameters: Trained numbers.
        seconds: Training and validating, without importing the library.
        steps: Steps that were made; fewer than asked where it stopped early.
        curve: Step and validation error, at each validation.
    """

    config: StockConfig
    error: float
    losses: Float[np.ndarray, " examples"]
    parameters: int
    seconds: float
    steps: int
    curve: tuple[tuple[int, float], ...]


def train_stock(
    config: StockConfig,
    examples: StockExamples,
    *,
    steps: int,
    batch: int = 64,
    learning_rate: float = LEARNING_RATE,
    weight_decay: float = 0.01,
    seed: int = 0,
    patience: int | None = None,
    heard: Callable[[int], None] | None = None,
) -> StockResult:
    """Train a stock model, the same on every call with the same arguments.

    Args:
        config: The model.
        examples: What it learns and is judged on.
        steps: Training steps.
        batch: Examples per step, drawn without replacement in epochs.
        learning_rate: Peak learning rate, after a linear warm-up; then a cosine to 0.
        weight_decay: Of AdamW.
        seed: Draws weights and batches.
        patience: Validations without a smaller error after which training stops; None: never.
        heard: Called with the steps since the last validation.

    Raises:
        InputError: An argument is out of range, or torch or transformers is not installed.
    """
    for name, value in {"steps": steps, "batch": batch}.items():
        require_count(name, value)
    require(learning_rate > 0, what="learning_rate", given=learning_rate, needed="positive")
    need_library(config.library)
    import torch

    from .models import stock_model

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            begun = time.perf_counter()
            model = stock_model(config, examples.shape)
            best, curve = _trained(
                model,
                examples,
                steps=steps,
                batch=batch,
                rate=learning_rate,
                decay=weight_decay,
                patience=patience,
                heard=heard or (lambda steps: None),
            )
            seconds = time.perf_counter() - begun
    finally:
        torch.set_num_threads(threads)
    parameters = sum(each.numel() for each in model.parameters())
    return StockResult(config, float(best.mean()), best, parameters, seconds, curve[-1][0], tuple(curve))


def need_library(library: str) -> None:
    """Raise InputError, with the line to type, where torch or transformers is missing."""
    import importlib.util

    from ..errors import InputError

    for package in ("torch", "transformers")[: 1 if library == "torch" else 2]:
        if importlib.util.find_spec(package) is None:
            raise InputError(
                f"stock models of {library} are trained with {package}, which is not installed: "
                f"pip install 'headcount[{library}]'.",
                what="library",
            )


def _trained(
    model: "nn.Module",
    examples: StockExamples,
    *,
    steps: int,
    batch: int,
    rate: float,
    decay: float,
    patience: int | None,
    heard: Callable[[int], None],
) -> tuple[np.ndarray, list[tuple[int, float]]]:
    """Train a model; return the losses of the validation examples where their mean was smallest, and the curve."""
    import torch

    train, validation = _tensors(examples.train), _tensors(examples.validation)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    warmup = max(1, min(MAX_WARMUP, round(WARMUP_SHARE * steps)))
    parameters = list(model.parameters())
    every = max(1, steps // VALIDATIONS)
    best, curve, since = np.full(len(examples.validation), np.inf), [], 0
    order, at = torch.randperm(0), 0
    for step in range(1, steps + 1):
        if at + batch > len(order):
            order, at = torch.randperm(len(examples.train)), 0
        chosen = order[at : at + batch]
        at += batch
        optimiser.param_groups[0]["lr"] = rate * _share(step, warmup, steps)
        tokens, targets, mask = (None if each is None else each[chosen] for each in train)
        loss = _loss(model(tokens, mask), targets, mask, examples)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimiser.step()
        if step % every == 0 or step == steps:
            heard(step - (curve[-1][0] if curve else 0))
            losses = _losses(model, validation, examples)
            curve.append((step, float(losses.mean())))
            better = curve[-1][1] < best.mean()
            best, since = (losses, 0) if better else (best, since + 1)
            if patience is not None and since >= patience:
                break
    return best, curve


def _share(step: int, warmup: int, steps: int) -> float:
    """Return the learning rate of a step as a share of its peak."""
    if step <= warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def _tensors(part: StockPart) -> "tuple[Tensor, Tensor, Tensor | None]":
    import torch

    mask = None if part.mask is None else torch.from_numpy(part.mask)
    return torch.from_numpy(part.tokens), torch.from_numpy(part.targets), mask


def _loss(answers: "Tensor", targets: "Tensor", mask: "Tensor | None", examples: StockExamples) -> "Tensor":
    """Return the training loss of a batch: cross-entropy, or the mean square."""
    from torch.nn import functional

    if mask is not None and examples.shape.answered_at == "tokens":
        answers, targets = answers[mask], targets[mask]
    if examples.shape.classes:
        return functional.cross_entropy(answers.flatten(0, -2), targets.flatten())
    return functional.mse_loss(answers, targets)


def _losses(model: "nn.Module", part: Any, examples: StockExamples) -> np.ndarray:
    """Return what every validation example adds to the error, which is the mean."""
    import torch

    model.eval()
    with torch.no_grad():
        starts = range(0, len(examples.validation), VALIDATED)
        blocks = ([None if each is None else each[at : at + VALIDATED] for each in part] for at in starts)
        answers = torch.cat([model(tokens, mask) for tokens, _, mask in blocks]).double().numpy()
    model.train()
    return losses_of(answers, examples)


def losses_of(answers: np.ndarray, examples: StockExamples) -> np.ndarray:
    """Return each example's part of the error of these answers to the validation examples; their mean is the error."""
    part, shape = examples.validation, examples.shape
    if shape.classes:
        each = (answers.argmax(-1) != part.targets).astype(float)
    else:
        targets = part.targets.astype(float)
        each = ((answers - targets) ** 2).mean(-1) / ((targets - targets.mean(0)) ** 2).mean()
    if each.ndim == 1:
        return each
    there = np.ones(each.shape, bool) if part.mask is None else part.mask
    return (each * there).sum(1) / there.sum(1).mean()
