"""The support dimension of a task, before anything is trained."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...answer.support import ATTACHMENT
from ...cli.app import say
from ...store import Store
from ...tasks import AbstractTask
from ..support.stored import task_support


def say_support(task: AbstractTask, lengths: Sequence[int]) -> dict[str, Any] | None:
    """Say how many tokens the target depends on, and give it as JSON; None where there is nothing to say."""
    support = task_support(task, lengths)
    if support is not None:
        say(support.get("sentence") or f"support dimension not known ({support['skipped']})")
    return support


def keep_support(folder: Path, experiment: str, support: dict[str, Any] | None) -> None:
    """Store it beside an experiment, for `show` and `report`."""
    if support is not None:
        with Store.open_for_writing(folder) as store:
            store.put(experiment, ATTACHMENT, support)
