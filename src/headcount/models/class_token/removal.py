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
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import erf

from ..attention import share_groups
from ..base import HeadElimination
from ..layers import Linear
from .model import Attention, ClassTokenTransformer

RIDGE = 1e-6
"""Added to a covariance, as a share of its mean variance: heads that repeat each other make it singular."""

Batch = Float[np.ndarray, "examples length dim"]


@final
class HeadRemoval:
    """What every head carries to the class token over some examples, and the answers without some of the heads."""

    def __init__(self, model: ClassTokenTransformer, tokens: Batch):
        self.model = model
        features, embedding, there = _features(model, tokens)
        (layer,) = model.attention
        query, key, value = (_double(part) for part in (layer.query, layer.head_keys, layer.head_values))
        self.direction = np.einsum("hr,hre->he", query @ _double(model.class_token), key)
        flat = features.reshape(-1, features.shape[-1])
        self.second_moment = embedding @ (flat.T @ flat / np.sum(there)) @ embedding.T
        scores = model.spec.beta * (features @ (self.direction @ embedding).T).swapaxes(1, 2)
        to_the_end = np.cumsum(there[:, ::-1], axis=1)[:, ::-1]
        read = there & (to_the_end <= (model.spec.window or tokens.shape[1]))
        scores = np.where(read[:, None], scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        pooled = (weights @ features).transpose(1, 2, 0)
        self.values = ((value @ embedding) @ pooled).transpose(2, 0, 1)
        _, self.heads, self.head_dim = self.values.shape
        flat = self.values.reshape(len(tokens), -1)
        self.mean = flat.mean(axis=0)
        self.centred = flat - self.mean
        covariance = self.centred.T @ self.centred / len(flat)
        ridge = max(RIDGE * np.trace(covariance) / len(covariance), np.finfo(float).tiny)
        self.covariance = covariance + ridge * np.eye(len(covariance))
        self.to_hidden = _double(model.readout_in.weight) @ _double(layer.output).reshape(-1, flat.shape[1])
        self.constant = _double(model.readout_in.weight) @ _double(model.class_token) + _double(model.readout_in.bias)
        self.whole = self.answers_of(range(self.heads))
        self.variance = max(float(np.mean(np.var(self.whole, axis=0))), np.finfo(float).tiny)

    def prediction(self, kept: Sequence[int]) -> Float[np.ndarray, "all_values kept_values"]:
        """Return the matrix by which the centred values of the kept heads predict those of all heads best."""
        places = self._places(kept)
        block = self.covariance[np.ix_(places, places)]
        return np.linalg.solve(block, self.covariance[places]).T

    def answers_of(self, kept: Sequence[int]) -> Float[np.ndarray, "examples outputs"]:
        """Return the model's answers with the values of the other heads predicted."""
        to_hidden = self.to_hidden @ self.prediction(kept)
        return self._read_out(
            self.constant + self.to_hidden @ self.mean + self.centred[:, self._places(kept)] @ to_hidden.T
        )

    def _read_out(self, before: Float[np.ndarray, "examples hidden"]) -> Float[np.ndarray, "examples outputs"]:
        """Return the answers, less the last bias, from what reaches the readout's units."""
        return (0.5 * before * (1 + erf(before / np.sqrt(2)))) @ _double(self.model.readout_out.weight).T

    def eliminated(self) -> HeadElimination:
        """Remove the head whose absence changes the answers least, again and again, down to one."""
        kept, order, distances = list(range(self.heads)), [], []
        before = self.constant + self.to_hidden @ self.mean + self.centred @ self.to_hidden.T
        while len(kept) > 1:
            places = self._places(kept)
            # What a head alone knows is its residual given the others: P_ii^-1 (P v)_i with the precision matrix P.
            precision = np.linalg.inv(self.covariance[np.ix_(places, places)])
            scaled, reaching = self.centred[:, places] @ precision, self.to_hidden @ self.prediction(kept)
            tried = {}
            for index, head in enumerate(kept):
                own = slice(index * self.head_dim, (index + 1) * self.head_dim)
                alone = scaled[:, own] @ np.linalg.inv(precision[own, own])
                without = before - alone @ reaching[:, own].T
                change = float(np.mean((self._read_out(without) - self.whole) ** 2)) / self.variance
                tried[head] = change, without
            head = min(kept, key=lambda head: tried[head][0])
            distance, before = tried[head]
            kept.remove(head)
            order.append(head)
            distances.append(distance)
        return HeadElimination(tuple(order), tuple(distances))

    def without(self, removed: Sequence[int]) -> ClassTokenTransformer:
        """Return the model without these heads: it answers as `answers_of`, up to what the embedding loses."""
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
        shares = len(layer.key) < len(layer.query)  # one set of keys and values serves every head
        of_kept = slice(None) if shares else kept
        values = _double(layer.value)[of_kept]
        readers = np.concatenate([self.direction[kept], values.reshape(-1, values.shape[-1])])
        eigenvalues, eigenvectors = np.linalg.eigh(self.second_moment)
        spread = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0))
        directions = np.linalg.svd(readers @ spread, full_matrices=False)[0][:, :width]
        tokens_basis = np.linalg.qr(readers.T @ directions)[0]
        if tokens_basis.shape[1] < width:  # heads that share what they read: any other directions fill it up
            tokens_basis = np.linalg.qr(tokens_basis, mode="complete")[0][:, :width]
        readers = directions @ (directions.T @ readers) @ tokens_basis
        compared, carried = readers[: len(kept)], readers[len(kept) :].reshape(len(values), spec.head_dim, -1)
        query, key = _double(layer.query)[kept], _double(layer.key)[of_kept]
        asked = query @ class_token
        narrow_query = query @ basis
        narrow_query = narrow_query + _rank_one(asked - narrow_query @ narrow_token, narrow_token)
        narrow_key = key @ tokens_basis
        lacking = compared - np.einsum("hre,hr->he", share_groups(narrow_key, len(kept)), asked)
        if shares:
            narrow_key = narrow_key + np.linalg.lstsq(asked, lacking, rcond=None)[0]
        else:
            added = [_rank_one(miss, ask).T for miss, ask in zip(lacking, asked, strict=True)]
            narrow_key = narrow_key + np.stack(added)
        added = model.added_positions
        return ClassTokenTransformer(
            encoder_in=model.encoder_in,
            encoder_out=_linear(
                tokens_basis.T @ _double(model.encoder_out.weight), tokens_basis.T @ _double(model.encoder_out.bias)
            ),
            position_table=model.position_codes if added is None else _single(_double(added) @ tokens_basis),
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
        return (np.asarray(heads)[:, None] * self.head_dim + np.arange(self.head_dim)).ravel()


def _rank_one(miss: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Return the smallest matrix, or stack of them, that maps `along` to `miss`; zero where `along` is."""
    square = float(along @ along)
    return miss[..., None] * along / square if square > 0 else np.zeros((*miss.shape, len(along)))


def _features(
    model: ClassTokenTransformer, tokens: Batch
) -> tuple[
    Float[np.ndarray, "examples length features"],
    Float[np.ndarray, "total features"],
    Bool[np.ndarray, "examples length"],
]:
    """Return what a token's embedding is linear in, the matrix that makes it, and which tokens are there.

    A token's features are the hidden units, 1, and its position; those of an absent token are zeros.
    """
    dim, (count, length) = model.spec.vocabulary or tokens.shape[-1], tokens.shape[:2]
    there = np.ones((count, length), bool)
    if model.spec.masks_padding:
        there = ~np.all(np.isnan(tokens), axis=-1)
        tokens = np.where(there[..., None], tokens, 0)
    weight, bias = _double(model.encoder_in.weight), _double(model.encoder_in.bias)
    if model.position_codes is not None:
        bias = bias + _double(model.position_codes) @ weight[:, dim:].T
    first = weight[:, :dim].T
    content = first[tokens[..., 0].astype(int)] if model.spec.vocabulary else _double(tokens) @ first
    hidden = np.maximum(content + bias, 0)
    parts, columns = [hidden, np.ones((count, length, 1))], [_double(model.encoder_out.weight)]
    columns.append(_double(model.encoder_out.bias)[:, None])
    if model.added_positions is not None:
        parts.append(np.broadcast_to(np.eye(length), (count, length, length)))
        columns.append(_double(model.added_positions).T)
    return np.concatenate(parts, axis=-1) * there[..., None], np.concatenate(columns, axis=1), there


def _double(array) -> np.ndarray:
    return np.asarray(array, np.float64)


def _single(array: np.ndarray) -> Any:
    return np.ascontiguousarray(array, np.float32)


def _linear(weight: np.ndarray, bias: np.ndarray) -> Linear:
    return Linear(_single(weight), _single(bias))
