"""The program itself. A verb's module is imported when the verb is used, so that light verbs start at once.

Data goes to stdout, messages to stderr. Exit codes: 0 fine (also an answer from a part of the models, which says so), 1
failed, 2 a request that cannot be right, 3 some cells failed, 4 the time given was over before the answer was settled,
130 stopped by Ctrl-C.
"""

import contextlib
import importlib
import inspect
import json
import os
import shlex
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from .._version import __version__
from ..errors import HeadcountError, InputError, did_you_mean, require
from ..report.document import Document
from ..report.files import check_ending, write_whole
from .streams import quiet_stderr, told_stdout
from .verbs import PANELS, VERBS, with_examples

messages = Console(stderr=True)
data = Console(soft_wrap=True)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")]


class Verbs(TyperGroup):
    """The verbs, imported one at a time."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """Return a verb's name, summary and group, enough to list it."""
        if cmd_name not in VERBS:
            return None
        return TyperCommand(cmd_name, help=VERBS[cmd_name].summary, rich_help_panel=VERBS[cmd_name].group)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name = args[0] if args else ""
        if name not in VERBS and not name.startswith("-"):
            raise InputError(f'there is no verb "{name}".{did_you_mean(name, VERBS)} The verbs: {", ".join(VERBS)}.')
        return (name, command(name), args[1:]) if name in VERBS else super().resolve_command(ctx, args)


EPILOG = """Begin with: headcount measure sum-of-maxima --intrinsic-dim 3 --effort quick

Every verb has examples: headcount measure --help"""
CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    cls=Verbs,
    help="How many attention heads does a task need?",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def this_command() -> str:
    """Return what was typed, as it can be typed again."""
    return shlex.join(["headcount", *sys.argv[1:]])


def command(verb: str) -> TyperCommand:
    """Import the module of a verb and return its command."""
    module = importlib.import_module(VERBS[verb].home)
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, context_settings=app.info.context_settings
    )
    function = getattr(module, verb)
    text = with_examples(verb, inspect.getdoc(function) or "")
    alone.command(verb, help=text)(_printing(function, verb))
    only = typer.main.get_command(alone)
    assert isinstance(only, TyperCommand)
    only.params.sort(key=lambda option: PANELS.index(getattr(option, "rich_help_panel", None) or ""))
    return only


def _printing(verb: Callable[..., Any], name: str) -> Callable[..., None]:
    """Return a verb that prints what it returns, with the option `--json`, and one for a figure where it draws one."""

    def run(as_json: bool = False, figure: Path | None = None, **given: Any) -> None:
        if figure is not None:
            check_ending(figure)
        result = verb(**given)
        if result is not None:
            print_result(result, as_json=as_json, figure=figure)

    own = inspect.signature(verb)
    added: dict[str, tuple[Any, Any]] = {}
    if (drawing := VERBS[name].figure) is not None:
        flag, words = drawing
        added["figure"] = None, Annotated[Path | None, typer.Option(flag, help=words)]
    if own.return_annotation is not None:
        added["as_json"] = False, Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
    options = [
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for each, (default, annotation) in added.items()
    ]
    parameters = [*own.parameters.values(), *options]
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def print_result(result: Document | Iterable[Document], *, as_json: bool, figure: Path | None) -> None:
    """Print what a verb returns, and leave with its exit code.

    Several documents are printed as they are made, and are one list as JSON, of those that are there if one fails.
    """
    documents, chart = (result,) if isinstance(result, Document) else result, None
    if figure is not None:
        documents = list(documents)
        several = f"a figure shows one result, these are {len(documents)}; `headcount report --figures DIR` draws all."
        require(len(documents) == 1, several)
        chart = documents[0].figure_chart
    contents, code, complete = [], 0, False
    try:
        for document in documents:
            code = max(code, document.code)
            if as_json and document.form == "terminal":
                contents.append(document.as_dict())
            _print(document, as_json)
            for message in document.messages:
                say(*([message] if isinstance(message, str) else message))
        complete = True
    finally:
        if contents or (as_json and complete and not isinstance(result, Document)):
            print(json.dumps(contents[0] if isinstance(result, Document) else contents, indent=1))
    if chart is not None and figure is not None:
        from ..report.render import save_chart

        (document,) = documents
        save_chart(chart, figure, document.headline or None)
        say(f"drawn in {figure}")
    if code:
        raise typer.Exit(code)


def _print(document: Document, as_json: bool) -> None:
    """Print a document as words, or as the rows that are its data."""
    if document.form != "terminal":
        from ..report.export import rows_text

        text = rows_text(document.content(), "json" if as_json else document.form)
        if document.out is None:
            sys.stdout.write(text)
        else:
            write_whole(document.out, text.encode())
    elif not as_json or document.only_closing:
        from ..report.render.terminal import print_document

        print_document(document, messages if document.only_closing else data, None if as_json else data)


@app.callback(invoke_without_command=True)
def start(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(f"headcount {__version__}")
        raise typer.Exit


def main() -> NoReturn:
    """Run a command; a mistake or a failure ends in one sentence and an exit code, never in a traceback."""
    with quiet_stderr():
        try:
            with told_stdout(), _interruptible():
                app(standalone_mode=True)
        except HeadcountError as error:
            say(f"headcount: {error.on_command_line(_flags())}", style="red")
            sys.exit(error.exit_code)
        except OSError as error:  # a name that is too long, a folder that may not be entered
            if error.filename is None:
                raise
            name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
            say(
                f"headcount: {name[:200]} cannot be used: {error.strerror}; choose another file or folder.", style="red"
            )
            sys.exit(1)
    sys.exit(0)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Make a Ctrl-C or a polite kill a KeyboardInterrupt, which ends in exit code 130."""
    interrupted = threading.Event()

    def interrupt(number: int, frame: types.FrameType | None) -> None:
        interrupted.set()
        if frame is None or frame.f_code.co_name != "_xla_gc_callback":
            raise KeyboardInterrupt
        again = threading.Timer(0.01, os.kill, (os.getpid(), number))  # this callback would swallow the exception
        again.daemon = True
        again.start()

    _on_interrupt(interrupt)
    try:
        yield
    except HeadcountError:
        raise
    except (Exception, KeyboardInterrupt):  # matplotlib makes a TypeError of an interruption
        if not interrupted.is_set():
            raise
        sys.exit(130)
    finally:  # a Ctrl-C while Python ends interrupts nothing that matters, and has no message
        _on_interrupt(lambda *_: os._exit(130))


def _on_interrupt(handler: Callable[[int, types.FrameType | None], Any]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _flags() -> set[str]:
    """Return the flags of the verb that was typed."""
    verb = next((word for word in sys.argv[1:] if word in VERBS), None)
    return set() if verb is None else {flag for option in command(verb).params for flag in option.opts}


def say(message: str, style: str | None = None) -> None:
    """Print a message on stderr, printed as it is."""
    messages.print(message, style=style, markup=False, highlight=False, soft_wrap=True)
