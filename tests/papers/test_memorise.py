"""The study of memory: its layers are the paper's, and its claims are those of tables whose truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.answer import Verdict, error_table
from headcount.answer.metric import FITTED_ERROR
from headcount.engine import run_sweep
from headcount.models import spec_from_dict
from headcount.papers.base import Scale
from headcount.papers.claims.memorise import WRONG, Capacity, capacities, capacity_lines, memorised_count
from headcount.papers.others.memorise import CLASSES, STUDY
from headcount.report.chart import Chart
from headcount.store import Store, json_text

from ..helpers import fabricated
from ..helpers.tolerance import assert_close

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED
JUDGED = ("proved", "linear", "context", "below", "beyond")


def section(error, kept=lambda at: True):
    made = fabricated.study_sweep(STUDY, Scale.LAPTOP)
    records = [
        record for record, at in zip(fabricated.finished(made, error), made.coordinates(), strict=True) if kept(at)
    ]
    return STUDY.document(made.experiment, records, Scale.LAPTOP)


def verdicts(error, kept=lambda at: True) -> dict[str, Verdict]:
    """The verdicts on a shared context, by claim; those on own contexts must be the same."""
    proved, *others = (claim.verdict for claim in section(error, kept).claims)
    assert others[0::2] == others[1::2]
    return dict(zip(JUDGED, (proved, *others[0::2]), strict=True))


def law(heads: float = 1.0, tokens: float = 0.5, below: float = 0.5, beyond: float = 0.0):
    """Errors of layers whose capacity is a product of powers: of H, of n, and of d_h up to n and beyond."""

    def error(at) -> float:
        n, rank = at["length"] - 1, at["rank"]
        per_head = {"shared": 60.0, "own": 250.0}[at["context"]] * (n / 8) ** tokens * (min(n, rank) / n) ** below
        capacity = per_head * max(1, rank / n) ** beyond * at["heads"] * (at["heads"] / 2) ** (heads - 1)
        wrong = 0.5 * (1 - capacity / at["examples"]) * (1 + 0.02 * at["seed"])
        return max(0.0, wrong)

    return error


@pytest.mark.parametrize(
    ("error", "changed"),
    [
        (law(), {}),
        (law(heads=0.5, below=0.2), {"linear": DIFFERS}),
        (law(heads=1.5), {"linear": DIFFERS}),
        (law(tokens=0.0), {"context": UNDECIDED}),
        (law(tokens=-0.3), {"context": DIFFERS}),
        (law(below=0.0), {"below": UNDECIDED}),
        (law(below=-0.3), {"below": DIFFERS}),
        (law(tokens=1.5, beyond=0.5), {"beyond": DIFFERS}),
        (lambda at: 0.0, dict.fromkeys(JUDGED[1:], UNDECIDED)),
        (lambda at: 0.9, {"proved": DIFFERS} | dict.fromkeys(JUDGED[1:], UNDECIDED)),
        (lambda at: 0.01, {"proved": DIFFERS} | dict.fromkeys(JUDGED[1:], UNDECIDED)),
    ],
    ids=[
        "as published", "slower with heads", "faster with heads", "no gain by tokens", "loss by tokens",
        "no gain by d_h", "loss by d_h", "gain beyond n", "all memorised", "none memorised", "never every label",
    ],
)  # fmt: skip
def test_its_claims_are_those_of_the_table(error, changed):
    assert verdicts(error) == dict.fromkeys(JUDGED, HOLDS) | changed


def test_what_was_not_measured_is_undecided():
    as_published = law()
    one_seed = dict.fromkeys(JUDGED, UNDECIDED)
    assert verdicts(as_published, lambda at: at["seed"] == 0) == one_seed
    two_head_counts = verdicts(as_published, lambda at: at["heads"] in (2, 4))
    assert two_head_counts == dict.fromkeys(JUDGED, HOLDS) | {"linear": UNDECIDED}
    narrow = verdicts(as_published, lambda at: at["rank"] < at["length"] - 1)
    assert narrow["beyond"] is UNDECIDED


def test_seeds_that_disagree_leave_a_claim_open():
    def error(at):
        """With d_h = 16 some seeds memorise half as much and some twice as much as with 8."""
        times = 2 if at["seed"] % 2 else 0.5
        return law()(at | {"examples": at["examples"] * times} if at["rank"] == 16 else at)

    assert verdicts(error)["beyond"] is UNDECIDED


def test_a_chart_has_what_is_proved_beside_what_was_memorised():
    charts = {chart.name: chart for chart in section(law()).charts}
    assert set(charts) == {"capacity-heads", "capacity-length", "capacity-rank"}
    chart = charts["capacity-heads"]
    assert isinstance(chart, Chart)
    *measured, bound = chart.series
    assert [series.name for series in measured] == ["shared context", "own context"]
    assert dict(zip(bound.x, bound.y, strict=True)) == {heads: heads * 7 + 1 for heads in (1, 2, 4, 8)}
    for series in measured:
        assert np.all(np.diff(series.y) > 0)
        assert all(low <= y <= high for low, y, high in zip(series.low, series.y, series.high, strict=True))


@pytest.mark.parametrize(("sizes", "examples"), [((1, 8, 9), 8), ((4, 16, 9), 29), ((4, 2, 9), 5), ((20, 64, 33), 621)])
def test_the_number_that_is_proved(sizes, examples):
    assert Capacity("shared", *sizes, 0.0, np.zeros(1), "", 0, 0).proved == examples


errors_by_count = st.lists(st.floats(0, 1), min_size=2, max_size=6)


@given(errors_by_count)
def test_memorised_lies_between_the_last_count_that_is_and_the_next(errors):
    counts = 10 * 2 ** np.arange(len(errors))
    number, fitted = float(memorised_count(counts, np.array(errors))), np.array(errors) <= WRONG
    last = int(np.flatnonzero(fitted)[-1]) if fitted.any() else 0
    assert counts[last] * 0.999 <= number <= counts[min(last + 1, len(counts) - 1)] * 1.001
    if fitted[last] and last + 1 < len(errors) and errors[last] < WRONG:
        assert number > counts[last]


@given(errors_by_count, st.data())
def test_fewer_errors_are_never_less_memory(errors, data):
    counts = 10 * 2 ** np.arange(len(errors))
    fewer = [data.draw(st.floats(0, error)) for error in errors]
    both = memorised_count(counts, np.array([errors, fewer]))
    assert both[1] >= both[0] * 0.999
    assert_close(memorised_count(3 * counts, np.array(errors)), 3 * both[0])


def test_its_layers_are_attention_alone():
    """The answer is a sum over heads of values weighted by a softmax, mapped linearly to the classes."""
    sweep = STUDY.sweep(Scale.SMOKE)
    cell = max(sweep.cells, key=lambda cell: cell.model["heads"])
    task = sweep.by_key[json_text(cell.task)].at(cell.length)
    spec = spec_from_dict(cell.model)
    model = spec.init(0, length=task.length, dim=task.dim, outputs=task.outputs)
    tokens = np.random.default_rng(0).normal(size=(task.length, task.dim)).astype(np.float32)
    arrays = {name: np.asarray(values, np.float64) for name, values in model.to_arrays().items()}
    assert sum(values.size for values in arrays.values()) == spec.parameters(
        length=task.length, dim=task.dim, outputs=CLASSES
    )
    (heads,) = (layer.heads for layer in model.layers)
    context, query = tokens[:-1].astype(np.float64), tokens[-1].astype(np.float64)
    total = np.zeros(task.dim)
    for head in range(spec.heads):
        scores = (np.asarray(heads.key[head]) @ context.T).T @ (np.asarray(heads.query[head]) @ query)
        weights = np.exp(scores / spec.rank**0.5)
        read = (weights / weights.sum()) @ (context @ np.asarray(heads.value[head]).T)
        total += read @ np.asarray(heads.output[head])
    assert_close(model(tokens), np.asarray(model.read.weight) @ total)


def test_its_cells_have_examples_of_their_own_and_one_program_per_shape():
    sweep = STUDY.sweep(Scale.LAPTOP)
    for cell in sweep.cells:
        at = sweep.experiment.coordinates(cell.key)
        assert cell.task["distinct"] == at["examples"]
        assert cell.train.train_examples % at["examples"] == 0
        assert cell.train.data_seed == cell.seed == at["seed"]
    stored = {
        (at["context"], at["heads"], cell.train.train_examples)
        for cell in sweep.cells
        for at in [sweep.experiment.coordinates(cell.key)]
    }
    assert len(stored) == len({(context, heads) for context, heads, _ in stored})


@pytest.mark.slow
def test_trained_layers_memorise_as_many_as_are_proved_and_more_with_more_heads(tmp_path):
    made = STUDY.sweep(Scale.SMOKE)
    with Store.open_for_writing(tmp_path) as store:
        run_sweep(made, store)
        records = list(store.records())
    judged = STUDY.document(made.experiment, records, Scale.SMOKE).claims
    assert judged[0].verdict is HOLDS
    found = capacities(error_table(made.experiment, records, metric=FITTED_ERROR))
    assert {(each.heads, each.rank, each.length) for each in found} == set(STUDY.efforts[Scale.SMOKE].shapes())
    few, *_, many = next(iter(capacity_lines(found, "heads").values()))
    assert many.examples > 2 * few.examples
    validation = [record.metrics["final_error"] for record in records]
    assert np.mean(validation) == pytest.approx(1 - 1 / CLASSES, abs=0.05), "nothing is learned but the examples"


def test_the_paper_scale_has_the_published_sizes():
    effort = STUDY.efforts[Scale.PAPER]
    assert (effort.dim, effort.fixed_length - 1, effort.fixed_heads) == (64, 32, 20)
    assert effort.heads == (1, 5, 10, 20, 30, 40, 50, 60)
    assert tuple(length - 1 for length in effort.lengths) == (1, 5, 10, 20, 30, 40, 50, 60)
    assert max(effort.ranks) == effort.dim > effort.fixed_length - 1 > min(effort.ranks)
