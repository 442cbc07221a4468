"""One compiled program per shape: many members, each a model with its own seed, steps and learning rate.

Members run one after another on a CPU (least memory, and a member's numbers do not depend on its neighbours), side by
side on a GPU.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from .._choices import Backend
from .._compile import KeptPrograms, compile_ahead, deterministic_jit, on_device
from .._shapes import AnyArray
from ..keys import named_keys
from ..models import AbstractModel
from ..store import Cell
from ..tasks import Choice
from ..tasks.objective import Grades
from .buckets import ProgramShape, spec_of
from .data import BucketData, RawExamples, StoredTokens
from .hardware import FUSED_BLOCK, TaskShape, examples_at_once
from .steps import Member, TrainState, batch_key, gradient_of, schedule
from .together import StepsRequest
from .whole_steps import Moving, Totals, WholeSteps, restored

EVALUATION_BLOCK = 256
"""Examples evaluated at a time, which bounds the memory of a validation pass; of lists of candidates, and where batches
come in parts, at most as many as in training."""
CALIBRATED = 8
"""Models calibrated at a time."""
DROPOUT = 1
"""Folded into the step's key to derive its dropout key."""


class Measured(NamedTuple):
    """Measurements of a checkpoint.

    `train_error` is the mean over the batches since the last checkpoint, each measured before its own update.
    """

    validation: Grades
    train_error: Float[Array, ""]


@KeptPrograms
def program(shape: ProgramShape, task: TaskShape, side_by_side: bool, backend: Backend = "reference") -> "Program":
    """The program of a shape; asked for again, also for another task, it is the same one, already compiled.

    The fused back end takes the shapes that it has kernels for; any other program is the reference's.
    """
    return Program(shape, task, side_by_side, backend_for(shape, backend))


def backend_for(shape: ProgramShape, backend: Backend) -> Backend:
    """The back end of a program: the reference's where the fused one has no kernels for the shape."""
    return backend if shape.model.pools and shape.train.precision == "float32" else "reference"


@dataclass(frozen=True)
class Program:
    """`start` makes the members of some cells, `advance` trains and measures them, `judge` grades them on any examples.

    Methods whose name ends in `_one` see one member.
    """

    shape: ProgramShape
    task: TaskShape
    side_by_side: bool
    backend: Backend = "reference"

    def start(
        self,
        cells: Sequence[Cell],
        data: BucketData,
        *,
        slots: int | None = None,
        trained: Sequence[AbstractModel] | None = None,
    ) -> tuple[TrainState, Member]:
        """Initial states of some cells, and of `slots` in all, the last of them empty.

        Random ones are drawn for a cell's own head count and only then padded, so they do not depend on the bucket.
        `trained` are the models that the cells start from instead, in standard units.
        """
        empty = (len(cells) if slots is None else slots) - len(cells)
        models = trained or [spec_of(cell).init(cell.seed, **self.task.model_sizes) for cell in cells]
        padded = [model.with_heads(self.shape.model.heads) for model in models]
        calibrates = type(models[0]).calibrated is not AbstractModel.calibrated
        if calibrates and data.probe is not None and trained is None:
            padded = self._calibrated(padded, on_device(np.asarray(data.probe)[:EVALUATION_BLOCK]))
        filled = [*cells, *[cells[0]] * empty]
        members = Member(
            key=named_keys([cell.seed for cell in filled], "batches"),
            learning_rate=on_device([cell.train.learning_rate for cell in filled], np.float32),
            steps=on_device([cell.train.steps for cell in filled], np.int32),
            active=on_device(np.arange(len(filled)) < len(cells)),
            heads=on_device([spec_of(cell).heads for cell in filled], np.int32),
        )
        stacked = jax.device_put(_stacked([*padded, *padded[:1] * empty]))
        moments = jax.eval_shape(jax.vmap(self._optimiser.init), stacked)
        states = TrainState(
            stacked,
            jax.tree.map(lambda part: on_device(np.zeros(part.shape, part.dtype)), moments),  # as Adam's all start
            on_device(np.zeros(len(filled), np.int32)),
            on_device(np.full(len(filled), np.inf, np.float32)),
        )
        return states, members

    def _calibrated(
        self, models: list[AbstractModel], tokens: Float[AnyArray, "examples length dim"]
    ) -> list[AbstractModel]:
        """The models scaled by some tokens, a few at a time: one program serves any number of them."""
        calibrated = []
        for first in range(0, len(models), CALIBRATED):
            part = models[first : first + CALIBRATED]
            room = _stacked([*part, *part[:1] * (CALIBRATED - len(part))])
            scaled = jax.tree.map(np.asarray, self._calibrate(room, tokens))
            calibrated += [jax.tree.map(operator.itemgetter(i), scaled) for i in range(len(part))]
        return calibrated

    def advance(self, states: TrainState, members: Member, data: BucketData, steps: int) -> tuple[TrainState, Measured]:
        """Train all members for some steps, then measure them. The old states are used up."""
        if not self.by_kernel(data):
            return self._advance(states, members, data, steps)
        request = self.request(states, members, data, steps)
        return self.measured(request, request.kernel.advance(states, members, request.stored, steps), data)

    def by_kernel(self, data: BucketData) -> bool:
        """Whether one kernel takes whole steps on these data."""
        return self._kernel is not None and isinstance(data.train, StoredTokens)

    def request(self, states: TrainState, members: Member, data: BucketData, steps: int) -> StepsRequest:
        """Return the request for `advance` by the kernel; requests of several programs may be advanced together."""
        assert self._kernel is not None
        assert isinstance(data.train, StoredTokens)
        return StepsRequest(self._kernel, states, members, data.train, steps)

    def measured(
        self, request: StepsRequest, moved: tuple[Moving, Totals], data: BucketData
    ) -> tuple[TrainState, Measured]:
        """Return the result of `advance` from that of a request."""
        return self._measure(request.states, *moved, request.members, data, request.steps)

    def compile(self, states: TrainState, members: Member, data: BucketData) -> None:
        """Compile what `advance` runs for these arguments; nothing is trained."""
        if not self.by_kernel(data):
            compile_ahead(self._advance, states, members, data, 0)
            return
        request = self.request(states, members, data, 0)
        moved = request.kernel.compile(states, members, request.stored)
        compile_ahead(self._measure, states, *moved, members, data, 0)

    @functools.cached_property
    def _advance(self) -> Callable[[TrainState, Member, BucketData, Any], tuple[TrainState, Measured]]:
        """Step by step, all in one program."""

        def advance(states: TrainState, members: Member, data: BucketData, steps):
            return self._map(
                lambda pair: self.advance_one(pair[0], pair[1], data, steps), (states, members), members.active
            )

        return deterministic_jit(advance, donate=(0,))

    @functools.cached_property
    def _measure(self) -> Callable[..., tuple[TrainState, Measured]]:
        """Measure members that a kernel has advanced."""

        def measure(states: TrainState, moving: Moving, totals, members: Member, data: BucketData, steps):
            states = restored(moving, states, steps)
            return self._map(
                lambda pair: self.measure_one(pair[0], data, pair[1], steps), (states, totals), members.active
            )

        return deterministic_jit(measure, donate=(0,), light=True)

    @functools.cached_property
    def judge(self) -> Callable[[TrainState, Member, StoredTokens | RawExamples], dict[str, Float[Array, " members"]]]:
        """Grade all members on some examples."""

        def judge(states: TrainState, members: Member, examples: StoredTokens | RawExamples):
            return self._map(lambda model: self.judge_one(model, examples), states.model, members.active)

        return deterministic_jit(judge)

    @functools.cached_property
    def _calibrate(self) -> Callable[[AbstractModel, Float[AnyArray, "examples length dim"]], AbstractModel]:
        def calibrate(models: AbstractModel, tokens: Float[Array, "examples length dim"]) -> AbstractModel:
            def one(model: AbstractModel) -> AbstractModel:
                return model.calibrated(tokens)

            return jax.vmap(one)(models) if self.side_by_side else jax.lax.map(one, models)

        return deterministic_jit(calibrate, light=True)

    def _map(self, function: Callable[[Any], Any], members: Any, active: Bool[Array, " members"]) -> Any:
        # Full float32 products: a GPU's default would round them to 10 bits and hide errors below 1e-3.
        precision = "highest" if self.shape.train.precision == "float32" else "default"
        with jax.default_matmul_precision(precision):
            return jax.vmap(function)(members) if self.side_by_side else sequential_map(function, members, active)

    @functools.cached_property
    def _optimiser(self) -> optax.GradientTransformation:
        """Flattened inside, Adam is a handful of operations on one vector instead of as many for each weight matrix."""
        train = self.shape.train
        return optax.flatten(
            optax.chain(optax.clip_by_global_norm(train.clip), optax.scale_by_adam(b2=train.second_moment_decay))
        )

    def advance_one(self, state: TrainState, member: Member, data: BucketData, steps) -> tuple[TrainState, Measured]:
        def step(_, carried):
            state, total = carried
            state, error = self.step_one(state, member, data)
            return state, total + error

        state, total = jax.lax.fori_loop(0, steps, step, (state, jnp.zeros(())))
        return self.measure_one(state, data, total, steps)

    def measure_one(self, state: TrainState, data: BucketData, total, steps) -> tuple[TrainState, Measured]:
        """The state with its best error so far, and what is recorded; `total` sums the errors of the last steps."""
        measured = Measured(self.judge_one(state.model, data.validation), total / steps / data.target_variance)
        best = jnp.fmin(state.best_error, measured.validation[self.task.objective.error])
        return state._replace(best_error=best), measured

    @functools.cached_property
    def _kernel(self) -> WholeSteps | None:
        """The kernel that takes whole steps of stored tokens; None where the back end has none for this program."""
        return WholeSteps.for_program(self.shape, self.task, self.backend)

    @functools.cached_property
    def _at_once(self) -> int:
        """Examples of a batch that are worked on at a time."""
        return examples_at_once(self.shape, self.task, side_by_side=self.side_by_side)

    def step_one(self, state: TrainState, member: Member, data: BucketData) -> tuple[TrainState, Float[Array, ""]]:
        """One step of Adam; the error is that of its batch, before the update."""
        train = self.shape.train
        key = batch_key(member.key, state.step)
        keys = jr.split(jr.fold_in(key, DROPOUT), train.batch) if self.shape.model.drops else None
        tokens, targets = data.train.batch(key, train.batch)
        error, gradient = gradient_of(self.loss_one, state.model, (tokens, targets, keys), self._at_once)
        update, moments = self._optimiser.update(gradient, state.optimiser)
        rate = member.learning_rate * schedule(state.step, member.steps, train.warmup, train.max_warmup)
        # AdamW: the decay is no part of the gradient, so Adam does not rescale it.
        decay = (
            (lambda weight: (1 - rate * train.weight_decay) * weight) if train.weight_decay else (lambda weight: weight)
        )
        model = jax.tree.map(lambda weight, change: decay(weight) - rate * change, state.model, update)
        return state._replace(model=model, optimiser=moments, step=state.step + 1), error

    def loss_one(self, model: AbstractModel, tokens: Array, targets: Array, keys: Array | None):
        """Return the loss that training lowers on a batch, and the batch's error."""
        answers = respond(self._rounded(model), self._rounded(tokens), keys, backend=self.backend)
        return self.task.objective.loss(answers, targets)

    def judge_one(self, model: AbstractModel, examples: StoredTokens | RawExamples) -> Grades:
        """The grades on all examples, some of them at a time."""
        block = FUSED_BLOCK if self.backend == "fused" else EVALUATION_BLOCK
        in_parts = isinstance(self.task.objective, Choice) or self._at_once < self.shape.train.batch
        block = min(block, self._at_once) if in_parts else block
        rounded = self._rounded(model)

        def answers(indices: Int[Array, " block"]) -> Array:
            return respond(rounded, self._rounded(jax.vmap(examples.tokens_at)(indices)), backend=self.backend)

        return self.task.objective.grades(in_blocks(answers, len(examples.targets), block), examples.targets)

    def _rounded(self, numbers: Any) -> Any:
        """Weights or tokens in the precision they are multiplied in."""
        if self.shape.train.precision == "float32":
            return numbers
        return jax.tree.map(lambda part: part.astype(jnp.bfloat16), numbers)


def _stacked(models: Sequence[AbstractModel]) -> AbstractModel:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *models)


def respond(
    model: AbstractModel,
    tokens: Float[Array, "examples *sequences length dim"],
    keys: Array | None = None,
    *,
    backend: Backend = "reference",
) -> Array:
    """The answers to some examples; the sequences of an example that has several are answered one by one."""
    if tokens.ndim == 3:
        return model.answers(tokens, keys, backend=backend)
    if keys is None:
        return jax.vmap(lambda sequences: model.answers(sequences, backend=backend))(tokens)
    return jax.vmap(lambda sequences, key: model.answers(sequences, jr.split(key, len(sequences)), backend=backend))(
        tokens, keys
    )


def in_blocks(function: Callable[[Int[Array, " block"]], Array], count: int, block: int) -> Array:
    """Apply a function of several indices to all from 0 to `count`, at most `block` of them at a time."""
    if count <= block:
        return function(jnp.arange(count))
    # The last block is filled up: a smaller one would be compiled in addition.
    indices = jnp.minimum(jnp.arange(-(-count // block) * block), count - 1)
    results = jax.lax.map(function, indices.reshape(-1, block))
    return results.reshape(-1, *results.shape[2:])[:count]


def sequential_map(function: Callable[[Any], Any], members: Any, active: Bool[Array, " members"]) -> Any:
    """`jax.lax.map` over the active members, which come first, as a loop whose length the compiler cannot know.

    A loop that is known to run once is compiled differently, with its sums in another order: a member trained alone
    would differ in its last bits from the same one among others. So there is always room for two. Of a member that is
    not active the result is zero.
    """
    count = active.shape[0]
    if count == 1:
        members = jax.tree.map(lambda part: jnp.concatenate([part, part]), members)
    one = jax.eval_shape(function, jax.tree.map(lambda part: part[0], members))
    room = jax.tree.map(lambda part: jnp.zeros((max(2, count), *part.shape), part.dtype), one)

    def turn(index: Int[Array, ""], filled: Any) -> Any:
        result = function(jax.tree.map(lambda part: part[index], members))
        return jax.tree.map(lambda everyone, own: everyone.at[index].set(own), filled, result)

    filled = jax.lax.fori_loop(0, jnp.sum(active), turn, room)
    return jax.tree.map(lambda part: part[:count], filled)
