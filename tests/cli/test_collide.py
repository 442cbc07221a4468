"""`headcount collide` as a person meets it, on a folder of models that were drawn and never trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import headcount as hc
from headcount.collide import chosen
from headcount.models import ClassTokenSpec, folded, from_arrays, textbook
from headcount.store import Cell, Outcome, Store, TrainSpec

from . import made_up
from .commands import a_sentence, contents, headcount, strict_json
from .tasks.laws import compile_quickly  # noqa: F401

TASK = hc.quadratic_basins(length=6, intrinsic_dim=3, dim=2)
TRAIN = TrainSpec(train_examples=64, validation_examples=20)
QUICK = ("--starts", 4, "--anchors", 2, "--steps", 40)


def cells(heads=(1, 2), lengths=(6,), seeds=(0, 1), layers=1, task=TASK):
    return [
        Cell(
            task=task.spec(),
            length=length,
            model=ClassTokenSpec(heads=count, head_dim=2, hidden=8, layers=layers),
            train=TRAIN,
            seed=seed,
        )
        for length in lengths
        for count in heads
        for seed in seeds
    ]


def folder_of(root, chosen, *, nan=False):
    weights = {}
    for cell in chosen:
        arrays = cell.model.init(cell.seed, length=cell.length, dim=2, outputs=1).to_arrays()
        weights[cell.key] = {name: np.full_like(array, np.nan) if nan else array for name, array in arrays.items()}
    with Store.open_for_writing(root) as store:
        store.commit(made_up.finished(chosen), weights)
    return root


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    root = folder_of(tmp_path_factory.mktemp("collide") / "models", cells())
    before = contents(root)
    return root, before, headcount("collide", root, *QUICK, "--json")


def test_the_floors_are_told_and_nothing_stored_is_changed(searched):
    root, before, result = searched
    assert result.code == 0, result.err
    assert before.items() <= contents(root).items()
    found = strict_json(result.out)
    assert [(model["heads"], model["seed"]) for model in found] == [(1, 0), (2, 0)]  # the best seed of each
    assert strict_json((root / "collisions" / "certificates.json").read_text()) == found
    names = {path.name for path in (root / "collisions").iterdir()}
    assert {
        "certificates.json",
        "floor-anywhere.svg",
        "floor-near-data.svg",
        f"pair-1-heads-{found[0]['key'][:6]}.svg",
    } <= names


def test_one_head_of_a_task_of_three_is_certified_to_err_whatever_its_readout(searched):
    """The law of every certificate, checked on the pair as written: what is seen agrees, the targets do not, and any
    readout errs by the floor."""
    root, _, result = searched
    with Store.open_for_reading(root) as store:
        for told in strict_json(result.out):
            (cell,) = [record.cell for record in store.records() if record.cell.key == told["key"]]
            model = from_arrays(cell.model, store.weights(cell.key))
            certificate = told["anywhere"]
            assert certificate["exact"]
            pair = np.array(certificate["pair"])
            assert 0 <= pair.min() <= pair.max() <= 1
            with jax.enable_x64(True):
                wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), model)
                seen = [np.asarray(folded.class_output(wide, jnp.asarray(tokens))) for tokens in pair]
                targets = [float(TASK.target(jnp.asarray(tokens))[0]) for tokens in pair]
                answers = [float(textbook.predict(wide, jnp.asarray(tokens))[0]) for tokens in pair]
            assert np.abs(seen[0] - seen[1]).max() < 1e-9
            assert abs(targets[0] - targets[1]) >= certificate["gap"] - 1e-9
            worst = max(abs(answer - target) for answer, target in zip(answers, targets, strict=True))
            assert worst >= certificate["floor"] - 1e-9
            assert certificate["floor"] > 1e-3


def test_the_first_sequence_near_data_is_one_that_was_drawn(searched):
    _, _, result = searched
    drawn = np.asarray(TASK.dataset(64, 2000, 0).validation_tokens[:2], float)
    for told in strict_json(result.out):
        certificate = told["near_data"]
        if certificate is not None:
            first = np.array(certificate["pair"][0])
            assert np.abs(drawn - first).max(axis=(1, 2)).min() < 1e-5


def test_a_person_reads_a_table(tmp_path, searched):
    root = folder_of(tmp_path / "models", cells(heads=(1,), lengths=(4, 6), seeds=(0,)))
    # Of the two lengths the one whose programs `searched` has compiled.
    told = headcount("collide", root, *QUICK, "--lengths", 6, "--out", tmp_path / "out")
    assert told.code == 0, told.err
    (found,) = strict_json((tmp_path / "out" / "certificates.json").read_text())
    assert (found["heads"], found["length"]) == (1, 6)
    assert "floor, anywhere" in told.out
    assert "any readout" in told.out
    assert (tmp_path / "out" / "floor-near-data.svg").exists()
    assert not (root / "collisions").exists()


def test_models_of_two_layers_are_searched_too(tmp_path):
    root = folder_of(tmp_path / "models", cells(heads=(1,), seeds=(0,), layers=2))
    (found,) = strict_json(headcount("collide", root, *QUICK, "--json").out)
    assert found["anywhere"]["gap"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--starts", 0], "starts must be a whole number of at least 1, got 0"),
        (["--radius", 0], "radius must be positive and finite, got 0.0"),
        (["--slope", -1], "slope must be positive"),
        (["--heads", 7], "there are heads [1], lengths [6]"),
        (["--heads", "x"], "--heads must look like"),
        (["--seeds", 0], "seeds must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_right_is_refused(tmp_path, arguments, words):
    root = folder_of(tmp_path, cells(heads=(1,), seeds=(0,)))
    a_sentence(headcount("collide", root, *arguments), 2, words)


def test_a_folder_without_finished_models_is_refused(tmp_path):
    root = made_up.write(tmp_path, made_up.lost(cells(), Outcome.DIVERGED))
    a_sentence(headcount("collide", root), 2, "no finished class-token model")


def test_a_folder_of_encoders_is_refused(tmp_path):
    root = made_up.write(tmp_path, made_up.finished(made_up.map_cells(heads=(1,), ranks=(1, 8))))
    before = contents(root)
    a_sentence(headcount("collide", root), 2, "encoders have no single output that could collide")
    assert contents(root) == before


def test_encoders_beside_class_token_models_are_left_out():
    own = cells()
    groups = chosen(made_up.finished([*made_up.map_cells(), *own]), seeds=2)
    assert [[record.cell for record in group] for group in groups] == [own[:2], own[2:]]


def test_weights_that_are_not_finite_are_told(tmp_path):
    root = folder_of(tmp_path, cells(heads=(1,), seeds=(0,)), nan=True)
    result = headcount("collide", root, *QUICK)
    assert result.code == 2
    assert "are the model's weights finite?" in result.err


def test_missing_weights_are_told(tmp_path):
    root = made_up.write(tmp_path, made_up.finished(cells(heads=(1,), seeds=(0,))))
    result = headcount("collide", root, *QUICK)
    assert result.code == 1
    assert "weights" in result.err


def test_stored_examples_have_no_target_elsewhere(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.standard_normal((120, 6, 2)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=x.max(axis=1).sum(axis=1))
    task = hc.load_arrays(tmp_path / "data.npz")
    root = folder_of(tmp_path / "models", cells(heads=(1,), seeds=(0,), task=task))
    result = headcount("collide", root, *QUICK, "--task", tmp_path / "data.npz")
    assert result.code == 2
    assert "a collision needs a task whose target can be computed anywhere" in result.err
