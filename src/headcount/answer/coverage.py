"""How much of what was asked an answer rests on: all models of an experiment, or those that are trained so far."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..store import Progress

UNDER_WAY = ("", "budget")
"""How a question has ended that is not answered to its end: not at all, or because its minutes were over."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How much of an experiment is trained: `trained` models have finished or diverged, of those `asked` for so far.

    `command` is what was typed last, empty for a run from Python. `effort` is the stored fact of this name; it is empty
    where every combination is trained. `running`: a run is training the others now.

    Example:
        >>> part = Coverage(trained=6, asked=24, command="headcount measure TASK --seeds 4")
        >>> part.complete, part.missing
        (False, 18)
        >>> print(part.warning)
        6 of 24 models are trained; this answer is from those. To complete it, run: headcount measure TASK --seeds 4
    """

    trained: int
    asked: int
    command: str = ""
    effort: Mapping[str, Any] | None = None
    running: bool = False

    @property
    def complete(self) -> bool:
        """Whether the same command would train nothing more."""
        return not self._under_way and self.trained >= self.asked

    @property
    def missing(self) -> int:
        """Models asked for that are not trained, or that failed."""
        return max(0, self.asked - self.trained)

    @property
    def _under_way(self) -> bool:
        """Whether a question, which asks for models round by round, was stopped before it was settled."""
        return bool(self.effort) and self.effort.get("ended", "") in UNDER_WAY

    @property
    def go_on(self) -> str:
        """What completes it, in a sentence."""
        if self.running:
            return "A run is training the others now."
        if self.effort and not self._under_way:  # an earlier or another command has asked for them
            return "To complete it, run the command that asked for them; `headcount status DIR` lists the commands."
        if self.command:
            return f"To complete it, run: {self.command}"
        return "To complete it, run the same Python code again."

    @property
    def warning(self) -> str:
        """That an answer is from a part, and what completes it; empty where it is from all."""
        if self.complete:
            return ""
        if not self.missing:
            models = "1 model is" if self.trained == 1 else f"{self.trained} models are"
            return f"{models} trained, and training stopped before the answer was settled. {self.go_on}"
        of = "1 model is" if self.asked == 1 else f"{self.asked} models are"
        return f"{self.trained} of {of} trained; this answer is from those. {self.go_on}"

    def as_dict(self) -> dict[str, Any]:
        """Return JSON."""
        return {"complete": self.complete, "missing": self.missing, "command": self.command}


def coverage_of(progress: Progress, facts: Mapping[str, Any], *, running: bool = False) -> Coverage:
    """Return how much of an experiment is trained; `facts` are those stored with it."""
    effort = facts.get("effort")
    commands = [command for command, _ in progress.runs if command]
    return Coverage(
        trained=progress.done,
        asked=progress.cells,
        command=commands[-1] if commands else "",
        effort=effort if isinstance(effort, Mapping) else None,
        running=running,
    )
