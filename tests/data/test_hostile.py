"""Whatever is wrong with a file, the answer is one sentence that names it: never another error, never a wait."""

import re
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from headcount.errors import InputError
from headcount.tasks.find import find_task

from ..helpers.commands import headcount, unchecked
from .hostile import KINDS, UNREAD, variants

SECONDS = 60
THROUGH_THE_COMMAND = [
    (".npz", "cut at 50%"), (".csv", "one word"), (".tsv", "a pipe"), (".parquet", "a column of text"),
    (".json", "deep"), (".jsonl", "other keys"), ("", "a missing shard"), (".h5", "noise"), (".npy", "no targets"),
]  # fmt: skip


@contextmanager
def within(seconds: int):
    """Fail rather than wait for ever for a pipe or a device."""

    def late(*_):
        raise AssertionError(f"still reading after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fault(kind: str, words: str, folder: Path) -> str:
    """What is wrong with how a variant is refused; empty if nothing is."""
    reference, options = variants(kind)[words](folder)
    try:
        find_task(str(reference), **options)
    except InputError as error:
        message = str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    else:
        return "it was taken"
    sentence, *code = message.splitlines()
    named = any(name in sentence for name in ("bad", "aaa", "a\\x00b"))
    a_sentence = re.search(r"[^.][.?:]$", sentence) and len(sentence) < 900
    if not named or not a_sentence or bool(code) != sentence.endswith(":"):
        return f"not a sentence that names the file: {message}"
    compile("\n".join(line.removeprefix("    ") for line in code), kind, "exec")
    return ""


@pytest.mark.parametrize("kind", [*KINDS, *UNREAD])
def test_one_sentence_for_each_of_thirty_variants(tmp_path, kind):
    if kind == ".pt":
        pytest.importorskip("torch")
    names = list(variants(kind))
    assert len(names) >= (30 if kind in KINDS else 20)
    folders = {words: tmp_path / str(place) for place, words in enumerate(names)}
    faults = {}
    with unchecked(), within(SECONDS):
        for words, folder in folders.items():
            folder.mkdir()
            faults[words] = fault(kind, words, folder)
    assert {words: text for words, text in faults.items() if text} == {}


@pytest.mark.parametrize(("kind", "words"), THROUGH_THE_COMMAND)
def test_exit_code_2(tmp_path, monkeypatch, kind, words):
    reference, options = variants(kind)[words](tmp_path)
    monkeypatch.chdir(tmp_path)
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    with unchecked(), within(SECONDS):
        result = headcount("measure", reference, *flags)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("headcount: ")
    assert "Traceback" not in result.err
