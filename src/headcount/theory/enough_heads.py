"""Theorem 2(1) as a program: with h = D heads of n = 2 numbers, weights written down and their error promised.

Block i of the embedding is (Psi_i(x), r_i(t)): a two-layer net within delta of f_i, and a gate that is 0 on S_i and -G
off it. Head i scores -Psi_i + r_i and reads Psi_i; the readout is a two-layer net of F0. With L0 = sup |grad F0|_1,

    error <= L0 (delta + head error) + error of the readout

where the head error is that of `bounds.head_error`. The readout of our models is a GELU net; gelu(k u) / k is within
0.17 / k of relu(u), and k is chosen so that this costs a hundredth of eps.
Source: Yu et al. (arXiv 2510.06662), Theorem 2(1), with a gate of depth G = 2 in place of 1.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._errors import require
from .._keys import named_generator
from ..models import ClassTokenTransformer, folded
from ..models.transformer import Attention, Linear
from ..tasks import Retrieval
from .bounds import Setting, component_accuracy, head_error, sharpness_needed
from .relu_nets import ReluNet, beside
from .ridges import RidgeSum, parts_of

GATE = 2.0
GELU_GAP = 0.17
"""sup |gelu(u) - relu(u)| = 0.16997."""
COARSEST = 0.1
"""The largest delta used, however flat the outer map: the gate must stay deeper than the components' range."""
PROBES = 200


@dataclass(frozen=True, kw_only=True)
class Construction:
    """A model and what is promised of it: no sequence of the cube is answered worse than by `promised`."""

    model: ClassTokenTransformer
    eps: float
    promised: float
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

    Presets with known parts need nothing more; for others give `components` and `outer`, which are compared with the
    task's own at random tokens.
    """
    require(task.law == "cube", f"{task.name}: Theorem 2(1) speaks of tokens in the cube, its law is {task.law}.")
    if components is None or outer is None:
        components, outer = parts_of(task)
    _check_parts(task, components, outer)
    dim = len(components)
    setting = Setting(
        heads=dim, intrinsic_dim=dim, length=task.length, head_dim=2, eps=eps, outer_slope=max(outer.steepness, 1e-12)
    )
    beta, delta = sharpness_needed(setting), min(component_accuracy(setting).value or COARSEST, COARSEST)
    encoder = beside([part.net(low=0.0, high=1.0, delta=delta) for part in components])
    readout = outer.net(low=-delta, high=1 + delta, delta=0.49 * eps)
    scale = 100 * GELU_GAP * float(np.abs(readout.layers[1].weight).sum()) / eps + 1.0
    promised = setting.slope * (delta + _worst_head(task, beta, delta)) + 0.49 * eps + 0.01 * eps
    model = _assemble(task, encoder, readout, beta, scale)
    nets = (model.encoder_in, model.encoder_out, model.readout_in, model.readout_out)
    return Construction(
        model=model,
        eps=eps,
        promised=promised,
        delta=delta,
        beta=beta,
        parameters=sum(layer.weight.size + layer.bias.size for layer in nets),
    )


def _worst_head(task: Retrieval, beta: float, delta: float) -> float:
    """The head error of the largest set. Psi_i lies in [-delta, 1 + delta]: less of the gate is left, and a wrong token
    may be off by more than 1."""
    errors = [head_error(beta, len(places), task.length, GATE - 2 * delta).value for places in task.position_sets]
    return (1 + 2 * delta) * max(error for error in errors if error is not None)


def _check_parts(task: Retrieval, components: tuple[RidgeSum, ...], outer: RidgeSum) -> None:
    count = task.intrinsic_dim
    require(len(components) == count, f"{task.name} has {count} components, {len(components)} were given.")
    generator = named_generator(0, "probed tokens")
    tokens = generator.uniform(0, 1, (PROBES, task.dim))
    given = np.array([[part(token) for part in components] for token in tokens])
    own = np.asarray(jax.vmap(task.features)(jnp.asarray(tokens, jnp.float32)))
    for i in range(len(components)):
        gap = float(np.abs(given[:, i] - own[:, i]).max())
        require(gap < 1e-4, f"{task.name}: the component f_{i + 1} given is not the task's, they differ by {gap:.2g}.")
        least, most = float(given[:, i].min()), float(given[:, i].max())
        require(
            least >= -1e-9 and most <= 1 + 1e-9,
            f"{task.name}: Theorem 2(1) wants components in [0, 1]; f_{i + 1} goes from {least:.3g} to {most:.3g}.",
        )
    theirs = np.asarray(jax.vmap(task.outer)(jnp.asarray(given, jnp.float32))).reshape(PROBES, -1)
    require(theirs.shape[1] == 1, f"{task.name}: this builds targets of one number, the task has {theirs.shape[1]}.")
    gap = float(np.abs(theirs[:, 0] - [outer(z) for z in given]).max())
    require(gap < 1e-4, f"{task.name}: the outer map given is not the task's, they differ by {gap:.2g}.")


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
    return ClassTokenTransformer(**weights, concatenated=False, beta=beta)


def _leaf(array: np.ndarray) -> Any:
    """A NumPy array where a model's weight is declared."""
    return array


def _every_second(rows: np.ndarray, total: int) -> np.ndarray:
    """The rows at places 0, 2, 4, .. of `total`, zeros between: a block's second number is its gate."""
    spread = np.zeros((total, *rows.shape[1:]))
    spread[0::2] = rows
    return spread


def largest_error(
    model: ClassTokenTransformer, task: Retrieval, *, starts: int = 64, steps: int = 200, seed: int = 0
) -> tuple[float, Float[np.ndarray, "length dim"]]:
    """The largest error an ascent from many starts found on the cube, in float64, and the sequence that has it."""
    generator = named_generator(seed, "starts of an adversary")
    tokens = generator.uniform(0, 1, (starts, task.length, task.dim))
    tokens[: starts // 4] = tokens[: starts // 4].round()  # corners, where minima tie
    with jax.enable_x64(True):
        wide = jax.tree.map(
            lambda leaf: jnp.asarray(leaf, jnp.float64) if eqx.is_inexact_array_like(leaf) else leaf, (model, task)
        )

        def error(x):
            return jnp.abs(folded.predict(wide[0], x) - wide[1].target(x))[0]

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
