"""From scores to weights, for every kind of attention that has scores."""

import jax
from jaxtyping import Float

from ..._shapes import AnyArray
from .hard import largest_alone
from .options import Attends
from .top_k import largest


def weights_of_scores(scores: Float[AnyArray, "..."], spec: Attends, *, axis: int) -> Float[AnyArray, "..."]:
    """How much of every key is read, from scores along an axis; those of keys that are not read are minus infinity."""
    if spec.attention == "hard":
        return largest_alone(scores, axis=axis)
    if spec.attention == "top-k":
        assert spec.top_k is not None
        scores = largest(scores, spec.top_k, axis=axis)
    return jax.nn.softmax(scores, axis=axis)
