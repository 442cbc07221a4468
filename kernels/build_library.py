"""Builds the shared library of the kernels with this machine's C++ compiler, and with nvcc where there is a GPU.

python kernels/build_library.py             into kernels/headcount_kernels, against the headers of this Python's jaxlib
python kernels/build_library.py --install   the same, and lets this Python import headcount_kernels from there
python kernels/build_library.py --verbose   the same, and prints every command and what the compiler says

Environment: CXX, the compiler. HEADCOUNT_KERNELS_GPU=1, 0 or numbers such as 90: for all GPUs, none or these ones, in
place of those of this machine; minutes each. CUDA_HOME, where nvcc is.
Needs only the standard library and jaxlib's headers. `make` runs it; `hatch_build.py` calls it for wheels.
"""

import argparse
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
from pathlib import Path

from build_commands import BuildError, Tools, commands, find_tools, gpu_is_asked_for, instruction_sets
from headcount_kernels import library_path

LOST = "headcount works without them: it runs on plain JAX, and trains more slowly."


def build(target: Path, *, verbose: bool = False) -> str:
    """Compiles the sources and puts the library at `target`, or leaves no library there.

    Args:
        target: The file to write. What is there is removed first: after a failure it would not fit the sources.
        verbose: Print every command and what it prints.

    Returns:
        The instruction sets and GPUs that the library is for, and a reason where the GPU part failed.

    Raises:
        BuildError: No compiler, no sources or headers, a compiler that fails, a folder that cannot be written, a
            machine that has no kernels.
    """
    try:
        target.unlink(missing_ok=True)
        sets = ", ".join(instruction_sets(platform.system(), platform.machine()))
        tools = find_tools()
        if not tools.gpu_targets:
            _build_with(tools, target, verbose)
            return f"{sets}; no GPU part"
        try:
            _build_with(tools, target, verbose)
        except BuildError as failure:
            if gpu_is_asked_for():
                raise
            _build_with(replace(tools, gpu_targets=()), target, verbose)
            return f"{sets}; no GPU part, because {failure}"
        return f"{sets}; {', '.join(f'sm_{number}' for number in tools.gpu_targets)}"
    except OSError as error:
        raise BuildError(f"{error.filename or target}: {error.strerror}.") from error


def _build_with(tools: Tools, target: Path, verbose: bool) -> None:
    with tempfile.TemporaryDirectory(
        prefix=".build-", dir=target.parent
    ) as folder:  # beside it, so that it can be moved
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
            "`python kernels/build_library.py --verbose` prints all of it, CXX chooses another compiler."
        )


def import_path_file() -> Path:
    """The file by which the Python that runs this imports headcount_kernels from this folder: an editable install."""
    return Path(sysconfig.get_path("purelib"), "headcount_kernels.pth")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the shared library of headcount's kernels.")
    parser.add_argument("--install", action="store_true", help="let this Python import headcount_kernels from here")
    parser.add_argument("--verbose", action="store_true", help="print every command and what the compiler says")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        built_for = build(library_path(), verbose=options.verbose)
    except BuildError as failure:
        if options.install:
            import_path_file().unlink(missing_ok=True)
        sys.exit(f"The kernels were not built: {failure} {LOST}")
    if options.install:
        import_path_file().write_text(f"{Path(__file__).resolve().parent}\n")
    print(f"Kernels built in {time.monotonic() - started:.0f} s ({built_for}).")


if __name__ == "__main__":
    main()
