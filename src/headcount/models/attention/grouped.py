"""Heads that share keys and values: grouped-query attention, and multi-query attention where one group serves all.

Head i reads the keys and values of group i mod g. Practice numbers heads the other way, i // (heads / g), which is the
same model with its heads in another order; in this order, adding heads leaves the groups of the others as they are.
"""

from typing import Any

from jaxtyping import Bool, Float

from ..._shapes import AnyArray


def of_heads(per_group: Any, heads: int, *, blocks: int = 1) -> Any:
    """What every head reads, from what every group has along the first axis; itself where each head has its own.

    With several blocks of heads, each has its own groups. NumPy stays NumPy.
    """
    groups, shape = per_group.shape[0], per_group.shape[1:]
    if groups == heads:
        return per_group
    xp = per_group.__array_namespace__()
    shared = xp.reshape(per_group, (blocks, 1, groups // blocks, *shape))
    # Not by an index: the gradient of a broadcast is a sum, in the same order every time.
    return xp.reshape(xp.broadcast_to(shared, (blocks, heads // groups, groups // blocks, *shape)), (heads, *shape))


def trained_heads(
    query: Float[AnyArray, "heads rank total"], output: Float[AnyArray, "total heads head_dim"]
) -> Bool[AnyArray, " heads"]:
    """Which heads are not mere padding, whose W_Q and W_O are all zero.

    A head that is added to others that share its values has values, so its W_O would be trained; see `with_heads`.
    """
    return (query != 0).any(axis=(1, 2)) | (output != 0).any(axis=(0, 2))
