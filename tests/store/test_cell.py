"""A cell is its content: equal content, equal key, in every process; one changed field, another key."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headcount.errors import InputError
from headcount.models import ClassTokenSpec
from headcount.store import Cell, TrainSpec

from ..helpers.refusals import refused
from .drawn import cells, children, law, unchecked_randomness
from .records import a_cell

pytestmark = unchecked_randomness
START = ("parent", "removed")
OF_CELL = [(field.name,) for field in dataclasses.fields(Cell) if field.name not in START]
OF_TRAIN = [field.name for field in dataclasses.fields(TrainSpec)]


@law
@given(cells, cells)
def test_every_field_is_part_of_the_key(cell, other):
    changed = [
        dataclasses.replace(cell, **{name: getattr(other, name) for name in names}) for names in (*OF_CELL, START)
    ]
    for name in OF_TRAIN:
        train = dataclasses.replace(cell.train, **{name: getattr(other.train, name)})
        changed.append(dataclasses.replace(cell, train=train))
    for each in changed:
        assert (each.key == cell.key) == (each == cell)


def cell_of(content: str) -> Cell:
    """The cell whose content this is."""
    fields = json.loads(content)
    return Cell(**fields | {"removed": tuple(fields.get("removed", ())), "train": TrainSpec(**fields["train"])})


@law
@given(cells, st.text(), st.integers())
def test_every_entry_of_task_and_model_is_part_of_the_key(cell, name, value):
    for part in ("task", "model"):
        content = getattr(cell, part)
        assume(content.get(name) != value)
        assert dataclasses.replace(cell, **{part: content | {name: value}}).key != cell.key


def reordered(value):
    """Equal JSON, its objects written in the opposite order."""
    if isinstance(value, dict):
        return {name: reordered(inner) for name, inner in reversed(value.items())}
    return [reordered(inner) for inner in value] if isinstance(value, list) else value


@law
@given(cells)
def test_the_key_does_not_depend_on_how_the_content_is_written(cell):
    other = dataclasses.replace(cell, task=reordered(cell.task), model=reordered(cell.model))
    assert other.key == cell.key
    assert dataclasses.replace(cell, task={"a": (1, 2)}) == dataclasses.replace(cell, task={"a": [1, 2]})


@law
@given(cells)
def test_a_cell_comes_back_from_its_content(cell):
    assert cell_of(cell.content) == cell


@law
@given(children, st.integers(31, 40))
def test_what_a_child_starts_from_is_part_of_its_key(child, head):
    others = [
        dataclasses.replace(child, parent="", removed=()),
        dataclasses.replace(child, parent=child.parent[::-1] + "0"),
        dataclasses.replace(child, removed=(*child.removed, head)),
    ]
    assert len({each.key for each in (child, *others)}) == 4
    assert child.start == ("descended" if child.removed else "continued")
    assert others[0].start == "random"


def test_the_key_of_a_random_start_does_not_know_of_parents():
    """Pinned: folders from before models had parents go on holding what they hold."""
    cell = a_cell(task={"task": "own"}, model={"kind": "class-token", "heads": 4}, train=TrainSpec(steps=10), seed=3)
    assert cell.key == "570fa12855753902b9ee"
    assert not json.loads(cell.content).keys() & {*START, "probe"}


def test_the_program_of_a_function_is_part_of_the_key():
    cells = [a_cell(), *(a_cell(probe=probe) for probe in ("0123", "4567"))]
    assert len({cell.key for cell in cells}) == 3
    assert [cell_of(cell.content).key for cell in cells] == [cell.key for cell in cells]


def test_another_process_finds_the_same_key_and_needs_no_jax():
    drawn = [
        a_cell(),
        a_cell(parent=a_cell().key, removed=(0,)),
        a_cell(task={"b": [1, 0.1], "a": {"é": None, "z": 1e-300}}),
    ]
    script = (
        "import json, sys\nfrom headcount.store import Cell, TrainSpec\n"
        "given = json.load(sys.stdin)\n"
        "print(json.dumps([Cell(**each | {'train': TrainSpec(**each['train'])}).key for each in given]))\n"
        "assert 'jax' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps([json.loads(cell.content) for cell in drawn]),
        env=os.environ | {"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [cell.key for cell in drawn]


def test_a_whole_number_is_the_same_content_as_an_int_and_as_a_float():
    # JSON tells 1 from 1.0, Python does not.
    assert a_cell(train=TrainSpec(learning_rate=1)).key == a_cell(train=TrainSpec(learning_rate=1.0)).key
    assert a_cell(train=TrainSpec(weight_decay=1)).key == a_cell(train=TrainSpec(weight_decay=1.0)).key
    models = [ClassTokenSpec(heads=1, beta=beta).as_dict() for beta in (2, 2.0)]
    assert a_cell(model=models[0]).key == a_cell(model=models[1]).key


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("steps", True),
        ("batch", -3),
        ("data_seed", -1),
        ("train_examples", -1),
        ("validation_examples", 19),
        ("warmup", -1),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("clip", float("inf")),
        ("second_moment_decay", 1.0),
        ("second_moment_decay", 0.0),
        ("weight_decay", -0.1),
        ("weight_decay", float("nan")),
        ("weight_decay", float("inf")),
        ("precision", "float16"),
        ("max_warmup", 0.0),
        ("max_warmup", 1.0),
        ("max_warmup", float("nan")),
    ],
)
def test_a_way_of_training_that_cannot_be_right_is_refused(name, value):
    with refused(name, str(value)) as caught:
        TrainSpec(**{name: value})
    assert (caught.value.what, repr(caught.value.given)) == (name, repr(value))


@pytest.mark.parametrize(("name", "value"), [("length", 0), ("seed", -1), ("seed", 1.5)])
def test_a_cell_that_cannot_be_right_is_refused(name, value):
    with refused(name, str(value)) as caught:
        a_cell(**{name: value})
    assert isinstance(caught.value, InputError)
    assert (caught.value.what, caught.value.given) == (name, value)


def test_the_usual_limit_of_warm_up_is_no_part_of_a_key():
    """Cells from before it was a field keep their keys."""
    assert "max_warmup" not in a_cell().content
    longer = a_cell(train=TrainSpec(max_warmup=0.5))
    assert json.loads(longer.content)["train"]["max_warmup"] == 0.5
    assert longer.key != a_cell(train=TrainSpec()).key == a_cell(train=TrainSpec(max_warmup=0.1)).key
    assert cell_of(longer.content) == longer


def test_no_warm_up_is_a_way_of_training():
    assert TrainSpec(warmup=0).warmup == 0
