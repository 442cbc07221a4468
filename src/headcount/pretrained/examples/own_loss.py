"""A user's own loss and batches. Needs torch."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..._draws import named_generator
from ..._user_files import load_python_file, user_supplied
from ...errors import InputError, did_you_mean, require
from ..evaluation.statistics import counting_tokens
from ..layers.find import attention_layers
from ..losses.loss import Loss, fixed_draws
from .batches import Batch, Parts

FORM = "loss(model, batch) must return a 1-D tensor with one loss per example"


class OwnLoss(Loss):
    """A user's `loss(model, batch)`, which returns one number per example."""

    def __init__(self, loss: Callable[..., Any], name: str, code: str | None = None):
        """`code` is the whole file that the loss is from, whose other functions it may call."""
        self.loss, self.source, self.code = loss, name, code
        self.name = f"loss of {name}"

    @property
    def identity(self) -> Any:
        """The code of the loss."""
        return self.loss if self.code is None else self.code

    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        values = user_supplied(self.loss, model, batch.given, name=self.source)
        if not isinstance(values, Tensor) or values.ndim != 1 or len(values) == 0:
            given = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise InputError(f"{self.source}: {FORM}, got {given}.")
        return values

    def scale_of(self, base_losses) -> float:
        """The mean size of the original's losses; 1 where that is zero."""
        return abs(super().scale_of(base_losses)) or 1.0


def read_own_loss(reference: str, tokenizer: Any) -> tuple[Sequence[Any], OwnLoss]:
    """Batches and loss of `mine.py:loss`; the file's `batches` is a list, or a function of the tokenizer.

    Raises:
        InputError: no such file, no such function in it, no batches in it, or code that fails.
    """
    where, _, name = reference.rpartition(":")
    module = load_python_file(Path(where))
    names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    require(hasattr(module, name), f'{where} has no "{name}".{did_you_mean(name, names)}')
    require(
        hasattr(module, "batches"),
        f"{where} has no batches; add batches = [...], or def batches(tokenizer), next to {name}.",
    )
    batches = module.batches
    if callable(batches):
        batches = user_supplied(batches, tokenizer, name=f"{where}:batches")
    return batches, OwnLoss(getattr(module, name), reference, Path(where).read_text())


def own_batches(model: nn.Module, batches: Any, loss: OwnLoss, seed: int, limit: int | None) -> Parts:
    """Hold out a third of the batches, and calibrate on the others; each is run once to count examples and tokens."""
    given = list(batches)
    require(
        len(given) >= 2,
        f"{loss.source}: {len(given)} batches; at least 2 are needed, one to hold out and one to calibrate on.",
    )
    order = named_generator(seed, "examples").permutation(len(given))[:limit]
    require(len(order) >= 2, what="limit", given=limit, needed="at least 2 batches")
    held_out = max(1, len(order) // 3)
    parts: Parts = ([], [])
    first = attention_layers(model)[0]
    for turn, place in enumerate(order):
        with torch.no_grad(), fixed_draws(), counting_tokens(model, first) as tokens:
            values = loss.example_losses(model, Batch({}, 0, given=given[place]))
        if not bool(torch.isfinite(values).all()):
            raise InputError(
                f"{loss.source}: the loss of batch {place} is {values[~torch.isfinite(values)][0].item()} "
                "on the unchanged model; every loss must be a finite number."
            )
        require(
            bool(tokens),
            f"{first.name}: its projections are used without being called, so that nothing can be measured there; "
            "call them as modules.",
        )
        per_example = max(1, round(sum(tokens) / len(values)))
        parts[turn >= held_out].append(Batch({}, len(values), given=given[place], per_example=per_example))
    return parts
