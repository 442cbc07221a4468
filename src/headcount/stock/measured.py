"""A stock model for a measured task: what to begin with, the table of what was trained, the files that are written."""

import json
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answer import Answer
from ..answer.words import count_of_heads
from ..events import Event, Events
from ..report.files import write_whole
from .choose import ChosenModel, choose
from .config import Library, StockConfig
from .examples import StockExamples, require_sequences
from .script import DATA_FILE, script_of, write_data
from .train import StockResult, need_library, train_stock, usual_steps

if TYPE_CHECKING:
    from ..measurement import Measurement
    from ..registry import Configurator
    from ..tasks import AbstractTask

COLUMNS = ("heads", "head_dim", "key heads", "layers", "width", "error", "parameters", "CPU s", "")
CHANCE = 1.645
"""Standard errors on each side of an error within which 90 % of others lie."""
USUAL_HEADS = 4
"""Heads to begin with at least, unless a number of heads is needed."""
PATIENCE = 5
"""Validations of 20 without a smaller error after which training stops: a tenth of the steps is saved, or more."""


def configurator_of(library: Library, task: "AbstractTask") -> "Configurator":
    """Return what chooses a model of a library. Raises InputError where it is missing, or the task has no sequences."""
    need_library(library)
    require_sequences(task)
    return partial(chosen_configuration, library, task)


def chosen_configuration(
    library: Library,
    task: "AbstractTask",
    measurement: "Measurement",
    stored: dict[str, Any],
    events: Events,
    stop: threading.Event,
) -> dict[str, Any]:
    """Return the chosen model as JSON, with a table, and write it into the results folder with a script and its data.

    What is `stored` is returned again where it began from the same answer on the same examples.
    """
    heads, fewer = heads_to_begin(measurement.answer())
    train = min((each.cell for each in measurement.records), key=lambda cell: cell.train.data_seed).train
    length = max(each.cell.length for each in measurement.records)
    begun = {"heads": heads, "fewer": fewer, "length": length, "data_seed": train.data_seed}
    if stored.get("begun") == begun and all((measurement.folder / name).exists() for name in stored["files"]):
        return stored
    examples = StockExamples.of_task(task.at(length), train)
    steps = usual_steps(examples)
    events(Event("note", f"training stock models of {library} of about {count_of_heads(heads)}, {steps:,} steps"))

    def trained(config: StockConfig, steps: int) -> StockResult:
        events(Event("round", str(config), total=steps))

        def heard(count: int) -> None:
            events(Event("steps", done=count))
            if stop.is_set():
                raise KeyboardInterrupt

        return train_stock(config, examples, steps=steps, patience=PATIENCE, heard=heard)

    choice = choose(trained, library, heads=heads, fewer=fewer, shape=examples.shape, steps=steps)
    content = content_of(choice, examples, steps) | {"begun": begun}
    content["files"] = _write(measurement.folder, content, choice.chosen, examples)
    events(Event("note", f"written: {', '.join(str(measurement.folder / name) for name in content['files'])}"))
    return content


def heads_to_begin(answer: Answer) -> tuple[int, int | None]:
    """Return the heads to begin with, and fewer to try in the end.

    A number that is needed is both. One that is enough was found where more heads make a model wider; in a stock model
    they share its width, so that more may cost nothing.
    """
    if answer.kind == "needs" and (answer.heads or 1) > 1:
        return answer.heads or 1, None
    return max(USUAL_HEADS, answer.heads or 1), answer.heads


def content_of(choice: ChosenModel, examples: StockExamples, steps: int) -> dict[str, Any]:
    """Return a choice as JSON: the configuration, its error, and the table of what was trained in full."""
    chosen, metric = choice.chosen, "error rate" if examples.shape.classes else "NMSE"
    low, high = interval(chosen)
    best = "" if choice.best is chosen else f"; the best of those trained has {choice.best.error:.3g}"
    sentence = (
        f"{chosen.config}: {metric} {chosen.error:.3g} [{low:.3g}, {high:.3g}] with {chosen.parameters:,} parameters"
        f"{best}"
    )
    return {
        "sentence": sentence,
        "config": chosen.config.as_dict(),
        "metric": metric,
        "error": chosen.error,
        "interval": [low, high],
        "parameters": chosen.parameters,
        "steps": steps,
        "runs": choice.runs,
        "columns": COLUMNS,
        "rows": [_row(each, chosen) for each in choice.trained],
        "marked": choice.trained.index(chosen),
    }


def interval(result: StockResult) -> tuple[float, float]:
    """Return the 90 % interval of an error over the validation examples."""
    margin = CHANCE * float(np.std(result.losses)) / len(result.losses) ** 0.5
    return max(0.0, result.error - margin), result.error + margin


def _row(result: StockResult, chosen: StockResult) -> tuple[str, ...]:
    config = result.config
    sizes = (config.heads, config.head_dim, config.key_heads, config.layers, config.width)
    words = "use" if result is chosen else ""
    return (*map(str, sizes), f"{result.error:.3g}", f"{result.parameters:,}", f"{result.seconds:.1f}", words)


def _write(folder: Path, content: dict[str, Any], chosen: StockResult, examples: StockExamples) -> list[str]:
    """Write the configuration, a script that trains it and the data of the script; return their names."""
    library = chosen.config.library
    names = [f"stock-{library}.json", f"train_stock_{library}.py", DATA_FILE]
    files = {
        names[0]: json.dumps(content, indent=1).encode(),
        names[1]: script_of(chosen, examples, content["steps"], content["metric"]).encode(),
        names[2]: write_data(examples),
    }
    for name, written in files.items():
        write_whole(folder / name, written)
    return names
