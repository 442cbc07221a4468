"""Records and experiments drawn by Hypothesis: floats of every size, curves, text in every script."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from headcount.store import Cell, Experiment, Outcome, Record, TrainSpec

finite = st.floats(allow_nan=False)
positive = st.floats(1e-30, 1e30)
count = st.integers(1, 10**6)
words = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=4,
)
contents = st.dictionaries(words, values, max_size=4)
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
    max_warmup=st.just(0.1) | st.floats(0.01, 0.99),
)
keys = st.text("0123456789abcdef", min_size=20, max_size=20)
content = {"task": contents, "length": count, "model": contents, "train": trains, "seed": count}
content |= {"probe": st.just("") | st.text("0123456789abcdef", min_size=16, max_size=16)}
removed = st.lists(st.integers(0, 30), unique=True, max_size=4).map(tuple)
children = st.builds(Cell, **content, parent=keys, removed=removed)
cells = st.builds(Cell, **content) | children
TYPED = {"device", "backend", "versions", "early", "seconds", "finished", "task", "model", "train"}
"""Of a provenance and of settings, what must be of its own kind; Hypothesis also draws words that it finds in code."""
untyped = contents.map(lambda drawn: {name: value for name, value in drawn.items() if name not in TYPED})
records = st.builds(
    Record,
    cell=cells,
    outcome=st.sampled_from(Outcome),
    metrics=st.dictionaries(words, finite, max_size=4),
    curve=st.lists(st.tuples(count, finite), max_size=5).map(tuple),
    provenance=untyped,
    message=st.text(),
)
several = st.lists(records, min_size=1, max_size=5, unique_by=lambda record: record.cell.key)


@st.composite
def experiments(draw: st.DrawFn) -> Experiment:
    axes = tuple(draw(st.lists(words, min_size=1, max_size=4, unique=True)))
    place = st.tuples(*[st.integers() | finite | words] * len(axes))
    named = {name: draw(words) for name in ("question", "task", "study", "scale")}
    places = draw(st.dictionaries(keys, place, max_size=4))
    return Experiment(name=draw(st.text(min_size=1)), axes=axes, places=places, settings=draw(untyped), **named)


law = settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])
# The types of records are checked while they are drawn, by a checker that looks at random entries of a dictionary.
unchecked_randomness = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
