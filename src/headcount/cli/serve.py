"""`headcount serve`: results folders as live pages."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from ..serve.server import serve as serve_folder
from .app import data, say


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR|PARENT", help="A results folder, or one that holds some.")],
    port: Annotated[int, typer.Option(help="The port on this machine; 0 takes a free one.")] = 0,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Show results folders as live pages, on this machine alone, until Ctrl-C."""

    def on_ready(address: str) -> None:
        data.print(address, markup=False, highlight=False)
        say(f"serving {folder} to this machine alone; Ctrl-C ends it")
        if open_it:
            webbrowser.open(address)

    try:
        serve_folder(folder, port, on_ready)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
