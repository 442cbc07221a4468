"""Which commands build the library on which machine, and which tools they need. Nothing is run here."""

import ctypes
import os
import shlex
import shutil
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headcount_kernels import LIBRARY_NAME, __version__

SOURCES = Path(__file__).resolve().parent / "src"

INSTRUCTIONS = {
    ("Linux", "x86_64"): {"avx512": "x86-64-v4", "avx2": "x86-64-v3", "plain": "x86-64"},
    ("Linux", "aarch64"): {"neon": "armv8-a"},
    ("Darwin", "arm64"): {"neon": "armv8.4-a"},
}
"""The instruction sets of each machine, with the compiler's name: one object each, chosen among when the library runs.

Others have no jaxlib (macOS on Intel processors since 0.5) or no tested compiler (Windows).
"""

MACOS = "11.0"  # the oldest that jaxlib runs on
GPU_TARGETS = ("80", "90", "100")  # of a wheel: A100; H100 and H200; B200. A newer GPU translates the last one's PTX.
GPU_VARIABLE = "HEADCOUNT_KERNELS_GPU"
CUDA_PACKAGES = "nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime"
COMPILERS = ("c++", "g++", "clang++")


class BuildError(Exception):
    """Why the library could not be built, in sentences for the user."""


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a build uses.

    Attributes:
        compiler: The C++ compiler and its first arguments.
        headers: The folder of XLA's FFI headers.
        nvcc: CUDA's compiler; only used where there are GPU targets.
        gpu_targets: The kinds of GPUs, such as "90", to compile for; none for a library without a GPU part.
    """

    compiler: list[str]
    headers: Path
    nvcc: str = "nvcc"
    gpu_targets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Commands:
    """The commands of one build: `compiling` in any order or side by side, then `linking`, which writes `library`."""

    compiling: list[list[str]]
    linking: list[str]
    library: Path


def commands(system: str, processor: str, tools: Tools, folder: Path) -> Commands:
    """The commands that build the library in `folder`.

    Raises:
        BuildError: There are no kernels for this machine, or a source file is missing.
    """
    target = ["-arch", processor, f"-mmacosx-version-min={MACOS}"] if system == "Darwin" else []
    options = [*target, "-std=c++17", "-fPIC", "-ffp-contract=fast", "-fvisibility=hidden", f"-I{SOURCES}"]
    options += [f'-DHEADCOUNT_KERNELS_VERSION="{__version__}"']
    compiling: list[list[str]] = []

    def compile_object(source: str, name: str, *more: str) -> None:
        compiling.append([*tools.compiler, *options, *more, "-c", _source(source), "-o", str(folder / name)])

    for instructions, march in instruction_sets(system, processor).items():  # first, because they take longest
        flags = ("-O3", f"-march={march}", f"-DHEADCOUNT_INSTRUCTIONS={instructions}")
        compile_object("cpu/kernels.cc", f"kernels_{instructions}.o", *flags)
    headers = ("-isystem", str(tools.headers))
    compile_object("bind_cpu.cc", "bind_cpu.o", "-O2", *headers)
    compile_object("cpu/dispatch.cc", "dispatch.o", "-O2")
    compile_object("gpu_targets.cc", "gpu_targets.o", "-O2", f'-DHEADCOUNT_GPU_TARGETS="{_names(tools.gpu_targets)}"')
    if tools.gpu_targets:
        compiling.insert(0, _nvcc(tools, folder))
        compile_object("bind_gpu.cc", "bind_gpu.o", "-O2", *headers)
        compile_object("bind_gpu_pool.cc", "bind_gpu_pool.o", "-O2", *headers)
        (folder / "fatbin.S").write_text(FATBIN.format(path=folder / "kernels.fatbin"))
    library = folder / LIBRARY_NAME
    # Reversed: of an inline function that several objects hold the linker keeps the first, which all processors run.
    objects = [command[-1] for command in reversed(compiling) if command[-1].endswith(".o")]
    embedded = [str(folder / "fatbin.S"), "-ldl"] if tools.gpu_targets else []
    linking = [*tools.compiler, *target, "-shared", *objects, *embedded, "-o", str(library)]
    return Commands(compiling=compiling, linking=linking, library=library)


FATBIN = """
.section .rodata
.balign 16
.globl headcount_fatbin
.hidden headcount_fatbin
headcount_fatbin: .incbin "{path}"
.section .note.GNU-stack,"",%progbits
"""
"""The GPU's code as bytes of the library, for the assembler. It says its own size to the driver."""


def _names(gpu_targets: tuple[str, ...]) -> str:
    """What the library holds: machine code of each target, and PTX of the last one for GPUs to come."""
    return " ".join(
        [*(f"sm_{number}" for number in gpu_targets), *(f"compute_{number}" for number in gpu_targets[-1:])]
    )


def _nvcc(tools: Tools, folder: Path) -> list[str]:
    targets = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in tools.gpu_targets]
    targets.append(f"-gencode=arch=compute_{tools.gpu_targets[-1]},code=compute_{tools.gpu_targets[-1]}")
    host = ["-ccbin", tools.compiler[0], "--threads", "0", "--split-compile", "0"]  # all cores
    source = ["-I", str(SOURCES), _source("gpu/kernels.cu")]
    return [
        tools.nvcc,
        "-fatbin",
        "-O3",
        "-std=c++17",
        "-Xfatbin=-compress-all",
        *host,
        *targets,
        *source,
        "-o",
        str(folder / "kernels.fatbin"),
    ]


def instruction_sets(system: str, processor: str) -> dict[str, str]:
    """The instruction sets of a machine, each with the name that the compiler has for it.

    Raises:
        BuildError: There are no kernels for this machine.
    """
    if (system, processor) not in INSTRUCTIONS:
        machines = ", ".join(" on ".join(machine) for machine in INSTRUCTIONS)
        raise BuildError(f"there are none for {system} on {processor}, only for {machines}.")
    return INSTRUCTIONS[system, processor]


def _source(name: str) -> str:
    path = SOURCES / name
    if not path.is_file():
        raise BuildError(f"the source file {path} is missing.")
    return str(path)


def source_files() -> list[Path]:
    """Everything that decides what is built: the sources, and these scripts with the version."""
    scripts = Path(__file__).resolve().parent
    sources = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    return [*sources, *sorted(scripts.glob("build_*.py")), scripts / "headcount_kernels" / "__init__.py"]


def find_tools() -> Tools:
    """The compilers and headers of this machine and this Python.

    Raises:
        BuildError: There is no C++ compiler or no jaxlib, or a GPU part is asked for and there is no nvcc.
    """
    targets, nvcc = gpu_targets(), find_nvcc()
    if targets and nvcc is None and gpu_is_asked_for():
        raise BuildError(f"{GPU_VARIABLE} asks for nvcc; pip install {CUDA_PACKAGES}, or set CUDA_HOME.")
    gpu = {"nvcc": nvcc, "gpu_targets": targets} if nvcc else {}
    return Tools(compiler=find_compiler(), headers=find_headers(), **gpu)


def find_compiler() -> list[str]:
    """What CXX says, or else the first C++ compiler on the path."""
    named = shlex.split(os.environ.get("CXX", ""))
    compiler = next(filter(shutil.which, named[:1] or COMPILERS), None)
    if compiler is None:
        tried = f"CXX is {named[0]}, which is no program" if named else f"none of {', '.join(COMPILERS)} is on the path"
        raise BuildError(
            f"there is no C++ compiler ({tried}). Install one (Debian and Ubuntu: apt install g++, Fedora: dnf install "
            "gcc-c++, macOS: xcode-select --install) and run the same command again."
        )
    return [compiler, *named[1:]]


def find_headers() -> Path:
    """The FFI headers of the jaxlib that this Python would import; it is not imported."""
    jaxlib = find_spec("jaxlib")
    folder = Path(jaxlib.origin).parent / "include" if jaxlib and jaxlib.origin else None
    if folder is None or not (folder / "xla" / "ffi" / "api" / "ffi.h").is_file():
        raise BuildError("this Python has no jaxlib with FFI headers; pip install 'jaxlib>=0.8'.")
    return folder


def find_nvcc() -> str | None:
    """CUDA's compiler: on the path, in CUDA_HOME, or installed from PyPI into this Python."""
    packages = Path(sysconfig.get_path("purelib"), "nvidia")
    places = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin"), *sorted(packages.glob("c*/bin"))]
    return shutil.which("nvcc") or next((str(place / "nvcc") for place in places if (place / "nvcc").is_file()), None)


def gpu_targets() -> tuple[str, ...]:
    """The GPUs to compile for: those of this machine, unless HEADCOUNT_KERNELS_GPU says all (1), none (0) or which.

    Raises:
        BuildError: The variable is something else.
    """
    named = os.environ.get(GPU_VARIABLE, "").replace(",", " ").split()
    if named in (["0"], ["1"]):
        return GPU_TARGETS if named == ["1"] else ()
    if not all(number.isdigit() for number in named):
        raise BuildError(f"{GPU_VARIABLE} is {' '.join(named)}; it must be 0, 1 or numbers such as {GPU_TARGETS[-2]}.")
    return tuple(sorted(named or gpus_here(), key=int))


def gpu_is_asked_for() -> bool:
    """Whether a library without a GPU part would be a failure."""
    return os.environ.get(GPU_VARIABLE, "0") not in ("", "0")


def gpus_here() -> set[str]:
    """The kinds of this machine's GPUs that kernels can be compiled for, such as "90"; none without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return set()
    count, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return set()
    kinds = set()
    for device in range(count.value):
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)  # the compute capability's two numbers
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        if major.value * 10 >= int(GPU_TARGETS[0]):
            kinds.add(f"{major.value}{minor.value}")
    return kinds
