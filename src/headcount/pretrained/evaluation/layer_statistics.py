"""Moments of one attention layer over the calibration examples: the input of every closed form. No torch."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class LayerStatistics:
    """Means over the calibration tokens, in float64.

    z is the concatenation of all heads' outputs, x the layer's input, the target the original model's attention output
    without the output bias; a 1 is appended to z and x, so that the last row and column hold means.

    `gradients` are the derivatives of an example's loss by a factor before each head's output, at 1; `fisher` is the
    mean over tokens of g g^T, g the derivative of its example's loss by the attention output of the token. A loss that
    is a distance to the original's own output is flat there: both are then of `Loss.probes`, whose mean squared changes
    are twice that loss. Both are None where no backward pass was made.
    """

    moments: Float[np.ndarray, "features_and_1 features_and_1"]
    cross: Float[np.ndarray, "out_width features_and_1"]
    target_square: float
    inputs: Float[np.ndarray, "width_and_1 width_and_1"]
    tokens: int
    gradients: Float[np.ndarray, "examples heads"] | None = None
    fisher: Float[np.ndarray, "out_width out_width"] | None = None
