"""Buckets that train at the same time on a GPU, by the kernels of the fused back end.

A bucket of few members fills a small part of a GPU. So the threads that train buckets meet before each checkpoint, and
one of them starts the kernels of all. A member's numbers do not depend on what trains next to it.
"""

import contextlib
import math
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from .._compile import on_device
from ..backends.advance import Moving, join, share
from .data import StoredTokens
from .hardware import FUSED_STEPS
from .steps import Member, TrainState
from .whole_steps import Draws, Totals, WholeSteps, begin

Outcome = tuple[tuple[Moving, Totals], float]


@dataclass(frozen=True)
class StepsRequest:
    """Some members to be advanced by some steps.

    `outcome` is the result, and its share of the seconds of all that were advanced together, by members and steps.
    """

    kernel: WholeSteps
    states: TrainState
    members: Member
    stored: StoredTokens
    steps: int
    outcome: "Future[Outcome]" = field(default_factory=Future)

    @property
    def size(self) -> tuple[int, int, int]:
        """Members, batch and length."""
        return len(self.states.step), self.kernel.train.batch, self.kernel.sizes.length

    @property
    def model_steps(self) -> int:
        return self.steps * len(self.states.step)


class Together:
    """Where the threads of a run meet: `advance` waits until every thread that is `training` has asked for steps."""

    def __init__(self):
        self._changed = threading.Condition()
        self._training = 0
        self._waiting: list[StepsRequest] = []

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """The calling thread trains a bucket: others wait for its requests until it leaves."""
        with self._changed:
            self._training += 1
        try:
            yield
        finally:
            with self._changed:
                self._training -= 1
                self._changed.notify_all()

    def advance(self, request: StepsRequest) -> Outcome:
        """The outcome of a request, advanced together with those of the other threads. Raises what went wrong there."""
        with self._changed:
            self._waiting.append(request)
            self._changed.notify_all()
            self._changed.wait_for(lambda: request.outcome.done() or len(self._waiting) == self._training)
            requests = []
            if not request.outcome.done():  # the last one is here; the first thread that sees it serves all
                requests, self._waiting = self._waiting, []
        if requests:
            self._serve(requests)
        return request.outcome.result()

    def _serve(self, requests: Sequence[StepsRequest]) -> None:
        """Settle all requests; where they fail together, each one alone, so that none costs another its result."""
        # The largest first: a GPU begins only some kernels at a time, and small ones end soon wherever they begin.
        requests = sorted(requests, key=lambda request: math.prod(request.size), reverse=True)
        error = _settle(requests)
        for request in requests if error is not None else ():
            # From where it began: what the kernels work on is a copy.
            failed = _settle([request]) if len(requests) > 1 else error
            if failed is not None:
                request.outcome.set_exception(failed)
        with self._changed:
            self._changed.notify_all()


def _settle(requests: Sequence[StepsRequest]) -> BaseException | None:
    """Advance requests together and set the outcome of each; where that fails, return the error."""
    began = time.monotonic()
    try:
        results = advance_together(requests)
    except BaseException as error:  # the threads that wait for it must not wait for ever
        traceback.clear_frames(error.__traceback__)  # they hold the device's memory, which may be what ran out
        return error
    share = (time.monotonic() - began) / max(1, sum(request.model_steps for request in requests))
    for request, result in zip(requests, results, strict=True):
        request.outcome.set_result((result, share * request.model_steps))
    return None


def advance_together(requests: Sequence[StepsRequest]) -> list[tuple[Moving, Totals]]:
    """Advance all requests, some steps of each at a time; done when it returns, and also when it raises."""
    share([request.size for request in requests])
    counts = {0: on_device(0, np.int32)}
    token = counts[0]
    at = [begin(request.states, request.members, request.stored) for request in requests]
    drawn = _draws(requests, 0)
    held: list[Any] = []  # what a kernel works on lives until it is joined
    try:
        for done in range(0, max(request.steps for request in requests), FUSED_STEPS):
            held.append(drawn)
            for place, (now, rates, chosen) in drawn.items():
                kernel, tokens = requests[place].kernel, requests[place].stored.tokens
                moving, totals, heads, targets = at[place]
                steps = min(FUSED_STEPS, requests[place].steps - done)
                count = counts.setdefault(steps, on_device(steps, np.int32))
                aside = kernel.aside(moving, totals, now, heads, count, rates, chosen, tokens, targets)
                held.append(aside)
                at[place] = (aside.moving, aside.totals, heads, targets)
            drawn = _draws(requests, done + FUSED_STEPS)  # while the kernels are at work
            token = join(token)
            held.clear()
    except BaseException:
        token = join(token)  # the kernels of other calls still write to what would be released
        raise
    finally:
        jax.block_until_ready(token)
    return [(moving, totals) for moving, totals, _, _ in at]


def _draws(requests: Sequence[StepsRequest], done: int) -> dict[int, Draws]:
    """The batches of the next steps of every request that has steps left."""
    return {
        place: request.kernel.draw_steps(request.states, request.members, request.stored, done)
        for place, request in enumerate(requests)
        if done < request.steps
    }
