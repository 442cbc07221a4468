"""What the engine asks of a model, whichever kind it is: the class-token transformer or the wide encoder."""

from typing import Any

from .._shapes import Key, Target, Tokens, TokenTargets
from . import folded
from .encoder import Encoder, answer, encoder_flops, encoder_parameters, init_encoder
from .encoder_spec import EncoderSpec
from .size import forward_flops, total_parameters
from .spec import ClassTokenSpec
from .transformer import ClassTokenTransformer, init, resize_heads

AnySpec = ClassTokenSpec | EncoderSpec
AnyModel = ClassTokenTransformer | Encoder


def spec_from_dict(content: dict[str, Any]) -> AnySpec:
    """The spec whose `as_dict()` this is."""
    if content.get("kind") == "encoder":
        return EncoderSpec.from_dict(content)
    return ClassTokenSpec(**content)


def init_model(spec: AnySpec, seed: int, *, length: int, dim: int, outputs: int) -> AnyModel:
    """Initial weights, a function of spec and seed."""
    make = init if isinstance(spec, ClassTokenSpec) else init_encoder
    return make(spec, seed, length=length, dim=dim, outputs=outputs)  # type: ignore[arg-type]


def predict(model: AnyModel, tokens: Tokens, key: Key | None = None) -> Target | TokenTargets:
    """The answer for one sequence; a key draws what training drops, where the model drops anything."""
    return folded.predict(model, tokens) if isinstance(model, ClassTokenTransformer) else answer(model, tokens, key)


def parameters(spec: AnySpec, *, length: int, dim: int, outputs: int) -> int:
    """Every trained number."""
    count = total_parameters if isinstance(spec, ClassTokenSpec) else encoder_parameters
    return count(spec, length=length, dim=dim, outputs=outputs)  # type: ignore[arg-type]


def flops(spec: AnySpec, *, length: int, dim: int, outputs: int) -> int:
    """Multiplications and additions of one forward pass on one sequence."""
    count = forward_flops if isinstance(spec, ClassTokenSpec) else encoder_flops
    return count(spec, length=length, dim=dim, outputs=outputs)  # type: ignore[arg-type]


def activations(spec: AnySpec, *, length: int, dim: int) -> int:
    """Numbers that one sequence leaves for its gradient, roughly."""
    if isinstance(spec, EncoderSpec):
        a_token = 6 * spec.stream_dim + 3 * spec.hidden + 3 * spec.total_heads * (2 * spec.rank + spec.head_dim)
        return length * dim + spec.layers * length * (a_token + 3 * length * spec.total_heads)
    at_class_token = 4 * spec.total_dim
    if spec.layers == 1:
        return length * (dim + 4 * spec.hidden + 6 * spec.heads) + at_class_token
    per_layer = 10 * spec.total_dim + 4 * spec.heads * length
    return length * (dim + 4 * spec.hidden + (spec.layers - 1) * per_layer) + at_class_token


def with_heads(model: AnyModel, heads: int) -> AnyModel:
    """The model padded to, or cut back to, a head count that a program is made for; encoders stay as they are."""
    return resize_heads(model, heads) if isinstance(model, ClassTokenTransformer) else model


def reads_raw_units(spec: AnySpec) -> bool:
    """Whether tokens and targets go in as they are: an encoder without maps of its own lives on the task's sphere."""
    return isinstance(spec, EncoderSpec)
