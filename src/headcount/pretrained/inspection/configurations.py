"""The metric `configurations`, measured: smaller models of one shape for all layers; `recommended` reads them."""

import shlex
from functools import partial
from typing import Any

from ..layers.weights import equal_step
from ..loading.describing import short_name
from ..storing.cost import cached_bytes, seconds_per_thousand_tokens
from ..storing.plan import fitted, group_plan, refitted_plan
from ..storing.preflight import AttentionShape, preflight, requested
from .measuring import Fact, Subject, Values
from .order import kept_equally

KEPT = (0.9, 0.75, 0.5)
"""Shares of every layer's heads that are kept, rounded to counts that the key heads can share equally."""
GROUPED = (2, 4)
"""Heads per key head, in multiples of what the original has."""
KIND = "configuration"
REPEATS = 3
"""Timed passes per model."""


def store_command(subject: Subject, verb: str, option: str, count: int, *flags: str, out: str) -> str:
    """The command that stores a configuration; empty where there is none."""
    if subject.read_by is None:
        return ""
    given = {**subject.read_by, "--inspection": subject.read_by.get("--inspection") if verb == "prune" else None}
    model = given.pop("model")
    same = [str(part) for name, value in given.items() if value is not None for part in (name, value)]
    words = ["headcount", verb, model, option, str(count), *flags, *same, "--out", f"{short_name(model)}-{count}-{out}"]
    return shlex.join(words)


def configuration_facts(subject: Subject) -> list[Fact]:
    """One fact per configuration, the original first, and all of them together.

    Smaller ones have fewer heads in every layer, or fewer key heads. Where no stock class stores fewer heads, those
    that the descent measured are configurations with zeros.
    """
    changed = _stored_shapes(subject)
    work = subject.schedule.passes["configurations"] / max(1, len(changed))
    measured = [("original", "time of the original", 0.5, partial(_original, subject))]
    for verb, shape in changed:
        name = _configuration_name(verb, shape)
        measured.append(
            (name, f"a model with {name}", work, partial(_measure_configuration, subject, verb=verb, shape=shape))
        )
    for count in () if any(verb == "prune" for verb, _ in changed) else subject.schedule.zeroed_counts:
        name = f"{_counted(count, 'head')} zeroed"
        measured.append((name, "configurations", 0.0, partial(_zeroed, subject, count=count)))
    facts = [Fact(name=f"{KIND}/{name}", phase=phase, work=work, measure=do) for name, phase, work, do in measured]

    def together(values: Values) -> list[Any]:
        return [values[fact.name] for fact in facts]

    return [*facts, Fact(name=f"{KIND}s", phase="configurations", work=0.0, measure=together)]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _configuration_name(verb: str, shape: AttentionShape) -> str:
    return _counted(shape.heads, "head") if verb == "prune" else _counted(shape.key_heads, "key head")


def _config(subject: Subject) -> Any:
    from ..layers.find import configured

    return configured(subject.loaded.model)[1]


def _stored_shapes(subject: Subject) -> list[tuple[str, AttentionShape]]:
    """The verb and the shape of every configuration that a stock class stores, fewer heads first, the largest first.

    None where layers have different shapes: no stock class stores one count for them.
    """
    layers, config = subject.evaluation.layers, _config(subject)
    shapes = {AttentionShape(layer.heads, layer.key_heads, layer.head_dim) for layer in layers}
    if len(shapes) != 1 or config is None:
        return []
    (original,) = shapes
    step = equal_step(original)
    counts = {max(step, round(share * original.heads / step) * step) for share in KEPT} - {original.heads}
    fewer = [("prune", requested(original, heads=count)) for count in sorted(counts, reverse=True)]
    shared = [original.key_heads // ratio for ratio in GROUPED if original.key_heads % ratio == 0]
    fewer += [("group", requested(original, key_heads=key_heads)) for key_heads in shared]
    return [(verb, shape) for verb, shape in fewer if preflight(config, [shape] * len(layers)).possible]


def _original(subject: Subject, values: Values) -> dict[str, Any]:
    names = ("heads", "key_heads", "head_dim", "parameters", "cache_bytes_per_token")
    return {
        "name": "original",
        "kind": "original",
        **{name: subject.model[name] for name in names},
        "losses": values["base"]["losses"],
        "seconds": _seconds(subject, {"original": subject.loaded.model})["original"],
        "stored": "small",
        "command": "",
    }


def _measure_configuration(subject: Subject, values: Values, verb: str, shape: AttentionShape) -> dict[str, Any]:
    evaluation, loaded = subject.evaluation, subject.loaded
    if verb == "prune":
        plan = refitted_plan(evaluation, kept_equally(values, evaluation.original, shape.heads))
        command = store_command(subject, "prune", "--keep", shape.heads, out="heads")
    else:
        plan = group_plan(evaluation, key_heads=shape.key_heads)
        command = store_command(subject, "group", "--key-heads", shape.key_heads, out="key-heads")
    evaluation.settle({})
    losses = evaluation.losses(dict(enumerate(plan.masked)))
    check = plan.preflight(_config(subject))
    zeroed = check.stored == "zeroed"
    stored = [*evaluation.original] if zeroed else [fitted(each, check.shape) for each in plan.layers]
    saved = sum(before.parameters - after.parameters for before, after in zip(evaluation.original, stored, strict=True))
    models = {"original": loaded.model} | ({} if zeroed else {"stored": plan.apply(loaded.model)})
    removed = [
        [layer, head]
        for layer, kept in enumerate(plan.kept or ())
        for head in range(evaluation.layers[layer].heads)
        if head not in kept
    ]
    return {
        "name": _configuration_name(verb, shape),
        "kind": plan.kind,
        **vars(shape),
        "losses": losses.tolist(),
        "parameters": subject.model["parameters"] - saved,
        "cache_bytes_per_token": cached_bytes(loaded, stored),
        "seconds": list(_seconds(subject, models).values())[-1],
        "stored": check.stored,
        "command": command,
        "removed": removed,
    }


def _zeroed(subject: Subject, values: Values, count: int) -> dict[str, Any]:
    """A configuration of the descent, stored with zeros; nothing is run for it."""
    descent = values["descent"]
    row = descent["kept"].index(subject.schedule.heads - count)
    return {
        **values[f"{KIND}/original"],
        "name": f"{_counted(count, 'head')} zeroed",
        "kind": "prune",
        "losses": descent["losses"][row],
        "stored": "zeroed",
        "command": store_command(subject, "prune", "--remove", count, "--zeroed", out="zeroed"),
        "removed": descent["removed"][:count],
    }


def _seconds(subject: Subject, models: dict[str, Any]) -> dict[str, float | None]:
    """Seconds per 1,000 tokens of each model on a held-out batch; None where the user's own loss runs the model."""
    batch = subject.examples.held_out[0]
    if not batch.inputs:
        return dict.fromkeys(models)
    inputs = batch.inputs_on(next(next(iter(models.values())).parameters()).device)
    return dict(seconds_per_thousand_tokens(models, inputs, batch.tokens, repeats=REPEATS))
