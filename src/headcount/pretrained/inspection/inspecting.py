"""Inspect a trained model: load it, read the examples, measure every fact that is missing, keep each at once."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import require, require_count
from ...report.phases import Phases, phased_progress
from ...search.levels import DEFAULT_EFFORT
from ...store import Experiment, Store
from ..extra import need
from ..loading.describing import about_data, about_model, short_name, size_of
from ..loading.digests import digest_of
from ..plugin import STUDY
from ..reading.facts import ASKED
from ..reading.read import TOLERANCE
from .configurations import Asked, configuration_facts
from .effort import Schedule, level_of, schedule
from .facts import Subject, facts_of, on_original
from .kept_statistics import KeptStatistics
from .result import Inspection
from .running import COST, Fact, measure_facts

if TYPE_CHECKING:
    from torch import nn

    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Examples
    from ..loading.load import Loaded

QUESTION = "which heads and ranks does this trained model need"


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A model and its examples, ready to be measured. Made by `prepare`."""

    loaded: "Loaded"
    examples: "Examples"
    evaluation: "Evaluation"
    schedule: Schedule
    experiment: Experiment
    asked: Asked
    device: str
    tolerance: float

    @property
    def longest(self) -> int | None:
        """Tokens of the longest example; None where they are no texts."""
        return longest_of(self.examples)

    def facts(self, statistics: KeptStatistics, folder: Path | None) -> tuple[Fact, ...]:
        """Everything that is to be measured, in order; `folder` is where it is kept."""
        asked = replace(self.asked, inspection=None if folder is None else str(folder))
        evaluation = self.evaluation
        subject = Subject(
            evaluation=evaluation,
            statistics=statistics,
            schedule=self.schedule,
            model=about_model(self.loaded, evaluation.layers, evaluation.original, self.device),
            data=about_data(self.examples),
            scale_of=self.examples.loss.scale_of,
        )
        facts = (*facts_of(subject), *configuration_facts(subject, self.loaded, asked))
        return tuple(on_original(evaluation, facts))

    def run(self, store: Store | None = None, *, command: str = "", progress: bool | None = None) -> Inspection:
        """Measure what is missing, and keep each fact in the store as soon as it is there.

        Args:
            store: The results folder, open for writing; None keeps everything in memory.
            command: What was typed, so that readers can say how to go on.
            progress: Whether a bar is shown; None: in a terminal.
        """
        kept: dict[str, Any] = {}
        name, path = self.experiment.name, None
        if store is not None:
            name = store.begin(self.experiment, command).name
            kept = store.facts(name)
            path = store.root / "weights" / f"statistics-{self.experiment.identity}.safetensors"

        def keep(fact: str, value: Any) -> None:
            if store is not None:
                store.put(name, fact, value)

        statistics = KeptStatistics(self.evaluation.statistics, path)
        facts = self.facts(statistics, None if store is None else store.root)
        settings = self.experiment.settings
        kept[ASKED] = {
            "tolerance": self.tolerance,
            "effort": settings["effort"],
            "facts": [fact.name for fact in facts],
        }
        keep(ASKED, kept[ASKED])
        with self._shown(facts, kept, progress) as phases:
            values = measure_facts(
                facts, kept, keep, phases=phases, forward_tokens=lambda: self.evaluation.forward_tokens
            )
        statistics.forget()
        return Inspection(
            facts=values,
            experiment=self.experiment,
            folder=None if store is None else store.root,
            tolerance=self.tolerance,
            command=command,
            prepared=self,
        )

    @contextlib.contextmanager
    def _shown(self, facts: Sequence[Fact], kept: dict[str, Any], progress: bool | None) -> Iterator[Phases]:
        from rich.console import Console

        missing = sum(fact.work for fact in facts if fact.name not in kept)
        tokens = max(1, sum(batch.tokens for batch in self.examples.held_out))
        console = Console(stderr=True)
        if COST in kept:
            missing = 0.0
        with phased_progress(
            console, missing, lambda: self.evaluation.forward_tokens / tokens, wanted=progress
        ) as phases:
            yield phases


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
) -> Prepared:
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
    from ..examples.sizes import default_sizes
    from ..layers.find import attention_layers
    from ..loading.load import load_model, of_module
    from ..losses.loss import device_of

    stored = isinstance(model, str | Path)
    if stored:
        loaded = load_model(model, device=device or "cpu")
    else:
        loaded = of_module(model, tokenizer, processor, device=device)
    device = device or str(device_of(loaded.model))
    layers = attention_layers(loaded.model)
    most = default_sizes(loaded.model).held_out
    tokens = None if examples is not None else min(most, level.max_tokens)
    read = read_examples(loaded, data, length=length, limit=examples, tokens=tokens, seed=seed)
    evaluation = Evaluation(loaded, layers, read)
    parts = {"held_out": read.held_out, "scored": read.part("calibration"), "calibration": read.calibration}
    counted = {name: sum(batch.tokens for batch in batches) for name, batches in parts.items()}
    plan = schedule(effort, size_of(loaded, layers), **counted)
    settings = {
        "model": {"fingerprint": loaded.fingerprint, "family": loaded.family},
        "data": digest_of([read.kind, read.loss.name, read.loss, list(read.calibration), list(read.held_out)]),
        "effort": effort,
        "seed": seed,
        "device": device,
    }
    experiment = Experiment(
        name=short_name(loaded.source),
        question=QUESTION,
        task=short_name(loaded.source),
        axes=(),
        places={},
        settings=settings,
        study=STUDY,
    )
    words = _words_of(data)
    if tokens is not None and tokens < most and read.kind != "own":
        # Other verbs read as much as suits the model's size: their commands name what was read here.
        length = length or longest_of(read)
        examples = 3 * read.counts()["examples"]["held_out"]
    asked = Asked(
        model=loaded.source if stored and (data is None or words is not None) else None,
        data=words,
        length=length,
        examples=examples,
        seed=seed,
    )
    return Prepared(
        loaded=loaded,
        examples=read,
        evaluation=evaluation,
        schedule=plan,
        experiment=experiment,
        asked=asked,
        device=device,
        tolerance=tolerance,
    )


def longest_of(examples: "Examples") -> int | None:
    """Tokens of the longest example; None where they are no texts."""
    inputs = [batch.inputs for batch in (*examples.held_out, *examples.calibration)]
    return max((each["input_ids"].shape[1] for each in inputs if "input_ids" in each), default=None)


def _words_of(data: Any) -> str | None:
    """The data as an option of a command, where it is one."""
    return str(data) if isinstance(data, str | Path) else None


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
        out: A results folder, in which every fact is kept as soon as it is measured; the same call goes on where it was
            ended. None keeps the facts in memory.
        effort: "quick", "normal" or "thorough": how many tokens, and what is measured.
        length: Tokens per example. None: by the size of the model.
        examples: Examples that are read at most, to calibrate on and held out together; a third is held out. None: by
            the size of the model.
        seed: Of everything that is drawn.
        device: Where torch runs, such as "cuda". None: where a module in memory is, else "cpu".
        tolerance: The loss increase that is allowed, as a share of the loss's scale. It is only read, so that other
            values need no new measurement.
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
    prepared = prepare(
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
    )
    if out is None:
        return prepared.run(progress=progress)
    with Store.open_for_writing(out) as store:
        return prepared.run(store, progress=progress)
