"""What the controls share: how tokens enter, how the readout net answers, and how a width is matched to a transformer.

y = W2 gelu(W1 r(X) + b1) + b2      r(X): what an architecture makes of the sequence
"""

import bisect
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ..._shapes import AnyArray, Key, Target, TokenIds, Tokens
from ...errors import require
from ..base import AbstractModel, AbstractSpec, Shapes, absent_tokens
from ..layers import POSITION_CODE_DIM, POSITION_SCALE, Linear, draw_linear, draw_normal, looked_up

MAX_WIDTH = 1 << 16
"""Where the search for a width ends."""


@dataclass(frozen=True, kw_only=True)
class AbstractControlSpec(AbstractSpec):
    """An architecture of `width` numbers inside, and a readout net of `hidden` units.

    It has no heads. `heads`, `rank` and `head_dim` say which transformer it is compared with and change no weight; see
    `matched`. With `positions="concatenated"` a learned code of 8 numbers is concatenated to every token. Where
    `answered_at` is "query" the last token is the query. `masks_padding` and `vocabulary` are as in `ClassTokenSpec`.
    """

    heads: int
    width: int
    hidden: int = 32
    positions: Literal["none", "concatenated"] = "none"
    answered_at: Literal["sequence", "query"] = "sequence"
    masks_padding: bool = False
    vocabulary: int = 0
    rank: int = 1
    head_dim: int = 1

    @classmethod
    def matched(cls, like: AbstractSpec, *, length: int, dim: int, outputs: int, **fields: Any) -> Self:
        """Make the spec whose number of parameters comes nearest to that of `like`, for the same sequences and answers.

        `heads`, `rank` and `head_dim` of `like` are noted; where it answers, whether it has positions, and how it reads
        absent tokens and token ids are taken over. `fields` are other fields of the spec.

        Raises:
            InputError: If `like` has fewer parameters than this kind has at width 1.

        Example:
            >>> import headcount as hc
            >>> from headcount.models.controls import RecurrentSpec
            >>> sizes = {"length": 16, "dim": 4, "outputs": 1}
            >>> transformer = hc.ClassTokenSpec(heads=4)
            >>> gru = RecurrentSpec.matched(transformer, **sizes)
            >>> gru.width, gru.parameters(**sizes), transformer.parameters(**sizes)
            (38, 6297, 6433)
        """
        taken = {
            "heads": like.heads,
            "rank": like.rank,
            "head_dim": like.head_dim,
            "positions": "none" if getattr(like, "positions", "none") == "none" else "concatenated",
            "answered_at": like.answered_at,
            "masks_padding": like.masks_nan,
            "vocabulary": like.vocabulary,
        }
        sizes = {"length": length, "dim": dim, "outputs": outputs}
        smallest, wanted = cls(width=1, **(taken | fields)), like.parameters(**sizes)
        require(
            smallest.parameters(**sizes) <= wanted,
            f"a {cls.kind} model of {smallest.hidden} hidden units has at least {smallest.parameters(**sizes):,} "
            f"parameters here, more than the {wanted:,} to be matched; use a smaller hidden.",
            what="hidden",
            given=smallest.hidden,
        )

        def parameters_at(width: int) -> int:
            return replace(smallest, width=width).parameters(**sizes)

        above = bisect.bisect_right(range(MAX_WIDTH), wanted, lo=2, key=parameters_at)
        return replace(smallest, width=min(above - 1, above, key=lambda width: abs(parameters_at(width) - wanted)))

    @property
    def code_dim(self) -> int:
        """Numbers of a position code; 0 without positions."""
        return POSITION_CODE_DIM if self.positions == "concatenated" else 0

    @property
    @abstractmethod
    def read_dim(self) -> int:
        """Numbers that the readout net reads."""

    def sizes_of(self, shapes: Shapes) -> dict[str, int]:
        return {
            "length": shapes["position_table"][0] if self.code_dim else 1,
            "dim": 1 if self.vocabulary else shapes["token_in.weight"][1] - self.code_dim,
            "outputs": shapes["readout_out.bias"][0],
        }

    def flops_of_ends(self, *, length: int, dim: int, outputs: int, after: int) -> int:
        """Count those of the first layer, of `after` units, and of the readout net.

        Ids are looked up, and codes of positions are multiplied once per batch.
        """
        first = 0 if self.vocabulary else 2 * length * dim * after
        return first + 2 * self.hidden * (self.read_dim + outputs)


class AbstractControl(AbstractModel):
    """The weights of a control: `reads` is the architecture, the rest is shared."""

    spec: eqx.AbstractVar[AbstractControlSpec]
    token_in: eqx.AbstractVar[Linear]
    """The first layer of every token; the last columns multiply the position code."""
    position_table: eqx.AbstractVar[Float[AnyArray, "length code"] | None]
    readout_in: eqx.AbstractVar[Linear]
    readout_out: eqx.AbstractVar[Linear]

    @abstractmethod
    def reads(self, tokens: Tokens, absent: Bool[AnyArray, " length"]) -> Float[AnyArray, " read"]:
        """Return what the readout net reads of a sequence. Absent tokens hold zeros, and must change nothing."""

    def __call__(self, tokens: Tokens | TokenIds, *, key: Key | None = None) -> Target:
        read = self._reads(self.read_tokens(tokens))
        return self.readout_out(jax.nn.gelu(self.readout_in(read), approximate=False))

    def _reads(self, tokens: Tokens) -> Float[AnyArray, " read"]:
        tokens = jnp.asarray(tokens)
        if not self.spec.masks_padding:
            return self.reads(tokens, jnp.zeros(len(tokens), bool))
        absent = absent_tokens(tokens)
        return self.reads(jnp.where(absent[:, None], 0, tokens), absent)

    def first_layer(self, tokens: Tokens) -> Float[AnyArray, "length after"]:
        """Return the first layer of every token, its position code included."""
        code = self.spec.code_dim
        weight, codes = jnp.split(jnp.asarray(self.token_in.weight), [self.token_in.weight.shape[1] - code], axis=1)
        first = (looked_up(weight, tokens) if self.spec.vocabulary else tokens @ weight.T) + self.token_in.bias
        return first if self.position_table is None else first + self.position_table @ codes.T

    def calibrated(self, tokens: Float[AnyArray, "examples length dim"]) -> Self:
        """Rewrite the readout net so that what it reads has mean 0 and varies by one over `tokens`.

        As for class-token models: a net that reads numbers of a small variance starts, and often stays, linear.
        """
        read = jax.vmap(self._reads)(tokens)
        mean, variance = jnp.mean(read, axis=0), jnp.mean(jnp.var(read, axis=0))
        weight = self.readout_in.weight / jnp.where(variance > 0, jnp.sqrt(variance), 1.0)
        readout_in = Linear(weight, self.readout_in.bias - weight @ mean)
        return eqx.tree_at(lambda model: model.readout_in, self, readout_in)

    def outer_maps(self) -> tuple[Linear, Linear]:
        return self.token_in, self.readout_out


def draw_ends(
    spec: AbstractControlSpec, seed: int | None, *, length: int, dim: int, outputs: int, after: int
) -> dict[str, Any]:
    """Return the shared fields of a model whose first layer has `after` units."""
    before = (spec.vocabulary or dim) + spec.code_dim
    codes = draw_normal(seed, "positions", shape=(length, spec.code_dim), scale=POSITION_SCALE)
    return {
        "token_in": draw_linear(seed, "token in", before=before, after=after, fan_in=dim + spec.code_dim),
        "position_table": codes if spec.code_dim else None,
        "readout_in": draw_linear(seed, "readout in", before=spec.read_dim, after=spec.hidden),
        "readout_out": draw_linear(seed, "readout out", before=spec.hidden, after=outputs),
    }
