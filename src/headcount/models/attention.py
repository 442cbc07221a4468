"""How heads read: what they share, which places they see, and how scores become weights, in both kinds of transformer.

A kind of attention is a row of `READINGS`; its options are fields of `AbstractAttentionSpec`. Its PyTorch form is in
`to_torch.py`. All functions are written for one sequence. An absent token has weight exactly 0 in every kind.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._choices import AttentionKind
from .._options import option
from .._shapes import AnyArray
from ..errors import require, require_count
from .base import AbstractSpec

Scores = Float[AnyArray, "..."]
Mask = Bool[AnyArray, "..."] | None


def elu_features(x: Scores) -> Scores:
    """Return elu(x) + 1, at least in single precision: x + 1 above 0, exp(x) below. Always positive."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return jnp.where(x > 0, x + 1, jnp.exp(jnp.minimum(x, 0)))


def _softmax(scores: Scores, spec: "AbstractAttentionSpec", axis: int) -> Scores:
    return jax.nn.softmax(scores, axis=axis)


def _largest_alone(scores: Scores, spec: "AbstractAttentionSpec", axis: int) -> Scores:
    """Put 1 at the first of the largest scores, which get no gradient."""
    return jax.nn.one_hot(jnp.argmax(scores, axis=axis), scores.shape[axis], dtype=scores.dtype, axis=axis)


def _softmax_of_largest(scores: Scores, spec: "AbstractAttentionSpec", axis: int) -> Scores:
    """Return a softmax over the `top_k` largest scores; of equal scores, over those of earlier places."""
    assert spec.top_k is not None
    size = scores.shape[axis]
    if spec.top_k < size:
        moved = jnp.moveaxis(scores, axis, -1)
        _, places = jax.lax.top_k(jax.lax.stop_gradient(moved), spec.top_k)
        kept = jnp.any(places[..., None] == jnp.arange(size), axis=-2)
        scores = jnp.moveaxis(jnp.where(kept, moved, -jnp.inf), -1, axis)
    return jax.nn.softmax(scores, axis=axis)


def _shares(scores: Scores, spec: "AbstractAttentionSpec", axis: int) -> Scores:
    """Divide positive scores by their sum, which may have underflowed."""
    least = np.finfo(scores.dtype).tiny
    return scores / jnp.maximum(jnp.sum(scores, axis=axis, keepdims=True), least)


class Reading(NamedTuple):
    """One kind of attention.

    `weights(scores, spec, axis)` makes weights of scores, in which those of unread keys are `unread`. `features` are
    applied to queries and keys before their product. `is_softmax`: over all that is read. An encoder scales scores by
    1 / sqrt(rank) where `is_scaled`.
    """

    weights: Callable[[Scores, "AbstractAttentionSpec", int], Scores]
    features: Callable[[Scores], Scores] | None = None
    unread: float = -jnp.inf
    is_softmax: bool = False
    is_scaled: bool = True


READINGS: dict[AttentionKind, Reading] = {
    "soft": Reading(_softmax, is_softmax=True),
    "hard": Reading(_largest_alone, is_scaled=False),
    # No weight is 0, and none can outgrow the others exponentially: a head averages rather than picks. Weights are
    # formed, so that what a head reads can be shown. Source: Katharopoulos et al. (arXiv 2006.16236).
    "linear": Reading(_shares, features=elu_features, unread=0.0, is_scaled=False),
    "top-k": Reading(_softmax_of_largest),
}


@dataclass(frozen=True, kw_only=True)
class AbstractAttentionSpec(AbstractSpec):
    """A spec whose heads read by these options.

    `kv_heads` groups of heads share W_K and W_V: 1 is multi-query attention; None: every head has its own, as it has
    with as many groups as heads, so that equal models have equal specs. With a `window` a token reads itself and
    `window` - 1 on either side, and the class token, or a query that is not a key, the last `window`; None: all of
    them. With `causal` no token reads later ones. `attention` is "soft"; "hard", all weight on the largest score;
    "linear", a kernel in place of the softmax; or "top-k", a softmax over the `top_k` largest scores.
    docs/attention.md has more.
    """

    output_axes: ClassVar[tuple[str, ...]]
    """The order of W_O's axes "heads", "head_dim" and "stream", which is a kind's own."""

    kv_heads: int | None = option(None, "Sets of keys and values that heads share (default: one per head).")
    window: int | None = option(None, "Tokens that a query sees: the class token the last ones (default: all).")
    causal: bool = option(False, "No token reads later ones; of use with several layers.")
    attention: AttentionKind = option("soft", "soft (default), hard, linear or top-k.")
    top_k: int | None = option(None, "Tokens that a head of top-k attention reads.")

    def __post_init__(self):
        super().__post_init__()
        if self.kv_heads is not None:
            divisors = [count for count in range(1, self.heads + 1) if self.heads % count == 0]
            require(
                self.kv_heads in divisors,
                f"kv_heads must divide heads, got kv_heads {self.kv_heads} and heads {self.heads}; "
                f"use one of {', '.join(map(str, divisors))}.",
                what="kv_heads",
                given=self.kv_heads,
                needed=f"a divisor of {self.heads}",
            )
        if self.kv_heads == self.heads:
            object.__setattr__(self, "kv_heads", None)
        kept = 'attention "top-k" needs top_k, the number of tokens that a head reads'
        require(self.attention != "top-k" or self.top_k is not None, f"{kept}.", what="top_k attention")
        used = self.top_k is None or self.attention == "top-k"
        unused = f'top_k is for attention "top-k" alone, got top_k {self.top_k} with attention "{self.attention}".'
        require(used, unused, what="top_k", given=self.top_k, needed='left out unless attention is "top-k"')

    @property
    def reading(self) -> Reading:
        """The row of its kind of attention."""
        return READINGS[self.attention]

    @property
    def reads_by_softmax(self) -> bool:
        """Whether heads are as fused kernels, thin heads and the removal of heads take them: plain soft attention."""
        return self.reading.is_softmax

    @property
    def groups(self) -> int:
        """Sets of keys and values: one per head unless heads share them."""
        return self.kv_heads or self.heads

    @property
    def least_length(self) -> int:
        """The fewest tokens that a sequence may have: as many as a window or top-k attention asks for."""
        return max(self.window or 1, self.top_k or 1)

    @property
    @abstractmethod
    def stream_dim(self) -> int:
        """Numbers of a token inside, which W_Q, W_K and W_V read and W_O writes."""

    @property
    def total_heads(self) -> int:
        """Heads of a layer."""
        return self.heads

    @property
    def total_groups(self) -> int:
        """Sets of keys and values of a layer."""
        return self.groups

    @property
    def head_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of a layer's `HeadMatrices` that no bias is."""
        sizes = {"heads": self.total_heads, "head_dim": self.head_dim, "stream": self.stream_dim}
        return {
            "query": (self.total_heads, self.rank, self.stream_dim),
            "key": (self.total_groups, self.rank, self.stream_dim),
            "value": (self.total_groups, self.head_dim, self.stream_dim),
            "output": tuple(sizes[axis] for axis in self.output_axes),
        }

    def require_length(self, length: int) -> None:
        for name in ("window", "top_k"):
            given = getattr(self, name)
            require(
                given is None or given <= length,
                f"{name} must be at most the length of the sequences, {length}, got {given}.",
                what=name,
                given=given,
                needed=f"at most {length}",
            )


def share_of_total_dim(total_dim: int, *, heads: int, field: str, round_up: bool = False) -> int:
    """Return what each head has of `total_dim`, its `field`. Raises `InputError` where heads do not divide it."""
    require_count("heads", heads)
    require(
        total_dim >= heads and (round_up or total_dim % heads == 0),
        f"{heads} heads do not divide total_dim {total_dim}; choose heads that do, or set {field} instead.",
        what="total_dim",
        given=total_dim,
    )
    return -(-total_dim // heads)


class HeadMatrices(eqx.Module):
    """W_Q of every head, W_K and W_V of every head or of every group of heads, and W_O."""

    query: Float[AnyArray, "heads rank stream"]
    key: Float[AnyArray, "groups rank stream"]
    value: Float[AnyArray, "groups head_dim stream"]
    output: Float[AnyArray, "..."]

    @property
    def written(self) -> Float[AnyArray, "..."]:
        """W_O as the values of the heads are multiplied by it."""
        return self.output


ATTENTION_FIELDS = tuple(each.name for each in fields(AbstractAttentionSpec))
"""The options of how heads read, in every kind of spec."""


def hide_unread(scores: Scores, spec: AbstractAttentionSpec, unread: Mask) -> Scores:
    """Return the scores with those of unread keys replaced, so that their weights are exactly 0."""
    return scores if unread is None else jnp.where(unread, spec.reading.unread, scores)


def weights_of_scores(scores: Scores, spec: AbstractAttentionSpec, *, axis: int, unread: Mask = None) -> Scores:
    """Make weights of the scores along an axis: how much of every key is read."""
    return spec.reading.weights(hide_unread(scores, spec, unread), spec, axis)


def share_groups(per_group: Any, heads: int, *, blocks: int = 1) -> Any:
    """Give every head what its group has along the first axis; the same array where each head has its own.

    Head i reads group i mod g. Practice numbers heads the other way, i // (heads / g), which is the same model with its
    heads in another order; in this order, adding heads leaves the groups of the others as they are. With several blocks
    of heads, each has its own groups. NumPy stays NumPy.
    """
    groups, shape = per_group.shape[0], per_group.shape[1:]
    if groups == heads:
        return per_group
    xp = per_group.__array_namespace__()
    shared = xp.reshape(per_group, (blocks, 1, groups // blocks, *shape))
    # Not by an index: the gradient of a broadcast is a sum, in the same order every time.
    return xp.reshape(xp.broadcast_to(shared, (blocks, heads // groups, groups // blocks, *shape)), (heads, *shape))


def places_of(absent: Bool[AnyArray, " places"] | None, count: int) -> Int[AnyArray, " places"]:
    """Return the place of every token among those that are there; of an absent one, that of the token before it."""
    return jnp.arange(count) if absent is None else jnp.maximum(jnp.cumsum(~absent) - 1, 0)


def unread_keys(spec: AbstractAttentionSpec, absent: Any, queries: Any, keys: Any, after: Any = 0) -> Any:
    """Return the keys that queries at these places do not read; `absent`, or None, where all queries read the same.

    `after` is 1 for a query that comes after the tokens and is none of them. Arrays may be PyTorch's.
    """
    hidden, apart = absent, queries[..., :, None] - keys[..., None, :]
    if spec.window is not None:
        beyond = (apart >= spec.window + after) | (apart <= -spec.window)
        hidden = beyond if hidden is None else hidden | beyond
    if spec.causal:
        hidden = apart < 0 if hidden is None else hidden | (apart < 0)
    return hidden
