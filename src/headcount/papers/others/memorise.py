"""How many examples with random labels does one attention layer of H heads memorise?

Mahdavi, Liao and Thrampoulidis, "Memorization Capacity of Multi-Head Attention in Transformers" (ICLR 2024, arXiv
2306.02010), prove that some weights of H heads of key width d_h memorise H (r - 1) + 1 examples, r = min(n, d_h), each
a query after n tokens. They train such layers and find more: linearly more with H, more with n, and more with d_h up to
n. Their plots print no numbers.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...answer import ErrorTable
from ...answer.metric import FITTED_ERROR
from ...report.chart import Chart, Series
from ...report.document import Grid
from ...store import TrainSpec
from ..base import AbstractSpec, Part, Scale, Study, StudyEffort, StudyResults
from ..charts import chart_along, grid_of, line_of
from ..claims.judge import estimate_words
from ..claims.memorise import (
    CONTEXTS,
    WRONG,
    Capacity,
    below_claim,
    beyond_claim,
    capacities,
    capacity_lines,
    context_claim,
    contexts_of,
    heads_exponent,
    linear_claim,
    proved_claim,
    with_number,
)

CLASSES = 10
VALIDATION = 20
"""As few as there may be: labels are random, and held-out examples can show nothing."""


@dataclass(frozen=True, kw_only=True)
class MemoriseEffort(StudyEffort):
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

    def shapes(self) -> Iterable[tuple[int, int, int]]:
        """Heads, rank and length (n + 1, with the query) of every layer, once."""
        by_heads = [(heads, self.fixed_length - 1, self.fixed_length) for heads in self.heads]
        by_length = [(self.fixed_heads, self.dim, length) for length in self.lengths]
        by_rank = [(self.fixed_heads, rank, self.fixed_length) for rank in self.ranks]
        return dict.fromkeys((*by_heads, *by_length, *by_rank))


ALONG = (
    ("heads", "heads", "attention heads H", "Examples memorised, by heads"),
    ("length", "tokens", "tokens of the context n", "Examples memorised, by context size"),
    ("rank", "rank", "key width d_h", "Examples memorised, by key width"),
)
"""Axes that capacities are drawn along: the field of `Capacity`, the words for it, and the chart's title."""


def capacity_headline(found: Sequence[Capacity]) -> str:
    parts = []
    for (context, *_), line in capacity_lines(found, "heads").items():
        fit = heads_exponent(line)
        if fit is not None:
            first, *_, last = with_number(line)
            ends = f"{first.examples:.0f} to {last.examples:.0f} at {first.heads} to {last.heads} heads"
            parts.append(f"{context} context: as H^{estimate_words(fit, '.2f')}, {ends}")
    return f"Examples memorised: {'; '.join(parts)}" if parts else "Too few models have finished to tell"


def capacity_grid(found: Sequence[Capacity]) -> Grid:
    rows = []
    for each in found:
        ratio = "-" if each.missing else f"{each.examples / each.proved:.1f}"
        words = each.missing or estimate_words(each.interval, ".0f")
        numbers = map(str, (each.heads, each.tokens, each.rank, each.proved, each.exact))
        rows.append((each.context, *numbers, words, ratio))
    columns = ("context", "H", "n", "d_h", "proved", "every label right", "memorised (90 %)", "times proved")
    title = f"examples memorised: at least {100 * (1 - WRONG):g} % of labels right, median of seeds"
    return grid_of(title, columns, rows)


def error_grid(table: ErrorTable) -> Grid:
    """The errors that capacities were read from, a row per shape."""
    rows = []
    kept = {axis: sorted(table.values(axis)) for axis in ("length", "rank", "heads")}
    part = table.reduced("seed", "median").select(context=contexts_of(table), **kept)
    part = part.ordered("context", "length", "rank", "heads", "examples")
    for at, line in part.lines("examples"):
        cells = "; ".join(f"{count}: {100 * error:.1f}" for count, error in sorted(line.items()))
        sizes = (str(at["heads"]), str(at["length"] - 1), str(at["rank"]))
        rows.append((at["context"], *sizes, cells))
    columns = ("context", "H", "n", "d_h", "examples: wrong labels in %")
    return grid_of("training labels wrong at the end, median of seeds", columns, rows)


def _capacity_charts(found: Sequence[Capacity], axis: str, field: str, label: str, title: str) -> list[Chart]:
    """Draw capacity along an axis, where a shape has a number at two values."""
    series, proved = [], {}
    for (context, *_), line in capacity_lines(found, axis).items():
        known = with_number(line)
        if len(known) < 2:
            continue
        x = tuple(float(getattr(each, field)) for each in known)
        low, y, high = zip(*(each.interval for each in known), strict=True)
        series.append(Series(f"{context} context", x, y, place=len(series), low=low, high=high))
        proved |= {float(getattr(each, field)): float(each.proved) for each in line}
    if not series:
        return []
    bound = line_of("H (min(n, d_h) - 1) + 1", dict(sorted(proved.items())), 6, "published", thin=True)
    caption = (
        f"at least {100 * (1 - WRONG):g} % of random labels right, median of seeds; bands hold 90 % of resamples; "
        "dashed: what Mahdavi et al. prove that some weights memorise"
    )
    name, lines = f"capacity-{axis}", (*series, bound)
    return [chart_along(label, bound.x, lines, name, title, caption, "examples memorised", log_y=False)]


def _swept_parts(effort: MemoriseEffort) -> Iterable[Part]:
    """A part per kind of context, shape, number of examples and seed, which draws the examples too."""
    from ..tasks.random_labels import RandomLabels

    for context, per_head in effort.per_head.items():
        same: dict[str, Any] = {"dim": effort.dim, "classes": CLASSES, "context": context}
        for (heads, rank, length), each, seed in itertools.product(effort.shapes(), per_head, range(effort.seeds)):
            # As many are stored, repeated, for all numbers of different ones: one program serves. A seed draws the
            # examples too, so that an interval over seeds is one over data.
            stored = heads * math.lcm(*per_head)
            yield Part(
                task=partial(RandomLabels, length=length, distinct=heads * each, **same),
                model=partial(_layer, effort.dim),
                axes={"heads": (heads,), "rank": (rank,), "length": (length,), "seed": (seed,)},
                at={"context": context, "examples": heads * each},
                train=replace(effort.train, train_examples=stored, data_seed=seed),
            )


def _document_fields(results: StudyResults) -> dict[str, Any]:
    table = results.table(FITTED_ERROR)
    found = capacities(table)
    by_context = (linear_claim, context_claim, below_claim, beyond_claim)
    return {
        "headline": capacity_headline(found),
        "claims": (proved_claim(found), *(judge(found, context) for judge in by_context for context in CONTEXTS)),
        "grids": (capacity_grid(found), error_grid(table)),
        "charts": tuple(chart for along in ALONG for chart in _capacity_charts(found, *along)),
        "metric": FITTED_ERROR,
    }


def _layer(dim: int, heads: int, rank: int) -> AbstractSpec:
    """Attention alone; a head carries as many numbers as there are classes, so no map to the classes is left out."""
    from ...models import EncoderSpec

    alone: dict[str, Any] = {"hidden": 0, "norm": "none", "bias": False, "residual": False, "answered_at": "query"}
    return EncoderSpec(heads=heads, rank=rank, head_dim=min(dim, CLASSES), width=dim, **alone)


STUDY = Study(
    name="memorise",
    title="Examples memorised (Mahdavi et al.)",
    asks="How many examples with random labels does one layer memorise, by heads, context size and key width?",
    parts=_swept_parts,
    report=_document_fields,
    notes=(
        f"Memorised: at least {100 * (1 - WRONG):g} % of the training labels are right at the end, interpolated "
        "between two numbers of examples; median of seeds. What is proved is for every label right.",
        "One layer of attention alone: no net, no residual sum, no norm, no bias; the answer is linear in the sum "
        f"of the heads. Ours: {CLASSES} classes, values of as many numbers per head, Adam, numbers of examples in "
        "proportion to the heads. A seed draws the examples and the weights; a shared context is one draw.",
        "The lengths are swept with d_h = d, so that all contexts have the same number of weights.",
    ),
    efforts={
        Scale.SMOKE: MemoriseEffort(
            lengths=(3, 5), seeds=2, steps=1000, dim=8, heads=(1, 2, 4), ranks=(2, 4, 8), fixed_heads=2,
            fixed_length=5, batch=64, per_head={"shared": (4, 8, 16, 24, 32, 48)},
        ),
        Scale.LAPTOP: MemoriseEffort(
            lengths=(5, 9, 13), seeds=5, steps=3000, dim=16, heads=(1, 2, 4, 8), ranks=(2, 4, 8, 16), fixed_heads=4,
            fixed_length=9, batch=128,
            per_head={
                "shared": (24, 36, 48, 60, 72, 90, 120, 144, 180), "own": (120, 144, 180, 240, 288, 360, 480),
            },
        ),
        Scale.PAPER: MemoriseEffort(
            lengths=(2, 6, 11, 21, 31, 41, 51, 61), seeds=3, steps=20_000, dim=64,
            heads=(1, 5, 10, 20, 30, 40, 50, 60), ranks=(4, 8, 16, 32, 64), fixed_heads=20, fixed_length=33,
            batch=1024, per_head={"shared": (120, 180, 240, 360, 480, 720, 960, 1440, 1920, 2880)},
        ),
    },
)  # fmt: skip
