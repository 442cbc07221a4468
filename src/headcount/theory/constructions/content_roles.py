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

import numpy as np
from jaxtyping import Float

from ..._errors import require
from ...models import ClassTokenTransformer
from ...tasks import Retrieval
from ...tasks.presets import Ridges
from .enough_heads import Nets
from .registers import Head, Registers, deep_model, score_of
from .relu_nets import Affine, ReluNet

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
    require(
        task.name == "sum-of-maxima" and len(task.position_sets) == EIGHT and not task.uses_positions,
        f"two layers of two heads are written down for a sum of {EIGHT} maxima over whole sequences, got {task.name} "
        f"with D = {len(task.position_sets)}.",
        what="task",
        given=task.name,
    )
    assert isinstance(task.features, Ridges)
    directions = np.asarray(task.features.directions, float)
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
        first.append(Head(compares, [moved("value", at_first[head], "result", at_first[head]), *moves]))
    for k in both:
        moves = [moved("carried", HEADS * k + head, "result", of_tokens[k][head]) for head in both]
        second.append(Head([(asks, score(followed[k]))], [moved("value", followed[k], "result", followed[k]), *moves]))
    return deep_model(
        _nets(directions, directions[followed[0]] - directions[followed[1]], beta),
        registers,
        [first, second],
        class_token=asks,
        constants=registers.zeros,
        position_table=None,
    )


def _nets(directions: Float[np.ndarray, "D dim"], apart: Float[np.ndarray, " dim"], beta: float) -> Nets:
    """Psi_i = -a_i . x exactly, and the switch g = clip(SWITCH (a_1 - a_2) . x + 1/2) with 1 - g; the readout adds up.

    u = relu(u) - relu(-u) in the encoder, and u = gelu(u) - gelu(-u) in the readout.
    """
    count, dim = directions.shape
    inwards = np.concatenate([np.eye(dim), -np.eye(dim), SWITCH * apart[None], SWITCH * apart[None]])
    bias = np.concatenate([np.zeros(2 * dim), [0.5, -0.5]])
    outwards = np.zeros((count + HEADS, 2 * dim + 2))
    outwards[:count, : 2 * dim] = np.concatenate([-directions, directions], axis=1)
    outwards[count, -2:], outwards[count + 1, -2:] = [1.0, -1.0], [-1.0, 1.0]
    shift = np.concatenate([np.zeros(count), [0.0, 1.0]])
    total = np.ones((1, count))
    adds_up = Affine(np.concatenate([total, -total]), np.zeros(2)), Affine(np.array([[-1.0, 1.0]]), np.zeros(1))
    return Nets(
        encoder=ReluNet((Affine(inwards, bias), Affine(outwards, shift))),
        readout=ReluNet(adds_up),
        beta=beta,
        delta=0.0,
        promised=float("inf"),
        proved=False,
    )
