"""Models that start from stored ones: the same to the last bit however they are trained, and safe when one is lost."""

import functools
from dataclasses import replace

import pytest

from headcount.engine import plan_sweep, run_sweep, trainer
from headcount.engine.train import program
from headcount.errors import StoreError
from headcount.search import Question
from headcount.store import Outcome, Store

from ..helpers.compiling import compile_quickly  # noqa: F401
from ..helpers.hearing import hearing
from ..helpers.sweeps import CPU, TASK, TRAIN, class_token

STEPS = replace(TRAIN, steps=8)


def asked() -> Question:
    return Question(task=TASK, model=class_token, train=STEPS, heads=(1, 2, 3), most=3, lengths=(4,))


def family(question: Question):
    """Two parents of three heads; of the first a descended child, its sibling and itself, trained on."""
    parents = question.random([3], range(2))
    child = question.descended(parents[0], (1,))
    others = [
        question.descended(parents[0], (0,)),
        question.descended(parents[1], (1,)),
        question.descended(parents[0], (0, 2)),
    ]
    return parents, child, [*others, question.continued(parents[0])]


@pytest.fixture
def folder(tmp_path):
    """A folder that holds the parents."""
    question = asked()
    for parent in family(question)[0]:  # each with a pack of weights of its own
        do(question, [parent], tmp_path / "results")
    return tmp_path / "results"


def do(question, cells, root, **options):
    sweep = question.sweep_of(cells)
    with Store.open_for_writing(root) as store:
        return run_sweep(sweep, store, plan=plan_sweep(sweep, store.settled_keys(), CPU), **options)


def stored(root):
    """Everything that training decided, by cell, but the weights."""
    with Store.open_for_reading(root) as store:
        return {record.cell.key: (record.outcome, record.metrics, record.curve) for record in store.records()}


def weights_in(root):
    """The bytes of every weight, by cell."""
    with Store.open_for_reading(root) as store:
        return {
            record.cell.key: {name: array.tobytes() for name, array in store.weights(record.cell.key).items()}
            for record in store.records()
        }


def test_a_child_is_the_same_alone_among_others_and_after_a_kill(folder, tmp_path):
    question = asked()
    parents, child, others = family(question)
    everyone = [*parents, child, *others]
    assert do(question, everyone, folder).outcomes == {Outcome.FINISHED: 1 + len(others)}
    records, weights = stored(folder), weights_in(folder)
    assert len({b"".join(arrays.values()) for arrays in weights.values()}) == len(everyone), "all differ"

    alone = tmp_path / "alone"
    do(question, parents, alone)
    do(question, [child], alone)
    assert stored(alone)[child.key] == records[child.key]
    assert weights_in(alone)[child.key] == weights[child.key]

    killed, done = tmp_path / "killed", []

    def on_steps(count):
        done.append(count)
        if sum(done) > 3:
            raise KeyboardInterrupt

    do(question, parents, killed)
    with pytest.raises(KeyboardInterrupt):
        do(question, [child, *others], killed, events=hearing("steps", on_steps))
    assert do(question, everyone, killed).already_done < len(everyone)
    assert (stored(killed), weights_in(killed)) == (records, weights)


def file_of(root, key):
    with Store.open_for_reading(root) as store:
        return store.weights_path(key)


@pytest.mark.parametrize("damage", ["missing", "truncated", "another model's"])
def test_a_lost_parent_is_named_and_costs_nothing(folder, damage):
    question = asked()
    (first, second), child, _ = family(question)
    weights = file_of(folder, first.key)
    if damage == "missing":
        weights.unlink()
    elif damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:-9])
    else:
        other = question.random([1], [0])
        do(question, other, folder)
        weights.write_bytes(file_of(folder, other[0].key).read_bytes())
    before = stored(folder)
    with pytest.raises(StoreError, match=first.key) as caught:
        do(question, [child], folder)
    assert "\n" not in str(caught.value)
    assert stored(folder) == before
    assert do(question, [question.descended(second, (1,))], folder).outcomes == {Outcome.FINISHED: 1}


def test_children_draws_of_the_data_and_steps_share_one_compiled_program(folder, monkeypatch):
    programs = []

    @functools.wraps(program)
    def counted(*shape):
        programs.append(program(*shape))
        return programs[-1]

    monkeypatch.setattr(trainer, "program", counted)
    program.let_go()
    question = asked()
    parents, child, others = family(question)
    do(question, [*parents, child, *others, *question.random([2], [0], draw=1)], folder)
    assert len({id(each) for each in programs}) == len(program) == 1
    assert len(programs) > 1
    assert programs[0]._advance._cache_size() == 1
