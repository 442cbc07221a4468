"""Libraries that cannot be used end in the reference and one sentence; the choice of a back end, and its refusals."""

import logging
import shutil
import subprocess
from pathlib import Path

import jax
import pytest

from headcount.backends import choose, library
from headcount.backends.library import Kernels, load_library
from headcount.engine import hardware
from headcount.errors import HeadcountError

from ..helpers.commands import a_sentence, headcount
from ..helpers.refusals import refused

COMPILER = shutil.which("cc")
SAID = """
const char* headcount_kernels_version() { return "9.9"; }
const char* headcount_kernels_cpu() { return "plain"; }
const char* headcount_kernels_gpu() { return "sm_80 sm_90"; }
"""
# The second number of the metadata that XLA asks a handler for is the version of its interface.
OTHER_VERSION = (
    SAID
    + """
#include <stddef.h>
struct extension { size_t size; int kind; struct extension* next; };
struct version { size_t size; struct extension* more; int major, minor; };
struct metadata { size_t size; struct version version; };
struct asked { struct extension base; struct metadata* metadata; };
struct frame { size_t size; struct extension* first; };
static void* answer(struct frame* call) {
  struct metadata* metadata = ((struct asked*)call->first)->metadata;
  metadata->version.major = 77;
  return NULL;
}
void* HeadcountPoolCpu(struct frame* call) { return answer(call); }
void* HeadcountPoolGradientCpu(struct frame* call) { return answer(call); }
void* HeadcountAdvanceCpu(struct frame* call) { return answer(call); }
"""
)


def compiled(folder: Path, source: str) -> Path:
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    (folder / "some.c").write_text(source)
    path = folder / "some.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", path, folder / "some.c"], check=True)
    return path


def missing(folder: Path) -> Path:
    return folder / "none.so"


def truncated(folder: Path) -> Path:
    path = compiled(folder, SAID)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def foreign(folder: Path) -> Path:
    path = folder / "foreign.so"
    path.write_bytes(b"MZ" + bytes(500))
    return path


def of_something_else(folder: Path) -> Path:
    return compiled(folder, "int answer() { return 42; }")


def without_operations(folder: Path) -> Path:
    return compiled(folder, SAID)


def for_another_jax(folder: Path) -> Path:
    return compiled(folder, OTHER_VERSION)


BROKEN = [missing, truncated, foreign, of_something_else, without_operations, for_another_jax]


@pytest.mark.parametrize("make", BROKEN)
def test_a_library_that_cannot_be_used_ends_in_the_reference_and_one_sentence(make, tmp_path, monkeypatch, caplog):
    path = make(tmp_path)
    monkeypatch.setenv(library.PATH_VARIABLE, str(path))
    monkeypatch.delenv(choose.VARIABLE, raising=False)
    with caplog.at_level(logging.WARNING):
        assert hardware().backend == hardware(backend="auto").backend == "reference"
    (said,) = caplog.messages
    assert str(path) in said
    assert "pip install" in said
    with refused("fused") as refusal:
        hardware(backend="fused")
    assert str(path) in str(refusal.value)


def test_one_for_another_jax_is_refused_by_name(tmp_path):
    assert jax.__version__ in load_library(for_another_jax(tmp_path), "cpu").problem


def test_without_kernels_nothing_is_said_unless_they_are_asked_for(monkeypatch, caplog):
    monkeypatch.setattr(library, "_packaged", lambda: None)
    monkeypatch.delenv(library.PATH_VARIABLE, raising=False)
    monkeypatch.delenv(choose.VARIABLE, raising=False)
    with caplog.at_level(logging.WARNING):
        assert choose.choose_backend() == "reference"
    assert not caplog.messages
    with refused("pip install"):
        choose.choose_backend("fused")


def test_the_variable_chooses_and_other_words_are_refused(monkeypatch):
    monkeypatch.setattr(choose, "kernels_here", lambda: a_library("AVX2"))
    for word, backend in (("reference", "reference"), ("fused", "fused"), ("auto", "fused"), ("", "fused")):
        monkeypatch.setenv(choose.VARIABLE, word)
        assert choose.choose_backend() == backend
    assert choose.choose_backend("reference") == "reference"
    monkeypatch.setenv(choose.VARIABLE, "quick")
    with refused("quick"):
        choose.choose_backend()
    assert choose.backend_name("fused") == "fused 0.1.0, AVX2"
    assert choose.backend_name("reference") == "reference"


def a_library(unit: str) -> Kernels:
    return Kernels(path=Path("some.so"), version="0.1.0", unit=unit)


@pytest.mark.parametrize(
    ("targets", "capability", "runs"),
    [
        ("sm_80 sm_90", "9.0", True),
        ("sm_80 sm_90", "8.9", True),
        ("sm_80 sm_90", "12.0", False),
        ("sm_80 sm_90 compute_90", "12.0", True),
        ("sm_80 sm_90", "7.5", False),
        ("sm_90 sm_100", "8.0", False),
        ("", "9.0", False),
    ],
)
def test_a_gpu_is_served_by_its_generation_or_by_ptx(monkeypatch, targets, capability, runs):
    device = type("Device", (), {"compute_capability": capability})()
    monkeypatch.setattr(jax, "devices", lambda: [device])
    if runs:
        assert library._gpu_unit(targets.split()) == f"CUDA sm_{capability.replace('.', '')}"
    else:
        with pytest.raises(HeadcountError, match="install it again"):
            library._gpu_unit(targets.split())


def test_the_command_line_refuses_other_back_ends():
    a_sentence(headcount("measure", "max-plus-min", "--backend", "quick"), 2, "--backend", "quick", "fused")
