"""A user's function is known by the program that JAX traces it to: two different functions never share a key."""

import functools
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headcount import ClassTokenSpec, FunctionTask, Retrieval, TrainSpec, run_sweep, sweep
from headcount.engine import Sweep
from headcount.store import Store
from headcount.tasks.find import load_python_file
from headcount.tasks.identity import program_of

from ..helpers import fabricated
from ..helpers.refusals import refused

KINDS = """
import dataclasses, functools, os, sys
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import identity_helper

NUMBER = 2.0
ARRAY = np.full(3, 2.0)

def reads_global(tokens):
    '''Its docstring.'''
    return NUMBER * jnp.max(tokens)

def reads_array(tokens):
    return jnp.max(tokens) * ARRAY[1]

def through_another(tokens):
    return reads_global(tokens) + 1

def inside(tokens):
    return jax.vmap(lambda token: jnp.where(token > 2.0, token, 0.0))(tokens)

def in_a_loop(tokens):
    return jax.lax.fori_loop(0, 3, lambda _, number: number * NUMBER, tokens[0, 0])

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

@jax.custom_vjp
def own_gradient(x):
    return jnp.maximum(x, NUMBER)

own_gradient.defvjp(lambda x: (own_gradient(x), None), lambda _, gradient: (gradient,))

class Stateful:
    def __init__(self, number):
        self.number = number
    def __call__(self, tokens):
        return self.number * jnp.max(tokens)
    def method(self, tokens):
        return self(tokens)

class Slotted:
    __slots__ = ("number",)
    def __init__(self, number):
        self.number = number
    def __reduce__(self):  # copying it loses its state
        return "the only one"
    def __call__(self, tokens):
        return self.number * jnp.max(tokens)

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
    "loop": in_a_loop, "closure": closure(2.0), "default": default, "lambda": pair[1], "import inside": imports,
    "helper": lambda tokens: identity_helper.scaled(tokens), "recursive": functools.partial(recursive, depth=2),
    "partial": functools.partial(default, number=2.0), "Partial": jax.tree_util.Partial(default, number=2.0),
    "jitted": jax.jit(reads_global), "vmapped": jax.vmap(reads_global), "decorated": decorated(reads_global),
    "filter_jit": eqx.filter_jit(reads_global), "derivative": jax.vmap(own_derivative),
    "gradient": jax.vmap(own_gradient), "state": Stateful(2.0), "method": Stateful(2.0).method,
    "slots": Slotted(2.0), "attribute": Attribute(), "data": Data(2.0), "module": Module(jnp.full(2, 2.0)),
    "static": Module(jnp.ones(2), 2.0), "unnamed": lambda tokens: globals()["NUMBER"] * tokens.max(),
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
from headcount.tasks.identity import program_of
print({name: program_of(value, (3, 2)).digest for name, value in load_python_file(Path(sys.argv[1])).KINDS.items()})
"""


def kinds(folder: Path, change=lambda text: text, name: str = "mine") -> Path:
    """A user's file with functions of many kinds, and the helper that it imports."""
    folder.mkdir(exist_ok=True)
    (folder / "identity_helper.py").write_text(change(HELPER))
    path = folder / f"{name}.py"
    path.write_text(change(KINDS))
    return path


def programs(path: Path) -> dict[str, str]:
    sys.modules.pop("identity_helper", None)
    try:
        found = {name: program_of(value, (3, 2)) for name, value in load_python_file(path).KINDS.items()}
    finally:
        sys.path[:] = [folder for folder in sys.path if folder != str(path.parent)]
    assert {name: program.unseen for name, program in found.items() if program.unseen} == {}
    return {name: program.digest for name, program in found.items()}


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    path = kinds(tmp_path_factory.mktemp("kinds"))
    return path, programs(path)


def test_everything_that_a_function_reads_counts(here, tmp_path):
    other = programs(kinds(tmp_path, lambda text: text.replace("2.0", "2.5")))
    assert [name for name, digest in here[1].items() if other[name] == digest] == []


def test_names_lines_and_comments_do_not_count(here, tmp_path):
    def reformatted(text: str) -> str:
        text = text.replace("\n", "\n# A comment.\n", 1).replace("reads_global", "another_name")
        return text.replace("def another_name(tokens):", "def another_name(  # a comment\n    tokens: jax.Array,\n):")

    assert programs(kinds(tmp_path, reformatted, "other")) == here[1]


def test_another_process_finds_the_same_programs(here):
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PRINT, str(here[0])]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == str(here[1])


HOLDERS = {
    "closure": lambda number, inner: lambda x: number * inner(x),
    "array": lambda number, inner: lambda x: np.array([1, number])[1] * inner(x),
    "device array": lambda number, inner: lambda x: jnp.asarray([number])[0] * inner(x),
    "list": lambda number, inner: lambda x, held=({"numbers": [number]},): held[0]["numbers"][0] * inner(x),
    "partial": lambda number, inner: functools.partial(lambda held, x: held * inner(x), number),
    "jitted": lambda number, inner: jax.jit(lambda x: number * inner(x)),
    "checkpointed": lambda number, inner: jax.checkpoint(lambda x: number * inner(x)),
    "loop": lambda number, inner: lambda x: jax.lax.fori_loop(0, 2, lambda _, y: number * y, inner(x)),
    "condition": lambda number, inner: lambda x: jax.lax.cond(x[0] > 0, lambda: number * x, lambda: inner(x)),
    "scan": lambda number, inner: lambda x: jax.lax.scan(lambda y, _: (number * y, None), inner(x), length=2)[0],
    "mapped": lambda number, inner: lambda x: jax.vmap(lambda y: number * y)(inner(x)),
}
"""How a function may hold a constant; each calls the one inside."""
NUMBERS = st.one_of(st.integers(-3, 3), st.floats(-3, 3, width=32), st.sampled_from([0.0, -0.0, 1.0, 1e-45]))


@given(data=st.data(), holders=st.lists(st.sampled_from(sorted(HOLDERS)), min_size=1, max_size=3))
@example(data=None, holders=list(HOLDERS))
def test_one_other_constant_is_another_function(data, holders):
    constants = [1.5] * len(holders) if data is None else [data.draw(NUMBERS) for _ in holders]
    place = 0 if data is None else data.draw(st.integers(0, len(holders) - 1))
    bits = np.float32(constants[place]).tobytes()
    other = 2.5 if data is None else data.draw(NUMBERS.filter(lambda number: np.float32(number).tobytes() != bits))

    def digest(numbers: list[float]) -> str:
        function = lambda x: x  # noqa: E731 - what the others are made of
        for holder, number in zip(holders, numbers, strict=True):
            function = HOLDERS[holder](number, function)
        program = program_of(function, (3,))
        assert program.unseen == ()
        return program.digest

    changed = [*constants[:place], other, *constants[place + 1 :]]
    assert digest(constants) == digest(list(constants)) != digest(changed)


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
    assert one.spec() != other.spec()
    assert not set(keys(one, 4, 16).values()) & set(keys(other, 4, 16).values())


def test_a_difference_at_one_length_alone_counts_there():
    def other_at(length):
        return function(lambda tokens: jnp.max(tokens) if tokens.shape[0] != length else jnp.min(tokens))

    one, other = keys(other_at(0), 4, 23), keys(other_at(23), 4, 23)
    assert (one[4] == other[4], one[23] == other[23]) == (True, False)


def test_the_length_at_which_a_task_is_made_does_not_count():
    assert keys(function(largest, 8), 8, 12) == keys(function(largest, 12), 8, 12)


def test_a_function_of_one_length_alone_is_known_there():
    weights = np.arange(20.0).reshape(10, 2)
    one, other = (function(lambda tokens, w=w: jnp.sum(tokens * w), 10) for w in (weights, -weights))
    assert keys(one, 10) != keys(other, 10)


def test_ones_own_version_is_all_that_counts():
    one, other = (function(of, options={"version": 1}) for of in (largest, other_beyond))
    assert keys(one, 4) == keys(other, 4) != keys(function(largest, options={"version": 2}), 4)


def test_a_function_that_changes_what_it_reads_needs_a_version():
    calls = []

    def counted(tokens):
        calls.append(1)
        return len(calls) * jnp.max(tokens)

    with refused("function", "changes what it reads", "version"):
        keys(function(counted), 4)
    assert keys(function(counted, options={"version": 1}), 4)


class Cached:
    def __init__(self, scale):
        self.scale = scale

    @functools.cached_property
    def weights(self):
        return np.full(2, self.scale)

    def __call__(self, tokens):
        return jnp.max(tokens @ self.weights)


def test_a_cached_property_changes_nothing():
    one = Cached(1.0)
    assert keys(function(one), 4) == keys(function(one), 4) == keys(function(Cached(1.0)), 4)
    assert keys(function(one), 4) != keys(function(Cached(2.0)), 4)


@pytest.mark.parametrize("version", [False, True])
def test_a_loop_is_traced_as_it_is_now(version):
    """JAX keeps what it has traced of a loop's body, whatever the body reads."""
    factors = [2.0]

    def times(_, number):
        return number * factors[0]

    def targets(version: int):
        options = {"options": {"version": version}} if version else {}
        task = function(lambda tokens: jax.lax.fori_loop(0, 3, times, tokens[0, 0]), 4, **options)
        return task.probe(), np.asarray(task.examples(4, 4).train.targets)

    probe, before = targets(int(version))
    factors[0] = 4.0
    again, after = targets(2 * version)
    assert np.array_equal(after, 8 * before)
    assert (probe == again) == version


@pytest.mark.parametrize("wrapped", [lambda function: function, jax.jit], ids=["itself", "jitted"])
def test_a_function_that_is_random_while_it_is_traced_needs_a_version(wrapped):
    task = function(wrapped(lambda tokens: np.random.rand() * jnp.max(tokens)))
    with refused("function", "random", "version"):
        keys(task, 4)


def called_back(callback):
    return lambda tokens: callback(lambda x: np.float32(x.max()), jax.ShapeDtypeStruct((), np.float32), tokens)


UNSEEN = {
    "pure": called_back(jax.pure_callback),
    "io": called_back(jax.experimental.io_callback),
    "in a loop": lambda tokens: jax.lax.map(called_back(jax.pure_callback), tokens[None])[0],
    "jitted": jax.jit(called_back(jax.pure_callback)),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_calls_python_needs_a_version(name):
    task = function(UNSEEN[name])
    for ask in (task.probe, task.spec, lambda: keys(task, 4)):
        with refused("function", "callback", "version"):
            ask()
    assert keys(function(UNSEEN[name], options={"version": 1}), 4)


def test_what_prints_while_it_runs_is_traced():
    def printed(tokens):
        jax.debug.print("{}", tokens[0, 0])
        return jnp.max(tokens)

    assert function(printed).probe()


def test_a_state_on_the_device_needs_a_version():
    state = jax.new_ref(jnp.ones(()))
    with refused("function", "version"):
        function(lambda tokens: state[...] * jnp.max(tokens)).probe()


def test_threads_find_the_same_programs():
    found, functions = [], [lambda x, n=n: n * jnp.max(x) for n in range(4)]
    expected = [program_of(each, (4, 2)) for each in functions]
    start = threading.Barrier(4)

    def find():
        start.wait()
        found.append([program_of(each, (4, 2)) for each in functions])

    threads = [threading.Thread(target=find) for _ in range(4)]
    for step in (threading.Thread.start, threading.Thread.join):
        list(map(step, threads))
    assert list(itertools.chain(*found)) == 4 * expected


def test_results_of_another_function_of_the_name_are_kept_and_said(tmp_path, caplog):
    one, other = (asked(function(of, name="twice"), 4) for of in (largest, other_beyond))
    root = fabricated.write(tmp_path, [*fabricated.finished(one), *fabricated.finished(other)], {"measure": one})
    with Store.open_for_writing(root) as store:
        summary = run_sweep(other, store)  # of which nothing is left to train
        assert [each.name for each in store.experiments()] == ["twice", "twice-2"]
    assert (summary.experiment.name, summary.already_done) == ("twice-2", 1)
    assert '"twice-2"' in caplog.text
