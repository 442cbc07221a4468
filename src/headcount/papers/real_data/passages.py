"""Shared by the studies of MS MARCO: the passages, the model, and the published Tables 6 and 7."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._cache import cache_folder
from ...answer.metric import FINAL_ERROR, TRAIN_ERROR
from ..base import AbstractTask
from ..published import published_accuracies
from .base import LabelledEffort, Published, RealDataStudy, printed_means
from .download import OnBytes, bert, fetch, marco, to_be_fetched

LAYOUTS = ("candidates", "pairs")
LAYERS = 2
LENGTHS = (8, 16, 32, 64)
HEADS = (1, 2, 4, 6, 8, 10, 12, 14, 16)
TRANSITION = 12
QUERIES, TRAINED, VALIDATED = 30_000, 28_000, 2_000
"""28,000 training and 2,000 validation queries, as published, where a collection has them."""
PASSAGES = 200_000
"""Passages of a larger collection that are searched for negatives, the positives among them."""
OF_TRAINING = ("queries.train.tsv", "queries.train.tsv.gz", "qrels/train.tsv")
"""Files by which a folder with several sets of queries shows that the published one is among them."""
BERT_DIM = 768
PAIR_TOKENS = 64
TRAINING = published_accuracies("table6", TRAIN_ERROR)
VALIDATION = published_accuracies("table7", FINAL_ERROR)
PUBLISHED = Published(TRAINING, VALIDATION)
PRINTED = printed_means(TRAINING, VALIDATION, TRAINED, VALIDATED)
OUR_CHOICES = (
    "Published: two layers, head_dim 32, frozen BERT word, position and segment embeddings, of which a linear "
    "map to 32 h numbers is learned. How candidates enter is not: here they are tokens of one sequence "
    '(layout "candidates": each the mean of its embedded words, the query last) or sequences of their own '
    '(layout "pairs": query and passage joined, read at [CLS]). Of a query 16 word pieces are kept, of a '
    "passage 45; BERT's own norm of the embeddings is kept too.",
    "Negatives are in turn the best by BM25 (k1 0.9, b 0.4) and the nearest by the cosine of mean embeddings; "
    "the published proportion is not known. Lists of fewer candidates hold the hardest of the longer ones. A "
    "fifth of the queries is set apart for validation.",
    "Training accuracy is that of the last twentieth of the steps; the one at the end is the finished model's.",
)
RATE, DECAY = 1e-3, 0.01
OUR_TRAINING = (
    "Not published: optimiser, learning rate, epochs. Ours: AdamW, peak learning rate "
    f"{RATE:g}, decay {DECAY:g}, no dropout, a cosine."
)


@dataclass(frozen=True, kw_only=True)
class PassageEffort(LabelledEffort):
    """How much of a study is done, with all queries."""

    train_examples: int = TRAINED
    validation_examples: int = VALIDATED
    weight_decay: float = DECAY


WHOLE: dict[str, Any] = {"lengths": LENGTHS, "heads": HEADS, "seeds": 5, "precision": "bfloat16"}
"""All models at paper scale have these."""


@dataclass(frozen=True, kw_only=True)
class PassageStudy(RealDataStudy):
    """The passage that answers a query, among hard candidates; `layouts` are those it trains."""

    layers: int = LAYERS
    layouts: tuple[str, ...] = ("candidates",)

    def read_tasks(self, data: Path, *, embeddings: Path | None, on_bytes: OnBytes) -> tuple[AbstractTask, ...]:
        from ..data.embeddings import find_embeddings, load_embeddings
        from ..data.passages import is_passages, read_passages
        from ..tasks.ranking import ranking

        if not is_passages(data) and to_be_fetched(data, marco()):
            fetch(marco(), data, on_bytes)
        if embeddings is not None and to_be_fetched(embeddings, bert()):
            fetch(bert(), embeddings, on_bytes)
        words = load_embeddings(find_embeddings(embeddings))
        split = "train" if any((data / name).exists() for name in OF_TRAINING) else None
        corpus = read_passages(data, split=split, max_queries=QUERIES, max_passages=PASSAGES)
        return tuple(ranking(corpus, words, layout=layout, cache=cache_folder()) for layout in self.layouts)  # type: ignore[arg-type]

    def stand_ins(self) -> tuple[AbstractTask, ...]:
        from ..tasks.stand_in import StandIn

        tokens = (PAIR_TOKENS if layout == "pairs" else 0 for layout in self.layouts)
        return tuple(StandIn("marco", LENGTHS[0], BERT_DIM, QUERIES, pair_tokens=each) for each in tokens)  # pyright: ignore[reportCallIssue]


def layout_of(task: AbstractTask) -> str:
    """One sequence per candidate is the layout of pairs."""
    return "pairs" if task.padded else "candidates"


def training_queries(task: AbstractTask) -> int:
    from ...tasks.labelled import train_count

    return train_count(getattr(task, "count", None) or task.spec()["queries"])
