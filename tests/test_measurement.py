"""What `measure` returns and `load` reads: the answer, the table, the figure, the models."""

from dataclasses import replace

import numpy as np
import pytest

import headcount as hc
from headcount.errors import InputError, StoreError
from headcount.registry import task_facts
from headcount.store import Store

from .helpers import fabricated
from .helpers.sweeps import TASK, TRAIN, class_token


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Two head counts and seeds, really trained, a little."""
    folder = tmp_path_factory.mktemp("measured")
    axes = {"heads": [1, 2], "lengths": [4], "seeds": 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headcount.api.task_facts", task_facts)
        return hc.measure(TASK, **axes, model=class_token, train=TRAIN, out=folder, progress=False)


@pytest.fixture
def fabricated_one(tmp_path):
    sweep = fabricated.sweep()
    fabricated.write(tmp_path, fabricated.finished(sweep), {"headcount measure own": sweep})
    return hc.load(tmp_path)[0]


def test_what_is_loaded_is_what_was_measured(measured):
    for folder in (measured.folder, str(measured.folder)):
        (loaded,) = hc.load(folder)
        assert str(loaded) == str(measured) == measured.answer().sentence
        assert loaded.records == measured.records
        assert np.array_equal(loaded.table.errors, measured.table.errors)
        assert loaded.run is None
    assert measured.run.trained == 4


def test_the_support_dimension_at_the_longest_length_is_kept(measured):
    support = measured.support()
    assert (support["value"], support["length"]) == (TASK.intrinsic_dim, 4)


@pytest.mark.filterwarnings("error")
def test_models_that_all_diverge_are_the_answer(tmp_path):
    train = replace(TRAIN, learning_rate=1e6)
    measured = hc.measure(TASK, heads=[1, 2], lengths=[4], seeds=2, model=class_token, train=train, out=tmp_path)
    assert measured.answer().sentence.startswith("no transition found: all 4 models diverged; ")
    (loaded,) = hc.load(tmp_path)
    assert loaded.answer().as_dict()["verdict"] == measured.answer().sentence


@pytest.mark.parametrize("scaled", ["x", "y"])
def test_numbers_of_any_size_are_standardised(scaled, tmp_path):
    """In float32 squares of 1e30 are infinite: all tokens became 0, or all models diverged, after NumPy's warnings."""
    x = np.random.default_rng(0).normal(size=(100, 4, 2))
    errors = []
    for scale in (1.0, 1e30):
        by = {"x": 1.0, "y": 1.0} | {scaled: scale}
        task = hc.ArrayTask(by["x"] * x, by["y"] * x[:, :, 0].max(axis=1), name="large")
        out = tmp_path / str(scale)
        errors.append(hc.measure(task, heads=[1, 2], seeds=2, steps=50, out=out, progress=False).table.errors)
    np.testing.assert_allclose(errors[0], errors[1], rtol=0.02)


def test_the_memory_layout_of_data_changes_no_number(tmp_path):
    x = np.random.default_rng(0).normal(size=(100, 4, 3)) + 5
    y = x[:, :, 0].max(axis=1)
    errors = []
    for name, order in (("rows", "C"), ("columns", "F")):
        task = hc.ArrayTask(np.array(x, order=order), y, name="layout")
        made = hc.measure(task, heads=[1, 2], seeds=2, steps=30, out=tmp_path / name, progress=False)
        errors.append(made.table.errors)
    assert np.array_equal(*errors)


def test_measuring_again_trains_nothing(measured):
    again = hc.measure(TASK, heads=[1, 2], lengths=[4], seeds=2, model=class_token, train=TRAIN, out=measured.folder)
    assert (again.run.already_done, again.run.trained) == (4, 0)


def test_a_model_is_the_stored_one_and_answers_in_the_task_s_units(measured):
    split = TASK.examples(TRAIN.train_examples, TRAIN.validation_examples)
    tokens, targets = np.asarray(split.validation.content), np.asarray(split.validation.targets)
    for heads in (1, 2):
        model = measured.model(heads=heads, seed=1)
        assert model.spec.heads == heads
        answers = np.stack([np.asarray(model(sequence)) for sequence in tokens])
        nmse = np.mean((answers - targets) ** 2) / np.var(targets)
        (record,) = measured.experiment.part(heads=[heads], seed=[1]).own(measured.records)
        assert nmse == pytest.approx(record.metrics["final_nmse"], rel=1e-3)


def test_without_a_seed_the_best_one_is_taken(measured):
    best = min(measured.experiment.part(heads=[2]).own(measured.records), key=lambda record: record.error)
    with Store.open_for_reading(measured.folder) as store:
        arrays = store.weights(best.cell.key)
    chosen = measured.model(heads=2).to_arrays()
    assert all(np.array_equal(chosen[name], array) for name, array in arrays.items())


@pytest.mark.parametrize(
    ("coordinates", "what"), [({"heads": 7}, "heads"), ({"depth": 1}, "depth"), ({"seed": 0}, "heads")]
)
def test_a_place_that_names_no_one_model_is_refused(measured, coordinates, what):
    with pytest.raises(InputError) as caught:
        measured.model(**coordinates)
    assert caught.value.what == what


def test_weights_that_are_missing_are_told(fabricated_one):
    with pytest.raises(StoreError, match="weights"):
        fabricated_one.model(heads=1, length=8, seed=0)


def test_it_is_drawn_and_shown_in_a_notebook(fabricated_one, tmp_path):
    figure = fabricated_one.plot(tmp_path / "drawn.svg")
    assert "<svg" in (tmp_path / "drawn.svg").read_text()
    assert figure.axes
    assert "</svg>" in figure._repr_svg_()
    shown = fabricated_one._repr_html_()
    assert "needs 4 heads" in shown
    assert len(shown) < 4000
    with pytest.raises(InputError, match=r"\.gif"):
        fabricated_one.plot(tmp_path / "drawn.gif")


def test_a_torch_module_has_the_same_outputs(measured):
    torch = pytest.importorskip("torch")
    module = measured.to_torch(heads=2, seed=0)
    tokens = np.asarray(TASK.examples(20, 20).validation.content)[:5]
    with torch.no_grad():
        outputs = module(torch.tensor(tokens)).numpy()
    model = measured.model(heads=2, seed=0)
    assert np.allclose(outputs, np.stack([np.asarray(model(sequence)) for sequence in tokens]), atol=1e-5)


def test_an_option_beside_what_decides_it_is_refused(tmp_path):
    for options, what in (({"train": TRAIN, "steps": 5}, "steps"), ({"model": class_token, "hidden": 8}, "hidden")):
        with pytest.raises(InputError) as caught:
            hc.measure(TASK, out=tmp_path, **options)
        assert caught.value.what == what
    with pytest.raises(InputError, match="steps"):
        hc.measure(TASK, out=tmp_path, stepz=5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_further_axes_are_swept_and_the_best_counts(tmp_path):
    axes = {"hidden": [4, 6], "data_seed": [0, 1]}
    measured = hc.measure(
        TASK, heads=[1, 2], lengths=[4], seeds=1, axes=axes, model=class_token, train=TRAIN, out=tmp_path
    )
    assert measured.table.axes == {"heads": (1, 2), "hidden": (4, 6), "length": (4,), "data_seed": (0, 1), "seed": (0,)}
    assert any("hidden" in note for note in measured.answer().notes)


@pytest.mark.slow
def test_a_label_that_depends_on_two_maxima_needs_two_heads(tmp_path):
    """Whether max_t x[t, 0] + max_t x[t, 1] is above its median."""
    x = np.random.default_rng(0).normal(2, 3, (8000, 8, 2))
    maxima = x.max(axis=1).sum(axis=-1)
    task = hc.ArrayTask(x, np.where(maxima > np.median(maxima), "above", "below"), labels=True, uses_positions=False)
    answer = hc.measure(task, heads=range(1, 7), out=tmp_path, progress=False).answer()
    assert answer.needs, answer.sentence
    assert answer.needs["heads"].low <= 2 <= answer.needs["heads"].high, answer.sentence
