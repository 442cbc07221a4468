"""The laws of a results folder, whoever looks at it: each class of test_table.py looks in another way.

Records here are drawn by Hypothesis: floats of every size, curves, text in every script.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from headcount._choices import POSITIONS
from headcount._errors import StoreError
from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.store import Cell, Outcome, Record, Store, TrainSpec

finite = st.floats(allow_nan=False)
positive = st.floats(1e-30, 1e30)
count = st.integers(1, 10**6)
words = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=4,
)
trains = st.builds(
    TrainSpec,
    steps=count,
    batch=count,
    learning_rate=positive,
    warmup=st.integers(0, 10**6),
    clip=positive,
    second_moment_decay=st.floats(0.01, 0.99),
    train_examples=st.integers(0, 10**6),
    validation_examples=st.integers(20, 10**6),
    data_seed=count,
    weight_decay=st.just(0.0) | st.floats(0, 10),
    precision=st.sampled_from(["float32", "bfloat16"]),
)
transformers = st.fixed_dictionaries(
    {
        "heads": count,
        "head_dim": st.integers(10, 10**6),
        "hidden": count,
        "layers": count,
        "positions": st.sampled_from(POSITIONS),
        "beta": positive,
    },
    optional={"rank": st.integers(1, 10)},
).map(lambda chosen: ClassTokenSpec(**chosen))


encoders = st.fixed_dictionaries(
    {
        "heads": count,
        "rank": st.integers(1, 10),
        "width": st.integers(10, 10**6),
        "multiplier": count,
        "layers": count,
        "hidden": st.integers(0, 10**6),
        "norm": st.sampled_from(["unit", "layer", "none"]),
        "bias": st.booleans(),
        "residual": st.booleans(),
        "norm_first": st.booleans(),
        "positions": st.sampled_from(POSITIONS),
        "attention": st.sampled_from(["soft", "hard"]),
        "answered_at": st.sampled_from(["sequence", "tokens", "query"]),
        "activation": st.sampled_from(["relu", "gelu"]),
        "final_norm": st.booleans(),
        "query_is_key": st.booleans(),
        "masks_padding": st.booleans(),
        "dropout": st.just(0.0) | st.floats(0, 0.99),
        "always_maps": st.booleans(),
    },
    optional={"head_dim": st.integers(1, 10)},
).map(lambda chosen: EncoderSpec(**chosen))


def cells_of(models: st.SearchStrategy) -> st.SearchStrategy[Cell]:
    task = st.dictionaries(words, values, max_size=4)
    return st.builds(Cell, task=task, length=count, model=models, train=trains, seed=count)


cells = cells_of(transformers | encoders)
records = st.builds(
    Record,
    cell=cells,
    outcome=st.sampled_from(Outcome),
    metrics=st.dictionaries(words, finite, max_size=4),
    curve=st.lists(st.tuples(count, finite), max_size=5).map(tuple),
    provenance=st.dictionaries(words, values, max_size=4),
    message=st.text(),
)
several = st.lists(records, min_size=1, max_size=5, unique_by=lambda record: record.cell.key)
tables = st.dictionaries(
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5),
    arrays_of.arrays(np.float32, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0)),
    min_size=1,
    max_size=3,
)
# The types of records are checked while they are drawn, by a checker that looks at random entries of a dictionary.
unchecked_randomness = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
law = settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def a_cell(**changes) -> Cell:
    plain = {"task": {"task": "any"}, "length": 8, "model": ClassTokenSpec(heads=2), "train": TrainSpec(), "seed": 0}
    return Cell(**(plain | changes))


def a_record(outcome: Outcome = Outcome.FINISHED, **changes) -> Record:
    plain = {"cell": a_cell(), "metrics": {"nmse": 0.25}, "curve": ((0, 1.0), (9, 0.25)), "provenance": {"seconds": 1}}
    return Record(outcome=outcome, **(plain | changes))


@contextlib.contextmanager
def new_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(Path(folder)) as store:
        yield store


class StoreLaws:
    """`looking(writer)` gives the store that must show what `writer` was given."""

    def looking(self, writer: Store) -> contextlib.AbstractContextManager[Store]:
        raise NotImplementedError

    @law
    @given(several)
    def test_what_is_committed_is_read_back(self, given_records):
        with new_store() as store:
            store.commit(given_records)
            with self.looking(store) as seen:
                by_key = {record.cell.key: record for record in seen.records()}
        assert by_key == {record.cell.key: record for record in given_records}

    @law
    @given(several.flatmap(lambda made: st.tuples(st.permutations(made), st.permutations(made))))
    def test_the_order_of_records_is_not_the_order_of_arrival(self, orders):
        seen_orders = []
        for order in orders:
            with new_store() as store:
                for record in order:
                    store.commit([record])
                with self.looking(store) as seen:
                    seen_orders.append(seen.records())
        assert seen_orders[0] == seen_orders[1]

    @law
    @given(several)
    def test_failed_cells_are_not_settled(self, given_records):
        with new_store() as store:
            store.commit(given_records)
            with self.looking(store) as seen:
                settled = seen.settled_keys()
        assert settled == {r.cell.key for r in given_records if r.outcome in (Outcome.FINISHED, Outcome.DIVERGED)}

    @law
    @given(records, records)
    def test_only_a_failed_cell_is_replaced(self, first, second):
        second = replace(second, cell=first.cell)
        with new_store() as store:
            store.commit([first])
            store.commit([second])
            with self.looking(store) as seen:
                assert seen.records() == [second if first.outcome is Outcome.FAILED else first]

    def test_weights_of_a_settled_cell_are_not_replaced(self):
        key = a_cell().key
        with new_store() as store:
            store.commit([a_record()], {key: {"a": np.zeros(2)}})
            store.commit([a_record()], {key: {"a": np.ones(2)}})
            with self.looking(store) as seen:
                assert seen.weights(key)["a"].tolist() == [0, 0]

    def test_weights_of_a_failed_cell_can_still_come(self):
        key = a_cell().key
        with new_store() as store:
            store.commit([a_record(Outcome.FAILED)])
            store.commit([a_record()], {key: {"a": np.ones(2)}})
            with self.looking(store) as seen:
                assert seen.weights(key)["a"].tolist() == [1, 1]

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("provenance", {"seconds": object()}, TypeError),
            ("message", None, StoreError),
            ("message", "\udcff", (StoreError, UnicodeError)),
        ],
    )
    def test_a_commit_is_all_or_nothing(self, name, value, error):
        good, bad, before = (a_record(cell=a_cell(seed=seed)) for seed in (1, 2, 3))
        object.__setattr__(bad, name, value)
        with new_store() as store:
            store.commit([before])
            with pytest.raises(error):
                store.commit([good, bad])
            with self.looking(store) as seen:
                assert seen.records() == [before]

    def test_a_sweep_is_remembered_once(self):
        some, more = [a_cell(seed=seed) for seed in (0, 1)], [a_cell(seed=seed) for seed in (0, 1, 2)]
        with new_store() as store:
            for command, wanted in [("a", some), ("a", some[::-1]), ("a", more), ("b", some), ("a", some)]:
                store.begin_sweep(command, wanted)
            with self.looking(store) as seen:
                remembered = [(sweep["command"], set(sweep["keys"])) for sweep in seen.sweeps()]
        keys, more_keys = {cell.key for cell in some}, {cell.key for cell in more}
        assert remembered == [("a", keys), ("a", more_keys), ("b", keys)]

    @law
    @given(tables)
    def test_weights_are_read_back_bit_for_bit(self, arrays):
        with new_store() as store:
            store.commit([a_record()], {a_cell().key: arrays})
            with self.looking(store) as seen:
                back = seen.weights(a_cell().key)
        assert {name: (a.shape, a.dtype, a.tobytes()) for name, a in back.items()} == {
            name: (a.shape, a.dtype, a.tobytes()) for name, a in arrays.items()
        }

    def test_weights_that_were_never_stored_are_named(self):
        with new_store() as store, self.looking(store) as seen, pytest.raises(StoreError, match="no stored weights"):
            seen.weights("unknown")
