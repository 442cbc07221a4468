"""What is asked of a task: every argument of `measure` in one place, and what is trained for it.

The command line and Python both make a `Request`, so that one question trains one set of models. The options of the
command line are made from its fields, and from those of the specs and the tasks.
"""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from . import recipes
from ._limits import require_within, shortened
from ._options import option
from .answer.words import listed
from .data.texts import as_texts
from .engine import HEADS_QUESTION, MAP_QUESTION, RANK_QUESTION, Sweep, joined, sweep
from .engine.sweep import TRAIN_FIELDS, require_axes_fit
from .errors import InputError, did_you_mean, require, require_count
from .models import AbstractSpec
from .registry import first_of
from .search import DEFAULT_EFFORT, EFFORTS, Question, effort_of
from .store import TrainSpec, Value
from .tasks import AbstractTask, ArrayTask
from .tasks.find import DATA_OPTIONS, find_task, task_of_object
from .tasks.presets import PRESET_OPTIONS

if TYPE_CHECKING:
    from .registry import Configurator

EVERY_COMBINATION = "Every combination, as in the papers"
TRAIN_OPTIONS = tuple(each.name for each in fields(TrainSpec) if each.name != "learning_rate")
ARRAY_OPTIONS = tuple(signature(ArrayTask.__init__).parameters)[3:]
"""What can be said about x and y: the keywords of `ArrayTask`."""
TABLE_OPTIONS = ("targets", "sequence", "tokens")
TASK_OPTIONS = tuple(dict.fromkeys((*PRESET_OPTIONS, *DATA_OPTIONS, *ARRAY_OPTIONS)))
OPTIONS = (*TRAIN_OPTIONS, *recipes.MODEL_OPTIONS, *TASK_OPTIONS)

SEVERAL = "a sequence of values, such as [1, 2, 4]"
_TOP, _SEEDS = recipes.TOP_HEADS, recipes.HEADS[-1]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A task and what is tried on it; None takes the recipe's value. See `measure` for the fields.

    Raises:
        InputError: Fields contradict each other, or one is out of range.
    """

    task: AbstractTask
    heads: Sequence[int] | None = option(
        None, f"Head counts: 1:6, or 1,2,4,8 (default: 1:{_TOP} and more if needed, with --seeds 1:{_SEEDS})."
    )
    ranks: Sequence[int] | None = option(
        None, "Query and key widths to try with every head count: 1,2,4,8.", panel=EVERY_COMBINATION
    )
    kv_heads: int | Sequence[int] | None = option(
        None,
        "Sets of keys and values that heads share: 1 for all models, or 1,2,4 to try with every head count.",
        panel=EVERY_COMBINATION,
    )
    head_dims: Sequence[int] | None = option(
        None, "Value widths of a head to try with every head count: 2,4,8.", panel=EVERY_COMBINATION
    )
    lengths: Sequence[int] | None = option(
        None, f"Sequence lengths (default: {','.join(map(str, recipes.LENGTHS))}, or your data's)."
    )
    seeds: int | None = option(
        None,
        "Random starts at every head count and length, as in the papers, and nothing else.",
        panel=EVERY_COMBINATION,
    )
    effort: str | None = option(
        None,
        f"How much is tried before the answer is settled: {', '.join(EFFORTS)} (default: {DEFAULT_EFFORT}).",
        choices=tuple(EFFORTS),
    )
    minutes: float | None = option(None, "Answer after this many minutes from what has finished (exit code 4).")
    within: float | None = option(
        None,
        "Where the error falls without a sharp drop: the share of what heads gain that the fewest that are enough may "
        "give away (default: 0.1).",
    )
    library: str | None = option(
        None,
        "Also choose and train the smallest stock model of this library that does as well as larger ones: torch, hf.",
        flags="--for",
        metavar="LIBRARY",
        choices=("torch", "hf"),
    )
    learning_rates: Sequence[float] | None = option(
        None,
        "Peak learning rates; the best per seed counts (default: 0.01, images and passages 0.001).",
        panel="Training",
    )
    model: Callable[..., AbstractSpec] | None = None
    train: TrainSpec | None = None
    axes: Mapping[str, Sequence[Value]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the recipe: fields of the training and of the models."""

    @classmethod
    def from_arguments(
        cls, task: Any, y: Any = None, *, find: Callable[..., AbstractTask] = find_task, **arguments: Any
    ):
        """Return the request of these arguments of `measure`; `find` finds a task by its name."""
        of_task = {name: arguments.pop(name) for name in TASK_OPTIONS if name in arguments}
        own = {name: arguments.pop(name) for name in cls.__dataclass_fields__ if name in arguments}
        return cls(task=task_of(task, y, of_task, find), options=arguments, **own)

    def __post_init__(self):
        for name in ("heads", "ranks", "kv_heads", "head_dims", "lengths", "learning_rates"):
            values = self._groups if name == "kv_heads" else getattr(self, name)
            several = values is None or (isinstance(values, Iterable) and not isinstance(values, str))
            require(several, what=name, given=values, needed=SEVERAL)
        for groups in [self.kv_heads] if isinstance(self.kv_heads, int) else self.kv_heads or ():
            require_count("kv_heads", groups)
        for name, value in {"effort": self.effort, "minutes": self.minutes}.items() if self.combines else ():
            hint = f"{self.combines} asks for every combination, which {name} does not change; give one of the two."
            require(value is None, hint, what=f"{name} {self.combines}", given=value)
        both = self.head_dims is not None and self.options.get("head_dim") is not None
        require(not both, "give head_dim or head_dims, not both.", what="head_dim head_dims")
        effort_of(self.effort or DEFAULT_EFFORT)
        good = self.minutes is None or 0 < self.minutes < float("inf")
        require(good, what="minutes", given=self.minutes, needed="positive and finite")
        share = self.within is None or 0 <= self.within < 1
        require(share, what="within", given=self.within, needed="a share from 0 to less than 1")
        for name in self.options:
            near = did_you_mean(name, (*(set(self.__dataclass_fields__) - {"options"}), *OPTIONS))
            hint = f'unknown option "{name}".{near} Known: {", ".join(OPTIONS)}.'
            require(name in TRAIN_OPTIONS or name in recipes.MODEL_OPTIONS, hint, what=name)

    @functools.cached_property
    def configurator(self) -> "Configurator | None":
        """What chooses a model of `library`; None where none is asked for. Raises InputError where nothing can."""
        library = self.library
        if library is None:
            return None
        found = first_of(lambda each: each.configurator(library, self.task))
        require(found is not None, f'stock models are of torch or hf, got "{library}".', what="library", given=library)
        return found

    @property
    def combines(self) -> str:
        """The argument that asks for every combination from random weights; empty where none does."""
        rates = self.learning_rates
        several = {
            "seeds": self.seeds,
            "ranks": self.ranks,
            "kv_heads": self._groups,
            "head_dims": self.head_dims,
            "axes": self.axes or None,
            "learning_rates": rates if rates is not None and len(rates) > 1 else None,
        }
        return next((name for name, value in several.items() if value is not None), "")

    @functools.cached_property
    def planned(self) -> Sweep | Question:
        """What is trained: every combination where one is asked for, otherwise what the answer depends on."""
        return self._sweep() if self.combines else self._question()

    def _question(self) -> Question:
        for name, values in {"heads": self.heads, "learning_rates": self.learning_rates}.items():
            require(values is None or len(values) > 0, what=name, given=values, needed="at least one value")
        model, train = self._model_and_train()
        if self.learning_rates is not None:
            train = replace(train, learning_rate=self.learning_rates[0])
        tried = self._axes
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
            known = (*recipes.MODEL_OPTIONS, *TRAIN_FIELDS)
            hint = f'unknown axis "{axis}".{did_you_mean(axis, known)} Known: {", ".join(sorted(known))}.'
            require(axis in known, hint, what=axis)
        model, train = self._model_and_train()
        axes = self._axes | dict(self.axes or {})
        several = functools.partial(
            sweep,
            self.task,
            model=model if self.model is None else _with_rank(self.model, self.ranks),
            train=train,
            question=self._asks,
        )
        if self._groups is None:
            return several(axes=axes)
        dividing = {count: [groups for groups in self._groups if count % groups == 0] for count in axes["heads"]}
        needed = f"divisors of the head counts {', '.join(map(str, axes['heads']))}"
        require(any(dividing.values()), what="kv_heads", given=list(self._groups), needed=needed)
        parts = ({"heads": [count], "kv_heads": groups} for count, groups in dividing.items() if groups)
        return joined(several(axes=axes | part) for part in parts)

    @property
    def _axes(self) -> dict[str, Sequence[Any]]:
        """Heads, length and seed, and in between those axes of which values are given."""
        seeds = recipes.SEEDS if self.seeds is None else self.seeds
        require_count("seeds", seeds)
        require_within(f"seeds is {shortened(seeds)}", seeds, "HEADCOUNT_MAX_MODELS")
        axes = {
            "heads": self._tried_heads,
            "rank": self.ranks,
            "kv_heads": self._groups,
            "head_dim": self.head_dims,
            "length": recipes.lengths_for(self.task) if self.lengths is None else self.lengths,
            "learning_rate": self.learning_rates,
            "seed": range(seeds),
        }
        return {axis: values for axis, values in axes.items() if values is not None}

    @property
    def _groups(self) -> Sequence[int] | None:
        """Several numbers of kv_heads, an axis; one number is an option of the models."""
        return None if isinstance(self.kv_heads, int) else self.kv_heads

    @property
    def _tried_heads(self) -> Sequence[int]:
        """The head counts given, or the recipe's; of them those that divide total_dim, where any do."""
        shared = self.options.get("total_dim") if self.model is None and "heads" not in (self.axes or {}) else None
        usual = self._usual_heads
        if not isinstance(shared, int):
            return usual
        return [count for count in usual if count > 0 and shared % count == 0] or usual

    @property
    def _usual_heads(self) -> Sequence[int]:
        """The head counts given; where none are, those of the recipe that one number of kv_heads divides.

        Its first three multiples where that leaves fewer than two. With total_dim the recipe's are more, as few divide.
        """
        shared = self.kv_heads
        if self.heads is not None:
            return self.heads
        usual = recipes.HEADS if self.options.get("total_dim") is None else tuple(range(1, recipes.TOP_HEADS + 1))
        if not isinstance(shared, int) or self.model is not None or "heads" in (self.axes or {}):
            return usual
        dividing = tuple(count for count in usual if count % shared == 0)
        return dividing if len(dividing) > 1 else (shared, 2 * shared, 3 * shared)

    @property
    def _asks(self) -> str:
        if self._groups is not None or (self.head_dims is not None and len(self.head_dims) > 1):
            return MAP_QUESTION
        return RANK_QUESTION if self.ranks is not None and len(self.ranks) > 1 else HEADS_QUESTION

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not tried of what was asked for, in a line; none where all is."""
        tried = self._tried_heads
        without = {groups: [count for count in tried if count % groups] for groups in self._groups or ()}
        if isinstance(self.kv_heads, int) and self.heads is None:
            without = {self.kv_heads: [count for count in recipes.HEADS if count not in self._usual_heads]}
        words = [f"kv_heads {groups} with {listed(counts)} heads" for groups, counts in without.items() if counts]
        notes = (f"left out, as kv_heads must divide heads: {'; '.join(words)}",) if words else ()
        odd = [count for count in self._usual_heads if count not in tried]
        total = self.options.get("total_dim")
        return (*notes, f"left out, as heads must divide total_dim {total}: {listed(odd)} heads") if odd else notes

    def _model_and_train(self) -> tuple[Callable[..., AbstractSpec], TrainSpec]:
        """Return the models and the training: those given, or the recipe's with some options changed."""
        shared = {"kv_heads": self.kv_heads} if isinstance(self.kv_heads, int) else {}
        options = {name: value for name, value in {**self.options, **shared}.items() if value is not None}
        of_train = {name: value for name, value in options.items() if name in TRAIN_OPTIONS}
        of_model = {name: value for name, value in options.items() if name not in TRAIN_OPTIONS}
        for decides, names in (("train", self.train and of_train), ("model", self.model and of_model)):
            for name in names or ():
                raise InputError(f"{decides} was given, which decides {name} too; give one of the two.", what=name)
        model = recipes.model_for(self.task, **of_model) if self.model is None else self.model
        return model, recipes.train_for(self.task, **of_train) if self.train is None else self.train


def task_of(given: Any, y: Any, options: dict[str, Any], find: Callable[..., AbstractTask] = find_task) -> AbstractTask:
    """Return the task that is given, named, or made of arrays; options about data must have data to be about."""
    names = ", ".join(options)
    if isinstance(given, AbstractTask):
        require(y is None, f'the task "{given.name}" has its own targets; y goes with arrays alone.', what="y")
        about = f'the task "{given.name}" is made already; {names} belongs where it is made.'
        require(not options, about, what=" ".join(options))
        return given
    if isinstance(given, str | os.PathLike):
        named = f"{os.fspath(given)!r} is a file or a name, and brings its targets; for a file pass targets=..."
        require(y is None, f"{named} instead of y.", what="y")
        return find(given, **options)
    if y is None and isinstance(given, tuple) and len(given) == 2:
        given, y = given
    if y is not None and isinstance(given, Mapping):
        require("y" not in given, "y was given twice, in the dictionary and as y; give it once.", what="y")
        given, y = {**given, "y": y}, None
    if y is not None and as_texts(given) is not None:
        given, y = (given, y), None
    if y is None:
        unknown = [name for name in options if name not in (*ARRAY_OPTIONS, *TABLE_OPTIONS)]
        of_others = f"{', '.join(unknown)} is for named tasks, images and passages; data were given."
        require(not unknown, of_others, what=" ".join(unknown))
        return task_of_object(given, **options)
    unknown = [name for name in options if name not in ARRAY_OPTIONS]
    of_others = f"{', '.join(unknown)} is for files and named tasks; x and y were given as arrays."
    require(not unknown, of_others, what=" ".join(unknown))
    return ArrayTask(given, y, **options)


def _with_rank(model: Callable[..., AbstractSpec], ranks: Sequence[int] | None) -> Callable[..., AbstractSpec]:
    """Return a user's `model(heads)` also at a given rank."""
    if ranks is None:
        return model
    return lambda heads, rank, **fields: model(heads, **fields).with_rank(rank)
