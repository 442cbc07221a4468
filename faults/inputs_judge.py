"""What is wrong with how a bad input was answered.

A refusal is one message on stderr and exit code 2 (1 where a package or a file of results is at fault), within seconds.
It must have a way out: something the reader can do next. That is judged by form alone, see `has_way_out`: it finds
messages that only complain, not advice that is wrong.
"""

import re
from typing import NamedTuple

from tests.helpers.commands import Result

FAULTS = ("traceback", "exit code", "no way out", "too slow")
SECONDS = 10
"""In which an answer must be there; a bomb that is being read takes longer."""

VERBS = (
    "add|ask|begin|break|change|check|choose|close|compress|convert|crop|cut|delete|divide|download|drop|escape|fill|fix|free|"
    "give|install|keep|leave|list|lower|make|mount|move|name|open|pad|pass|point|put|quote|raise|remove|rename|repeat|replace|"
    "resize|restore|run|save|say|see|select|set|shorten|spell|split|start|subtract|train|try|turn|unpack|unset|update|upgrade|use|"
    "wait|write"
)
WAYS_OUT = (
    r"--[a-z]",  # an option to use
    r"`[^`]+`",  # a command or an expression
    r"pip install",
    r"\bHEADCOUNT_[A-Z_]+",  # a setting that raises a limit
    r"Known: |Did you mean |[Tt]he verbs: |it takes: |converts it:",
    r"\b(?:must|may|can) (?:all |both |only )?(?:be|have|hold|lie|list|look|match|not|start|end|come|name|say)\b",
    r"\b(?:is|are) needed\b|\bneeds? (?:an?|one|at least|the)\b",
    rf"(?:^|[;:.,(] |\b(?:or|and|to|then|so) )(?:{VERBS})\b",  # an imperative at the start of a clause
)


class Verdict(NamedTuple):
    """The faults of one answer, and its message."""

    faults: tuple[str, ...]
    message: str


def has_way_out(message: str) -> bool:
    """Whether a message says what would be right, or what to do: an option, a command, a choice, or an imperative."""
    return any(re.search(pattern, message) for pattern in WAYS_OUT)


def judged(result: Result | BaseException, seconds: float, *, refused: bool, limit: float = SECONDS) -> Verdict:
    """What is wrong with an answer; `refused`: the input cannot be taken, otherwise it may be."""
    if not isinstance(result, Result):
        return Verdict(("traceback",), f"{type(result).__name__}: {result}"[:300])
    text = " ".join(result.err.split())
    message = text[text.rfind("headcount: ") :] if "headcount: " in text else text
    faults = []
    if "Traceback (most recent call last)" in result.err:
        faults.append("traceback")
    taken = result.code == 0
    asked_wrongly = result.code == 2 or (result.code == 1 and _is_not_the_request(message))
    if (taken and refused) or not (taken or asked_wrongly):
        faults.append("exit code")
    if not taken and "traceback" not in faults and not has_way_out(message):
        faults.append("no way out")
    if seconds > limit:
        faults.append("too slow")
    return Verdict(tuple(faults), message)


def _is_not_the_request(message: str) -> bool:
    """Whether a failure is about this machine or a folder of results, rather than about what was asked."""
    return bool(re.search(r"pip install|results|\.sqlite|disk|memory|folder|written|written by|download", message))
