"""What is computed for a photograph: the ledger, the demo, the gallery, tasks of known answer."""

import importlib.util
import json
import sys
from pathlib import Path

import headcount as hc
from benchmarks.calibration.families import calibration_set
from benchmarks.calibration.run import calibrate
from headcount.theory.claims import CLAIMS, NOT_RUN

from ..helpers.commands import headcount

SCRIPTS = Path(__file__).parents[2] / "docs" / "scripts"
EVERY = 6
"""Of the calibration set, every sixth task: 33 of 193, of all families."""


def statements() -> list[list[str]]:
    """What is claimed, by which program, and what the control breaks."""
    claimed = []
    for claim in CLAIMS:
        breaks = claim.control.statement if claim.control else ""
        claimed.append([claim.source, claim.statement, claim.program, breaks, claim.repair])
    return claimed + [[each.source, each.statement, each.why] for each in NOT_RUN]


def verdicts() -> dict[str, str]:
    return {f"{claim.source}: {claim.statement}": str(claim.judge().verdict) for claim in CLAIMS}


def demo(folder: Path) -> tuple[str, dict]:
    """The machine that ran `make demo`'s command, its answer, and the errors of every model that it trained."""
    command = f"measure sum-of-maxima --intrinsic-dim 4 --steps 2000 --out {folder / 'demo'} --json"
    code, out, _ = headcount(*command.split())
    rows = json.loads(headcount("export", folder / "demo", "--timing", "--json").out)
    errors = {row["key"]: [row["nmse"], row["final_nmse"], row["train_nmse"]] for row in rows}
    machine = f"demo on {rows[0]['device']}, {rows[0]['backend']}".replace("/", " ")
    return machine, {"code": code, "verdict": json.loads(out)["verdict"], "errors": errors}


def processor_version() -> str:
    """The family and model numbers of the processor, as Linux has them."""
    known = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return ", ".join(line.replace("\t", "").replace(":", "") for line in known.splitlines()[1:4] if "name" not in line)


def gallery(folder: Path) -> dict[str, str]:
    """The answer to every task of the gallery, measured as its page says."""
    sys.path.insert(0, str(SCRIPTS))
    found = importlib.util.spec_from_file_location("gallery", SCRIPTS / "gallery.py")
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    said = {}
    for entries in script.GROUPS.values():
        for entry in entries:
            task = entry.make()
            options = script.OPTIONS | entry.options
            measured = hc.measure(task, lengths=[task.length], out=folder / entry.make.__name__, **options)
            said[entry.make.__name__] = measured.answer().sentence
    return said


def calibration(folder: Path) -> dict[str, str]:
    """The answers to tasks of known answer, with the least effort."""
    results = calibrate(calibration_set()[::EVERY], folder, effort="quick")
    return {result.task.name: result.sentence for result in results}
