"""A user's function is known by its code, by what the code reads, and by the program that it is at each length."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount import ClassTokenSpec, FunctionTask, Retrieval, TrainSpec, run_sweep, sweep
from headcount.engine import Sweep
from headcount.store import Store
from headcount.tasks.find import load_python_file
from headcount.tasks.identity import Identity, code_of

from ..helpers import fabricated
from ..helpers.refusals import refused

KINDS = """
import dataclasses, functools, os, sys
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import identity_helper

NUMBER = 2.0
ARRAY = np.full(3, 2.0)
WORDS = {"alpha", "beta", "2.0"}

def reads_global(tokens):
    '''Its docstring.'''
    return NUMBER * jnp.max(tokens)

def reads_array(tokens):
    return jnp.max(tokens) * ARRAY[1]

def through_another(tokens):
    return reads_global(tokens) + 1

def inside(tokens):
    return jax.vmap(lambda token: jnp.where(token > 2.0, token, 0.0))(tokens)

def closure(number):
    return lambda tokens: number * jnp.max(tokens)

def default(tokens, number=2.0):
    return number * jnp.max(tokens)

def imports(tokens):
    from identity_helper import scaled
    return scaled(tokens)

def recursive(tokens, depth):
    return jnp.max(tokens) if depth == 0 else recursive(NUMBER * tokens, depth - 1)

def decorated(function):
    @functools.wraps(function)
    def wrapper(tokens):
        return function(tokens) + 1
    return wrapper

@jax.custom_jvp
def own_derivative(x):
    return jnp.maximum(x, NUMBER)

@own_derivative.defjvp
def _(primals, tangents):
    return own_derivative(*primals), tangents[0]

class Stateful:
    def __init__(self, number):
        self.number = number
    def __call__(self, tokens):
        return self.number * jnp.max(tokens)
    def method(self, tokens):
        return self(tokens)

class Attribute:
    number = 2.0
    def __call__(self, tokens):
        return self.number * jnp.max(tokens)

@dataclasses.dataclass(frozen=True)
class Data:
    number: float
    def __call__(self, tokens):
        return self.number * jnp.max(tokens)

class Module(eqx.Module):
    weights: jax.Array
    power: float = eqx.field(static=True, default=1.0)
    def __call__(self, tokens):
        return jnp.max(tokens @ self.weights) ** self.power

pair = (lambda tokens: jnp.max(tokens), lambda tokens: 2.0 * jnp.min(tokens))
KINDS = {
    "global": reads_global, "array": reads_array, "through another": through_another, "inside": inside,
    "closure": closure(2.0), "default": default, "lambda": pair[1], "set": lambda tokens: len(WORDS) * jnp.max(tokens),
    "import inside": imports, "helper": lambda tokens: identity_helper.scaled(tokens), "from helper": imports,
    "recursive": functools.partial(recursive, depth=2), "partial": functools.partial(default, number=2.0),
    "jitted": jax.jit(reads_global), "vmapped": jax.vmap(reads_global), "decorated": decorated(reads_global),
    "filter_jit": eqx.filter_jit(reads_global), "derivative": jax.vmap(own_derivative),
    "cached": functools.cache(reads_global), "state": Stateful(2.0), "method": Stateful(2.0).method,
    "attribute": Attribute(), "data": Data(2.0), "module": Module(jnp.full(2, 2.0)),
    "static": Module(jnp.ones(2), 2.0), "constants": lambda tokens: jnp.max(tokens) if "a" in {"a", 2.0} else 4,
}
"""
HELPER = """
import jax.numpy as jnp
NUMBER = 2.0
def scaled(tokens):
    return NUMBER * jnp.max(tokens)
"""
PRINT = """
import sys
from pathlib import Path
from headcount.tasks.find import load_python_file
from headcount.tasks.identity import code_of
print({name: code_of(value) for name, value in load_python_file(Path(sys.argv[1])).KINDS.items()})
"""


def kinds(folder: Path, change=lambda text: text, name: str = "mine") -> Path:
    """A user's file with functions of many kinds, and the helper that it imports."""
    folder.mkdir(exist_ok=True)
    (folder / "identity_helper.py").write_text(change(HELPER))
    path = folder / f"{name}.py"
    path.write_text(change(KINDS))
    return path


def codes(path: Path) -> dict[str, str]:
    sys.modules.pop("identity_helper", None)
    try:
        return {name: code_of(value) for name, value in load_python_file(path).KINDS.items()}
    finally:
        sys.path[:] = [folder for folder in sys.path if folder != str(path.parent)]


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    path = kinds(tmp_path_factory.mktemp("kinds"))
    return path, codes(path)


def test_everything_that_a_function_reads_counts(here, tmp_path):
    other = codes(kinds(tmp_path, lambda text: text.replace("2.0", "2.5")))
    assert [name for name, code in here[1].items() if other[name] == code] == []


def test_names_lines_and_comments_do_not_count(here, tmp_path):
    def reformatted(text: str) -> str:
        text = text.replace("\n", "\n# A comment.\n", 1).replace("Its docstring.", "Another one.")
        return text.replace("def reads_global(tokens):", "def reads_global(  # a comment\n    tokens: jax.Array,\n):")

    assert codes(kinds(tmp_path, reformatted, "other")) == here[1]


def test_another_process_finds_the_same_identities(here):
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PRINT, str(here[0])]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == str(here[1])


def test_without_source_the_bytecode_counts(tmp_path):
    def compiled(text: str):
        scope = {"jnp": jnp}
        exec(compile(text, str(tmp_path / "gone.py"), "exec"), scope)
        return code_of(scope["f"])

    one = "def f(tokens):\n    return jnp.max(tokens) if 1.5 in {1.5, 'a', 'b'} else 0.0"
    assert compiled(one) == compiled("\n\n" + one) != compiled(one.replace("1.5 in", "2.5 in"))


def test_an_edited_file_does_not_change_what_runs(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("f = lambda tokens: tokens.max()\ng = lambda tokens: tokens.max()\n")
    module = load_python_file(path)
    before = code_of(module.f)
    path.write_text("f = lambda tokens: tokens.min()\ng = lambda tokens: tokens.min()\n")
    assert code_of(module.f) == before
    path.write_text("f = lambda tokens: tokens.min()\n")
    assert code_of(load_python_file(path).f) != before


def largest(tokens):
    return jnp.max(tokens[:, 0])


def other_above_8(tokens):
    return jnp.max(tokens[:, 0]) if tokens.shape[0] <= 8 else jnp.min(tokens[:, 0])


def other_beyond(tokens):
    return jnp.where(jnp.max(tokens[:, 0]) > 4.5, 0.0, jnp.max(tokens[:, 0]))


def outer_below(z):
    return jnp.sum(jnp.where(z < -2.5, 100.0, z))


def function(of, length=8, **changes):
    return FunctionTask(function=of, length=length, dim=2, **changes)


def retrieval(outer):
    return Retrieval([lambda token: token[0]], outer, length=8, dim=2)


def asked(task, *lengths: int) -> Sweep:
    """One cell at each length."""
    train = TrainSpec(steps=4, train_examples=50, validation_examples=20)
    axes = {"heads": [1], "length": lengths}
    return sweep(task, axes=axes, model=lambda heads: ClassTokenSpec(heads=heads), train=train)


def keys(task, *lengths: int) -> dict[int, str]:
    """The key of one cell at each length."""
    return {cell.length: cell.key for cell in asked(task, *lengths).cells}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (function(largest), function(other_above_8)),
        (function(largest), function(other_beyond)),
        (retrieval(jnp.sum), retrieval(outer_below)),
        (retrieval(jnp.sum), retrieval(jnp.max)),
    ],
    ids=["above length 8", "beyond 4.5", "outer map below -2.5", "outer map of another name"],
)
def test_functions_that_agree_almost_everywhere_share_no_models(one, other):
    assert not set(keys(one, 4, 16).values()) & set(keys(other, 4, 16).values())


def test_what_no_code_shows_counts_at_the_lengths_where_it_matters(monkeypatch):
    def hidden(tokens):
        power = float(os.environ.get("HEADCOUNT_TEST_POWER", "1")) if tokens.shape[0] > 8 else 1.0
        return jnp.max(tokens) * power

    before = keys(function(hidden), 4, 16)
    monkeypatch.setenv("HEADCOUNT_TEST_POWER", "2")
    after = keys(function(hidden), 4, 16)
    assert before[4] == after[4]
    assert before[16] != after[16]


def test_ones_own_version_is_all_that_counts():
    one, other = (function(of, options={"version": 1}) for of in (largest, other_beyond))
    assert keys(one, 4) == keys(other, 4) != keys(function(largest, options={"version": 2}), 4)


def test_a_function_that_changes_what_it_reads_needs_a_version():
    calls = []

    def counted(tokens):
        calls.append(1)
        return len(calls) * jnp.max(tokens)

    with refused("function", "version"):
        keys(function(counted), 4)
    assert keys(function(counted, options={"version": 1}), 4)


@pytest.mark.parametrize("version", [False, True])
def test_a_loop_is_traced_as_it_is_now(version):
    """JAX keeps what it has traced of a loop's body, whatever the body reads."""
    factors = [2.0]

    def times(_, number):
        return number * factors[0]

    def targets(version: int):
        options = {"options": {"version": version}} if version else {}
        task = function(lambda tokens: jax.lax.fori_loop(0, 3, times, tokens[0, 0]), 4, **options)
        task.probe()
        return np.asarray(task.examples(4, 4).train.targets)

    before = targets(int(version))
    factors[0] = 4.0
    assert np.array_equal(targets(2 * version), 8 * before)


@pytest.mark.parametrize("wrapped", [lambda function: function, jax.jit], ids=["itself", "jitted"])
def test_a_function_that_is_random_while_it_is_traced_needs_a_version(wrapped):
    task = function(wrapped(lambda tokens: np.random.rand() * jnp.max(tokens)))
    with refused("function", "random", "version"):
        keys(task, 4)


def test_python_that_cannot_be_seen_needs_a_version():
    lock = threading.Lock()

    def locked(values):
        with lock:
            return np.float32(np.max(values))

    def called_back(tokens):
        return jax.pure_callback(locked, jax.ShapeDtypeStruct((), np.float32), tokens)

    assert Identity(called_back).unknown == ["_thread.lock"]
    with refused("_thread.lock", "version"):
        keys(function(called_back), 4)


def test_results_of_another_function_of_the_name_are_kept_and_said(tmp_path, caplog):
    one, other = (asked(function(of, name="twice"), 4) for of in (largest, other_beyond))
    root = fabricated.write(tmp_path, [*fabricated.finished(one), *fabricated.finished(other)], {"measure": one})
    with Store.open_for_writing(root) as store:
        summary = run_sweep(other, store)  # of which nothing is left to train
        assert [each.name for each in store.experiments()] == ["twice", "twice-2"]
    assert (summary.experiment.name, summary.already_done) == ("twice-2", 1)
    assert '"twice-2"' in caplog.text
