"""The part of a study that `headcount reproduce` is asked for: some values of its axes, or a shorter training."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from typing import Any

from ..._choices import NORM_PLACES, PRECISIONS, require_choice
from ...engine import Sweep
from ...errors import require
from ...store.experiment import Value
from ..base import AbstractStudy, ClosedFormStudy, Scale
from ..rank.base import RankStudy
from ..rank.norms import NormsStudy
from ..real_data.base import RealDataStudy
from ..real_data.cifar import CifarStudy
from ..real_data.marco_epochs import MarcoEpochsStudy

REAL_DATA_AXES = {"heads": "heads", "lengths": "length"}
RANK_AXES = {
    "ranks": "rank",
    "layers": "layers",
    "multipliers": "multiplier",
    "dims": "dim",
    "lengths": "length",
    "positions": "positions",
}
"""The axis that an option selects values of."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The part of a study's cells that was asked for; None stands for all.

    Values of axes leave the experiment what it is, so that another command adds to it. `steps`, `norms`, `precision`
    and, where they are no axis, `epochs` change every model: such cells are another experiment of the folder.
    """

    heads: list[int] | None = None
    ranks: list[int] | None = None
    layers: list[int] | None = None
    multipliers: list[int] | None = None
    dims: list[int] | None = None
    lengths: list[int] | None = None
    positions: list[str] | None = None
    seeds: int | None = None
    steps: int | None = None
    norms: str | None = None
    epochs: list[int] | None = None
    precision: str | None = None

    def __post_init__(self):
        if self.norms is not None:
            require_choice("norms", self.norms, NORM_PLACES)
        if self.precision is not None:
            require_choice("precision", self.precision, PRECISIONS)

    def require_of(self, each: AbstractStudy | ClosedFormStudy | None, name: str) -> None:
        """Raise InputError where an option was given that the study called `name` does not take."""
        taken = options_of(each)
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        refused = [option for option in given if option not in taken]
        right = f"it takes {_flags(taken)}" if taken else f"`headcount reproduce {name}` trains the whole study"
        require(
            not refused,
            f"{name} does not take {_flags(refused)}; {right}.",
            what=refused[0] if refused else "",
            given=refused,
        )

    def of(self, each: AbstractStudy, scale: Scale) -> Sweep:
        """The cells of a study that are asked for, with their experiment. Raises InputError where there are none."""
        if isinstance(each, RealDataStudy):
            return self._of_real_data(each, scale)
        if isinstance(each, RankStudy):
            return self._of_rank(each, scale)
        return each.sweep(scale)

    def _of_real_data(self, each: RealDataStudy, scale: Scale) -> Sweep:
        tried = self.epochs if isinstance(each, MarcoEpochsStudy) else None
        lasting = self.epochs if tried is None else None
        require(
            lasting is None or len(lasting) == 1,
            f"{each.name} is trained for one number of epochs, got {lasting}.",
            what="epochs",
            given=lasting,
        )
        precision: Any = self.precision  # one of PRECISIONS
        changed = each.changed(scale, epochs=lasting[0] if lasting else None, precision=precision)
        sweep = changed.sweep(scale)
        if tried is not None:
            _require_known(each.name, scale, "epochs", tried, sweep.experiment.values("epochs"))
        printed = {each.printed(length): length for length in sweep.experiment.values("length")}
        _require_known(each.name, scale, "heads", self.heads, sweep.experiment.values("heads"))
        _require_known(each.name, scale, "T", self.lengths, sorted(printed))
        lengths = None if self.lengths is None else [printed[length] for length in self.lengths]
        return self._selected(sweep, {"heads": self.heads, "length": lengths, "epochs": tried})

    def _of_rank(self, each: RankStudy, scale: Scale) -> Sweep:
        kept = {axis: getattr(self, option) for option, axis in RANK_AXES.items()}
        norm_first = None if self.norms is None else self.norms == "first"
        if isinstance(each, NormsStudy):  # norms are one of its axes
            kept["recipe"] = None if self.norms is None else each.recipes_of(self.norms)
            norm_first = None
        sweep = each.changed(scale, steps=self.steps, norm_first=norm_first).sweep(scale)
        for axis, asked in kept.items():
            _require_known(each.name, scale, axis, asked, sweep.experiment.values(axis))
        _require_known(each.name, scale, "heads", self.heads, each.efforts[scale].heads)
        part = self._selected(sweep, kept)
        if self.heads is not None:  # the axis is the rank, which is the width over the heads
            part = part.where(lambda cell: cell.model["heads"] in self.heads)
        require(
            len(part.cells) > 0,
            f"no model of {each.name} at {scale} scale has all of the values asked for together; its heads share the "
            "width, so rank = width / heads.",
        )
        return part

    def _selected(self, sweep: Sweep, kept: dict[str, Any]) -> Sweep:
        chosen: dict[str, list[Value]] = {axis: values for axis, values in kept.items() if values is not None}
        if self.seeds is not None:
            chosen["seed"] = [seed for seed in sweep.experiment.values("seed") if seed < self.seeds]
        return sweep.part(**chosen)


EVERYTHING = Part()


def options_of(each: AbstractStudy | ClosedFormStudy | None) -> tuple[str, ...]:
    """The options that select a part of a study, or change its training; none of a study of which all is trained."""
    if isinstance(each, RealDataStudy):
        epochs = ("epochs",) if isinstance(each, CifarStudy | MarcoEpochsStudy) else ()
        return (*REAL_DATA_AXES, "seeds", *epochs, "precision")
    if isinstance(each, RankStudy):
        return ("heads", *RANK_AXES, "seeds", "steps", "norms")
    return ()


def _flags(options: Iterable[str]) -> str:
    return ", ".join(f"--{option}" for option in options)


def _require_known(name: str, scale: Scale, axis: str, asked: list[Any] | None, known: Collection[Value]) -> None:
    others = [value for value in asked or () if value not in known]
    require(
        not others,
        f"{name} at {scale} scale has {axis} {list(known)}, not {others}.",
        what=axis,
        given=others,
    )
