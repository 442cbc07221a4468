"""The course of `prune`, `group` and `shrink`: check, change, losses, folder, and a table of what it cost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..._choices import require_choice
from ..._limits import MAX_OF, require_size
from ...answer.words import as_sentence
from ...cli.app import data, messages, print_json, say, this_command
from ...errors import require
from ..storing.card import table_rows
from ..storing.changing import Request, What, measured_facts, recovered, request
from ..storing.preflight import LayerShape, described, require_possible

if TYPE_CHECKING:
    from ..evaluation.evaluate import Evaluation
    from ..examples.batches import Tick
    from ..loading.load import Loaded
    from ..storing.plan import Plan

AT_BEST = (
    "layers may keep different numbers of heads, and one number is stored for all of them: that of the layer that "
    "keeps most."
)


def checked_request(
    model: str,
    shape: LayerShape,
    out: Path | None,
    *,
    zeroed: bool = False,
    at_best: bool = False,
    quiet: bool = False,
) -> Request:
    """What is stored, printed; InputError where nothing stores the request or the place is taken.

    `at_best`: the search decides how many heads are stored, at the least as many as `shape` has.
    """
    asked = request(model, shape, zeroed=zeroed)
    require_possible(asked.check)
    if at_best:
        best = f"At best {described(shape)} are stored; nothing is saved if one layer keeps all its heads."
        if shape == asked.original:
            best = "So few heads go that a layer keeps all of its heads: nothing is saved."
        asked = replace(asked, check=replace(asked.check, sentences=(AT_BEST, best)))
    if not quiet:
        say("check: " + asked.check.sentences[0])
        for each in asked.check.sentences[1:]:
            say(f"  {each}")
    if out is not None:
        from ..storing.places import free_place

        free_place(out, str(asked.folder))
    return asked


def show_dry_run(asked: Request, as_json: bool) -> None:
    """What would be stored, and what it saves."""
    costs = asked.costs()
    if as_json:
        check = asked.check
        facts = {"possible": True, "stored": check.stored, "host": check.host, "sentences": check.sentences}
        print_json(facts | {name.replace("-", " ").replace(" ", "_").lower(): each for name, each in costs.items()})
        return
    view = _table("at best" if AT_BEST in asked.check.sentences else "this model")
    for name, each in costs.items():
        view.add_row(name, *(f"{each[which]:,}" for which in ("original", "stored")))
    data.print(view)


def change(
    model: str,
    asked: Request,
    make: Callable[["Evaluation", "Loaded"], "Plan"],
    *,
    examples: str | None,
    out: Path | None,
    length: int | None,
    limit: int | None,
    seed: int,
    recover: int,
    recover_what: str,
    device: str,
    as_json: bool,
) -> None:
    """Load the model, make the plan, measure it, write the folder, and print what it cost."""
    require(out is not None, "--out FOLDER is needed to write the model; --dry-run stops before.", what="out")
    assert out is not None
    require_choice("recover_what", recover_what, get_args(What))
    require_size("recover", recover, MAX_OF["steps"])
    from ..evaluation.evaluate import Evaluation
    from ..examples.read import read_examples
    from ..layers.find import attention_layers
    from ..loading.load import load_model
    from ..storing.cost import seconds_of
    from ..storing.writing import write_folder

    zeroed = asked.check.stored == "zeroed"
    trained = None
    try:
        with ticking() as tick:
            tick(0, 1, "loading the model")
            loaded = load_model(model, device=device)
            tick(0, 1, "reading the data")
            read = read_examples(loaded, examples, length=length, limit=limit, seed=seed)
            require(
                not (recover and read.kind == "own"),
                "--recover needs data that the model reads; a loss of your own calls it itself: leave --recover out.",
                what="recover",
            )
            evaluation = Evaluation(loaded, attention_layers(loaded.model), read, tick=tick)
            tick(0, 1, "searching")
            plan = make(evaluation, loaded)
            check = require_possible(asked.check if zeroed else plan.preflight(asked.config))
            if check.stored == "padded" and not as_json:
                say(f"check of what was found: {' '.join(check.sentences)}")
            tick(0, 1, "measuring losses")
            plan = replace(plan, measured=measured_facts(plan, evaluation))
            if recover:
                how: What = recover_what  # pyright: ignore[reportAssignmentType] checked above
                trained, facts = recovered(
                    plan, loaded, evaluation, steps=recover, zeroed=zeroed, what=how, seed=seed, tick=tick
                )
                plan = replace(plan, measured=facts)
            tick(0, 1, "measuring seconds")
            changed = plan.apply(loaded.model, zeroed=zeroed) if trained is None else trained
            seconds = seconds_of({"original": loaded.model, "stored": changed})
            plan = replace(plan, measured={**plan.measured, "seconds_per_1000_tokens": seconds})
            tick(0, 1, "writing and loading again")
            for each in (loaded.model, trained):  # what is written is compared to the last bits, on the CPU
                if each is not None:
                    each.to("cpu")
            command = this_command()
            folder = write_folder(plan, loaded, out, model=trained, zeroed=zeroed, command=command)
    except KeyboardInterrupt:
        say(f"Stopped. Nothing was written to {out}.")
        raise typer.Exit(130) from None
    show_result(folder, as_json)


def show_result(folder: Path, as_json: bool) -> None:
    """The numbers of a written folder."""
    from ..storing.checking import read_record

    record = read_record(folder)
    if as_json:
        print_json({"folder": str(folder), **{name: value for name, value in record.items() if name != "probe"}})
        return
    data.print(f"[bold]{record['words']}[/bold], from {record['source']}")
    view = _table()
    for row in table_rows(record):
        view.add_row(*row)
    data.print(view)
    measured = record["measured"]
    sentences = [f"Data: {measured['data'].rstrip('.')}.", *measured["cannot"]]
    sentences += [measured["order"]] if "order" in measured else []
    for each in sentences:
        data.print(each, markup=False, highlight=False)
    if "recovery" in measured:
        data.print(as_sentence(measured["recovery"]["words"]), markup=False, highlight=False)
    data.print(record["stored_words"].replace("`", ""), markup=False, highlight=False)
    say(f"written to {folder}; loaded again, largest difference from what was measured {record['difference']:.1e}")


def _table(changed: str = "this model") -> Table:
    view = Table(box=None)
    view.add_column("")
    for column in ("original", changed):
        view.add_column(column, justify="right")
    return view


@contextmanager
def ticking() -> Iterator["Tick"]:
    """A bar on stderr that says what is being done; yields the function to tell it (done, total, words)."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("so far"), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        bar = progress.add_task("", total=None)

        def tick(done: int, total: int, words: str) -> None:
            progress.update(bar, description=words, completed=done, total=total if done else None)

        yield tick
