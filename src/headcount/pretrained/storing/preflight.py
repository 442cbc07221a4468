"""Whether a stock class stores a changed model, and which: asked before anything is computed or written. No torch.

A class stores another head count where its config has a `head_dim` next to the count, as a field or as an extra key.
One count stands for all layers, so layers of unequal counts are padded with zero heads. Where nothing smaller can be
stored, heads are zeroed in the same shapes: any class loads that, and nothing is saved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...errors import InputError, require
from ..layers.architectures import FAMILIES, Family
from ..layers.weights import Shaped, equal_step

TENSOR_PARALLEL = (2, 4, 8)
"""Numbers of devices that a serving stack commonly splits the heads over."""
KERNEL_MULTIPLE, KERNEL_MOST = 8, 256
"""Flash attention takes head_dims that are multiples of the first, up to the second."""

HEADS = ("num_attention_heads", "n_heads", "n_head")
WIDTHS = ("hidden_size", "n_embd", "dim")
"""What configs call the number of heads and the width."""
NOTHING_SAVED = "this saves no parameters, no memory and no time"
CHECKED_FACTORS = ("phi3",)
"""Classes that insist on one rotary factor per pair of a head of width / heads."""

Stored = Literal["small", "padded", "zeroed"]


@dataclass(frozen=True)
class AttentionShape:
    """Heads, key heads and head_dim of a layer."""

    heads: int
    key_heads: int
    head_dim: int


@dataclass(frozen=True)
class Preflight:
    """What a stock class can store of a request.

    `host` is the model type that stores it, `shape` the one shape of all its layers, `config` the keys of its config
    that change, `left_out` the keys that go. `sentences` say why not, or what it costs; the first is the verdict.
    """

    possible: bool
    host: str
    stored: Stored
    sentences: tuple[str, ...]
    shape: AttentionShape
    config: Mapping[str, Any]
    left_out: tuple[str, ...] = ()


def preflight(config: Any, layers: Sequence[Shaped], *, zeroed: bool = False) -> Preflight:
    """Say what a stock class can store of layers of these shapes; nothing is raised (see `require_possible`).

    `config` is the original's, as a mapping (config.json) or as transformers' object. `zeroed` asks for the original's
    shapes, with the removed heads zero.

    Example:
        >>> llama = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8}
        >>> preflight(llama, [AttentionShape(heads=5, key_heads=5, head_dim=8)] * 2).host
        'mistral'
    """
    config = as_mapping(config)
    original = original_shape(config)
    if zeroed:
        sentence = f"heads are zeroed in the shapes of the original ({described(original)}): {NOTHING_SAVED}."
        return Preflight(True, config["model_type"], "zeroed", (sentence,), original, {})
    shape = common_shape(layers)
    rule = FAMILIES.get(config["model_type"], Family(model_type=config["model_type"]))
    problem = _impossible(rule, config, original, shape)
    if problem:
        return Preflight(False, rule.model_type, "zeroed", (problem,), original, {})
    host, changes, left_out = _host(rule, config, original, shape)
    sentences = [_verdict(rule.model_type, host, original, shape)]
    unequal = len({(layer.heads, layer.key_heads) for layer in layers}) > 1
    if unequal:
        sentences.append(_padding(layers, shape, original))
    sentences += _warnings(original, shape)
    oldest = FAMILIES.get(host, rule).oldest
    if oldest and shape != original:
        sentences.append(f"it loads with transformers {oldest} and newer.")
    return Preflight(True, host, "padded" if unequal else "small", tuple(sentences), shape, changes, left_out)


def require_possible(check: Preflight) -> Preflight:
    """Return the verdict, or raise InputError with its first sentence where nothing stores the request."""
    if not check.possible:
        raise InputError(check.sentences[0])
    return check


def common_shape(layers: Sequence[Shaped]) -> AttentionShape:
    """The smallest shape that every layer can be padded to: the most key heads, and the most heads per key head."""
    key_heads = max(layer.key_heads for layer in layers)
    share = max(layer.heads // layer.key_heads for layer in layers)
    return AttentionShape(key_heads * share, key_heads, layers[0].head_dim)


def original_shape(config: Any) -> AttentionShape:
    config = as_mapping(config)
    heads = next(config[name] for name in HEADS if name in config)
    key_heads = config.get("num_key_value_heads") or heads
    return AttentionShape(heads, key_heads, config.get("head_dim") or width_of(config) // heads)


def width_of(config: Mapping[str, Any]) -> int:
    return next(config[name] for name in WIDTHS if name in config)


def as_mapping(config: Any) -> Mapping[str, Any]:
    return config if isinstance(config, Mapping) else config.to_dict()


def _impossible(rule: Family, config: Mapping[str, Any], original: AttentionShape, shape: AttentionShape) -> str:
    """Say why no stock class stores this shape and what would work; "" where one does."""
    kind, narrowed = rule.model_type, shape.head_dim != original.head_dim
    divided = f"{kind} has no head_dim in its config: it is always width / heads"
    others = "remove heads or share keys instead (headcount prune, headcount group)."
    if rule.head_dim == "none" and narrowed:
        return (
            f"{divided}, here {width_of(config)} / {original.heads} = {original.head_dim}. A head_dim of "
            f"{shape.head_dim} cannot be stored; headcount inspect still says which rank each head needs."
        )
    if rule.head_dim == "none" and shape.heads != original.heads:
        return (
            f"{divided}, so no class of transformers stores this model with {described(shape)}. Add --zeroed to write "
            f"the removed heads as zeros in the same shapes; {NOTHING_SAVED}."
        )
    if not rule.key_heads and shape.key_heads != shape.heads:
        return (
            f"{kind} stores one key head per head, so {shape.heads} heads cannot share {shape.key_heads} key heads; "
            f"remove heads instead (headcount prune)."
        )
    if rule.normed and narrowed:
        return (
            f"{kind} normalises queries and keys over head_dim {original.head_dim}, so a head_dim of {shape.head_dim} "
            f"is another function; {others}"
        )
    if rule.rotary and shape.head_dim % 2:
        return f"{kind} rotates pairs of dimensions, so head_dim must be even, got {shape.head_dim}."
    if rule.rotary and narrowed and (why := _fixed_frequencies(config)):
        return f"{kind} cannot store the rotary frequencies of a head_dim of {shape.head_dim}: {why}; {others}"
    # Another class computes the same where there are no biases.
    biased = config.get("attention_bias") or config.get("mlp_bias") or (config.get("pretraining_tp") or 1) > 1
    if rule.refuses(shape.heads, width_of(config)) and (biased or not rule.other_host):
        works = [heads for heads in storable_counts(original) if width_of(config) % heads == 0]
        why = f" and {rule.other_host} has no biases" if rule.other_host else ""
        return (
            f"{kind} refuses {shape.heads} heads because its width {width_of(config)} is not a multiple{why}; "
            f"head counts that it stores: {_listed_counts(works)}; or add --zeroed to write the removed "
            f"heads as zeros in the same shapes; {NOTHING_SAVED}."
        )
    return ""


def _fixed_frequencies(config: Mapping[str, Any]) -> str:
    """Say why a config cannot name the frequencies of a smaller head; "" where it can."""
    rope = config.get("rope_parameters") or {}
    kind = rope.get("rope_type", "default")
    if config["model_type"] in CHECKED_FACTORS:
        return "its class checks their number against width / heads"
    if kind in ("dynamic", "longrope"):
        return f"those of kind {kind} change with the length"
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        return "only a part of its head is rotated"
    return ""


def _host(
    rule: Family, config: Mapping[str, Any], original: AttentionShape, shape: AttentionShape
) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """The model type that stores a shape, what changes in the config, and which keys go."""
    if shape == original:
        return rule.model_type, {}, ()
    changes: dict[str, Any] = {"num_attention_heads": shape.heads}
    if rule.head_dim != "none":
        changes["head_dim"] = shape.head_dim
    if rule.key_heads:
        changes["num_key_value_heads"] = shape.key_heads
    if rule.other_host is None or not rule.refuses(shape.heads, width_of(config)):
        return rule.model_type, changes, ()
    changes |= {"model_type": rule.other_host, "sliding_window": None}
    return rule.other_host, changes, ("attention_bias", "mlp_bias", "pretraining_tp")


def _verdict(kind: str, host: str, original: AttentionShape, shape: AttentionShape) -> str:
    if shape == original:
        return f"{kind} keeps its shapes: {described(shape)}."
    other = "" if host == kind else f", as the class {host}, which computes the same and takes any head count"
    return f"{kind} stores {described(shape)} in place of {described(original)}{other}."


def _padding(layers: Sequence[Shaped], shape: AttentionShape, original: AttentionShape) -> str:
    asked, stored = sum(layer.heads for layer in layers), shape.heads * len(layers)
    counts = sorted({layer.heads for layer in layers})
    sentence = (
        f"one head count stands for all layers, and these keep {_listed_counts(counts)}: padded with zero heads to "
        f"{shape.heads}, {stored - asked} of the {stored} stored heads are zero"
    )
    if shape.heads >= original.heads:
        sentence += f"; as many heads are stored as the original has, so {NOTHING_SAVED}"
    return f"{sentence}."


def _warnings(original: AttentionShape, shape: AttentionShape) -> list[str]:
    """Warn of what loads but may be refused or slow elsewhere, where the original was not."""
    misfits = [n for n in TENSOR_PARALLEL if not _splits(shape, n) and _splits(original, n)]
    sentences = []
    if misfits:
        sentences.append(
            f"warning: {_counted(shape)} cannot be split evenly over {_listed_counts(misfits)} devices (tensor "
            "parallelism); the original's can."
        )
    if not _flash(shape) and _flash(original):
        sentences.append(
            f"warning: flash attention takes a head_dim that is a multiple of {KERNEL_MULTIPLE} and at most "
            f"{KERNEL_MOST}, not {shape.head_dim}; other attention kernels are used."
        )
    return sentences


def _splits(shape: AttentionShape, devices: int) -> bool:
    return shape.heads % devices == 0 and shape.key_heads % devices == 0


def _flash(shape: AttentionShape) -> bool:
    return shape.head_dim % KERNEL_MULTIPLE == 0 and shape.head_dim <= KERNEL_MOST


def described(shape: AttentionShape) -> str:
    """A shape in words: "6 heads (3 key heads) of head_dim 64"."""
    return f"{_counted(shape)} of head_dim {shape.head_dim}"


def _counted(shape: AttentionShape) -> str:
    keys = "" if shape.key_heads == shape.heads else f" ({shape.key_heads} key head{'s' * (shape.key_heads != 1)})"
    return f"{shape.heads} head{'s' * (shape.heads != 1)}{keys}"


def _listed_counts(values: Any) -> str:
    return ", ".join(map(str, sorted(values)))


def storable_counts(original: Shaped) -> list[int]:
    """Smaller head counts that leave every key head as many heads."""
    step = equal_step(original)
    return list(range(step, original.heads, step))


def requested(original: Shaped, *, heads: int | None = None, key_heads: int | None = None, head_dim: int | None = None):
    """The shape of a request for every layer; InputError where it is not smaller or the key heads come out unequal."""
    shape = AttentionShape(original.heads, original.key_heads, original.head_dim)
    if heads is not None:
        works, alone = storable_counts(shape), shape.heads == shape.key_heads
        require(
            heads in works, what="keep", given=heads, needed=f"one of {_listed_counts(works)} ({_counted(shape)} now)"
        )
        return replace(shape, heads=heads, key_heads=heads if alone else shape.key_heads)
    if key_heads is not None:
        works = [count for count in range(1, shape.key_heads) if shape.key_heads % count == 0]
        needed = (
            f"one of {_listed_counts(works)} ({_counted(shape)} now)"
            if works
            else f"below {shape.key_heads}, which is the fewest"
        )
        require(key_heads in works, what="key_heads", given=key_heads, needed=needed)
        return replace(shape, key_heads=key_heads)
    require(
        head_dim is not None and 1 <= head_dim < shape.head_dim,
        what="head_dim",
        given=head_dim,
        needed=f"at least 1 and below {shape.head_dim}",
    )
    return replace(shape, head_dim=head_dim)
