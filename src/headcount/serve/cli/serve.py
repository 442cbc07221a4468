"""`headcount serve`: results folders as live pages."""

import contextlib
import html
import os
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from ...cli.app import data, say
from ..server import serve as serve_folder


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
            # A browser in the terminal returns when it is closed; the server has to answer it before.
            threading.Thread(target=_open, args=(address, private), name="browser", daemon=True).start()

    try:
        with tempfile.TemporaryDirectory(prefix="headcount-", ignore_cleanup_errors=True) as private:
            serve_folder(folder, port, on_ready)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _open(address: str, private: str) -> None:
    """Open a browser at a file that leads to the address: its token in a command could be read by other users."""
    target = html.escape(address)
    page = Path(private, "open.html")
    with open(page, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={target}"><a href="{target}">headcount</a>\n'
        )
    with contextlib.suppress(webbrowser.Error):  # the address is printed
        webbrowser.open(page.as_uri())
