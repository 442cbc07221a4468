"""What the server adds to headcount: `headcount serve`, and the live page of a run."""

from pathlib import Path

from ..registry import LivePage, Plugin, Verb

VERBS: dict[str, Verb] = {
    "serve": Verb(
        summary="Results folders as live pages in a browser, on this machine alone.",
        group="Look",
        home="headcount.serve.cli.serve",
        examples=(
            ("headcount serve results --open", "every results folder below, in a browser"),
            ("headcount serve results/sum-of-maxima --port 8899", "one folder, at a port of your choice"),
        ),
    ),
}


class ServePlugin(Plugin):
    """Results folders in a browser."""

    verbs = VERBS

    def live_page(self, folder: Path) -> LivePage:
        from .server import ServerProcess

        return ServerProcess(folder)


PLUGIN = ServePlugin()
