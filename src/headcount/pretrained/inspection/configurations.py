"""Smaller models with one shape for all layers, measured: losses, parameters, cache, seconds, how it is stored."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..loading.describing import short_name
from ..removal.refit import refitted_in_order
from ..storing.cost import cached_bytes, seconds_per_thousand_tokens
from ..storing.plan import fitted, pruned_plan
from ..storing.preflight import LayerShape, preflight
from .inspected import kept_by_order
from .running import Fact

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..loading.load import Loaded
    from ..storing.plan import Plan
    from .facts import Subject

KEPT = (0.9, 0.75, 0.5)
"""Shares of every layer's heads that are kept, rounded to counts that the key heads can share equally."""
GROUPED = (2, 4)
"""Heads per key head, in multiples of what the original has."""
KIND = "configuration"
Values = Mapping[str, Any]
REPEATS = 3
"""Timed passes per model."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was read, so that a configuration can say which command writes it.

    `model` is None where no command can: a module or examples in memory. `length` and `examples` are those that were
    read, where other verbs would read more by themselves.
    """

    model: str | None
    data: str | None
    length: int | None = None
    examples: int | None = None
    seed: int = 0
    inspection: str | None = None

    def command(self, verb: str, *options: str, out: str) -> str:
        """The command that stores a configuration; empty where there is none."""
        if self.model is None:
            return ""
        given = {"--data": self.data, "--length": self.length, "--examples": self.examples, "--seed": self.seed or None}
        if verb == "prune":
            given["--inspection"] = self.inspection
        same = [str(part) for option, value in given.items() if value is not None for part in (option, value)]
        return shlex.join(["headcount", verb, self.model, *options, *same, "--out", f"{short_name(self.model)}-{out}"])


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A configuration before it is measured."""

    name: str
    kind: str
    command: str
    shapes: tuple[LayerShape, ...]
    plan: "Callable[[Evaluation, Loaded, Values], Plan]"


def candidates(layers: Any, asked: Asked) -> list[Candidate]:
    """The configurations worth measuring: fewer heads in every layer, fewer key heads.

    Layers of different shapes have none: no stock class stores one count for them.
    """
    shapes = {(layer.heads, layer.key_heads, layer.head_dim) for layer in layers}
    if len(shapes) != 1:
        return []
    ((heads, key_heads, head_dim),) = shapes
    step = 1 if heads == key_heads else key_heads
    counts = {max(step, round(share * heads / step) * step) for share in KEPT} - {heads}
    found = [
        Candidate(
            name=f"{count} head{'s' * (count != 1)}",
            kind="prune",
            command=asked.command("prune", "--keep", str(count), out=f"{count}-heads"),
            shapes=(LayerShape(count, count if step == 1 else key_heads, head_dim),) * len(layers),
            plan=lambda evaluation, loaded, values, count=count: pruned_equally(evaluation, loaded, values, count),
        )
        for count in sorted(counts, reverse=True)
    ]
    return found + [
        Candidate(
            name=f"{count} key head{'s' * (count != 1)}",
            kind="group",
            command=asked.command("group", "--key-heads", str(count), out=f"{count}-key-heads"),
            shapes=(LayerShape(heads, count, head_dim),) * len(layers),
            plan=lambda evaluation, loaded, _, count=count: _grouped(evaluation, loaded, count),
        )
        for ratio in GROUPED
        if key_heads % ratio == 0 and (count := key_heads // ratio) >= 1
    ]


def pruned_equally(evaluation: "Evaluation", loaded: "Loaded", values: Values, keep: int) -> "Plan":
    """The heads that each layer's own curve keeps longest, all layers refitted in order."""
    kept = [
        kept_by_order(values[f"curve/{index}"]["order"], weights.heads, weights.key_heads, weights.heads - keep)
        for index, weights in enumerate(evaluation.original)
    ]
    return _pruned_to(evaluation, loaded, kept)


def pruned_by_descent(evaluation: "Evaluation", loaded: "Loaded", values: Values, remove: int) -> "Plan":
    """Without the first heads that the descent removed, all layers refitted in order."""
    gone = {(layer, head) for layer, head in values["descent"]["removed"][:remove]}
    kept = [
        [head for head in range(weights.heads) if (index, head) not in gone]
        for index, weights in enumerate(evaluation.original)
    ]
    return _pruned_to(evaluation, loaded, kept)


def _pruned_to(evaluation: "Evaluation", loaded: "Loaded", kept: list[list[int]]) -> "Plan":
    from ..storing.changing import prune_words

    try:
        changes = refitted_in_order(evaluation, kept)
    finally:
        evaluation.settle({})
    return pruned_plan(
        evaluation.original,
        changes,
        kept,
        source_fingerprint=loaded.fingerprint,
        source=loaded.source,
        words=prune_words(evaluation.layers, kept),
    )


def _grouped(evaluation: "Evaluation", loaded: "Loaded", key_heads: int) -> "Plan":
    from ..storing.changing import group_plan

    return group_plan(evaluation, loaded, key_heads=key_heads)


def configuration_facts(subject: "Subject", loaded: "Loaded", asked: Asked) -> tuple[Fact, ...]:
    """One fact per configuration, the original first, and all of them together."""
    found = candidates(subject.evaluation.layers, asked)
    found = [each for each in found if _stored_small(loaded, each.shapes)]
    work = subject.schedule.passes["configurations"] / max(1, len(found))
    facts = [
        Fact(
            name=f"{KIND}/original",
            phase="time of the original",
            work=0.5,
            measure=lambda values: _original(subject, loaded, values),
        )
    ]
    facts += [
        Fact(
            name=f"{KIND}/{each.name}",
            phase=f"a model with {each.name}",
            work=work,
            measure=lambda values, each=each: _measured(subject, loaded, each, values),
        )
        for each in found
    ]
    if not any(each.kind == "prune" for each in found):
        facts += _zeroed_facts(subject, asked)
    names = [each.name for each in facts]
    together = Fact(
        name=f"{KIND}s", phase="configurations", work=0.0, measure=lambda values: [values[name] for name in names]
    )
    return (*facts, together)


def _zeroed_facts(subject: "Subject", asked: Asked) -> list[Fact]:
    """Where no stock class stores fewer heads: what the descent measured, with zeros; nothing is run for it."""
    return [
        Fact(
            name=f"{KIND}/{count} head{'s' * (count != 1)} zeroed",
            phase="configurations",
            work=0.0,
            measure=lambda values, count=count: _zeroed(subject, asked, values, count),
        )
        for count in subject.schedule.zeroed_counts
    ]


def _zeroed(subject: "Subject", asked: Asked, values: Values, count: int) -> dict[str, Any]:
    descent = values["descent"]
    row = descent["kept"].index(subject.schedule.size.heads - count)
    return {
        **values[f"{KIND}/original"],
        "name": f"{count} head{'s' * (count != 1)} zeroed",
        "kind": "prune",
        "losses": descent["losses"][row],
        "stored": "zeroed",
        "command": asked.command("prune", "--remove", str(count), "--zeroed", out=f"{count}-zeroed"),
        "removed": descent["removed"][:count],
    }


def _stored_small(loaded: "Loaded", shapes: tuple[LayerShape, ...]) -> bool:
    config = _config(loaded)
    return config is not None and preflight(config, shapes).possible


def _config(loaded: "Loaded") -> Any:
    from ..layers.recognising import configured

    return configured(loaded.model)[1]


def _original(subject: "Subject", loaded: "Loaded", values: Mapping[str, Any]) -> dict[str, Any]:
    model = subject.model
    return {
        "name": "original",
        "kind": "original",
        **{name: model[name] for name in ("heads", "key_heads", "head_dim", "parameters", "cache_bytes_per_token")},
        "losses": values["base"]["losses"],
        "seconds": _seconds(subject, {"original": loaded.model})["original"],
        "stored": "small",
        "command": "",
    }


def _measured(subject: "Subject", loaded: "Loaded", candidate: Candidate, values: Values) -> dict[str, Any]:
    evaluation, model = subject.evaluation, subject.model
    plan = candidate.plan(evaluation, loaded, values)
    evaluation.settle({})
    assert plan.masked is not None
    losses = evaluation.losses(dict(enumerate(plan.masked)))
    config = _config(loaded)
    check = None if config is None else plan.preflight(config)
    zeroed = check is None or check.stored == "zeroed"
    stored = [*evaluation.original] if check is None or zeroed else [fitted(each, check.shape) for each in plan.layers]
    saved = sum(before.parameters - after.parameters for before, after in zip(evaluation.original, stored, strict=True))
    models = {"original": loaded.model} | ({} if zeroed else {"stored": plan.apply(loaded.model)})
    seconds = _seconds(subject, models)
    removed = [
        [layer, head]
        for layer, kept in enumerate(plan.kept or ())
        for head in range(evaluation.layers[layer].heads)
        if head not in kept
    ]
    return {
        "name": candidate.name,
        "kind": candidate.kind,
        "heads": candidate.shapes[0].heads,
        "key_heads": candidate.shapes[0].key_heads,
        "head_dim": candidate.shapes[0].head_dim,
        "losses": losses.tolist(),
        "parameters": model["parameters"] - saved,
        "cache_bytes_per_token": cached_bytes(loaded, stored),
        "seconds": seconds[list(models)[-1]],
        "stored": "zeroed" if check is None else check.stored,
        "command": candidate.command,
        "removed": removed,
    }


def _seconds(subject: "Subject", models: Mapping[str, Any]) -> dict[str, float | None]:
    """Seconds per 1,000 tokens of each model on a held-out batch; None where the user's own loss runs the model."""
    batch = subject.evaluation.examples.held_out[0]
    if not batch.inputs:
        return dict.fromkeys(models)
    inputs = batch.inputs_on(next(next(iter(models.values())).parameters()).device)
    return dict(seconds_per_thousand_tokens(models, inputs, batch.tokens, repeats=REPEATS))
