"""Layers with random weights, and their statistics from sampled tokens, for tests of closed forms."""

import numpy as np

from headcount.keys import named_generator
from headcount.pretrained.layers.weights import HeadWeights, LayerStatistics


def random_weights(heads=4, key_heads=2, head_dim=4, width=10, biased=False, seed=0):
    generator = named_generator(seed, "layer")

    def draw(*shape):
        return generator.normal(size=shape) / np.sqrt(width)

    biases = {}
    if biased:
        biases = {"query_bias": draw(heads, head_dim), "key_bias": draw(key_heads, head_dim)}
        biases |= {"value_bias": draw(key_heads, head_dim), "output_bias": draw(width)}
    return HeadWeights(
        query=draw(heads, head_dim, width),
        key=draw(key_heads, head_dim, width),
        value=draw(key_heads, head_dim, width),
        output=draw(width, heads, head_dim),
        **biases,
    )


def random_inputs(width=10, tokens=60, seed=0):
    """Tokens that are correlated, of unequal sizes and off centre."""
    generator = named_generator(seed, "tokens")
    mixing = generator.normal(size=(width, width)) * np.geomspace(1, 0.2, width)
    return generator.normal(size=(tokens, width)) @ mixing + generator.normal(size=width)


def head_outputs(weights, x, seed=0):
    """z of all heads when each attends to two random tokens: [tokens, heads, value_dim]."""
    generator = named_generator(seed, "attended")
    outputs = []
    for head in range(weights.heads):
        attended = (x + x[generator.permutation(len(x))]) / 2
        group = weights.key_head_of(head)
        bias = 0.0 if weights.value_bias is None else weights.value_bias[group]
        outputs.append(attended @ weights.value[group].T + bias)
    return np.stack(outputs, axis=1)


def statistics_of(weights, x, outputs):
    ones = np.ones((len(x), 1))
    z = np.concatenate([outputs.reshape(len(x), -1), ones], axis=1)
    x1 = np.concatenate([x, ones], axis=1)
    target = np.einsum("thv,ohv->to", outputs, weights.output)
    return LayerStatistics(
        moments=z.T @ z / len(x),
        cross=target.T @ z / len(x),
        inputs=x1.T @ x1 / len(x),
        tokens=len(x),
    )


def drawn(seed=0, **shape):
    """(weights, tokens, head outputs, statistics)."""
    weights = random_weights(seed=seed, **shape)
    x = random_inputs(weights.width, seed=seed)
    outputs = head_outputs(weights, x, seed)
    return weights, x, outputs, statistics_of(weights, x, outputs)
