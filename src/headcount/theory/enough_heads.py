"""Theorem 2(1) as a program: with h = D heads of n = 2 numbers, weights written down and their error promised.

Block i of the embedding is (Psi_i(x), r_i(t)): a two-layer net within delta of f_i, and a gate that is 0 on S_i and -G
off it. Head i scores -Psi_i + r_i and reads Psi_i; the readout is a two-layer net of F0. With L0 = sup |grad F0|_1,

    error <= L0 (delta + head error) + error of the readout

where the head error is that of `bounds.head_error`. An F0 that is fitted is known on [0,1]^D only: what the heads read
is shrunk onto it, and delta counts twice. The readout of our models is a GELU net; gelu(k u) / k is within
0.17 / k of relu(u), and k is chosen so that this costs a hundredth of eps.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(1), with a gate of depth G = 2 in place of 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._errors import require
from .._keys import named_generator
from .._precision import in_double
from .._shapes import Target, Tokens
from ..models import ClassTokenSpec, ClassTokenTransformer
from ..models.class_token import Attention, Linear
from ..tasks import Retrieval
from .bounds import Setting, component_accuracy, head_error, sharpness_needed
from .parts import parts_of
from .relu_nets import ReluNet, beside
from .ridges import RidgeSum

GATE = 2.0
GELU_GAP = 0.17
"""sup |gelu(u) - relu(u)| = 0.16997."""
COARSEST = 0.1
"""The largest delta used, however flat the outer map: the gate must stay deeper than the components' range."""


@dataclass(frozen=True, kw_only=True)
class Construction:
    """A model and what is promised of it: no sequence of the cube is answered worse than by `promised`.

    Where `proved`, that is a theorem, given the slopes and curvatures that the ridges state. Otherwise it is an
    estimate: it rests on errors and slopes seen at sample points (`theory/fitted.py`).
    """

    model: ClassTokenTransformer
    eps: float
    promised: float
    proved: bool
    delta: float
    beta: float
    parameters: int
    """M: weights and biases of both feed-forward nets."""


def construct(
    task: Retrieval,
    eps: float,
    *,
    components: tuple[RidgeSum, ...] | None = None,
    outer: RidgeSum | None = None,
) -> Construction:
    """Weights that answer `task` within `eps` everywhere on [0,1]^(length x dim).

    Presets with known parts need nothing more. For others give `components`, `outer` or both, which are compared with
    the task's own at random points; what is not given is fitted, and `promised` is then an estimate.
    """
    require(0 < eps < 1, f"eps must lie between 0 and 1, got {eps!r}.")
    parts = parts_of(task, components=components, outer=outer)
    dim = len(parts.components)
    setting = Setting(
        heads=dim,
        intrinsic_dim=dim,
        length=task.length,
        head_dim=2,
        eps=eps,
        outer_slope=max(parts.outer.steepness, 1e-12),
    )
    beta, delta = sharpness_needed(setting), min(component_accuracy(setting).value or COARSEST, COARSEST)
    # What the heads read leaves [0, 1] by up to delta. Where the outer map may not exist there, the readout shrinks it
    # back, which moves it by up to delta again: half of delta leaves room for both.
    moves = 1 if isinstance(parts.outer, RidgeSum) else 2
    delta /= moves
    encoder = beside([part.net(low=0.0, high=1.0, delta=delta) for part in parts.components])
    readout = parts.outer.net(low=-delta, high=1 + delta, delta=0.49 * eps)
    scale = 100 * GELU_GAP * float(np.abs(readout.layers[1].weight).sum()) / eps + 1.0
    promised = setting.slope * (moves * delta + _worst_head(task, beta, delta)) + 0.49 * eps + 0.01 * eps
    model = _assemble(task, encoder, readout, beta, scale)
    nets = (model.encoder_in, model.encoder_out, model.readout_in, model.readout_out)
    return Construction(
        model=model,
        eps=eps,
        promised=promised,
        proved=parts.proved,
        delta=delta,
        beta=beta,
        parameters=sum(layer.weight.size + layer.bias.size for layer in nets),
    )


def _worst_head(task: Retrieval, beta: float, delta: float) -> float:
    """The head error of the largest set. Psi_i lies in [-delta, 1 + delta]: less of the gate is left, and a wrong token
    may be off by more than 1."""
    errors = [head_error(beta, len(places), task.length, GATE - 2 * delta).value for places in task.position_sets]
    return (1 + 2 * delta) * max(error for error in errors if error is not None)


def _merged(encoder: ReluNet, dim: int) -> ReluNet:
    """The nets of all components on one shared token instead of one copy each."""
    first = encoder.layers[0]
    copies = first.weight.shape[1] // dim
    shared = first.weight.reshape(len(first.bias), copies, dim).sum(axis=1)
    return ReluNet((type(first)(shared, first.bias), *encoder.layers[1:]))


def _assemble(task: Retrieval, encoder: ReluNet, readout: ReluNet, beta: float, scale: float) -> ClassTokenTransformer:
    """The nets and gates in the places of an ordinary model of `models/`."""
    count = len(task.position_sets)
    total = 2 * count
    inwards, outwards = _merged(encoder, task.dim).layers
    embed, shift = _every_second(outwards.weight, total), _every_second(outwards.bias, total)
    gates = np.zeros((task.length, total))
    gates[:, 1::2] = -GATE * ~task.mask
    query, key, value = np.zeros((3, count, 2, total))
    output = np.zeros((total, count, 2))
    for i in range(count):
        query[i, 0, 0], query[i, 1, 0] = -1.0, 1.0
        key[i, 0, 2 * i] = key[i, 1, 2 * i + 1] = 1.0
        value[i, 0, 2 * i] = output[i, i, 0] = 1.0
    # The class token is all ones, so what the heads read arrives plus one; the readout's bias takes it off again.
    read_in, read_out = readout.layers
    widened = np.zeros((len(read_in.bias), total))
    widened[:, :count] = read_in.weight
    weights: dict[str, Any] = {
        "encoder_in": Linear(_leaf(inwards.weight), _leaf(inwards.bias)),
        "encoder_out": Linear(_leaf(embed), _leaf(shift)),
        "position_table": gates,
        "class_token": np.ones(total),
        "attention": (Attention(query=_leaf(query), key=_leaf(key), value=_leaf(value), output=_leaf(output)),),
        "readout_in": Linear(_leaf(scale * widened), _leaf(scale * (read_in.bias - read_in.weight @ np.ones(count)))),
        "readout_out": Linear(_leaf(read_out.weight / scale), _leaf(read_out.bias)),
    }
    spec = ClassTokenSpec(heads=count, head_dim=2, hidden=len(inwards.bias), positions="additive", beta=beta)
    return ClassTokenTransformer(**weights, spec=spec)


def _leaf(array: np.ndarray) -> Any:
    """A NumPy array where a model's weight is declared."""
    return array


def _every_second(rows: np.ndarray, total: int) -> np.ndarray:
    """The rows at places 0, 2, 4, .. of `total`, zeros between: a block's second number is its gate."""
    spread = np.zeros((total, *rows.shape[1:]))
    spread[0::2] = rows
    return spread


def largest_error(
    model: ClassTokenTransformer | Callable[[Tokens], Target],
    task: Retrieval,
    *,
    starts: int = 64,
    steps: int = 200,
    seed: int = 0,
) -> tuple[float, Float[np.ndarray, "length dim"]]:
    """The largest error an ascent from many starts found on the cube, in float64, and the sequence that has it.

    `model` is a class-token transformer or anything that is called with one sequence; weights it holds as a pytree are
    used in float64.
    """
    generator = named_generator(seed, "starts of an adversary")
    tokens = generator.uniform(0, 1, (starts, task.length, task.dim))
    tokens[: starts // 4] = tokens[: starts // 4].round()  # corners, where minima tie
    with jax.enable_x64(True):
        wide_model, wide_task = in_double((model, task))

        def error(x):
            return jnp.abs(wide_model(x) - wide_task.target(x))[0]

        def climb(x):
            def step(i, carried):
                x, best, where = carried
                value, slope = jax.value_and_grad(error)(x)
                best, where = jnp.where(value > best, value, best), jnp.where(value > best, x, where)
                size = 0.1 * 0.97**i  # signs, not sizes: with a large beta slopes span many decades
                return jnp.clip(x + size * jnp.sign(slope), 0.0, 1.0), best, where

            _, best, where = jax.lax.fori_loop(0, steps, step, (x, -jnp.inf, x))
            return best, where

        best, where = jax.jit(jax.vmap(climb))(jnp.asarray(tokens))
        worst = int(jnp.argmax(best))
        return float(best[worst]), np.asarray(where[worst])
