"""A cell is its content: equal content, equal key, in every process; one changed field, another key."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headcount._errors import InputError
from headcount.engine import grid
from headcount.models import ClassTokenSpec, EncoderSpec, encoder_spec
from headcount.store import Cell, TrainSpec
from headcount.store import cell as cell_module
from headcount.store.cell import cell_from_spec
from headcount.tasks import FarthestPoint, InContextRegression, NearestNeighbour, average, max_plus_min, sum_of_maxima

from ..tasks.laws import refused
from .laws import a_cell, cells, cells_of, encoders, transformers, unchecked_randomness

pytestmark = unchecked_randomness
PARTS = (
    ("", Cell, cells),
    ("model", ClassTokenSpec, cells_of(transformers)),
    ("model", EncoderSpec, cells_of(encoders)),
    ("train", TrainSpec, cells),
)
FIELDS = [
    pytest.param(part, field.name, drawn, id=f"{kind.__name__}.{field.name}")
    for part, kind, drawn in PARTS
    for field in dataclasses.fields(kind)
]
quick = settings(deadline=None, max_examples=40)


def exchanged(cell: Cell, part: str, name: str, other: Cell) -> Cell:
    """`cell` with one field taken from `other`."""
    if not part:
        return dataclasses.replace(cell, **{name: getattr(other, name)})
    inner = dataclasses.replace(getattr(cell, part), **{name: getattr(getattr(other, part), name)})
    return dataclasses.replace(cell, **{part: inner})


@pytest.mark.parametrize(("part", "name", "drawn"), FIELDS)
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_every_field_is_part_of_the_key(part, name, drawn, data):
    cell, other = data.draw(drawn), data.draw(drawn)
    try:
        changed = exchanged(cell, part, name, other)
    except InputError:  # a rank that is wider than the other's heads, a width that is no multiple of them
        assume(False)
    assume(changed != cell)
    assert changed.key != cell.key


def test_keys_of_models_from_before_rank_had_a_name_are_unchanged():
    """Literals from commit bcf57d1: what was trained then is found again."""
    cell = Cell(task={"task": "own"}, length=8, model=ClassTokenSpec(heads=2), train=TrainSpec(), seed=0)
    assert cell.key == "93d91c4a670395596f7b"
    model = ClassTokenSpec(heads=3, head_dim=5, hidden=7, layers=2, positions="additive", beta=2)
    cell = Cell(task={"task": "own"}, length=8, model=model, train=TrainSpec(steps=10), seed=4)
    assert cell.key == "f881bbbafd5102272a2d"


def test_keys_of_encoders_from_before_data_had_labels_are_unchanged():
    """Literals from commit 8aa0c22: what was trained then is found again."""
    model = EncoderSpec(heads=2, rank=2, width=8)
    cell = Cell(task={"task": "own"}, length=8, model=model, train=TrainSpec(), seed=0)
    assert cell.key == "dd95d479dbc826ef4162"
    more = {"hidden": 0, "norm": "layer", "norm_first": True, "positions": "additive", "answered_at": "query"}
    model = EncoderSpec(heads=3, rank=2, width=6, head_dim=4, multiplier=2, layers=2, **more)
    cell = Cell(task={"task": "own"}, length=8, model=model, train=TrainSpec(steps=10, train_examples=0), seed=4)
    assert cell.key == "fb544ed34df74ca5a15c"


@quick
@given(cells)
def test_what_came_later_is_written_only_where_it_is_used(cell):
    """A field that older results do not have is left out at the value they had, and only there."""
    spec = cell.spec()
    for part, of_cell, later in (
        ("train", cell.train, cell_module.LATER),
        ("model", cell.model, encoder_spec.LATER if isinstance(cell.model, EncoderSpec) else {}),
    ):
        defaults = {field.name: field.default for field in dataclasses.fields(of_cell)}
        for name, before in later.items():
            assert before == defaults[name], name
            assert (name in spec[part]) == (getattr(of_cell, name) != before), name


@quick
@given(cells_of(transformers), encoders)
def test_no_encoder_has_the_key_of_a_class_token_transformer(cell, encoder):
    assert dataclasses.replace(cell, model=encoder).key != cell.key


def reordered(value):
    """Equal JSON, its objects written in the opposite order."""
    if isinstance(value, dict):
        return {name: reordered(inner) for name, inner in reversed(value.items())}
    return [reordered(inner) for inner in value] if isinstance(value, list) else value


@quick
@given(cells)
def test_the_key_does_not_depend_on_how_the_content_is_written(cell):
    assert dataclasses.replace(cell, task=reordered(cell.task)).key == cell.key


@quick
@given(cells)
def test_a_cell_comes_back_from_its_spec(cell):
    assert cell_from_spec(cell.spec()) == cell
    assert cell_from_spec(json.loads(json.dumps(cell.spec()))).key == cell.key


@pytest.mark.parametrize(
    "task",
    [
        max_plus_min(),
        sum_of_maxima(),
        average(),
        max_plus_min(windows=[(0.0, 0.5), (0.5, 1.0)]),
        NearestNeighbour(length=5, dim=4, points="doubled"),
        FarthestPoint(length=4, dim=3),
        InContextRegression(inputs=2, noise=0.5),
    ],
    ids=["max-plus-min", "sum-of-maxima", "average", "windows", "nearest", "farthest", "in context"],
)
def test_a_cell_of_a_real_task_comes_back_from_its_spec(task):
    (cell,) = grid(task, heads=[1], seeds=[0]).cells
    assert cell_from_spec(cell.spec()) == cell


def test_another_process_finds_the_same_key():
    made = [a_cell(), a_cell(seed=7), a_cell(task={"b": [1, 0.1], "a": {"é": None, "z": 1e-300}})]
    script = (
        "import json, sys\nfrom headcount.store.cell import cell_from_spec\n"
        "print(json.dumps([cell_from_spec(spec).key for spec in json.load(sys.stdin)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps([cell.spec() for cell in made]),
        env=os.environ | {"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [cell.key for cell in made]


def test_a_whole_number_is_the_same_content_as_an_int_and_as_a_float():
    # JSON tells 1 from 1.0, Python does not.
    assert a_cell(train=TrainSpec(learning_rate=1)).key == a_cell(train=TrainSpec(learning_rate=1.0)).key
    assert a_cell(train=TrainSpec(weight_decay=1)).key == a_cell(train=TrainSpec(weight_decay=1.0)).key
    assert a_cell(model=ClassTokenSpec(heads=1, beta=2)).key == a_cell(model=ClassTokenSpec(heads=1, beta=2.0)).key


@pytest.mark.parametrize(
    ("name", "value", "requirement"),
    [
        ("steps", 0, "steps must be a whole number of at least 1, got 0"),
        ("steps", True, "steps must be a whole number of at least 1, got True"),
        ("batch", -3, "batch must be a whole number of at least 1, got -3"),
        ("train_examples", -1, "train_examples must be a whole number of at least 0, got -1"),
        ("validation_examples", 19, "validation_examples must be a whole number of at least 20, got 19"),
        ("warmup", -1, "warmup must be a whole number of at least 0, got -1"),
        ("learning_rate", 0.0, "learning_rate must be positive and finite, got 0.0"),
        ("learning_rate", float("nan"), "learning_rate must be positive and finite, got nan"),
        ("clip", float("inf"), "clip must be positive and finite, got inf"),
        ("second_moment_decay", 1.0, "second_moment_decay must lie between 0 and 1, got 1.0"),
        ("second_moment_decay", 0.0, "second_moment_decay must lie between 0 and 1, got 0.0"),
        ("weight_decay", -0.1, "weight_decay must be finite and not negative, got -0.1"),
        ("weight_decay", float("nan"), "weight_decay must be finite and not negative, got nan"),
        ("weight_decay", float("inf"), "weight_decay must be finite and not negative, got inf"),
    ],
)
def test_a_way_of_training_that_cannot_be_right_is_refused(name, value, requirement):
    with pytest.raises(InputError, match=requirement):
        TrainSpec(**{name: value})


def test_an_unknown_precision_is_refused():
    with refused("precision must be one of float32, bfloat16", '"float16"'):
        TrainSpec(precision="float16")


def test_no_warm_up_is_a_way_of_training():
    assert TrainSpec(warmup=0).warmup == 0


@quick
@given(st.integers(0, 2**31), st.integers(0, 2**31))
def test_seeds_never_share_a_key(one, other):
    assume(one != other)
    assert a_cell(seed=one).key != a_cell(seed=other).key
