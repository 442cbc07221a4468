"""What is asked of a task: every argument of `measure` in one place, and what is trained for it.

The command line and Python both make a `Request`, so that one question trains one set of models.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from typing import Any

from . import recipes
from .answer.words import listed
from .engine import HEADS_QUESTION, MAP_QUESTION, RANK_QUESTION, Sweep, joined, sweep
from .engine.fitting import require_axes_fit
from .engine.sweep import TRAIN_FIELDS
from .errors import did_you_mean, require, require_count
from .models import AbstractSpec
from .search import DEFAULT_EFFORT, Question, effort_of
from .store import TrainSpec, Value
from .tasks import AbstractTask

TRAIN_OPTIONS = tuple(each.name for each in fields(TrainSpec) if each.name != "learning_rate")
MODEL_OPTIONS = tuple(name for name in signature(recipes.model_for).parameters if name != "task")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A task and what is tried on it; None takes the recipe's value. See `measure` for the fields.

    Raises:
        InputError: Fields contradict each other, or one is out of range.
    """

    task: AbstractTask
    heads: Sequence[int] | None = None
    ranks: Sequence[int] | None = None
    kv_heads: int | Sequence[int] | None = None
    head_dims: Sequence[int] | None = None
    lengths: Sequence[int] | None = None
    seeds: int | None = None
    effort: str | None = None
    minutes: float | None = None
    learning_rates: Sequence[float] | None = None
    model: Callable[..., AbstractSpec] | None = None
    train: TrainSpec | None = None
    axes: Mapping[str, Sequence[Value]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the recipe: fields of the training and of the models."""

    def __post_init__(self):
        if isinstance(self.kv_heads, int):  # one number is an option of the models
            object.__setattr__(self, "options", {**self.options, "kv_heads": self.kv_heads})
            object.__setattr__(self, "kv_heads", None)
        for name in ("heads", "ranks", "kv_heads", "head_dims", "lengths", "learning_rates"):
            values = getattr(self, name)
            several = values is None or (isinstance(values, Iterable) and not isinstance(values, str))
            require(several, what=name, given=values, needed="a sequence of values, such as [1, 2, 4]")
        if self.combines:
            for name, value in {"effort": self.effort, "minutes": self.minutes}.items():
                hint = f"{self.combines} asks for every combination, which {name} does not change; give one of the two."
                require(value is None, hint, what=f"{name} {self.combines}", given=value)
        both = self.head_dims is not None and self.options.get("head_dim") is not None
        require(not both, "give head_dim or head_dims, not both.", what="head_dim head_dims")
        effort_of(self.effort or DEFAULT_EFFORT)
        minutes = self.minutes
        good = minutes is None or 0 < minutes < float("inf")
        require(good, what="minutes", given=minutes, needed="positive and finite")
        known = (*TRAIN_OPTIONS, *MODEL_OPTIONS)
        for name in self.options:
            arguments = [each.name for each in fields(self) if each.name != "options"]
            hint = f'unknown option "{name}".{did_you_mean(name, (*arguments, *known))} Known: {", ".join(known)}.'
            require(name in known, hint, what=name)

    @property
    def combines(self) -> str:
        """The argument that asks for every combination from random weights; empty where none does."""
        rates = self.learning_rates
        several = {
            "seeds": self.seeds,
            "ranks": self.ranks,
            "kv_heads": self.kv_heads,
            "head_dims": self.head_dims,
            "axes": self.axes or None,
            "learning_rates": rates if rates is not None and len(rates) > 1 else None,
        }
        return next((name for name, value in several.items() if value is not None), "")

    def planned(self) -> Sweep | Question:
        """What is trained: every combination where one is asked for, otherwise what the answer depends on."""
        return self._sweep() if self.combines else self._question()

    def _question(self) -> Question:
        for name, values in {"heads": self.heads, "learning_rates": self.learning_rates}.items():
            require(values is None or len(values) > 0, what=name, given=values, needed="at least one value")
        model, train = self._model_and_train()
        if self.learning_rates is not None:
            train = replace(train, learning_rate=self.learning_rates[0])
        tried = recipes.axes_for(self.task, heads=self._tried_heads, lengths=self.lengths)
        require_axes_fit({"heads": tried["heads"], "length": tried["length"]})
        asked = Question(
            task=self.task,
            model=model,
            train=train,
            heads=tuple(sorted(tried["heads"])),
            most=max(tried["heads"]),
            lengths=tuple(tried["length"]),
        )
        if self.heads is not None or not asked.removes_heads:
            return asked
        return replace(asked, heads=tuple(range(1, recipes.TOP_HEADS + 1)), most=recipes.MAX_HEADS)

    def _sweep(self) -> Sweep:
        for axis in self.axes or {} if self.model is None else ():
            known = (*MODEL_OPTIONS, *TRAIN_FIELDS)
            hint = f'unknown axis "{axis}".{did_you_mean(axis, known)} Known: {", ".join(sorted(known))}.'
            require(axis in known, hint, what=axis)
        model, train = self._model_and_train()
        tried = recipes.axes_for(
            self.task,
            heads=self._tried_heads,
            ranks=self.ranks,
            kv_heads=self._groups,
            head_dims=self.head_dims,
            lengths=self.lengths,
            seeds=self.seeds,
            learning_rates=self.learning_rates,
        )
        axes: dict[str, Sequence[Any]] = tried | dict(self.axes or {})
        several = functools.partial(
            sweep,
            self.task,
            model=model if self.model is None else _with_rank(self.model, self.ranks),
            train=train,
            question=self._asks,
        )
        if self._groups is None:
            return several(axes=axes)
        dividing = {count: groups for count, groups in self._divided(axes["heads"]).items() if groups}
        needed = f"divisors of the head counts {', '.join(map(str, axes['heads']))}"
        require(len(dividing) > 0, what="kv_heads", given=list(self._groups), needed=needed)
        return joined(several(axes=axes | {"heads": [count], "kv_heads": groups}) for count, groups in dividing.items())

    @property
    def _groups(self) -> Sequence[int] | None:
        """Several numbers of kv_heads, an axis."""
        return None if isinstance(self.kv_heads, int) else self.kv_heads

    @property
    def _tried_heads(self) -> Sequence[int] | None:
        """The head counts given; where none are, those of the recipe that one number of kv_heads divides.

        Its first three multiples where that leaves fewer than two.
        """
        shared = self.options.get("kv_heads")
        if self.heads is not None or shared is None or self.model is not None or "heads" in (self.axes or {}):
            return self.heads
        require_count("kv_heads", shared)
        dividing = tuple(count for count in recipes.HEADS if count % shared == 0)
        return dividing if len(dividing) > 1 else (shared, 2 * shared, 3 * shared)

    @property
    def _asks(self) -> str:
        if self.kv_heads is not None or (self.head_dims is not None and len(self.head_dims) > 1):
            return MAP_QUESTION
        return RANK_QUESTION if self.ranks is not None and len(self.ranks) > 1 else HEADS_QUESTION

    def _divided(self, heads: Iterable[int]) -> dict[int, list[int]]:
        """The kv_heads that divide each head count."""
        for groups in self._groups or ():
            require_count("kv_heads", groups)
        return {count: [groups for groups in self._groups or () if count % groups == 0] for count in heads}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not tried of what was asked for, in a line; none where all is."""
        tried = recipes.HEADS if self.heads is None else self.heads
        without = {
            groups: [count for count, dividing in self._divided(tried).items() if groups not in dividing]
            for groups in self._groups or ()
        }
        if self._tried_heads is not None and self.heads is None:
            skipped = [count for count in recipes.HEADS if count not in self._tried_heads]
            without = {self.options["kv_heads"]: skipped}
        words = [f"kv_heads {groups} with {listed(counts)} heads" for groups, counts in without.items() if counts]
        return (f"left out, as kv_heads must divide heads: {'; '.join(words)}",) if words else ()

    def _model_and_train(self) -> tuple[Callable[..., AbstractSpec], TrainSpec]:
        """The models and the training: those given, or the recipe's with some options changed."""
        of_train = self._given(TRAIN_OPTIONS, beside="train" if self.train is not None else "")
        of_model = self._given(MODEL_OPTIONS, beside="model" if self.model is not None else "")
        model = recipes.model_for(self.task, **of_model) if self.model is None else self.model
        return model, recipes.train_for(self.task, **of_train) if self.train is None else self.train

    def _given(self, names: Sequence[str], *, beside: str) -> dict[str, Any]:
        """Those of the options that were given; none may be, beside an argument that decides them all."""
        given = {name: self.options[name] for name in names if self.options.get(name) is not None}
        for name in given if beside else ():
            require(False, f"{beside} was given, which decides {name} too; give one of the two.", what=name)
        return given


def _with_rank(model: Callable[..., AbstractSpec], ranks: Sequence[int] | None) -> Callable[..., AbstractSpec]:
    """A user's `model(heads)` also at a given rank."""
    if ranks is None:
        return model
    return lambda heads, rank, **fields: model(heads, **fields).with_rank(rank)
