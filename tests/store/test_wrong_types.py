"""Rows that are not what was stored: every column of every table, read by everyone."""

import itertools
import shutil
import sqlite3
from pathlib import Path

import pytest

from headcount.errors import StoreError
from headcount.papers.base import Scale
from headcount.papers.registry import CLOSED_FORM
from headcount.report.reading import documents_of
from headcount.store import FILE_NAME, Store

from ..helpers import fabricated
from ..helpers.commands import headcount, unchecked

DEEP = "[" * 100_000 + "]" * 100_000
WRONG = {
    "deep": DEEP,
    "a blob": b"\xff\x00\xfe",
    "a number": 7,
    "a list of null": "[null]",
    "other names": '{"a": {"b": []}, "seconds": "x", "device": 3, "heads": []}',
    "a list": "[]",
    "empty": "",
    "infinity": "[[0, Infinity]]",
    "a large number": "1" + "0" * 5000,
    "a long text": "x" * 1_000_000,
}
VERBS = (("show",), ("show", "--json"), ("status",), ("export", "--json", "--timing"), ("report",))


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("good") / "results"
    made = fabricated.sweep({"heads": (1, 2), "length": (8,), "seed": (0, 1)})
    fabricated.write(root, fabricated.finished(made), {"headcount measure own": made})
    with Store.open_for_writing(root) as store:
        store.put("own", "effort", {"level": "normal", "ended": "settled"})
        store.put("own", "notes", [])
        store.put("own", "baselines", [])
        store.put("own", "heads", {})
        store.put("own", "support", {})
    return root


def places_of(good: Path) -> list[tuple[str, str, int]]:
    """Every place of every table: its column and the number of the row."""
    with sqlite3.connect(good / FILE_NAME) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            (table, column[1], row)
            for table in tables
            for column in connection.execute(f"PRAGMA table_info({table})")
            for row in range(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        ]


def spoilt(good: Path, root: Path, place: tuple[str, str, int], value: object) -> bool:
    """A copy of the folder with a value in place of another; whether SQLite takes it."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(good, root)
    table, column, row = place
    try:
        with sqlite3.connect(root / FILE_NAME) as connection:
            key = {"attachments": "name", "places": "key"}.get(table, "id")
            chosen = connection.execute(f"SELECT {key} FROM {table}").fetchall()[row]
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (value, *chosen))
    except sqlite3.Error:
        return False
    return True


def test_a_value_of_the_wrong_kind_in_any_column_is_told(good, tmp_path):
    places = {(table, column): row for table, column, row in places_of(good)}
    told = 0
    for ((table, column), row), value in zip(places.items(), itertools.cycle(WRONG.values()), strict=False):
        root = tmp_path / "results"
        if not spoilt(good, root, (table, column, row), value):
            continue
        try:
            with unchecked(), Store.open_for_reading(root) as store:
                for read in (store.experiments, store.records, store.progress, store.outcomes, store.backends):
                    read()
                store.facts("own")
                documents_of(root)
        except StoreError as error:
            told += str(root) in str(error)
    assert told > len(places) / 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRONG)
def test_every_verb_tells_of_a_value_of_the_wrong_kind(good, tmp_path, kind):
    # The last row of every column, and every attachment.
    chosen = {place if place[0] == "attachments" else place[:2]: place for place in places_of(good)}
    for place in chosen.values():
        root = tmp_path / "results"
        if spoilt(good, root, place, WRONG[kind]):
            for verb, *options in VERBS:
                with unchecked():
                    result = headcount(verb, root, *options)
                assert result.code in (0, 1), (place, verb, result.err)
                assert result.code == 0 or result.err.splitlines()[-1].startswith("headcount: "), (place, verb)


@pytest.mark.parametrize("content", [DEEP, "7", "{}", "[[null]]", "\ufffd", '{"errors": "none"}'])
@pytest.mark.parametrize("study", CLOSED_FORM.values(), ids=CLOSED_FORM)
def test_damaged_pieces_of_a_computed_study_are_refused(tmp_path, study, content):
    piece = next(iter(study.pieces(Scale.SMOKE)))
    with Store.open_for_writing(tmp_path) as store:
        store.put(store.begin(study.experiment(Scale.SMOKE)).name, piece, {})
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE attachments SET content = ?", (content,))
    connection.close()
    with unchecked(), pytest.raises(StoreError) as refused:
        documents_of(tmp_path)
    assert str(tmp_path) in str(refused.value)
    for verb in ("status", "show", "export"):
        with unchecked():
            result = headcount(verb, tmp_path)
        assert result.code in (0, 1), (verb, result.err)
        assert result.code == 0 or result.err.splitlines()[-1].startswith("headcount: "), (verb, result.err)
