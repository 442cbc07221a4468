"""The support dimension of a task, before anything is trained."""

from pathlib import Path
from typing import Any

from .._errors import HeadcountError
from ..analysis.support import ATTACHMENT
from ..store import Store
from ..tasks import AbstractTask, ArrayTask, GeneratedTask
from .app import say


def say_support(task: AbstractTask) -> dict[str, Any] | None:
    """Say how many tokens the target depends on, and give it as JSON; None where that cannot be said.

    It is beside the question: no failure of it fails a measurement.
    """
    if not isinstance(task, GeneratedTask) or isinstance(task, ArrayTask):
        return None
    from ..theory.support import support_dim

    try:
        support = support_dim(task)
    except HeadcountError:
        return None  # a target without a gradient
    except Exception as error:  # a user's function, in a precision and at sequences that it was not written for
        say(f"support dimension not known ({type(error).__name__})")
        return None
    say(support.sentence)
    content = support.as_dict()
    return {name: value for name, value in content.items() if name not in ("witness", "gradients")}


def keep_support(folder: Path, experiment: str, support: dict[str, Any] | None) -> None:
    """Store it beside an experiment, for `show` and `report`."""
    if support is not None:
        with Store.open_for_writing(folder) as store:
            store.attach(experiment, ATTACHMENT, support)
