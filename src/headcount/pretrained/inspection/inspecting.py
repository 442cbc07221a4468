"""Inspect a trained model: load it, read the examples, measure every fact that is missing, store each at once."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from ...errors import require, require_count
from ...report.phases import Phases, phased_progress
from ...store import Experiment, Store
from ..loading.describing import about_data, about_model, digest_of, short_name
from ..plugin import STUDY, need
from .configurations import configuration_facts
from .effort import DEFAULT_EFFORT, level_of, schedule
from .facts import ASKED, LAST_FACT, TOLERANCE
from .measuring import Fact, Subject, Values, measure_facts
from .model import METRICS
from .result import Inspection

if TYPE_CHECKING:
    from torch import nn

    from ..examples.batches import SplitExamples

QUESTION = "which heads and ranks does this trained model need"


def facts_of(subject: Subject) -> list[Fact]:
    """All facts of a model but its configurations, in order."""

    def base(_: Values) -> dict[str, Any]:
        return {"losses": subject.evaluation.losses().tolist()}

    def data(values: Values) -> dict[str, Any]:
        return {**subject.data, "scale": float(subject.examples.loss.scale_of(np.array(values["base"]["losses"])))}

    def statistics(_: Values) -> dict[str, int]:
        return {"tokens": subject.statistics[0].tokens}  # measured here, so that the time is that of this fact

    passes = subject.schedule.passes
    first = [
        Fact(name="model", phase="reading the model", work=0.0, measure=lambda _: dict(subject.model)),
        Fact(name="base", phase="losses of the original", work=passes["base"], measure=base),
        Fact(name="data", phase="losses of the original", work=0.0, measure=data),
        Fact(name="statistics", phase="statistics of all layers", work=passes["statistics"], measure=statistics),
    ]
    return first + [fact for metric in METRICS for fact in metric.facts(subject)]


def measure_into(
    subject: Subject, store: Store | None = None, *, command: str = "", progress: bool | None = None
) -> Inspection:
    """Measure what is missing, and store each fact as soon as it is there; without a store, keep all in memory."""
    kept: dict[str, Any] = {}
    name = subject.experiment.name
    if store is not None:
        name = store.begin(subject.experiment, command).name
        kept = store.facts(name)
        subject.file = store.root / "weights" / f"statistics-{subject.experiment.identity}.safetensors"
        if subject.read_by is not None:
            subject.read_by["--inspection"] = str(store.root)

    def keep(fact: str, value: Any) -> None:
        if store is not None:
            store.put(name, fact, value)

    facts = [*facts_of(subject), *configuration_facts(subject)]
    effort = subject.experiment.settings["effort"]
    kept[ASKED] = {"tolerance": subject.tolerance, "effort": effort, "facts": [fact.name for fact in facts]}
    keep(ASKED, kept[ASKED])
    with _progress(subject, facts, kept, progress) as phases:
        values = measure_facts(subject, facts, kept, keep, phases=phases)
    if subject.file is not None:
        subject.file.unlink(missing_ok=True)  # nothing is left to be measured with it
    return Inspection(
        facts=values,
        experiment=subject.experiment,
        folder=None if store is None else store.root,
        tolerance=subject.tolerance,
        command=command,
        subject=subject,
    )


def _progress(
    subject: Subject, facts: Sequence[Fact], kept: dict[str, Any], wanted: bool | None
) -> contextlib.AbstractContextManager[Phases]:
    """A bar of the passes that the missing facts take."""
    missing = 0.0 if LAST_FACT in kept else sum(fact.work for fact in facts if fact.name not in kept)
    tokens = max(1, sum(batch.tokens for batch in subject.examples.held_out))
    return phased_progress(
        Console(stderr=True), missing, lambda: subject.evaluation.forward_tokens / tokens, wanted=wanted
    )


def prepare(
    model: "nn.Module | str | Path",
    data: Any = None,
    *,
    tokenizer: Any = None,
    processor: Any = None,
    effort: str = DEFAULT_EFFORT,
    length: int | None = None,
    examples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    tolerance: float = TOLERANCE,
    layout: Mapping[str, Any] | None = None,
) -> Subject:
    """Load the model and read the examples; see `inspect` for the arguments."""
    require(0 < tolerance < 1, what="tolerance", given=tolerance, needed="above 0 and below 1")
    for name, value in (("length", length), ("examples", examples)):
        if value is not None:
            require_count(name, value, 2)
    require_count("seed", seed, 0)
    level = level_of(effort)
    need()
    from ..evaluation.evaluate import Evaluation
    from ..examples.read import read_examples
    from ..examples.sizes import block_and_head_parameters, default_sizes
    from ..layers.find import attention_layers
    from ..loading.load import load_model, of_module
    from ..losses.loss import device_of

    stored = isinstance(model, str | Path)
    require(
        layout is None or not stored,
        f"layout is for a module in memory, got {model}; load the model and give the object.",
    )
    if stored:
        loaded = load_model(model, device=device or "cpu")
    else:
        loaded = of_module(model, tokenizer, processor, device=device, layout=layout)
    device = device or str(device_of(loaded.model))
    layers = attention_layers(loaded.model)
    most = default_sizes(loaded.model).held_out
    tokens = None if examples is not None else min(most, level.max_tokens)
    read = read_examples(loaded, data, length=length, limit=examples, tokens=tokens, seed=seed)
    evaluation = Evaluation(loaded, layers, read)
    settings = {
        "model": {"fingerprint": loaded.fingerprint, "family": loaded.family},
        "data": digest_of([read.kind, read.loss.name, read.loss, list(read.calibration), list(read.held_out)]),
        "effort": effort,
        "seed": seed,
        "device": device,
        **({} if layout is None else {"layout": dict(layout)}),
    }
    name = short_name(loaded.source)
    if tokens is not None and tokens < most and read.kind != "own":
        # Other verbs read as much as suits the model's size: their commands name what was read here.
        length = length or longest_of(read)
        examples = 3 * read.counts()["examples"]["held_out"]
    read_by = None
    if stored and (data is None or isinstance(data, str | Path)):
        read_by = {"model": loaded.source, "--data": data, "--length": length, "--examples": examples}
        read_by["--seed"] = seed or None
    parts = {"held_out": read.held_out, "scored": read.judged_part("calibration"), "calibration": read.calibration}
    sizes = {part: sum(batch.tokens for batch in batches) for part, batches in parts.items()}
    sizes |= {"layers": len(layers), "heads": sum(layer.heads for layer in layers)}
    sizes["used_parameters"] = max(1, sum(block_and_head_parameters(loaded.model)))
    return Subject(
        evaluation=evaluation,
        schedule=schedule(effort, **sizes),
        model=about_model(loaded, layers, evaluation.original, device),
        data=about_data(read),
        experiment=Experiment(
            name=name, question=QUESTION, task=name, axes=(), places={}, settings=settings, study=STUDY
        ),
        tolerance=tolerance,
        read_by=read_by,
    )


def longest_of(examples: "SplitExamples") -> int | None:
    """Tokens of the longest example; None where they are no texts."""
    inputs = [batch.inputs for batch in (*examples.held_out, *examples.calibration)]
    return max((each["input_ids"].shape[1] for each in inputs if "input_ids" in each), default=None)


def inspect(
    model: "nn.Module | str | Path",
    data: Any = None,
    *,
    tokenizer: Any = None,
    processor: Any = None,
    out: str | Path | None = None,
    effort: str = DEFAULT_EFFORT,
    length: int | None = None,
    examples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    tolerance: float = TOLERANCE,
    layout: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Inspection:
    """Which heads of a trained model are needed, of which rank, and what can go.

    Args:
        model: A folder with config.json and safetensors, a name on the Hugging Face hub, or a module in memory, which
            is the same bit for bit afterwards.
        data: What the model is judged on: a file of text lines or of pairs with scores, a folder of images,
            "mine.py:loss", a list of strings or of (text, text, score), or (batches, loss). None: a stated default.
        tokenizer: For a module in memory that reads texts.
        processor: For a module in memory that reads images.
        out: A results folder, in which every fact is stored as soon as it is measured; the same call continues where it
            was ended. None keeps the facts in memory.
        effort: "quick", "normal" or "thorough": how many tokens, and what is measured.
        length: Tokens per example. None: by the size of the model.
        examples: Examples that are read at most, to calibrate on and held out together; a third is held out. None: by
            the size of the model.
        seed: Of everything that is drawn.
        device: Where torch runs, such as "cuda". None: where a module in memory is, else "cpu".
        tolerance: The loss increase that is allowed, as a share of the loss's scale. It is only read, so that other
            values need no new measurement.
        layout: Of a module in memory whose attention is not found: {"packed": "qkv", "output": "proj", "heads": 4}, or
            "query", "key" and "value" in place of "packed", paths below the module of one layer.
        progress: Whether a bar is shown; None: in a terminal.

    Returns:
        What was measured; `print` shows it, `.report(path)` draws it, `.plan(keep=4)` makes a smaller model.

    Raises:
        InputError: If torch or transformers is missing, the model cannot be read, or the data do not suit it.
        StoreError: If the folder cannot be written.

    Example:
        >>> import torch, headcount as hc
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
        ...     num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=32)
        >>> model = LlamaForCausalLM(config).eval()
        >>> inspection = hc.inspect(model, effort="quick", length=8, examples=4)
        >>> inspection.importance.shape
        (2, 4)
    """
    subject = prepare(
        model,
        data,
        tokenizer=tokenizer,
        processor=processor,
        effort=effort,
        length=length,
        examples=examples,
        seed=seed,
        device=device,
        tolerance=tolerance,
        layout=layout,
    )
    if out is None:
        return measure_into(subject, progress=progress)
    with Store.open_for_writing(out) as store:
        return measure_into(subject, store, progress=progress)
