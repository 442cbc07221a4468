"""Losses of a trained model, one number per example. Needs torch."""

import inspect
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ..._draws import named_generator
from ..examples.batches import Batch

LOGIT_BYTES = 64e6
"""Logits are made in pieces of at most this size, since a vocabulary is far wider than a layer."""


_heads: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class Loss(ABC):
    """One number per example, the smaller the better.

    `name` has the unit. `values` can be differentiated. A loss that is a distance to the original's own output has no
    slope there; its `probes` are random projections of that output, drawn such that half their mean squared change is
    the loss to second order, as it is for the derivatives of a cross-entropy.
    """

    name: str
    scale: float | None = None
    """Increases are compared with it; None: with the original's mean loss. Set when the loss is prepared."""
    scale_words: str = ""
    """The scale in words, where that has to be said; set when the loss is prepared."""

    @property
    def identity(self) -> Any:
        """The difference from other losses of its class, apart from the batches; part of an inspection's identity."""
        return None

    def prepare(self, model: nn.Module, batches: Sequence[Batch]) -> None:
        """Ask the original model for what the loss compares with. Called once, before any change."""
        return

    @abstractmethod
    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]: ...

    def probes(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        """The function that gradients are taken of: the loss itself, unless it is flat at the original."""
        return self.example_losses(model, batch)

    def scale_of(self, base_losses: Float[np.ndarray, " examples"]) -> float:
        """The number that increases are compared with."""
        return float(np.mean(base_losses)) if self.scale is None else self.scale


class NextTokenLoss(Loss):
    """Mean over a sequence of the cross-entropy of the next token."""

    name = "cross-entropy (nats per token)"

    def prepare(self, model: nn.Module, batches: Sequence[Batch]) -> None:
        piecewise_head(model)  # tried before the blocks are watched

    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        inputs = batch.inputs_on(device_of(model))
        tokens = inputs["input_ids"]
        predicted = [slice(None), slice(0, -1)]
        entropies = token_entropies(model, inputs, predicted, tokens[:, 1:])
        return entropies.mean(1)


class MaskedTokenLoss(Loss):
    """Mean over the masked places of a text, `extras["places"]`, of the cross-entropy of what stood there."""

    name = "cross-entropy (nats per masked token)"

    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        logits = token_logits(model, batch)
        places = batch.extras["places"].to(logits.device)
        entropies = functional.cross_entropy(
            logits[places], batch.extras["targets"].to(logits.device)[places], reduction="none"
        )
        rows = places.nonzero()[:, 0]
        sums = entropies.new_zeros(len(places)).index_add(0, rows, entropies)
        return sums / places.sum(1)


def token_logits(model: nn.Module, batch: Batch) -> Float[Tensor, "rows tokens vocabulary"]:
    answer = model(**batch.inputs_on(device_of(model)), **no_cache(model))
    return widened(answer.logits if "logits" in answer else answer.prediction_logits)


def masked_logits(model: nn.Module, batch: Batch) -> Float[Tensor, "rows masks vocabulary"]:
    """At the masked places, of which every text has the same number."""
    logits = token_logits(model, batch)
    places = batch.extras["places"].to(logits.device)
    return logits[places].reshape(len(places), -1, logits.shape[-1])


def widened(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def token_entropies(model: Any, inputs: dict[str, Tensor], places: Sequence[slice], targets: Tensor) -> Tensor:
    """Cross-entropy of `targets` at these places of the logits, in pieces; the same shape as `targets`."""
    shape = targets.shape
    targets = targets.reshape(-1)
    head = piecewise_head(model)
    if head is None:
        logits = widened(model(**inputs, **no_cache(model)).logits[tuple(places)])
        logits = logits.reshape(-1, logits.shape[-1])
        return functional.cross_entropy(logits, targets, reduction="none").view(shape)
    body, logits_of = head
    hidden = body(**inputs, **no_cache(body))[0][tuple(places)]
    hidden = hidden.reshape(-1, hidden.shape[-1])
    rows = max(1, int(LOGIT_BYTES / (4 * model.config.get_text_config().vocab_size)))

    def entropies(piece: Tensor, wanted: Tensor) -> Tensor:
        return functional.cross_entropy(widened(logits_of(piece)), wanted, reduction="none")

    pieces = []
    for start in range(0, len(hidden), rows):
        piece, wanted = hidden[start : start + rows], targets[start : start + rows]
        if torch.is_grad_enabled():  # Logits of one piece at a time, also on the way back.
            pieces.append(checkpoint(entropies, piece, wanted, use_reentrant=False))
        else:
            pieces.append(entropies(piece, wanted))
    return torch.cat(pieces).view(shape)


def piecewise_head(model: Any) -> tuple[nn.Module, Callable[[Tensor], Tensor]] | None:
    """The model without its head, and the head as a function of hidden states; None where these do not give the logits.

    Whether they do is tried once per model, on four tokens: some classes scale their logits in ways of their own.
    """
    if model in _heads:
        return _heads[model]
    body: Any = getattr(model, getattr(model, "base_model_prefix", "") or "-", None)
    projection = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    head = None
    if isinstance(body, nn.Module) and projection is not None:
        cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)

        def logits_of(hidden: Tensor) -> Tensor:
            logits = projection(hidden)
            return logits if cap is None else cap * torch.tanh(logits / cap)

        tokens = torch.arange(1, 5, device=device_of(model))[None] % model.config.get_text_config().vocab_size
        with torch.no_grad():
            whole = model(input_ids=tokens, **no_cache(model)).logits
            pieces = logits_of(body(input_ids=tokens, **no_cache(body))[0])
        if whole.shape == pieces.shape and torch.allclose(whole, pieces, rtol=1e-5, atol=1e-5):
            head = (body, logits_of)
    _heads[model] = head
    return head


def no_cache(module: nn.Module) -> dict[str, bool]:
    """Return the option that keeps no keys and values between calls, where the class has it."""
    return {"use_cache": False} if "use_cache" in inspect.signature(module.forward).parameters else {}


@contextmanager
def fixed_draws(batch: int = 0) -> Iterator[None]:
    """A loss that draws numbers draws the same ones for a batch in every evaluation; the caller's generator is left as
    it was.
    """
    with torch.random.fork_rng():
        torch.manual_seed(int(named_generator(0, "draws of a loss", batch).integers(2**31)))
        yield
