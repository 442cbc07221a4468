"""`python -m benchmarks.calibration`, with measurements that take no time."""

import csv

import pytest

from benchmarks.calibration.__main__ import main
from benchmarks.calibration.page import BEGIN, END
from headcount.errors import StoreError

from ...helpers.commands import strict_json
from .pretended import Pretended

SMALL = ("--families", "basins,median", "--tasks", "2")
FIRST, SECOND = "basins-D1-d2-T16-v0", "basins-D2-d2-T16-v0"


@pytest.fixture
def pretended(monkeypatch) -> Pretended:
    pretended = Pretended()
    monkeypatch.setattr("benchmarks.calibration.run.measure", pretended.measure)
    return pretended


def test_the_record_is_printed_and_kept(tmp_path, pretended, capsys):
    pretended.heads = {SECOND: 3}
    out = tmp_path / "out [/b]"
    assert main(["--out", str(out), *SMALL]) == 0
    said = capsys.readouterr()
    assert all(word in said.out for word in ("basins", "median", "held out", "1 of 2", "0 of the 2"))
    assert SECOND in said.err
    with open(out / "calibration.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["family"], row["heads"], row["exact"]) for row in rows] == [
        ("basins", "1", "True"),
        ("basins", "3", "False"),
        ("median", "", "False"),
        ("median", "", "False"),
    ]


def test_the_same_command_measures_nothing_again_and_draws(tmp_path, pretended, capsys):
    page, figure = tmp_path / "page.md", tmp_path / "drawn.svg"
    page.write_text(f"{BEGIN}\n{END}\n")
    words = ["--out", str(tmp_path / "out"), *SMALL]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--page", str(page), "--figure", str(figure), "--json"]) == 0
    assert len(pretended.names) == 4
    record = strict_json(capsys.readouterr().out)
    assert record["overview"]["all"]["exact"]["count"] == 2
    assert [task["name"] for task in record["tasks"]] == pretended.names
    assert "(drawn.svg)" in page.read_text()
    assert figure.read_text().startswith("<?xml")


def test_failures_and_a_stop_lose_nothing(tmp_path, pretended, capsys):
    pretended.raises = {FIRST: StoreError("disk full"), SECOND: KeyboardInterrupt()}
    words = ["--out", str(tmp_path), *SMALL]
    assert main(words) == 130
    del pretended.raises[SECOND]
    assert main(words) == 3
    assert "disk full" in capsys.readouterr().out
    pretended.raises = {}
    assert main(words) == 0


@pytest.mark.parametrize(
    "options",
    [
        "--families recal",
        "--tasks 0",
        "--heads 1:4",
        "--seeds 4 --heads 0:3",
        "--seeds 4 --effort quick",
        "--page no.md",
    ],
)
def test_a_request_that_cannot_be_right_measures_nothing(tmp_path, pretended, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    assert main(["--out", "new", *options.split()]) == 2
    assert pretended.names == []
    assert list(tmp_path.iterdir()) == []
