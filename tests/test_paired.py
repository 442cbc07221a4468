"""The standard error of a difference between two head counts that answer the same validation examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import headcount as hc
from headcount.answer.answer import PAIRED, answer_of
from headcount.engine.data import validation_of
from headcount.models import from_arrays, spec_from_dict
from headcount.paired import attach_paired_errors, standard_errors
from headcount.store import Store

LITTLE = {"steps": 20, "train_examples": 200, "validation_examples": 60, "progress": False}


def measured(folder, y_of, heads=(1, 2, 4)):
    x = np.random.default_rng(0).normal(size=(300, 5, 2))
    return hc.measure(x, y_of(x), heads=list(heads), seeds=2, out=folder, **LITTLE), hc.ArrayTask(x, y_of(x))


@given(arrays(np.float64, (3, 40), elements=st.floats(0, 1)))
def test_they_are_the_textbook_ones(errors):
    found = standard_errors(errors, is_share=False)
    for i, j in np.ndindex(3, 3):
        np.testing.assert_allclose(found[i, j], np.std(errors[i] - errors[j]) / np.sqrt(40), atol=1e-8)


@given(arrays(np.int8, (2, 50), elements=st.integers(0, 1)))
def test_shares_that_agree_on_every_example_may_still_differ(wrong):
    found = standard_errors(wrong.astype(float), is_share=True)
    assert np.all(np.diag(found) == 0)
    assert found[0, 1] >= np.std(wrong[0] - wrong[1].astype(float)) / np.sqrt(50)
    assert found[0, 1] >= 1 / 50


def test_resampled_examples_scatter_as_they_say():
    random = np.random.default_rng(1)
    shared = random.normal(size=500) ** 2
    errors = np.stack([shared + 0.1 * random.normal(size=500) ** 2, 0.9 * shared])
    drawn = random.integers(500, size=(4000, 500))
    means = errors[:, drawn].mean(axis=-1)
    np.testing.assert_allclose(standard_errors(errors, is_share=False)[0, 1], np.std(means[0] - means[1]), rtol=0.05)
    # Two samples of their own would scatter far more: pairing is what is gained.
    assert np.hypot(*errors.std(axis=1)) / np.sqrt(500) > 3 * standard_errors(errors, is_share=False)[0, 1]


@pytest.mark.parametrize(
    "y_of", [lambda x: x[:, :, 0].max(axis=1), lambda x: np.where(x[:, 0, 0] > 0, "a", "b")], ids=["numbers", "labels"]
)
def test_they_are_of_the_stored_models_on_the_validation_examples(tmp_path, y_of):
    measurement, task = measured(tmp_path, y_of)
    with Store.open_for_writing(tmp_path) as store:
        attach_paired_errors(store, measurement.experiment.name, measurement.records, task)
        (entry,) = store.get(measurement.experiment.name, PAIRED)
        assert entry["heads"] == [1, 2, 4]
        assert entry["share"] == pytest.approx(0.2)
        errors = []
        for heads in entry["heads"]:
            own = [record for record in measurement.records if record.cell.model["heads"] == heads]
            record = min(own, key=lambda record: (record.error, record.cell.key))
            spec = spec_from_dict(record.cell.model)
            tokens, targets, scale = validation_of(task, spec, record.cell.train)
            model = from_arrays(spec, store.weights(record.cell.key))
            answers = np.stack([np.asarray(model(each)) for each in tokens])
            if scale is None:
                errors.append((answers.argmax(axis=1) != targets).astype(float))
            else:
                errors.append(np.mean((answers - targets) ** 2, axis=1) / np.var(targets, axis=0))
            assert np.mean(errors[-1]) == pytest.approx(record.final_error, rel=1e-3)
        np.testing.assert_allclose(
            entry["errors"], standard_errors(np.array(errors), is_share=scale is None), rtol=1e-3
        )


def test_what_is_stored_of_the_same_models_is_kept(tmp_path, monkeypatch):
    measurement, task = measured(tmp_path, lambda x: x[:, :, 0].max(axis=1))
    name = measurement.experiment.name
    with Store.open_for_writing(tmp_path) as store:
        attach_paired_errors(store, name, measurement.records, task)
        before = store.get(name, PAIRED)
        monkeypatch.setattr("headcount.paired._errors_of", lambda *_: pytest.fail("computed again"))
        attach_paired_errors(store, name, measurement.records, task)
        assert store.get(name, PAIRED) == before


def test_an_answer_of_the_kind_enough_rests_on_them(tmp_path):
    measurement, _ = measured(tmp_path, lambda x: x[:, :, 0].max(axis=1), heads=(1, 2))
    assert measurement.answer().kind == "enough"
    (entry,) = measurement.facts[PAIRED]
    assert entry["heads"] == [1, 2]
    assert measurement.answer() == answer_of(measurement.table, measurement.facts)
    assert measurement.answer() != answer_of(measurement.table, {**measurement.facts, PAIRED: ()})
    (again,) = hc.load(tmp_path)
    assert again.answer() == measurement.answer()
