"""The course of `prune`, `group` and `shrink`: check, change, losses, folder, and a table of what it cost."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args

import typer

from ..._choices import require_choice
from ..._limits import MAX_OF, require_size
from ...answer.words import as_sentence
from ...cli.app import messages, say, this_command
from ...errors import require
from ...report.document import Document, Grid, line
from ...report.progress import worded_progress
from ..storing.card import table_rows
from ..storing.plan import measured_losses
from ..storing.preflight import AttentionShape, Preflight, preflight, require_possible
from ..storing.request import Source, What, free_place

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Tick
    from ..storing.plan import Plan

AT_BEST = (
    "layers may keep different numbers of heads, and one number is stored for all of them: that of the layer that "
    "keeps most."
)


def checked(
    source: Source, shape: AttentionShape, shared: SimpleNamespace, *, zeroed: bool = False, words: tuple[str, ...] = ()
) -> Preflight:
    """Check and say what is stored, as `words` where given; InputError where nothing stores it or `out` is taken."""
    check = require_possible(preflight(source.config, [shape] * source.layers, zeroed=zeroed))
    check = replace(check, sentences=words or check.sentences)
    say("check: " + check.sentences[0])
    for each in check.sentences[1:]:
        say(f"  {each}")
    if shared.out is not None:
        free_place(shared.out, str(source.folder))
    return check


def change(
    source: Source, check: Preflight, make: Callable[["Evaluation"], "Plan"], shared: SimpleNamespace
) -> Document:
    """Load the model, make the plan, measure it, write the folder, and say what it cost; a dry run stops before."""
    if shared.dry_run:
        return _dry_run(source, check)
    require(shared.out is not None, "--out FOLDER is needed to write the model; --dry-run stops before.", what="out")
    require_choice("recover_what", shared.recover_what, get_args(What))
    require_size("recover", shared.recover, MAX_OF["steps"])
    try:
        with worded_progress(messages) as tick:
            folder = _write(source, check, make, shared, tick)
    except KeyboardInterrupt:
        say(f"Stopped. Nothing was written to {shared.out}.")
        raise typer.Exit(130) from None
    return _written(folder)


def _write(
    source: Source,
    check: Preflight,
    make: Callable[["Evaluation"], "Plan"],
    shared: SimpleNamespace,
    tick: "Tick",
) -> Path:
    from ..evaluation.evaluate import Evaluation
    from ..examples.read import read_examples
    from ..layers.find import attention_layers
    from ..loading.load import load_model
    from ..storing.cost import seconds_of
    from ..storing.recover import recovered
    from ..storing.writing import write_folder

    tick(0, 1, "loading the model")
    loaded = load_model(shared.model, device=shared.device)
    tick(0, 1, "reading the data")
    read = read_examples(loaded, shared.examples, length=shared.length, limit=shared.limit, seed=shared.seed)
    require(
        not (shared.recover and read.kind == "own"),
        "--recover needs data that the model reads; a loss of your own calls it itself: leave --recover out.",
        what="recover",
    )
    evaluation = Evaluation(loaded, attention_layers(loaded.model), read, tick=tick)
    tick(0, 1, "searching")
    plan, zeroed, trained = make(evaluation), check.stored == "zeroed", None
    check = require_possible(check if zeroed else plan.preflight(source.config))
    if check.stored == "padded":
        say(f"check of what was found: {' '.join(check.sentences)}")
    tick(0, 1, "measuring losses")
    measured = measured_losses(plan, evaluation)
    if shared.recover:
        options = {"what": shared.recover_what, "seed": shared.seed}
        trained, measured = recovered(
            replace(plan, measured=measured), evaluation, steps=shared.recover, zeroed=zeroed, **options
        )
    tick(0, 1, "measuring seconds")
    changed = plan.apply(loaded.model, zeroed=zeroed) if trained is None else trained
    measured["seconds_per_1000_tokens"] = seconds_of({"original": loaded.model, "stored": changed})
    tick(0, 1, "writing and loading again")
    for each in (loaded.model, trained):  # what is written is compared to the last bits, on the CPU
        if each is not None:
            each.to("cpu")
    plan = replace(plan, measured=measured)
    return write_folder(plan, loaded, shared.out, model=trained, zeroed=zeroed, command=this_command())


def _dry_run(source: Source, check: Preflight) -> Document:
    """Show what would be stored, and what it saves."""
    costs = source.costs(check)
    facts: dict[str, Any] = {"possible": True, "stored": check.stored, "host": check.host}
    facts |= {"sentences": check.sentences}
    facts |= {name.replace("-", " ").replace(" ", "_").lower(): each for name, each in costs.items()}
    rows = ((name, *(f"{each[which]:,}" for which in ("original", "stored"))) for name, each in costs.items())
    stored = "at best" if AT_BEST in check.sentences else "this model"
    return Document(content=lambda: facts, blocks=(Grid(columns=("", "original", stored), rows=tuple(rows)),))


def _written(folder: Path) -> Document:
    from ..storing.checking import read_record

    record = read_record(folder)
    measured = record["measured"]
    sentences = [f"Data: {measured['data'].rstrip('.')}.", *measured["cannot"]]
    sentences += [measured["order"]] if "order" in measured else []
    sentences += [as_sentence(measured["recovery"]["words"])] if "recovery" in measured else []
    difference = f"largest difference from what was measured {record['difference']:.1e}"
    return Document(
        content=lambda: {"folder": str(folder), **{name: value for name, value in record.items() if name != "probe"}},
        blocks=(
            line((record["words"], "bold"), f", from {record['source']}"),
            Grid(columns=("", "original", "this model"), rows=tuple(table_rows(record))),
            *map(line, (*sentences, record["stored_words"].replace("`", ""))),
        ),
        messages=(f"written to {folder}; loaded again, {difference}",),
    )
