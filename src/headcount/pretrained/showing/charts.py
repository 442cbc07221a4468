"""The charts of a trained model: importance by layer and head, heads and rank needed, what removal costs."""

from collections import Counter

import numpy as np

from ...answer.words import decimal
from ...report.chart import Chart, HeatMap, Level, Series, Span
from ..reading.facts import NO_LOSS, IncreaseCurve
from ..reading.layers import KINDS
from ..reading.pairs import ESTIMATES, EXACT
from ..reading.read import TrainedModel
from ..reading.whole import kept_by_layer

IMPORTANCE_SCALE = (0.1, 100.0)
"""The ends of the colours of importance: per cent of the loss's scale, or of the largest."""
REMOVED = "\u00d7"
"""Written before the importance of a head that is removed."""
FEW_LAYERS = 7
"""Layers that have a line of their own; more are drawn thin, in three colours by depth."""
LOWEST = 0.02
"""Increases below this share of the tolerance are drawn there: the axis is logarithmic."""
NO_VALUE = float("nan")
MEASURE_WORDS = {
    EXACT: "loss increase without the head",
    "fisher": "Fisher estimate of the loss without the head (mean square of the gradient of a factor before it)",
    "gradient": "gradient of a factor before the head",
    "output_norm": "norm of the head's output",
    "magnitude": "size of the head's output weights",
}
"""What the numbers in the map of heads are."""


def trained_model_charts(model: TrainedModel) -> tuple[Chart | HeatMap, ...]:
    """Every chart that the facts allow, the most telling first."""
    charts = (
        importance_map(model),
        whole_chart(model),
        needed_chart(model),
        layers_chart(model),
        rank_needed_chart(model),
        rank_chart(model),
        prediction_map(model),
    )
    return tuple(chart for chart in charts if chart is not None)


def importance_name(model: TrainedModel) -> str:
    """The measure of importance that is drawn: leaving heads out where it was measured, else the first estimate."""
    there = [name for name in (EXACT, *ESTIMATES) if any(name in layer.importance for layer in model.layers)]
    return there[0] if there else ""


def importance_map(model: TrainedModel) -> HeatMap | None:
    """Layers by heads; None where nothing was measured."""
    name = importance_name(model)
    most = max((layer.heads for layer in model.layers), default=0)
    if not name or not most:
        return None
    values = np.full((len(model.layers), most), np.nan)
    for row, layer in enumerate(model.layers):
        known = layer.importance.get(name, ())
        values[row, : len(known)] = known
    exact = name == EXACT
    largest = np.nanmax(values) if np.isfinite(values).any() else 0.0
    unit = model.scale if exact else largest
    per_cent = 100 * values / unit if unit > 0 else np.zeros_like(values)
    measure = MEASURE_WORDS.get(name, name)
    what = f"{measure}, % of {'the loss scale ' if exact else 'the largest, '}{decimal(unit)}"
    words = tuple(
        tuple(_cell(per_cent[row, head], (layer.index, head) in model.removed) for head in range(most))
        for row, layer in enumerate(model.layers)
    )
    removed = f"; {REMOVED}: removed ({_removed_by(model)})" if model.removed else ""
    return HeatMap(
        name="importance",
        title="Importance of every head",
        rows=tuple(layer.index for layer in model.layers),
        columns=tuple(range(most)),
        row_label="layer",
        column_label="head",
        values=per_cent,
        unit="loss increase without the head, %" if exact else f"{name.replace('_', ' ')}, %",
        caption=f"{what}{removed}",
        words=words,
        scale=IMPORTANCE_SCALE,
        scale_label="% of the loss scale" if exact else "% of the largest",
        downward=True,
    )


def _removed_by(model: TrainedModel) -> str:
    recommended = model.recommended
    if recommended is not None and recommended.removed:
        return f"by the recommended configuration, {recommended.name}"
    return "" if model.whole is None else model.whole.gone_by


def _cell(value: float, removed: bool) -> str:
    """A number of per cent, short enough for a small cell."""
    if not np.isfinite(value):
        return "-"
    words = "0" if value < 0.005 else f"{value:.2f}".lstrip("0") if value < 0.995 else f"{float(f'{value:.2g}'):g}"
    return f"{REMOVED}{words}" if removed else words


def whole_chart(model: TrainedModel) -> Chart | None:
    """The loss increase against heads kept in the whole model, peers' orders beside it."""
    whole = model.whole
    if whole is None:
        return None
    series = [_series("the descent", whole.curve, model, place=0, band=True)]
    series += [
        _series(peer.label, _measured(peer.curve), model, place=place)
        for place, peer in enumerate(whole.peers, start=1)
    ]
    least = min(at for each in (whole.curve, *(peer.curve for peer in whole.peers)) for at in each.at)
    removable = whole.removable
    kept = whole.total - removable.at
    return Chart(
        name="loss-against-heads-kept",
        title="Loss increase against heads kept, whole model",
        x_label="attention heads kept",
        y_label=_loss(model),
        x_ticks=_ticks(least, whole.total),
        series=tuple(series),
        caption=f"line: mean over held-out examples{' with refit' if whole.refit else ''}; band: 90 % of resamples of "
        f"the examples{_drawn_at_bottom(model)}; grey: heads that must stay for the tolerance, in 90 % of "
        "resamples and with the counts between measured ones",
        span=Span(f"{kept} heads kept", kept, whole.total - removable.high, whole.total - removable.low),
        levels=_tolerance(model),
        spread="resamples",
    )


def needed_chart(model: TrainedModel) -> Chart | None:
    """Heads needed per layer with their interval, and what the descent keeps of it."""
    needs = [layer.needed for layer in model.layers]
    if not any(needs):
        return None
    layers = tuple(layer.index for layer in model.layers)

    def row(edge: str) -> tuple[float, ...]:
        return tuple(NO_VALUE if need is None else float(getattr(need, edge)) for need in needs)

    series = [Series("heads needed, each layer alone", layers, row("at"), low=row("low"), high=row("high"))]
    if model.prediction is not None:
        kept = tuple(map(float, model.prediction.kept))
        series.append(Series(f"kept by the descent after {model.prediction.removed} removals", layers, kept, place=1))
    most = max(layer.heads for layer in model.layers)
    return Chart(
        name="heads-needed",
        title="Heads needed per layer",
        x_label="layer",
        y_label="attention heads",
        x_ticks=layers,
        series=tuple(series),
        caption="line: fewest heads within the tolerance, all other layers unchanged; band: 90 % of resamples",
        log_y=False,
        levels=(Level("all", f"heads of a layer: {most}", float(most), str(most)),),
        spread="resamples",
    )


def layers_chart(model: TrainedModel) -> Chart | None:
    """The loss increase against heads kept in one layer, a line per layer."""
    read = [(layer, layer.curve) for layer in model.layers if layer.curve is not None]
    if not read:
        return None
    few = len(model.layers) <= FEW_LAYERS
    series = []
    for layer, curve in read:
        place = layer.index if few else 3 * layer.index // len(model.layers)
        name = f"layer {layer.index}" if few else _third(place, len(model.layers))
        series.append(_series(name, curve, model, place=place, thin=not few))
    most = max(curve.at[-1] for _, curve in read)
    return Chart(
        name="loss-against-heads-kept-by-layer",
        title="Loss increase against heads kept, each layer alone",
        x_label="attention heads kept in the layer",
        y_label=_loss(model),
        x_ticks=tuple(range(most + 1)),
        series=tuple(series),
        caption=f"a line per layer, all other layers unchanged{_drawn_at_bottom(model)}",
        levels=_tolerance(model),
        spread="resamples",
    )


def _third(place: int, layers: int) -> str:
    """The layers of one third of the depth."""
    first, last = (-(-place * layers // 3), -(-(place + 1) * layers // 3) - 1)
    return f"layers {first} to {last}"


def rank_needed_chart(model: TrainedModel) -> Chart | None:
    """Rank needed per layer, of scores and of values, with their intervals."""
    layers = tuple(layer.index for layer in model.layers)
    series, most = [], 0
    for place, kind in enumerate(KINDS):
        readings = [layer.ranks.get(kind) for layer in model.layers]
        most = max([most, *(each.full for each in readings if each is not None)])
        at, low, high = (
            tuple(NO_VALUE if each is None else float(getattr(each.needed, edge)) for each in readings)
            for edge in ("at", "low", "high")
        )
        if any(readings):
            series.append(Series(f"rank of {kind}", layers, at, place=place, low=low, high=high))
    if not series:
        return None
    return Chart(
        name="rank-needed",
        title="Rank needed per layer",
        x_label="layer",
        y_label="rank of every head",
        x_ticks=layers,
        series=tuple(series),
        caption="line: lowest rank tried within the tolerance, all other layers unchanged; band: 90 % of resamples, "
        "and ranks between the tried ones; scores: W_Q^T W_K; values: W_V W_O",
        log_y=False,
        levels=(Level("full", f"head dim: {most}", float(most), str(most)),),
        spread="resamples",
    )


def rank_chart(model: TrainedModel) -> Chart | None:
    """The loss increase against the rank of scores and of values, a line per layer."""
    series, ranks = [], set()
    for place, kind in enumerate(KINDS):
        curves = [layer.ranks[kind].curve for layer in model.layers if kind in layer.ranks]
        series += [_series(f"rank of {kind}", curve, model, place=place, thin=True) for curve in curves]
        ranks |= {at for curve in curves for at in curve.at if at > 0}
    if not series:
        return None
    return Chart(
        name="loss-against-rank",
        title="Loss increase against rank, each layer alone",
        x_label="rank of every head in the layer",
        y_label=_loss(model),
        x_ticks=tuple(sorted(ranks)),
        series=tuple(series),
        caption=f"a line per layer, all other layers unchanged{_drawn_at_bottom(model)}",
        log_x=True,
        levels=_tolerance(model),
        spread="resamples",
    )


def prediction_map(model: TrainedModel) -> HeatMap | None:
    """How many layers need so many heads and keep so many in the descent."""
    found = model.prediction
    if found is None:
        return None
    counted = Counter(zip(found.kept, found.needed, strict=True))
    rows = tuple(range(min(found.kept), max(found.kept) + 1))
    columns = tuple(range(min(found.needed), max(found.needed) + 1))
    values = np.array([[float(counted.get((kept, need), 0)) or np.nan for need in columns] for kept in rows])
    return HeatMap(
        name="needed-and-kept",
        title="Does heads needed predict what the descent keeps?",
        rows=rows,
        columns=columns,
        row_label="heads kept by the descent",
        column_label="heads needed, each layer alone",
        values=values,
        unit="layers",
        caption=f"number of layers at each pair of counts, after {found.removed} removals"
        + ("" if found.correlation is None else f"; rank correlation {found.correlation}"),
        counts=True,
        words=tuple(tuple("" if np.isnan(value) else f"{value:.0f}" for value in row) for row in values),
    )


def _series(
    name: str, curve: IncreaseCurve, model: TrainedModel, *, place: int, band: bool = False, thin: bool = False
) -> Series:
    line = tuple(_shown(value, model) for value in curve.mean)
    low, high = (tuple(_shown(value, model) for value in edge) for edge in curve.bounds) if band else (None, None)
    return Series(name, curve.at, line, place=place, low=low, high=high, thin=thin)


def _measured(curve: IncreaseCurve) -> IncreaseCurve:
    """Only what was measured of a peer's order, without the original."""
    return IncreaseCurve(curve.at[:-1], curve.mean[:-1], curve.drawn[:, :-1])


def _shown(increase: float, model: TrainedModel) -> float:
    """An increase as it is drawn on a logarithmic axis; NaN where there was no loss."""
    if increase >= NO_LOSS / len(model.layers or (1,)) / 1e3:
        return NO_VALUE
    return max(float(increase), _lowest(model))


def _lowest(model: TrainedModel) -> float:
    return LOWEST * model.budget if model.budget > 0 else 1e-9


def _drawn_at_bottom(model: TrainedModel) -> str:
    return f"; less than {decimal(_lowest(model))} is drawn as that"


def _loss(model: TrainedModel) -> str:
    name = str(model.data.get("loss") or "loss").split(" (")
    unit = f" ({name[1]}" if len(name) > 1 else ""
    return f"loss increase{unit}"


def _tolerance(model: TrainedModel) -> tuple[Level, ...]:
    value = decimal(model.budget)
    return (Level("tolerance", f"tolerance: {value}", model.budget, value),) if model.budget > 0 else ()


def _ticks(low: int, high: int) -> tuple[int, ...]:
    """Round counts from low to high, both included."""
    step = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if (high - low) / size <= 9)
    inner = [tick for tick in range(-(-low // step) * step, high, step) if low < tick and high - tick > step / 2]
    return tuple(dict.fromkeys((low, *(tick for tick in inner if tick - low > step / 2), high)))


def kept_words(model: TrainedModel) -> str:
    """How many heads each layer keeps within the tolerance."""
    whole = model.whole
    return "" if whole is None or not whole.gone else " ".join(map(str, kept_by_layer(model.layers, whole.gone)))
