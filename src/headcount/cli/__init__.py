"""The command line: arguments in, data to stdout, talk to stderr. One file a group of verbs."""

from . import measure, results, studies, tasks, theory, verify
from .app import app, main

__all__ = ["app", "main", "measure", "results", "studies", "tasks", "theory", "verify"]
