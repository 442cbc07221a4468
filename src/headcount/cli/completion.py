"""`headcount completion`: a script that completes verbs, options and their values in a shell.

The script holds all it completes, so that pressing Tab starts no Python.
"""

import sys
from collections.abc import Iterable
from enum import Enum, StrEnum
from typing import Annotated, NamedTuple, get_type_hints

import typer
from typer.core import TyperOption

from .._choices import ANSWERED_AT, POSITIONS, PRECISIONS
from ..papers.registry import CLOSED_FORM, REAL_DATA, STUDIES
from ..report.render import FORMATS
from ..search.levels import EFFORTS
from ..tasks import PRESETS
from ..tasks.ranking import LAYOUTS
from .app import command
from .verbs import VERBS

VALUES = {
    "--effort": tuple(EFFORTS),
    "--positions": ("auto", *POSITIONS),
    "--precision": PRECISIONS,
    "--answered-at": ANSWERED_AT,
    "--layout": LAYOUTS,
}
"""Values of options that are plain text."""
ARGUMENTS = {
    "measure": tuple(PRESETS),
    "tasks": tuple(PRESETS),
    "reproduce": ("all", *STUDIES, *CLOSED_FORM, *REAL_DATA),
}
"""Names that a verb takes, beside files and folders."""
FILES = 'COMPREPLY=($(compgen -f -- "$word"))'
BASH = """\
# headcount in bash; kept in ~/.local/share/bash-completion/completions/headcount
_headcount() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" verb="" each IFS=$' \\t\\n'
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $each != -* ]]; then verb="$each"; break; fi
  done
  COMPREPLY=()
  case "$verb" in
    "") @VERBS@;;
@CASES@
  esac
}
complete -o filenames -F _headcount headcount
"""


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


class Completed(NamedTuple):
    """What is completed after a verb: names, flags, values by flag, and the flags that take any other value."""

    names: tuple[str, ...]
    flags: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    files: tuple[str, ...]


def completion(shell: Annotated[Shell, typer.Argument(help="Whose script is printed.")]) -> None:
    """Print a script that completes verbs, options, tasks and efforts when Tab is pressed.

    Print it again after an upgrade.
    """
    print(SCRIPTS[shell]({verb: completed(verb) for verb in VERBS}), end="")


def completed(verb: str) -> Completed:
    """What is completed after a verb."""
    params = command(verb).params
    hints = get_type_hints(getattr(sys.modules[VERBS[verb].home], verb))
    names, flags = ARGUMENTS.get(verb, ()), []
    values: dict[str, tuple[str, ...]] = {}
    for each in params:
        choices = _choices(hints.get(each.name or ""))
        if not isinstance(each, TyperOption):
            names += choices
            continue
        flags += [flag for flag in each.opts if flag.startswith("--")]
        if not each.is_flag:
            values[each.opts[0]] = VALUES.get(each.opts[0], ()) or choices
    values |= {"--format": FORMATS} if verb == "report" else {}
    listed = {flag: choices for flag, choices in values.items() if choices}
    return Completed(names, (*flags, "--help"), listed, tuple(flag for flag in values if flag not in listed))


def _choices(hint: object) -> tuple[str, ...]:
    """The values of an enumeration; none of any other type."""
    return tuple(each.value for each in hint) if isinstance(hint, type) and issubclass(hint, Enum) else ()


def _bash(verbs: dict[str, Completed]) -> str:
    cases = []
    for verb, each in verbs.items():
        values = [f"        {flag}) {_words_of(choices)}; return;;" for flag, choices in each.values.items()]
        files = [f"        {'|'.join(each.files)}) {FILES}; return;;"] if each.files else []
        cases += [f"    {verb})", '      case "$before" in', *values, *files, "      esac"]
        cases += [f"      if [[ $word == -* ]]; then {_words_of(each.flags)}", f"      else {FILES}"]
        cases += [f"        {_words_of(each.names, '+=')}"] if each.names else []
        cases += ["      fi;;"]
    return BASH.replace("@VERBS@", _words_of((*verbs, "--help", "--version"))).replace("@CASES@", "\n".join(cases))


def _words_of(words: Iterable[str], sign: str = "=") -> str:
    """The reply that completes one of some words."""
    return f"COMPREPLY{sign}($(compgen -W '{' '.join(words)}' -- \"$word\"))"


def _zsh(verbs: dict[str, Completed]) -> str:
    """Through zsh's own emulation of bash's completion."""
    return (
        "#compdef headcount\n# headcount in zsh; source it from ~/.zshrc\n"
        "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + _bash(verbs)
    )


def _fish(verbs: dict[str, Completed]) -> str:
    lines = ["# headcount in fish; kept in ~/.config/fish/completions/headcount.fish"]
    lines += [
        f"complete -c headcount -n __fish_use_subcommand -f -a {verb} -d {_quoted(VERBS[verb].summary)}"
        for verb in verbs
    ]
    for verb, each in verbs.items():
        start = f"complete -c headcount -n '__fish_seen_subcommand_from {verb}'"
        lines += [f"{start} -a {_quoted(' '.join(each.names))}"] if each.names else []
        for flag in each.flags:
            takes = f" -x -a {_quoted(' '.join(each.values[flag]))}" if flag in each.values else ""
            lines.append(f"{start} -l {flag.removeprefix('--')}{takes or (' -r' if flag in each.files else '')}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS = {Shell.bash: _bash, Shell.zsh: _zsh, Shell.fish: _fish}
