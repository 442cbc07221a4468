"""A class-token model of one layer with fewer heads, that answers as nearly the same as it can.

What a removed head carried is predicted, linearly, from what the remaining ones carry,

    v_i ~ b_i + sum_j A_ij v_j,      so that      W_O,i v_i ~ W_O,i b_i + sum_j (W_O,i A_ij) v_j,

and the right-hand side is added to the remaining W_O,j and to the readout's bias. A head that repeats others is removed
at no cost; one that alone finds its token costs what it alone knows. The embedding narrows with the heads: it keeps
what the remaining heads read of it.

Everything is NumPy in double precision: done once per model, it is not worth compiling.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np
from jaxtyping import Float
from scipy.special import erf

from ..base import AbstractHeadRemoval, Elimination
from .model import Attention, ClassTokenTransformer, Linear

RIDGE = 1e-6
"""Added to a covariance, as a share of its mean variance: heads that repeat each other make it singular."""

Batch = Float[np.ndarray, "examples length dim"]


@final
class HeadRemoval(AbstractHeadRemoval):
    """What every head carries to the class token over some examples, and the answers without some of the heads."""

    def __init__(self, model: ClassTokenTransformer, tokens: Batch):
        self.model = model
        hidden = _hidden(model, tokens)
        added = None if model.position_table is None or model.concatenated else _double(model.position_table)
        (layer,) = model.attention
        query, key, value = (_double(part) for part in (layer.query, layer.key, layer.value))
        self.direction = np.einsum("hr,hre->he", query @ _double(model.class_token), key)
        embedded = hidden @ _double(model.encoder_out.weight).T + _double(model.encoder_out.bias)
        embedded = embedded if added is None else embedded + added
        self.second_moment = np.einsum("xte,xtf->ef", embedded, embedded) / (len(tokens) * tokens.shape[1])
        scores = model.beta * np.einsum("he,xte->xht", self.direction, embedded)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        self.values = np.einsum("hne,xhe->xhn", value, weights @ embedded)
        flat = self.values.reshape(len(tokens), -1)
        self.mean = flat.mean(axis=0)
        self.centred = flat - self.mean
        covariance = self.centred.T @ self.centred / len(flat)
        self.covariance = covariance + RIDGE * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        self.to_hidden = np.einsum("ke,ehn->khn", _double(model.readout_in.weight), _double(layer.output))
        self.constant = _double(model.readout_in.weight) @ _double(model.class_token) + _double(model.readout_in.bias)

    @property
    def heads(self) -> int:
        return self.values.shape[1]

    def prediction(self, kept: Sequence[int]) -> Float[np.ndarray, "all_values kept_values"]:
        """The matrix by which the centred values of the kept heads predict those of all heads best."""
        places = self._places(kept)
        block = self.covariance[np.ix_(places, places)]
        return np.linalg.solve(block, self.covariance[places]).T

    def answers(self, kept: Sequence[int]) -> Float[np.ndarray, "examples outputs"]:
        """The model's answers with the values of the other heads predicted."""
        places = self._places(kept)
        flat = self.mean + self.centred[:, places] @ self.prediction(kept).T
        before = self.constant + flat @ self.to_hidden.reshape(len(self.to_hidden), -1).T
        activated = 0.5 * before * (1 + erf(before / np.sqrt(2)))
        return activated @ _double(self.model.readout_out.weight).T

    def distance(self, kept: Sequence[int]) -> float:
        """The mean squared change of the answers without the other heads, over the variance of the answers."""
        whole = self.answers(range(self.heads))
        return float(np.mean((self.answers(kept) - whole) ** 2) / max(np.mean(np.var(whole, axis=0)), 1e-30))

    def eliminated(self) -> Elimination:
        kept, order, distances = list(range(self.heads)), [], []
        while len(kept) > 1:
            tried = {head: self.distance([other for other in kept if other != head]) for head in kept}
            head = min(tried, key=tried.__getitem__)
            kept.remove(head)
            order.append(head)
            distances.append(tried[head])
        return Elimination(tuple(order), tuple(distances))

    def without(self, removed: Sequence[int]) -> ClassTokenTransformer:
        """The model without these heads; it answers as `answers` says, but for what the narrower embedding loses."""
        kept = [head for head in range(self.heads) if head not in removed]
        model, spec = self.model, replace(self.model.spec, heads=len(kept))
        (layer,) = model.attention
        width, places = spec.total_dim, self._places(kept)
        output = _double(layer.output).reshape(-1, self.mean.size)
        prediction = self.prediction(kept)
        readout_in, class_token = _double(model.readout_in.weight), _double(model.class_token)
        # The class token's stream: what the kept heads write spans at most `width` directions.
        written = output @ prediction
        basis, written = np.linalg.qr(written)
        constant = output @ (self.mean - prediction @ self.mean[places])
        bias = _double(model.readout_in.bias) + readout_in @ (constant + class_token - basis @ (basis.T @ class_token))
        narrow_token = basis.T @ class_token
        # The tokens' stream: of what is read, the directions that vary most.
        values = _double(layer.value)[kept]
        readers = np.concatenate([self.direction[kept], values.reshape(-1, values.shape[-1])])
        eigenvalues, eigenvectors = np.linalg.eigh(self.second_moment)
        spread = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0))
        directions = np.linalg.svd(readers @ spread, full_matrices=False)[0][:, :width]
        tokens_basis = np.linalg.qr(readers.T @ directions)[0]
        readers = directions @ (directions.T @ readers) @ tokens_basis
        compared, carried = readers[: len(kept)], readers[len(kept) :].reshape(len(kept), spec.head_dim, -1)
        query, key = _double(layer.query)[kept], _double(layer.key)[kept]
        asked = query @ class_token
        narrow_query = query @ basis
        narrow_query = narrow_query + _rank_one(asked - narrow_query @ narrow_token, narrow_token)
        narrow_key = key @ tokens_basis
        lacking = compared - np.einsum("hre,hr->he", narrow_key, asked)
        narrow_key = narrow_key + np.stack([_rank_one(miss, ask).T for miss, ask in zip(lacking, asked, strict=True)])
        table = model.position_table
        return ClassTokenTransformer(
            encoder_in=model.encoder_in,
            encoder_out=_linear(
                tokens_basis.T @ _double(model.encoder_out.weight), tokens_basis.T @ _double(model.encoder_out.bias)
            ),
            position_table=table if table is None or model.concatenated else _single(_double(table) @ tokens_basis),
            class_token=_single(narrow_token),
            attention=(
                Attention(
                    query=_single(narrow_query),
                    key=_single(narrow_key),
                    value=_single(carried),
                    output=_single(written.reshape(width, len(kept), spec.head_dim)),
                ),
            ),
            readout_in=_linear(readout_in @ basis, bias),
            readout_out=model.readout_out,
            spec=spec,
        )

    def _places(self, heads: Sequence[int]) -> np.ndarray:
        head_dim = self.values.shape[2]
        return (np.asarray(heads)[:, None] * head_dim + np.arange(head_dim)).ravel()


def _rank_one(miss: np.ndarray, along: np.ndarray) -> np.ndarray:
    """The smallest matrix, or stack of them, that maps `along` to `miss`; zero where `along` is."""
    square = float(along @ along)
    return miss[..., None] * along / square if square > 0 else np.zeros((*miss.shape, len(along)))


def _hidden(model: ClassTokenTransformer, tokens: Batch) -> Float[np.ndarray, "examples length hidden"]:
    dim = tokens.shape[-1]
    weight, bias = _double(model.encoder_in.weight), _double(model.encoder_in.bias)
    if model.position_table is not None and model.concatenated:
        bias = bias + _double(model.position_table) @ weight[:, dim:].T
    return np.maximum(_double(tokens) @ weight[:, :dim].T + bias, 0)


def _double(array) -> np.ndarray:
    return np.asarray(array, np.float64)


def _single(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, np.float32)


def _linear(weight: np.ndarray, bias: np.ndarray) -> Linear:
    return Linear(_single(weight), _single(bias))
