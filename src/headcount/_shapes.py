"""The vocabulary of array axes, so that one name means one thing in every signature.

length   tokens of a sequence (T)          heads     attention heads (h)
dim      numbers of a token (d)            head_dim  numbers a head reads (n)
outputs  numbers of a target (l)           total     heads * head_dim, the embedding width (E)
D        retrievals a target depends on    rank      numbers of a query and a key (r)
hidden   width of both feed-forward nets (N), or of each layer's
examples, batch, members                   what `vmap` and `lax.map` add outside; never seen by task or model code
"""

from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

Key = PRNGKeyArray
if TYPE_CHECKING:
    AnyArray = jax.Array
else:
    # Weights: NumPy before and after training, JAX during it, and shapes alone where no more is asked for.
    AnyArray = np.ndarray | jax.Array | jax.ShapeDtypeStruct
Tokens = Float[AnyArray, "length dim"]
TokenIds = Int[AnyArray, "length *one"] | Float[AnyArray, " length"]
Target = Float[AnyArray, " outputs"]
TokenTargets = Float[AnyArray, "length outputs"]
