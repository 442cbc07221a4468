"""Builds the shared library of the kernels with this machine's C++ compiler, and with nvcc where there is a GPU.

python kernels/build_library.py             into kernels/headcount_kernels, against the headers of this Python's jaxlib
python kernels/build_library.py --install   the same, and lets this Python import headcount_kernels from there
python kernels/build_library.py --if-changed   only where there is no whole library of these sources and this jaxlib yet
python kernels/build_library.py --verbose   the same, and prints every command and what the compiler says

Environment: CXX, the compiler. HEADCOUNT_KERNELS_GPU=1, 0 or numbers such as 90: for all GPUs, none or these ones, in
place of those of this machine; minutes each. CUDA_HOME, where nvcc is.
Needs only the standard library and jaxlib's headers. `make` runs it; `hatch_build.py` calls it for wheels.
"""

import argparse
import contextlib
import hashlib
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from build_commands import (
    CUDA_PACKAGES,
    BuildError,
    Tools,
    commands,
    find_tools,
    gpu_is_asked_for,
    gpu_targets,
    instruction_sets,
    source_files,
)
from headcount_kernels import library_path

LOST = "headcount works without them: it runs on plain JAX, and trains more slowly."


def build(target: Path, *, verbose: bool = False) -> str:
    """Compiles the sources and puts the library at `target`.

    After a failure, a library of the same sources stays there. One of other sources is removed, so that it is not used
    by mistake.

    Args:
        target: The file to write.
        verbose: Print every command and what it prints.

    Returns:
        The instruction sets and GPUs that the library is for, and a reason where the GPU part failed.

    Raises:
        BuildError: No compiler, no sources or headers, a compiler that fails, a folder that cannot be written, a
            machine that has no kernels.
    """
    built = False
    try:
        with os.scandir(target.parent):  # a folder that is not there is refused before anything is compiled
            pass
        built_for = _build(target, verbose)
        built = True
    except OSError as error:
        raise BuildError(f"{error.filename or target}: {error.strerror}.") from error
    finally:  # also when it is interrupted
        if not built and not is_current(target):
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
                stamp_of(target).unlink(missing_ok=True)
    return built_for


def _build(target: Path, verbose: bool) -> str:
    sets = ", ".join(instruction_sets(platform.system(), platform.machine()))
    tools = find_tools()
    if not tools.gpu_targets:
        _build_with(tools, target, verbose)
        missing = f", because there is no nvcc: pip install {CUDA_PACKAGES}" if gpu_targets() else ""
        return f"{sets}; no GPU part{missing}"
    try:
        _build_with(tools, target, verbose)
    except BuildError as failure:
        if gpu_is_asked_for():
            raise
        _build_with(replace(tools, gpu_targets=()), target, verbose)
        return f"{sets}; no GPU part, because {failure}"
    return f"{sets}; {', '.join(f'sm_{number}' for number in tools.gpu_targets)}"


def _build_with(tools: Tools, target: Path, verbose: bool) -> None:
    # Beside the target, so that the library can be moved there whole.
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as folder:
        steps = commands(platform.system(), platform.machine(), tools, Path(folder))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda command: _call(command, verbose), steps.compiling))
        _call(steps.linking, verbose)
        os.replace(steps.library, target)


def _call(command: list[str], verbose: bool) -> None:
    if verbose:
        print(shlex.join(command), flush=True)
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if verbose:
        print(ended.stdout, end="", flush=True)
    if ended.returncode:
        lines = ended.stdout.splitlines()
        reason = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message")
        raise BuildError(
            f"{command[0]} ended with exit code {ended.returncode} ({reason.strip()}); "
            f"`{sys.executable} kernels/build_library.py --verbose` prints all of it, CXX chooses another compiler."
        )


def stamp_of(library: Path) -> Path:
    """The file next to a library that says what it was built from."""
    return library.with_suffix(".built")


def stamp(library: Path) -> str:
    """What a library was built from, were it built now, and its own bytes: a truncated one is not current."""
    sources = hashlib.sha256(version("jaxlib").encode())
    for path in source_files():
        sources.update(path.read_bytes())
    return f"{sources.hexdigest()} {hashlib.sha256(library.read_bytes()).hexdigest()}\n"


def is_current(library: Path) -> bool:
    """Whether a whole library of these sources and this jaxlib is there."""
    try:
        return stamp_of(library).read_text() == stamp(library)
    except (OSError, PackageNotFoundError):
        return False


def imported_instead() -> Path | None:
    """Where Python finds another headcount_kernels first, such as a copy that pip installed; None where it does not."""
    spec = PathFinder.find_spec("headcount_kernels", sys.path[1:])  # the first is this script's folder
    folder = Path(spec.origin).parent if spec and spec.origin else library_path().parent
    return None if folder.resolve() == library_path().parent.resolve() else folder


def import_path_file() -> Path:
    """The file by which the Python that runs this imports headcount_kernels from this folder: an editable install."""
    return Path(sysconfig.get_path("purelib"), "headcount_kernels.pth")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the shared library of headcount's kernels.")
    parser.add_argument("--install", action="store_true", help="let this Python import headcount_kernels from here")
    parser.add_argument("--if-changed", action="store_true", help="only where there is no library of these sources")
    parser.add_argument("--verbose", action="store_true", help="print every command and what the compiler says")
    options = parser.parse_args()
    library = library_path()
    if not (options.if_changed and is_current(library)):
        _build_and_say(library, options.verbose, installs=options.install)
    if options.install:
        import_path_file().write_text(f"{Path(__file__).resolve().parent}\n")
        other = imported_instead()
        if other is not None:
            uninstall = f"{sys.executable} -m pip uninstall headcount-kernels"
            print(f"Python imports the kernels of {other} in place of these. To use these: {uninstall}")


def _build_and_say(library: Path, verbose: bool, installs: bool) -> None:
    started, stood_there = time.monotonic(), library.exists()
    try:
        built_for = build(library, verbose=verbose)
    except BuildError as failure:
        if library.exists():
            sys.exit(f"The kernels were not built: {failure} Those built before, from the same sources, stay in use.")
        if installs:
            import_path_file().unlink(missing_ok=True)
        removed = " Those built before, from other sources, are removed." if stood_there else ""
        sys.exit(f"The kernels were not built: {failure}{removed} {LOST}")
    stamp_of(library).write_text(stamp(library))
    print(f"Kernels built in {time.monotonic() - started:.0f} s ({built_for}).")


if __name__ == "__main__":
    main()
