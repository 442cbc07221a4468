"""Architectures without attention heads, to be compared with those that have them at equal parameters.

pooling      a net for every token, a maximum or mean over tokens, a readout net (DeepSets, max-pooling MLP)
recurrent    a GRU, its last state read out
convolution  residual dilated 1-D convolutions, pooled over tokens, read out
"""

from .convolution import ConvolutionSpec
from .pooling import PoolingSpec
from .recurrent import RecurrentSpec

CONTROLS = (PoolingSpec, RecurrentSpec, ConvolutionSpec)

__all__ = ["CONTROLS", "ConvolutionSpec", "PoolingSpec", "RecurrentSpec"]
