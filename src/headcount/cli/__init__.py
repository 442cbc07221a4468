"""The command line: arguments in, data to stdout, talk to stderr. One file a group of verbs."""

from . import collide, measure, results, studies, tasks, theory, verify
from .app import app, main

__all__ = ["app", "collide", "main", "measure", "results", "studies", "tasks", "theory", "verify"]
