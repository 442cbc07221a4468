"""Files for people are written whole or not at all, and are what they were: links, pipes, permissions."""

import contextlib
import os
import stat

import pytest

from headcount.errors import HeadcountError, InputError
from headcount.report.files import write_whole

from ..helpers.fabricated import finished, sweep, write


def test_a_file_is_replaced_whole(tmp_path):
    for content in (b"first", b"second"):
        write_whole(tmp_path / "new" / "report.html", content)
        assert (tmp_path / "new" / "report.html").read_bytes() == content
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    write_whole(tmp_path / "report.html", b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(HeadcountError, match=r"report\.html.*No space left on device"):
        write_whole(tmp_path / "report.html", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize("name", ["results.sqlite", "results.sqlite-wal", "lock", "weights/any.safetensors"])
def test_stored_results_are_not_overwritten(tmp_path, name):
    root = write(tmp_path, finished(sweep({"heads": (1,), "length": (8,), "seed": (0,)})))
    with pytest.raises(InputError, match=name):
        write_whole(root / name, b"new")


def test_the_longest_name_a_file_can_have_is_fine(tmp_path):
    path = tmp_path / ("a" * 250 + ".html")
    write_whole(path, b"page")
    assert path.read_bytes() == b"page"


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    write_whole(tmp_path / "link.html", b"page")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_bytes() == b"page"


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "link.html")
    with pytest.raises(HeadcountError, match=r"link\.html"):
        write_whole(tmp_path / "link.html", b"page")


def test_what_is_not_a_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.suppress(HeadcountError):
        write_whole(tmp_path / "pipe", b"page")
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_file_respects_the_mask_of_its_maker(tmp_path):
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "report.html", b"page")
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o077 == 0
