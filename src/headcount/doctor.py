"""Can this machine run headcount? Each check tries the real thing."""

import math
import platform
import shutil
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from . import recipes
from .backends import VARIABLE, backend_name, choose_backend, kernels_here
from .backends.pool import require_working
from .engine import hardware, run_sweep, sweep, versions
from .errors import HeadcountError, InputError
from .store import Store
from .tasks import max_plus_min


@dataclass(frozen=True)
class Finding:
    """One check: whether it is fine, and what was found."""

    check: str
    fine: bool
    found: str


def examine() -> list[Finding]:
    """Run every check in turn; a check that raises is a finding, not an error."""
    checks = {
        "versions": _versions,
        "device": _device,
        "back end": _backend,
        "cluster": _cluster,
        "disk": _disk,
        "training": _training,
    }
    findings = []
    for name, check in checks.items():
        try:
            fine, found = check()
        except HeadcountError as error:
            fine, found = False, str(error)
        except Exception as error:
            fine, found = False, f"{type(error).__name__}: {error}"
        findings.append(Finding(name, fine, found))
    return findings


def _versions() -> tuple[bool, str]:
    listed = ", ".join(f"{name} {number}" for name, number in versions().items())
    return True, f"{listed}, {platform.system()} {platform.machine()}"


def _device() -> tuple[bool, str]:
    machine = hardware(backend="reference")
    return True, f"{machine.description}, {machine.memory / 2**30:.1f} GiB for training"


def _backend() -> tuple[bool, str]:
    """Check which back end computes. Without kernels all is fine, and slower; kernels that cannot be used are not."""
    if choose_backend() == "fused":
        require_working()
        return True, backend_name("fused")
    available = kernels_here()
    if not available.problem:
        return True, f"reference, as {VARIABLE} says; {backend_name('fused')} is installed"
    lost = "reference: class-token models train several times slower than with the fused kernels"
    return not available.installed, f"{lost}; {available.problem}"


def _cluster() -> tuple[bool, str]:
    """Whether `--on ray` can work. Without Ray all is fine: nothing else needs it."""
    try:
        return True, f"ray {version('ray')}: --on ray trains on a cluster"
    except PackageNotFoundError:
        return True, "no Ray, which only --on ray needs: pip install 'headcount[ray]'"


def _disk() -> tuple[bool, str]:
    free = shutil.disk_usage(Path.cwd()).free
    return free > 100 << 20, f"{free / 2**30:.1f} GiB free in this folder"


def _training() -> tuple[bool, str]:
    """Train a tiny sweep with the real engine and store, in a temporary folder."""
    try:
        choose_backend()
    except InputError:
        return False, "not tried: no back end to train with"
    began = time.monotonic()
    task = max_plus_min(length=8)
    tried = sweep(
        task,
        axes={"heads": [2], "seed": [0, 1]},
        model=recipes.model_for(task),
        train=recipes.train_for(task, steps=50, train_examples=500, validation_examples=100),
    )
    with tempfile.TemporaryDirectory() as folder, Store.open_for_writing(folder) as store:
        run_sweep(tried, store)
        errors = [record.metrics.get("nmse", math.inf) for record in store.records()]
    fine = len(errors) == 2 and max(errors) < 1
    return fine, f"two small models in {time.monotonic() - began:.1f} s, error {max(errors):.2f}"
