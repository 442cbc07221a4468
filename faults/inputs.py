"""Thousands of bad inputs for every reader and every option: each must end in one sentence with a way out.

    python faults/inputs.py --count 3000

Prints how many of each kind were answered with a traceback, a wrong exit code, a message without a way out, or too
late, then examples of each; exits non-zero if there is one. Commands run in this process, bombs in processes of their
own with little memory.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ |= {"JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"}

from inputs_arguments import absurd_sizes, bad_arguments, several_options  # noqa: E402
from inputs_bombs import bombs, run_bombs  # noqa: E402
from inputs_case import Input  # noqa: E402
from inputs_files import UNWRITABLE, changed_files, changed_folders, listed_files, python_files  # noqa: E402
from inputs_judge import FAULTS, SECONDS, Verdict, judged  # noqa: E402

from tests.helpers.commands import headcount  # noqa: E402

LISTED: tuple[Callable[[random.Random], Iterator[Input]], ...] = (
    listed_files,
    python_files,
    absurd_sizes,
    bad_arguments,
)
ENDLESS: tuple[Callable[[random.Random], Iterator[Input]], ...] = (changed_files, changed_folders, several_options)


def inputs(count: int, seed: int) -> list[Input]:
    """So many bad inputs: of those that are listed all or a sample, the rest drawn."""
    rng = random.Random(seed)
    listed = [each for make in LISTED for each in make(rng)]
    if len(listed) > count * 3 // 4:
        listed = rng.sample(listed, count * 3 // 4)
    drawn = [make(rng) for make in ENDLESS]
    rest = count - len(listed)
    return listed + [each for place, make in enumerate(drawn) for each in islice(make, (rest + place) // len(drawn))]


HANGS_SECONDS = 6 * SECONDS
"""In which a command must end even where it only waits, or the machine is busy."""


class TooLate(BaseException):
    """A command that does not end."""


def answer(given: Input, folder: Path) -> Verdict:
    """How one bad input is answered, in this process; how slowly, by the processor's time where the machine is busy."""
    case, late = given.write(folder), threading.Event()

    def stop(*_: object) -> None:
        late.set()
        raise TooLate

    before, where = signal.signal(signal.SIGALRM, stop), Path.cwd()
    os.chdir(folder)
    signal.setitimer(signal.ITIMER_REAL, HANGS_SECONDS)
    began, worked = time.monotonic(), time.process_time()
    try:
        result = headcount(*case.arguments)
    except BaseException as error:  # what a user would see as a traceback
        result = error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.chdir(where)
    if late.is_set():  # whatever came of it: where it fell into a conversion in C++, matplotlib raises a TypeError
        return Verdict(("too slow",), "still running")
    return judged(result, min(time.monotonic() - began, time.process_time() - worked), refused=case.refused)


def main() -> int:
    """Run, print the table, and say whether there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3000, help="bad inputs, besides the bombs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="", help="only kinds that begin so")
    parser.add_argument("--examples", type=int, default=3, help="examples to print of each fault of a kind")
    parser.add_argument("--bombs", type=int, default=None, help="bombs (default: all, or 3 with --count below 1000)")
    arguments = parser.parse_args()
    most = arguments.bombs if arguments.bombs is not None else (10**6 if arguments.count >= 1000 else 3)
    chosen = [each for each in bombs(random.Random(arguments.seed)) if each.kind.startswith(arguments.kind)]
    began, seen = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="headcount-bombs-") as root:
        seen += run_bombs(chosen[:most], Path(root))  # first: these fork, which a process that has computed should not
    given = [each for each in inputs(arguments.count, arguments.seed) if each.kind.startswith(arguments.kind)]
    with tempfile.TemporaryDirectory(prefix="headcount-inputs-") as root:
        for place, each in enumerate(given):
            folder = Path(root) / str(place)
            folder.mkdir()
            seen.append((each, answer(each, folder)))
            if sys.stderr.isatty():
                print(f"\r{place + 1} of {len(given)}", end="", file=sys.stderr)
    return report(seen, arguments.examples, time.monotonic() - began)


def report(seen: list[tuple[Input, Verdict]], examples: int, seconds: float) -> int:
    """Print counts by kind and some examples; 1 if there is a fault."""
    kinds = Counter(each.kind for each, _ in seen)
    faults = Counter((each.kind, fault) for each, verdict in seen for fault in verdict.faults)
    width = max(map(len, kinds), default=4)
    print(f"{'kind':{width}} {'inputs':>7}" + "".join(f"{fault:>12}" for fault in FAULTS))
    for kind, count in kinds.items():
        print(f"{kind:{width}} {count:7}" + "".join(f"{faults[kind, fault] or '.':>12}" for fault in FAULTS))
    totals = {fault: sum(number for (_, which), number in faults.items() if which == fault) for fault in FAULTS}
    print(f"{'all':{width}} {len(seen):7}" + "".join(f"{totals[fault]:>12}" for fault in FAULTS), f"  {seconds:.0f} s")
    shown: Counter[tuple[str, str]] = Counter()
    for each, verdict in seen:
        for fault in verdict.faults:
            shown[each.kind, fault] += 1
            if shown[each.kind, fault] <= examples:
                print(f"\n{fault}: {each.kind}, {each.words}\n    {verdict.message[:400]}")
    if UNWRITABLE:
        print(f"left out, because torch is not installed: {', '.join(UNWRITABLE)} files")
    return int(any(totals.values()))


if __name__ == "__main__":
    sys.exit(main())
