"""Losses of models that answer with embeddings or classes. Needs torch."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ..._draws import named_generator
from ...errors import InputError, require
from ..examples.batches import Batch
from .loss import Loss, device_of, no_cache, widened

Embed = Callable[[nn.Module, Batch], Float[Tensor, "rows dim"]]
"""Embeddings of the rows of a batch, of length 1."""


class EmbeddingDistance(Loss):
    """1 - cosine between an embedding and the original's. Its probes are projections on normal directions.

    Its scale is the mean distance between the original's embeddings of different examples: an answer by chance.
    """

    name = "distance of embeddings (1 - cosine)"

    def __init__(self, embed: Embed, seed: int = 0):
        self.embed, self.seed = embed, seed

    def prepare(self, model: nn.Module, batches: Sequence[Batch]) -> None:
        for place, batch in enumerate(batches):
            with torch.no_grad():
                batch.extras["original"] = self.embed(model, batch).cpu()
            directions = named_generator(self.seed, "probes", place).normal(size=batch.extras["original"].shape)
            batch.extras["directions"] = torch.from_numpy(directions).float()
        self.scale = mean_distance(torch.cat([batch.extras["original"] for batch in batches]).double().numpy())
        self.scale_words = f"Different examples are {self.scale:.3g} apart in the original, the scale of the loss."

    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        answer = self.embed(model, batch)
        # Half the squared distance of unit vectors, which does not cancel where the two are nearly equal.
        return 0.5 * torch.sum((answer - batch.extras["original"].to(answer.device)) ** 2, dim=1)

    def probes(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        answer = self.embed(model, batch)
        return torch.sum(answer * batch.extras["directions"].to(answer.device), dim=1)


def mean_distance(embeddings: Float[np.ndarray, "examples dim"]) -> float:
    """The mean of 1 - cosine over all pairs of different examples; `embeddings` have length 1.

    1 for a single example. Not 0 where all are equal, so that an increase can be divided by it.
    """
    count = len(embeddings)
    if count < 2:
        return 1.0
    cosines = (np.sum(embeddings.sum(axis=0) ** 2) - np.sum(embeddings**2)) / (count * (count - 1))
    return float(max(1.0 - cosines, np.finfo(np.float32).eps))


class SimilarityError(Loss):
    """Squared error of a similarity score, predicted from the cosine by a line fitted once on the original.

    The rows of a batch are all first texts, then all second ones; `extras["scores"]` has one score per pair. Its scale
    is the variance of the scores: the error of the best constant answer.
    """

    name = "squared error of the similarity"

    def __init__(self, embed: Embed, calibrated: Sequence[Batch]):
        self.embed, self.calibrated = embed, calibrated
        self.slope, self.shift = 1.0, 0.0

    def prepare(self, model: nn.Module, batches: Sequence[Batch]) -> None:
        with torch.no_grad():
            cosines = torch.cat([self._cosines(model, batch).cpu() for batch in self.calibrated]).double().numpy()
        scores = torch.cat([batch.extras["scores"] for batch in self.calibrated]).double().numpy()
        everything = torch.cat([batch.extras["scores"] for batch in batches]).double().numpy()
        self.scale = float(np.var(everything))
        require(self.scale > 0, f"all scores are {everything[0]:g}; give pairs of different similarity.")
        design = np.stack([cosines, np.ones_like(cosines)], axis=1)
        (self.slope, self.shift), *_ = np.linalg.lstsq(design, scores, rcond=None)

    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        cosines = self._cosines(model, batch)
        predicted = float(self.slope) * cosines + float(self.shift)
        return (predicted - batch.extras["scores"].to(cosines)) ** 2

    def _cosines(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        first, second = self.embed(model, batch).reshape(2, batch.examples, -1)
        return torch.sum(first * second, dim=1)


class LabelLoss(Loss):
    """Cross-entropy of the right class, in `extras["labels"]`; its scale is that of the best constant answer."""

    name = "cross-entropy of labels (nats)"

    def prepare(self, model: nn.Module, batches: Sequence[Batch]) -> None:
        labels = torch.cat([batch.extras["labels"] for batch in batches])
        self.scale = _entropy(np.bincount(labels.numpy()) / len(labels)) or 1.0

    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        logits = class_logits(model, batch)
        return functional.cross_entropy(logits, batch.extras["labels"].to(logits.device), reduction="none")


class AnswerDivergence(Loss):
    """Divergence of a model's classes from the original's, KL(original || model).

    Its probes are cross-entropies of classes drawn from the original's answers. Its scale is the entropy of the
    original's mean answer: the divergence of the best constant answer is at most that.
    """

    name = "divergence from the original's answers (nats)"

    def __init__(self, logits: Callable[[nn.Module, Batch], Float[Tensor, "examples *places classes"]], seed: int = 0):
        self.logits, self.seed = logits, seed

    def prepare(self, model: nn.Module, batches: Sequence[Batch]) -> None:
        total, count = 0.0, 0
        for place, batch in enumerate(batches):
            with torch.no_grad():
                original = functional.log_softmax(widened(self.logits(model, batch)), -1).cpu()
            batch.extras["original"] = original
            chances = original.double().exp().numpy()
            points = named_generator(self.seed, "probes", place).random(chances.shape[:-1])[..., None]
            drawn = np.minimum(np.sum(np.cumsum(chances, -1) < points, axis=-1), chances.shape[-1] - 1)
            batch.extras["drawn"] = torch.from_numpy(drawn)
            total = total + chances.reshape(-1, chances.shape[-1]).sum(0)
            count += math.prod(chances.shape[:-1])
        self.scale = _entropy(np.asarray(total / count)) or 1.0

    def example_losses(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        logits = functional.log_softmax(widened(self.logits(model, batch)), -1)
        original = batch.extras["original"].to(logits.device)
        return _per_example(torch.sum(original.exp() * (original - logits), dim=-1))

    def probes(self, model: nn.Module, batch: Batch) -> Float[Tensor, " examples"]:
        logits = functional.log_softmax(widened(self.logits(model, batch)), -1)
        drawn = batch.extras["drawn"].to(logits.device)
        return _per_example(-torch.gather(logits, -1, drawn[..., None])[..., 0])


def class_logits(model: nn.Module, batch: Batch) -> Float[Tensor, "examples classes"]:
    return model(**batch.inputs_on(device_of(model))).logits


def image_embedding(model: nn.Module, batch: Batch) -> Float[Tensor, "rows dim"]:
    """The class token of the last layer, or the mean over tokens of a model without one, of length 1."""
    answer = model(**batch.inputs_on(device_of(model)))
    hidden = answer.last_hidden_state
    if hidden.ndim != 3:
        return functional.normalize(hidden.flatten(2).mean(2), dim=-1)
    classed = any(name.endswith("cls_token") for name, _ in model.named_parameters())
    return functional.normalize(hidden[:, 0] if classed else hidden.mean(1), dim=-1)


def _entropy(shares: Float[np.ndarray, " classes"]) -> float:
    return float(-np.sum(shares[shares > 0] * np.log(shares[shares > 0])))


def _per_example(values: Float[Tensor, "examples *places"]) -> Float[Tensor, " examples"]:
    return values if values.ndim == 1 else values.flatten(1).mean(1)


POOLINGS = ("mean", "cls", "max", "lasttoken", "mean_sqrt_len")


def read_pooling(folder: Path | None) -> str:
    """The pooling of a sentence-transformers folder, its `1_Pooling/config.json`; "mean" where there is none."""
    path = None if folder is None else folder / "1_Pooling" / "config.json"
    if path is None or not path.is_file():
        return "mean"
    try:
        config = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON; copy the folder again, or remove it for mean pooling.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path} is not a JSON object; copy the folder again, or remove it for mean pooling.")
    chosen = [config["pooling_mode"]] if "pooling_mode" in config else []
    for name in POOLINGS:
        chosen += [name] * any(config.get(f"pooling_mode_{name}{end}") for end in ("", "_token", "_tokens"))
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        raise InputError(
            f"{path} asks for the pooling {' and '.join(chosen) or 'of no kind'}; "
            f"headcount knows one of {', '.join(POOLINGS)}. Give your own loss instead: --data mine.py:loss."
        )
    return chosen[0]


def text_embedding(pooling: str) -> Callable[[nn.Module, Batch], Float[Tensor, "rows dim"]]:
    """A function that embeds the rows of a batch, as vectors of length 1; padding does not count."""

    def embed(model: nn.Module, batch: Batch) -> Float[Tensor, "rows dim"]:
        inputs = batch.inputs_on(device_of(model))
        hidden = model(**inputs, **no_cache(model))[0]
        mask = inputs["attention_mask"][..., None].to(hidden)
        return functional.normalize(pooled(hidden, mask, pooling), dim=-1)

    return embed


def pooled(hidden: Float[Tensor, "rows tokens dim"], mask: Float[Tensor, "rows tokens 1"], pooling: str) -> Tensor:
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "max":
        return hidden.masked_fill(mask == 0, -torch.inf).amax(1)
    if pooling == "lasttoken":
        last = mask[..., 0].sum(1).long() - 1
        return hidden[torch.arange(len(hidden), device=hidden.device), last]
    total, count = (hidden * mask).sum(1), mask.sum(1)
    return total / (count if pooling == "mean" else count.sqrt())
