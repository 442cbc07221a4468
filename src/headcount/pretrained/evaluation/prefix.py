"""Blocks before the first changed one are not run again: their outputs are kept. Needs torch."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class BlockOutputs:
    """Outputs of the blocks of an unchanged model, per batch, within a number of bytes.

    Where not all outputs fit, every second (third, ..) block's are kept and those between are run again. Outputs are
    recorded whenever a block runs unchanged, so nothing is run only to be recorded. A model that runs a block more than
    once per batch, or not in order, is run in full.
    """

    def __init__(self, model: nn.Module, names: Sequence[str], limit: float):
        modules = dict(model.named_modules())
        self.blocks = [modules[name] for name in names]
        self.limit = limit
        self.usable = len(set(names)) == len(names)
        self.stride: int | None = None
        self.kept: dict[int, dict[int, Any]] = {}
        self.ran = 0

    def forget_from(self, block: int) -> None:
        """Drop the outputs of this block and of all after it."""
        for outputs in self.kept.values():
            for place in [place for place in outputs if place >= block]:
                del outputs[place]

    @property
    def bytes(self) -> int:
        return sum(_bytes(output) for outputs in self.kept.values() for output in outputs.values())

    @contextmanager
    def run_batch(self, batch: int, share: float, changed: int) -> Iterator[None]:
        """Run one batch, a `share` of all, inside the `with`; blocks from `changed` on differ from the recorded."""
        if not self.usable:
            self.ran += len(self.blocks)
            yield
            return
        outputs = self.kept.setdefault(batch, {})
        start = max((place for place in outputs if place < changed), default=-1)
        calls: list[int] = []
        recorded: dict[int, Any] = {}
        hooks = []
        before = [block.__dict__.get("forward") for block in self.blocks]

        def record(place: int):
            def hook(module, arguments, output):
                calls.append(place)
                if place < changed and self._keeps(place, share, output):
                    recorded[place] = _detached(output)

            return hook

        for place, block in enumerate(self.blocks):
            if place <= start:
                block.forward = lambda *_, **__: outputs[start]
            else:
                hooks.append(block.register_forward_hook(record(place)))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            for block, forward in zip(self.blocks[: start + 1], before, strict=False):
                del block.forward
                if forward is not None:
                    block.forward = forward
        self.ran += len(calls)
        if calls != list(range(start + 1, len(self.blocks)))[: len(calls)]:
            if start >= 0:
                raise RuntimeError("the model called its blocks in another order than before")
            self.usable = False
            self.kept.clear()
        else:
            outputs.update(recorded)

    def _keeps(self, place: int, share: float, output: Any) -> bool:
        if torch.is_grad_enabled():
            return False
        if self.stride is None:
            needed = _bytes(output) / share * len(self.blocks)
            self.stride = max(1, math.ceil(needed / self.limit)) if self.limit else len(self.blocks) + 1
        return self.stride <= len(self.blocks) and (place + 1) % self.stride == 0


def _detached(output: Any) -> Any:
    if isinstance(output, Tensor):
        return output.detach()
    if isinstance(output, tuple):
        return tuple(_detached(item) for item in output)
    return output


def _bytes(output: Any) -> int:
    if isinstance(output, Tensor):
        return output.numel() * output.element_size()
    return sum(map(_bytes, output)) if isinstance(output, tuple) else 0
