"""The help: groups, examples that are right, and what a shell completes."""

import re
import shlex
import subprocess
import sys

import pytest

from headcount.cli.app import command
from headcount.cli.verbs import VERBS
from headcount.tasks import PRESETS

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


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """What bash completes: the words of a command line, the last of them begun."""
    folder = tmp_path_factory.mktemp("completed")
    script = folder / "headcount.bash"
    script.write_text(headcount("completion", "bash").out)
    (folder / "results").mkdir()

    def complete(*words: str) -> set[str]:
        line = " ".join(map(shlex.quote, ("headcount", *words)))
        code = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _headcount; echo ${{COMPREPLY[@]}}"
        ended = subprocess.run(["bash", "-c", code], cwd=folder, capture_output=True, text=True, check=True)
        assert ended.stderr == ""
        return set(ended.stdout.split())

    return complete


def test_bash_completes_verbs_options_tasks_values_and_files(complete):
    assert complete("") == {*VERBS, "--help", "--version"}
    assert complete("mea") == {"measure"}
    assert set(PRESETS) <= complete("measure", "")
    assert complete("measure", "--eff") == {"--effort"}
    assert complete("measure", "x", "--effort", "") == {"quick", "normal", "thorough"}
    assert complete("reproduce", "--scale", "s") == {"smoke"}
    assert complete("completion", "z") == {"zsh"}
    assert complete("show", "res") == {"results"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_name_every_verb(shell):
    text = headcount("completion", shell).out
    assert all(f" {verb}" in text for verb in VERBS)


def test_help_imports_no_jax():
    code = (
        "import sys; from headcount.cli.app import app\n"
        "app(['--help'], standalone_mode=False); print('jax' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "False"
