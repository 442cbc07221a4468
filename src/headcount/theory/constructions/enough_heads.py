"""Theorem 2(1) as a program: a model of h = D heads with head_dim 2, its weights written down, its error bounded.

Block i of the embedding is (Psi_i(x), r_i(t)): a two-layer net within delta of f_i, and a gate that is 0 on S_i and -G
elsewhere. Head i scores -Psi_i + r_i and its value is Psi_i; the readout is a two-layer net of F0. With
L0 = sup |grad F0|_1,

    error <= L0 (delta + head error) + error of the readout

where the head error is `bounds.head_error`. A fitted F0 is known on [0,1]^D only: the head outputs are rescaled into
it, and delta counts twice. The readout of our models is a GELU net; gelu(k u) / k is within 0.17 / k of relu(u), and k
is chosen so that this costs a hundredth of eps.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(1), with a gate of depth G = 2 in place of 1.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ...errors import require
from ...models import ClassTokenTransformer
from ...tasks import Retrieval
from ..bounds import Setting, component_accuracy, head_error, sharpness_needed
from .parts import parts_of
from .registers import GATE, RegisterHead, Registers, position_table, register_model
from .relu_nets import AffineMap, Nets, ReluNet, RidgeSum, beside

GELU_GAP = 0.17
"""sup |gelu(u) - relu(u)| = 0.16997."""
READOUT_SHARE, GELU_SHARE = 0.49, 0.01
"""Shares of eps for the net of F0 and for GELU in place of ReLU; the other half is for delta and the head error."""
MAX_DELTA = 0.1
"""However flat the outer map: the gate must stay deeper than the range of the components."""


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
    parameters: int
    """M: weights and biases of both feed-forward nets."""

    @classmethod
    def of(cls, nets: Nets, model: ClassTokenTransformer, *, more_parameters: int = 0) -> Self:
        """The promise of `nets` for a model that arranges them; M counts encoder, readout and `more_parameters`."""
        return cls(
            model=model,
            promised=nets.promised,
            proved=nets.proved,
            delta=nets.delta,
            beta=nets.beta,
            parameters=net_parameters(model) + more_parameters,
        )


def construct(
    task: Retrieval, eps: float, *, components: tuple[RidgeSum, ...] | None = None, outer: RidgeSum | None = None
) -> Construction:
    """A model of D heads whose error is at most `eps` everywhere on [0,1]^(length x dim).

    `components` are f_1 .. f_D and `outer` is F0, as sums of ridges. Presets with known parts need none; other parts
    not given are fitted, and `promised` is then an estimate. Raises `InputError` where Theorem 2 does not cover
    the task, a given part differs from the task's or from its own slope and curvature, or a part cannot be fitted.
    """
    nets = nets_of(task, eps, components=components, outer=outer)
    return Construction.of(nets, _assemble(task, nets))


def nets_of(
    task: Retrieval, eps: float, *, components: tuple[RidgeSum, ...] | None = None, outer: RidgeSum | None = None
) -> Nets:
    """The nets and the sharpness with which reading D minima gives an error of at most `eps`; see `construct`."""
    require(0 < eps < 1, f"eps must lie between 0 and 1, got {eps!r}.")
    parts = parts_of(task, components=components, outer=outer)
    count, slope = len(parts.components), max(parts.outer.steepness, 1e-12)
    setting = Setting(heads=count, intrinsic_dim=count, length=task.length, head_dim=2, eps=eps, outer_slope=slope)
    beta, delta = sharpness_needed(setting), min(component_accuracy(setting).value or MAX_DELTA, MAX_DELTA)
    # Head outputs leave [0, 1] by up to delta. A fitted outer map may not exist there, so its net rescales them, which
    # moves them by up to delta again: half of delta leaves room for both.
    moves = 1 if isinstance(parts.outer, RidgeSum) else 2
    delta /= moves
    inwards, outwards = beside([part.net(low=0.0, high=1.0, delta=delta) for part in parts.components]).layers
    # The nets of all components read one shared token instead of one copy each.
    shared = inwards.weight.reshape(len(inwards.bias), count, task.dim).sum(axis=1)
    read_in, read_out = parts.outer.net(low=-delta, high=1 + delta, delta=READOUT_SHARE * eps).layers
    scale = 100 * GELU_GAP * float(np.abs(read_out.weight).sum()) / eps + 1.0  # 1 / GELU_SHARE = 100
    # Psi_i lies in [-delta, 1 + delta]: the gate is shallower by 2 delta, and a wrong token may be off by more than 1.
    longest = max(len(places) for places in task.position_sets)
    head = (1 + 2 * delta) * (head_error(beta, longest, task.length, GATE - 2 * delta).value or 0.0)
    return Nets(
        encoder=ReluNet((AffineMap(shared, inwards.bias), outwards)),
        readout=ReluNet(
            (AffineMap(scale * read_in.weight, scale * read_in.bias), AffineMap(read_out.weight / scale, read_out.bias))
        ),
        beta=beta,
        delta=delta,
        promised=setting.slope * (moves * delta + head) + READOUT_SHARE * eps + GELU_SHARE * eps,
        proved=parts.proved,
    )


def net_parameters(model: ClassTokenTransformer) -> int:
    """M: weights and biases of the encoder and the readout."""
    nets = (model.encoder_in, model.encoder_out, model.readout_in, model.readout_out)
    return sum(layer.weight.size + layer.bias.size for layer in nets)


def _assemble(task: Retrieval, nets: Nets) -> ClassTokenTransformer:
    """D heads over one register of components and one of gates; the class token is all ones and asks by its first."""
    count = len(task.position_sets)
    registers = Registers.of(heads=count, value=count, gate=count)
    asks = registers.unit("value")
    heads = [
        RegisterHead(
            [(-asks, registers.unit("value", i)), (asks, registers.unit("gate", i))],
            [(registers.unit("value", i), registers.unit("value", i))],
        )
        for i in range(count)
    ]
    return of_all_ones(task, nets, registers, heads)


def of_all_ones(
    task: Retrieval, nets: Nets, registers: Registers, heads: list[RegisterHead], *, shared: bool = False
) -> ClassTokenTransformer:
    """One layer of these heads, which write their minima to the first numbers of the class token, itself all ones."""
    first, last = nets.readout.layers
    # Minima arrive plus one; the readout's bias subtracts it again.
    readout = ReluNet((AffineMap(first.weight, first.bias - first.weight.sum(axis=1)), last))
    result = {"result": np.arange(len(task.position_sets))}
    return register_model(
        replace(nets, readout=readout),
        Registers({**registers.places, **result}, registers.total),
        [heads],
        class_token=np.ones(registers.total),
        constants=registers.zeros,
        position_table=position_table(task, registers),
        shared=shared,
    )
