"""Batches of examples for a trained model, and their two parts. Needs torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

if TYPE_CHECKING:
    from ..losses.loss import Loss

FEWEST_BATCHES = 8
"""Of the calibration part: a search fits layers on some of its batches and scores them on the others."""
Kind = Literal["text", "pairs", "images", "own", "default"]
Part = Literal["held_out", "calibration"]
Tick = Callable[[int, int, str], None]
"""Progress: steps done, steps in all, and what is being done."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some examples that go through the model together.

    `inputs` are keyword arguments of the model; empty where a user's own loss calls it, whose batch is `given`. Their
    rows may be a multiple of the `examples` (two texts per pair). `counted` says which tokens are not padding; where it
    is None all count, `per_example` each. `extras` are further input of the loss: labels, scores, or
    the original's output.
    """

    inputs: dict[str, Tensor]
    examples: int
    counted: Bool[Tensor, "rows tokens"] | None = None
    extras: dict[str, Tensor] = field(default_factory=dict)
    given: Any = None
    per_example: int = 1

    @property
    def tokens(self) -> int:
        """Tokens that are not padding."""
        return self.examples * self.per_example if self.counted is None else int(self.counted.sum())

    def inputs_on(self, device: torch.device) -> dict[str, Tensor]:
        return {name: value.to(device) for name, value in self.inputs.items()}


Parts = tuple[list[Batch], list[Batch]]
"""Held-out and calibration batches."""


def in_batches(held_out: Any, calibration: Any, most: int, batch: Callable[[Any], Batch]) -> Parts:
    """Both parts' items in batches of at most `most`, made by `batch` of some items."""

    def batches(items: Any, fewest: int) -> list[Batch]:
        rows = max(1, min(most, len(items) // fewest))
        return [batch(items[start : start + rows]) for start in range(0, len(items), rows)]

    return batches(held_out, 1), batches(calibration, FEWEST_BATCHES)


@dataclass(frozen=True, eq=False)
class SplitExamples:
    """The examples that a trained model is judged on: statistics and refits see `calibration`, losses are reported on
    `held_out`; no example is in both.

    `words` say what was read, with counts, `cannot` what these data cannot say. A search compares changes on the first
    `scored` batches of `calibration`: about as many tokens as are held out, where statistics need more.
    """

    kind: Kind
    words: str
    cannot: str
    loss: "Loss"
    calibration: Sequence[Batch]
    held_out: Sequence[Batch]
    scored: int | None = None

    def judged_part(self, name: Part) -> Sequence[Batch]:
        """The batches whose losses are taken: all that are held out, or the scored ones of the calibration part."""
        return self.held_out if name == "held_out" else self.calibration[: self.scored]

    def counts(self) -> dict[str, dict[str, int]]:
        """Examples and tokens of both parts."""
        parts = {"calibration": self.calibration, "held_out": self.held_out}
        return {
            "examples": {name: sum(batch.examples for batch in batches) for name, batches in parts.items()},
            "tokens": {name: sum(batch.tokens for batch in batches) for name, batches in parts.items()},
        }
