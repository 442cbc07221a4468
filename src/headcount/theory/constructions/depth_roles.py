"""L layers of h heads retrieve D = h (2 L - 1) minima, without nets between the layers: each head plays two roles.

In every layer the class token and the tokens ask with different constants, so one head compares the tokens by two
scores: the class token reads the minimum of one component, every token that of another. What all tokens have read is
the same number, and any average over tokens returns it: the class token collects it in the last layer, whatever it
attends to there. The class token reads h L minima and the tokens h (L - 1), the last layer's tokens being of no use.

    score of head i in layer l:  [asked by the class token] (-Psi_a + r_a)(s) + [asked by a token] (-Psi_b + r_b)(s)

Psi_i and the gates r_i are those of Theorem 2(1); each minimum is read within `bounds.head_error`, so that the promise
is that of `construct`. Neither the width nor the nets grow with T, M grows with 1 / eps as in Theorem 2(1), and
L h < D: Conjecture 1 of Yu et al. (arXiv 2510.06662), that this needs nets whose size is exponential in T, is
contradicted for this class of models. Entries above 1, which Assumption 1 excludes, come from writing ReLU by GELU.
"""

from ...errors import require, require_count
from ...models import ClassTokenTransformer
from ...tasks import Retrieval
from .enough_heads import Construction, nets_of
from .maxima import directions_of, maxima_nets
from .registers import RegisterHead, Registers, gate_size, position_table, register_model, score_of
from .relu_nets import Nets, RidgeSum


def roles(heads: int, layers: int) -> int:
    """h (2 L - 1): the minima that `construct_roles` retrieves.

    Example:
        >>> from headcount import theory
        >>> [theory.roles(1, layers) for layers in (1, 2, 3)], theory.roles(2, 2)
        ([1, 3, 5], 6)
    """
    require_count("heads", heads)
    require_count("layers", layers)
    return heads * (2 * layers - 1)


def construct_roles(
    task: Retrieval,
    eps: float,
    *,
    heads: int,
    layers: int,
    components: tuple[RidgeSum, ...] | None = None,
    outer: RidgeSum | None = None,
) -> Construction:
    """A model of `layers` layers of `heads` heads, attention only, within `eps` everywhere on [0,1]^(length x dim).

    Args:
        task: A retrieval task with D <= heads (2 layers - 1) components in [0, 1].
        eps: The largest error allowed.
        heads: Heads per layer.
        layers: Attention layers.
        components: f_1 .. f_D as sums of ridges; presets with known parts need none, others are fitted.
        outer: F0, likewise.

    Returns:
        The model with its promise.

    Raises:
        InputError: If D is larger, or where `construct` raises it.

    Example:
        >>> from headcount import theory
        >>> from headcount.tasks import quadratic_basins
        >>> built = theory.construct_roles(quadratic_basins(intrinsic_dim=3), 0.1, heads=1, layers=2)
        >>> built.model.spec.heads, built.model.spec.layers, built.promised <= 0.1
        (1, 2, True)
    """
    _require_roles(task, heads, layers)
    nets = nets_of(task, eps, components=components, outer=outer)
    return Construction.of(nets, _arranged(task, nets, heads, layers))


def roles_of_maxima(task: Retrieval, *, heads: int, layers: int, beta: float = 300.0) -> ClassTokenTransformer:
    """The same arrangement for a sum of maxima, whose tokens are unbounded: no promise, but an error to be sampled.

    Args:
        task: `sum_of_maxima` of D <= heads (2 layers - 1) directions over whole sequences.
        heads: Heads per layer.
        layers: Attention layers.
        beta: What scores are multiplied by; the error of a maximum that is read is of the order of 1 / beta.

    Returns:
        A model of the class that the study `depth` trains.

    Raises:
        InputError: If the task is another one, or D is larger.

    Example:
        >>> from headcount import theory
        >>> from headcount.tasks import sum_of_maxima
        >>> spec = theory.roles_of_maxima(sum_of_maxima(intrinsic_dim=3), heads=1, layers=2).spec
        >>> spec.layers, spec.heads, spec.positions, spec.inner_hidden
        (2, 1, 'none', 0)
    """
    directions = directions_of(task)
    _require_roles(task, heads, layers)
    return _arranged(task, maxima_nets(directions, beta), heads, layers)


def _require_roles(task: Retrieval, heads: int, layers: int) -> None:
    count, most = len(task.position_sets), roles(heads, layers)
    require(
        count <= most,
        f"{task.name} has D = {count} components; {layers} layer(s) of {heads} head(s) play {most} roles, h (2 L - 1).",
        what="intrinsic_dim",
        given=count,
        needed=f"at most {most}",
    )


def _arranged(task: Retrieval, nets: Nets, heads: int, layers: int) -> ClassTokenTransformer:
    """The model whose heads play the roles."""
    count = len(task.position_sets)
    of_tokens = max(count - heads * layers, 0)
    registers = Registers.of(
        heads=heads, value=count, result=count, carried=of_tokens, at_class=1, at_tokens=1, **gate_size(task)
    )
    return register_model(
        nets,
        registers,
        [[_head(registers, heads, layers, layer, i) for i in range(heads)] for layer in range(layers)],
        class_token=registers.unit("at_class"),
        constants=registers.unit("at_tokens"),
        position_table=position_table(task, registers),
    )


def _head(registers: Registers, heads: int, layers: int, layer: int, head: int) -> RegisterHead:
    """Component layer * heads + head is the class token's here, and the one as far behind the h L is the tokens'."""
    count, carried = len(registers["value"]), len(registers["carried"])
    place = layer * heads + head
    compares, moves = [], []
    if place < count:
        compares.append((registers.unit("at_class"), score_of(registers, place)))
        moves.append((registers.unit("value", place), registers.unit("result", place)))
    if layer < layers - 1 and place < carried:
        behind = heads * layers + place
        compares.append((registers.unit("at_tokens"), score_of(registers, behind)))
        moves.append((registers.unit("value", behind), registers.unit("carried", place)))
    if layer == layers - 1:
        collected = range(head, carried, heads)
        moves += [(registers.unit("carried", i), registers.unit("result", heads * layers + i)) for i in collected]
    return RegisterHead(compares, moves)
