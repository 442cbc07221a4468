"""What each head reads: the attention of the model itself, and what it loses without a head."""

import json
import threading
from dataclasses import replace

import jax
import numpy as np
import pytest

from headcount.answer import answer, error_table
from headcount.engine.data import prepare
from headcount.heads_read import ATTACHMENT, MAX_LENGTH, attach_model_facts, best_shown, heads_read
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.report.heads import heads_read_of
from headcount.store import Cell, Outcome, Record, Store, TrainSpec
from headcount.tasks import ArrayTask
from headcount.tasks.presets import max_plus_min

from .helpers.compiling import compile_quickly  # noqa: F401
from .helpers.fabricated import finished, sweep

TASK = max_plus_min(length=5)
TRAIN = TrainSpec(train_examples=50, validation_examples=40)
SPECS = {
    "one layer": ClassTokenSpec(heads=2, head_dim=2, hidden=4),
    "two layers": ClassTokenSpec(heads=2, head_dim=2, hidden=4, layers=2),
    "encoder": EncoderSpec(heads=2, rank=2, width=4, hidden=4, layers=2, answered_at="sequence"),
}


@pytest.fixture
def stored(tmp_path, request):
    """A store with one untrained model, which reads and answers as it happens to."""
    spec = SPECS[request.param]
    model = spec.init(0, length=TASK.length, dim=1, outputs=1)
    cell = Cell(task=TASK.spec(), length=TASK.length, model=spec.as_dict(), train=TRAIN, seed=0)
    record = Record(cell=cell, outcome=Outcome.FINISHED, metrics={"nmse": 1.0}, curve=(), provenance={})
    experiment = replace(sweep({"heads": (2,), "seed": (0,)}).experiment, places={cell.key: (2, 0)})
    with Store.open_for_writing(tmp_path) as store:
        store.begin(experiment)
        store.commit([record], {cell.key: model.to_arrays()})
        yield store, experiment, record, model


@pytest.mark.parametrize("stored", SPECS, indirect=True)
def test_heads_read_what_the_model_attends_to_and_are_missed_as_it_misses_them(stored):
    store, experiment, record, model = stored
    content = heads_read(store, experiment, record, TASK)
    layers = len(getattr(model, "layers", getattr(model, "attention", ())))
    assert [head["name"] for head in content["heads"]][-1] == ("head 2" if layers == 1 else "layer 2, head 2")
    assert len(content["heads"]) == 2 * layers
    validation = TASK.examples(TRAIN.train_examples, TRAIN.validation_examples, TRAIN.data_seed).validation
    answers = jax.jit(jax.vmap(model))(validation.content)
    for place, example in enumerate(content["examples"]):
        tokens = np.asarray(validation.content)[place]
        np.testing.assert_allclose(example["tokens"], tokens, rtol=0.01)
        np.testing.assert_allclose(example["answer"], answers[place], rtol=0.01)
        if layers == 1:
            read = np.array([head["weights"][place] for head in content["heads"]])
            np.testing.assert_allclose(read.T, model.attention_weights(tokens)[0].T, atol=6e-4)
    for head in content["heads"]:
        assert all(0.99 <= sum(row) <= 1.01 for row in head["weights"])
        assert 1 <= head["reads"] <= TASK.length
    if layers == 1:
        without = model.attention[0].output.copy()
        without[:, 1] = 0
        changed = replace_output(model, without)
        answers = np.asarray(jax.jit(jax.vmap(changed))(validation.content))
        targets = np.asarray(validation.targets)
        nmse = np.mean((answers - targets) ** 2) / targets.var()
        assert content["heads"][1]["without"] == pytest.approx(nmse, rel=0.01)
    assert heads_read_of(json.loads(json.dumps(content))) is not None


def replace_output(model, output):
    (layer,) = model.attention
    return replace(model, attention=(replace(layer, output=output),))


@pytest.mark.parametrize("stored", ["one layer"], indirect=True)
def test_it_is_kept_beside_the_experiment_once_or_the_reason_why_not(stored, monkeypatch):
    store, experiment, record, _ = stored
    found = answer(error_table(experiment, [record]))

    def kept(stop=None):
        attach_model_facts(store, experiment, [record], found, TASK, stop)
        return store.get(experiment.name, ATTACHMENT)

    stop = threading.Event()
    stop.set()
    assert set(kept(stop)) == {"skipped"}
    assert kept()["key"] == record.cell.key  # what was skipped is tried again
    with monkeypatch.context() as patched:
        patched.setattr("headcount.heads_read.heads_read", lambda *_, **__: pytest.fail("computed again"))
        kept()
    store.put(experiment.name, ATTACHMENT, {})
    weights = store.weights_path(record.cell.key)
    weights.write_bytes(bytes(weights.stat().st_size))
    skipped = kept()
    assert record.cell.key in skipped["skipped"]
    assert heads_read_of(skipped) is None
    monkeypatch.setattr("headcount.heads_read.heads_read", lambda *_, **__: {}["a bug"])
    assert "a bug" in kept()["skipped"], "the answer is not lost with it"


def test_errors_are_those_of_the_units_that_models_are_trained_in(tmp_path):
    """Of outputs of very different size, each counts alike."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(100, 3, 2))
    task = ArrayTask(x, np.stack([1000 * x.mean(axis=(1, 2)), generator.normal(size=100)], axis=1))
    spec, train = SPECS["one layer"], TrainSpec(train_examples=40, validation_examples=20)
    prepared = prepare(task, spec, train)
    model = spec.init(0, length=3, dim=2, outputs=2)
    model.readout_out.bias[1] = 3.0  # wrong about the small output alone
    validation = prepared.data.validation
    wanted = task.objective.grades(jax.jit(jax.vmap(model))(validation.tokens), validation.targets)["nmse"]
    cell = Cell(task=task.spec(), length=3, model=spec.as_dict(), train=train, seed=0)
    record = Record(cell=cell, outcome=Outcome.FINISHED, metrics={"nmse": 1.0}, curve=(), provenance={})
    experiment = replace(sweep({"heads": (2,), "seed": (0,)}).experiment, places={cell.key: (2, 0)})
    with Store.open_for_writing(tmp_path) as store:
        store.begin(experiment)
        store.commit([record], {cell.key: model.in_raw_units(*prepared.units).to_arrays()})
        assert heads_read(store, experiment, record, task)["error"] == pytest.approx(float(wanted), rel=0.01)


def test_the_model_is_the_one_that_ended_best_at_the_answer_and_no_longer_than_can_be_shown():
    made = sweep({"heads": (1, 2, 4, 5), "length": (8, 16, 2 * MAX_LENGTH), "seed": (0, 1)})
    records = finished(made)
    found = answer(error_table(made.experiment, records))
    best = best_shown(made.experiment, records, found)
    assert made.experiment.coordinates(best.cell.key) == {"heads": 4, "length": 16, "seed": 0}
    unsolved = replace(found, needs={}, kind="none")
    best = best_shown(made.experiment, records, unsolved)
    assert made.experiment.coordinates(best.cell.key) == {"heads": 5, "length": 16, "seed": 0}
    unsteady = next(record for record in records if record.cell.key == best.cell.key)
    records[records.index(unsteady)] = replace(unsteady, metrics=unsteady.metrics | {"final_nmse": 9.0})
    best = best_shown(made.experiment, records, unsolved)
    assert made.experiment.coordinates(best.cell.key) == {"heads": 5, "length": 16, "seed": 1}
    long = made.experiment.part(length=[2 * MAX_LENGTH])
    assert best_shown(long, records, found) is None
