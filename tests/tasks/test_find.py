"""What a person types names one task, or is answered in a sentence that says what would."""

import sys

import jax.random as jr
import numpy as np
import pytest

import headcount
from headcount.tasks import ArrayTask, quadratic_basins
from headcount.tasks.find import find_task

from ..data.written import write_text_table
from ..helpers.commands import headcount as headcount_command
from ..helpers.refusals import refused
from ..helpers.tolerance import assert_trees_equal

X = np.random.default_rng(0).normal(size=(120, 6, 2)).astype(np.float32)
Y = X[:, :, 0].max(axis=1)

OWN = """
import jax.numpy as jnp
import headcount as hc

def furthest(*, length=8, power=2):
    return hc.FunctionTask(function=lambda x: jnp.max(jnp.abs(x)) ** power, length=length, dim=2, name="furthest")

ready = furthest(length=4)
number = 3
not_a_task = lambda: 3

def fails():
    raise ValueError("the data are on strike")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's Python file, which also is a module; what is imported in a test is forgotten after it."""
    before = dict(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "own_tasks.py"
    path.write_text(OWN)
    yield path
    for name in [name for name, module in sys.modules.items() if before.get(name) is not module]:
        sys.modules.pop(name)
    sys.modules.update(before)


def test_a_preset_with_its_options():
    found = find_task("quadratic-basins", length=8, intrinsic_dim=2)
    wanted = quadratic_basins(length=8, intrinsic_dim=2)
    assert found.spec() == wanted.spec()
    assert found.length == 8
    assert_trees_equal(found.target(found.sample(jr.key(0))), wanted.target(wanted.sample(jr.key(0))))


def test_an_npz_with_its_options(tmp_path):
    np.savez(tmp_path / "mine.npz", x=X, y=Y)
    found = find_task(tmp_path / "mine.npz", shorter="leading", validation_fraction=0.3)
    assert found.spec() == ArrayTask(X, Y, name="mine", shorter="leading", validation_fraction=0.3).spec()


def test_an_npz_with_labels_of_a_split_of_its_own(tmp_path):
    labels = np.where(np.median(Y) < Y, "high", "low")
    np.savez(tmp_path / "mine.npz", x=X[:90], y=labels[:90], x_validation=X[90:], y_validation=labels[90:])
    found = find_task(str(tmp_path / "mine.npz"), labels=True)
    assert found.spec() == ArrayTask(X, labels, name="mine", labels=True, held_out=30).spec()
    assert found.classes == ("high", "low")


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["text", "path"])
def test_an_npy_with_targets(tmp_path, kind):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    found = find_task(str(tmp_path / "x.npy"), targets=kind(tmp_path / "y.npy"))
    assert found.spec() == ArrayTask(X, Y, name="x").spec()


@pytest.mark.parametrize("name", ["mine.csv", "mine.csv.gz", "mine.tsv"])
def test_a_table_with_its_target(tmp_path, name):
    columns = {f"{feature}_{token}": X[:, token, place] for place, feature in enumerate("uv") for token in range(6)}
    write_text_table(tmp_path / name, columns | {"price": Y})
    found = find_task(tmp_path / name, targets="price")
    assert found.spec() == ArrayTask(X, Y, name="mine").spec()
    assert any("6 tokens of 2 numbers" in note for note in found.notes)


def test_a_table_of_one_token_per_row(tmp_path):
    lengths = 1 + np.arange(120) % 6
    rows = [(who, *X[who, token], Y[who]) for who in range(120) for token in range(lengths[who])]
    write_text_table(tmp_path / "mine.csv", dict(zip(("who", "u", "v", "y"), zip(*rows, strict=True), strict=True)))
    found = find_task(tmp_path / "mine.csv", sequence="who")
    ragged = [tokens[:length] for tokens, length in zip(X, lengths, strict=True)]
    assert found.spec() == ArrayTask(ragged, Y, name="mine").spec()


@pytest.mark.parametrize("where", ["file", "module"])
def test_python_holds_a_task_or_makes_one(own, where):
    start = str(own) if where == "file" else own.stem
    assert find_task(f"{start}:ready").length == 4
    made = find_task(f"{start}:furthest", length=16, power=3)
    assert (made.name, made.length) == ("furthest", 16)
    assert find_task(f"{start}:furthest").spec() != made.spec()


BESIDE = """
import headcount as hc
from beside_it import function
task = hc.FunctionTask(function=function, length=4, dim=2)
"""


def with_a_helper(folder, power: int) -> str:
    """A task in a file that imports another one next to it."""
    folder.mkdir()
    (folder / "mine.py").write_text(BESIDE)
    (folder / "beside_it.py").write_text(f"def function(tokens):\n    return tokens.sum() ** {power}\n")
    return f"{folder / 'mine.py'}:task"


def test_a_file_imports_what_is_next_to_it(own, tmp_path, monkeypatch):
    """Also for the installed program, whose path does not begin with the folder that it is run in."""
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    references = [with_a_helper(tmp_path / name, power) for name, power in (("one", 2), ("other", 3))]
    result = headcount_command("measure", references[0], "--heads", 1, "--lengths", 4, "--dry-run")
    assert result.code == 0, result.err
    # Helpers of one name do not stand in for each other.
    for reference, power in zip([*references, references[0]], (2, 3, 2), strict=True):
        assert find_task(reference).target(np.full((4, 2), 2.0)) == 16.0**power


def test_a_file_may_be_called_what_it_likes(own):
    namesake = own.with_name("headcount.py")
    namesake.write_text(OWN)
    assert find_task(f"{namesake}:ready").length == 4
    assert sys.modules["headcount"] is headcount


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("max-plus-mix", ['"max-plus-mix"', 'Did you mean "max-plus-min"?', "FILE.npz", "FILE.py:NAME"]),
        ("", ['""', "Known"]),
        ("zzz", ['"zzz"', "Known"]),
        ("none.npz", ["none.npz", "no file"]),
        ("none.py:task", ["none.py", "no file"]),
        ("no_such_module:task", ['"no_such_module"']),
        (":task", [":task"]),
        ("..above:task", ["..above"]),
    ],
)
def test_nothing_there(reference, words):
    with refused(*words):
        find_task(reference)


@pytest.mark.parametrize("given", [X, X.tolist(), None, 3])
def test_what_is_no_name(given):
    with refused(type(given).__name__, "ArrayTask(x, y)"):
        find_task(given)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("redy", ['"redy"', 'Did you mean "ready"?']),
        ("", ['no ""']),
        ("number", ["own_tasks.py:number", "got int"]),
        ("not_a_task", ["own_tasks.py:not_a_task", "got int"]),
        ("fails", ["own_tasks.py:fails", "the data are on strike"]),
    ],
)
def test_no_task_under_that_name(own, name, words):
    with refused(*words):
        find_task(f"{own}:{name}")


def test_options_that_do_not_fit(own, tmp_path):
    np.savez(tmp_path / "mine.npz", x=X, y=Y)
    with refused("own_tasks.py:furthest", "powr"):
        find_task(f"{own}:furthest", powr=3)
    with refused("own_tasks.py:ready", "no options", "length"):
        find_task(f"{own}:ready", length=8)
    with refused("mine.npz", '"dim"', "shorter"):
        find_task(str(tmp_path / "mine.npz"), dim=3)
    with refused("average", '"distributions"', 'Did you mean "distribution"?'):
        find_task("average", distributions="cube")


@pytest.mark.parametrize(
    ("text", "words"),
    [("def f(:\n", ["SyntaxError"]), ("import no_such_module\n", ["no_such_module"]), ("1 / 0\n", ["ZeroDivision"])],
)
@pytest.mark.parametrize("where", ["file", "module"])
def test_python_that_cannot_be_run(own, text, words, where):
    own.write_text(text)
    with refused("own_tasks", *words):
        find_task(f"{own if where == 'file' else own.stem}:task")
