"""The help: groups, examples that are right, and what Tab completes."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from headcount.cli.app import command
from headcount.cli.verbs import VERBS

from ..helpers.commands import headcount


def test_the_help_has_every_verb_once_under_its_group():
    text = headcount("--help").out
    rows = [line.split()[1] for line in text.splitlines() if line.startswith("\u2502") and len(line.split()) > 2]
    assert [row for row in rows if row in VERBS] == list(VERBS)
    titles = [re.sub(r"[^A-Za-z ]", "", line).strip() for line in text.splitlines() if line.startswith("\u256d")]
    groups = list(dict.fromkeys(verb.group for verb in VERBS.values()))
    assert [title for title in titles if title in groups] == groups


@pytest.mark.parametrize("verb", VERBS)
def test_every_example_is_a_command_that_is_understood(verb):
    flags = {flag for option in command(verb).params for flag in option.opts}
    shown = " ".join(headcount(verb, "--help").out.split())
    assert VERBS[verb].examples
    for example, what in VERBS[verb].examples:
        words = shlex.split(example)
        assert words[:2] == ["headcount", verb]
        assert {word for word in words if word.startswith("--")} <= flags
        assert example in shown
        assert what in shown


def completed(*words: str) -> set[str]:
    """What Tab offers in bash: the words of a command line, the last of them begun."""
    line = {"COMP_WORDS": shlex.join(("headcount", *words)), "COMP_CWORD": str(len(words))}
    env = os.environ | line | {"_HEADCOUNT_COMPLETE": "complete_bash"}
    code = "from headcount.cli.app import app; app(prog_name='headcount')"
    return set(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("mea",), {"measure"}),
        (("measure", "sum-of"), {"sum-of-maxima"}),
        (("measure", "x", "--eff"), {"--effort"}),
        (("measure", "x", "--effort", "q"), {"quick"}),
        (("reproduce", "table2-"), {"table2-draws"}),
        (("reproduce", "--scale", "s"), {"smoke"}),
    ],
)
def test_tab_completes_verbs_options_names_and_values(words, offered):
    assert completed(*words) == offered


def test_help_imports_no_jax():
    code = (
        "import sys; from headcount.cli.app import app\n"
        "app(['--help'], standalone_mode=False); print('jax' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "False"
