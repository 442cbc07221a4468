"""Class-token models of several layers, written register by register.

A register is a named run of coordinates of the embedding. The encoder writes Psi_i into `value`, the position table
the gates and labels, heads move registers from tokens to tokens, and the readout reads `result` of the class token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ...models import ClassTokenSpec, ClassTokenTransformer
from ...models.class_token import Attention
from ...models.class_token.model import InnerNet
from ...tasks import Retrieval
from .relu_nets import AffineMap, ReluNet

GATE = 2.0
"""Depth G of the gate."""


@dataclass(frozen=True, kw_only=True)
class Nets:
    """The nets of a construction and its sharpness, before its heads are arranged.

    `encoder` maps a token to (Psi_1, .., Psi_D), `readout` maps D minima to the answer; its first layer is scaled, so
    that GELU in place of ReLU costs no more than its share of eps. `promised` bounds the error of every arrangement
    whose heads read each minimum over S_i of Psi_i within `bounds.head_error`.
    """

    encoder: ReluNet
    readout: ReluNet
    beta: float
    delta: float
    promised: float
    proved: bool


@dataclass(frozen=True, kw_only=True)
class Construction:
    """A model whose error on every sequence of the cube is at most `promised`.

    Where `proved`, this is a theorem, given the slopes and curvatures that the ridges state. Those are not proved:
    values at 1,001 equally spaced and 1,001 random points do not contradict them (`Ridge.check`). Otherwise `promised`
    is an estimate, from errors and slopes measured at sample points (`fits.py`).
    """

    model: ClassTokenTransformer
    promised: float
    proved: bool
    delta: float
    beta: float

    @property
    def parameters(self) -> int:
        """M: weights and biases of all feed-forward nets."""
        model = self.model
        inner = [layer for net in model.inner for layer in (net.first, net.second)]
        layers = (model.encoder_in, model.encoder_out, model.readout_in, model.readout_out, *inner)
        return sum(layer.weight.size + layer.bias.size for layer in layers)


@dataclass(frozen=True)
class Registers:
    """The places of each register; `total` is the width E, of which a multiple of `heads` is taken."""

    places: Mapping[str, Int[np.ndarray, " size"]]
    total: int

    @classmethod
    def allocate(cls, *, heads: int, head_dim: int = 1, **sizes: int) -> "Registers":
        """Lay out registers of these sizes, one after the other; heads have `head_dim` numbers or more."""
        ends = np.cumsum(list(sizes.values())).tolist()
        places = {name: np.arange(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}
        return cls(places, heads * max(head_dim, -(-ends[-1] // heads)))

    def __getitem__(self, name: str) -> Int[np.ndarray, " size"]:
        return self.places[name]

    @property
    def zeros(self) -> Float[np.ndarray, " total"]:
        return np.zeros(self.total)

    def unit(self, name: str, place: int = 0) -> Float[np.ndarray, " total"]:
        """Return the direction of one number of a register."""
        direction = self.zeros
        direction[self[name][place]] = 1.0
        return direction

    def score(self, i: int) -> Float[np.ndarray, " total"]:
        """-Psi_i + gate_i: the key direction of the minimum over S_i. Whole sequences need no gates."""
        gate = self.unit("gate", i) if len(self["gate"]) else self.zeros
        return gate - self.unit("value", i)

    def position_table(
        self, task: Retrieval, labels: Float[np.ndarray, "length labels"] | None
    ) -> Float[np.ndarray, "length total"] | None:
        """Gates, 0 on S_i and -G elsewhere, and labels, each where the model has a register for them."""
        if not len(self["gate"]) and labels is None:
            return None
        table = np.zeros((task.length, self.total))
        if len(self["gate"]):
            table[:, self["gate"]] = -GATE * ~task.mask
        if labels is not None:
            table[:, self["label"]] = labels
        return table


class RegisterHead(NamedTuple):
    """One head as pairs of directions: a query direction meets a key direction, a value direction is written to one."""

    compares: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    moves: Sequence[tuple[np.ndarray, np.ndarray]] = ()


def register_model(
    task: Retrieval,
    nets: Nets,
    registers: Registers,
    layers: Sequence[Sequence[RegisterHead]],
    *,
    class_token: Float[np.ndarray, " total"],
    constants: Float[np.ndarray, " total"] | None = None,
    labels: Float[np.ndarray, "length labels"] | None = None,
    inner: Sequence[ReluNet] = (),
    shared: bool = False,
) -> Construction:
    """Return the construction whose layers have these heads; `constants` are what the encoder adds to every token.

    With `shared` all heads have the keys and values of the first.
    """
    heads, table = len(layers[0]), registers.position_table(task, labels)
    head_dim = registers.total // heads
    rank = head_dim if shared else max(1, *(len(head.compares) for layer in layers for head in layer))
    inwards, outwards = nets.encoder.layers
    read = np.zeros((registers.total, len(inwards.bias)))
    shift = registers.zeros if constants is None else constants.copy()
    read[registers["value"]] = outwards.weight
    shift[registers["value"]] += outwards.bias
    read_in, read_out = nets.readout.layers
    widened = np.zeros((len(read_in.bias), registers.total))
    widened[:, registers["result"]] = read_in.weight
    leaves: dict[str, Any] = {"position_table": table, "class_token": class_token}
    model = ClassTokenTransformer(
        encoder_in=inwards,
        encoder_out=AffineMap(read, shift),
        attention=tuple(_attention_of(layer, rank, head_dim, registers.total, shared) for layer in layers),
        readout_in=AffineMap(widened, read_in.bias),
        readout_out=read_out,
        inner=tuple(InnerNet(*net.layers) for net in inner),
        spec=ClassTokenSpec(
            heads=heads,
            head_dim=head_dim,
            rank=rank,
            kv_heads=1 if shared else heads,
            hidden=len(inwards.bias),
            layers=len(layers),
            positions="none" if table is None else "additive",
            beta=nets.beta,
            inner_hidden=inner[0].widths[0] if inner else 0,
        ),
        **leaves,
    )
    promise = {"promised": nets.promised, "proved": nets.proved, "delta": nets.delta, "beta": nets.beta}
    return Construction(model=model, **promise)


def _attention_of(heads: Sequence[RegisterHead], rank: int, head_dim: int, total: int, shared: bool) -> Attention:
    """Return the weights of one layer; what a head does not use stays zero."""
    query, key = np.zeros((2, len(heads), rank, total))
    value, output = np.zeros((len(heads), head_dim, total)), np.zeros((total, len(heads), head_dim))
    for i, head in enumerate(heads):
        for row, (asks, offers) in enumerate(head.compares):
            query[i, row], key[i, row] = asks, offers
        for row, (reads, writes) in enumerate(head.moves):
            value[i, row], output[:, i, row] = reads, writes
    groups = slice(1 if shared else None)
    weights: dict[str, Any] = {"query": query, "key": key[groups], "value": value[groups], "output": output}
    return Attention(**weights)
