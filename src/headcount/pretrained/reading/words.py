"""A trained model's reading in sentences: what was found, and what it does not say."""

from collections.abc import Iterable, Iterator

from ...answer.words import as_sentence, decimal, listed
from .layers import UNDECIDED, VERDICTS, LayerReading, signed
from .pairs import MAX_LISTED, MIN_PAIRS, SAME, SHARED, Pair
from .read import TrainedModel
from .whole import FEWEST_HELD_OUT, Configuration, best_peer

LIMITS = (
    "This says which heads the model uses on these data. Whether more heads, or a higher rank, would help it only "
    "training with more of them can say.",
    "Heads that these data do not need, other data may need.",
    "Heads needed are per layer, all other layers unchanged: the layers' spare heads cannot all go together.",
)
FEW_EXAMPLES = 20
"""Fewer held-out examples leave intervals that are too narrow where losses are skewed: with lognormal ones (sigma 1)
those of 8 to 20 examples cover 79 to 82 %."""
_NAMES = {"output_norm": "output norm"}


def limits(model: TrainedModel) -> tuple[str, ...]:
    """What the reading does not say."""
    count = (model.data.get("examples") or {}).get("held_out")
    few = count is not None and count < FEW_EXAMPLES
    rests = (
        f"Intervals rest on {count} held-out examples. They are widened for so few (Student's t), but where few "
        "examples have most of the loss increase they cover about 80 % instead of 90 %."
    )
    rests = (rests,) if few else ()
    cannot = str(model.data.get("cannot") or "")
    return (*LIMITS, *rests, *((cannot,) if cannot else ()))


def headline(model: TrainedModel) -> str:
    """How many heads can go, in one sentence; before that is measured, what is known of the layers."""
    allowed = f"within a loss increase of {decimal(model.budget)}"
    if model.whole is not None:
        total, beyond = model.whole.total, model.whole.next_measured
        if model.whole.removable.at == 0 and beyond is not None and beyond > 1:
            return (
                f"{model.name}: between 0 and {beyond - 1} of {total} heads can go {allowed}; none was measured between"
            )
        return f"{model.name}: {model.whole.removable_words} of {total} heads can go {allowed}"
    read = [layer for layer in model.layers if layer.needed is not None]
    if read:
        counts = _range(layer.needed.at for layer in read if layer.needed is not None)
        which = "layers need" if len(read) == len(model.layers) else f"the {len(read)} layers read so far need"
        return f"{model.name}: {which} {counts} of {_range(layer.heads for layer in read)} heads to stay {allowed}"
    measured = sum(bool(layer.importance) for layer in model.layers)
    return f"{model.name}: importance of heads in {measured} of {len(model.layers)} layers, heads needed not yet"


def incomplete(model: TrainedModel, command: str) -> str:
    """That an inspection has not ended, what it lacks, and the command that goes on; empty where it has."""
    if not model.missing:
        return ""
    return f"The inspection is not complete. Missing: {', '.join(model.missing)}. {go_on(command)}"


def go_on(command: str) -> str:
    """What continues an inspection that was started by this command, or from Python where it is empty."""
    return f"To go on, run: {command}" if command else "To go on, run the same Python code again."


def sentences(model: TrainedModel) -> tuple[str, ...]:
    """The reading in words."""
    every = (
        _removable(model),
        _layers(model),
        _short_of(model),
        _recommended(model),
        _order(model),
        _peers(model),
        prediction(model),
    )
    return tuple(filter(None, every))


def _removable(model: TrainedModel) -> str:
    """Where the number of heads that can go comes from, if not from the descent at each number of heads."""
    whole = model.whole
    if whole is None:
        return ""
    count, beyond = whole.removable.at, whole.next_measured
    if whole.alone is not None:
        heads = f"{_counted(count, 'head')} of layer {whole.alone.index} alone can go"
        return as_sentence(f"{heads}, all others unchanged: the descent over all layers found fewer")
    if count == 0 or beyond is None or beyond == count + 1:
        return ""
    return f"With {count} heads removed the loss increase is within the tolerance; next measured were {beyond}."


def _layers(model: TrainedModel) -> str:
    read = [(layer, layer.needed) for layer in model.layers if layer.needed is not None]
    if not read:
        return ""
    fewest, most = min(read, key=lambda each: each[1].at), max(read, key=lambda each: each[1].at)
    which = "Each layer alone" if len(read) == len(model.layers) else "Each layer read so far, alone,"
    counts = f"{fewest[1].at} (layer {fewest[0].index}) to {most[1].at} (layer {most[0].index})"
    counts = str(fewest[1].at) if fewest[1].at == most[1].at else counts
    return f"{which} needs {counts} of its {_range(layer.heads for layer in model.layers)} heads."


def _short_of(model: TrainedModel) -> str:
    judged: dict[str, list[LayerReading]] = {}
    for layer in model.layers:
        if layer.verdict is not None:
            judged.setdefault(layer.verdict, []).append(layer)
    if not judged:
        full = [layer for layer in model.layers if layer.needed is not None and layer.needed.low == layer.heads]
        return f"Cannot lose a head: {_layers_listed(full)}." if full else ""
    if list(judged) == ["neither"]:
        which = "layer" if len(judged["neither"]) == len(model.layers) else "layer read so far"
        return f"No {which} is short of heads or of rank: each can lose some of both."
    parts = [f"{words}: {_layers_listed(judged[what])}" for what, words in VERDICTS.items() if what in judged]
    return as_sentence("; ".join(parts))


def _layers_listed(layers: list[LayerReading]) -> str:
    indices = [layer.index for layer in layers]
    run = indices == list(range(indices[0], indices[-1] + 1))
    if len(indices) > MAX_LISTED and not run:
        return f"{len(indices)} layers"
    return f"{'layer' if len(indices) == 1 else 'layers'} {listed(indices)}"


def _recommended(model: TrainedModel) -> str:
    if not model.configurations:
        return ""
    best = model.recommended
    if best is not None:
        cheapest = "Cheapest measured configuration with its interval within the tolerance that a stock class stores"
        among = f"chosen among {len(model.candidates)} on the same held-out examples"
        among = "the only one that was measured" if len(model.candidates) == 1 else among
        return f"{cheapest}: {best.name}, {costs(best)} ({among})."
    count = model.held_out
    if count < FEWEST_HELD_OUT:
        few = f"{_counted(count, 'held-out example')} {'is' if count == 1 else 'are'} too few"
        return f"No configuration is recommended: {few}, at least {FEWEST_HELD_OUT} are needed."
    if not model.candidates:
        return "No measured configuration is stored smaller by a stock class: none is recommended."
    least = min(model.candidates, key=lambda each: each.increase)
    return (
        f"No configuration is recommended: of the {len(model.candidates)} measured that a stock class stores small, "
        f"{least.name} costs least, {_increase(least)}, and {decimal(model.budget)} is allowed for the whole interval."
    )


def _increase(each: Configuration) -> str:
    return f"loss {signed(each.increase)} [{decimal(each.low)}, {decimal(each.high)}]"


def costs(each: Configuration) -> str:
    """What a configuration costs, in words."""
    parts = [_increase(each)]
    if each.parameters is not None:
        parts.append(f"{each.parameters:,} parameters")
    if each.cache_bytes_per_token:
        parts.append(f"{each.cache_bytes_per_token:,.0f} bytes of cache per token")
    if each.seconds is not None:
        parts.append(f"{decimal(each.seconds)} s per 1,000 tokens")
    return ", ".join(parts)


def _order(model: TrainedModel) -> str:
    if model.whole is None or model.whole.order != "Fisher":
        return ""
    return "Heads are removed in the order of their Fisher scores: on scored examples it cost less than a search's."


def _peers(model: TrainedModel) -> str:
    compared = None if model.whole is None else best_peer(model.whole)
    if model.whole is None or compared is None:
        return ""
    kept, peer, theirs, ours = compared
    return (
        f"With {model.whole.total - kept} heads removed the descent costs {signed(ours)}; the best of "
        f"{len(model.whole.peers)} other orders, {peer.label}, {signed(theirs)}."
    )


def prediction(model: TrainedModel) -> str:
    """Whether heads needed predict what the descent keeps, in a sentence; empty where it was not measured."""
    found = model.prediction
    if found is None:
        return ""
    after = f"what the descent keeps of it after {found.removed} removals"
    if len(found.needed) < MIN_PAIRS:
        return f"Whether a layer's heads needed predict {after} cannot be said of {len(found.needed)} layers."
    if found.correlation is None:
        return f"Whether a layer's heads needed predict {after} cannot be said: the counts do not vary."
    numbers = f"rank correlation {found.correlation} over {found.correlation.count} layers"
    if found.correlation.words == UNDECIDED:
        return f"Whether a layer's heads needed predict {after} is undecided: {numbers}."
    return f"A layer's heads needed predict {after}: {numbers} ({found.correlation.words})."


def transition_rows(model: TrainedModel) -> Iterator[tuple[str, str]]:
    """What the transition analysis says, layers with the same sentence together."""
    told: dict[str, list[LayerReading]] = {}
    for layer in model.layers:
        if layer.transition is not None:
            told.setdefault(layer.transition.sentence, []).append(layer)
    for sentence, layers in told.items():
        yield "transition", f"{_layers_listed(layers)}: {sentence}"


def agreement_words(model: TrainedModel) -> str:
    """How well cheap estimates rank the heads, in words."""
    parts = [f"{_NAMES.get(name, name)} {each} ({each.words})" for name, each in model.agreement.items()]
    return f"rank correlation with leaving heads out one by one: {'; '.join(parts)}" if parts else ""


def redundancy_words(model: TrainedModel) -> Iterator[tuple[str, str]]:
    """Pairs of heads that are alike, the first few of each kind."""
    if model.same_tokens:
        count = _counted(len(model.same_tokens), "pair")
        yield "read the same tokens", f"{count} with similarity of {SAME} or more: {_first(model.same_tokens, 'heads')}"
    if model.shared_keys:
        first, count = _first(model.shared_keys, "key heads"), _counted(len(model.shared_keys), "pair")
        lost = f"lose at most {SHARED:.0%} of the variance of their scores where one reads the other's keys"
        cost = "what sharing costs in loss is measured for configurations with fewer key heads only"
        yield "keys alike", f"{count} of key heads {lost}: {first}; {cost}"


def _first(pairs: tuple[Pair, ...], what: str) -> str:
    """The first few pairs, and how many more there are."""
    words = ", ".join(_pair(pair, what) for pair in pairs[:MAX_LISTED])
    more = len(pairs) - MAX_LISTED
    return f"{words} and {more} more" if more > 0 else words


def _pair(pair: Pair, what: str) -> str:
    return f"layer {pair.layer} {what} {pair.first} and {pair.second} ({decimal(pair.value)})"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _range(counts: Iterable[int]) -> str:
    values = sorted(set(counts))
    return f"{values[0]} to {values[-1]}" if len(values) > 1 else str(values[0])
