"""Programs that are kept: the same one for the same arguments, up to a number and up to so many memory maps."""

import gc
import threading
import weakref

import pytest

from headcount import _compile
from headcount._compile import KeptPrograms


class Program:
    """What a cache keeps: like a compiled program it is held by its own functions."""

    def __init__(self, *shape):
        self.shape = shape
        self.advance = lambda: self


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setattr(_compile, "_kept", [])
    monkeypatch.setattr(_compile, "_left", 0)
    gc.freeze()  # collecting is quick where only these programs are looked at
    yield KeptPrograms(Program)
    gc.unfreeze()


@pytest.fixture
def maps(monkeypatch):
    """Counts 1000 memory maps per living program, as if each were compiled."""
    living = weakref.WeakSet()
    monkeypatch.setattr(_compile, "memory_maps", lambda: 1000 * len(living))
    return living


def test_the_same_arguments_give_the_same_program(kept):
    assert kept(1, "a") is kept(1, "a")
    assert kept(1, "a") is not kept(1.0, "a")
    assert (kept.hits, kept.misses) == (2, 2)


def test_the_number_kept_is_bounded(kept, monkeypatch):
    monkeypatch.setattr(_compile, "MAX_PROGRAMS", 3)
    first, second = kept(1), kept(2)
    for number in (3, 1, 4):
        kept(number)
    assert len(kept) == 3
    assert kept(1) is first
    assert kept(2) is not second


def test_large_programs_are_let_go_before_there_are_many(kept, maps, monkeypatch):
    monkeypatch.setattr(_compile, "MAX_MAPS", 4000)
    for number in range(12):
        maps.add(kept(number))
        assert _compile.memory_maps() <= 5000
    assert kept(11).shape == (11,)
    assert kept.hits == 1, "the newest were let go"


def test_between_runs_everything_goes_where_that_is_needed(kept, maps, monkeypatch):
    monkeypatch.setattr(_compile, "MAX_MAPS", 4000)
    cleared = []
    monkeypatch.setattr(_compile.jax, "clear_caches", lambda: cleared.append(True))
    in_use = [Program(number) for number in range(4)]
    for program in (*in_use, kept(1)):
        maps.add(program)
    del program
    _compile.let_go_of_programs()
    assert cleared
    assert len(kept) == 0
    assert _compile.memory_maps() == 4000, "what is in use stays"
    maps.add(kept(2))
    _compile.let_go_of_programs()
    assert len(cleared) == 1, "clearing again would not help"


def test_caches_let_go_of_each_other_from_several_threads(kept, maps, monkeypatch):
    monkeypatch.setattr(_compile, "MAX_MAPS", 2000)
    other = KeptPrograms(Program)

    def ask(cache):
        for number in range(20):
            maps.add(cache(number))

    threads = [threading.Thread(target=ask, args=(cache,), daemon=True) for cache in (kept, other) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    gc.collect()
    assert len(kept) + len(other) < 12
