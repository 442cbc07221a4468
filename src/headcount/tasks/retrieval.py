"""Generalized D-retrieval: D minima over a sequence, joined by a smooth map.

    z_i(X) = min over t in S_i of f_i(x(t)),      H(X) = F0(z_1, .., z_D)

Symbols: D retrievals, components f_i, position sets S_i with |S_i| >= T/4, outer map F0, T tokens of d numbers.
A maximum is the same family, since max g = -min(-g).
Source: Yu et al., "The Effect of Attention Head Count on Transformer Approximation" (arXiv 2510.06662), section 3.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from .._errors import require, require_count
from .._shapes import Key, Target, Tokens
from .base import GeneratedTask, fingerprint, user_supplied

Distribution = Literal["gaussian", "cube"]
Component = Callable[[Float[Array, " dim"]], Float[Array, ""]]
Outer = Callable[[Float[Array, " D"]], Float[Array, "*outputs"]]
Windows = Sequence[tuple[float, float]]


class Stack(eqx.Module):
    """D separate component functions as one: token -> (f_1, .., f_D)."""

    components: tuple[Component, ...]

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, " D"]:
        return jnp.stack([jnp.reshape(component(token), ()) for component in self.components])


class Retrieval(GeneratedTask):
    """The D-retrieval task with components `features(x) = (f_1(x), .., f_D(x))` and outer map `outer`.

    Position sets come in one of three ways:

    * `windows=None`: every S_i is the whole sequence;
    * `windows=[(0, 0.5), (0.5, 1)]`: S_i is that fraction of the sequence, at every length;
    * `position_sets=[[0, 1, 2], [2, 3]]`: explicit sets of zero-based places, for this length only.

    `distribution` of the tokens: "gaussian", standard normal, or "cube", uniform on [0,1]^d (the domain of the papers).
    """

    features: Callable[[Float[Array, " dim"]], Float[Array, " D"]]
    outer: Outer
    length: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    distribution: Distribution = eqx.field(static=True)
    name: str = eqx.field(static=True)
    intrinsic_dim: int | None = eqx.field(static=True)
    windows: tuple[tuple[float, float], ...] | None = eqx.field(static=True)
    position_sets: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    options: tuple[tuple[str, Any], ...] | None = eqx.field(static=True)

    def __init__(
        self,
        components: Sequence[Component] | Callable[[Float[Array, " dim"]], Float[Array, " D"]],
        outer: Outer = jnp.sum,
        *,
        length: int,
        dim: int,
        distribution: Distribution = "gaussian",
        windows: Windows | None = None,
        position_sets: Sequence[Sequence[int]] | None = None,
        name: str = "retrieval",
        options: dict[str, Any] | None = None,
    ):
        """`options`, where given, are what identifies the task; without them it is known by the values it takes."""
        require_count("length", length)
        require_count("dim", dim)
        require(
            distribution in ("gaussian", "cube"), f'distribution must be "gaussian" or "cube", got "{distribution}".'
        )
        require(windows is None or position_sets is None, "give windows or position_sets, not both.")
        self.features = components if callable(components) else Stack(tuple(components))
        self.outer = outer
        self.length, self.dim, self.distribution, self.name = length, dim, distribution, name
        self.intrinsic_dim = self._count_components()
        self.windows = None if windows is None else tuple((float(start), float(stop)) for start, stop in windows)
        if position_sets is None:
            position_sets = _sets_of_windows(self.windows, length, self.intrinsic_dim)
        self.position_sets = tuple(tuple(sorted({int(t) for t in places})) for places in position_sets)
        self._check_position_sets()
        self.options = None if options is None else tuple(sorted(options.items()))

    def _count_components(self) -> int:
        token = jax.ShapeDtypeStruct((self.dim,), jnp.float32)
        shape = user_supplied(jax.eval_shape, self.features, token, name=self.name).shape
        require(
            len(shape) == 1 and shape[0] >= 1,
            f"{self.name}: components must map a token of {self.dim} numbers to D numbers, got shape {shape}.",
        )
        return shape[0]

    def _check_position_sets(self) -> None:
        sets, length = self.position_sets, self.length
        require(
            len(sets) == self.intrinsic_dim,
            f"{self.name}: {self.intrinsic_dim} components need as many position sets, got {len(sets)}.",
        )
        for i, places in enumerate(sets, start=1):
            outside = [t for t in places if not 0 <= t < length]
            require(not outside, f"{self.name}: S_{i} holds place {outside[:1]}, outside 0..{length - 1}.")
            require(
                4 * len(places) >= length,
                f"{self.name}: S_{i} holds {len(places)} of {length} places; it must hold at least a quarter of them.",
            )

    @property
    def uses_positions(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return any(len(places) < self.length for places in self.position_sets)

    @property
    def mask(self) -> Bool[np.ndarray, "length D"]:
        """True where place t belongs to S_i."""
        mask = np.zeros((self.length, len(self.position_sets)), bool)
        for i, places in enumerate(self.position_sets):
            mask[list(places), i] = True
        return mask

    def sample(self, key: Key) -> Tokens:
        shape = (self.length, self.dim)
        return jr.normal(key, shape) if self.distribution == "gaussian" else jr.uniform(key, shape)

    def retrieved(self, tokens: Tokens) -> Float[Array, " D"]:
        """The D minima z_i, each over its own position set."""
        values = jax.vmap(self.features)(tokens)
        return jnp.min(jnp.where(self.mask, values, jnp.inf), axis=0)

    def target(self, tokens: Tokens) -> Target:
        return jnp.atleast_1d(self.outer(self.retrieved(tokens)))

    def at(self, length: int) -> "Retrieval":
        require_count("length", length)
        if length == self.length:
            return self
        require(
            self.windows is not None or not self.uses_positions,
            f"{self.name}: position_sets were given for length {self.length}; give windows to use length {length}.",
        )
        return Retrieval(
            self.features,
            self.outer,
            length=length,
            dim=self.dim,
            distribution=self.distribution,
            windows=self.windows,
            name=self.name,
            options=None if self.options is None else dict(self.options),
        )

    def spec(self) -> dict[str, Any]:
        shared = {"task": self.name, "distribution": self.distribution, "dim": self.dim, "windows": self.windows}
        if self.windows is None and self.uses_positions:
            shared["position_sets"] = self.position_sets
        if self.options is not None:
            return shared | dict(self.options)
        return shared | {"intrinsic_dim": self.intrinsic_dim, "fingerprint": self._values_fingerprint()}

    def _values_fingerprint(self) -> str:
        """Functions have no content to hash, so the task is known by their values on fixed tokens."""
        draw = jr.normal if self.distribution == "gaussian" else jr.uniform
        tokens = draw(jr.key(0), (64, self.dim))
        values = jax.vmap(self.features)(tokens)
        return fingerprint(np.asarray(values), np.asarray(jax.vmap(self.outer)(values)))


def _sets_of_windows(windows: Windows | None, length: int, count: int) -> list[range]:
    if windows is None:
        return [range(length)] * count
    for start, stop in windows:
        require(
            0 <= start < stop <= 1,
            f"a window is a pair of fractions with 0 <= start < stop <= 1, got ({start:g}, {stop:g}).",
        )
    # Rounding each edge the same way makes windows that share an edge meet without a gap or an overlap.
    return [range(round(start * length), round(stop * length)) for start, stop in windows]
