"""Tables 6 and 7, Figures 2a, 2b and 5: the passage that answers a query, among hard candidates."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._cache import cache_folder
from ..._errors import InputError
from ...analysis import ERROR_RATE, ErrorTable, Surface, surface_fit
from ...analysis.claim import Claim, judged
from ...analysis.metric import FINAL_ERROR, TRAIN_ERROR
from ...report.chart import Chart, Series
from ...report.section import Grid, Section
from ...store import Experiment, Record
from ..base import Scale
from ..claims.labels import first_fit_claim, length_costs_claim, levelling_claim, nearness_claim, surface_claim
from ..published import published_accuracies
from .base import (
    SMALLEST,
    LabelledEffort,
    Means,
    OnBytes,
    RealDataStudy,
    accuracy_grid,
    error_chart,
    margin_of,
    means_of,
    to_be_fetched,
    wrong_at_both_ends,
)

if TYPE_CHECKING:
    from ...models import EncoderSpec
    from ...store.experiment import Value
    from ...tasks import AbstractTask

LAYOUTS = ("candidates", "pairs")
LAYERS = 2
TRANSITION = 12
SMALL = 0.01
QUERIES, TRAINED = 30_000, 28_000
"""28,000 training and 2,000 validation queries, as published, where a collection has them."""
PASSAGES = 200_000
"""Of a larger collection so many are searched for negatives, the positives among them."""
OF_TRAINING = ("queries.train.tsv", "queries.train.tsv.gz", "qrels/train.tsv")
"""Files by which a folder with several sets of queries shows that the published one is among them."""
LEFT_OUT_OF_FIT = (1, 12, 14, 16)
PUBLISHED_DELTA, PUBLISHED_A = 0.25, -1.40
BERT_DIM = 768
PAIR_TOKENS = 64
TRAINING = published_accuracies("table6", TRAIN_ERROR)
VALIDATION = published_accuracies("table7", FINAL_ERROR)


@dataclass(frozen=True, kw_only=True)
class MarcoEffort(LabelledEffort):
    """How much is done with candidates as tokens; `pairs` says it for pairs, where an example costs far more."""

    pairs: LabelledEffort


@dataclass(frozen=True, kw_only=True)
class MarcoStudy(RealDataStudy):
    """Accuracy by heads and candidates, in both layouts; the layout is an axis of the experiment."""

    efforts: dict[Scale, MarcoEffort]  # type: ignore[assignment]

    def read(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> "tuple[AbstractTask, ...]":
        from ...datasets.embeddings import find_embeddings, load_embeddings
        from ...datasets.hub import BERT_FILES, JUDGED, MARCO_FILES, fetch_bert, fetch_marco
        from ...datasets.passages import is_passages, read_passages
        from ...tasks import ranking

        if not is_passages(data) and to_be_fetched(data, (JUDGED, *MARCO_FILES)):
            fetch_marco(data, on_bytes)
        weights = BERT_FILES[-1]  # the last file downloaded; a folder that has it holds a whole model
        if embeddings is not None and not (embeddings / weights).exists() and to_be_fetched(embeddings, BERT_FILES):
            fetch_bert(embeddings, on_bytes)
        words = load_embeddings(find_embeddings(embeddings))
        if not is_passages(data):
            raise InputError(
                f"{data} has no passages; give a folder with collection.tsv, queries.tsv and qrels.tsv, or with "
                "corpus.jsonl, queries.jsonl and qrels/, or one JSON-lines file."
            )
        split = "train" if any((data / name).exists() for name in OF_TRAINING) else None
        corpus = read_passages(data, split=split, max_queries=QUERIES, max_passages=PASSAGES)
        return tuple(ranking(corpus, words, layout=layout, cache=cache_folder()) for layout in LAYOUTS)  # type: ignore[arg-type]

    def stand_ins(self) -> "tuple[AbstractTask, ...]":
        from ...tasks.stand_in import StandIn

        return tuple(
            StandIn("marco", length=LENGTHS[0], dim=BERT_DIM, count=QUERIES, pair_tokens=tokens)
            for tokens in (0, PAIR_TOKENS)
        )

    def model(self, task: "AbstractTask", heads: int) -> "EncoderSpec":
        from ... import recipes

        return recipes.labelled_encoder(task, heads, layers=LAYERS)

    def coordinates_of(self, task: "AbstractTask") -> "dict[str, Value]":
        return {"layout": _layout(task)}

    def effort_of(self, scale: Scale, task: "AbstractTask") -> LabelledEffort:
        from ...tasks.labelled import train_count

        effort = self.efforts[scale]
        queries = getattr(task, "count", None) or task.spec()["queries"]
        return (effort.pairs if _layout(task) == "pairs" else effort).of(train_count(queries))

    def published_claims(self) -> tuple[Claim, ...]:
        return _rules(_printed())

    def section(self, experiment: Experiment, records: Iterable[Record], scale: Scale) -> Section:
        records = list(records)
        parts = {layout: experiment.part(layout=[layout]) for layout in LAYOUTS}
        finished = {
            layout: part for layout, part in parts.items() if any(record.metrics for record in part.own(records))
        }
        of_layouts = {layout: means_of(self, part, records) for layout, part in finished.items()}
        grids, charts, claims = [], [], []
        for layout, means in of_layouts.items():
            fit = _surface(means.training)
            grids += _grids(layout, means)
            charts += _charts(layout, means, fit)
            claims += _claims(layout, means, fit, whole=scale is Scale.PAPER)
        first, means = next(iter(of_layouts.items()))
        left = wrong_at_both_ends(means.training, "of the training queries wrong")
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=f"MS MARCO, {_words(first)}: {left}",
            claims=tuple(claims),
            grids=tuple(grids),
            charts=tuple(charts),
            notes=self.choices(scale),
            metric=ERROR_RATE,
        )

    def choices(self, scale: Scale) -> tuple[str, ...]:
        effort, paper = self.efforts[scale], self.efforts[Scale.PAPER]
        ours = (
            "Published: two layers, head_dim 32, frozen BERT word, position and segment embeddings, of which a linear "
            "map to 32 h numbers is learned. How candidates enter is not: here they are tokens of one sequence "
            '(layout "candidates": each the mean of its embedded words, the query last) or sequences of their own '
            '(layout "pairs": query and passage joined, read at [CLS]). Of a query 16 word pieces are kept, of a '
            "passage 45; BERT's own norm of the embeddings is kept too.",
            "Negatives are in turn the best by BM25 (k1 0.9, b 0.4) and the nearest by the cosine of mean embeddings; "
            "the published proportion is not known. Lists of fewer candidates hold the hardest of the longer ones. A "
            "fifth of the queries is set apart for validation.",
            "Not published: optimiser, learning rate, epochs. Ours: AdamW, peak learning rate "
            f"{paper.learning_rate:g}, decay {paper.weight_decay:g}, no dropout, a cosine; at paper scale "
            f"{paper.epochs} epochs in batches of {paper.batch} queries, for pairs {paper.pairs.epochs} in batches of "
            f"{paper.pairs.batch}.",
            "Training accuracy is that of the last twentieth of the steps; the one at the end is the finished model's.",
        )
        if scale is Scale.PAPER:
            return ours
        smaller = (
            f"At {scale} scale: up to {effort.train_examples:,} training queries, {effort.steps:,} steps of "
            f"{effort.batch}, {effort.seeds} seed(s); pairs {effort.pairs.steps:,} steps of {effort.pairs.batch}."
        )
        return (smaller, *ours)


def _layout(task: "AbstractTask") -> str:
    """One sequence per candidate is the layout of pairs."""
    return "pairs" if task.padded else "candidates"


def _words(layout: str) -> str:
    return "candidates as tokens" if layout == "candidates" else "query-passage pairs"


def _grids(layout: str, means: Means) -> list[Grid]:
    return [
        accuracy_grid(
            f"{layout}: training accuracy, per cent: while training / at the end (Table 6)",
            (means.training, means.fitted),
            TRAINING,
        ),
        accuracy_grid(f"{layout}: training MRR at the end, per cent", (means.fitted_mrr,), None),
        accuracy_grid(f"{layout}: validation accuracy, per cent (Table 7)", (means.validation,), VALIDATION),
    ]


def _charts(layout: str, means: Means, fit: Surface | None) -> list[Chart]:
    surface = [] if fit is None else [_surface_chart(layout, means.training, fit)]
    return [
        error_chart(f"{layout}-training-error", f"Training error, {layout}", means.training, TRAINING, means.seeds),
        error_chart(
            f"{layout}-validation-error", f"Validation error, {layout}", means.validation, VALIDATION, means.seeds
        ),
        *surface,
    ]


def _claims(layout: str, means: Means, fit: Surface | None, *, whole: bool) -> list[Claim]:
    claims = (
        *judged(_rules, _Judged(means.training, means.training_margin, fit), _printed()),
        nearness_claim("training", means.training, TRAINING, whole=whole),
        nearness_claim("validation", means.validation, VALIDATION, whole=whole),
    )
    return [
        replace(each, statement=f"With {_words(layout)}: {each.statement[:1].lower()}{each.statement[1:]}")
        for each in claims
    ]


class _Judged(NamedTuple):
    """The table that the claims are about, the margin within which two shares are equal, and its fitted surface."""

    training: ErrorTable
    margin: float
    fit: Surface | None


def _printed() -> _Judged:
    """Table 6; its shares are taken as counted once on all training queries."""
    return _Judged(TRAINING, margin_of(TRAINED), _surface(TRAINING))


def _rules(of: _Judged) -> tuple[Claim, ...]:
    return (
        first_fit_claim(of.training, TRANSITION, SMALL),
        length_costs_claim(of.training, TRANSITION, of.margin),
        levelling_claim(of.training, TRANSITION),
        surface_claim(of.fit, a=PUBLISHED_A, delta=PUBLISHED_DELTA),
    )


def _surface(training: ErrorTable) -> Surface | None:
    """The published form of the training error, h = 1, 12, 14, 16 left out as published; None with too few cells."""
    kept = training.select(heads=[heads for heads in training.values("heads") if heads not in LEFT_OUT_OF_FIT])
    try:
        # A cell without errors has no logarithm and is left out by the fit.
        return surface_fit(kept.values("heads"), kept.values("length"), kept.errors)
    except InputError:
        return None


def _surface_chart(layout: str, training: ErrorTable, fit: Surface) -> Chart:
    heads = training.values("heads")
    series = []
    for j, length in enumerate(training.values("length")):
        points = tuple(np.maximum(training.errors[:, j], SMALLEST))
        line = tuple(float(value) for value in fit.at(np.array(heads, float), np.array(length, float)))
        series.append(Series(f"T = {length}", heads, points, place=j))
        series.append(Series(f"T = {length}, fitted", heads, line, place=j, kind="fit"))
    return Chart(
        name=f"{layout}-surface",
        title=f"Training error and its fitted surface, {layout}",
        x_label="attention heads",
        y_label="share of wrong answers",
        x_ticks=heads,
        series=tuple(series),
        caption=f"lines: c T^b exp(a h / T^delta), a = {fit.a:.2f}, b = {fit.b:.2f}, delta = {fit.delta:.2f}",
    )


LENGTHS = (8, 16, 32, 64)
STUDY = MarcoStudy(
    name="marco",
    title="Tables 6 and 7, Figures 2a, 2b and 5",
    asks="MS MARCO: how many heads find the one passage that answers a query among T hard candidates.",
    efforts={
        Scale.SMOKE: MarcoEffort(
            lengths=(8, 16), heads=(1, 4), seeds=1, steps=300, batch=32, train_examples=1000, validation_examples=200,
            weight_decay=0.01,
            pairs=LabelledEffort(
                lengths=(8,), heads=(1, 2), seeds=1, steps=30, batch=8, train_examples=100, validation_examples=50,
                weight_decay=0.01,
            ),
        ),
        Scale.LAPTOP: MarcoEffort(
            lengths=LENGTHS, heads=(1, 2, 4), seeds=1, steps=800, batch=32, train_examples=28_000,
            validation_examples=2000, weight_decay=0.01,
            pairs=LabelledEffort(
                lengths=(8,), heads=(1, 2, 4), seeds=1, steps=150, batch=16, train_examples=1000,
                validation_examples=200, weight_decay=0.01,
            ),
        ),
        Scale.PAPER: MarcoEffort(
            lengths=LENGTHS, heads=(1, 2, 4, 6, 8, 10, 12, 14, 16), seeds=5, steps=6562, epochs=30, batch=128,
            train_examples=28_000, validation_examples=2000, weight_decay=0.01, precision="bfloat16",
            pairs=LabelledEffort(
                lengths=LENGTHS, heads=(1, 2, 4, 6, 8, 10, 12, 14, 16), seeds=5, steps=8750, epochs=10, batch=32,
                train_examples=28_000, validation_examples=2000, weight_decay=0.01, precision="bfloat16",
            ),
        ),
    },
)  # fmt: skip
