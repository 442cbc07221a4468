"""The laws of a results folder, whoever looks: its writer, a reader beside it, a reader after it, the next writer."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from headcount.errors import StoreError
from headcount.store import Cell, Outcome, Record, Store, TrainSpec

from .drawn import experiments, law, records, several, unchecked_randomness
from .records import a_cell, a_record, an_experiment, bucket

pytestmark = unchecked_randomness
LOOKS = 4


@contextlib.contextmanager
def new_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(Path(folder)) as store:
        yield store


def looks(writer: Store) -> Iterator[Store]:
    """The folder as everyone sees it. Named by a path, it was opened as a `Path`; here also as text."""
    yield writer
    with Store.open_for_reading(str(writer.root)) as beside:
        yield beside
    writer.close()
    with Store.open_for_reading(writer.root) as after:
        yield after
    with Store.open_for_writing(str(writer.root)) as following:
        yield following


# Records.


@law
@given(several)
def test_what_is_committed_is_read_back_and_counted(committed):
    with new_store() as store:
        store.commit(committed)
        for seen in looks(store):
            assert {record.cell.key: record for record in seen.records()} == {r.cell.key: r for r in committed}
            assert seen.settled_keys() == {r.cell.key for r in committed if r.outcome is not Outcome.FAILED}
            assert seen.outcomes() == {
                outcome.value: sum(record.outcome is outcome for record in committed) for outcome in Outcome
            }


@law
@given(several.flatmap(lambda drawn: st.tuples(st.permutations(drawn), st.permutations(drawn))))
def test_the_order_of_records_is_not_the_order_of_arrival(orders):
    seen_orders = []
    for order in orders:
        with new_store() as store:
            for record in order:
                store.commit([record])
            seen_orders.append(store.records())
    assert seen_orders[0] == seen_orders[1]


@pytest.mark.parametrize("heads", [None, "two", [2]])
def test_a_model_whose_heads_are_no_number_is_read(heads):
    cell = Cell(task={}, length=1, model={"heads": heads}, train=TrainSpec(), seed=0)
    record = Record(cell=cell, outcome=Outcome.FINISHED, metrics={}, curve=(), provenance={}, message="")
    with new_store() as store:
        store.commit([record])
        assert store.records() == [record]


@law
@given(records, records)
def test_only_a_failed_cell_is_replaced(first, second):
    second = replace(second, cell=first.cell)
    with new_store() as store:
        store.commit([first])
        store.commit([second])
        for seen in looks(store):
            assert seen.records() == [second if first.outcome is Outcome.FAILED else first]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("provenance", {"seconds": object()}, TypeError),
        ("message", None, StoreError),
        ("message", "\udcff", (StoreError, UnicodeError)),
    ],
)
def test_a_commit_is_all_or_nothing(name, value, error):
    good, bad, before = bucket(1, 2, 3)
    object.__setattr__(bad, name, value)
    with new_store() as store:
        store.commit([before])
        with pytest.raises(error):
            store.commit([good, bad])
        for seen in looks(store):
            assert seen.records() == [before]


def test_a_commit_costs_the_same_however_many_cells_are_stored():
    """In instructions of SQLite's machine, of which a look through the store would need some per cell."""
    with new_store() as store:

        def instructions(*seeds: int) -> int:
            count = [0]
            store._connection.set_progress_handler(lambda: count.__setitem__(0, count[0] + 1), 1)
            store.commit(bucket(*seeds), {a_cell(seed=seed).key: {"a": np.ones(1)} for seed in seeds})
            store._connection.set_progress_handler(None, 1)
            return count[0]

        instructions(0, 1)
        few = instructions(2, 3)
        store.commit(bucket(*range(10, 1000)))
        assert instructions(4, 5) <= few + 100


def test_a_reader_sees_what_comes_after_it_opened():
    with new_store() as writer, Store.open_for_reading(writer.root) as reader:
        assert reader.records() == []
        writer.commit([a_record()])
        assert reader.records() == [a_record()]


def test_closing_twice_is_harmless():
    with new_store() as store:
        store.close()


# Weights.

tables = st.dictionaries(
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5),
    arrays_of.arrays(np.float32, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0)),
    min_size=1,
    max_size=3,
)


@law
@given(tables)
def test_weights_are_read_back_bit_for_bit(arrays):
    with new_store() as store:
        store.commit([a_record()], {a_cell().key: arrays})
        for seen in looks(store):
            back = seen.weights(a_cell().key)
            assert {name: (a.shape, a.dtype, a.tobytes()) for name, a in back.items()} == {
                name: (a.shape, a.dtype, a.tobytes()) for name, a in arrays.items()
            }


@pytest.mark.parametrize(("first", "kept"), [(Outcome.FINISHED, 0), (Outcome.DIVERGED, 0), (Outcome.FAILED, 1)])
def test_weights_are_replaced_with_their_record_or_not_at_all(first, kept):
    key = a_cell().key
    with new_store() as store:
        for outcome, value in ((first, 0), (Outcome.FINISHED, 1)):
            store.commit([a_record(outcome)], {key: {"a": np.full(2, value)}})
        for seen in looks(store):
            assert seen.weights(key)["a"].tolist() == [kept, kept]


def test_weights_that_were_never_stored_are_named():
    with new_store() as store, pytest.raises(StoreError, match="unknown"):
        store.weights("unknown")


# Experiments.


@law
@given(st.lists(experiments(), max_size=3, unique_by=(lambda e: e.identity, lambda e: e.name)))
def test_experiments_are_read_back_the_oldest_first(begun):
    with new_store() as store:
        named = [store.begin(experiment) for experiment in begun]
        assert named == begun, "a free name is kept"
        for seen in looks(store):
            assert seen.experiments() == begun
            assert [progress.experiment for progress in seen.progress()] == [each.name for each in begun]


@law
@given(experiments(), st.text())
def test_beginning_again_changes_nothing(experiment, command):
    with new_store() as store:
        first = store.begin(experiment, command)
        before = store.experiments(), store.progress(), list(store._connection.iterdump())
        assert store.begin(experiment, command) == first
        assert store.begin(replace(experiment, name=experiment.name + "!"), command) == first, "its stored name"
        assert (store.experiments(), store.progress(), list(store._connection.iterdump())) == before


def test_beginning_extends_what_was_asked_for():
    with new_store() as store:
        for seeds in ((0, 1), (1, 2), (0,)):
            store.begin(an_experiment(*seeds), f"seeds {seeds}")
        for seen in looks(store):
            assert seen.experiments() == [an_experiment(0, 1, 2)]
            (progress,) = seen.progress()
            assert [command for command, _ in progress.runs] == ["seeds (0, 1)", "seeds (1, 2)", "seeds (0,)"]


@pytest.mark.parametrize(
    "change",
    [
        {"question": "Which?"},
        {"task": "another"},
        {"axes": ("trial",)},
        {"settings": {"task": {"d": 2}}},
        {"study": "table2"},
        {"scale": "paper"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_experiment_of_the_same_name_gets_another(change):
    one, other = an_experiment(0), an_experiment(1, **change)
    assert one.identity != other.identity
    with new_store() as store:
        names = [store.begin(each).name for each in (one, other, one, other)]
        third = store.begin(replace(other, question="Why?")).name
        assert names == ["mine", "mine-2"] * 2
        assert third == "mine-3"
        for seen in looks(store):
            first, second, _ = seen.experiments()
            assert (first, second) == (one, replace(other, name="mine-2"))


def test_one_place_of_an_experiment_is_never_two_cells():
    """Models that differ in a field which follows an axis, such as total_dim / heads, leave equal settings."""
    one = an_experiment(places={"a": (0,), "b": (1,)})
    other = an_experiment(places={"c": (1,), "d": (2,)})
    assert one.identity == other.identity
    with new_store() as store:
        for _ in range(2):
            assert [store.begin(each).name for each in (one, other)] == ["mine", "mine-2"]
        for seen in looks(store):
            assert [each.places for each in seen.experiments()] == [one.places, other.places]


@law
@given(st.lists(st.sampled_from(Outcome), min_size=5, max_size=5), st.sets(st.integers(0, 4)))
def test_progress_is_what_records_say(outcomes, committed):
    """Five cells in two experiments that share one of them."""
    first, second = an_experiment(0, 1, 2), an_experiment(2, 3, 4, task="another")
    with new_store() as store:
        for experiment in (first, second):
            store.begin(experiment, "command")
        store.commit([a_record(outcomes[seed], cell=a_cell(seed=seed)) for seed in committed])
        for seen in looks(store):
            for experiment, progress in zip(seen.experiments(), seen.progress(), strict=True):
                done = [r for r in experiment.own(seen.records()) if r.outcome is not Outcome.FAILED]
                assert (progress.cells, progress.done) == (len(experiment.places), len(done))
                assert progress.missing == progress.cells - progress.done


# Facts.


def test_a_fact_of_an_experiment_is_read_back_and_replaced():
    with new_store() as store:
        stored = store.begin(an_experiment())
        store.put(stored.name, "baselines", {"linear": [0.5, 1]})
        store.put(stored.name, "baselines", {"linear": [0.25, None]})
        store.put(stored.name, "effort", 1)
        with pytest.raises(StoreError, match="no such experiment"):
            store.put("no such experiment", "baselines", 1)
        for seen in looks(store):
            assert seen.facts(stored.name) == {"baselines": {"linear": [0.25, None]}, "effort": 1}
            assert seen.get(stored.name, "baselines") == {"linear": [0.25, None]}
            assert (seen.get(stored.name, "notes"), seen.get(stored.name, "notes", [])) == (None, [])
            assert seen.progress()[0].facts == ("baselines", "effort")
            assert seen.facts("no such experiment") == {}
