"""The section of a trained model: what an inspection says, drawn, in grids and in words."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...answer.bootstrap import COVERAGE
from ...answer.next_steps import NextStep
from ...answer.words import decimal
from ...registry import StoredExperiment
from ...report.section import Grid, Section
from ...store import Experiment
from ..reading.facts import IncreaseCurve
from ..reading.layers import KINDS, LayerReading
from ..reading.read import TrainedModel, read_trained_model
from ..reading.whole import Configuration
from ..reading.words import (
    agreement_words,
    headline,
    incomplete,
    limits,
    redundancy_words,
    sentences,
    transition_rows,
)
from .charts import kept_words, trained_model_charts


def inspection_sections(stored: StoredExperiment) -> list[Section]:
    """The section of a stored inspection; none where nothing that can be drawn was measured yet."""
    folder, command = str(stored.folder), stored.command
    section = trained_model_section(stored.experiment, stored.attachments, folder=folder, command=command)
    return [] if section is None else [section]


def trained_model_section(
    experiment: Experiment,
    attachments: Mapping[str, Any],
    *,
    folder: str = "",
    command: str = "",
    tolerance: float | None = None,
) -> Section | None:
    """The section of an inspection; None where nothing that can be drawn was measured yet.

    Arguments: `attachments` are the facts of the store; `folder` and the last `command` of the inspection are for the
    next steps, and empty where they are not known; `tolerance` None: as the inspection was asked.
    """
    model = read_trained_model(attachments, tolerance=tolerance)
    charts = trained_model_charts(model)
    if not charts:
        return None
    return Section(
        name=experiment.name,
        title=model.name,
        asks=f"{experiment.question[:1].upper()}{experiment.question[1:].rstrip('?')}?",
        headline=headline(model),
        grids=tuple(_grids(model)),
        charts=charts,
        notes=limits(model),
        prose=sentences(model),
        next_steps=tuple(_next_steps(model, folder, command)),
        trained_model=model.as_dict(),
        evidence=tuple(_evidence(model, command)),
        warning=incomplete(model, command),
    )


def _grids(model: TrainedModel) -> Iterator[Grid]:
    read = [layer for layer in model.layers if layer.needed is not None or layer.ranks]
    if read:
        coverage = f"{100 * COVERAGE:.0f} %"
        omitted = "; -: not measured at effort quick" if model.effort == "quick" else ""
        yield Grid(
            title=f"Each layer alone, within a loss increase of {decimal(model.budget)} [{coverage} of resamples]; "
            f"what it is short of, and in how many resamples (fewer than {coverage}: undecided){omitted}",
            columns=("layer", "heads", "needed", "transition", "scores rank", "values rank", "short of"),
            rows=tuple(_layer_row(layer) for layer in read),
        )
        yield Grid(
            title=f"What one step less costs, in tolerances: 1 is a loss increase of {decimal(_unit(model))}",
            columns=("layer", "one head fewer", "lower scores rank", "lower values rank"),
            rows=tuple(_step_row(layer, _unit(model)) for layer in read),
            folded=True,
        )
    if model.configurations:
        columns = (
            "configuration", "heads", "key heads", "head dim", "loss increase", "parameters", "cache bytes/token",
            "s / 1,000 tokens", "stored",
        )  # fmt: skip
        rows = [_configuration_row(each, model) for each in model.configurations]
        shown = [place for place in range(len(columns)) if any(row[place] != "-" for row in rows)]
        yield Grid(
            title="Measured configurations",
            columns=tuple(columns[place] for place in shown),
            rows=tuple(tuple(row[place] for place in shown) for row in rows),
        )


def _layer_row(layer: LayerReading) -> tuple[str, ...]:
    transition = layer.transition
    drop = "-" if transition is None else "none" if transition.heads is None else str(transition.heads)
    ranks = [str(layer.ranks[kind]) if kind in layer.ranks else "-" for kind in KINDS]
    needed = "-" if layer.needed is None else str(layer.needed)
    short_of = layer.short_of or "-"
    short_of += f", {layer.support:.0%}" if layer.support else ""
    return str(layer.index), str(layer.heads), needed, drop, *ranks, short_of


def _unit(model: TrainedModel) -> float:
    """What loss increases are counted in; the loss itself where no increase is allowed."""
    return model.budget if model.budget > 0 else 1.0


def _step_row(layer: LayerReading, unit: float) -> tuple[str, ...]:
    ranks = [layer.ranks[kind].curve if kind in layer.ranks else None for kind in KINDS]
    return str(layer.index), _step(layer.curve, unit), *(_step(curve, unit) for curve in ranks)


def _step(curve: IncreaseCurve | None, unit: float) -> str:
    """The loss increase at the place before the original, and that place where it is not one less."""
    if curve is None or len(curve.at) < 2:
        return "-"
    at, (low, high) = curve.mean[-2] / unit, curve.bounds[:, -2] / unit
    place = "" if curve.at[-2] == curve.at[-1] - 1 else f"{curve.at[-2]}: "
    return f"{place}{at:.2g} [{low:.2g}, {high:.2g}]"


def _configuration_row(each: Configuration, model: TrainedModel) -> tuple[str, ...]:
    mark = " (recommended)" if each == model.recommended else ""
    counts = [_count(value) for value in (each.heads, each.key_heads, each.head_dim)]
    sizes = ["-" if value is None else f"{value:,.0f}" for value in (each.parameters, each.cache_bytes_per_token)]
    seconds = "-" if each.seconds is None else decimal(each.seconds)
    increase = f"{decimal(each.increase)} [{decimal(each.low)}, {decimal(each.high)}]"
    return f"{each.name}{mark}", *counts, increase, *sizes, seconds, each.stored or "-"


def _count(value: Any) -> str:
    """A count, or the least and the most of one per layer."""
    if isinstance(value, list | tuple):
        return "-" if not value else " to ".join(dict.fromkeys((str(min(value)), str(max(value)))))
    return "-" if value is None else str(value)


def _evidence(model: TrainedModel, command: str) -> Iterator[tuple[str, str]]:
    """What the reading rests on, as rows of words."""
    facts, data = model.model, model.data
    shape = [f"{facts[name]:,} {words}" for name, words in _SHAPE.items() if isinstance(facts.get(name), int)]
    if shape:
        yield "model", f"{facts.get('architecture') or facts.get('family') or model.name}: {', '.join(shape)}"
    if data.get("words"):
        yield "data", _data(data)
    if data.get("loss"):
        allowed = f"{model.tolerance:.3g} x {decimal(model.scale)} = {decimal(model.budget)}"
        yield "loss", f"{data['loss']}; tolerance {allowed}"
    yield from transition_rows(model)
    if agreement_words(model):
        yield "importance", agreement_words(model)
    yield from redundancy_words(model)
    if model.whole is not None and kept_words(model):
        yield "kept per layer", f"{kept_words(model)} ({model.whole.gone_by})"
    versions = [f"{name} {facts[name]}" for name in ("torch", "transformers", "device") if facts.get(name)]
    if versions:
        yield "made with", ", ".join(versions)
    if model.cost.get("seconds") is not None:
        yield "cost", _cost(model.cost)
    if command:
        yield "command", command


_SHAPE = {
    "layers": "layers",
    "heads": "heads per layer",
    "key_heads": "key heads",
    "head_dim": "head dim",
    "parameters": "parameters",
}


def _data(data: Mapping[str, Any]) -> str:
    """What was read, and how many examples were held out where that is not said."""
    words, count = str(data["words"]).rstrip("."), (data.get("examples") or {}).get("held_out")
    return words if count is None or "held out" in words else f"{words}; {count:,} held-out examples"


def _cost(cost: Mapping[str, Any]) -> str:
    parts = [f"{cost['seconds']:,.0f} s"]
    if cost.get("peak_bytes"):
        parts.append(f"{cost['peak_bytes'] / 1e9:.2g} GB at most")
    if cost.get("forward_tokens"):
        parts.append(f"{cost['forward_tokens']:,} tokens forward")
    return ", ".join(parts)


def _next_steps(model: TrainedModel, folder: str, command: str) -> Iterator[NextStep]:
    if model.missing and command:
        yield NextStep("The inspection is not complete; this goes on from what is stored", command)
    if model.recommended is not None and model.recommended.command:
        yield NextStep(f"Write the recommended configuration ({model.recommended.name})", model.recommended.command)
    if model.effort == "quick" and command and not model.missing:
        more = "Ranks, each head left out in turn, and other orders of removal: quick omits them"
        yield NextStep(more, f"{_without_effort(command)} --effort normal")
    if folder:
        yield NextStep("See it drawn", f"headcount report {folder} --open")


def _without_effort(command: str) -> str:
    """A command, without the effort that it names."""
    return re.sub(r"\s--effort[ =]\S+", "", command)
