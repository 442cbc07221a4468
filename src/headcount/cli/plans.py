"""What a run will take, before it begins: in one line, and in full for `--dry-run`."""

from pathlib import Path
from typing import Any

from ..answer import count_of_heads
from ..backends import backend_name
from ..engine import TrainingPlan, spec_of
from ..engine.train import backend_for
from ..errors import InputError
from ..report.document import Document, Grid, line
from ..report.render.words import spoken_time
from ..search.costs import Costs
from .app import say

COMPILED = "The shorter time is for programs that are already compiled."


def describe_plan(plan: TrainingPlan, folder: Path) -> str:
    """Describe a plan in one line, before the work begins."""
    if plan.settled == plan.cells:
        stored = "the model is" if plan.cells == 1 else f"all {plan.cells} models are"
        return f"{stored} already in {folder}; nothing to train"
    kept = f", {plan.settled} of them already in {folder}" if plan.settled else f" into {folder}"
    programs = _count(plan.programs, "program")
    return f"{_count(plan.cells, 'model')}{kept}, {programs}; about {time_range(plan)} on {_machine(plan)}"


def describe_costs(range_of: Costs, folder: Path, stored: int) -> str:
    """Describe in one line what asking a question may cost."""
    plan = range_of.least
    largest = max(spec_of(cell).heads for bucket in plan.buckets for cell in bucket.cells)
    least = f"; usually at least {spoken_time(plan.compiled_seconds)}"
    beginning = f", which holds {_count(stored, 'model')} of these already; the others" if stored else least
    return f"up to {count_of_heads(largest)} into {folder}{beginning} on {_machine(plan)}"


def time_range(plan: TrainingPlan) -> str:
    """Return the expected time, from programs that are compiled already to programs that are not."""
    low, high = spoken_time(plan.compiled_seconds), spoken_time(plan.seconds)
    return low if low == high else f"{low} to {high}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _machine(plan: TrainingPlan) -> str:
    """Return the device, and what computes on it."""
    return f"{_devices(plan)}, {_backend(plan)}"


def _devices(plan: TrainingPlan) -> str:
    machine = plan.machine
    return machine.description if machine.machines == 1 else f"{machine.machines} workers ({machine.description})"


def _backend(plan: TrainingPlan) -> str:
    """Return the back end as records will name it: the reference where no model has fused kernels."""
    asked = plan.machine.backend
    used = {backend_for(bucket.shape.program, asked) for bucket in plan.buckets}
    return backend_name(asked if asked in used or not used else "reference")


def costs_document(range_of: Costs, folder: Path) -> Document:
    """Show what asking a question would cost for an easy task, and for a hard one."""
    _say_if_refused(range_of.most)
    least, most = range_of
    content = {
        name: {"cells": plan.cells, "programs": plan.programs, "buckets": len(plan.buckets)} | _expected(plan)
        for name, plan in range_of._asdict().items()
    }
    rows = tuple(
        (words, str(plan.cells), f"{plan.model_steps:,}", str(plan.programs), time_range(plan), _memory(plan))
        for words, plan in zip(("an easy task", "a hard task"), range_of, strict=True)
    )
    columns = ("", "models", "model-steps", "programs", "time", "memory")
    buckets = (
        f"trained in {len(least.buckets)} to {len(most.buckets)} buckets, the longest about "
        f"{spoken_time(most.bucket_seconds)}"
    )
    stored = f"on {_machine(least)}; what is stored already is not trained again"
    grid = Grid(title=f"the plan for {folder}", columns=columns, rows=rows, align="rrrrrr")
    return Document(
        content=lambda: {"out": str(folder), **_where(least), **content},
        blocks=(grid, *map(line, (stored, buckets, COMPILED))),
        figure=lambda: None,
    )


def plan_document(plan: TrainingPlan, folder: Path) -> Document:
    """Show what a run would do: the models that train together, the costly ones first."""
    _say_if_refused(plan)
    rows = [
        {
            "length": bucket.shape.length,
            "heads": sorted({spec_of(cell).heads for cell in bucket.cells}),
            "head_dim": sorted({spec_of(cell).head_dim for cell in bucket.cells}),
            "rank": sorted({spec_of(cell).rank for cell in bucket.cells}),
            "members": len(bucket.cells),
            "steps": bucket.shape.train.steps,
        }
        for bucket in plan.buckets
    ]
    counts = {"cells": plan.cells, "already_done": plan.settled, "buckets": rows, "programs": plan.programs}
    words = [
        [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in row.values()]
        for row in rows
    ]
    lines = (
        f"{_count(plan.cells, 'model')}, {plan.settled} already done",
        f"{len(plan.buckets)} buckets (rows), the longest about {spoken_time(plan.bucket_seconds)}; "
        f"{_count(plan.programs, 'program')} to compile in about {spoken_time(plan.compile_seconds)}",
        f"about {time_range(plan)} and {_memory(plan)} on {_machine(plan)}",
        COMPILED,
    )
    columns = ("length", "heads", "head dim", "rank", "members", "steps")
    grid = Grid(title=f"the plan for {folder}", columns=columns, rows=tuple(map(tuple, words)), align="rrrrrr")
    return Document(
        content=lambda: {"out": str(folder), **counts, **_expected(plan), **_where(plan)},
        blocks=(grid, *map(line, lines)),
        figure=lambda: None,
    )


def _say_if_refused(plan: TrainingPlan) -> None:
    """Say where a plan could not be trained: one of any size can be made."""
    try:
        plan.require_trainable()
    except InputError as error:
        say(f"Training would be refused on {_machine(plan)}: {error}")


def _where(plan: TrainingPlan) -> dict[str, str]:
    return {"device": _devices(plan), "backend": _backend(plan)}


def _expected(plan: TrainingPlan) -> dict[str, Any]:
    return {
        "model_steps": plan.model_steps,
        "compile_seconds": round(plan.compile_seconds, 1),
        "compiled_seconds": round(plan.compiled_seconds, 1),
        "expected_seconds": round(plan.seconds, 1),
        "longest_bucket_seconds": round(plan.bucket_seconds, 1),
        "expected_bytes": plan.bytes,
    }


def _memory(plan: TrainingPlan) -> str:
    return f"{plan.bytes / 2**20:,.0f} MiB"
