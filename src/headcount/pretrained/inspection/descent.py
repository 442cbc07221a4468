"""The metrics `descent` and `peers`: what the whole model can lose, and the heads that other criteria would remove."""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...answer.answer_base import Interval
from ...answer.words import as_sentence
from ...report.chart import Chart, Span
from .drawing import drawn_at_bottom, increase_label, increase_series, round_ticks, tolerance_level
from .effort import PEERS
from .facts import Facts, Increases, as_json
from .layers import LayerReading, signed
from .measuring import Fact, Subject, Values

if TYPE_CHECKING:
    from .model import TrainedModel


def descent_facts(subject: Subject) -> list[Fact]:
    """The descent in stretches "descent/N", so that a run that is ended loses one; the last is "descent" too."""
    ends, work = subject.schedule.stretches, subject.schedule.passes["descent"]
    if not ends:
        return []
    facts = [
        Fact(
            name=f"descent/{end}",
            phase=f"removing heads from the whole model, {before + 1} to {end}",
            work=work * (end - before) / ends[-1],
            measure=lambda values, before=before, end=end: _stretch(subject, values.get(f"descent/{before}"), end),
        )
        for before, end in itertools.pairwise((0, *ends))
    ]
    last = facts[-1].name
    return [*facts, Fact(name="descent", phase="the whole model", work=0.0, measure=lambda values: values[last])]


def _stretch(subject: Subject, before: Values | None, end: int) -> dict[str, Any]:
    """Heads removed up to this number, from where the stretch before it ended."""
    from ..removal.descent import Descent, descend

    start = None
    if before is not None:
        removed = tuple((layer, head) for layer, head in before["removed"])
        start = Descent(removed=removed, kept=tuple(before["kept"]), losses=np.array(before["losses"]))
    descent = descend(
        subject.evaluation,
        end,
        points=[count for count in subject.schedule.removed_counts if count <= end],
        statistics=subject.statistics,
        start=start,
    )
    return {
        "removed": [[int(layer), int(head)] for layer, head in descent.removed],
        "kept": list(map(int, descent.kept)),
        "losses": descent.losses.tolist(),
        "with_refit": True,
        "order": descent.order,
    }


def peer_facts(subject: Subject) -> list[Fact]:
    """One fact "peer/NAME" per criterion, and all of them together."""
    if not subject.schedule.peer_counts:
        return []
    facts = [
        Fact(
            name=f"peer/{name}",
            phase=f"the heads that others would remove: {name}",
            work=subject.schedule.passes["peers"] / len(PEERS),
            measure=lambda values, name=name: _peer(subject, name, values),
        )
        for name in PEERS
    ]

    def together(values: Values) -> dict[str, Any]:
        return {label: each for fact in facts for label, each in values[fact.name].items()}

    return [*facts, Fact(name="peers", phase="other criteria", work=0.0, measure=together)]


def _peer(subject: Subject, name: str, values: Values) -> dict[str, Any]:
    """Losses with the heads removed that a criterion names, without and with refit; nothing where it has no order."""
    from ..removal.importance import peer_orders
    from ..removal.refit import losses_along

    layers = [values[f"importance/{layer.index}"] for layer in subject.evaluation.layers]
    importances = [{each: np.array(row) for each, row in layer.items()} for layer in layers]
    order = peer_orders(importances, random_orders=1).get(name)
    if order is None:
        return {}
    counts = subject.schedule.peer_counts
    kept = [subject.schedule.heads - count for count in counts]
    return {
        f"{name}, refit" if refit else name: {
            "kept": kept,
            "losses": losses_along(subject.evaluation, order, counts, with_refit=refit).tolist(),
            "refit": refit,
        }
        for refit in (False, True)
    }


@dataclass(frozen=True, kw_only=True)
class WholeModel:
    """Heads removed from all layers together. `removable`: how many can go within the tolerance, of those tried.

    `removed` are all (layer, head) in the order of removal. `alone` is a layer that can lose more heads, all others
    unchanged, than the descent could remove; None where none can. `open_ended`: the most that the descent removed is
    within the tolerance, or in its interval, so that more may be removable than was tried. `order` is "Fisher" where
    that score's order lost less on the scored examples than the search's own, and was taken in its place. `peers` are
    the loss increases when heads are removed in other orders.
    """

    curve: Increases
    removable: Interval
    open_ended: bool
    removed: tuple[tuple[int, int], ...]
    refit: bool
    order: str
    peers: Mapping[str, Increases]
    alone: LayerReading | None

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
        if self.alone is not None:
            return tuple((self.alone.index, head) for head in self.alone.order[: self.removable.at])
        return self.removed[: self.removable.at]

    @property
    def gone_by(self) -> str:
        """The removal that took them, in words."""
        which = "by the descent" if self.alone is None else f"of layer {self.alone.index} alone"
        return f"{which}, within the tolerance"

    @property
    def next_measured(self) -> int | None:
        """The smallest measured number of heads removed above those that can go; None where nothing was measured."""
        counts = (self.total - kept for kept in self.curve.at)
        return min((count for count in counts if count > self.removable.at), default=None)

    def as_dict(self) -> dict[str, Any]:
        return as_json({name: value for name, value in vars(self).items() if name != "alone"})


def read_whole(facts: Facts, layers: tuple[LayerReading, ...]) -> WholeModel | None:
    """Read the descent, whole or its longest part, and its peers; None where it was not measured."""
    stretches, total = facts.by_part("descent"), sum(layer.heads for layer in layers)
    furthest = max(stretches, key=int, default="")
    stored = facts.fact("descent") or stretches.get(furthest) or {}
    curve = facts.curve(stored, "kept", total, "descent")
    if curve is None or len(curve.at) < 2:
        return None
    needed = curve.needed(facts.budget)
    removable = Interval(total - needed.at, total - needed.high, total - max(needed.low, curve.at[0]))
    alone, removable = _alone(layers, removable)
    return WholeModel(
        curve=curve,
        removable=removable,
        removed=tuple((int(layer), int(head)) for layer, head in stored.get("removed") or ()),
        refit=bool(stored.get("with_refit")),
        peers=_read_peers(facts, total),
        alone=alone,
        open_ended=0 < needed.low <= curve.at[0],
        order=str(stored.get("order") or "search"),
    )


def _alone(layers: tuple[LayerReading, ...], removable: Interval) -> tuple[LayerReading | None, Interval]:
    """The layer that can lose more heads than the descent could remove, and how many can then go."""
    spare = [(layer.heads - layer.needed.at, layer, layer.needed) for layer in layers if layer.needed is not None]
    most, layer, need = max(spare, key=lambda each: each[0], default=(0, None, None))
    if layer is None or need is None or most <= removable.at:
        return None, removable
    low, high = max(removable.low, layer.heads - need.high), max(removable.high, layer.heads - need.low)
    return layer, Interval(most, low, high)


def _read_peers(facts: Facts, total: int) -> dict[str, Increases]:
    stored = {name: each for part in facts.by_part("peer").values() for name, each in part.items()}
    stored = {**facts.fact("peers"), **stored}
    curves = {name: facts.curve(each, "kept", total, f"peers ({name})") for name, each in stored.items()}
    return {name: curve for name, curve in curves.items() if curve is not None}


def kept_by_layer(layers: tuple[LayerReading, ...], removed: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Count the heads that each layer keeps when these are gone."""
    gone = Counter(layer for layer, _ in removed)
    return tuple(layer.heads - gone[layer.index] for layer in layers)


def removable_words(model: "TrainedModel") -> str:
    """Explain the number of heads that can go, where it is not from a descent measured at every number."""
    whole = model.whole
    if whole is None:
        return ""
    count, above = whole.removable.at, whole.next_measured
    if whole.alone is not None:
        heads = f"{count} head{'s' * (count != 1)} of layer {whole.alone.index} alone can go"
        return as_sentence(f"{heads}, all others unchanged: the descent over all layers found fewer")
    if count == 0 or above is None or above == count + 1:
        return ""
    return f"With {count} heads removed the loss increase is within the tolerance; next measured were {above}."


def order_words(model: "TrainedModel") -> str:
    """Say that Fisher's order was taken in place of the search's; "" otherwise."""
    if model.whole is None or model.whole.order != "Fisher":
        return ""
    return "Heads are removed in the order of their Fisher scores: on scored examples it cost less than a search's."


def peer_words(model: "TrainedModel") -> str:
    """Compare the descent with the best peer, at the measured count nearest to what can go."""
    whole = model.whole
    shared = set() if whole is None else {at for curve in whole.peers.values() for at in curve.at[:-1]}
    shared &= set(() if whole is None else whole.curve.at[:-1])
    if whole is None or not shared:
        return ""
    kept = min(sorted(shared), key=lambda at: abs(at - (whole.total - whole.removable.at)))
    there = [(curve.mean[curve.at.index(kept)], name) for name, curve in whole.peers.items() if kept in curve.at]
    theirs, peer = min(there, key=lambda each: each[0])
    return (
        f"With {whole.total - kept} heads removed the descent costs "
        f"{signed(whole.curve.mean[whole.curve.at.index(kept)])}; the best of "
        f"{len(whole.peers)} other orders, {peer}, {signed(theirs)}."
    )


def whole_chart(model: "TrainedModel") -> Chart | None:
    """The loss increase against heads kept in the whole model, by the descent and by peers' orders."""
    whole = model.whole
    if whole is None:
        return None
    series = [increase_series("the descent", whole.curve, model, place=0, band=True)]
    for place, (name, curve) in enumerate(whole.peers.items(), start=1):
        series.append(increase_series(name, curve.without_original(), model, place=place))
    least = min(at for each in (whole.curve, *whole.peers.values()) for at in each.at)
    removable, total = whole.removable, whole.total
    kept = total - removable.at
    return Chart(
        name="loss-against-heads-kept",
        title="Loss increase against heads kept, whole model",
        x_label="attention heads kept",
        y_label=increase_label(model),
        x_ticks=round_ticks(least, total),
        series=tuple(series),
        caption=f"line: mean over held-out examples{' with refit' if whole.refit else ''}; band: 90 % of resamples of "
        f"the examples{drawn_at_bottom(model)}; grey: heads that must stay for the tolerance, in 90 % of "
        "resamples and with the counts between measured ones",
        span=Span(f"{kept} heads kept", kept, total - removable.high, total - removable.low),
        levels=tolerance_level(model),
        spread="resamples",
    )
