"""The four programs that train the same model, behind one face: build it, time some steps, read its memory.

`fused` and `reference` are headcount's two back ends, `expert` is `expert_torch.py`, `plain` is `plain_torch.py`.
"""

from dataclasses import dataclass
from typing import Any

import expert_torch
import jax
import jax.numpy as jnp
import memory
import numpy as np
import own_engine
import plain_torch
import torch

from headcount import TrainSpec

GRADIENT_TOLERANCE, STEP_TOLERANCE = 1e-4, 1e-3
CHECKED_MEMBERS = 4
FORMS: dict[str, tuple[expert_torch.Form, ...]] = {"cpu": ("products",), "cuda": ("products", "sums")}
"""The forms of the expert's program that are tried; on a CPU both took the same time."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """T, the members trained in one program, and heads. The plain program trains one model, whatever the members."""

    length: int
    members: int
    heads: int = own_engine.HEADS

    def __str__(self) -> str:
        return f"T = {self.length}, {self.members:,} members, {self.heads} heads"


class Headcount:
    """headcount's program on one back end."""

    def __init__(self, case: Case, device: str, backend: str, train: TrainSpec = own_engine.TRAIN):
        self.device = device
        self.engine = own_engine.Engine(
            length=case.length, members=case.members, heads=case.heads, backend=backend, train=train
        )

    def seconds(self, steps: int) -> float:
        return self.engine.seconds_per_model_step(steps)

    def memory_bytes(self) -> int | None:
        return self.engine.peak_bytes


class Expert:
    """The compiled PyTorch program, started from weights that headcount draws."""

    def __init__(self, case: Case, device: str, engine: own_engine.Engine, form: expert_torch.Form = "products"):
        self.device, self.form = device, form
        self.problem: str | None = None
        tokens, targets = np.array(engine.stored_examples.tokens), np.array(engine.stored_examples.targets)
        weights = expert_torch.weights_of(engine.drawn_models(case.members), device)
        self.program = expert_torch.Expert(weights, tokens, targets, recipe_of(own_engine.TRAIN), form=form)
        self.program.compile()
        # Before steps are captured: a CUDA graph keeps its memory to itself.
        taken = memory.bytes_taken(device, self.program.train_step)
        self._memory = None if taken is None else self.program.held_bytes + taken
        free_memory(device)

    def seconds(self, steps: int) -> float:
        """Of steps in a CUDA graph, or launched one by one where they cannot be captured: `problem` says why."""
        if self.problem is None:
            try:
                self.program.capture()
            except RuntimeError as raised:
                self.problem = " ".join(str(raised).split())[:200]
        seconds = self.program.seconds_per_model_step(steps)
        self.program.require_finite()
        return seconds

    def memory_bytes(self) -> int | None:
        return self._memory


def fastest_expert(
    case: Case, device: str, engine: own_engine.Engine, forms: tuple[expert_torch.Form, ...] | None = None
) -> Expert:
    """The expert's program in the form that is faster here; one that fails is out of the race.

    Raises what the last form raised where none works.
    """
    forms = FORMS[device] if forms is None else forms
    if len(forms) == 1:
        return Expert(case, device, engine, forms[0])
    best, best_seconds, problem = None, float("inf"), None
    for form in forms:
        try:
            expert = Expert(case, device, engine, form)
            seconds = min(expert.seconds(10) for _ in range(3))
        except Exception as raised:  # a compiler may refuse one form and not the other
            problem = raised
            continue
        if seconds < best_seconds:
            best, best_seconds = expert, seconds
    if best is None:
        raise problem or ValueError("no form was given")
    return best


class Plain:
    """The plain PyTorch program, one model at a time."""

    def __init__(self, case: Case, device: str, engine: own_engine.Engine, warmup: int = 5):
        self.device = device
        self.settings = plain_torch.Settings(
            heads=case.heads, hidden=own_engine.HIDDEN, batch=own_engine.BATCH, warmup=warmup
        )
        self.tokens, self.targets = np.array(engine.stored_examples.tokens), np.array(engine.stored_examples.targets)

    def seconds(self, steps: int) -> float:
        return plain_torch.seconds_per_step(self.settings, self.tokens, self.targets, steps, self.device)

    def memory_bytes(self) -> int | None:
        return memory.bytes_taken(self.device, lambda: self.seconds(1))


def recipe_of(train: TrainSpec) -> expert_torch.Recipe:
    names = ("batch", "steps", "learning_rate", "warmup", "clip", "second_moment_decay")
    return expert_torch.Recipe(**{name: getattr(train, name) for name in names})


def gradient_difference(engine: own_engine.Engine, device: str) -> float:
    """The expert's gradient against that of headcount's program on the same weights and batch, relative.

    Raises `AssertionError` above 1e-4: the two would not do the same work.
    """
    examples = engine.stored_examples
    tokens, targets = examples.tokens[: engine.batch], examples.targets[: engine.batch]
    model = engine.drawn_models(min(CHECKED_MEMBERS, engine.members_count))
    weights = expert_torch.weights_of(model, device)

    def loss(model: Any) -> jax.Array:
        return engine.program.loss_one(model, tokens, targets, None)[0]

    with jax.default_matmul_precision("highest"):
        expected = jax.jit(jax.vmap(jax.grad(loss)))(jax.tree.map(jnp.asarray, model))
    expected = expert_torch.weights_of(expected, device)
    batch = (np.array(tokens), np.array(targets))
    difference = max(expert_torch.gradient_difference(weights, *batch, expected, form) for form in FORMS[device])
    assert difference <= GRADIENT_TOLERANCE, f"gradients differ by {difference:.1e}, allowed {GRADIENT_TOLERANCE:.0e}"
    return difference


def back_end_difference(one: own_engine.Engine, other: own_engine.Engine) -> float:
    """By how much the validation errors of two back ends differ after their first step, relative.

    They start from the same weights and see the same batch. Later, rounding sends training on other paths.
    Raises `AssertionError` above 1e-3: the two would not do the same work.
    """
    difference = float(np.max(np.abs(one.first_errors / other.first_errors - 1)))
    assert difference <= STEP_TOLERANCE, f"errors differ by {difference:.1e} after a step, allowed {STEP_TOLERANCE:.0e}"
    return difference


def free_memory(device: str) -> None:
    """Give back what programs that are gone have left with PyTorch."""
    if device == "cuda":
        torch.cuda.empty_cache()
