"""Exported rows: every model has its rank, and models of two kinds fit into one table."""

import csv
import io

from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.report.export import to_csv
from headcount.store import Cell, TrainSpec

from ..made_up import OWN, finished

MODELS = (
    ClassTokenSpec(heads=2),
    ClassTokenSpec(heads=2, rank=3),
    EncoderSpec(heads=2, rank=1, width=4, answered_at="sequence"),
)


def exported(*models) -> list[dict[str, str]]:
    cells = [Cell(task=OWN, length=8, model=model, train=TrainSpec(), seed=0) for model in models]
    return list(csv.DictReader(io.StringIO(to_csv(finished(cells)))))


def test_every_model_has_its_rank():
    assert [row["rank"] for row in exported(*MODELS)] == ["8", "3", "1"]


def test_kinds_of_models_share_a_table_in_any_order():
    for models in (MODELS, MODELS[::-1]):
        rows = exported(*models)
        assert [row["multiplier"] for row in rows] == ["1" if isinstance(m, EncoderSpec) else "" for m in models]
        assert [row["beta"] for row in rows] == ["" if isinstance(m, EncoderSpec) else "1.0" for m in models]
        assert all(row["heads"] == "2" and row["outcome"] == "finished" for row in rows)
