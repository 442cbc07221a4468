"""Pooling and its gradient in float64 NumPy, written out."""

from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    """The arguments of one pooling, in the order of the operation."""

    tokens: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    direction: np.ndarray
    offset: np.ndarray


def hidden_and_weights(case: Case) -> tuple[np.ndarray, np.ndarray]:
    tokens, weight, bias, direction, offset = (np.asarray(part, np.float64) for part in case)
    absent = np.isnan(tokens).all(axis=-1)
    hidden = np.maximum(np.nan_to_num(tokens) @ weight.T + bias, 0)
    scores = hidden @ direction.T + (offset if len(offset) else 0)
    scores = np.where(absent[..., None], -np.inf, scores)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def pooled_and_weights(case: Case) -> tuple[np.ndarray, np.ndarray]:
    hidden, weights = hidden_and_weights(case)
    return np.einsum("bth,btn->bhn", weights, hidden), weights


def gradients(case: Case, of_pooled: np.ndarray, of_weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of weight, bias, direction and offset, for these gradients of the two results."""
    hidden, weights = hidden_and_weights(case)
    direction = np.asarray(case.direction, np.float64)
    reward = np.einsum("bhn,btn->bth", of_pooled, hidden) + of_weights
    of_scores = weights * (reward - np.sum(weights * reward, axis=1, keepdims=True))
    of_hidden = np.einsum("bth,bhn->btn", weights, of_pooled) + np.einsum("bth,hn->btn", of_scores, direction)
    of_sums = of_hidden * (hidden > 0)
    of_bias = of_sums.sum(axis=0)
    return (
        np.einsum("btn,btd->nd", of_sums, np.nan_to_num(np.asarray(case.tokens, np.float64))),
        of_bias.sum(axis=0, keepdims=True) if len(case.bias) == 1 else of_bias,
        np.einsum("bth,btn->hn", of_scores, hidden),
        of_scores.sum(axis=0)[: len(case.offset)],
    )
