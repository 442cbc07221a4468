"""`headcount calibrate`, with measurements that take no time."""

import csv

import pytest

from headcount.calibration.page import BEGIN, END
from headcount.errors import StoreError

from ..calibration.pretended import Pretended
from ..helpers.commands import a_sentence, headcount, strict_json

SMALL = ("--families", "basins,median", "--tasks", 2)
FIRST, SECOND = "basins-D1-d2-T16-v0", "basins-D2-d2-T16-v0"


@pytest.fixture
def pretended(monkeypatch) -> Pretended:
    pretended = Pretended()
    monkeypatch.setattr("headcount.calibration.run.measure", pretended.measure)
    return pretended


def test_the_record_is_printed_and_kept(tmp_path, pretended):
    pretended.heads = {SECOND: 3}
    out = tmp_path / "out [/b]"
    result = headcount("calibrate", "--out", out, *SMALL)
    assert result.code == 0, result.err
    assert all(word in result.out for word in ("basins", "median", "held out", "1 of 2", "0 of the 2"))
    assert SECOND in result.err
    with open(out / "calibration.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["family"], row["heads"], row["exact"]) for row in rows] == [
        ("basins", "1", "True"),
        ("basins", "3", "False"),
        ("median", "", "False"),
        ("median", "", "False"),
    ]


def test_the_same_command_measures_nothing_again_and_draws(tmp_path, pretended):
    page, figure = tmp_path / "page.md", tmp_path / "drawn.svg"
    page.write_text(f"{BEGIN}\n{END}\n")
    assert headcount("calibrate", "--out", tmp_path / "out", *SMALL).code == 0
    again = headcount("calibrate", "--out", tmp_path / "out", *SMALL, "--page", page, "--figure", figure, "--json")
    assert again.code == 0, again.err
    assert len(pretended.names) == 4
    record = strict_json(again.out)
    assert record["overview"]["all"]["exact"]["count"] == 2
    assert [task["name"] for task in record["tasks"]] == pretended.names
    assert "(drawn.svg)" in page.read_text()
    assert figure.read_text().startswith("<?xml")


def test_the_papers_protocol(tmp_path, pretended):
    assert headcount("calibrate", "--out", tmp_path / "all", *SMALL, "--seeds", 4).code == 0
    assert headcount("calibrate", "--out", tmp_path / "few", *SMALL, "--seeds", 4, "--heads", "1:3").code == 0
    assert headcount("calibrate", "--out", tmp_path / "few", *SMALL).code == 2
    tried = [options["heads"] for options in pretended.options]
    assert set(tried) == {tuple(range(1, 13)), (1, 2, 3)}


def test_failures_and_a_stop_lose_nothing(tmp_path, pretended):
    pretended.raises = {FIRST: StoreError("disk full"), SECOND: KeyboardInterrupt()}
    stopped = headcount("calibrate", "--out", tmp_path, *SMALL)
    assert (stopped.code, stopped.out) == (130, "")
    assert str(tmp_path) in stopped.err
    del pretended.raises[SECOND]
    failed = headcount("calibrate", "--out", tmp_path, *SMALL)
    assert failed.code == 3
    assert "disk full" in failed.out
    pretended.raises = {}
    assert headcount("calibrate", "--out", tmp_path, *SMALL).code == 0


BAD = {
    "--families recal": ('"recal"', '"recall"', "--families"),
    "--families maxima,,recall": ('""',),
    "--tasks 0": ("--tasks", "0"),
    "--tasks -2": ("--tasks", "-2"),
    "--seeds 4 --effort quick": ("--seeds", "--effort"),
    "--seeds 0": ("--seeds", "0"),
    "--heads 1:4": ("--heads", "--seeds"),
    "--seeds 4 --heads 0:3": ("--heads", "0"),
    "--effort fast": ("--effort", "fast"),
    "--figure drawn.gif": ("drawn.gif",),
    "--page missing.md": ("missing.md",),
}


@pytest.mark.parametrize("options", BAD)
def test_a_request_that_cannot_be_right_measures_nothing(tmp_path, pretended, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    a_sentence(headcount("calibrate", "--out", "new", *options.split()), 2, *BAD[options])
    assert pretended.names == []
    assert list(tmp_path.iterdir()) == []
