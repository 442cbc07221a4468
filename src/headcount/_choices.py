"""Options that are one of a few words, and how any other word is refused. Nothing here needs JAX."""

from collections.abc import Iterable
from typing import Literal, get_args

from .errors import InputError, did_you_mean

AnsweredAt = Literal["sequence", "tokens", "query"]
"""Where a task is answered: once per sequence, at every token, or at the last token, the query."""
LabelMetric = Literal["error", "balanced"]
"""What head counts are compared by where targets are labels: the share of wrong answers, or its mean over classes."""
Positions = Literal["none", "additive", "concatenated"]
"""How a token's position enters a model: not at all, added to its embedding, or concatenated to it."""
Padding = Literal["zeros", "nan"]
"""What a padding token holds: zeros, as padded texts do, or NaN, where zeros are numbers like any other."""
Norm = Literal["unit", "layer", "none"]
NormPlace = Literal["first", "after"]
"""Where an encoder's norms are: before attention and net, or after the sums around them."""
AttentionKind = Literal["soft", "hard", "linear", "top-k"]
"""How weights come of queries and keys: a softmax, all on the largest score, a kernel, a softmax of the largest."""
Activation = Literal["relu", "gelu"]
Precision = Literal["float32", "bfloat16"]
Start = Literal["random", "continued", "descended"]
"""Where a model's training starts: at random weights, at those of a trained one, or at those less some heads."""
Backend = Literal["reference", "fused"]
"""What computes: plain JAX, or kernels of our own."""
ModelClass = Literal["hard", "bounded"]
"""Classes of models that a floor holds for: hard heads on an alphabet, or bounded values and readout slope."""

ANSWERED_AT: tuple[AnsweredAt, ...] = get_args(AnsweredAt)
LABEL_METRICS: tuple[LabelMetric, ...] = get_args(LabelMetric)
POSITIONS: tuple[Positions, ...] = get_args(Positions)
PADDINGS: tuple[Padding, ...] = get_args(Padding)
NORMS: tuple[Norm, ...] = get_args(Norm)
NORM_PLACES: tuple[NormPlace, ...] = get_args(NormPlace)
ATTENTION_KINDS: tuple[AttentionKind, ...] = get_args(AttentionKind)
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
STARTS: tuple[Start, ...] = get_args(Start)
BACKENDS: tuple[Backend, ...] = get_args(Backend)
MODEL_CLASSES: tuple[ModelClass, ...] = get_args(ModelClass)


def require_choice(name: str, given: object, known: Iterable[str]) -> None:
    """Raise `InputError`, with the nearest known word, unless `given` is one of the words `known`."""
    known = tuple(known)
    if given not in known:  # asked first: the nearest known word takes a while to find
        words = f"one of {', '.join(known)}"
        message = f'{name} must be {words}, got "{given}".{did_you_mean(str(given), known)}'
        raise InputError(message, what=name, given=given, needed=words)
