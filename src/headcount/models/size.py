"""How large a model is and what it costs, as functions of its spec."""

from .spec import ClassTokenSpec
from .transformer import POSITION_CODE_DIM


def feed_forward_parameters(spec: ClassTokenSpec, *, dim: int, outputs: int = 1) -> int:
    """M as the first paper counts it: weights and biases of the encoder net P and the readout net F."""
    total, hidden = spec.total_dim, spec.hidden
    before = dim + (POSITION_CODE_DIM if spec.positions == "concatenated" else 0)
    encoder = hidden * before + hidden + total * hidden + total
    readout = hidden * total + hidden + outputs * hidden + outputs
    return encoder + readout


def total_parameters(spec: ClassTokenSpec, *, length: int, dim: int, outputs: int = 1) -> int:
    """Every trained number: M, the four attention matrices of each layer, the class token, the position table."""
    total = spec.total_dim
    code = {"none": 0, "additive": total, "concatenated": POSITION_CODE_DIM}[spec.positions]
    attention = 2 * spec.heads * (spec.rank + spec.head_dim) * total * spec.layers
    return feed_forward_parameters(spec, dim=dim, outputs=outputs) + attention + total + length * code


def forward_flops(spec: ClassTokenSpec, *, length: int, dim: int, outputs: int = 1) -> int:
    """Multiplications and additions of the folded forward pass on one example, matrix products only.

    The per-batch work (u_i, W_V,i W2) is left out: it is shared by all examples of a batch.
    """
    heads, total, hidden, compared = spec.heads, spec.total_dim, spec.hidden, spec.heads * spec.rank
    readout = 2 * hidden * total + 2 * outputs * hidden
    encoder_in = 2 * length * dim * hidden
    if spec.layers == 1:
        attention = 4 * length * hidden * heads + 2 * total * hidden + 2 * total * total
        if spec.positions == "additive":
            attention += 2 * length * total
        return encoder_in + attention + readout
    if spec.positions == "concatenated":
        encoder_in += 2 * length * POSITION_CODE_DIM * hidden
    embedding = encoder_in + 2 * length * hidden * total
    self_attention = 4 * length * total * (compared + total) + 2 * length * length * (compared + total)
    one_query = 4 * length * heads * total + 4 * compared * total + 4 * total * total
    first_query = 4 * compared * total  # the first layer's class token is the same for every example
    return embedding + (spec.layers - 1) * self_attention + spec.layers * one_query - first_query + readout


def textbook_flops(spec: ClassTokenSpec, *, length: int, dim: int, outputs: int = 1) -> int:
    """The same count for the textbook layer, where all T + 1 tokens are queries, keys and values."""
    total, hidden, compared = spec.total_dim, spec.hidden, spec.heads * spec.rank
    tokens = length + 1
    embedding = 2 * length * (dim * hidden + hidden * total)
    attention = 4 * tokens * total * (compared + total) + 2 * tokens * tokens * (compared + total)
    return embedding + spec.layers * attention + 2 * hidden * total + 2 * outputs * hidden
