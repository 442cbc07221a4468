"""The part of a study that `headcount reproduce` is asked for: some values of its axes, or another training.

Values of axes leave the experiment what it is, so that another command adds to it. Fields of the effort change every
model: such cells are another experiment of the folder.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..._choices import NORM_PLACES, PRECISIONS, require_choice
from ...engine import Sweep
from ...errors import require
from ..base import ClosedFormStudy, Scale, Study
from ..rank.norms import recipes_of
from ..real_data.base import RealDataStudy

AXES = {
    "heads": "heads",
    "ranks": "rank",
    "layers": "layers",
    "multipliers": "multiplier",
    "dims": "dim",
    "lengths": "length",
    "positions": "positions",
    "seeds": "seed",
    "norms": "recipe",
    "epochs": "epochs",
}
"""The axis that an option selects values of."""
FIELDS = {"steps": "steps", "norms": "norm_first", "epochs": "epochs", "precision": "precision"}
"""The field of the effort that an option changes, where it is one of the study's `options`."""


def options_of(each: Study | ClosedFormStudy | None, scale: Scale) -> tuple[str, ...]:
    """The options that select a part of a study, by its axes, or change its training."""
    if not isinstance(each, Study):
        return ()
    axes = {axis for part in each.swept(each.efforts[scale]) for axis in (*part.axes, *part.at)}
    axes |= {"heads"} if "rank" in axes else set()  # heads share the width: the axis is the rank
    options = dict.fromkeys((*AXES, *FIELDS))
    return tuple(option for option in options if AXES.get(option) in axes or FIELDS.get(option) in each.options)


def require_taken(each: Study | ClosedFormStudy | None, name: str, scale: Scale, asked: Mapping[str, Any]) -> None:
    """Raise InputError where an option was given that the study called `name` does not take."""
    if not asked:
        return
    taken = options_of(each, scale)
    refused = [option for option in asked if option not in taken]
    right = f"it takes {_flags(taken)}" if taken else f"`headcount reproduce {name}` computes the whole study"
    words = f"{name} does not take {_flags(refused)}; {right}."
    require(not refused, words, what="".join(refused[:1]), given=refused)
    for option, choices in (("norms", NORM_PLACES), ("precision", PRECISIONS)):
        if option in asked:
            require_choice(option, asked[option], choices)


def part_of(each: Study, scale: Scale, asked: Mapping[str, Any]) -> Sweep:
    """The cells of a study that are asked for, with their experiment. Raises InputError where there are none."""
    changed = [option for option in asked if FIELDS.get(option) in each.options]
    fields = {FIELDS[option]: _field(each, option, asked[option]) for option in changed}
    whole = sweep = each.changed(scale, **fields).sweep(scale)
    for option, values in asked.items():
        if option not in changed:
            sweep = _selected(each, scale, whole, sweep, option, values)
    require(
        len(sweep.cells) > 0,
        f"no model of {each.name} at {scale} scale has all of the values asked for together; its heads share the "
        "width, so rank = width / heads.",
    )
    return sweep


def _field(each: Study, option: str, value: Any) -> Any:
    if option == "epochs":
        one = f"{each.name} is trained for one number of epochs, got {value}."
        require(len(value) == 1, one, what="epochs", given=value)
        return value[0]
    return value == "first" if option == "norms" else value


def _selected(each: Study, scale: Scale, whole: Sweep, sweep: Sweep, option: str, values: Any) -> Sweep:
    """Return the cells of `sweep` with some values along an axis; InputError where the `whole` lacks one of them."""
    axis, printed = AXES[option], each.printed if isinstance(each, RealDataStudy) else int
    if axis not in whole.experiment.axes:
        known = {heads: heads for heads in sorted({cell.model["heads"] for cell in whole.cells})}
    elif axis == "length":
        known = {printed(length): length for length in sorted(whole.experiment.values("length"))}
    else:
        known = {value: value for value in whole.experiment.values(axis)}
    if option == "seeds":
        values = [seed for seed in known if seed < values]
    elif option == "norms":
        values = recipes_of(values)
    others = [value for value in values if value not in known]
    told = f"{each.name} at {scale} scale has {option} {list(known)}, not {others}."
    require(not others, told, what=option, given=others)
    chosen = [known[value] for value in values]
    if axis in sweep.experiment.axes:
        return sweep.part(**{axis: chosen})
    return sweep.where(lambda cell: cell.model["heads"] in chosen)


def _flags(options: Iterable[str]) -> str:
    return ", ".join(f"--{option}" for option in options)
