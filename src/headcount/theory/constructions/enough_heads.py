"""Theorem 2(1) as a program: a model of h = D heads with head_dim 2, its weights written down, its error bounded.

Block i of the embedding is (Psi_i(x), r_i(t)): a two-layer net within delta of f_i, and a gate that is 0 on S_i and -G
elsewhere. Head i scores -Psi_i + r_i and its value is Psi_i; the readout is a two-layer net of F0. With
L0 = sup |grad F0|_1,

    error <= L0 (delta + head error) + error of the readout

where the head error is `bounds.head_error`. A fitted F0 is known on [0,1]^D only: the head outputs are rescaled into
it, and delta counts twice. The readout of our models is a GELU net; gelu(k u) / k is within 0.17 / k of relu(u), and k
is chosen so that this costs a hundredth of eps.

`construct_shared`: heads that share W_K and W_V still differ by their queries. Embeddings are (Psi_1 .. Psi_D, s_1 ..
s_D) with the scores s_i = -Psi_i + r_i(t), and

    W_K x^ = (s_1 .. s_D),    W_Q,i c0 = e_i,    W_V x^ = (Psi_1 .. Psi_D),    W_O takes number i of head i.

Source: Yu et al. (arXiv 2510.06662), Theorem 2(1), with a gate of depth G = 2 in place of 1.
"""

from dataclasses import replace
from typing import Unpack

import numpy as np

from ...errors import require
from ...tasks import Retrieval
from ..bounds import Setting, component_accuracy, head_error, sharpness_needed
from ..doors import require_below_one
from .parts import GivenParts, RidgeSum, parts_of
from .registers import GATE, Construction, Nets, RegisterHead, Registers, register_model
from .relu_nets import AffineMap, ReluNet, in_parallel

GELU_GAP = 0.17
"""sup |gelu(u) - relu(u)| = 0.16997."""
READOUT_SHARE, GELU_SHARE = 0.49, 0.01
"""Shares of eps for the net of F0 and for GELU in place of ReLU; the other half is for delta and the head error."""
MAX_DELTA = 0.1
"""However flat the outer map: the gate must stay deeper than the range of the components."""


def construct(task: Retrieval, eps: float, **given: Unpack[GivenParts]) -> Construction:
    """Write a model of D heads whose error is at most `eps` everywhere on [0,1]^(length x dim).

    `components` are f_1 .. f_D and `outer` is F0, as sums of ridges. Presets with known parts need none; other parts
    not given are fitted, and `promised` is then an estimate. Raises `InputError` where Theorem 2 does not cover
    the task, a given part differs from the task's or from its own slope and curvature, or a part cannot be fitted.
    """
    nets, count = nets_of(task, eps, **given), len(task.position_sets)
    registers = Registers.allocate(heads=count, value=count, gate=count)
    asks = registers.unit("value")
    heads = [
        RegisterHead(
            [(-asks, registers.unit("value", i)), (asks, registers.unit("gate", i))],
            [(registers.unit("value", i), registers.unit("value", i))],
        )
        for i in range(count)
    ]
    return _of_all_ones(task, nets, registers, heads)


def construct_shared(
    task: Retrieval, eps: float, *, head_dim: int | None = None, **given: Unpack[GivenParts]
) -> Construction:
    """Write a model of D heads that share keys and values, `kv_heads` 1, whose error is at most `eps` on the cube.

    `head_dim` is the width of keys and values, at least D and 2, the smallest where None; `given` and the promise are
    those of `construct`. Raises `InputError` if head_dim is below D or 2, or where `construct` does.

    Example:
        >>> from headcount.tasks import max_plus_min
        >>> from headcount.theory import construct_shared
        >>> construct_shared(max_plus_min(length=4), 0.1).model.attention[0].key.shape
        (1, 2, 4)
    """
    count = len(task.position_sets)
    least = max(count, 2)
    head_dim = least if head_dim is None else head_dim
    require(
        head_dim >= least,
        f"head_dim must be at least {least} for {task.name}, whose D is {count}: keys that all heads share must hold "
        f"every component's score; got {head_dim}.",
        what="head_dim",
        given=head_dim,
        needed=f"at least {least}",
    )
    nets = nets_of(task, eps, **given)
    registers = Registers.allocate(heads=count, head_dim=head_dim, value=2 * count)
    gated = Registers({**registers.places, "gate": np.arange(count, 2 * count)}, registers.total)
    units, zeros = [registers.unit("value", i) for i in range(2 * count)], registers.zeros
    heads = [
        RegisterHead(
            [(units[0] if k == i else zeros, units[count + k]) for k in range(count)],
            [(units[k], units[i] if k == i else zeros) for k in range(count)],
        )
        for i in range(count)
    ]
    inwards, outwards = nets.encoder.layers
    scored = AffineMap(np.concatenate([outwards.weight, -outwards.weight]), np.append(outwards.bias, -outwards.bias))
    with_scores = replace(nets, encoder=ReluNet((inwards, scored)))
    return _of_all_ones(task, with_scores, gated, heads, shared=True)


def nets_of(task: Retrieval, eps: float, **given: Unpack[GivenParts]) -> Nets:
    """Return nets and the sharpness with which reading D minima gives an error of at most `eps`; see `construct`."""
    require_below_one(eps=eps)
    parts = parts_of(task, **given)
    count, slope = len(parts.components), max(parts.outer.steepness, 1e-12)
    setting = Setting(heads=count, intrinsic_dim=count, length=task.length, head_dim=2, eps=eps, outer_slope=slope)
    beta, delta = sharpness_needed(setting), min(component_accuracy(setting), MAX_DELTA)
    # Head outputs leave [0, 1] by up to delta. A fitted outer map may not exist there, so its net rescales them, which
    # moves them by up to delta again: half of delta leaves room for both.
    moves = 1 if isinstance(parts.outer, RidgeSum) else 2
    delta /= moves
    inwards, outwards = in_parallel([part.net(delta=delta) for part in parts.components]).layers
    # The nets of all components read one shared token instead of one copy each.
    token_read = inwards.weight.reshape(len(inwards.bias), count, task.dim).sum(axis=1)
    read_in, read_out = parts.outer.net(low=-delta, high=1 + delta, delta=READOUT_SHARE * eps).layers
    scale = 100 * GELU_GAP * float(np.abs(read_out.weight).sum()) / eps + 1.0  # 1 / GELU_SHARE = 100
    # Psi_i lies in [-delta, 1 + delta]: the gate is shallower by 2 delta, and a wrong token may be off by more than 1.
    longest = max(len(places) for places in task.position_sets)
    head = (1 + 2 * delta) * head_error(beta, longest, task.length, GATE - 2 * delta)
    return Nets(
        encoder=ReluNet((AffineMap(token_read, inwards.bias), outwards)),
        readout=ReluNet(
            (AffineMap(scale * read_in.weight, scale * read_in.bias), AffineMap(read_out.weight / scale, read_out.bias))
        ),
        beta=beta,
        delta=delta,
        promised=setting.slope * (moves * delta + head) + READOUT_SHARE * eps + GELU_SHARE * eps,
        proved=parts.proved,
    )


def _of_all_ones(
    task: Retrieval, nets: Nets, registers: Registers, heads: list[RegisterHead], *, shared: bool = False
) -> Construction:
    """Build one layer of these heads, which write to the first numbers of the class token, itself all ones."""
    first, last = nets.readout.layers
    # Minima arrive plus one; the readout's bias subtracts it again.
    readout = ReluNet((AffineMap(first.weight, first.bias - first.weight.sum(axis=1)), last))
    result = {"result": np.arange(len(task.position_sets))}
    return register_model(
        task,
        replace(nets, readout=readout),
        Registers({**registers.places, **result}, registers.total),
        [heads],
        class_token=np.ones(registers.total),
        shared=shared,
    )
