"""Keys of cells of every kind: stored results are found by them, so that none may change unseen."""

from headcount.models import ClassTokenSpec, EncoderSpec
from headcount.papers.base import Scale
from headcount.papers.registry import STUDIES
from headcount.request import Request
from headcount.store import TrainSpec
from headcount.tasks.find import PRESETS, find_task

from ..helpers.sweeps import swept

SIZES = {
    ClassTokenSpec: {"head_dim": 2, "hidden": 4},
    EncoderSpec: {"rank": 2, "width": 4, "hidden": 4, "answered_at": "sequence"},
}
WAYS = (
    {},
    {"kv_heads": 1},
    {"window": 3},
    {"layers": 2},
    {"layers": 2, "causal": True},
    {"attention": "linear"},
    {"attention": "hard"},
    {"attention": "top-k", "top_k": 2},
)
TRAINED = ({}, {"weight_decay": 0.1}, {"steps": 7}, {"batch": 16}, {"learning_rate": 0.02})
PER_KIND = 5


def keys() -> dict[str, list[str]]:
    """The keys of the first cells of many sweeps, by what was swept."""
    made: dict[str, list[str]] = {}
    for name in PRESETS:
        task = find_task(name)
        asked = Request(task=task, heads=[1, 2], lengths=[task.length], seeds=3).planned
        made[f"task {name}"] = [cell.key for cell in asked.cells][:PER_KIND]
    for way in WAYS:
        for spec, own in SIZES.items():
            sweep = swept(model=lambda heads, spec=spec, own=own, way=way: spec(heads=heads, **own, **way))
            made[f"{spec.__name__} {way}"] = [cell.key for cell in sweep.cells][:PER_KIND]
    for settings in TRAINED:
        sweep = swept(train=TrainSpec(**{"steps": 4, "batch": 4} | settings))
        made[f"training {settings}"] = [cell.key for cell in sweep.cells][:PER_KIND]
    for name, study in STUDIES.items():
        if study.trained_by == name:
            made[f"study {name}"] = [cell.key for cell in study.sweep(Scale.SMOKE).cells][:PER_KIND]
    return made
