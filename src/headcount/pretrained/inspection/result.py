"""The result of `hc.inspect`: the facts, their reading, figures, and plans of smaller models."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ...errors import InputError, require
from ...report.document import Document
from ...store import Experiment
from .facts import TOLERANCE
from .importance import MEASURES, importance_table
from .model import TrainedModel, read_trained_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..storing.plan import Plan
    from .layers import LayerReading
    from .measuring import Subject


@dataclass(frozen=True, eq=False, kw_only=True)
class Inspection:
    """The facts of a trained model. Made by `hc.inspect`.

    `facts` has plain values by name, as a results folder stores them; `folder` is None where they are in memory only.
    `tolerance` is the loss increase that is allowed, as a share of the loss's scale. `plan` needs the `subject`: the
    model and its examples.

    Example:
        >>> import torch, headcount as hc
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
        ...     num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=32)
        >>> inspection = hc.inspect(LlamaForCausalLM(config).eval(), effort="quick", length=8, examples=6)
        >>> {layer.heads for layer in inspection.layers}
        {4}
        >>> smaller = inspection.plan(keep=3).apply(inspection.model)
        >>> smaller.config.num_attention_heads
        3
    """

    facts: Mapping[str, Any]
    experiment: Experiment
    folder: Path | None = None
    tolerance: float = TOLERANCE
    command: str = ""
    subject: "Subject | None" = field(default=None, repr=False)

    @functools.cached_property
    def reading(self) -> TrainedModel:
        """The facts read at this tolerance: heads and rank needed, what can go, what is recommended."""
        return read_trained_model(self.facts, tolerance=self.tolerance)

    @property
    def layers(self) -> "tuple[LayerReading, ...]":
        return self.reading.layers

    @property
    def importance(self) -> Float[np.ndarray, "layers heads"]:
        """Importance of every head: the loss increase without it where that was measured, else an estimate of it.

        `importance_measure` names which. Layers with fewer heads end in NaN.
        """
        return importance_table(self.layers, self.importance_measure)

    @property
    def importance_measure(self) -> str:
        """The name of the measure in `importance`: the first of `MEASURES` that every layer has."""
        return next(name for name in MEASURES if all(name in layer.importance for layer in self.layers))

    @property
    def model(self) -> Any:
        """The model that was inspected, unchanged."""
        return self._subject.loaded.model

    def at(self, tolerance: float) -> "Inspection":
        """The same facts, read with another tolerance."""
        require(0 < tolerance < 1, what="tolerance", given=tolerance, needed="above 0 and below 1")
        return replace(self, tolerance=tolerance)

    def plan(
        self,
        *,
        keep: int | None = None,
        remove: int | None = None,
        key_heads: int | None = None,
        head_dim: int | None = None,
    ) -> "Plan":
        """A smaller model: `plan.apply(model)` makes it, `plan.save(path)` keeps it.

        Heads go in the order that the inspection found; there is a new search only where more heads go than the
        inspection removed from the whole model.

        Args:
            keep: Heads that every layer keeps.
            remove: Heads that go from the whole model, where they are missed least; layers keep different numbers.
            key_heads: Key heads that the heads of every layer share.
            head_dim: Width of every head's queries, keys and values.

        Raises:
            InputError: If not exactly one is given, or the model cannot have it.
        """
        options = {"keep": keep, "remove": remove, "key_heads": key_heads, "head_dim": head_dim}
        given = {name: value for name, value in options.items() if value is not None}
        require(
            len(given) == 1,
            f"a plan needs exactly one of keep, remove, key_heads and head_dim, got {', '.join(given) or 'none'}.",
        )
        from ..removal.refit import heads_left
        from ..storing.plan import group_plan, prune_plan, refitted_plan, shrink_plan
        from ..storing.preflight import requested
        from .order import kept_equally

        evaluation, order = self._subject.evaluation, self.facts.get("descent", {}).get("removed", ())
        if remove is not None and 0 < remove <= len(order):
            return refitted_plan(evaluation, heads_left(evaluation.original, order[:remove]))
        if remove is not None:
            return prune_plan(evaluation, remove=remove, uniform=False)
        shape = requested(evaluation.layers[0], heads=keep, key_heads=key_heads, head_dim=head_dim)
        if keep is not None:
            return refitted_plan(evaluation, kept_equally(self.facts, evaluation.original, shape.heads))
        if key_heads is not None:
            return group_plan(evaluation, key_heads=shape.key_heads)
        return shrink_plan(evaluation, head_dim=shape.head_dim)

    @property
    def _subject(self) -> "Subject":
        if self.subject is None:
            raise InputError("this inspection holds facts only; call hc.inspect with the model to change it.")
        return self.subject

    @functools.cached_property
    def document(self) -> Document:
        from .page import trained_model_document

        document = trained_model_document(
            self.experiment,
            self.facts,
            folder="" if self.folder is None else str(self.folder),
            command=self.command,
            tolerance=self.tolerance,
        )
        if document is None:
            raise InputError("nothing was measured yet that could be drawn.")
        return document

    def report(self, path: Path | str) -> Path:
        """Write everything as one HTML page, whole or not at all.

        Args:
            path: Where the page is written.

        Returns:
            The path.

        Raises:
            HeadcountError: If the file cannot be written.
        """
        from ...report.render import write_report

        path = Path(path)
        write_report([self.document], path, folder=str(self.folder or ""))
        return path

    def plot(self, path: Path | str | None = None) -> "Figure":
        """Draw layers and heads by importance.

        Args:
            path: Where to save the figure, ending in .svg, .pdf or .png; None saves nothing.

        Returns:
            The matplotlib figure; as the last value of a notebook's cell it is shown.

        Raises:
            InputError: If the ending is another.
            HeadcountError: If the file cannot be written.
        """
        from ...report.render.figure import draw_figure, save_figure

        figure = draw_figure(self.document.charts[0], self.document.headline)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def __str__(self) -> str:
        header = ("layer", "heads", "needed", "short of", "most important head")
        rows = [header, *map(self._row, self.layers)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        data = self.reading.data
        about = " ".join(filter(None, (str(data.get("words") or ""), str(data.get("cannot") or ""))))
        return "\n".join([self.document.headline, *([about] if about else []), "", *lines])

    def _row(self, layer: "LayerReading") -> tuple[str, ...]:
        needed = layer.needed
        words = "-" if needed is None else f"{needed.at} [{needed.low}, {needed.high}]"
        best = str(int(np.nanargmax(self.importance[layer.index])))
        return str(layer.index), str(layer.heads), words, layer.verdict or "-", best

    def __repr__(self) -> str:
        return f"<Inspection {self.experiment.name}: {len(self.facts)} facts>"
