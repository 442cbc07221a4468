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
from typing import Any

import numpy as np

from ...errors import require
from ...tasks import Retrieval
from .enough_heads import Construction, construct, one_layer_model
from .relu_nets import Affine, ReluNet, RidgeSum


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
    built = construct(task, eps, components=components, outer=outer)
    apart = built.model
    total = count * head_dim
    psi, bias = np.asarray(apart.encoder_out.weight)[0::2], np.asarray(apart.encoder_out.bias)[0::2]
    read, shift, gates = np.zeros((total, psi.shape[1])), np.zeros(total), np.zeros((task.length, total))
    read[:count], read[count : 2 * count] = psi, -psi
    shift[:count], shift[count : 2 * count] = bias, -bias
    gates[:, count : 2 * count] = np.asarray(apart.position_table)[:, 1::2]
    query, output = np.zeros((count, head_dim, total)), np.zeros((total, count, head_dim))
    key, value = np.zeros((2, 1, head_dim, total))
    for i in range(count):
        query[i, i, 0] = 1.0  # the class token is all ones
        key[0, i, count + i] = value[0, i, i] = output[i, i, i] = 1.0
    widened = np.zeros((len(apart.readout_in.bias), total))
    widened[:, :count] = np.asarray(apart.readout_in.weight)[:, :count]
    first, last = apart.encoder_in, apart.readout_out
    readout = (Affine(widened, _exact(apart.readout_in.bias)), Affine(_exact(last.weight), _exact(last.bias)))
    model = one_layer_model(
        encoder=ReluNet((Affine(_exact(first.weight), _exact(first.bias)), Affine(read, shift))),
        readout=ReluNet(readout),
        position_table=gates,
        class_token=np.ones(total),
        attention={"query": query, "key": key, "value": value, "output": output},
        concatenated=False,
        beta=built.beta,
    )
    nets = (model.encoder_in, model.encoder_out, model.readout_in, model.readout_out)
    return replace(built, model=model, parameters=sum(layer.weight.size + layer.bias.size for layer in nets))


def _exact(array: Any) -> np.ndarray:
    return np.asarray(array, np.float64)
