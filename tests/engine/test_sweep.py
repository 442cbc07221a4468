"""From axes to cells: what a sweep holds, where each cell lies, and what is refused."""

import itertools
import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.engine import joined, spec_of, sweep
from headcount.errors import InputError
from headcount.store import Store, TrainSpec
from headcount.tasks import ArrayTask, NearestNeighbour, max_plus_min, sum_of_maxima

from ..helpers.refusals import refused
from ..helpers.sweeps import FARTHEST, TASK, TRAIN, Numbers, class_token, encoder, labelled_model, swept

NEAREST = NearestNeighbour(length=5, dim=3)
RNG = np.random.default_rng(0)
STORED = ArrayTask(RNG.normal(size=(100, 6, 2)), RNG.normal(size=100), name="mine")
ALONG = {
    "heads": ("model", (1, 3)),
    "hidden": ("model", (4, 8)),
    "layers": ("model", (1, 2)),
    "rank": ("model", (1, 2)),
    "beta": ("model", (1.0, 2.5)),
    "positions": ("model", ("none", "additive")),
    "length": ("", (4, 6)),
    "seed": ("", (0, 7)),
    "data_seed": ("train", (0, 7)),
    "learning_rate": ("train", (0.1, 0.01)),
    "train_examples": ("train", (0, 24)),
    "weight_decay": ("train", (0.0, 0.1)),
}


def flat(content: dict, before: str = "") -> dict:
    """The entries of nested JSON by their path."""
    parts = {f"{before}{name}": value for name, value in content.items()}
    inner = [flat(value, f"{name}.") for name, value in parts.items() if isinstance(value, dict)]
    return {name: value for name, value in parts.items() if not isinstance(value, dict)} | {
        name: value for part in inner for name, value in part.items()
    }


def one_axis(axis: str, values, model=class_token):
    return sweep(TASK, axes={axis: values}, model=model, train=TRAIN)


@pytest.mark.parametrize("axis", ALONG)
def test_cells_along_an_axis_differ_in_that_field_alone(axis):
    part, values = ALONG[axis]
    made = one_axis(axis, values)
    contents = [flat(json.loads(cell.content)) for cell in made.cells]
    differing = {name for name in contents[0] if contents[0][name] != contents[1][name]}
    assert differing == {f"{part}.{axis}" if part else axis}
    assert [made.experiment.coordinates(cell.key)[axis] for cell in made.cells] == list(values)
    assert [content[differing.copy().pop()] for content in contents] == list(values)


def test_an_axis_may_be_any_argument_of_the_model():
    widths = {"narrow": 4, "wide": 16}
    made = one_axis("style", ["wide", "narrow"], lambda style: class_token(hidden=widths[style]))
    assert [spec_of(cell).hidden for cell in made.cells] == [16, 4]
    assert [made.experiment.coordinates(cell.key)["style"] for cell in made.cells] == ["wide", "narrow"]
    assert "hidden" not in made.experiment.settings["model"]
    assert made.experiment.settings["model"]["head_dim"] == 2


some_axes = st.lists(st.sampled_from(sorted(ALONG)), min_size=1, max_size=4, unique=True)


@given(some_axes)
def test_every_combination_is_one_cell_at_its_own_place(names):
    made = sweep(TASK, axes={name: ALONG[name][1] for name in names}, model=class_token, train=TRAIN)
    experiment = made.experiment
    assert len(made.cells) == len({cell.key for cell in made.cells}) == 2 ** len(names)
    places = {tuple(experiment.coordinates(cell.key)[name] for name in names) for cell in made.cells}
    assert places == set(itertools.product(*(ALONG[name][1] for name in names)))
    for cell in made.cells:
        content = flat(json.loads(cell.content))
        for axis, value in experiment.coordinates(cell.key).items():
            part = ALONG[axis][0]
            assert content[f"{part}.{axis}" if part else axis] == value
    shared = flat({"model": experiment.settings["model"], "train": experiment.settings["train"]})
    for cell in made.cells:
        assert shared.items() <= flat(json.loads(cell.content)).items()
    assert experiment.settings["task"] == TASK.spec()


@given(some_axes, st.data())
def test_fewer_values_are_the_same_experiment(names, data):
    """So that it can be extended along its axes, one run after another."""
    axes = {name: ALONG[name][1] for name in names}
    part = {name: data.draw(st.sampled_from([values, values[:1], values[1:]])) for name, values in axes.items()}
    whole, some = (sweep(TASK, axes=each, model=class_token, train=TRAIN) for each in (axes, part))
    assert some.experiment.identity == whole.experiment.identity
    assert some.experiment.places.items() <= whole.experiment.places.items()
    kept = whole.part(**part)
    assert {cell.key for cell in kept.cells} == {cell.key for cell in some.cells} == kept.experiment.places.keys()
    assert kept.experiment.places == some.experiment.places


def test_the_cells_that_are_kept_are_the_same_experiment():
    whole = sweep(TASK, axes={"heads": [1, 2], "seed": [0, 1, 2]}, model=class_token, train=TRAIN)
    kept = whole.where(lambda cell: cell.model["heads"] == 2 and cell.seed > 0)
    assert [(cell.model["heads"], cell.seed) for cell in kept.cells] == [(2, 1), (2, 2)]
    assert kept.experiment.places.keys() == {cell.key for cell in kept.cells}
    assert kept.experiment.identity == whole.experiment.identity


def test_one_value_is_the_same_experiment_as_several_where_other_fields_follow_it():
    task = Numbers("classes")
    for heads in ([1], [2]):
        one, several = (swept(task, labelled_model(task), heads=tried, length=[4]) for tried in (heads, [1, 2]))
        assert one.experiment.identity == several.experiment.identity


def test_an_axis_that_the_model_does_not_take_is_refused():
    with refused("depth", "TypeError"):
        swept(depth=[1, 2])


def test_one_cell_at_two_places_cannot_be_joined():
    parts = [sweep(TASK, axes={"heads": [1]}, model=class_token, train=TRAIN, at={"part": part}) for part in "ab"]
    with pytest.raises(AssertionError):
        joined(parts)


def test_lengths_come_slowest_and_seeds_fastest():
    axes = {"heads": [2, 1], "rank": [1, 3, 2], "length": [4, 3], "learning_rate": [0.1, 0.01], "seed": [5, 3]}
    made = sweep(FARTHEST, axes=axes, model=encoder, train=TRAIN)
    assert made.experiment.axes == ("heads", "rank", "length", "learning_rate", "seed")
    assert [made.experiment.places[cell.key] for cell in made.cells] == [
        (h, r, t, rate, s) for t in (4, 3) for h in (2, 1) for r in (1, 3, 2) for rate in (0.1, 0.01) for s in (5, 3)
    ]


def test_what_is_not_said_is_the_task_s_length_and_one_seed():
    (cell,) = one_axis("heads", [1]).cells
    assert (cell.length, cell.seed, cell.train) == (4, 0, TRAIN)


def test_values_may_be_numpy_s():
    made = one_axis("learning_rate", list(np.array([0.5, 0.25])))
    places = list(made.experiment.places.values())
    assert [(place[-2], type(place[-2])) for place in places] == [(0.5, float), (0.25, float)]


# Several sweeps as one.


def layouts(*names: str, **axes):
    return [
        sweep(task, axes={"heads": [1, 2]} | axes, model=labelled_model(task), train=TRAIN, at={"layout": task.layout})
        for task in map(Numbers, names)
    ]


def test_joined_sweeps_are_one_experiment_with_one_more_axis():
    parts = layouts("candidates", "pairs")
    whole = joined(parts)
    assert whole.experiment.axes == ("heads", "layout", "length", "seed")
    assert whole.experiment.values("layout") == ("candidates", "pairs")
    assert [cell.key for cell in whole.cells] == [cell.key for part in parts for cell in part.cells]
    for cell in whole.cells:
        assert whole.experiment.coordinates(cell.key)["layout"] == cell.task["layout"]
    assert [task.layout for task in whole.tasks] == ["candidates", "pairs"]
    assert set(whole.by_key) == {key for part in parts for key in part.by_key}
    assert "layout" not in whole.experiment.settings["task"]
    assert whole.experiment.settings["task"]["task"] == "numbers"
    assert {cell.task["layout"] for cell in whole.part(layout=["pairs"]).cells} == {"pairs"}
    assert joined(parts[:1]).cells == parts[0].cells


def test_sweeps_over_other_axes_cannot_be_joined():
    with pytest.raises(AssertionError):
        joined([*layouts("candidates"), *layouts("pairs", learning_rate=[0.1, 0.2])])


@pytest.mark.parametrize(
    "other", [sum_of_maxima(length=4, intrinsic_dim=2), max_plus_min(length=4, windows=[(0.0, 0.5), (0.5, 1.0)])]
)
def test_two_tasks_never_share_an_experiment(tmp_path, other):
    with Store.open_for_writing(tmp_path) as store:
        for task in (TASK, other):
            store.begin(sweep(task, axes={"heads": [1, 2]}, model=class_token, train=TRAIN, name="mine").experiment)
        one, two = store.experiments()
    assert (one.name, two.name) == ("mine", "mine-2")
    assert not one.places.keys() & two.places.keys()


def test_models_that_differ_in_what_follows_the_heads_never_share_an_experiment(tmp_path):
    """`hidden` is no shared setting, so only the cells tell the two apart."""
    with Store.open_for_writing(tmp_path) as store:
        for factor in (4, 8):
            made = one_axis("heads", [1, 2], lambda heads, factor=factor: class_token(heads, hidden=factor * heads))
            store.begin(made.experiment)
        for experiment in store.experiments():
            assert len(set(experiment.places.values())) == len(experiment.places) == 2


# What is refused.


@pytest.mark.parametrize("axis", ["heads", "length", "seed", "learning_rate", "hidden"])
@pytest.mark.parametrize("values", [[1, 2, 1], []], ids=["repeated", "none"])
def test_repeated_and_missing_values_are_refused(axis, values):
    with refused(axis, str(values)) as caught:
        one_axis(axis, values)
    assert (caught.value.what, caught.value.given) == (axis, values)


@pytest.mark.parametrize(
    ("axis", "value"),
    [("heads", 0), ("length", 0), ("learning_rate", -0.1), ("seed", -1), ("rank", 0), ("train_examples", -1)],
)
def test_a_value_that_cannot_be_trained_is_refused_before_training(axis, value):
    with refused(axis, str(value)) as caught:
        one_axis(axis, [value])
    assert (caught.value.what, caught.value.given) == (axis, value)


def test_an_axis_that_changes_nothing_is_refused():
    with refused("4 combinations", "2 different", "style"):
        sweep(TASK, axes={"heads": [1, 2], "style": ["a", "b"]}, model=lambda h, style: class_token(h), train=TRAIN)


def test_a_rank_wider_than_what_is_projected_is_refused():
    with refused("rank", "3", "4"):
        sweep(FARTHEST, axes={"heads": [1], "rank": [1, 4]}, model=encoder, train=TRAIN)


def test_a_length_the_task_cannot_have_is_refused():
    with refused("4"):
        sweep(STORED, axes={"heads": [1], "length": [6, 4]}, model=class_token, train=TRAIN)
    with refused("5"):
        windows = max_plus_min(windows=[(0.0, 0.26), (0.26, 1.0)])
        sweep(windows, axes={"heads": [1], "length": [16, 5]}, model=class_token, train=TRAIN)


@pytest.mark.parametrize("task", [STORED, Numbers()], ids=["arrays", "labelled"])
def test_stored_examples_are_no_stream(task):
    model = class_token if task is STORED else labelled_model(task)
    with refused(task.name, "train_examples", "0"):
        sweep(task, axes={"heads": [1], "train_examples": [50, 0]}, model=model, train=TRAIN)


@pytest.mark.parametrize(
    ("task", "model", "takes", "gives"),
    [
        (FARTHEST, class_token, "tokens", "sequence"),
        (NEAREST, class_token, "query", "sequence"),
        (NEAREST, encoder, "query", "tokens"),
        (TASK, encoder, "sequence", "tokens"),
        (Numbers("pairs"), labelled_model(Numbers("candidates")), "query", "tokens"),
    ],
)
def test_a_model_that_answers_elsewhere_is_refused(task, model, takes, gives):
    with refused(task.name, f'"{takes}"', f'"{gives}"'):
        sweep(task, axes={"heads": [1]}, model=model, train=TRAIN)


def test_an_encoder_may_answer_for_the_sequence():
    (cell,) = one_axis("heads", [1], lambda heads: encoder(heads, answered_at="sequence")).cells
    assert spec_of(cell).answered_at == "sequence"


def test_a_model_that_standardises_cannot_read_data_with_labels():
    with refused("numbers", "class-token"):
        sweep(Numbers(), axes={"heads": [1]}, model=class_token, train=TRAIN)


def test_half_precision_is_for_models_that_have_it():
    half = TrainSpec(**(asdict(TRAIN) | {"precision": "bfloat16"}))
    with refused("class-token", "bfloat16"):
        swept(train=half)
    with pytest.raises(InputError, match="bfloat16"):
        swept(precision=["float32", "bfloat16"])
    made = swept(NEAREST, lambda heads: encoder(heads, answered_at="query"), half, length=[5])
    assert {cell.train.precision for cell in made.cells} == {"bfloat16"}
