"""The class-token transformer's weights, and how they are drawn.

    x^(t) = W2 relu(W1 x(t) + b1) + b2                                            encoder, E numbers a token
    y     = W4 gelu(W3 (c0 + W_O concat_i [sum_t a_i(t) W_V,i x^(t)]) + b3) + b4   read at the class token
    a_i   = softmax_t(beta <W_Q,i c0, W_K,i x^(t)>)

With L > 1 layers the same attention, residual included, first updates every token and the class token L - 1 times;
there are no feed-forward nets between, so that the parameters the papers count (M) stay those of the two outer nets.
Source: Yu et al. (arXiv 2510.06662), section 3; the depth rule is our choice where the paper is silent.

Nothing here is compiled: weights are drawn, resized and rescaled as NumPy arrays, or stay JAX where they are.
"""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from .._keys import named_generator
from .._shapes import AnyArray
from .spec import ClassTokenSpec

POSITION_CODE_DIM = 8
"""Numbers in a concatenated position code."""
CLASS_TOKEN_SCALE = 0.1
POSITION_SCALE = 0.1


class Linear(eqx.Module):
    weight: Float[AnyArray, "after before"]
    bias: Float[AnyArray, " after"]

    def __call__(self, x: Float[AnyArray, " before"]) -> Float[AnyArray, " after"]:
        return self.weight @ x + self.bias


class Attention(eqx.Module):
    """W_Q, W_K, W_V of every head, and W_O over their concatenation."""

    query: Float[AnyArray, "heads rank total"]
    key: Float[AnyArray, "heads rank total"]
    value: Float[AnyArray, "heads head_dim total"]
    output: Float[AnyArray, "total heads head_dim"]


class ClassTokenTransformer(eqx.Module):
    """The weights of one model. What it computes is `textbook.predict`, and `folded.predict` faster."""

    encoder_in: Linear
    encoder_out: Linear
    position_table: Float[AnyArray, "length code"] | None
    class_token: Float[AnyArray, " total"]
    attention: tuple[Attention, ...]
    readout_in: Linear
    readout_out: Linear
    concatenated: bool = eqx.field(static=True)
    beta: float = eqx.field(static=True)


def init(spec: ClassTokenSpec, seed: int, *, length: int, dim: int, outputs: int) -> ClassTokenTransformer:
    """Weights for sequences of `length` tokens, drawn as PyTorch draws its layers: uniform within 1/sqrt(fan-in)."""
    total, hidden = spec.total_dim, spec.hidden
    concatenated = spec.positions == "concatenated"
    code = {"none": 0, "additive": total, "concatenated": POSITION_CODE_DIM}[spec.positions]

    def uniform(*names: str | int, shape: tuple[int, ...], fan_in: int) -> Any:
        drawn = named_generator(seed, "initial weights", *names).uniform(-1, 1, shape)
        return (drawn * fan_in**-0.5).astype(np.float32)

    def normal(name: str, shape: tuple[int, ...], scale: float) -> Any:
        return (scale * named_generator(seed, "initial weights", name).standard_normal(shape)).astype(np.float32)

    def linear(name: str, before: int, after: int) -> Linear:
        return Linear(
            uniform(name, "weight", shape=(after, before), fan_in=before),
            uniform(name, "bias", shape=(after,), fan_in=before),
        )

    def attention(layer: int) -> Attention:
        compared, carried = (spec.heads, spec.rank, total), (spec.heads, spec.head_dim, total)
        outwards = (total, spec.heads, spec.head_dim)
        return Attention(
            query=uniform("attention", layer, "query", shape=compared, fan_in=total),
            key=uniform("attention", layer, "key", shape=compared, fan_in=total),
            value=uniform("attention", layer, "value", shape=carried, fan_in=total),
            output=uniform("attention", layer, "output", shape=outwards, fan_in=total),
        )

    return ClassTokenTransformer(
        encoder_in=linear("encoder in", dim + (code if concatenated else 0), hidden),
        encoder_out=linear("encoder out", hidden, total),
        position_table=normal("positions", (length, code), POSITION_SCALE) if code else None,
        class_token=normal("class token", (total,), CLASS_TOKEN_SCALE),
        attention=tuple(attention(layer) for layer in range(spec.layers)),
        readout_in=linear("readout in", total, hidden),
        readout_out=linear("readout out", hidden, outputs),
        concatenated=concatenated,
        beta=spec.beta,
    )


def resize_heads(model: ClassTokenTransformer, heads: int) -> ClassTokenTransformer:
    """The model with `heads` heads: new ones have zero weights, surplus ones are cut off from the end.

    Added heads change nothing, and training keeps them at zero: every added weight acts only through a product with
    another added weight, so the gradient of all of them vanishes there. Models of several head counts can so share one
    program.
    """
    head_dim = model.attention[0].value.shape[1]
    sizes = {"heads": heads, "total": heads * head_dim}

    def fit(array: AnyArray, *axes: str) -> AnyArray:
        for axis, name in enumerate(axes):
            if name in sizes:
                array = array[(slice(None),) * axis + (slice(sizes[name]),)]
                missing = list(array.shape)
                missing[axis] = sizes[name] - array.shape[axis]
                if missing[axis]:
                    xp = array.__array_namespace__()
                    array = xp.concat([array, xp.zeros(missing, dtype=array.dtype)], axis=axis)
        return array

    def fit_attention(layer: Attention) -> Attention:
        compared, carried, outwards = (
            ("heads", "rank", "total"),
            ("heads", "head_dim", "total"),
            ("total", "heads", "head_dim"),
        )
        return Attention(
            query=fit(layer.query, *compared),
            key=fit(layer.key, *compared),
            value=fit(layer.value, *carried),
            output=fit(layer.output, *outwards),
        )

    table = model.position_table
    return ClassTokenTransformer(
        encoder_in=model.encoder_in,
        encoder_out=Linear(fit(model.encoder_out.weight, "total", "hidden"), fit(model.encoder_out.bias, "total")),
        position_table=table if table is None or model.concatenated else fit(table, "length", "total"),
        class_token=fit(model.class_token, "total"),
        attention=tuple(fit_attention(layer) for layer in model.attention),
        readout_in=Linear(fit(model.readout_in.weight, "hidden", "total"), model.readout_in.bias),
        readout_out=model.readout_out,
        concatenated=model.concatenated,
        beta=model.beta,
    )


def in_raw_units(
    model: ClassTokenTransformer,
    token_mean: Float[AnyArray, " dim"],
    token_scale: Float[AnyArray, " dim"],
    target_mean: Float[AnyArray, " outputs"],
    target_scale: Float[AnyArray, " outputs"],
) -> ClassTokenTransformer:
    """A model trained on standardised tokens and targets, rewritten to read and answer in the task's own units."""
    dim = token_mean.shape[0]
    weight = model.encoder_in.weight
    content = weight[:, :dim] / token_scale
    xp = weight.__array_namespace__()
    encoder_in = Linear(xp.concat([content, weight[:, dim:]], axis=1), model.encoder_in.bias - content @ token_mean)
    readout_out = Linear(
        model.readout_out.weight * target_scale[:, None], model.readout_out.bias * target_scale + target_mean
    )
    return eqx.tree_at(lambda m: (m.encoder_in, m.readout_out), model, (encoder_in, readout_out))
