"""`headcount collide` on a folder of models that were drawn and never trained."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.engine import sweep
from headcount.models import ClassTokenSpec, folded, from_arrays, spec_from_dict
from headcount.store import Outcome, Store, TrainSpec
from headcount.tasks.find import find_task
from headcount.theory import domain_of
from headcount.theory.collisions.stored import SearchOptions, _drawn_sequences, chosen, left_out

from ..helpers import fabricated, textbook
from ..helpers.commands import a_sentence, contents, headcount, strict_json
from ..helpers.compiling import compile_quickly  # noqa: F401

TASK = find_task("quadratic-basins", intrinsic_dim=3, dim=2)
TRAIN = TrainSpec(train_examples=64, validation_examples=20)
QUICK = ("--starts", 4, "--anchors", 2, "--steps", 40)


def swept(heads=(1, 2), lengths=(6,), seeds=(0, 1), layers=1, task=TASK):
    return sweep(
        task,
        axes={"heads": heads, "length": lengths, "seed": seeds},
        model=lambda count: ClassTokenSpec(heads=count, head_dim=2, hidden=8, layers=layers),
        train=TRAIN,
    )


def folder_of(root, made, *, nan=False):
    """The models as they are drawn, with errors that grow with the seed."""
    weights = {}
    for cell in made.cells:
        arrays = spec_from_dict(cell.model).init(cell.seed, length=cell.length, dim=2, outputs=1).to_arrays()
        weights[cell.key] = {name: np.full_like(array, np.nan) if nan else array for name, array in arrays.items()}
    with Store.open_for_writing(root) as store:
        store.begin(made.experiment, "headcount measure")
        store.commit(fabricated.finished(made), weights)
    return root


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("collide") / "models", swept(lengths=(4, 6)))


@pytest.fixture(scope="module")
def searched(models):
    root, before = models, contents(models)
    return root, before, headcount("collide", root, *QUICK, "--heads", 1, "--lengths", 6, "--json")


@pytest.mark.slow
def test_the_floors_are_told_and_nothing_stored_is_changed(searched):
    root, before, result = searched
    assert result.code == 0, result.err
    assert before.items() <= contents(root).items()
    floors = strict_json(result.out)
    assert [(model["heads"], model["length"], model["seed"]) for model in floors] == [(1, 6, 0)]  # the best seed
    assert strict_json((root / "collisions" / "certificates.json").read_text()) == floors
    pair = f"pair-1-heads-{floors[0]['key'][:6]}.svg"
    names = {path.name for path in (root / "collisions").iterdir()}
    assert {"certificates.json", "floor-anywhere.svg", "floor-near-data.svg", pair} <= names


@pytest.mark.slow
def test_one_head_of_a_task_of_three_is_certified_to_err_whatever_its_readout(searched):
    """The law of every certificate, checked on the pair as written: what is seen agrees, the targets do not, and any
    readout errs by the floor."""
    root, _, result = searched
    with Store.open_for_reading(root) as store:
        for floors in strict_json(result.out):
            (cell,) = [record.cell for record in store.records() if record.cell.key == floors["key"]]
            model = from_arrays(spec_from_dict(cell.model), store.weights(cell.key))
            certificate = floors["anywhere"]
            assert certificate["exact"]
            pair = np.array(certificate["pair"])
            assert 0 <= pair.min() <= pair.max() <= 1
            with jax.enable_x64(True):
                wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), model)
                seen = [np.asarray(folded.class_output(wide, jnp.asarray(tokens))) for tokens in pair]
                targets = [float(TASK.at(6).target(jnp.asarray(tokens))[0]) for tokens in pair]
                answers = [float(textbook.predict(wide, jnp.asarray(tokens))[0]) for tokens in pair]
            assert np.abs(seen[0] - seen[1]).max() < 1e-9
            assert abs(targets[0] - targets[1]) >= certificate["gap"] - 1e-9
            worst = max(abs(answer - target) for answer, target in zip(answers, targets, strict=True))
            assert worst >= certificate["floor"] - 1e-9
            assert certificate["floor"] > 1e-3


@pytest.mark.slow
def test_the_first_sequence_near_data_is_one_that_was_drawn(searched):
    _, _, result = searched
    drawn = np.asarray(TASK.at(6).examples(64, 2000, 0).validation.content[:2], float)
    for floors in strict_json(result.out):
        if floors["near_data"] is not None:
            first = np.array(floors["near_data"]["pair"][0])
            assert np.abs(drawn - first).max(axis=(1, 2)).min() < 1e-5


@pytest.mark.slow
def test_a_person_reads_a_table(tmp_path, searched):
    root, *_ = searched
    before = contents(root)
    result = headcount("collide", root, *QUICK, "--lengths", 6, "--heads", 1, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    (floors,) = strict_json((tmp_path / "out" / "certificates.json").read_text())
    assert (floors["heads"], floors["length"]) == (1, 6)
    assert "floor, anywhere" in result.out
    assert "any readout" in result.out
    assert contents(root) == before


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2])
def test_every_head_count_and_depth_is_searched(tmp_path, layers):
    root = folder_of(tmp_path / "models", swept(layers=layers))
    floors = strict_json(headcount("collide", root, *QUICK, "--json").out)
    assert [(model["heads"], model["seed"]) for model in floors] == [(1, 0), (2, 0)]
    assert all(model["anywhere"]["gap"] > 0 for model in floors)


@pytest.mark.slow
def test_models_with_a_norm_are_searched_and_told_apart_from_those_without(tmp_path):
    made = sweep(
        TASK,
        axes={"heads": (1,), "norm": ("none", "layer"), "length": (6,), "seed": (0,)},
        model=lambda heads, norm: ClassTokenSpec(heads=heads, head_dim=2, hidden=8, final_norm=norm == "layer"),
        train=TRAIN,
    )
    result = headcount("collide", folder_of(tmp_path / "models", made), *QUICK)
    assert result.code == 0, result.err
    assert "norm" in result.out.splitlines()[0]
    floors = strict_json((tmp_path / "models" / "collisions" / "certificates.json").read_text())
    assert sorted(model["final_norm"] for model in floors) == [False, True]
    assert all(model["anywhere"]["exact"] for model in floors)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--starts", 0), ("--starts", "0")),
        (("--radius", 0), ("--radius", "0.0")),
        (("--slope", -1), ("--slope", "-1.0")),
        (("--heads", 7), ("[1, 2]", "[4, 6]")),
        (("--heads", "x"), ("--heads", '"x"')),
        (("--seeds", 0), ("--seeds", "0")),
        (("--steps", 10**18), ("--steps", str(10**18), "limit")),
        (("--starts", 10**9, "--steps", 1), ("--starts", str(10**9))),
    ],
)
def test_what_cannot_be_right_is_refused(models, arguments, words):
    before = contents(models)
    a_sentence(headcount("collide", models, *arguments), 2, *words)
    assert contents(models) == before


def test_models_that_cannot_be_searched_are_refused(tmp_path):
    made = swept(heads=(1,))
    diverged = fabricated.write(tmp_path / "diverged", fabricated.lost(made.cells, Outcome.DIVERGED), {"": made})
    encoders = sweep(
        find_task("farthest-point", dim=2),
        axes={"heads": [1], "length": [4]},
        model=lambda heads: spec_from_dict({"kind": "encoder", "heads": heads, "rank": 2, "width": 2}),
        train=TRAIN,
    )
    folder = fabricated.write(tmp_path / "encoders", fabricated.finished(encoders), {"": encoders})
    for root in (diverged, folder):
        before = contents(root)
        a_sentence(headcount("collide", root), 2, "class-token")
        assert contents(root) == before
    groups = chosen(
        [encoders.experiment, made.experiment], fabricated.finished(made) + fabricated.finished(encoders), 2
    )
    assert [[record.cell for record in group] for group in groups] == [list(made.cells)]


def test_models_that_read_otherwise_are_left_out_before_any_work(tmp_path):
    made = sweep(
        TASK,
        axes={"heads": (2,), "kv_heads": (1, 2), "length": (6,), "seed": (0, 1)},
        model=lambda heads, kv_heads: ClassTokenSpec(heads=heads, kv_heads=kv_heads, head_dim=2, hidden=8),
        train=TRAIN,
    )
    records = fabricated.finished(made)
    ((record, _),) = chosen([made.experiment], records, 2)
    assert "kv_heads" not in record.cell.model
    assert [word in left_out(records) for word in ("2 models", "kv_heads", "heads with their own keys")] == [True] * 3
    shared = [each for each in records if "kv_heads" in each.cell.model]
    folder = fabricated.write(tmp_path / "shared", shared, {"": made})
    a_sentence(headcount("collide", folder), 2, "kv_heads", "own keys")


@pytest.mark.slow
def test_weights_that_are_missing_or_not_finite_are_told(tmp_path):
    made = swept(heads=(1,), seeds=(0,))
    missing = headcount("collide", fabricated.write(tmp_path / "none", fabricated.finished(made), {"": made}), *QUICK)
    broken = headcount("collide", folder_of(tmp_path / "nan", made, nan=True), *QUICK)
    for result, code, word in ((missing, 1, made.cells[0].key), (broken, 2, "finite")):
        assert (result.code, result.out) == (code, "")
        assert word in result.err.splitlines()[-1]


def test_stored_examples_have_no_target_elsewhere(tmp_path):
    x = np.random.default_rng(0).standard_normal((120, 6, 2)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=x.max(axis=1).sum(axis=1))
    task = find_task(str(tmp_path / "data.npz"))
    root = folder_of(tmp_path / "models", swept(heads=(1,), seeds=(0,), task=task))
    result = headcount("collide", root, *QUICK, "--task", tmp_path / "data.npz")
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[-1].startswith("headcount: ")


def test_models_of_a_stream_are_searched_near_the_examples_that_judged_them():
    (cell,) = swept(heads=(1,), seeds=(0,)).cells
    task, options = TASK.at(cell.length), SearchOptions(anchors=2)
    streamed = replace(cell, train=replace(TRAIN, train_examples=0))
    (near, spread), (near_streamed, spread_streamed) = (
        _drawn_sequences(task, each, domain_of(task, options.radius), options) for each in (cell, streamed)
    )
    np.testing.assert_array_equal(near_streamed, near)
    assert spread_streamed == spread > 0
