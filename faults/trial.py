"""One results folder that is disturbed again and again, and what must hold each time."""

import shutil
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .checks import Contents, Events, Problem, compare, lost, quiet, read, refused, twice
from .processes import KILLED, Ended, Scratch, Warm

SWEEP = (
    *("measure", "max-plus-min", "--heads", "1,2", "--seeds", "12", "--lengths", "4", "--steps", "40", "--batch", "4"),
    *("--head-dim", "2", "--hidden", "4", "--train-examples", "24", "--validation-examples", "20"),
)
"""24 cells; with 3 members per bucket that are 8 buckets of one program."""
SWEEP_CELLS = 24
LOOP = ("commit-loop",)
LOOP_CELLS = 8


@dataclass(frozen=True)
class Subject:
    """A command that fills a results folder, and what it gives when nothing disturbs it."""

    command: Callable[[Path], tuple[object, ...]]
    folder: Path
    contents: Contents
    exports: tuple[str, str]


def sweep_command(folder: Path) -> tuple[object, ...]:
    return (*SWEEP, "--out", folder)


def loop_command(folder: Path) -> tuple[object, ...]:
    return (*LOOP, folder)


def undisturbed(warm: Warm, command: Callable[[Path], tuple[object, ...]], cells: int) -> Subject:
    """Run a command once, in peace; a campaign without it would compare with nothing."""
    folder = warm.scratch.new() / "results"
    ended = warm.run(*command(folder))
    contents, problems = read(folder)
    if ended.code or problems or len(contents.cells) != cells:
        raise RuntimeError(f"the undisturbed run failed: {len(contents.cells)} of {cells} cells, {problems}: {ended}")
    return Subject(command, folder, contents, exports(warm, folder))


def exports(warm: Warm, folder: Path) -> tuple[str, str]:
    """Both forms of `headcount export`."""
    csv, json = (warm.run("export", folder, "--format", form) for form in ("csv", "json"))
    return (csv.out, json.out)


@dataclass(frozen=True)
class Bench:
    """What a kind of fault works with: a warm process (for one thread), undisturbed runs, whether there is time."""

    scratch: Scratch
    warm: Warm
    sweep: Subject
    loop: Subject
    long: bool = False


class Trial:
    """A folder and what is known of it: which cells are settled, and which events have been looked at."""

    def __init__(self, bench: Bench, subject: Subject | None = None, *, folder: Path | None = None):
        self.bench, self.subject = bench, subject or bench.sweep
        self.place = bench.scratch.new()
        self.folder, self.log = folder or self.place / "results", self.place / "log"
        self.settled: frozenset[str] = frozenset()
        self.problems: list[Problem] = []
        self._looked_at = 0

    @property
    def command(self) -> tuple[object, ...]:
        return self.subject.command(self.folder)

    def environment(self, **variables: object) -> dict[str, str]:
        return {"FAULTS_LOG": str(self.log)} | {name: str(value) for name, value in variables.items()}

    def run(self, *, during: Callable[[int], None] | None = None, file_bytes: int = 0, **variables: object) -> Ended:
        """The command, with these variables in its environment."""
        environment = self.environment(**variables)
        return self.bench.warm.run(*self.command, environment=environment, during=during, file_bytes=file_bytes)

    def events(self) -> Events:
        return Events.of(self.log)

    def check(self, *runs: Ended) -> list[Problem]:
        """What is wrong after a fault: all that must hold whatever happened."""
        events = self.events()
        fresh = events.since(self._looked_at)
        self._looked_at = len(events.lines)
        contents, problems = read(self.folder)
        problems += [problem for ended in runs for problem in quiet(ended)]
        problems += twice(fresh, self.settled)
        problems += lost(self.settled | fresh.keys("committed"), contents)
        problems += compare(contents, self.subject.contents)
        self.settled = contents.keys
        return self.noted(problems)

    def killed(self, *runs: Ended, surely: bool = False) -> list[Problem]:
        """The same, after runs that were to be killed; they may have been too fast for it, unless it was `surely`."""
        allowed = {KILLED, -signal.SIGKILL} if surely else {KILLED, -signal.SIGKILL, 0}
        return self.check(*runs) + self.noted(
            Problem("not completed", f"exit code {ended.code} instead of a kill: {ended.err[-1500:]}")
            for ended in runs
            if ended.code not in allowed
        )

    def refused(self, ended: Ended, *codes: int) -> list[Problem]:
        """The same, after a run that ended with one of these codes, and with a sentence where it failed."""
        return self.check() + self.noted(refused(ended, *codes))

    def complete(self) -> list[Problem]:
        """The same command completes the sweep, and the folder is then that of an undisturbed run; it goes if it is."""
        ended = self.run()
        problems = self.check(ended)
        wrong = []
        if ended.code:
            wrong.append(Problem("not completed", f"exit code {ended.code}: {ended.err[-1500:]}"))
        elif self.settled != self.subject.contents.keys:
            wrong.append(Problem("not completed", f"{len(self.settled)} cells are there after the command"))
        elif exports(self.bench.warm, self.folder) != self.subject.exports:
            wrong.append(Problem("differs", "the exports are not those of an undisturbed run"))
        left = [path.name for path in self.folder.rglob("*.unfinished")]
        wrong += [Problem("not completed", f"{name} was left over") for name in left]
        problems += self.noted(wrong)
        self.let_go()
        return problems

    def noted(self, problems: Iterable[Problem]) -> list[Problem]:
        """The same problems, remembered."""
        problems = list(problems)
        self.problems += problems
        return problems

    def let_go(self) -> None:
        """Delete the folder, unless something was wrong with it."""
        if not self.problems:
            shutil.rmtree(self.place, ignore_errors=True)
