"""Compiled programs are kept on disk up to a size, and a disk that cannot keep them stops nothing."""

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount._cache import DEFAULT_CACHE_MB, WRITING_SECONDS, cache_bytes, keep_compiled_programs, prune_cache
from headcount.errors import InputError

OLD = time.time() - 10 * WRITING_SECONDS
PROGRAM = """
import resource, sys, warnings
import jax
from headcount._cache import keep_compiled_programs
warnings.simplefilter("error")
if len(sys.argv) > 1:
    sys.dont_write_bytecode = True  # Python would keep a module's first half, and others would import it
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
keep_compiled_programs()
print(jax.jit(lambda x: x + 1)(1))
"""


def entry(folder, name, content, used):
    path = folder / f"{name}-cache"
    path.write_bytes(content)
    os.utime(path, (used, used))
    return path


@given(st.lists(st.integers(1, 50), max_size=8), st.integers(0, 200))
def test_what_was_used_last_is_kept_and_fits(tmp_path_factory, sizes, most):
    folder = tmp_path_factory.mktemp("kept")
    paths = [entry(folder, str(i), b"z" * size, OLD + i) for i, size in enumerate(sizes)]
    prune_cache(folder, most)
    kept = [path.exists() for path in paths]
    assert sum(size for size, there in zip(sizes, kept, strict=True) if there) <= most
    assert kept == sorted(kept), "the oldest go first"
    if not all(kept):
        gone = kept.count(False)
        assert sum(sizes[gone - 1 :]) > most, "no more than needed"


def test_entries_that_a_full_disk_cut_short_are_removed(tmp_path):
    whole = zlib.compress(bytes(range(256)) * 40)
    cut, empty, good, other = (
        entry(tmp_path, name, content, OLD)
        for name, content in {"cut": whole[:-9], "empty": b"", "good": whole, "other": b"\x28\xb5\x2f\xfd"}.items()
    )
    young = entry(tmp_path, "young", whole[:-9], time.time())
    prune_cache(tmp_path, 1 << 20)
    assert [path.exists() for path in (cut, empty, good, other, young)] == [False, False, True, True, True]


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    prune_cache(tmp_path / "none", 5)


def test_folders_are_left_and_hold_up_nothing(tmp_path):
    folder = tmp_path / "0-cache"
    folder.mkdir()
    os.utime(folder, (OLD - 1, OLD - 1))
    cut, old = entry(tmp_path, "cut", b"", OLD), entry(tmp_path, "old", b"z" * 9, OLD)
    prune_cache(tmp_path, 5)
    assert [path.exists() for path in (folder, cut, old)] == [True, False, False]


def test_an_entry_that_another_process_removes_holds_up_nothing(tmp_path, monkeypatch):
    paths = [entry(tmp_path, str(i), b"z" * 9, OLD + i) for i in range(4)]
    usual = {name: getattr(Path, name) for name in ("stat", "unlink", "read_bytes")}

    def gone(name, which):
        def method(path, *arguments, **options):
            if path == paths[which]:
                raise FileNotFoundError(path)
            return usual[name](path, *arguments, **options)

        monkeypatch.setattr(Path, name, method)

    for which, name in enumerate(usual):
        gone(name, which)
    prune_cache(tmp_path, 0)
    monkeypatch.undo()
    assert [path.exists() for path in paths] == [True, True, False, False]


def test_no_megabytes_remove_what_was_kept(tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path))
    monkeypatch.setenv("HEADCOUNT_CACHE_MB", "0")
    (tmp_path / "compiled").mkdir()
    kept = entry(tmp_path / "compiled", "kept", b"z", time.time())
    keep_compiled_programs()
    assert not kept.exists()


def test_the_size_is_a_number_of_megabytes(monkeypatch):
    monkeypatch.delenv("HEADCOUNT_CACHE_MB", raising=False)
    assert cache_bytes() == DEFAULT_CACHE_MB << 20
    monkeypatch.setenv("HEADCOUNT_CACHE_MB", "3")
    assert cache_bytes() == 3 << 20
    for wrong in ("much", "-1", "1.5", "²"):
        monkeypatch.setenv("HEADCOUNT_CACHE_MB", wrong)
        with pytest.raises(InputError) as refusal:
            cache_bytes()
        assert (refusal.value.what, refusal.value.given) == ("HEADCOUNT_CACHE_MB", wrong)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="uses a limit on the size of files")
@pytest.mark.parametrize(
    ("cache", "limit"),
    [("here", "100"), ("/dev/null/none", ""), ("/proc/none", "")],
    ids=["full", "a file", "no folder"],
)
def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path, cache, limit):
    environment = os.environ | {"HEADCOUNT_CACHE": str(tmp_path / cache)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-c", PROGRAM, *limit.split()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
