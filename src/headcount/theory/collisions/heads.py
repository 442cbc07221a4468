"""One attention layer folded into scores and values per token, with enclosed constants.

    r(x, t) = relu(W x + b_t)      scores beta s_i = U_i . r + u_it      values v_ij = V_ij . r + v_ijt

as in `models.folded`: U and V are products of the layer's matrices. They are computed in extended precision and
returned as two float64 arrays that enclose them, so that a certificate holds for the exact products.
"""

from collections.abc import Sequence
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

    def values(self, token: Float[AnyArray, " dim"], place: Any) -> Float[AnyArray, " coordinates"]:
        return self.value_weight @ self.hidden(token, place) + self.value_bias[place]


def coordinates_read(models: Sequence[ClassTokenTransformer]) -> Coordinates:
    """The value coordinates that reach the readout of at least one model: rows of W_V and W_O that are not all zero."""
    values = np.array([np.asarray(model.attention[0].value) for model in models])
    outputs = np.array([np.asarray(model.attention[0].output) for model in models])
    read = np.any(values != 0, axis=(0, 3)) & np.any(outputs != 0, axis=(0, 1))
    require(bool(read.any()), "every W_V or W_O is zero: the readout does not depend on the sequence.")
    return tuple((int(head), int(row)) for head, row in np.argwhere(read))


def fold(model: ClassTokenTransformer, coordinates: Coordinates, length: int) -> tuple[FoldedHeads, FoldedHeads]:
    """Lower and upper bounds, entry by entry, of the folded layer of a model of one layer."""
    require(len(model.attention) == 1, f"only one layer can be folded, the model has {len(model.attention)}.")
    (layer,) = model.attention
    heads, rows = np.array(coordinates).T
    table = model.position_table
    dim = model.encoder_in.weight.shape[1] - (table.shape[1] if table is not None and model.concatenated else 0)
    first = _Extended.of(model.encoder_in.weight)
    bias, added = _Extended.of(model.encoder_in.bias)[None], _Extended.of(model.encoder_out.bias)[None]
    if table is not None and model.concatenated:
        bias = bias + _Extended.of(table) @ first[:, dim:].T
    if table is not None and not model.concatenated:
        added = added + _Extended.of(table)
    query = _Extended.of(layer.query) @ _Extended.of(model.class_token)[:, None]
    direction = _Extended.of(model.beta) * (query.T @ _Extended.of(layer.key))[:, 0]
    values, outwards = _Extended.of(np.asarray(layer.value)[heads, rows]), _Extended.of(model.encoder_out.weight)
    parts: dict[str, _Extended] = {
        "inwards": first[:, :dim],
        "bias": bias,
        "score_weight": direction @ outwards,
        "score_bias": added @ direction.T,
        "value_weight": values @ outwards,
        "value_bias": added @ values.T,
    }
    low, high = {}, {}
    for name, part in parts.items():
        for ends, side in ((low, -1), (high, 1)):
            end: Any = part.end(side)
            ends[name] = np.broadcast_to(end, (length, end.shape[1])) if name.endswith("bias") else end
    return FoldedHeads(**low), FoldedHeads(**high)


def stacked(models: Sequence[ClassTokenTransformer], length: int) -> FoldedHeads:
    """Folded layers of several models, stacked along a first axis; for searches, which need no enclosure."""
    coordinates = coordinates_read(models)
    folded = [fold(model, coordinates, length)[0] for model in models]
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *folded)


class _Extended:
    """An array in extended precision with a bound on its rounding error, entry by entry."""

    def __init__(self, value: np.ndarray, size: np.ndarray, terms: int):
        self.value, self.size, self.terms = value, size, terms

    @classmethod
    def of(cls, exact) -> "_Extended":
        value = np.asarray(exact).astype(np.longdouble)
        return cls(value, np.asarray(np.abs(value)), 0)

    def __getitem__(self, index) -> "_Extended":
        return _Extended(self.value[index], self.size[index], self.terms)

    @property
    def T(self) -> "_Extended":  # noqa: N802 - NumPy's name
        return _Extended(self.value.swapaxes(-1, -2), self.size.swapaxes(-1, -2), self.terms)

    def __matmul__(self, other: "_Extended") -> "_Extended":
        terms = self.terms + other.terms + self.value.shape[-1] + 1
        return _Extended(self.value @ other.value, self.size @ other.size, terms)

    def __mul__(self, other: "_Extended") -> "_Extended":
        return _Extended(self.value * other.value, self.size * other.size, self.terms + other.terms + 1)

    def __add__(self, other: "_Extended") -> "_Extended":
        return _Extended(self.value + other.value, self.size + other.size, max(self.terms, other.terms) + 1)

    def end(self, side: int) -> np.ndarray:
        """A float64 lower bound (side -1) or upper bound (side 1) of the exact value."""
        unit = np.finfo(np.longdouble).eps
        moved = self.value + side * 2 * (self.terms + 1) * unit * self.size if self.terms else self.value
        rounded = moved.astype(np.float64)
        beyond = rounded > moved if side < 0 else rounded < moved
        return np.where(beyond, np.nextafter(rounded, side * np.inf), rounded)
