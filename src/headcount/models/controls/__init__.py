"""Architectures without attention heads, to be compared with those that have them at equal parameters.

pooling      a net for every token, a maximum or mean over tokens, a readout net (DeepSets, max-pooling MLP)
recurrent    a GRU, its last state read out
convolution  residual dilated 1-D convolutions, pooled over tokens, read out
"""

from .base import AbstractControl, AbstractControlSpec
from .convolution import Convolution, ConvolutionSpec
from .pooling import Pooling, PoolingSpec
from .recurrent import Recurrent, RecurrentSpec

CONTROLS = (PoolingSpec, RecurrentSpec, ConvolutionSpec)

__all__ = [
    "CONTROLS",
    "AbstractControl",
    "AbstractControlSpec",
    "Convolution",
    "ConvolutionSpec",
    "Pooling",
    "PoolingSpec",
    "Recurrent",
    "RecurrentSpec",
]
