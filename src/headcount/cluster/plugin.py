"""What the cluster adds to headcount: an executor on Ray."""

from typing import TYPE_CHECKING

from ..registry import Plugin

if TYPE_CHECKING:
    from ..engine import Executor


class ClusterPlugin(Plugin):
    """Training on Ray."""

    def executor(self, on: str, *, workers: int | None) -> "Executor":
        from . import ray_executor  # Ray is an extra, and takes a second to import

        return ray_executor(on, workers=workers)


PLUGIN = ClusterPlugin()
