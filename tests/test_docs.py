"""What the documents say to type works: Python blocks run, and commands are understood."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import headcount as hc
from headcount import cli

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/tasks.md", "docs/theory.md", "docs/reproduction.md")
QUICK = hc.TrainSpec(steps=20, train_examples=200, validation_examples=50)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder with the files the documents speak of."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(120, 16, 3)), generator.normal(size=120)
    np.savez("mydata.npz", x=x, y=y)
    np.save("x.npy", x)
    np.save("y.npy", y)
    Path("mine.py").write_text("import headcount as hc\ntask = hc.max_plus_min(length=8)\n")
    return {"x": x, "y": y}


@pytest.mark.parametrize("page", PAGES[:3])
def test_python_blocks_run(page, folder, monkeypatch):
    measure = hc.measure
    monkeypatch.setattr(hc, "measure", lambda task, **options: measure(task, **options, seeds=2, train=QUICK))
    names = dict(folder, Path=Path)
    for block in blocks(page, "python"):
        exec(block, names)
    assert isinstance(names["task"], hc.ArrayTask | hc.Retrieval)


COMMANDS = [
    line
    for page in PAGES
    for block in blocks(page, "sh")
    for line in map(str.strip, block.splitlines())
    if line.startswith("headcount")
]


UNDERSTOOD = {
    "measure": (["--dry-run"], "cells"),
    "reproduce": (["--dry-run"], "models"),
    "bounds": ([], "Theorem 2"),
    "prove": (["--help"], "claim"),
    "collide": (["--help"], "sequences"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command, folder, monkeypatch, capsys):
    verb = command.split()[1]
    # Two can be asked for a plan, one is quick, the others are tried elsewhere: here only their options are read.
    more, words = UNDERSTOOD[verb]
    monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True) + more)
    with pytest.raises(SystemExit) as ending:
        cli.main()
    assert ending.value.code == 0
    out = capsys.readouterr().out
    assert words in out or "table2" in out or "pieces" in out
