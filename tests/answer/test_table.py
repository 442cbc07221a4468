"""Records land in their place, and a table is the same whichever way it is asked."""

import builtins
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.answer import ERROR_RATE, METRICS, NMSE, ErrorTable, error_table
from headcount.answer.metric import FITTED_MRR, TRAIN_ERROR
from headcount.answer.table import QUANTILES
from headcount.errors import InputError
from headcount.store import Outcome

from ..helpers import fabricated

AXES = {"heads": (1, 3), "length": (8, 16), "seed": (0, 1)}


def coded(at: dict) -> float:
    """An error that says where it belongs."""
    return at["heads"] + at["length"] / 100 + at["seed"] / 1000


def test_every_error_is_in_its_place():
    made = fabricated.sweep(AXES)
    table = error_table(made.experiment, reversed(fabricated.finished(made, coded)))
    assert table.axes == AXES
    assert table.metric is NMSE
    for at in made.coordinates():
        assert table.at(**at) == coded(at)
    assert table.best.tolist() == [[1.08, 1.16], [3.08, 3.16]]
    assert table.mean[1, 1] == pytest.approx(3.1605)
    assert np.array_equal(table.relative, table.errors)


def test_records_of_other_experiments_are_ignored():
    one, other = fabricated.sweep(AXES, task="one"), fabricated.sweep(AXES, task="other")
    records = fabricated.finished(other, lambda _: 1e-9) + fabricated.finished(one, coded)
    assert np.array_equal(
        error_table(one.experiment, records).errors, error_table(one.experiment, fabricated.finished(one, coded)).errors
    )
    with pytest.raises(InputError, match="other"):
        error_table(other.experiment, fabricated.finished(one))


def test_a_seed_counts_with_its_best_learning_rate():
    made = fabricated.sweep({"heads": (1,), "length": (8,), "learning_rate": (0.01, 0.003), "seed": (0,)})
    table = error_table(
        made.experiment, fabricated.finished(made, lambda at: 0.5 if at["learning_rate"] > 0.005 else 0.2)
    )
    assert list(table.axes) == ["heads", "length", "seed"]
    assert table.errors.tolist() == [[[0.2]]]
    other = fabricated.graded(
        made, lambda at: {"error": 0.5, "fitted_mrr": 0.5 if at["learning_rate"] > 0.005 else 0.2}
    )
    assert error_table(made.experiment, other, metric=FITTED_MRR).errors.tolist() == [[[0.5]]]


@pytest.mark.parametrize("outcome", [Outcome.DIVERGED, Outcome.FAILED])
def test_a_lost_cell_is_nan_and_counted(outcome):
    made = fabricated.sweep({"heads": (1,), "length": (8,), "seed": (0, 1)})
    records = fabricated.finished(made, lambda _: 0.3)[:1] + fabricated.lost(made.cells[1:], outcome)
    table = error_table(made.experiment, records)
    assert np.isnan(table.errors[0, 0, 1])
    (row,) = table.rows()
    assert row.items() >= {"heads": 1, "length": 8, "minimum": 0.3, "median": 0.3, "seeds": 1, "lost": 1}.items()
    assert np.isnan(row["std"])


def test_an_axis_has_the_values_that_some_record_has():
    made = fabricated.sweep(AXES)
    begun = [record for record in fabricated.finished(made, coded) if record.cell.length == 8]
    assert error_table(made.experiment, begun).values("length") == (8,)
    words = fabricated.sweep({"layout": ("pairs", "candidates"), "heads": (2, 1), "seed": (0,)})
    table = error_table(words.experiment, fabricated.finished(words))
    assert (table.values("layout"), table.values("heads")) == (("pairs", "candidates"), (1, 2))


def test_a_baseline_comes_from_the_records_where_the_metric_has_none():
    made = fabricated.sweep(AXES)
    graded = fabricated.graded(
        made, lambda at: {"error": 0.1, "train_error": 0.2, "baseline": at["length"] / 32, "baseline_noise": 0.01}
    )
    table = error_table(made.experiment, graded)
    assert table.metric is ERROR_RATE
    assert table.relative[0, :, 0].tolist() == [0.4, 0.2]
    assert set(table.noise.ravel()) == {0.01}
    assert error_table(made.experiment, graded, metric=TRAIN_ERROR).errors.max() == 0.2
    plain = error_table(made.experiment, fabricated.finished(made))
    assert (set(plain.baseline.ravel()), set(plain.noise.ravel())) == ({1.0}, {0.0})


def tables(axes=None):
    axes = axes or {"heads": (1, 2, 4), "layout": ("a", "b"), "seed": (0, 1, 2)}
    shape = tuple(map(len, axes.values()))
    errors = st.lists(st.floats(1e-9, 10) | st.just(np.nan), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    return errors.map(lambda values: ErrorTable(axes=axes, errors=np.reshape(values, shape)))


@settings(max_examples=40, deadline=None)
@given(tables(), st.permutations(["heads", "layout", "seed"]))
def test_a_cell_is_found_whatever_the_order_of_the_axes(table, order):
    turned = table.ordered(*order)
    assert list(turned.axes) == order
    for at, error in table.cells():
        found = [turned.at(**at), float(turned.select(**at).errors), float(table.select(heads=[at["heads"]]).at(**at))]
        np.testing.assert_array_equal(found, [error] * 3)
    np.testing.assert_array_equal(
        turned.aligned(table.select(heads=[4, 1])).shape, turned.select(heads=[4, 1]).errors.shape
    )


@settings(max_examples=40, deadline=None)
@given(tables(), st.sampled_from(["heads", "layout", "seed"]))
def test_reducing_an_axis_is_numpys_own_over_what_is_there(table, axis):
    place = table.index(axis)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's own warn of what is all NaN
        expected = {
            "best": np.nanmin(table.errors, axis=place),
            "worst": np.nanmax(table.errors, axis=place),
            "median": np.nanmedian(table.errors, axis=place),
            "mean": np.nanmean(table.errors, axis=place),
        }
    for how, values in expected.items():
        reduced = table.reduced(axis, how)
        assert axis not in reduced.axes
        np.testing.assert_allclose(reduced.errors, values, rtol=1e-12)
    assert table.reduced("no such axis") is table


def test_the_best_of_a_score_is_the_largest_and_keeps_its_own_baseline():
    axes = {"heads": (1,), "seed": (0, 1)}
    scores = ErrorTable(axes=axes, errors=np.array([[0.2, 0.7]]), metric=FITTED_MRR, baseline=np.array([[0.1, 0.3]]))
    assert scores.best.tolist() == [0.7]
    assert scores.reduced("seed").baseline.tolist() == [0.3]
    assert scores.reduced("seed", "worst").baseline.tolist() == [0.1]


def test_a_published_table_is_aligned_with_ours():
    published = ErrorTable(axes={"heads": (1, 2), "length": (8, 32)}, errors=np.array([[0.1, 0.2], [0.3, 0.4]]))
    ours = ErrorTable(axes={"length": (32, 16, 8), "heads": (2, 3), "seed": (0,)}, errors=np.zeros((3, 2, 1)))
    np.testing.assert_array_equal(published.aligned(ours), [[0.4, np.nan, 0.3], [np.nan] * 3])
    assert np.isnan(published.at(heads=3, length=8))
    kept = ErrorTable(axes={"heads": (2,)}, errors=np.zeros(1))
    np.testing.assert_array_equal(published.aligned(kept), [[0.3, 0.4]])


def test_what_a_table_does_not_have_is_refused_by_name():
    table = ErrorTable(axes={"heads": (1, 2)}, errors=np.zeros(2))
    with pytest.raises(InputError, match=r"rank.*heads"):
        table.index("rank")
    with pytest.raises(InputError, match="7"):
        table.select(heads=7)
    with pytest.raises(InputError, match="length"):
        table.at(length=8)
    with pytest.raises(InputError, match=r"\(2,\).*\(3,\)"):
        ErrorTable(axes={"heads": (1, 2)}, errors=np.zeros(3))
    assert table.values("rank") == ()
    assert not table.has("rank")


@settings(max_examples=20, deadline=None)
@given(tables())
def test_a_table_reads_as_json_and_as_a_data_frame(table):
    content = json.loads(json.dumps(table.to_dict()))
    assert content["metric"] == "nmse"
    assert content["axes"] == {axis: list(values) for axis, values in table.axes.items()}
    plain = np.array(content["errors"], float)
    np.testing.assert_array_equal(plain, table.errors)
    pytest.importorskip("pandas", reason="an extra, which the default tests do without")
    frame = table.to_pandas()
    assert list(frame.columns) == [*table.axes, "nmse"]
    np.testing.assert_array_equal(frame["nmse"].to_numpy().reshape(table.errors.shape), table.errors)


def test_without_pandas_the_refusal_says_how_to_get_it(monkeypatch):
    imported = builtins.__import__

    def refuse(name, *others):
        if name == "pandas":
            raise ImportError(name)
        return imported(name, *others)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match="pip install pandas"):
        ErrorTable(axes={"heads": (1,)}, errors=np.zeros(1)).to_pandas()


@settings(max_examples=20, deadline=None)
@given(tables())
def test_summaries_are_numpys_own_over_the_seeds_that_finished(table):
    rows = table.rows()
    assert len(rows) == 6
    for row in rows:
        seeds = table.select(**{axis: row[axis] for axis in table.axes if axis != "seed"}).errors
        kept = seeds[np.isfinite(seeds)]
        assert (row["seeds"], row["lost"]) == (len(kept), 3 - len(kept))
        if len(kept):
            assert [row[name] for name in QUANTILES] == list(np.quantile(kept, [0, 0.25, 0.5, 0.75, 1]))
            assert row["mean"] == pytest.approx(kept.mean())
        assert np.isnan(row["std"]) == (len(kept) < 2)


def test_metrics_are_named_by_their_key():
    assert all(name == metric.name for name, metric in METRICS.items())
    assert {name for name, metric in METRICS.items() if not metric.less_is_better} == {"mrr", "fitted_mrr"}
