"""A model of independent attention layers in plain numpy, with the face of `headcount.pretrained.Evaluation`."""

from collections.abc import Mapping

import numpy as np

from headcount.pretrained.layers.weights import HeadWeights, LayerStatistics


def random_weights(
    generator: np.random.Generator, *, heads: int = 4, key_heads: int | None = None, dim: int = 2, biased: bool = False
) -> HeadWeights:
    """A layer of width 5 with random numbers in it."""
    key_heads, width = key_heads or heads, 5
    return HeadWeights(
        query=generator.normal(size=(heads, dim, width)),
        key=generator.normal(size=(key_heads, dim, width)),
        value=generator.normal(size=(key_heads, dim, width)),
        output=generator.normal(size=(width, heads, dim)),
        output_bias=generator.normal(size=width) if biased else None,
    )


def correlated(generator: np.random.Generator, tokens: int, features: int) -> np.ndarray:
    """Tokens whose coordinates are correlated and have a mean."""
    return generator.normal(size=(tokens, features)) @ generator.normal(size=(features, features)) + 0.3


def statistics_of(outputs: np.ndarray, targets: np.ndarray, *, fisher: np.ndarray | None = None) -> LayerStatistics:
    """Moments of heads' outputs [tokens, features] and targets [tokens, width]."""
    tokens = len(outputs)
    extended = np.concatenate([outputs, np.ones((tokens, 1))], axis=1)
    return LayerStatistics(
        moments=extended.T @ extended / tokens,
        cross=targets.T @ extended / tokens,
        inputs=np.eye(1),
        tokens=tokens,
        fisher=fisher,
    )


class LayeredEvaluation:
    """Loss of an example: the weighted sum over layers of its tokens' squared error of the attention output.

    Layers do not feed each other, so scores of different layers add, and a greedy choice can be checked exhaustively.
    """

    def __init__(self, generator: np.random.Generator, layers: int = 3, examples: int = 4, length: int = 15, **shape):
        self.original = tuple(random_weights(generator, **shape) for _ in range(layers))
        self.weights = generator.uniform(0.1, 3.0, size=layers)
        features = self.original[0].heads * self.original[0].value_dim
        self.rows, self.length = examples, length
        tokens = examples * length
        both = [correlated(generator, 2 * tokens, features) for _ in range(layers)]
        self.outputs = {
            "calibration": [outputs[:tokens] for outputs in both],
            "held_out": [outputs[tokens:] for outputs in both],
        }
        self.settled: dict[int, HeadWeights] = {}
        self.calls = 0

    def losses(self, changes: Mapping[int, HeadWeights] = {}, *, part: str = "held_out") -> np.ndarray:
        self.calls += part == "calibration"
        total = np.zeros(self.rows)
        for index, weights in changes.items():
            original = self.original[index]
            difference = (weights.output - original.output).reshape(len(original.output), -1)
            error = self.outputs[part][index] @ difference.T
            if weights.output_bias is not None:
                error = error + weights.output_bias - original.output_bias
            total += self.weights[index] * np.mean(np.sum(error**2, axis=1).reshape(self.rows, self.length), axis=1)
        return total

    def settle(self, changes: Mapping[int, HeadWeights]) -> None:
        self.settled = dict(changes)

    def layer_statistics(self, index: int) -> LayerStatistics:
        outputs, weights = self.outputs["calibration"][index], self.original[index]
        return statistics_of(outputs, outputs @ weights.output.reshape(len(weights.output), -1).T)

    def tick(self, done: int, total: int, words: str) -> None:
        pass

    def unscored(self) -> None:
        return None

    def statistics(self) -> tuple[LayerStatistics, ...]:
        return tuple(self.layer_statistics(index) for index in range(len(self.original)))
