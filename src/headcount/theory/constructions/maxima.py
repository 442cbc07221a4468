"""The nets of a sum of maxima, which are exact: Psi_i = -a_i . x in the encoder, minus their sum in the readout.

u = relu(u) - relu(-u) in the encoder, and u = gelu(u) - gelu(-u) in the readout.
"""

import numpy as np
from jaxtyping import Float

from ...errors import InputError
from ...tasks import Retrieval
from ...tasks.presets import Ridges
from .relu_nets import AffineMap, Nets, ReluNet


def directions_of(task: Retrieval) -> Float[np.ndarray, "D dim"]:
    """a_1 .. a_D of a sum of maxima over whole sequences. Raises `InputError` for another task."""
    if not isinstance(task.features, Ridges) or task.uses_positions:
        raise InputError(
            f"only sum-of-maxima over whole sequences is written down so, got {task.name}.",
            what="task",
            given=task.name,
            needed="sum_of_maxima without windows",
        )
    return np.asarray(task.features.directions, float)


def maxima_nets(directions: Float[np.ndarray, "D dim"], beta: float) -> Nets:
    """Nets without an error of their own. Tokens are unbounded, so that no error can be promised for the heads."""
    count, dim = directions.shape
    total = np.ones((1, count))
    encoder = (
        AffineMap(np.concatenate([np.eye(dim), -np.eye(dim)]), np.zeros(2 * dim)),
        AffineMap(np.concatenate([-directions, directions], axis=1), np.zeros(count)),
    )
    readout = AffineMap(np.concatenate([total, -total]), np.zeros(2)), AffineMap(np.array([[-1.0, 1.0]]), np.zeros(1))
    return Nets(
        encoder=ReluNet(encoder),
        readout=ReluNet(readout),
        beta=beta,
        delta=0.0,
        promised=float("inf"),
        proved=False,
    )
