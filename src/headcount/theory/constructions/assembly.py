"""Weights written down as NumPy arrays, put into the ordinary modules of `models`."""

from typing import Any

import numpy as np
from jaxtyping import Float

from ...models import ClassTokenSpec, ClassTokenTransformer
from ...models.class_token import Attention, Linear
from .relu_nets import ReluNet


def one_layer_model(
    *,
    encoder: ReluNet,
    readout: ReluNet,
    position_table: Float[np.ndarray, "length code"],
    class_token: Float[np.ndarray, " total"],
    query: Float[np.ndarray, "heads rank total"],
    key: Float[np.ndarray, "heads rank total"],
    value: Float[np.ndarray, "heads head_dim total"],
    output: Float[np.ndarray, "total heads head_dim"],
    concatenated: bool,
    beta: float,
) -> ClassTokenTransformer:
    """A class-token transformer of one attention layer; `encoder` and `readout` are nets of two layers each."""
    encoder_in, encoder_out = linear_layers(encoder)
    readout_in, readout_out = linear_layers(readout)
    return ClassTokenTransformer(
        encoder_in=encoder_in,
        encoder_out=encoder_out,
        position_table=_leaf(position_table),
        class_token=_leaf(class_token),
        attention=(Attention(query=_leaf(query), key=_leaf(key), value=_leaf(value), output=_leaf(output)),),
        readout_in=readout_in,
        readout_out=readout_out,
        spec=ClassTokenSpec(
            heads=len(value),
            head_dim=value.shape[1],
            rank=query.shape[1],
            hidden=len(encoder_in.bias),
            positions="concatenated" if concatenated else "additive",
            beta=beta,
        ),
    )


def linear_layers(net: ReluNet) -> tuple[Linear, ...]:
    """The affine maps of a net as layers of `models`, in float64."""
    return tuple(Linear(_leaf(layer.weight), _leaf(layer.bias)) for layer in net.layers)


def _leaf(array: np.ndarray) -> Any:
    """A NumPy array where `models` declares a JAX one, which would round it to float32."""
    return array
