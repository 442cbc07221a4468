"""An `Evaluation` in numpy: layers of attention beside each other, each with inputs of its own and a squared error.

    loss of an example = mean over tokens of sum over layers |y(weights) - label|^2,   label = y(original) + noise

so that removing heads, lowering ranks and refitting do what they do in a model, without torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from headcount.keys import named_generator
from headcount.pretrained.layers.weights import HeadWeights, LayerStatistics

PARTS = ("calibration", "held_out")


@dataclass(frozen=True)
class FakeLayer:
    """What the numpy side reads of an `AttentionLayer`."""

    index: int
    heads: int
    key_heads: int
    head_dim: int
    width: int
    rotary: Any = None
    normed: bool = False
    name: str = "attention"
    block: str = "block"


class FakeLoss:
    name = "squared error"

    def scale_of(self, losses: np.ndarray) -> float:
        return float(np.mean(losses))


@dataclass
class FakeEvaluation:
    """Layers of attention whose errors add up."""

    layers_count: int = 2
    heads: int = 4
    key_heads: int = 4
    head_dim: int = 2
    width: int = 6
    count: int = 5
    length: int = 7
    seed: int = 0
    calls: list[Any] = field(default_factory=list)

    def __post_init__(self):
        draw = named_generator(self.seed, "fake evaluation")
        shape = (self.layers_count, self.heads, self.key_heads, self.head_dim, self.width)
        count, heads, key_heads, dim, width = shape
        self.layers = tuple(FakeLayer(i, heads, key_heads, dim, width) for i in range(count))
        self.original = tuple(
            HeadWeights(
                query=draw.normal(size=(heads, dim, width)),
                key=draw.normal(size=(key_heads, dim, width)),
                value=draw.normal(size=(key_heads, dim, width)),
                output=draw.normal(size=(width, heads, dim)) * np.geomspace(1, 0.05, heads)[None, :, None],
            )
            for _ in range(count)
        )
        size = (count, self.count, self.length, width)
        self.inputs = {part: draw.normal(size=size) for part in PARTS}
        self.labels = {
            part: np.stack([self._output(i, self.original[i], part) for i in range(count)])
            + 0.3 * draw.normal(size=size)
            for part in PARTS
        }
        self.model, self.examples = None, SimpleNamespace(loss=FakeLoss())
        self.settled: dict[int, HeadWeights] = {}
        self.forward_tokens = 0

    def _heads(self, index: int, weights: HeadWeights, part: str) -> np.ndarray:
        """Every head's output: examples, length, heads, head_dim."""
        x, full = self.inputs[part][index], weights.repeated(weights.heads)
        query = np.einsum("hdw,etw->ehtd", full.query, x) + _bias(full.query_bias)
        key = np.einsum("hdw,etw->ehtd", full.key, x) + _bias(full.key_bias)
        scores = np.einsum("ehtd,ehsd->ehts", query, key) / np.sqrt(self.head_dim)
        attention = np.exp(scores - scores.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        value = np.einsum("hdw,esw->ehsd", full.value, x) + _bias(full.value_bias)
        return np.einsum("ehts,ehsd->ethd", attention, value)

    def _output(self, index: int, weights: HeadWeights, part: str) -> np.ndarray:
        bias = 0.0 if weights.output_bias is None else weights.output_bias
        return np.einsum("ohd,ethd->eto", weights.output, self._heads(index, weights, part)) + bias

    def losses(self, changes: Mapping[int, HeadWeights] = {}, *, part: str = "held_out") -> np.ndarray:
        self.calls.append((part, tuple(sorted(changes))))
        self.forward_tokens += self.count * self.length
        now = self.settled | dict(changes)
        errors = [
            np.sum((self._output(i, now.get(i, weights), part) - self.labels[part][i]) ** 2, axis=-1)
            for i, weights in enumerate(self.original)
        ]
        return np.mean(np.sum(errors, axis=0), axis=-1)

    def settle(self, changes: Mapping[int, HeadWeights]) -> None:
        self.settled = dict(changes)

    def layer_statistics(self, index: int) -> LayerStatistics:
        now = self.settled.get(index, self.original[index])
        z = self._heads(index, now, "calibration")
        target = self._output(index, self.original[index], "calibration")
        tokens, examples = self.count * self.length, self.count
        slope = 2 * (self._output(index, now, "calibration") - self.labels["calibration"][index])
        per_head = np.einsum("ohd,ethd->etho", now.output, z)
        z1 = np.concatenate([z.reshape(tokens, -1), np.ones((tokens, 1))], axis=1)
        x1 = np.concatenate([self.inputs["calibration"][index].reshape(tokens, -1), np.ones((tokens, 1))], axis=1)
        flat = slope.reshape(tokens, -1)
        return LayerStatistics(
            moments=z1.T @ z1 / tokens,
            cross=target.reshape(tokens, -1).T @ z1 / tokens,
            inputs=x1.T @ x1 / tokens,
            tokens=tokens,
            gradients=np.einsum("eto,etho->eh", slope, per_head) / self.length + np.zeros((examples, 1)),
            fisher=flat.T @ flat / tokens,
        )

    def statistics(self) -> tuple[LayerStatistics, ...]:
        self.calls.append(("statistics", ()))
        return tuple(self.layer_statistics(index) for index in range(len(self.layers)))

    def tick(self, done: int, total: int, words: str) -> None:
        pass

    def unscored(self) -> None:
        return None

    def same_reading(self, examples: int) -> tuple[np.ndarray, ...] | None:
        return None


def _bias(bias: np.ndarray | None) -> np.ndarray | float:
    return 0.0 if bias is None else bias[None, :, None, :]
