"""The page of a trained model: every metric drawn, in grids and in words."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ...answer.next_steps import NextStep
from ...answer.words import decimal
from ...registry import StoredExperiment
from ...report.document import Document, NamedFacts, Notes, Steps, Text
from ...store import Experiment
from .descent import kept_by_layer, order_words, peer_words, removable_words, whole_chart
from .heads import layers_chart, needed_chart, transition_rows
from .importance import agreement_words, importance_map
from .layers import layer_grids, needed_words, range_words, short_of_words
from .model import TrainedModel, read_trained_model
from .prediction import prediction_map, prediction_words
from .ranks import rank_chart, rank_needed_chart
from .recommended import configuration_grids, recommended_words
from .redundancy import redundancy_words

CHARTS = (
    importance_map,
    whole_chart,
    needed_chart,
    layers_chart,
    rank_needed_chart,
    rank_chart,
    prediction_map,
)
"""Every chart, the most telling first; each is None where its facts are missing."""
SENTENCES = (
    removable_words,
    needed_words,
    short_of_words,
    recommended_words,
    order_words,
    peer_words,
    prediction_words,
)
"""Every sentence; each is empty where its facts are missing."""
LIMITS = (
    "This says which heads the model uses on these data. Whether more heads, or a higher rank, would help it only "
    "training with more of them can say.",
    "Heads that these data do not need, other data may need.",
    "Heads needed are per layer, all other layers unchanged: the layers' spare heads cannot all go together.",
)
FEW_EXAMPLES = 20
"""Fewer held-out examples leave intervals that are too narrow where losses are skewed: with lognormal ones (sigma 1)
those of 8 to 20 examples cover 79 to 82 %."""
SHAPE = {
    "layers": "layers",
    "heads": "heads per layer",
    "key_heads": "key heads",
    "head_dim": "head dim",
    "parameters": "parameters",
}


def trained_model_document(
    experiment: Experiment,
    stored: Mapping[str, Any],
    *,
    folder: str = "",
    command: str = "",
    tolerance: float | None = None,
) -> Document | None:
    """The document of an inspection; None where nothing that can be drawn was measured yet.

    `command` is the last one that ran the inspection; empty from Python, as `folder` is for facts in memory.
    """
    model = read_trained_model(stored, tolerance=tolerance)
    charts = tuple(filter(None, (draw(model) for draw in CHARTS)))
    if not charts:
        return None
    said, steps = sentences(model), tuple(_next_steps(model, folder, command))
    warning, notes = incomplete(model, command), limits(model)
    content = {
        "prose": list(said),
        "next_steps": [asdict(step) for step in steps],
        "warning": warning,
        "notes": list(notes),
        "trained_model": model.as_dict(),
    }
    return Document(
        content=lambda: content,
        kind="inspection",
        name=experiment.name,
        title=model.name,
        question=f"{experiment.question[:1].upper()}{experiment.question[1:].rstrip('?')}?",
        headline=inspection_headline(model),
        warning=warning,
        blocks=(
            Text(((model.name, "bold"),), shown="terminal"),
            *charts,
            *layer_grids(model),
            *configuration_grids(model),
            NamedFacts(tuple(_evidence(model, command)), "Evidence for the answer"),
            Notes(notes, "What this does not say", name="does not say"),
            *((Text.of_sentences(said),) if said else ()),
            Steps(steps),
        ),
    )


def inspection_documents(stored: StoredExperiment) -> list[Document]:
    """The document of a stored inspection; none where nothing that can be drawn was measured yet."""
    folder, command = str(stored.folder), stored.command
    document = trained_model_document(stored.experiment, stored.attachments, folder=folder, command=command)
    return [] if document is None else [document]


def sentences(model: TrainedModel) -> tuple[str, ...]:
    """The reading in words."""
    return tuple(filter(None, (say(model) for say in SENTENCES)))


def inspection_headline(model: TrainedModel) -> str:
    """How many heads can go, in one sentence; before that is measured, what is known of the layers."""
    allowed, whole = f"within a loss increase of {decimal(model.budget)}", model.whole
    if whole is not None:
        above = whole.next_measured or 0
        if whole.removable.at == 0 and above > 1:
            between = f"between 0 and {above - 1} of {whole.total} heads can go {allowed}"
            return f"{model.name}: {between}; none was measured between"
        return f"{model.name}: {whole.removable_words} of {whole.total} heads can go {allowed}"
    read = [layer for layer in model.layers if layer.needed is not None]
    if read:
        counts = range_words(layer.needed.at for layer in read if layer.needed is not None)
        which = "layers need" if len(read) == len(model.layers) else f"the {len(read)} layers read so far need"
        return f"{model.name}: {which} {counts} of {range_words(layer.heads for layer in read)} heads to stay {allowed}"
    measured = sum(bool(layer.importance) for layer in model.layers)
    return f"{model.name}: importance of heads in {measured} of {len(model.layers)} layers, heads needed not yet"


def limits(model: TrainedModel) -> tuple[str, ...]:
    """What the reading does not say."""
    count = (model.data.get("examples") or {}).get("held_out")
    few = "" if count is None or count >= FEW_EXAMPLES else (
        f"Intervals rest on {count} held-out examples. They are widened for so few (Student's t), but where few "
        "examples have most of the loss increase they cover about 80 % instead of 90 %."
    )  # fmt: skip
    return tuple(filter(None, (*LIMITS, few, str(model.data.get("cannot") or ""))))


def incomplete(model: TrainedModel, command: str) -> str:
    """Warning for an unfinished inspection; "" if complete."""
    if not model.missing:
        return ""
    return f"The inspection is not complete. Missing: {', '.join(model.missing)}. {go_on(command)}"


def go_on(command: str) -> str:
    """What continues an inspection that was started by this command, or from Python where it is empty."""
    return f"To continue, run: {command}" if command else "To continue, run the same Python code again."


def _evidence(model: TrainedModel, command: str) -> Iterator[tuple[str, str]]:
    """What the reading rests on, as rows of words."""
    facts, data, whole = model.model, model.data, model.whole
    shape = [f"{facts[name]:,} {words}" for name, words in SHAPE.items() if isinstance(facts.get(name), int)]
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
    if whole is not None and whole.gone:
        kept = " ".join(map(str, kept_by_layer(model.layers, whole.gone)))
        yield "kept per layer", f"{kept} ({whole.gone_by})"
    versions = [f"{name} {facts[name]}" for name in ("torch", "transformers", "device") if facts.get(name)]
    if versions:
        yield "made with", ", ".join(versions)
    if model.cost.get("seconds") is not None:
        yield "cost", _cost(model.cost)
    if command:
        yield "command", command


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
        yield NextStep("The inspection is not complete; this continues from what is stored", command)
    if model.recommended is not None and model.recommended.command:
        yield NextStep(f"Write the recommended configuration ({model.recommended.name})", model.recommended.command)
    if model.effort == "quick" and command and not model.missing:
        more = "Ranks, each head left out in turn, and other orders of removal: quick omits them"
        without_effort = re.sub(r"\s--effort[ =]\S+", "", command)
        yield NextStep(more, f"{without_effort} --effort normal")
    if folder:
        yield NextStep("See it drawn", f"headcount report {folder} --open")
