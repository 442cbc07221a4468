"""What `measure` is asked, before anything is trained: a task, a file, or arrays with what is said about them."""

import numpy as np
import pytest

import headcount as hc
from headcount.request import Request, task_of

from .helpers.refusals import refused

X = np.random.default_rng(0).normal(size=(120, 4, 2)).astype(np.float32)
Y = X[:, :, 0].max(axis=1)


@pytest.mark.parametrize("kind", ["numpy", "lists", "torch", "pandas"])
def test_arrays_of_any_library_are_one_task(kind):
    x, y = X[..., 0], Y
    if kind == "torch":
        torch = pytest.importorskip("torch")
        x, y = torch.tensor(x, requires_grad=True), torch.tensor(y)
    elif kind == "pandas":
        pandas = pytest.importorskip("pandas")
        x, y = pandas.DataFrame(x), pandas.Series(y)
    elif kind == "lists":
        x, y = x.tolist(), y.tolist()
    assert task_of(x, y, {}).spec() == hc.ArrayTask(X[..., :1], Y).spec()


def test_what_is_said_about_arrays_reaches_them():
    lengths = 2 + np.arange(120) % 3
    mask = np.arange(4) < lengths[:, None]
    masked = task_of(X, Y, {"mask": mask, "answered_at": "query", "name": "mine"})
    ragged = hc.ArrayTask(
        [tokens[:length] for tokens, length in zip(X, lengths, strict=True)], Y, answered_at="query", name="mine"
    )
    assert masked.spec() == ragged.spec()


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((X,), {}, ["measure(x, y)", "ndarray"]),
        ((X.tolist(),), {}, ["measure(x, y)", "list"]),
        (("max-plus-min", Y), {}, ["'max-plus-min'", "targets"]),
        ((X, Y), {"targets": "price"}, ["targets", "files"]),
        ((X, Y), {"hiden": 3}, ['"hiden"', 'Did you mean "hidden"?']),
        ((X, Y[:50]), {}, ["120", "50"]),
        (("max-plus-min",), {"answered_at": "query"}, ["answered_at"]),
    ],
)
def test_what_does_not_go_together(arguments, options, words):
    with refused(*words):
        hc.measure(*arguments, **options)


def test_a_task_has_its_targets_and_its_options():
    task = hc.ArrayTask(X, Y)
    with refused("arrays", "y"):
        hc.measure(task, Y)
    with refused("arrays", "labels"):
        hc.measure(task, labels=True)


def test_one_request_is_a_question_or_every_combination():
    task = hc.find_task("max-plus-min", length=4)
    assert Request(task=task).combines == ""
    assert Request(task=task, learning_rates=[0.1]).combines == ""
    assert Request(task=task, learning_rates=[0.1, 0.2]).combines == "learning_rates"
    assert len(Request(task=task, seeds=2, heads=[1, 2], lengths=[4]).planned.cells) == 4
    with refused("seeds", "effort"):
        Request(task=task, seeds=2, effort="quick")


def test_shared_keys_are_an_option_or_a_map_of_what_divides():
    task = hc.find_task("max-plus-min", length=4)
    one = Request(task=task, kv_heads=1)
    assert one.combines == ""
    assert one.planned.removes_heads
    assert one.planned.model(3).kv_heads == 1
    several = Request(task=task, kv_heads=[1, 2], head_dims=[2, 4], heads=[1, 2, 3], lengths=[4], seeds=1)
    plan = several.planned
    assert plan.experiment.axes == ("heads", "kv_heads", "head_dim", "length", "seed")
    sizes = {(cell.model["heads"], cell.model.get("kv_heads", cell.model["heads"])) for cell in plan.cells}
    assert sizes == {(1, 1), (2, 1), (2, 2), (3, 1)}
    assert len(plan.cells) == 8
    assert [word in several.notes[0] for word in ("kv_heads 2", "1 and 3 heads")] == [True, True]
    with refused("kv_heads", "4"):
        _ = Request(task=task, kv_heads=[4, 5], heads=[1, 2, 3], lengths=[4]).planned
    with refused("kv_heads", "effort"):
        Request(task=task, kv_heads=[1, 2], effort="quick")


@pytest.mark.parametrize(("shared", "heads"), [(2, (2, 4, 6)), (3, (3, 6)), (4, (4, 8, 12))])
def test_one_number_of_kv_heads_is_tried_with_heads_that_it_divides(shared, heads):
    request = Request(task=hc.find_task("max-plus-min", length=4), kv_heads=shared)
    assert request.planned.heads == heads
    assert f"kv_heads {shared}" in request.notes[0]


@pytest.mark.parametrize(
    ("options", "heads", "left_out"),
    [
        ({}, (1, 2, 3, 4, 6, 8, 12), "5, 7, 9, 10 and 11 heads"),
        ({"heads": [1, 2, 5]}, (1, 2), "5 heads"),
        ({"heads": [1, 2]}, (1, 2), ""),
        ({"kv_heads": 4}, (4, 8, 12), "kv_heads 4"),
    ],
)
@pytest.mark.parametrize("answered_at", ["sequence", "query"])
def test_heads_that_do_not_divide_a_total_dim_are_left_out_and_said(options, heads, left_out, answered_at):
    request = Request(
        task=hc.ArrayTask(X, Y, answered_at=answered_at),
        options={"total_dim": 48},
        **options,
    )
    assert tuple(request.planned.heads) == heads
    assert bool(request.notes) == bool(left_out)
    assert left_out in " ".join(request.notes)
    grid = Request(task=request.task, seeds=1, options={"total_dim": 48}, **options)
    assert {cell.model["heads"] for cell in grid.planned.cells} == set(heads)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"head_dims": [2, 4], "total_dim": 32, "heads": [1, 2]}, ["head_dims", "total_dim"]),
        ({"head_dims": [2, 4], "head_dim": 8}, ["head_dim", "head_dims"]),
        ({"kv_heads": 3, "heads": [4]}, ["kv_heads", "3", "1, 2, 4"]),
        ({"attention": "top-k", "top_k": 5}, ["top_k", "5", "4"]),
        ({"window": 5}, ["window", "5", "4"]),
        ({"causal": True}, ["causal", "2 layers"]),
        ({"attention": "lineer"}, ["attention", '"linear"']),
        ({"top_k": 2}, ["top_k", "2"]),
        ({"attention": "top-k"}, ["top_k"]),
        ({"inner_hidden": 8}, ["inner_hidden", "8"]),
    ],
    ids=str,
)
def test_ways_of_reading_that_cannot_be_are_refused(options, words):
    with refused(*words):
        hc.measure("max-plus-min", lengths=[4], **options)
