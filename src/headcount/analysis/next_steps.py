"""What to do after an answer: why, and the command that does it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NextStep:
    """`why` is a sentence; `command` is what to run, or Python to write, or empty where no command helps."""

    why: str
    command: str = ""
