"""The fields of a spec that say how its heads read, and what is refused of them."""

from typing import Protocol, runtime_checkable

from ..._choices import ATTENTION_KINDS, AttentionKind, require_choice
from ...errors import require, require_count

ATTENTION_FIELDS = ("kv_heads", "window", "causal", "attention", "top_k")
"""All of them, in both kinds of specs."""


@runtime_checkable
class Attends(Protocol):
    """A spec whose heads read by these options.

    `kv_heads` groups of heads share keys and values; None: every head has its own. A query sees `window` tokens; None:
    all of them. `causal`: no later ones. `attention` makes weights of scores, and "top-k" keeps `top_k` of them.
    """

    @property
    def heads(self) -> int: ...
    @property
    def kv_heads(self) -> int | None: ...
    @property
    def window(self) -> int | None: ...
    @property
    def causal(self) -> bool: ...
    @property
    def attention(self) -> AttentionKind: ...
    @property
    def top_k(self) -> int | None: ...


def require_attention(spec: Attends) -> None:
    """Check the fields of a spec that is being made; as many groups as heads become None, so that equal models have
    equal specs.

    Raises `InputError` for a value that is out of range, or that has no use beside the others.
    """
    require_choice("attention", spec.attention, ATTENTION_KINDS)
    require(isinstance(spec.causal, bool), what="causal", given=spec.causal, needed="True or False")
    for name in ("kv_heads", "window", "top_k"):
        if getattr(spec, name) is not None:
            require_count(name, getattr(spec, name))
    if spec.kv_heads is not None:
        divisors = [count for count in range(1, spec.heads + 1) if spec.heads % count == 0]
        require(
            spec.heads % spec.kv_heads == 0,
            f"kv_heads must divide heads, got kv_heads {spec.kv_heads} and heads {spec.heads}; "
            f"use one of {', '.join(map(str, divisors))}.",
            what="kv_heads",
            given=spec.kv_heads,
            needed=f"a divisor of {spec.heads}",
        )
    if spec.kv_heads == spec.heads:
        object.__setattr__(spec, "kv_heads", None)
    kept = 'attention "top-k" needs top_k, the number of tokens that a head reads'
    require((spec.attention != "top-k") or spec.top_k is not None, f"{kept}.", what="top_k attention")
    used = spec.top_k is None or spec.attention == "top-k"
    unused = f'top_k is for attention "top-k" alone, got top_k {spec.top_k} with attention "{spec.attention}".'
    require(used, unused, what="top_k", given=spec.top_k, needed='left out unless attention is "top-k"')


def least_length(spec: Attends) -> int:
    """The fewest tokens that a sequence may have: as many as a window or top-k attention asks for."""
    return max(spec.window or 1, spec.top_k or 1)


def require_tokens(spec: Attends, length: int) -> None:
    """Raise `InputError` where a window, or the number of tokens that a head keeps, is more than there are."""
    for name in ("window", "top_k"):
        given = getattr(spec, name)
        require(
            given is None or given <= length,
            f"{name} must be at most the length of the sequences, {length}, got {given}.",
            what=name,
            given=given,
            needed=f"at most {length}",
        )
