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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...errors import require
from ...models import ClassTokenSpec, ClassTokenTransformer
from ...models.class_token import Attention, Linear
from ...tasks import Retrieval
from ..bounds import Setting, component_accuracy, head_error, sharpness_needed
from .parts import parts_of
from .relu_nets import Affine, ReluNet, RidgeSum, beside

GATE = 2.0
"""Depth G of the gate."""
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
    def of(cls, nets: "Nets", model: ClassTokenTransformer, *, more_parameters: int = 0) -> Self:
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
        encoder=ReluNet((Affine(shared, inwards.bias), outwards)),
        readout=ReluNet(
            (Affine(scale * read_in.weight, scale * read_in.bias), Affine(read_out.weight / scale, read_out.bias))
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
    """Nets and gates as the weights of an ordinary model."""
    count = len(task.position_sets)
    total = 2 * count
    inwards, outwards = nets.encoder.layers
    gates = np.zeros((task.length, total))
    gates[:, 1::2] = -GATE * ~task.mask
    query, key, value = np.zeros((3, count, 2, total))
    output = np.zeros((total, count, 2))
    for i in range(count):
        query[i, 0, 0], query[i, 1, 0] = -1.0, 1.0
        key[i, 0, 2 * i] = key[i, 1, 2 * i + 1] = 1.0
        value[i, 0, 2 * i] = output[i, i, 0] = 1.0
    # The class token is all ones, so head outputs arrive plus one; the readout's bias subtracts it again.
    read_in, read_out = nets.readout.layers
    widened = np.zeros((len(read_in.bias), total))
    widened[:, :count] = read_in.weight
    # A component's output is the first coordinate of its block, the gate the second.
    read, shift = np.zeros((total, len(inwards.bias))), np.zeros(total)
    read[0::2], shift[0::2] = outwards.weight, outwards.bias
    moved = read_in.bias - read_in.weight @ np.ones(count)
    return one_layer_model(
        encoder=ReluNet((inwards, Affine(read, shift))),
        readout=ReluNet((Affine(widened, moved), read_out)),
        position_table=gates,
        class_token=np.ones(total),
        attention={"query": query, "key": key, "value": value, "output": output},
        concatenated=False,
        beta=nets.beta,
    )


def one_layer_model(
    *, encoder: ReluNet, readout: ReluNet, concatenated: bool, beta: float, attention: Mapping[str, Any], **leaves: Any
) -> ClassTokenTransformer:
    """A class-token transformer of one attention layer; `encoder` and `readout` are nets of two layers each.

    Weights are NumPy arrays where `models` declares JAX ones, which would round them to float32.
    """
    (encoder_in, encoder_out), (readout_in, readout_out) = linear_layers(encoder), linear_layers(readout)
    (heads, rank, _), (groups, head_dim, _) = attention["query"].shape, attention["value"].shape
    return ClassTokenTransformer(
        encoder_in=encoder_in,
        encoder_out=encoder_out,
        attention=(Attention(**attention),),
        readout_in=readout_in,
        readout_out=readout_out,
        spec=ClassTokenSpec(
            heads=heads,
            head_dim=head_dim,
            rank=rank,
            kv_heads=groups,
            hidden=len(encoder_in.bias),
            positions="concatenated" if concatenated else "additive",
            beta=beta,
        ),
        **leaves,
    )


def linear_layers(net: ReluNet) -> tuple[Linear, ...]:
    """The affine maps of a net as layers of `models`, in float64."""
    arrays: list[tuple[Any, Any]] = [(layer.weight, layer.bias) for layer in net.layers]
    return tuple(Linear(weight, bias) for weight, bias in arrays)
