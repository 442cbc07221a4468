"""Theorem 2(1) with one set of keys and values for all heads, where head_dim >= D.

With one query token, heads that share W_K and W_V still differ by W_K^T W_Q,i c0: a key of D numbers holds every
component's score, and query i picks one of them. Embeddings are (Psi_1 .. Psi_D, s_1 .. s_D), with s_i = -Psi_i +
r_i(t) and the gate r_i of `enough_heads`. Then

    W_K x^ = (s_1 .. s_D),    W_Q,i c0 = e_i,    W_V x^ = (Psi_1 .. Psi_D),    W_O takes number i of head i,

so head i has the weights and the value of head i there, and the promise is the same. Embeddings need 2 D numbers, of
which there are D head_dim. Below head_dim D this construction does not exist: keys of fewer numbers cannot hold D
independent scores. That is no proof that other weights cannot do it.
"""

from dataclasses import replace

import numpy as np

from ...errors import require
from ...tasks import Retrieval
from .enough_heads import Construction, nets_of, of_all_ones
from .registers import RegisterHead, Registers
from .relu_nets import AffineMap, ReluNet, RidgeSum


def construct_shared(
    task: Retrieval,
    eps: float,
    *,
    head_dim: int | None = None,
    components: tuple[RidgeSum, ...] | None = None,
    outer: RidgeSum | None = None,
) -> Construction:
    """A model of D heads that share keys and values, `kv_heads` 1, whose error is at most `eps` on the cube.

    Args:
        task: What it answers.
        eps: The error allowed.
        head_dim: Width of keys and values, at least D and 2; the smallest where None.
        components: f_1 .. f_D, as `construct` takes them.
        outer: F0, as `construct` takes it.

    Returns:
        The construction; its promise is that of `construct`.

    Raises:
        InputError: If head_dim is below D or 2, or where `construct` raises it.

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
    nets = nets_of(task, eps, components=components, outer=outer)
    registers = Registers.of(heads=count, head_dim=head_dim, value=2 * count)
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
    return Construction.of(nets, of_all_ones(task, with_scores, gated, heads, shared=True))
