"""Generalized D-retrieval: D minima over a sequence, joined by a smooth map.

    z_i(X) = min over t in S_i of f_i(x(t)),      H(X) = F0(z_1, .., z_D)

Symbols: D retrievals, components f_i, position sets S_i with |S_i| >= T/4, outer map F0, T tokens of d numbers.
A maximum is the same family, since max g = -min(-g).
Source: Yu et al., "The Effect of Attention Head Count on Transformer Approximation" (arXiv 2510.06662), section 3.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from .._choices import require_choice
from .._shapes import Key, Target, Tokens
from .._user_files import user_supplied
from ..errors import require, require_count
from .base import GeneratedTask
from .identity import code_of, probe_of

Distribution = Literal["gaussian", "cube"]
DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)
Component = Callable[[Float[Array, " dim"]], Float[Array, ""]]
Outer = Callable[[Float[Array, " D"]], Float[Array, "*outputs"]]
Windows = Sequence[tuple[float, float]]


class Stack(eqx.Module):
    """D separate component functions as one: token -> (f_1, .., f_D)."""

    components: tuple[Component, ...]

    def __call__(self, token: Float[Array, " dim"]) -> Float[Array, " D"]:
        return jnp.stack([jnp.reshape(component(token), ()) for component in self.components])


class Retrieval(GeneratedTask):
    """The D-retrieval task of components f_1 .. f_D and an outer map F0.

    Args:
        components: D functions of a token, each to a scalar, or one function to a vector of D numbers, in JAX.
        outer: F0, a function of the D minima to a scalar or a vector; by default their sum.
        length: Tokens per sequence.
        dim: Numbers per token.
        distribution: Of the tokens: "gaussian" (standard normal) or "cube" (uniform on [0, 1]^dim, the papers' domain).
        windows: Position sets as fractions of the sequence, such as [(0, 0.5), (0.5, 1)], at every length. By default
            every S_i is the whole sequence.
        position_sets: Position sets as zero-based positions, such as [[0, 1, 2], [2, 3]], for this length only.
        name: Name of the task in tables and reports.
        options: What identifies the task, as JSON, such as {"version": 1}; by default the functions are identified by
            the programs that JAX traces them to.

    Raises:
        InputError: An argument is out of range, the components do not return D numbers, or a position set leaves the
            sequence or holds fewer than a quarter of it.

    Example:
        >>> import headcount as hc
        >>> task = hc.Retrieval([lambda token: token[0] ** 2, lambda token: -token[1]], length=8, dim=2)
        >>> task.intrinsic_dim, task.outputs, task.uses_positions
        (2, 1, False)
        >>> halves = hc.Retrieval(task.features, length=8, dim=2, windows=[(0, 0.5), (0.5, 1)])
        >>> halves.position_sets, halves.uses_positions
        (((0, 1, 2, 3), (4, 5, 6, 7)), True)
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
        require_count("length", length)
        require_count("dim", dim)
        require_choice("distribution", distribution, DISTRIBUTIONS)
        require(windows is None or position_sets is None, "pass windows or position_sets, not both.")
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
        words = f"components must map a token of {self.dim} numbers to D numbers, got shape {shape}"
        require(len(shape) == 1 and shape[0] >= 1, f"{self.name}: {words}.")
        return shape[0]

    def _check_position_sets(self) -> None:
        sets, count, length = self.position_sets, self.intrinsic_dim, self.length
        message = f"{self.name}: {count} components need {count} position sets, got {len(sets)}."
        require(len(sets) == count, message, what="windows")
        for i, places in enumerate(sets, start=1):
            outside = [t for t in places if not 0 <= t < length]
            require(not outside, f"{self.name}: S_{i} holds position {outside[:1]}, outside 0..{length - 1}.")
            quarter = f"S_{i} holds {len(places)} of {length} positions; it must hold at least a quarter"
            require(4 * len(places) >= length, f"{self.name}: {quarter}.", what="windows")

    @property
    def uses_positions(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether some position set leaves a token out."""
        return any(len(places) < self.length for places in self.position_sets)

    @property
    def mask(self) -> Bool[np.ndarray, "length D"]:
        """True where position t belongs to S_i."""
        mask = np.zeros((self.length, len(self.position_sets)), bool)
        for i, places in enumerate(self.position_sets):
            mask[list(places), i] = True
        return mask

    def sample(self, key: Key) -> Tokens:
        return draw_tokens(self.distribution, key, (self.length, self.dim))

    def retrieved(self, tokens: Tokens) -> Float[Array, " D"]:
        """Return the D minima z_i, each over its position set."""
        values = jax.vmap(self.features)(tokens)
        return jnp.min(jnp.where(self.mask, values, jnp.inf), axis=0)

    def target(self, tokens: Tokens) -> Target:
        return jnp.atleast_1d(self.outer(self.retrieved(tokens)))

    def at(self, length: int) -> "Retrieval":
        require_count("length", length)
        if length == self.length:
            return self
        fixed = f"{self.name}: position_sets are for length {self.length}; pass windows to use length {length}."
        require(self.windows is not None or not self.uses_positions, fixed)
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
        code = code_of(self.name, (self.features, [(self.dim,)]), (self.outer, [(len(self.position_sets),)]))
        return shared | {"intrinsic_dim": self.intrinsic_dim, "code": code}

    def probe(self) -> str:
        return probe_of(self, (self.features, self.outer), is_named=self.options is not None)


def draw_tokens(distribution: Distribution, key: Key, shape: tuple[int, int]) -> Tokens:
    """Draw independent numbers of the distribution."""
    return jr.normal(key, shape) if distribution == "gaussian" else jr.uniform(key, shape)


def _sets_of_windows(windows: Windows | None, length: int, count: int) -> list[range]:
    if windows is None:
        return [range(length)] * count
    for start, stop in windows:
        message = f"a window must be two fractions with 0 <= start < stop <= 1, got ({start:g}, {stop:g})."
        require(0 <= start < stop <= 1, message, what="windows")
    # Rounding each edge the same way makes windows that share an edge meet without a gap or an overlap.
    return [range(round(start * length), round(stop * length)) for start, stop in windows]
