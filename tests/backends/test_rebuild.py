"""When the kernels are built again, and what a build that fails leaves."""

import importlib
import platform
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "kernels"
MODULES = ("build_commands", "build_library", "headcount_kernels")
COMPILER = '#!/bin/sh\necho >> "$0.calls"\nfor last; do :; done\necho compiled > "$last"\n'
SOURCES = ("bind_cpu.cc", "gpu_targets.cc", "cpu/dispatch.cc", "cpu/kernels.cc")

pytestmark = [
    pytest.mark.skipif(not KERNELS.is_dir(), reason="the sources of the kernels are not in a source distribution"),
    pytest.mark.skipif((platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="one machine is enough"),
]


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with empty sources and a compiler that only writes its last argument; `make` is what make runs."""
    monkeypatch.syspath_prepend(KERNELS)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    script, names = importlib.import_module("build_library"), importlib.import_module("build_commands")
    yield Clone(tmp_path, script, names, monkeypatch)
    for name in MODULES:
        sys.modules.pop(name, None)


class Clone:
    def __init__(self, folder, script, names, patch):
        self.library, self.script, self.patch = folder / "library.so", script, patch
        self.compiler, self.sources = folder / "compiler", folder / "src"
        for name in SOURCES:
            (self.sources / name).parent.mkdir(parents=True, exist_ok=True)
            (self.sources / name).touch()
        self.compiler.write_text(COMPILER)
        self.compiler.chmod(0o755)
        patch.setenv("CXX", str(self.compiler))
        patch.setenv("HEADCOUNT_KERNELS_GPU", "0")
        patch.setattr(names, "SOURCES", self.sources)
        patch.setattr(script, "library_path", lambda: self.library)
        patch.setattr(script, "import_path_file", lambda: folder / "kernels.pth")

    def make(self) -> bool:
        """Whether anything was compiled."""
        calls = Path(f"{self.compiler}.calls")
        calls.unlink(missing_ok=True)
        self.patch.setattr(sys, "argv", ["build_library.py", "--install", "--if-changed"])
        self.script.main()
        return calls.exists()


def test_only_a_library_that_is_whole_and_of_these_sources_is_not_built_again(clone):
    assert [clone.make(), clone.make()] == [True, False]
    clone.library.unlink()
    assert [clone.make(), clone.make()] == [True, False]
    clone.library.write_text("comp")
    assert [clone.make(), clone.make()] == [True, False]
    (clone.sources / "cpu/kernels.cc").write_text("// changed")
    assert [clone.make(), clone.make()] == [True, False]


def test_a_build_that_fails_leaves_only_a_library_of_the_same_sources(clone):
    clone.make()
    clone.patch.setenv("CXX", "/no/such/compiler")
    with pytest.raises(clone.script.BuildError):
        clone.script.build(clone.library)
    assert clone.library.exists()
    assert not clone.make()
    (clone.sources / "cpu/kernels.cc").write_text("// changed")
    with pytest.raises(SystemExit) as ended:
        clone.make()
    assert "/no/such/compiler" in str(ended.value.code)
    assert {path.name for path in clone.library.parent.iterdir()} == {"compiler", "src"}


def test_a_copy_that_python_imports_instead_is_named(clone, tmp_path, capsys):
    clone.make()
    copy = tmp_path / "site" / "headcount_kernels"
    copy.mkdir(parents=True)
    (copy / "__init__.py").touch()
    clone.patch.setattr(sys, "path", [sys.path[0], str(copy.parent), *sys.path[1:]])
    capsys.readouterr()
    assert not clone.make()
    assert str(copy) in capsys.readouterr().out
