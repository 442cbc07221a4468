"""The command line: arguments in, data to stdout, messages to stderr. One file per verb."""

from .app import app, main

__all__ = ["app", "main"]
