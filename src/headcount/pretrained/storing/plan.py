"""What a change makes of a model's layers: a value that is saved, applied, written. No torch at import."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...errors import InputError, require
from ...report.files import write_whole
from ..layers.weights import HeadWeights
from .preflight import LayerShape, Preflight, common_shape, described, preflight

if TYPE_CHECKING:
    from torch import nn

FORMAT = 1
Kind = Literal["prune", "group", "shrink"]


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The layers of a changed model.

    `layers` is the small form: only what is kept. `masked` is the same function in the original's shapes, which is what
    losses are measured on; a plan without it (None) can only be stored small. Both are as they were before a recovery,
    which trains the model that `apply` makes. `kept` lists the original's heads that stay, by
    layer; `pairs` the rotary pairs that stay where head_dim was lowered. `measured` holds numbers for the model card.
    """

    kind: Kind
    source_fingerprint: str
    layers: tuple[HeadWeights, ...]
    words: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    masked: tuple[HeadWeights, ...] | None = None
    kept: tuple[tuple[int, ...], ...] | None = None
    pairs: tuple[int, ...] | None = None
    source: str = ""

    def __repr__(self) -> str:
        return f"Plan({self.kind} {self.source or 'a model in memory'}: {self.words or described(self.shape)})"

    @property
    def shape(self) -> LayerShape:
        """The one shape that all layers fit into."""
        return common_shape(self.layers)

    def preflight(self, config: Any) -> Preflight:
        """What a stock class stores of it; zeroed heads where nothing smaller can be stored."""
        check = preflight(config, self.layers)
        if check.possible or self.masked is None:
            return check
        return preflight(config, self.layers, zeroed=True)

    def apply(self, model: "nn.Module", *, zeroed: bool = False) -> "nn.Module":
        """A new model with this change; the argument is untouched.

        Args:
            model: The original that the plan was made for.
            zeroed: Keep the original's class and shapes, with the removed heads zero.

        Returns:
            A model of the stock class that stores the change (`preflight` says which).

        Raises:
            InputError: The model has other layers than the plan, or no stock class stores it.
        """
        from .hosts import build

        return build(model, self, zeroed=zeroed)

    def save(self, path: str | Path) -> None:
        """Write PATH.json (what it is) and PATH.safetensors (the weights); `Plan.load` reads them."""
        from safetensors.numpy import save

        path = _stem(path)
        arrays = dict(_arrays("layers", self.layers))
        if self.masked is not None:
            arrays |= _arrays("masked", self.masked)
        about = {
            "format": FORMAT,
            "layers": len(self.layers),
            **{
                name: getattr(self, name) for name in ("kind", "source_fingerprint", "source", "words", "kept", "pairs")
            },
            "measured": dict(self.measured),
        }
        write_whole(path.with_suffix(".safetensors"), save(arrays), "the plan")
        write_whole(path.with_suffix(".json"), json.dumps(about, indent=1).encode(), "the plan")

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read what `save` wrote; InputError where that is not there or is not whole."""
        from safetensors.numpy import load_file

        path = _stem(path)
        try:
            about = json.loads(path.with_suffix(".json").read_text())
            arrays = load_file(path.with_suffix(".safetensors"))
            require(about["format"] == FORMAT, f"{path}.json is a plan of format {about['format']}, not {FORMAT}.")
            count = about["layers"]
            masked = _layers("masked", count, arrays) if any(name.startswith("masked.") for name in arrays) else None
            layers = _layers("layers", count, arrays)
        except InputError:
            raise
        except Exception as error:  # safetensors has its own errors, all of them mean the same here
            raise InputError(
                f"{path}.json and {path}.safetensors are no plan that headcount saved: {error}."
            ) from error
        kept, pairs = about["kept"], about["pairs"]
        return cls(
            kind=about["kind"],
            source_fingerprint=about["source_fingerprint"],
            layers=layers,
            words=about["words"],
            measured=about["measured"],
            masked=masked,
            kept=None if kept is None else tuple(map(tuple, kept)),
            pairs=None if pairs is None else tuple(pairs),
            source=about["source"],
        )


def pruned_plan(
    original: Sequence[HeadWeights],
    changes: Mapping[int, HeadWeights],
    kept: Sequence[Sequence[int]],
    *,
    source_fingerprint: str,
    source: str = "",
    words: str = "",
    measured: Mapping[str, Any] | None = None,
) -> Plan:
    """A plan that removes heads.

    Args:
        original: The layers of the original.
        changes: By layer, what was measured: the original's shapes, the output projection zero at removed heads.
        kept: The heads of every layer that stay; none of a layer is allowed (one zero head is stored).
        source_fingerprint: The original's.
        source: Where the original was loaded from.
        words: The change in a sentence.
        measured: Numbers for the model card.
    """
    require(len(original) == len(kept), f"{len(original)} layers but {len(kept)} lists of kept heads; they must match.")
    masked = tuple(
        changes.get(place, weights).without(sorted(set(range(weights.heads)) - set(heads)))
        for place, (weights, heads) in enumerate(zip(original, kept, strict=True))
    )
    return Plan(
        kind="prune",
        source_fingerprint=source_fingerprint,
        layers=tuple(compact(weights, heads) for weights, heads in zip(masked, kept, strict=True)),
        words=words,
        measured=measured or {},
        masked=masked,
        kept=tuple(tuple(sorted(heads)) for heads in kept),
        source=source,
    )


def compact(weights: HeadWeights, kept: Sequence[int]) -> HeadWeights:
    """Only these heads. Where key heads keep unequal numbers, zero heads fill them up; of none, a zero head stays."""
    if not kept:
        return weights.without(range(weights.heads)).kept(range(weights.heads // weights.key_heads))
    groups = {weights.key_head_of(head) for head in kept}
    share = weights.heads // weights.key_heads
    most = max(sum(weights.key_head_of(head) == group for head in kept) for group in groups)
    chosen = []
    for group in sorted(groups):
        within = [head for head in range(group * share, (group + 1) * share) if head in kept]
        others = [head for head in range(group * share, (group + 1) * share) if head not in kept]
        chosen += within + others[: most - len(within)]
    removed = set(chosen) - set(kept)
    return weights.without(sorted(removed)).kept(chosen)


def fitted(weights: HeadWeights, shape: LayerShape) -> HeadWeights:
    """The same function in a shape with at least as many key heads and heads per key head: zeros fill it up."""
    share, most = weights.heads // weights.key_heads, shape.heads // shape.key_heads
    require(
        share <= most and weights.key_heads <= shape.key_heads,
        f"{weights.heads} heads ({weights.key_heads} key heads) do not fit into {shape.heads} ({shape.key_heads}).",
    )
    heads = [group * most + place for group in range(weights.key_heads) for place in range(share)]
    groups = list(range(weights.key_heads))
    output = np.zeros((len(weights.output), shape.heads, weights.value_dim))
    output[:, heads] = weights.output
    rows = {
        name: _placed(getattr(weights, name), heads if name.startswith("query") else groups, count)
        for name, count in (
            *((name, shape.heads) for name in ("query", "query_bias")),
            *((name, shape.key_heads) for name in ("key", "value", "key_bias", "value_bias")),
        )
    }
    return HeadWeights(**rows, output=output, output_bias=weights.output_bias)


def _placed(array: np.ndarray | None, places: Sequence[int], count: int) -> Any:
    """Rows at their places among `count`; the others zero."""
    if array is None:
        return None
    placed = np.zeros((count, *array.shape[1:]))
    placed[list(places)] = array
    return placed


def _stem(path: str | Path) -> Path:
    path = Path(path)
    return path.with_suffix("") if path.suffix in (".json", ".safetensors") else path


def _arrays(name: str, layers: Sequence[HeadWeights]) -> dict[str, np.ndarray]:
    return {
        f"{name}.{place}.{part}": np.ascontiguousarray(array)
        for place, weights in enumerate(layers)
        for part, array in vars(weights).items()
        if array is not None
    }


def _layers(name: str, count: int, arrays: Mapping[str, np.ndarray]) -> tuple[HeadWeights, ...]:
    parts = [each.name for each in fields(HeadWeights)]
    return tuple(
        HeadWeights(**{part: arrays.get(f"{name}.{place}.{part}") for part in parts})  # pyright: ignore[reportArgumentType]
        for place in range(count)
    )
