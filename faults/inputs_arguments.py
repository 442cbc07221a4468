"""Bad values for every option of every verb, in a command that is good without them."""

import functools
import importlib
import random
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inputs_case import Case, Input

from headcount.cli.app import command
from headcount.cli.verbs import VERBS
from tests.helpers import fabricated

RESULTS = "RESULTS"
"""In a command, the results folder that `results_folder` makes."""
GOOD: dict[str, tuple[str, ...]] = {
    "measure": ("sum-of-maxima", "--dry-run"),
    "show": (RESULTS,),
    "compare": (RESULTS, RESULTS),
    "status": (RESULTS,),
    "report": (RESULTS,),
    "export": (RESULTS,),
    "reproduce": ("table2", "--dry-run"),
    "verify": (RESULTS,),
    "collide": (RESULTS,),
    "inspect": ("bert", "--dry-run"),
    "prune": ("bert", "--dry-run"),
    "group": ("bert", "--dry-run"),
    "shrink": ("bert", "--dry-run"),
    "tasks": (),
    "bounds": ("--heads", "2", "--length", "8", "--intrinsic-dim", "4"),
}
"""Verbs with what they need. Left out: serve, prove and doctor, which go on with their work for long."""

NO_COUNT = ("abc", "1.5", "", "1e3", "0x10", "nan", "-", "1,5", "12x")
NOT_POSITIVE = ("0", "-1", "-999999999999")
ABSURD = ("1000000000000000000", "99999999999999999999999999", "9" * 5000)
NO_NUMBER = ("abc", "", "1,5", "--")
ODD_NUMBERS = ("nan", "inf", "-inf", "-1", "1e400", "-0.0")
LISTS = (
    "", ",", "1,,2", "a", "1:2:3:4", "5:1", "0", "-1:3", "1,1", "1:6:0", ":", "1:", "1.5", "1;2", "1:x",
    "1:1000000000000", "1000000000000000000", "1:9999999:1", "9" * 5000,
)  # fmt: skip
CHOICES = (
    "none of them",
    "",
    "\t",
    "--",
    "soft ",
    "GAUSSIAN!",
    "x" * 3000,
    "{}",
    "../..",
    "naïve",
    "a\nb",
    "0:2",
    "1:0",
    "nan:nan",
)
PATHS = ("/dev/null/out", "/proc/none/out", "missing/folder/x", "x" * 300, "/dev/full")
FIGURES = ("chart.docx", "chart", "/proc/none/chart.svg", "missing/chart.svg", ".svg/", "x" * 300 + ".svg")
LIST_OPTIONS = ("--heads", "--lengths", "--ranks", "--kv-heads", "--head-dims")
ALWAYS_BAD = {"abc", "1.5", "1,5", "12x"}
MISSING = ("missing", "/dev/null", "/proc", "x" * 300, "", "missing/results.sqlite", "~nobody/x")


def bad_arguments(rng: random.Random) -> Iterator[Input]:
    """A bad value for one option, for every option of every verb."""
    for verb, base in GOOD.items():
        hints = typing.get_type_hints(getattr(importlib.import_module(VERBS[verb].home), verb))
        for parameter in command(verb).params:
            name, flag = parameter.name or "", max(parameter.opts, key=len)
            if parameter.param_type_name != "option" or name not in hints or bool in typing.get_args(hints[name]):
                continue
            if hints[name] is not bool:
                for value in _values(flag, hints[name]):
                    must = value in ALWAYS_BAD and int in (hints[name], *typing.get_args(hints[name]))
                    yield _input(verb, f"{flag} {value[:40]!r}", (*base, flag, value), refused=must)
        if RESULTS in base:
            for value in MISSING:
                typed = (value, *base[1:])
                yield _input(verb, f"the folder {value[:40]!r}", typed, refused=True)
        yield _input(verb, "an unknown option", (*base, "--no-such-option"), refused=True)
        yield _input(verb, "too many arguments", (*base, *("again",) * 9), refused=verb != "compare")


def absurd_sizes(_: random.Random) -> Iterator[Input]:
    """Sizes that no machine has, refused by arithmetic; what could be planned is refused when it is to be trained."""
    typed = [
        (flag, value)
        for flag in ("--lengths", "--heads", "--ranks", "--head-dims", "--kv-heads")
        for value in ("1000000000000000000", "1:1000000000000")
    ] + [
        (flag, value)
        for flag in ("--seeds", "--steps", "--batch", "--head-dim", "--hidden", "--layers", "--total-dim",
                     "--train-examples", "--validation-examples", "--intrinsic-dim", "--dim")
        for value in ("1000000000000000000", "99999999999999999999999999", "1000000000000")
    ]  # fmt: skip
    for flag, value in typed:
        yield _input("measure", f"{flag} {value}", ("sum-of-maxima", flag, value, "--dry-run"), refused=True)
    hard = ("bounds", *GOOD["bounds"], "--class", "hard")
    absurd = ABSURD[0]
    for flag in ("--lengths", "--heads", "--ranks", "--head-dims", "--kv-heads", "--hidden", "--layers", "--batch"):
        yield _input("measure", f"{flag} 10**9, trained", ("sum-of-maxima", flag, "1000000000"), refused=True, out=True)
    for verb, *options in (
        *((*hard, flag, absurd) for flag in ("--heads", "--length", "--intrinsic-dim", "--alphabet")),
        ("bounds", *GOOD["bounds"], "--plot", "chart.svg", "--intrinsic-dim", absurd),
        *(("collide", RESULTS, flag, absurd) for flag in ("--steps", "--starts", "--anchors")),
        ("serve", RESULTS, "--port", absurd),
        ("tasks", "sum-of-maxima", "--support", "--no-such"),
        ("measure", "sum-of-maxima", "--dry-run", "--on", "ray", "--workers", absurd),
        ("reproduce", "table2", "--dry-run", "--seeds", "1000000000000"),
        ("reproduce", "table2", "--dry-run", "--lengths", "1000000000000000000"),
        ("reproduce", "table2", "--dry-run", "--heads", "1:1000000000000"),
    ):
        yield _input(verb, " ".join(options), tuple(options), refused=True)


def several_options(rng: random.Random) -> Iterator[Input]:
    """Two or three options of `measure` at random, each with a bad or an odd value."""
    hints = typing.get_type_hints(importlib.import_module("headcount.cli.measure").measure)
    options = [
        (max(each.opts, key=len), hints[each.name])
        for each in command("measure").params
        if each.name in hints
        and each.param_type_name == "option"
        and bool not in (hints[each.name], *typing.get_args(hints[each.name]))
    ]
    while True:
        picked = [(flag, rng.choice(_values(flag, hint))) for flag, hint in rng.sample(options, rng.randint(2, 3))]
        typed = tuple(part for pair in picked for part in pair)
        words = " ".join(f"{flag} {value[:20]!r}" for flag, value in picked)
        task = rng.choice(("sum-of-maxima", "max-plus-min", "nearest", "in-context", "no-such-task"))
        yield _input("measure", f"{task} {words}", (task, *typed, "--dry-run"), refused=False)


def _values(flag: str, hint: Any) -> tuple[str, ...]:
    kinds = (hint, *typing.get_args(hint))
    if flag in LIST_OPTIONS:
        return LISTS
    if int in kinds:
        return NO_COUNT + NOT_POSITIVE + ABSURD
    if float in kinds:
        return NO_NUMBER + ODD_NUMBERS
    if flag in ("--figure", "--plot", "--page", "--write", "--figures"):
        return FIGURES
    return PATHS if Path in kinds else CHOICES


def _input(verb: str, words: str, typed: tuple[str, ...], *, refused: bool, out: bool = False) -> Input:
    """`out`: into a results folder of the trial's own."""

    def case(folder: Path) -> Case:
        put = tuple(str(results_folder()) if part == RESULTS else part for part in typed)
        return Case((verb, *put, *(("--out", str(folder / "out")) if out else ())), refused)

    assert verb in VERBS
    return Input(f"{verb} options", words, case)


@functools.cache
def results_folder() -> Path:
    """A results folder of fabricated records, which no command changes."""
    import tempfile

    root = Path(tempfile.mkdtemp(prefix="headcount-inputs-")) / "results"
    made = fabricated.sweep()
    return fabricated.write(root, fabricated.finished(made), {"headcount measure own": made})
