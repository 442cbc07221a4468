"""What was measured: an experiment with its records, and everything one asks of it."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answer import Answer, ErrorTable, error_table
from .answer.answer import answer_of
from .answer.coverage import Coverage, coverage_of
from .answer.estimates import SUPPORT, early_record
from .errors import InputError, StoreError, did_you_mean, require
from .registry import has_cells
from .store import Experiment, Outcome, Progress, Record, Store, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import nn

    from .engine import RunSummary
    from .models import AbstractModel
    from .report.document import Document

ANY = ("seed", "start", "data_seed", "learning_rate")
"""Axes of which the best value is meant where none is given."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """An experiment of a results folder with its records. Made by `measure` and `load`.

    Args:
        experiment: The question, its axes and the coordinates of its cells.
        records: The results of those of its cells that were trained.
        folder: The results folder.
        coverage: How much of what was asked is trained: `complete`, `missing` (models), and the `command` that
            continues.
        run: How the run went that made it; None where it was loaded.
        ended: Why training ended: "settled" (nothing is missing at the answer), "rounds" (something is, after the
            last round) or "budget" (the minutes were over); empty where every combination was trained, or where it was
            loaded.
        command: What was typed, where it was measured from the command line.
        facts: What is stored with the models, by name.

    Example:
        >>> import tempfile, numpy as np, headcount as hc
        >>> measurement = hc.measure(
        ...     "max-plus-min", heads=[1, 2], lengths=[4], seeds=2, steps=4, train_examples=50,
        ...     validation_examples=20, out=tempfile.mkdtemp(), progress=False,
        ... )
        >>> measurement.table.axes
        {'heads': (1, 2), 'length': (4,), 'seed': (0, 1)}
        >>> measurement.model(heads=2, seed=0)(np.full((4, 1), 0.5)).shape
        (1,)
    """

    experiment: Experiment
    records: tuple[Record, ...]
    folder: Path
    coverage: Coverage
    run: "RunSummary | None" = None
    ended: str = ""
    command: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_run(cls, run: "RunSummary", store: Store, **fields: Any) -> "Measurement":
        """Return the whole experiment of a run, read from the open store; `fields` are further ones of it."""
        (experiment,) = (each for each in store.experiments() if each.name == run.experiment.name)
        (progress,) = (each for each in store.progress() if each.experiment == experiment.name)
        return cls.stored(experiment, store.records(), progress, store, run=run, **fields)

    @classmethod
    def stored(
        cls, experiment: Experiment, records: Iterable[Record], progress: Progress, store: Store, **fields: Any
    ) -> "Measurement":
        """Return an experiment of an open store; `records` may hold those of others."""
        facts, own = store.facts(experiment.name), tuple(experiment.own(records))
        coverage = coverage_of(progress, facts)
        return cls(experiment=experiment, records=own, folder=store.root, coverage=coverage, facts=facts, **fields)

    @functools.cached_property
    def table(self) -> ErrorTable:
        """The validation errors over the experiment's axes. `.to_dict()` and `.to_pandas()` convert it."""
        return error_table(self.experiment, self.records)

    @property
    def early(self) -> "dict[str, float] | None":
        """What the largest model looked like part-way through its training, at the first length: `heads`, after `step`
        steps and `seconds`; None where none was looked at. It is an estimate: see docs/calibration.md for its record.
        """
        record = early_record(self.records)
        return None if record is None else record.provenance["early"]

    def answer(self) -> Answer:
        """Return what the task needs, with an interval and the evidence, or that no transition was found."""
        return self._answer

    @functools.cached_property
    def _answer(self) -> Answer:
        return answer_of(self.table, self.facts)

    def support(self) -> "dict[str, Any] | None":
        """Return how many tokens the target depends on at once, as stored: the support dimension of a task that has a
        gradient, at the longest length up to 64 (`value`, `exact`), or of data an `estimate` from the gradients of
        the best model; None where neither is there. See docs/support.md.
        """
        stored = self.facts.get(SUPPORT)
        return None if stored is None or "skipped" in stored else stored

    def __str__(self) -> str:
        """Return the answer in a sentence; where it is from a part of the models, that comes first."""
        return "\n".join(filter(None, [self.coverage.warning, self.answer().sentence]))

    def __repr__(self) -> str:
        return f"<Measurement {self.experiment.name}: {len(self.records)} of {len(self.experiment.places)} cells>"

    def plot(self, path: Path | str | None = None) -> "Figure":
        """Draw the errors and the answer.

        Args:
            path: Where to save the figure, ending in .svg, .pdf or .png; None saves nothing.

        Returns:
            The matplotlib figure; as the last value of a notebook's cell it is shown.

        Raises:
            InputError: If the ending is another.
            HeadcountError: If the file cannot be written.
        """
        from .report.render.figure import draw_figure, save_figure

        figure = draw_figure(self.document.charts[0], self.document.headline)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def model(self, **coordinates: Value) -> "AbstractModel":
        """Return a trained model, as a function of one sequence of shape (length, dim), in the task's own units.

        Args:
            **coordinates: Where it lies: `heads=4, length=16, seed=0`. An axis with one value can be left out; without
                a seed, a start, a draw of the data or a learning rate, the smallest error decides.

        Returns:
            The model; `model.to_torch()` converts it.

        Raises:
            InputError: If no finished model lies there, or several lengths, ranks or other values do.
            StoreError: If its weights cannot be read.
        """
        from .models import from_arrays, spec_from_dict

        chosen = self._chosen(coordinates)
        with Store.open_for_reading(self.folder) as store:
            arrays = store.weights(chosen.cell.key)
        return from_arrays(spec_from_dict(chosen.cell.model), arrays)

    def to_torch(self, **coordinates: Value) -> "nn.Module":
        """Return a trained model as a plain `torch.nn.Module` with the same outputs; see `model` for the coordinates.

        Raises:
            InputError: As `model`, or if torch is not installed.
        """
        return self.model(**coordinates).to_torch()

    def _chosen(self, coordinates: dict[str, Value]) -> Record:
        experiment = self.experiment
        for axis, value in coordinates.items():
            hint = f"{did_you_mean(axis, experiment.axes)} The axes: {', '.join(experiment.axes)}."
            require(axis in experiment.axes, f'there is no axis "{axis}".{hint}', what=axis, given=value)
            known = experiment.values(axis)
            require(value in known, what=axis, given=value, needed=f"one of {', '.join(map(str, known))}")
        part = experiment.part(**{axis: [value] for axis, value in coordinates.items()})
        finished = [record for record in part.own(self.records) if record.outcome is Outcome.FINISHED]
        require(len(finished) > 0, f"no finished model of {experiment.name} lies at {coordinates}.")
        for axis in experiment.axes:
            tried = {part.coordinates(record.cell.key)[axis] for record in finished}
            values = [value for value in experiment.values(axis) if value in tried]
            if len(values) > 1 and axis not in ANY:
                one_of = ", ".join(map(str, values))
                raise InputError(f"give {axis}: one of {one_of}.", what=axis, needed=f"one of {one_of}")
        return min(finished, key=lambda record: record.error)

    def _repr_html_(self) -> str:
        """Return a short summary for a notebook: the answer, and the smallest error over seeds."""
        from .report.render.html import summary

        return summary(self.document)

    @functools.cached_property
    def document(self) -> "Document":
        """What a report shows, with what is stored with the models."""
        from .report.experiment import experiment_document, with_coverage

        document = experiment_document(
            self.experiment,
            self.records,
            self.facts,
            folder=str(self.folder),
            command=self.command,
            table=self.table,
            found=self.answer(),
        )
        return with_coverage(document, self.coverage)


def load(folder: Path | str) -> list[Measurement]:
    """Return the experiments of a results folder, the oldest first. Nothing is trained, and JAX is not needed.

    Args:
        folder: A folder that `measure`, `headcount measure` or `headcount reproduce` wrote.

    Returns:
        One measurement per experiment. Inspections of trained models are not among them.

    Raises:
        StoreError: If the folder holds no results or only inspections, or cannot be read.

    Example:
        >>> import headcount as hc
        >>> hc.load("nowhere")
        Traceback (most recent call last):
        headcount.StoreError: nowhere holds no results (results.sqlite is missing); `headcount measure` makes them.
    """
    folder = Path(folder)
    with Store.open_for_reading(folder) as store:
        experiments, records = store.experiments(), store.records()
        progress = {each.experiment: each for each in store.progress()}
        trained = [each for each in experiments if has_cells(each.study)]
        if experiments and not trained:
            raise StoreError(
                f"{folder} holds inspections of trained models only; `headcount show {folder} --json` has them."
            )
        return [Measurement.stored(each, records, progress[each.name], store) for each in trained]
