"""What the whole of a trained model can lose: the descent, peers' orders beside it, and measured configurations."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...answer.answer_base import Interval
from .facts import Facts, IncreaseCurve
from .layers import LayerReading
from .pairs import Correlation, correlation

ORIGINAL = "original"
SMALL = "small"
"""How a configuration is stored that a stock class keeps in fewer parameters."""
FEWEST_HELD_OUT = 8
"""Held-out examples without which no configuration is recommended."""


@dataclass(frozen=True)
class Peer:
    """The loss increase when heads are removed in another order; `refit`: with the output projections fitted again."""

    name: str
    refit: bool
    curve: IncreaseCurve

    @property
    def label(self) -> str:
        words = self.name.replace("_", " ")
        return f"{words}, refit" if self.refit and "refit" not in words else words


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A smaller model that was measured: what it costs on held-out data, in size and in time. None: not measured.

    `seconds` are per 1,000 tokens, `stored` is how a stock class keeps it: "small", "padded" or "zeroed".
    """

    name: str
    kind: str
    heads: Any
    key_heads: Any
    head_dim: Any
    increase: float
    low: float
    high: float
    parameters: int | None
    cache_bytes_per_token: float | None
    seconds: float | None
    stored: str
    command: str
    removed: tuple[tuple[int, int], ...] = ()

    @property
    def size(self) -> tuple[float, float, float]:
        """By what the cheapest is chosen: parameters, then cache, then time."""
        sizes = (self.parameters, self.cache_bytes_per_token, self.seconds)
        first, second, third = (float("inf") if size is None else float(size) for size in sizes)
        return first, second, third


@dataclass(frozen=True, kw_only=True)
class WholeModel:
    """Heads removed from all layers together. `removable`: how many can go within the tolerance, of those tried.

    `removed` are all (layer, head) in the order of removal. `alone` is a layer that can lose more heads, all others
    unchanged, than the descent could remove; None where none can. `open_ended`: the most that the descent removed is
    within the tolerance, or in its interval, so that more may be removable than was tried. `order` is "Fisher" where
    that score's order lost less on the scored examples than the search's own, and was taken in its place.
    """

    curve: IncreaseCurve
    removable: Interval
    removed: tuple[tuple[int, int], ...]
    refit: bool
    peers: tuple[Peer, ...] = ()
    alone: LayerReading | None = None
    open_ended: bool = False
    order: str = "search"

    @property
    def total(self) -> int:
        return self.curve.at[-1]

    @property
    def removable_words(self) -> str:
        """`removable`, open above where more was not tried."""
        at, low, high = self.removable.at, self.removable.low, self.removable.high
        if not self.open_ended:
            return "none" if high == 0 else str(self.removable)
        return f"at least {at}" if low == high else f"{at} [{low}, at least {high}]"

    @property
    def gone(self) -> tuple[tuple[int, int], ...]:
        """The heads that can go within the tolerance."""
        if self.alone is not None:
            return tuple((self.alone.index, head) for head in self.alone.order[: self.removable.at])
        return self.removed[: self.removable.at]

    @property
    def gone_by(self) -> str:
        """Who removed them, in words."""
        which = "by the descent" if self.alone is None else f"of layer {self.alone.index} alone"
        return f"{which}, within the tolerance"

    @property
    def next_measured(self) -> int | None:
        """The smallest measured number of heads removed above those that can go; None where nothing was measured."""
        counts = (self.total - kept for kept in self.curve.at)
        return min((count for count in counts if count > self.removable.at), default=None)


@dataclass(frozen=True)
class Prediction:
    """Whether a layer's heads needed predict what the descent keeps of it, after `removed` heads are gone."""

    removed: int
    needed: tuple[int, ...]
    kept: tuple[int, ...]
    correlation: Correlation | None


def read_whole(facts: Facts, layers: tuple[LayerReading, ...]) -> WholeModel | None:
    """The descent and its peers; None where it was not measured."""
    stored, total = facts.descent(), sum(layer.heads for layer in layers)
    curve = facts.curve(stored, "kept", total, "descent")
    if curve is None or len(curve.at) < 2:
        return None
    needed = curve.needed(facts.budget)
    removable = Interval(total - needed.at, total - needed.high, total - max(needed.low, curve.at[0]))
    spare = {layer.index: layer.heads - layer.needed.at for layer in layers if layer.needed is not None}
    most = max(spare, key=lambda index: spare[index], default=None)
    alone = None
    if most is not None and spare[most] > removable.at and (need := layers[most].needed) is not None:
        alone, heads = layers[most], layers[most].heads
        low, high = max(removable.low, heads - need.high), max(removable.high, heads - need.low)
        removable = Interval(spare[most], low, high)
    peers = []
    for name, each in facts.peers().items():
        peer = facts.curve(each, "kept", total, f"peers ({name})")
        if peer is not None:
            peers.append(Peer(name, bool(each.get("refit")), peer))
    return WholeModel(
        curve=curve,
        removable=removable,
        removed=tuple((int(layer), int(head)) for layer, head in stored.get("removed") or ()),
        refit=bool(stored.get("with_refit")),
        peers=tuple(peers),
        alone=alone,
        open_ended=0 < needed.low <= curve.at[0],
        order=str(stored.get("order") or "search"),
    )


def best_peer(whole: WholeModel) -> tuple[int, Peer, float, float] | None:
    """The best peer at the count nearest to what can go within the tolerance, of those measured for both: heads kept,
    the peer, its loss increase and the descent's; None where there is no such count."""
    shared = sorted({at for peer in whole.peers for at in peer.curve.at[:-1]} & set(whole.curve.at[:-1]))
    if not shared:
        return None
    kept = min(shared, key=lambda at: abs(at - (whole.total - whole.removable.at)))
    there = [(peer.curve.mean[peer.curve.at.index(kept)], peer) for peer in whole.peers if kept in peer.curve.at]
    increase, peer = min(there, key=lambda each: each[0])
    return kept, peer, float(increase), float(whole.curve.mean[whole.curve.at.index(kept)])


def kept_by_layer(layers: tuple[LayerReading, ...], removed: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """How many heads each layer keeps when these are gone."""
    gone = Counter(layer for layer, _ in removed)
    return tuple(layer.heads - gone[layer.index] for layer in layers)


def read_prediction(layers: tuple[LayerReading, ...], whole: WholeModel | None) -> Prediction | None:
    """The two counts per layer where the descent ends: there layers differ most in what they keep."""
    needed = [layer.needed.at for layer in layers if layer.needed is not None]
    if whole is None or not whole.removed or len(needed) < len(layers):
        return None
    kept = kept_by_layer(layers, whole.removed)
    return Prediction(len(whole.removed), tuple(needed), kept, correlation(needed, kept))


def read_configurations(facts: Facts) -> tuple[Configuration, ...]:
    """Every measured configuration, in the order in which they were measured."""
    return tuple(_configuration(facts, each) for each in facts.configurations()) if len(facts.base) else ()


def _configuration(facts: Facts, stored: Mapping[str, Any]) -> Configuration:
    found = facts.increases(stored["losses"], f"the configuration {stored.get('name')}")
    (mean,), (low, high) = found.mean, found.bounds[:, 0]
    sizes = {name: stored.get(name) for name in ("parameters", "cache_bytes_per_token", "seconds")}
    return Configuration(
        name=str(stored.get("name", "")),
        kind=str(stored.get("kind", "")),
        heads=stored.get("heads"),
        key_heads=stored.get("key_heads"),
        head_dim=stored.get("head_dim"),
        increase=float(mean),
        low=float(low),
        high=float(high),
        stored=str(stored.get("stored", "")),
        command=str(stored.get("command") or ""),
        removed=tuple((int(layer), int(head)) for layer, head in stored.get("removed") or ()),
        **sizes,
    )


def candidates(facts: Facts, configurations: tuple[Configuration, ...]) -> tuple[Configuration, ...]:
    """Those that a stock class stores small: fewer parameters or a smaller cache than the original."""
    parameters = facts.model.get("parameters") or float("inf")
    cache = facts.model.get("cache_bytes_per_token") or float("inf")
    return tuple(
        each
        for each in configurations
        if each.stored == SMALL
        and each.kind != ORIGINAL
        and each.name != ORIGINAL
        and (each.size[0] < parameters or each.size[1] < cache)
    )


def recommended(facts: Facts, configurations: tuple[Configuration, ...]) -> Configuration | None:
    """The cheapest candidate whose whole interval is within the tolerance; None without one, or with too few examples.

    The choice is made on the examples that its loss is reported on: of several whose mean is near the tolerance, one is
    below it by chance.
    """
    if len(facts.base) < FEWEST_HELD_OUT:
        return None
    within = [each for each in candidates(facts, configurations) if max(each.increase, each.high) <= facts.budget]
    return min(within, key=lambda each: each.size, default=None)
