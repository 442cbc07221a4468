"""On random sequences two layers of two heads have eight maxima: tokens choose their roles by what they are.

`depth_roles` gives every token the same role, which serves every sequence. On most sequences more is possible. In layer
2 head k of the class token attends to the token with the largest a_k . x, k = 1, 2, and what that token has read in
layer 1 comes with it. If tokens with a_1 . x > a_2 . x read the maxima of one pair of directions, and the others those
of another pair, the class token ends with

    2 maxima read in layer 1, 2 read in layer 2, and 2 x 2 that the tokens found there had read: (h + 1)^2 - 1 = 8.

It fails where the token with the largest a_1 . x has a larger a_2 . x still, which grows rare as sequences grow longer;
no promise can be made for every sequence. Counted the same way, L layers of h heads have (h + 1)^L - 1 maxima.
"""

import itertools
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from ...errors import require
from ...models import ClassTokenTransformer
from ...tasks import Retrieval
from .maxima import directions_of, maxima_nets
from .registers import RegisterHead, Registers, register_model, score_of
from .relu_nets import AffineMap, Nets, ReluNet

HEADS = 2
EIGHT = (HEADS + 1) ** 2 - 1
SWITCH = 100.0
"""Slope of the switch between the two roles, per unit of (a_1 - a_2) . x."""


def construct_by_content(task: Retrieval, *, beta: float = 300.0) -> ClassTokenTransformer:
    """A model of two attention layers of two heads for a sum of eight maxima, right on most random sequences.

    Args:
        task: `sum_of_maxima` of eight directions, without position sets.
        beta: What scores are multiplied by; the error of a maximum that is read is of the order of 1 / beta.

    Returns:
        The model. It comes without a promise: its error is to be sampled.

    Raises:
        InputError: If the task is another one.

    Example:
        >>> from headcount import theory
        >>> from headcount.tasks import sum_of_maxima
        >>> spec = theory.construct_by_content(sum_of_maxima(intrinsic_dim=8, dim=6)).spec
        >>> spec.layers, spec.heads, spec.total_dim, spec.positions
        (2, 2, 24, 'none')
    """
    directions = directions_of(task)
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
    registers = Registers.of(heads=HEADS, value=EIGHT + HEADS, result=EIGHT, carried=HEADS * HEADS, at_class=1)
    asks, both = registers.unit("at_class"), range(HEADS)

    def score(i: int) -> np.ndarray:
        return score_of(registers, i)

    def role(which: int) -> np.ndarray:
        return registers.unit("value", EIGHT + which)

    def moved(source: str, i: int, target: str, j: int) -> tuple[np.ndarray, np.ndarray]:
        return registers.unit(source, i), registers.unit(target, j)

    first, second = [], []
    for head in both:
        compares = [(asks, score(at_first[head])), *((role(k), score(of_tokens[k][head])) for k in both)]
        moves = [moved("value", of_tokens[k][head], "carried", HEADS * k + head) for k in both]
        first.append(RegisterHead(compares, [moved("value", at_first[head], "result", at_first[head]), *moves]))
    for k in both:
        moves = [moved("carried", HEADS * k + head, "result", of_tokens[k][head]) for head in both]
        second.append(
            RegisterHead([(asks, score(followed[k]))], [moved("value", followed[k], "result", followed[k]), *moves])
        )
    return register_model(
        _with_switch(maxima_nets(directions, beta), directions[followed[0]] - directions[followed[1]]),
        registers,
        [first, second],
        class_token=asks,
        constants=registers.zeros,
        position_table=None,
    )


def _with_switch(nets: Nets, apart: Float[np.ndarray, " dim"]) -> Nets:
    """The encoder with the switch g = clip(SWITCH (a_1 - a_2) . x + 1/2) and 1 - g after its components."""
    inwards, outwards = nets.encoder.layers
    count, units = outwards.weight.shape
    switch = np.array([[1.0, -1.0], [-1.0, 1.0]])
    weight = np.zeros((count + HEADS, units + 2))
    weight[:count, :units], weight[count:, units:] = outwards.weight, switch
    encoder = (
        AffineMap(np.concatenate([inwards.weight, *2 * [SWITCH * apart[None]]]), np.append(inwards.bias, [0.5, -0.5])),
        AffineMap(weight, np.append(outwards.bias, [0.0, 1.0])),
    )
    return replace(nets, encoder=ReluNet(encoder))
