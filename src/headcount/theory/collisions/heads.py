"""One attention layer folded into scores and values per token, with enclosed constants.

    r(x, t) = relu(W x + b_t)      scores beta s_i = U_i . r + u_it      values v_ij = V_ij . r + v_ijt

as in `models.folded`: U and V are products of the layer's matrices. They are computed in extended precision and
returned as two float64 arrays that enclose them, so that a certificate holds for the exact products.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._shapes import AnyArray
from ...errors import require
from ...models import ClassTokenTransformer

Coordinates = tuple[tuple[int, int], ...]
"""(head, row of its W_V) for every value coordinate that reaches the readout."""


class FoldedHeads(eqx.Module):
    """The folded layer. b, u and v depend on the place where the model has positions."""

    inwards: Float[AnyArray, "hidden dim"]
    bias: Float[AnyArray, "length hidden"]
    score_weight: Float[AnyArray, "heads hidden"]
    score_bias: Float[AnyArray, "length heads"]
    value_weight: Float[AnyArray, "coordinates hidden"]
    value_bias: Float[AnyArray, "length coordinates"]

    def hidden(self, token: Float[AnyArray, " dim"], place: Any) -> Float[AnyArray, " hidden"]:
        return jax.nn.relu(self.inwards @ token + self.bias[place])

    def scores(self, token: Float[AnyArray, " dim"], place: Any) -> Float[AnyArray, " heads"]:
        return self.score_weight @ self.hidden(token, place) + self.score_bias[place]

    def token_values(self, token: Float[AnyArray, " dim"], place: Any) -> Float[AnyArray, " coordinates"]:
        return self.value_weight @ self.hidden(token, place) + self.value_bias[place]


def coordinates_read(models: Sequence[ClassTokenTransformer]) -> Coordinates:
    """Return the value coordinates that reach the readout of a model: rows of W_V and W_O that are not all zero."""
    values = np.array([np.asarray(model.attention[0].value) for model in models])
    outputs = np.array([np.asarray(model.attention[0].output) for model in models])
    read = np.any(values != 0, axis=(0, 3)) & np.any(outputs != 0, axis=(0, 1))
    require(bool(read.any()), "every W_V or W_O is zero: the readout does not depend on the sequence.")
    return tuple((int(head), int(row)) for head, row in np.argwhere(read))


def fold_heads(model: ClassTokenTransformer, coordinates: Coordinates, length: int) -> tuple[FoldedHeads, FoldedHeads]:
    """Return lower and upper bounds, entry by entry, of the folded layer of a model of one layer."""
    require(len(model.attention) == 1, f"only one layer can be folded, the model has {len(model.attention)}.")
    dim = model.sizes()["dim"]
    values = _products(model, coordinates, dim, lambda exact: exact.astype(np.longdouble))
    sizes = _products(model, coordinates, dim, lambda exact: np.abs(exact.astype(np.longdouble)))
    # Rounding errors of sums of products: at most one unit of the last place of their size per operation.
    terms = 2 * len(model.class_token) + sum(model.encoder_in.weight.shape) + model.attention[0].query.shape[1] + 8
    errors: dict[str, np.ndarray] = {
        name: 2 * terms * np.finfo(np.longdouble).eps * size for name, size in sizes.items()
    }
    if model.position_codes is None:
        errors["bias"] = np.zeros(1)  # single weights, which are exact
    sides: list[dict[str, Any]] = [
        {name: _rounded(value + side * errors[name], side) for name, value in values.items()} for side in (-1, 1)
    ]
    for ends in sides:
        ends["inwards"] = np.asarray(model.encoder_in.weight, np.float64)[:, :dim]
        for name in ("bias", "score_bias", "value_bias"):
            ends[name] = np.broadcast_to(ends[name], (length, ends[name].shape[1]))
    return FoldedHeads(**sides[0]), FoldedHeads(**sides[1])


def _products(
    model: ClassTokenTransformer, coordinates: Coordinates, dim: int, converted: Callable[[np.ndarray], np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the folded matrices of weights that were converted first; by sums and products alone, so that the same
    function of their magnitudes bounds the size of every term.
    """
    (layer,), (heads, rows) = model.attention, np.array(coordinates).T
    read = {"query": layer.query, "key": layer.key, "value": layer.value, "class_token": model.class_token}
    read |= {"inwards": model.encoder_in.weight, "bias": model.encoder_in.bias, "beta": model.spec.beta}
    read |= {"outwards": model.encoder_out.weight, "added": model.encoder_out.bias}
    w = {name: converted(np.asarray(weights)) for name, weights in read.items()}
    bias, added, value = w["bias"][None], w["added"][None], w["value"][heads, rows]
    if model.position_table is not None:
        table = converted(np.asarray(model.position_table))
        if model.position_codes is not None:
            bias = bias + table @ w["inwards"][:, dim:].T
        else:
            added = added + table
    query = w["query"] @ w["class_token"]
    direction = w["beta"] * np.einsum("hr,hre->he", query, w["key"])
    return {
        "bias": bias,
        "score_weight": direction @ w["outwards"],
        "score_bias": added @ direction.T,
        "value_weight": value @ w["outwards"],
        "value_bias": added @ value.T,
    }


def _rounded(ends: np.ndarray, side: int) -> np.ndarray:
    """Return the nearest float64 numbers that are not above (side -1) or not below (side 1) these."""
    rounded = ends.astype(np.float64)
    beyond = rounded > ends if side < 0 else rounded < ends
    return np.where(beyond, np.nextafter(rounded, side * np.inf), rounded)


def stack_heads(models: Sequence[ClassTokenTransformer], length: int) -> FoldedHeads:
    """Return folded layers of several models, stacked along a first axis; for searches, which need no enclosure."""
    coordinates = coordinates_read(models)
    folded = [fold_heads(model, coordinates, length)[0] for model in models]
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *folded)
