"""Two layers of one head retrieve any D <= T minima, with a net between the layers and a label per place.

Place t has the label i(t) = t mod D. In layer 1 every token asks by its label, so token t reads Psi of the token that
has the smallest Psi_i(t) over S_i(t); the net between keeps of those D numbers the one of the label,

    kept_j = relu(read_j + delta - (1 + 2 delta) (1 - label_j)) = (min Psi_j + delta) [j = i(t)],

and in layer 2 a uniform mean over tokens, times T over the number of places of a label, adds them up. The one head has
rank D and width of order D: both grow with D, and neither depends on T. The promise is that of `construct`: each
minimum is read within `bounds.head_error`. So with nets and labels inside the model, and heads as wide as they need to
be, no law of the form D <= c(L, h) holds from two layers on, Conjecture 1 of Yu et al. (arXiv 2510.06662) included.
"""

import numpy as np

from ...errors import require
from ...tasks import Retrieval
from .enough_heads import Construction, nets_of
from .registers import RegisterHead, Registers, gate_size, position_table, register_model, score_of
from .relu_nets import AffineMap, ReluNet, RidgeSum


def construct_two_layers(
    task: Retrieval, eps: float, *, components: tuple[RidgeSum, ...] | None = None, outer: RidgeSum | None = None
) -> Construction:
    """A model of two layers of one head, a net between them, within `eps` everywhere on [0,1]^(length x dim).

    Args:
        task: A retrieval task with components in [0, 1] and at most as many of them as it has tokens.
        eps: The largest error allowed.
        components: f_1 .. f_D as sums of ridges; presets with known parts need none, others are fitted.
        outer: F0, likewise.

    Returns:
        The model with its promise.

    Raises:
        InputError: If D is larger than the length, or where `construct` raises it.

    Example:
        >>> from headcount import theory
        >>> from headcount.tasks import quadratic_basins
        >>> built = theory.construct_two_layers(quadratic_basins(intrinsic_dim=6), 0.1)
        >>> built.model.spec.heads, built.model.spec.layers, built.promised <= 0.1
        (1, 2, True)
    """
    count = len(task.position_sets)
    require(
        count <= task.length,
        f"{task.name} has D = {count} components and {task.length} tokens; every component needs a place of its label.",
        what="length",
        given=task.length,
        needed=f"at least D = {count}",
    )
    nets = nets_of(task, eps, components=components, outer=outer)
    registers = Registers.of(heads=1, value=count, read=count, result=count, label=count, **gate_size(task))
    labels = np.eye(count)[np.arange(task.length) % count]
    shares = task.length / labels.sum(axis=0)
    asks = RegisterHead(
        [(registers.unit("label", i), score_of(registers, i)) for i in range(count)],
        [(registers.unit("value", i), registers.unit("read", i)) for i in range(count)],
    )
    adds_up = RegisterHead(
        (), [(registers.unit("result", i), shares[i] * registers.unit("result", i)) for i in range(count)]
    )
    class_token = registers.zeros
    class_token[registers["result"]] = -nets.delta  # what the net between added to every minimum
    model = register_model(
        nets,
        registers,
        [[asks], [adds_up]],
        class_token=class_token,
        constants=registers.zeros,
        position_table=position_table(task, registers, labels),
        inner=[_keeps_own_label(registers, count, nets.delta)],
    )
    of_inner = 2 * count * registers.total + count + registers.total
    return Construction.of(nets, model, more_parameters=of_inner)


def _keeps_own_label(registers: Registers, count: int, delta: float) -> ReluNet:
    """What was read, plus delta, at the token's label, and 0 at the others: Psi lies in [-delta, 1 + delta]."""
    depth = 1 + 2 * delta
    reads = [registers.unit("read", i) + depth * registers.unit("label", i) for i in range(count)]
    writes = [registers.unit("result", i) for i in range(count)]
    return ReluNet(
        (
            AffineMap(np.stack(reads), np.full(count, delta - depth)),
            AffineMap(np.stack(writes, axis=1), registers.zeros),
        )
    )
