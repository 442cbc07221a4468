"""Progress: a bar where someone looks at it, and nothing where output goes to a file."""

import io
import sys
from types import ModuleType

import pytest
from rich.console import Console

from headcount.events import Event
from headcount.report.progress import Bar, automatic_progress, counted_progress, terminal_bar, worded_progress


class ZMQInteractiveShell:
    """What a Jupyter kernel's shell is called."""


@pytest.fixture
def notebook(monkeypatch) -> list[str]:
    """A notebook without IPython; gives what is displayed, in order."""
    shown: list[str] = []

    class Handle:
        def update(self, content: str) -> None:
            shown.append(content)

    def display(content: str, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(content)
        return Handle()

    shell, displaying = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython = ZMQInteractiveShell
    displaying.HTML, displaying.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", displaying)
    return shown


def test_a_notebook_sees_a_bar_that_grows_fills_and_ends(notebook):
    with automatic_progress() as bar:
        bar(Event("round", total=40))
        bar(Event("programs", done=0, total=2))
        bar(Event("steps", done=10))
        bar(Event("round", "<more>", total=60))
        bar(Event("steps", done=90))
    places = [f'value="{done}" max="{total}"' for done, total in ((0, 40), (0, 40), (10, 40), (10, 100), (100, 100))]
    assert [place in text for place, text in zip(places, notebook[1:-1], strict=True)] == [True] * 5
    assert "compiling 1 of 2 programs" in notebook[2]
    assert "10/40 model-steps" in notebook[3]
    assert "&lt;more&gt;" in notebook[4]
    assert "100 model-steps" in notebook[6]
    assert "<progress" not in notebook[6]


def test_a_bar_says_what_is_done_and_knows_the_time_left_only_while_steps_are_taken():
    bar = Bar()
    phases = []
    for tell in (
        lambda: bar(Event("round", "12 heads", total=100)),
        lambda: bar(Event("programs", done=0, total=2)),
        lambda: bar(Event("programs", done=1, total=2)),
        lambda: bar(Event("steps", done=20)),
        lambda: bar(Event("programs", done=2, total=2)),
        lambda: bar(Event("round", "descent to 1, 2", total=100)),
        lambda: bar(Event("programs", done=0, total=1)),
        lambda: bar(Event("steps", done=80)),
        lambda: bar(Event("stop")),
    ):
        tell()
        phases.append((bar.phase, bool(bar.left)))
    assert phases == [
        ("preparing data", False),
        ("compiling 1 of 2 programs", False),
        ("compiling 2 of 2 programs", False),
        ("training, compiling 2 of 2 programs", True),
        ("training", True),
        ("preparing data", False),
        ("compiling the program", False),
        ("training, compiling the program", True),
        ("stopping", False),
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_a_bar_is_one_line_of_whole_words(width):
    written = io.StringIO()
    with terminal_bar(Console(file=written, width=width)) as bar:
        bar(Event("round", total=3_000))
        bar(Event("round", "descent to 1, 2, 3, 4, 5, 6, 7, 8, 9, 10", total=1_000_000))
        bar(Event("programs", done=3, total=5))
        bar(Event("steps", done=100_000))
        whole = " ".join(bar.fitting_words(1000)).replace(",", "").split()
    (line,) = written.getvalue().splitlines()
    words = line.translate(dict.fromkeys(map(ord, ",\u2501\u2578\u257a"))).split()
    assert set(words) - {"10%"} <= set(whole)
    assert "compiling" in words


def test_a_bar_shows_the_workers_of_a_cluster():
    bar = Bar()
    bar(Event("round", total=100))
    bar(Event("programs", done=1, total=1))
    bar(Event("steps", done=50))
    bar(Event("workers", done=12, total=40, detail=4))
    assert "training, 4 workers, 12/40 buckets" in " ".join(bar.fitting_words(200))
    assert "worker" not in " ".join(bar.fitting_words(40))
    bar(Event("round", "another round", total=100))
    assert "12/40" not in " ".join(bar.fitting_words(200))


@pytest.mark.parametrize(("steps", "wanted"), [(0, None), (0, True), (40, False)])
def test_a_notebook_sees_nothing_where_nothing_is_trained_or_wanted(notebook, steps, wanted):
    with automatic_progress(wanted) as bar:
        bar(Event("round", total=steps))
        bar(Event("steps", done=steps))
    assert notebook == []


@pytest.mark.parametrize(("steps", "wanted", "shown"), [(40, None, False), (40, True, True), (0, True, False)])
def test_a_file_sees_a_bar_only_where_one_is_wanted(capsys, monkeypatch, steps, wanted, shown):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with automatic_progress(wanted) as bar:
        bar(Event("round", total=steps))
        bar(Event("steps", done=steps))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("training" in captured.err) == shown


def test_bars_count_what_is_done():
    written = io.StringIO()
    console = Console(file=written, width=120)
    with terminal_bar(console) as bar:
        bar(Event("round", total=30))
        bar(Event("round", total=10))
        bar(Event("steps", done=40))
    with counted_progress(console, "searching", 3, "pairs") as on_done:
        on_done(3)
    with worded_progress(console, "bytes") as tick:
        for done in (1_000, 2_000, 500):  # fewer bytes than before: the next file
            tick(done, 2_000, "fetching")
    text = written.getvalue()
    assert "40/40 model-steps" in text
    assert "3/3 pairs" in text
    assert "500/2,000 bytes" in text
