"""Of two functions that differ in one constant, wherever it is, none is taken for the other."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headcount.tasks.find import load_python_file
from headcount.tasks.identity import code_of

HEAD = """
import functools
import jax
import numpy as np
F0 = lambda x: x
"""
HOLDERS = {
    "text": "def F{n}(x):\n    return {constant} * F{before}(x)\n",
    "closure": "def make{n}(number):\n    return lambda x: number * F{before}(x)\nF{n} = make{n}({constant})\n",
    "default": "def F{n}(x, number={constant}):\n    return number * F{before}(x)\n",
    "keyword": "def F{n}(x, *, number={constant}):\n    return number * F{before}(x)\n",
    "global": "G{n} = {constant}\ndef F{n}(x):\n    return G{n} * F{before}(x)\n",
    "nested global": "G{n} = {constant}\ndef F{n}(x):\n    return jax.vmap(lambda y: G{n} * F{before}(y))(x)\n",
    "helper": "def H{n}(x):\n    return {constant} * x\ndef F{n}(x):\n    return H{n}(F{before}(x))\n",
    "array": "A{n} = np.array([1, {constant}])\ndef F{n}(x):\n    return A{n}[1] * F{before}(x)\n",
    "list": "L{n} = {{'numbers': [[{constant}]]}}\ndef F{n}(x):\n    return L{n}['numbers'][0][0] * F{before}(x)\n",
    "partial": "F{n} = functools.partial(lambda number, x: number * F{before}(x), {constant})\n",
    "Partial": "F{n} = jax.tree_util.Partial(lambda x, number: number * F{before}(x), number={constant})\n",
    "jitted": "F{n} = jax.jit(lambda x: {constant} * F{before}(x))\n",
    "method": (
        "class C{n}:\n    def __init__(self, number):\n        self.number = number\n"
        "    def method(self, x):\n        return self.number * F{before}(x)\nF{n} = C{n}({constant}).method\n"
    ),
    "class attribute": (
        "class C{n}:\n    number = {constant}\n"
        "    def __call__(self, x):\n        return self.number * F{before}(x)\nF{n} = C{n}()\n"
    ),
    "property": (
        "class C{n}:\n    @functools.cached_property\n    def number(self):\n        return {constant}\n"
        "    def __call__(self, x):\n        return self.number * F{before}(x)\nF{n} = C{n}()\n"
    ),
    "recursive": "def F{n}(x, depth={constant}):\n    return F{n}(x, depth - 1) if depth > 0 else F{before}(x)\n",
}
"""How a function may hold a constant; each calls the one before it."""
NUMBERS = st.one_of(st.integers(-3, 3), st.floats(-3, 3), st.sampled_from([0.0, -0.0, 1.0, 1e-45]))
FILES = itertools.count()

PRINT = """
import sys
from pathlib import Path
from headcount.tasks.find import load_python_file
from headcount.tasks.identity import code_of
print(*(code_of(load_python_file(Path(path)).F3) for path in sys.argv[1:]))
"""


def written(folder: Path, holders: list[str], constants: list[object]) -> Path:
    """A file with functions that call each other, of which F1, F2, .. hold the constants."""
    path = folder / f"pair_{next(FILES)}.py"
    parts = [
        HOLDERS[holder].format(n=n, before=n - 1, constant=repr(constant))
        for n, (holder, constant) in enumerate(zip(holders, constants, strict=True), start=1)
    ]
    path.write_text("".join([HEAD, *parts]))
    return path


def code(path: Path, count: int) -> str:
    return code_of(getattr(load_python_file(path), f"F{count}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of the files; what is imported from them is forgotten afterwards."""
    folders = list(sys.path)
    yield tmp_path_factory.mktemp("pairs")
    sys.path[:] = folders
    for name in [name for name in sys.modules if name.startswith("headcount_user_pair_")]:
        del sys.modules[name]


@given(data=st.data(), holders=st.lists(st.sampled_from(sorted(HOLDERS)), min_size=1, max_size=3))
def test_one_other_constant_is_another_function(folder, data, holders):
    constants = [data.draw(NUMBERS) for _ in holders]
    place = data.draw(st.integers(0, len(holders) - 1))
    other = data.draw(NUMBERS.filter(lambda number: repr(number) != repr(constants[place])))
    paths = [
        written(folder, holders, each)
        for each in (constants, constants, [*constants[:place], other, *constants[place + 1 :]])
    ]
    one, same, another = (code(path, len(holders)) for path in paths)
    assert one == same != another


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_way_to_hold_a_constant_counts(folder, holder):
    assert len({code(written(folder, [holder, "text"], [number, 2]), 2) for number in (1, 1.0, 2, 2.5)}) == 4


@pytest.mark.slow
@settings(max_examples=3)
@given(chains=st.lists(st.lists(st.sampled_from(sorted(HOLDERS)), min_size=3, max_size=3), min_size=30, max_size=30))
@example(chains=[[holder, holder, "text"] for holder in HOLDERS])
def test_another_process_finds_the_same(folder, chains):
    paths = [written(folder, chain, [1, 2.5, -3]) for chain in chains]
    environment = os.environ | {"PYTHONHASHSEED": "5", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PRINT, *map(str, paths)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout.split() == [code(path, 3) for path in paths]
