"""How many examples with random labels does one attention layer of H heads memorise?

Mahdavi, Liao and Thrampoulidis, "Memorization Capacity of Multi-Head Attention in Transformers" (ICLR 2024, arXiv
2306.02010), prove that some weights of H heads of key width d_h memorise H (r - 1) + 1 examples, r = min(n, d_h), each
a query after n tokens. They train such layers and find more: linearly more with H, more with n, and more with d_h up to
n. Their plots print no numbers.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...answer import error_table
from ...answer.metric import FITTED_ERROR
from ...report.section import Section
from ...store import Experiment, Record, TrainSpec
from ..base import AbstractStudy, Effort, Scale
from ..claims.memorise import (
    CONTEXTS,
    WRONG,
    below_claim,
    beyond_claim,
    capacities,
    context_claim,
    linear_claim,
    proved_claim,
)
from .memorise_views import capacity_charts, capacity_grid, error_grid, headline

if TYPE_CHECKING:
    from ...engine import Sweep
    from ...models import EncoderSpec

CLASSES = 10
VALIDATION = 20
"""As few as there may be: labels are random, and held-out examples can show nothing."""


class Shape(NamedTuple):
    """The sizes of a layer that are swept; `length` counts the query too, n + 1."""

    heads: int
    rank: int
    length: int


@dataclass(frozen=True, kw_only=True)
class MemoriseEffort(Effort):
    """Three sweeps that cross: over `heads`, over the context sizes of `lengths`, and over `ranks`.

    The heads are swept with d_h = n at `fixed_length`; the lengths with d_h = d, and the ranks at `fixed_length`, both
    with `fixed_heads`. `per_head` has the numbers of examples that are tried for every head, by the kind of context.
    """

    dim: int
    heads: tuple[int, ...]
    ranks: tuple[int, ...]
    fixed_heads: int
    fixed_length: int
    per_head: dict[str, tuple[int, ...]]
    batch: int

    @property
    def train(self) -> TrainSpec:
        return replace(super().train, batch=self.batch, validation_examples=VALIDATION)

    def shapes(self) -> tuple[Shape, ...]:
        """Every shape once."""
        by_heads = [Shape(heads, self.fixed_length - 1, self.fixed_length) for heads in self.heads]
        by_length = [Shape(self.fixed_heads, self.dim, length) for length in self.lengths]
        by_rank = [Shape(self.fixed_heads, rank, self.fixed_length) for rank in self.ranks]
        return tuple(dict.fromkeys((*by_heads, *by_length, *by_rank)))

    def stored(self, context: str, heads: int) -> int:
        """Examples that are stored, repeated: as many for all numbers of different ones, so that one program serves."""
        return heads * math.lcm(*self.per_head[context])

    def grid(self) -> Iterator[dict[str, tuple[Any, ...]]]:
        """The axes of every part that is swept for itself: a number of examples, a shape and a seed."""
        for context, per_head in self.per_head.items():
            for shape in self.shapes():
                for each in per_head:
                    for seed in range(self.seeds):
                        axes: dict[str, tuple[Any, ...]] = {"heads": (shape.heads,), "rank": (shape.rank,)}
                        axes |= {"context": (context,), "examples": (shape.heads * each,)}
                        yield axes | {"length": (shape.length,), "seed": (seed,)}


@dataclass(frozen=True, kw_only=True)
class MemoriseStudy(AbstractStudy):
    """Examples memorised against heads, context size and key width."""

    efforts: dict[Scale, MemoriseEffort]  # type: ignore[assignment]

    def sweep(self, scale: Scale) -> "Sweep":
        from ...engine import joined, sweep
        from ...tasks import RandomLabels

        effort = self.efforts[scale]
        parts = []
        for axes in effort.grid():
            at = {axis: axes.pop(axis)[0] for axis in ("context", "examples")}
            (length,), (heads,), (seed,) = axes["length"], axes["heads"], axes["seed"]
            task = RandomLabels(
                length=length, dim=effort.dim, classes=CLASSES, context=at["context"], distinct=at["examples"]
            )
            # A seed draws the examples too, so that an interval over seeds is one over data.
            train = replace(effort.train, train_examples=effort.stored(at["context"], heads), data_seed=seed)
            model = _layer(effort.dim)
            parts.append(sweep(task, axes=axes, model=model, train=train, at=at, **self.named(scale)))
        return joined(parts)

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        table = error_table(experiment, records, metric=FITTED_ERROR)
        found = capacities(table)
        by_context = (linear_claim, context_claim, below_claim, beyond_claim)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=headline(found),
            claims=(proved_claim(found), *(judge(found, context) for judge in by_context for context in CONTEXTS)),
            grids=(capacity_grid(found), error_grid(table)),
            charts=capacity_charts(found),
            metric=FITTED_ERROR,
            notes=self.choices(scale),
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort, paper = self.efforts[scale], self.efforts[Scale.PAPER]
        smaller = (
            f"At {scale} scale: d = {effort.dim}, n = {effort.fixed_length - 1}, {effort.seeds} seeds, "
            f"{effort.steps:,} steps of {effort.batch}; the paper has d = {paper.dim}, n = {paper.fixed_length - 1}, "
            f"up to {max(paper.heads)} heads.",
        )
        return (
            *(smaller if scale is not Scale.PAPER else ()),
            f"Memorised: at least {100 * (1 - WRONG):g} % of the training labels are right at the end, interpolated "
            "between two numbers of examples; median of seeds. What is proved is for every label right.",
            "One layer of attention alone: no net, no residual sum, no norm, no bias; the answer is linear in the sum "
            f"of the heads. Ours: {CLASSES} classes, values of as many numbers per head, Adam, numbers of examples in "
            "proportion to the heads. A seed draws the examples and the weights; a shared context is one draw.",
            "The lengths are swept with d_h = d, so that all contexts have the same number of weights.",
        )


def _layer(dim: int) -> "Callable[..., EncoderSpec]":
    """Attention alone; a head carries as many numbers as there are classes, so no map to the classes is left out."""
    from ...models import EncoderSpec

    def model(heads: int, rank: int) -> "EncoderSpec":
        return EncoderSpec(
            heads=heads,
            rank=rank,
            head_dim=min(dim, CLASSES),
            width=dim,
            hidden=0,
            norm="none",
            bias=False,
            residual=False,
            answered_at="query",
        )

    return model


STUDY = MemoriseStudy(
    name="memorise",
    title="Examples memorised (Mahdavi et al.)",
    asks="How many examples with random labels does one layer memorise, by heads, context size and key width?",
    efforts={
        Scale.SMOKE: MemoriseEffort(
            lengths=(3, 5),
            seeds=2,
            steps=1000,
            dim=8,
            heads=(1, 2, 4),
            ranks=(2, 4, 8),
            fixed_heads=2,
            fixed_length=5,
            per_head={"shared": (4, 8, 16, 24, 32, 48)},
            batch=64,
        ),
        Scale.LAPTOP: MemoriseEffort(
            lengths=(5, 9, 13),
            seeds=5,
            steps=3000,
            dim=16,
            heads=(1, 2, 4, 8),
            ranks=(2, 4, 8, 16),
            fixed_heads=4,
            fixed_length=9,
            per_head={
                "shared": (24, 36, 48, 60, 72, 90, 120, 144, 180),
                "own": (120, 144, 180, 240, 288, 360, 480),
            },
            batch=128,
        ),
        Scale.PAPER: MemoriseEffort(
            lengths=(2, 6, 11, 21, 31, 41, 51, 61),
            seeds=3,
            steps=20_000,
            dim=64,
            heads=(1, 5, 10, 20, 30, 40, 50, 60),
            ranks=(4, 8, 16, 32, 64),
            fixed_heads=20,
            fixed_length=33,
            per_head={"shared": (120, 180, 240, 360, 480, 720, 960, 1440, 1920, 2880)},
            batch=1024,
        ),
    },
)
