"""Two and more layers: with fewer than D heads in each, they retrieve D minima (docs/depth.md).

`construct_roles`: in every layer the class token and the tokens ask with different constants, so one head compares the
tokens by two scores:

    score of head i in layer l:  [asked by the class token] (-Psi_a + r_a)(s) + [asked by a token] (-Psi_b + r_b)(s)

Psi_i and the gates r_i are those of Theorem 2(1); each minimum is read within `bounds.head_error`, so that the promise
is that of `construct`.

`construct_two_layers`: place t has the label i(t) = t mod D. In layer 1 token t reads Psi of the token that has the
smallest Psi_i(t) over S_i(t); the net between keeps of those D numbers the one of the label,

    kept_j = relu(read_j + delta - (1 + 2 delta) (1 - label_j)) = (min Psi_j + delta) [j = i(t)],

and in layer 2 a uniform mean over tokens, times T over the number of places of a label, adds them up.

`construct_by_content`: in layer 2 head k of the class token attends to the token with the largest a_k . x, k = 1, 2,
and what that token has read in layer 1 comes with it. Tokens with a_1 . x > a_2 . x read the maxima of one pair of
directions, the others those of another pair: 2 + 2 + 2 x 2 = 8. It fails where the token with the largest a_1 . x has a
larger a_2 . x still.
"""

import itertools
from dataclasses import replace
from typing import Unpack

import numpy as np
from jaxtyping import Float

from ...errors import InputError, require
from ...models import ClassTokenTransformer
from ...tasks import Retrieval
from ...tasks.presets import Ridges
from ..doors import require_counts
from .enough_heads import nets_of
from .parts import GivenParts
from .registers import Construction, Nets, RegisterHead, Registers, register_model
from .relu_nets import AffineMap, ReluNet

HEADS = 2
EIGHT = (HEADS + 1) ** 2 - 1
SWITCH = 100.0
"""Slope of the switch between the two roles, per unit of (a_1 - a_2) . x."""


def roles(heads: int, layers: int) -> int:
    """h (2 L - 1): the minima that `construct_roles` retrieves.

    Example:
        >>> from headcount import theory
        >>> [theory.roles(1, layers) for layers in (1, 2, 3)], theory.roles(2, 2)
        ([1, 3, 5], 6)
    """
    require_counts(heads=heads, layers=layers)
    return heads * (2 * layers - 1)


def construct_roles(
    task: Retrieval, eps: float, *, heads: int, layers: int, **given: Unpack[GivenParts]
) -> Construction:
    """Write a model of `layers` layers of `heads` heads, attention only, within `eps` everywhere on the cube.

    The task has D <= heads (2 layers - 1) components in [0, 1]; `given` is as in `construct`. Raises `InputError` if D
    is larger, or where `construct` does.

    Example:
        >>> from headcount import theory
        >>> from headcount.tasks import quadratic_basins
        >>> built = theory.construct_roles(quadratic_basins(intrinsic_dim=3), 0.1, heads=1, layers=2)
        >>> built.model.spec.heads, built.model.spec.layers, built.promised <= 0.1
        (1, 2, True)
    """
    _require_roles(task, heads, layers)
    nets = nets_of(task, eps, **given)
    return _in_roles(task, nets, heads, layers)


def roles_of_maxima(task: Retrieval, *, heads: int, layers: int, beta: float = 300.0) -> ClassTokenTransformer:
    """Write the same for a sum of maxima, whose tokens are unbounded: no promise, but an error to be sampled.

    The task is `sum_of_maxima` of D <= heads (2 layers - 1) directions over whole sequences, the model of the class
    that the study `depth` trains. Scores are multiplied by `beta`; the error of a maximum that is read is of the order
    of 1 / beta. Raises `InputError` if the task is another one, or D is larger.

    Example:
        >>> from headcount import theory
        >>> from headcount.tasks import sum_of_maxima
        >>> spec = theory.roles_of_maxima(sum_of_maxima(intrinsic_dim=3), heads=1, layers=2).spec
        >>> spec.layers, spec.heads, spec.positions, spec.inner_hidden
        (2, 1, 'none', 0)
    """
    directions = _directions_of(task)
    _require_roles(task, heads, layers)
    return _in_roles(task, _maxima_nets(directions, beta), heads, layers).model


def _require_roles(task: Retrieval, heads: int, layers: int) -> None:
    count, most = len(task.position_sets), roles(heads, layers)
    require(
        count <= most,
        f"{task.name} has D = {count} components; {layers} layer(s) of {heads} head(s) play {most} roles, h (2 L - 1).",
        what="intrinsic_dim",
        given=count,
        needed=f"at most {most}",
    )


def _in_roles(task: Retrieval, nets: Nets, heads: int, layers: int) -> Construction:
    count = len(task.position_sets)
    of_tokens = max(count - heads * layers, 0)
    sizes = {"value": count, "result": count, "carried": of_tokens, "at_class": 1, "at_tokens": 1}
    registers = Registers.allocate(heads=heads, **sizes, gate=count if task.uses_positions else 0)
    return register_model(
        task,
        nets,
        registers,
        [[_role_head(registers, heads, layers, layer, i) for i in range(heads)] for layer in range(layers)],
        class_token=registers.unit("at_class"),
        constants=registers.unit("at_tokens"),
    )


def _role_head(registers: Registers, heads: int, layers: int, layer: int, head: int) -> RegisterHead:
    """Component layer * heads + head is the class token's here, and the one as far behind the h L is the tokens'."""
    count, carried = len(registers["value"]), len(registers["carried"])
    place = layer * heads + head
    compares, moves = [], []
    if place < count:
        compares.append((registers.unit("at_class"), registers.score(place)))
        moves.append((registers.unit("value", place), registers.unit("result", place)))
    if layer < layers - 1 and place < carried:
        behind = heads * layers + place
        compares.append((registers.unit("at_tokens"), registers.score(behind)))
        moves.append((registers.unit("value", behind), registers.unit("carried", place)))
    if layer == layers - 1:
        collected = range(head, carried, heads)
        moves += [(registers.unit("carried", i), registers.unit("result", heads * layers + i)) for i in collected]
    return RegisterHead(compares, moves)


def construct_two_layers(task: Retrieval, eps: float, **given: Unpack[GivenParts]) -> Construction:
    """Write a model of two layers of one head, a net between them, within `eps` everywhere on [0,1]^(length x dim).

    The task has at most as many components as tokens; `given` is as in `construct`. Raises `InputError` if D is larger
    than the length, or where `construct` does.

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
    nets = nets_of(task, eps, **given)
    sizes = {"value": count, "read": count, "result": count, "label": count}
    registers = Registers.allocate(heads=1, **sizes, gate=count if task.uses_positions else 0)
    labels = np.eye(count)[np.arange(task.length) % count]
    shares = task.length / labels.sum(axis=0)
    results = [registers.unit("result", i) for i in range(count)]
    asks = RegisterHead(
        [(registers.unit("label", i), registers.score(i)) for i in range(count)],
        [(registers.unit("value", i), registers.unit("read", i)) for i in range(count)],
    )
    adds_up = RegisterHead((), [(result, share * result) for result, share in zip(results, shares, strict=True)])
    # Psi lies in [-delta, 1 + delta]: the net between keeps what was read, plus delta, at the token's label alone.
    depth = 1 + 2 * nets.delta
    reads = np.stack([registers.unit("read", i) + depth * registers.unit("label", i) for i in range(count)])
    keeps_own_label = ReluNet(
        (
            AffineMap(reads, np.full(count, nets.delta - depth)),
            AffineMap(np.stack(results, axis=1), registers.zeros),
        )
    )
    class_token = registers.zeros
    class_token[registers["result"]] = -nets.delta  # what the net between added to every minimum
    return register_model(
        task, nets, registers, [[asks], [adds_up]], class_token=class_token, labels=labels, inner=[keeps_own_label]
    )


def construct_by_content(task: Retrieval, *, beta: float = 300.0) -> ClassTokenTransformer:
    """Write a model of two attention layers of two heads for a sum of eight maxima, right on most random sequences.

    The task is `sum_of_maxima` of eight directions, without position sets; another raises `InputError`. The model comes
    without a promise: its error is to be sampled. `beta` is as in `roles_of_maxima`.

    Example:
        >>> from headcount import theory
        >>> from headcount.tasks import sum_of_maxima
        >>> spec = theory.construct_by_content(sum_of_maxima(intrinsic_dim=8, dim=6)).spec
        >>> spec.layers, spec.heads, spec.total_dim, spec.positions
        (2, 2, 24, 'none')
    """
    directions = _directions_of(task)
    require(
        len(directions) == EIGHT,
        f"two layers of two heads are written down for {EIGHT} maxima, {task.name} has D = {len(directions)}.",
        what="intrinsic_dim",
        given=len(directions),
        needed=str(EIGHT),
    )
    pairs = itertools.combinations(range(EIGHT), HEADS)
    followed = min(pairs, key=lambda pair: directions[pair[0]] @ directions[pair[1]])
    others = [i for i in range(EIGHT) if i not in followed]
    at_first, of_tokens = others[:HEADS], np.reshape(others[HEADS:], (HEADS, HEADS)).tolist()
    sizes = {"value": EIGHT + HEADS, "result": EIGHT, "carried": HEADS * HEADS, "at_class": 1, "gate": 0}
    registers = Registers.allocate(heads=HEADS, **sizes)
    asks, both = registers.unit("at_class"), range(HEADS)

    def moved(source: str, i: int, target: str, j: int) -> tuple[np.ndarray, np.ndarray]:
        return registers.unit(source, i), registers.unit(target, j)

    first, second = [], []
    for head in both:
        of_roles = [(registers.unit("value", EIGHT + k), registers.score(of_tokens[k][head])) for k in both]
        moves = [moved("value", of_tokens[k][head], "carried", HEADS * k + head) for k in both]
        own = moved("value", at_first[head], "result", at_first[head])
        first.append(RegisterHead([(asks, registers.score(at_first[head])), *of_roles], [own, *moves]))
    for k in both:
        moves = [moved("carried", HEADS * k + head, "result", of_tokens[k][head]) for head in both]
        own = moved("value", followed[k], "result", followed[k])
        second.append(RegisterHead([(asks, registers.score(followed[k]))], [own, *moves]))
    nets = _with_switch(_maxima_nets(directions, beta), directions[followed[0]] - directions[followed[1]])
    return register_model(task, nets, registers, [first, second], class_token=asks).model


def _with_switch(nets: Nets, apart: Float[np.ndarray, " dim"]) -> Nets:
    """Return the encoder with the switch g = clip(SWITCH (a_1 - a_2) . x + 1/2) and 1 - g after its components."""
    inwards, outwards = nets.encoder.layers
    count, units = outwards.weight.shape
    weight = np.zeros((count + HEADS, units + 2))
    weight[:count, :units], weight[count:, units:] = outwards.weight, [[1.0, -1.0], [-1.0, 1.0]]
    encoder = (
        AffineMap(np.concatenate([inwards.weight, *2 * [SWITCH * apart[None]]]), np.append(inwards.bias, [0.5, -0.5])),
        AffineMap(weight, np.append(outwards.bias, [0.0, 1.0])),
    )
    return replace(nets, encoder=ReluNet(encoder))


def _directions_of(task: Retrieval) -> Float[np.ndarray, "D dim"]:
    """a_1 .. a_D of a sum of maxima over whole sequences. Raises `InputError` for another task."""
    if not isinstance(task.features, Ridges) or task.uses_positions:
        raise InputError(
            f"only sum-of-maxima over whole sequences is written down so, got {task.name}.",
            what="task",
            given=task.name,
            needed="sum_of_maxima without windows",
        )
    return np.asarray(task.features.directions, float)


def _maxima_nets(directions: Float[np.ndarray, "D dim"], beta: float) -> Nets:
    """Return the exact nets of a sum of maxima: Psi_i = -a_i . x in the encoder, minus their sum in the readout, by
    u = relu(u) - relu(-u) and u = gelu(u) - gelu(-u). Tokens are unbounded: no error can be promised for the heads.
    """
    count, dim = directions.shape
    total = np.ones((1, count))
    encoder = (
        AffineMap(np.concatenate([np.eye(dim), -np.eye(dim)]), np.zeros(2 * dim)),
        AffineMap(np.concatenate([-directions, directions], axis=1), np.zeros(count)),
    )
    readout = AffineMap(np.concatenate([total, -total]), np.zeros(2)), AffineMap(np.array([[-1.0, 1.0]]), np.zeros(1))
    promise = {"beta": beta, "delta": 0.0, "promised": float("inf"), "proved": False}
    return Nets(encoder=ReluNet(encoder), readout=ReluNet(readout), **promise)
