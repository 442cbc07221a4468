"""A change as it is asked for, checked by the model's config alone, and the new folder that it is written to."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...errors import HeadcountError, InputError, require
from ..layers.weights import equal_step
from .cost import cache_bytes_per_token
from .preflight import AttentionShape, Preflight, original_shape, requested, width_of

What = Literal["output", "low-rank"]
"""What a recovery trains: the output projections, or a low-rank update of every attention projection."""


@dataclass(frozen=True)
class Source:
    """A model without its weights: its folder, its config, and the shape and number of its attention layers."""

    folder: Path
    config: Any
    layers: int
    shape: AttentionShape

    @property
    def total_heads(self) -> int:
        return self.shape.heads * self.layers

    def costs(self, check: Preflight) -> dict[str, dict[str, int]]:
        """Attention parameters, and a decoder's cached bytes per token, of the original and of what is stored."""
        width, shapes = width_of(self.config.to_dict()), {"original": self.shape, "stored": check.shape}
        costs = {
            "attention parameters": {
                name: self.layers * 2 * width * shape.head_dim * (shape.heads + shape.key_heads)
                for name, shape in shapes.items()
            }
        }
        architecture = (self.config.architectures or [""])[0]
        for name, shape in shapes.items():
            cached = cache_bytes_per_token(architecture, self.folder, [shape] * self.layers)
            if cached is not None:
                costs.setdefault("KV-cache bytes per token", {})[name] = cached
        return costs


def read_source(model: str | Path) -> Source:
    """Read the config of a model; InputError where there is none, or headcount cannot read it."""
    from ..loading.sources import found_folder, read_config

    folder = found_folder(str(model), read_config)
    config = read_config(folder)
    return Source(folder, config, config.num_hidden_layers, original_shape(config))


def kept_count(original: AttentionShape, layers: int, *, keep: int | None, remove: str | None) -> int:
    """How many heads every layer keeps: as given, or the nearest to a share ("20%") or a number of all heads ("12").

    Example:
        >>> kept_count(AttentionShape(heads=12, key_heads=12, head_dim=32), 6, keep=None, remove="20%")
        10
    """
    require((keep is None) != (remove is None), "give one of --keep and --remove.", what="keep remove")
    if keep is not None:
        return requested(original, heads=keep).heads
    assert remove is not None
    share = removed_share(remove, original.heads * layers)
    step = equal_step(original)
    return min(original.heads, max(step, round(original.heads * (1 - share) / step) * step))


def removed_share(text: str, heads: int) -> float:
    """ "20%" or "12" of all heads as a share."""
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else int(text) / heads
    except ValueError:
        raise InputError(
            what="remove", given=text, needed="a share such as 20% or a number of heads such as 12"
        ) from None
    require(0 < share < 1, what="remove", given=text, needed=f"more than none and fewer than all {heads} heads")
    return share


def free_place(out: str | Path, source: str) -> Path:
    """Resolve the folder. Raises InputError where something is there, or it is the source or inside it."""
    out = Path(out).expanduser().resolve()
    origin = Path(source).expanduser()
    if origin.is_dir():
        origin = origin.resolve()
        within = out == origin or origin in out.parents or out in origin.parents
        _refuse(out, within, f"is or overlaps the original's folder {origin}; choose another.")
    taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    _refuse(out, taken, "exists and is not an empty folder; choose another name or remove it.")
    parent = next(folder for folder in out.parents if folder.exists())
    writable = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    _refuse(out, not writable, f"cannot be written: {parent} is not writable; choose another place.")
    return out


def _refuse(out: Path, when: bool, why: str) -> None:
    require(not when, f"{out} {why}", what="out", given=str(out))


@contextmanager
def written_whole(out: Path) -> Iterator[Path]:
    """Yield a folder next to `out` that takes its place at the end, or is removed after an error."""
    folder = out.with_name(f".{out.name}.{os.getpid()}.unfinished")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(out)
        folder.mkdir()
        yield folder
        os.replace(folder, out)
    except Exception as error:
        # Of a full disk, safetensors raises an error of its own.
        if not isinstance(error, OSError) and type(error).__name__ != "SafetensorError":
            raise
        reason = getattr(error, "strerror", None) or error
        raise HeadcountError(f"{out} cannot be written: {reason}; nothing was left there.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_behind(out: Path) -> None:
    """Remove what killed processes left next to this folder."""
    for folder in out.parent.glob(f".{out.name}.*.unfinished"):
        number = folder.name.removesuffix(".unfinished").rpartition(".")[2]
        if number.isdigit() and not Path(f"/proc/{number}").exists() and os.path.isdir("/proc"):
            shutil.rmtree(folder, ignore_errors=True)
