"""Tables 6 and 7, Figures 2a, 2b and 5: the passage that answers a query, among hard candidates."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import InputError
from ..analysis.comparison import Claim, Verdict, count_of_heads
from ..analysis.fits import Surface, surface_fit
from ..analysis.summary import ERROR_RATE
from ..datasets.embeddings import find_embeddings, load_embeddings
from ..datasets.hub import BERT_FILES, JUDGED, MARCO_FILES, fetch_bert, fetch_marco
from ..datasets.passages import is_passages, read_passages
from ..engine.hardware import Sizes
from ..report.chart import Chart, Series
from ..report.section import Section
from ..store import Record
from ..tasks import LAYOUTS, Form, LabelledTask, ranking
from ..tasks.kept import learned_of
from .base import Scale
from .labelled import (
    LEAST,
    Accuracies,
    LabelledEffort,
    LabelledStudy,
    OnBytes,
    accuracies,
    accuracy_grid,
    beside,
    cache_folder,
    error_chart,
    share,
    to_be_fetched,
)
from .labelled_claims import growth_claim, levelling_claim, nearness_claim, transition_claim
from .published import published_table

TRANSITION = 12
SMALL = 0.01
QUERIES = 30_000
"""28,000 to learn from and 2,000 to be judged on, as published, where a collection has them."""
PASSAGES = 200_000
"""Of a larger collection so many are searched for negatives, the positives among them."""
OF_TRAINING = ("queries.train.tsv", "queries.train.tsv.gz", "qrels/train.tsv")
"""Files by which a folder with several sets of queries shows that the published one is among them."""
LEFT_OUT_OF_FIT = (1, 12, 14, 16)
PUBLISHED_DELTA, PUBLISHED_A = 0.25, -1.40
BERT_DIM = 768
TRAINING, VALIDATION = (published_table(name, statistic="mean") for name in ("table6", "table7"))


@dataclass(frozen=True, kw_only=True)
class MarcoEffort(LabelledEffort):
    """How much is done with candidates as tokens; `pairs` says it for pairs, where an example costs far more."""

    pairs: LabelledEffort


@dataclass(frozen=True, kw_only=True)
class MarcoStudy(LabelledStudy):
    """Accuracy by heads and candidates, in both layouts."""

    efforts: dict[Scale, MarcoEffort]  # type: ignore[assignment]

    def read(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> tuple[LabelledTask, ...]:
        if not is_passages(data) and to_be_fetched(data, (JUDGED, *MARCO_FILES)):
            fetch_marco(data, on_bytes)
        weights = BERT_FILES[-1]  # the last to be fetched; a folder that holds them is a model, whoever's it is
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
        return tuple(ranking(corpus, words, layout=layout, cache=cache_folder()) for layout in LAYOUTS)

    def form(self, spec: dict[str, Any]) -> Form:
        return LAYOUTS[spec["layout"]]

    def is_own(self, spec: dict[str, Any]) -> bool:
        return "layout" in spec and "corpus" in spec

    def told_by(self, records: Iterable[Record]) -> list[LabelledStudy]:
        """Both layouts of each corpus, of which one may not have begun yet."""
        return [
            dataclasses.replace(each, specs=tuple(each.specs[0] | {"layout": layout} for layout in LAYOUTS))
            for each in super().told_by(records)
        ]

    def sizes(self, spec: dict[str, Any]) -> Sizes:
        return Sizes(dim=BERT_DIM, outputs=1, joined=64 if spec["layout"] == "pairs" else 0)

    def effort_of(self, scale: Scale, spec: dict[str, Any]) -> LabelledEffort:
        effort = self.efforts[scale]
        return (effort.pairs if spec["layout"] == "pairs" else effort).of(learned_of(spec["queries"]))

    def section(self, records: Iterable[Record], scale: Scale) -> Section:
        records = list(records)
        grids, charts, claims = [], [], []
        headline = ""
        for layout in LAYOUTS:
            own = [record for record in records if record.cell.task["layout"] == layout]
            if not any(record.metrics for record in own):
                continue
            found = accuracies(own)
            theirs, judged = beside(found, TRAINING), beside(found, VALIDATION)
            named = f"{layout}: "
            grids += [
                accuracy_grid(
                    f"{named}training accuracy, per cent: while training / at the end (Table 6)",
                    found,
                    (found.training, found.fitted),
                    theirs,
                ),
                accuracy_grid(f"{named}training MRR at the end, per cent", found, (found.fitted_mrr,), None),
                accuracy_grid(f"{named}validation accuracy, per cent (Table 7)", found, (found.validation,), judged),
            ]
            fit = _surface(found)
            charts += [
                error_chart(f"{layout}-training-error", f"Training error, {layout}", found, found.errors, 1 - theirs),
                error_chart(
                    f"{layout}-validation-error", f"Validation error, {layout}", found, 1 - found.validation, 1 - judged
                ),
                *([] if fit is None else [_surface_chart(layout, found, fit)]),
            ]
            judgements = (
                transition_claim(found, TRANSITION, SMALL),
                growth_claim(found, TRANSITION),
                levelling_claim(found, TRANSITION),
                _surface_claim(fit),
                nearness_claim("training", found.training, theirs, whole=scale is Scale.PAPER),
                nearness_claim("validation", found.validation, judged, whole=scale is Scale.PAPER),
            )
            claims += [
                Claim(f"With {_words(layout)}: {_lower(c.statement)}", c.verdict, c.evidence) for c in judgements
            ]
            headline = headline or _headline(layout, found)
        return Section(
            name=self.name,
            title=self.title,
            asks=self.asks,
            headline=headline,
            claims=tuple(claims),
            grids=tuple(grids),
            charts=tuple(charts),
            notes=self.choices(scale),
            unit=ERROR_RATE,
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


def _words(layout: str) -> str:
    return "candidates as tokens" if layout == "candidates" else "query-passage pairs"


def _lower(statement: str) -> str:
    return statement[:1].lower() + statement[1:]


def _headline(layout: str, found: Accuracies) -> str:
    few, many = (count_of_heads(found.heads[i]) for i in (0, -1))
    wrong, left = (share(float(np.nanmax(found.errors[i]))) for i in (0, -1))
    return (
        f"MS MARCO, {_words(layout)}: {wrong} of the training queries wrong with {few}, {left} with {many}, "
        "at the worst T"
    )


def _surface(found: Accuracies) -> Surface | None:
    """The published form of the training error, h = 1, 12, 14, 16 left out as published; None with too few cells."""
    kept = [i for i, heads in enumerate(found.heads) if heads not in LEFT_OUT_OF_FIT]
    try:
        heads = tuple(found.heads[i] for i in kept)
        return surface_fit(heads, found.lengths, found.errors[kept])  # a cell without errors has no logarithm
    except InputError:
        return None


def _surface_claim(fit: Surface | None) -> Claim:
    statement = "The training error follows c T^b exp(a h / T^delta) with a < 0 < b, to within a factor of e^0.25."
    if fit is None:
        return Claim(statement, Verdict.UNDECIDED, "too few cells to fit four numbers")
    evidence = (
        f"a = {fit.a:.2f} (published {PUBLISHED_A:.2f}), delta = {fit.delta:.2f} ({PUBLISHED_DELTA}), b = {fit.b:.2f}, "
        f"c = {fit.c:.3g}; mean absolute error of the logarithm {fit.log_error:.2f} over {fit.cells} cells"
    )
    holds = fit.a < 0 < fit.b and fit.log_error <= 0.25
    return Claim(statement, Verdict.HOLDS if holds else Verdict.DIFFERS, evidence)


def _surface_chart(layout: str, found: Accuracies, fit: Surface) -> Chart:
    series = []
    for j, length in enumerate(found.lengths):
        points = tuple(np.maximum(found.errors[:, j], LEAST))
        line = tuple(float(value) for value in fit.at(np.array(found.heads, float), np.array(length, float)))
        series.append(Series(f"T = {length}", found.heads, points, place=j))
        series.append(Series(f"T = {length}, fitted", found.heads, line, place=j, kind="fit"))
    return Chart(
        name=f"{layout}-surface",
        title=f"Training error and its fitted surface, {layout}",
        x_label="attention heads",
        y_label="share of wrong answers",
        x_ticks=found.heads,
        series=tuple(series),
        caption=f"lines: c T^b exp(a h / T^delta), a = {fit.a:.2f}, b = {fit.b:.2f}, delta = {fit.delta:.2f}",
    )


LENGTHS = (8, 16, 32, 64)
STUDY = MarcoStudy(
    name="marco",
    title="Tables 6 and 7, Figures 2a, 2b and 5",
    asks="MS MARCO: how many heads find the one passage that answers a query among T hard candidates.",
    specs=tuple({"task": "marco", "layout": layout, "corpus": "", "queries": QUERIES} for layout in LAYOUTS),
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
