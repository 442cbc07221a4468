"""Which stock transformers are trained on a task, and the file that keeps what came out of each."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount.stock import StockConfig, StockExamples, train_stock

from .known import KnownD

WIDTH, HEAD_DIM = 48, 8
SHARING = (1, 2, 3, 4, 6, 8)
"""Head counts that share `WIDTH`."""
DEEPEST = {"lookup-3", "readers-3"}
"""Tasks of which four layers are trained too."""
LAYERS, WIDTHS, HEADS = (1, 2), (16, 32, 64), (1, 2, 4, 8)
"""The grid of a real set: 24 encoders."""
STEPS = {"known": 1000, "real": 500}
SEEDS = (0, 1)
PATIENCE = {"known": None, "real": 8}
"""Of the 20 validations of a run, those without a smaller error after which it ends."""
FILE_NAME = "stock.jsonl"


@dataclass(frozen=True)
class Trial:
    """A stock model to train on a task."""

    task: str
    config: StockConfig
    seed: int = 0
    steps: int = STEPS["real"]
    examples: int = 0

    @property
    def key(self) -> str:
        """What a result is found by."""
        return json.dumps([self.task, self.config.as_dict(), self.seed, self.steps, self.examples], sort_keys=True)


@dataclass(frozen=True)
class Trained:
    """What came out of a trial; `losses` are those of the validation examples, of real sets alone."""

    error: float
    parameters: int
    seconds: float
    losses: tuple[float, ...] = ()


def fixed_width(heads: int, layers: int = 1, width: int = WIDTH) -> StockConfig:
    """Return PyTorch's encoder whose heads share its width."""
    return StockConfig(library="torch", layers=layers, width=width, heads=heads)


def fixed_head_width(heads: int, head_dim: int = HEAD_DIM) -> StockConfig:
    """Return a decoder of transformers whose heads are of one width, whatever their number."""
    return StockConfig(library="hf", layers=1, width=WIDTH, heads=heads, head_dim=head_dim, feed_forward=2 * WIDTH)


def known_configs(task: KnownD) -> dict[str, list[StockConfig]]:
    """Return the models of a task of known D by rule: up to two heads more than D, and up to D in deeper models."""
    known = task.intrinsic_dim
    top = min(count for count in SHARING if count >= known + 2)
    shared = [count for count in SHARING if count <= top]
    fewer = [count for count in shared if count <= max(2, known)]
    rules = {
        "fixed width, 1 layer": [fixed_width(count) for count in shared],
        "fixed head width, 1 layer": [fixed_head_width(count) for count in range(1, known + 3)],
        "fixed width, 2 layers": [fixed_width(count, 2) for count in fewer],
    }
    if task.name in DEEPEST:
        rules["fixed width, 4 layers"] = [fixed_width(count, 4) for count in fewer]
    return rules


def real_configs() -> list[StockConfig]:
    """Return the 24 encoders that are trained on a real set."""
    return [fixed_width(heads, layers, width) for layers in LAYERS for width in WIDTHS for heads in HEADS]


class Results:
    """Results of trials in a file of JSON lines; a trial that is there is not trained again."""

    def __init__(self, folder: Path):
        self.path = folder / FILE_NAME
        self.found: dict[str, Trained] = {}
        for content in _lines(self.path):
            key, losses = content.pop("key"), tuple(content.pop("losses"))
            self.found[key] = Trained(**content, losses=losses)

    def __getitem__(self, trial: Trial) -> Trained:
        return self.found[trial.key]

    def __contains__(self, trial: Trial) -> bool:
        return trial.key in self.found

    def missing(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return the trials without a result."""
        return [trial for trial in trials if trial not in self]

    def train(self, trial: Trial, examples: StockExamples, *, keep_losses: bool = False) -> Trained:
        """Return the result of a trial, trained and stored where it is missing; seconds are of the CPU."""
        if trial not in self:
            began = time.process_time()
            patience = PATIENCE["real" if keep_losses else "known"]
            result = train_stock(trial.config, examples, steps=trial.steps, seed=trial.seed, patience=patience)
            seconds = round(time.process_time() - began, 3)
            losses = tuple(float(f"{loss:.4g}") for loss in result.losses) if keep_losses else ()
            self.found[trial.key] = Trained(float(result.error), result.parameters, seconds, losses)
            with self.path.open("a") as file:
                file.write(json.dumps({"key": trial.key, **vars(self.found[trial.key])}) + "\n")
        return self.found[trial.key]

    def mean(self, trials: Iterable[Trial]) -> tuple[float, np.ndarray]:
        """Return the mean error of trials that differ in their seeds alone, and that of every validation example."""
        results = [self[trial] for trial in trials if trial in self]
        return float(np.mean([each.error for each in results])), np.mean([each.losses for each in results], axis=0)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file; a line that was cut off is left out."""
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue
