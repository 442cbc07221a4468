"""The page of commands: every verb, argument and option, read from the program itself."""

import html
import re
from enum import Enum
from typing import Any

from headcount.cli.app import command
from headcount.cli.verbs import VERBS

HEADER = """\
# Commands

Read from the program when this page was built. `headcount VERB --help` prints the same in a terminal, for the version
that is installed. After `make demo` or `make docs` the program is `.venv/bin/headcount`.

Data goes to stdout, messages to stderr, so `headcount VERB .. --json > FILE` holds JSON and nothing else.

| exit code | meaning |
|---|---|
| 0 | fine |
| 1 | failed |
| 2 | a request that cannot be right: a wrong option, a file that is not data |
| 3 | some models failed to train; the others are stored |
| 4 | `--minutes` ended it before the answer was settled |
| 130 | stopped by Ctrl-C; the same command continues |

"""


def commands_page() -> str:
    """The page as Markdown."""
    return HEADER + "\n".join(_verb(verb) for verb in VERBS)


def _verb(verb: str) -> str:
    """One verb: what it does, its usage, and a table per group of options."""
    program = command(verb)
    arguments = [each for each in program.params if each.param_type_name == "argument"]
    options = [
        each for each in program.params if each.param_type_name == "option" and not getattr(each, "hidden", False)
    ]
    named = [each.metavar or each.name for each in arguments]
    words = [name if each.required else f"[{name}]" for name, each in zip(named, arguments, strict=True)]
    usage = " ".join(["headcount", verb, *words, "[OPTIONS]"])
    summary, _, rest = _paragraphs(program.help).partition("\n\n")
    text = f"## {verb}\n\n{summary}\n\n```text\n{usage}\n```\n\n" + (f"{rest}\n\n" if rest else "")
    if arguments:
        rows = [(f"`{name}`", _help(each)) for name, each in zip(named, arguments, strict=True)]
        text += _table("argument", rows)
    groups: dict[str, list[Any]] = {}
    for option in options:
        groups.setdefault(getattr(option, "rich_help_panel", None) or "", []).append(option)
    for group, members in groups.items():
        text += f"**{group}**\n\n" if group else ""
        text += _table("option", [(_flags(each), _help(each)) for each in members])
    return text + (f"{_paragraphs(program.epilog)}\n\n" if program.epilog else "")


def _flags(option: Any) -> str:
    """The ways to write an option: `--out VALUE`, `-o VALUE`."""
    value = "" if getattr(option, "is_flag", False) else f" {option.metavar or 'VALUE'}"
    return ", ".join(f"`{flag}{value}`" for flag in (*option.opts, *option.secondary_opts))


def _help(parameter: Any) -> str:
    """What it means, its default where it has one, and whether it must be given."""
    text = " ".join((parameter.help or "").split())
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    if default not in (None, False, True, "") and not callable(default):
        text += f" Default: `{default}`."
    return text + (" Must be given." if parameter.required else "")


def _table(kind: str, rows: list[tuple[str, str]]) -> str:
    lines = (f"| {_cell(name)} | {_cell(meaning)} |\n" for name, meaning in rows)
    return f"| {kind} | |\n|---|---|\n" + "".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text in which a pipe ends no cell; in code as an entity, where Markdown would show the backslash before it."""
    code = re.compile(r"`([^`]*\|[^`]*)`")
    text = code.sub(lambda found: f"<code>{html.escape(found[1]).replace('|', '&#124;')}</code>", text)
    return text.replace("|", "\\|")


def _paragraphs(text: str | None) -> str:
    """Help as Markdown: click marks blocks that must not be wrapped, which become code."""
    blocks = [block.strip("\n") for block in (text or "").split("\n\n")]
    return "\n\n".join(
        f"```text\n{block.removeprefix(chr(8)).strip(chr(10))}\n```" if block.startswith("\b") else block.strip()
        for block in blocks
    )
