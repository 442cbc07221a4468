"""The front door: few public names, loaded when used, each documented with an example that runs."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import headcount as hc

from .helpers import fabricated

PUBLIC = [name for name in hc.__all__ if name != "__version__"]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(hc.__path__, "headcount.") if module.name != "headcount.__main__"
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def documented_methods(value: type) -> list[tuple[str, object]]:
    """The public methods and properties that a class defines itself."""
    return [
        (name, member.fget if isinstance(member, property) else getattr(member, "__func__", member))
        for name, member in vars(value).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod | staticmethod))
    ]


def test_there_are_at_most_twenty_public_names_and_all_of_them_resolve():
    assert len(hc.__all__) <= 20
    assert set(hc.__all__) <= set(dir(hc))
    assert all(getattr(hc, name) is not None for name in hc.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        hc.no_such_name  # noqa: B018


def test_the_package_is_typed():
    assert (Path(hc.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_documents_its_arguments_what_it_returns_and_raises(name):
    value = getattr(hc, name)
    text = inspect.getdoc(value) or ""
    assert "Example:" in text, f"{name} has no example"
    if inspect.isfunction(value):
        parameters = [each for each in inspect.signature(value).parameters if each != "_"]
        assert "Args:" in text, f"{name} lists no arguments"
        missing = [each for each in parameters if f"{each}:" not in text]
        assert not missing, f"{name} does not document {missing}"
        assert "Returns:" in text, f"{name} does not say what it returns"
        assert "Raises:" in text, f"{name} does not say what it raises"
    else:
        bare = [method for method, function in documented_methods(value) if not inspect.getdoc(function)]
        assert not bare, f"{name} has methods without a docstring: {bare}"


TRAINING = {"headcount.engine.run", "headcount.measurement", "headcount.api"}
"""Modules whose examples train models."""
EXTRAS = ("ray", "safetensors", "torch", "transformers")


@pytest.mark.parametrize(
    "module", [pytest.param(name, marks=pytest.mark.slow) if name in TRAINING else name for name in MODULES]
)
def test_examples_in_docstrings_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}, an extra, which the default tests do without")
    if module.endswith((".inspecting", "inspection.result")):  # by their examples
        pytest.importorskip("torch", reason="an extra, which the default tests do without")
    ran = doctest.testmod(imported, optionflags=FLAGS, verbose=False)
    assert ran.failed == 0


READS = """
import sys
import headcount as hc
from headcount.cli import main
folder = sys.argv[1]
(measurement,) = hc.load(folder)
print(measurement, measurement.table.to_dict()["metric"])
page = ["-o", f"{folder}/page.html"]
for words in (["--version"], ["status", folder], ["show", folder], ["export", folder], ["report", folder, *page]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as ended:
        assert ended.code in (0, None), (words, ended.code)
assert "jax" not in sys.modules, "reading imported JAX"
assert "scipy.stats" not in sys.modules
"""


def test_reading_a_folder_imports_no_jax(tmp_path):
    sweep = fabricated.sweep()
    fabricated.write(tmp_path, fabricated.finished(sweep), {"headcount measure own": sweep})
    ended = subprocess.run([sys.executable, "-c", READS, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "needs 4 heads" in ended.stdout
