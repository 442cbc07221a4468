"""Architectures compared at equal parameters: what is trained, and how who does better is judged."""

import numpy as np
import pytest

from headcount.answer import Verdict
from headcount.models import spec_from_dict
from headcount.papers.base import Scale
from headcount.papers.beyond.architectures import ATTENTION, CLEARLY, CONTROLS, STUDY, TASKS, _task
from headcount.store import json_text

from ..helpers import fabricated


def expected(at):
    """Max pooling solves retrievals, as four heads do; attention alone reads a value elsewhere, or asks."""
    name = at["architecture"]
    if at["task"] in ("average", "value", "nearest"):
        return 0.01 if name == ATTENTION else 0.3
    return 1e-4 if name == "max pool" or (at["heads"] >= 4 and name == ATTENTION) else 0.05


def section_of(error, scale=Scale.LAPTOP):
    made = fabricated.study_sweep(STUDY, scale)
    return STUDY.document(made.experiment, fabricated.finished(made, error), scale)


def test_every_model_of_a_task_has_as_many_parameters():
    made = STUDY.sweep(Scale.LAPTOP)
    assert all(_task(name, 16).length == 16 for name in TASKS)
    counts = {}
    for cell in made.cells:
        at, task = made.experiment.coordinates(cell.key), made.by_key[json_text(cell.task)]
        spec = spec_from_dict(cell.model)
        count = spec.parameters(length=cell.length, dim=task.dim, outputs=task.outputs)
        counts.setdefault(at["task"], {})[at["architecture"], at["heads"]] = count
    for by_model in counts.values():
        (wanted,) = {count for (name, _), count in by_model.items() if name == ATTENTION}
        assert all(abs(count - wanted) <= 0.03 * wanted for count in by_model.values())
        assert {name for name, _ in by_model} >= {ATTENTION, *CONTROLS} - {"asked max pool"}


def test_what_is_expected_is_found():
    section = section_of(expected)
    assert {claim.verdict for claim in section.claims} == {Verdict.HOLDS}
    (chart,), (grid,) = section.charts, section.grids
    assert chart.columns == tuple(TASKS)
    assert chart.rows == tuple(reversed(("1 head", "2 heads", "4 heads", "8 heads", *CONTROLS)))
    assert np.isnan(chart.values).sum() == len(TASKS) - 1, "it has one task"
    assert grid.columns == ("", *TASKS)
    assert [row[0] for row in grid.rows] == list(reversed(chart.rows))


@pytest.mark.parametrize(("ratio", "verdict"), [(CLEARLY + 0.1, "holds"), (1.2, "undecided"), (0.9, "differs")])
def test_a_lead_counts_where_it_is_clear(ratio, verdict):
    section = section_of(lambda at: 0.1 if at["architecture"] == ATTENTION else 0.1 * ratio)
    assert [claim.verdict.value for claim in section.claims[-2:]] == [verdict, verdict]


def test_one_seed_decides_nothing():
    section = section_of(expected, Scale.SMOKE)
    assert {claim.verdict for claim in section.claims} == {Verdict.UNDECIDED}
    assert section.grids[0].rows


def test_the_best_learning_rate_of_a_seed_counts():
    section = section_of(lambda at: 10 * at["learning_rate"], Scale.PAPER)
    assert set(section.charts[0].values[np.isfinite(section.charts[0].values)]) == {0.03}
