"""Building the kernels: which commands, on which machine, and one reason where it cannot be done."""

import importlib
import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from headcount.backends import kernels_here

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
COMPILER_THAT_FAILS = "import sys; print('note: a line'); print('x.cc:1: error: no such thing'); sys.exit(3)"

if not KERNELS.is_dir():
    pytest.skip("the sources of the kernels are not in a source distribution", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def kernels_on_the_path():
    """Only for these tests: others would find a package whose library may not be built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(KERNELS)
        for name in ("build_commands", "build_library", "headcount_kernels"):
            patch.delitem(sys.modules, name, raising=False)
        yield
        for name in ("build_commands", "build_library", "headcount_kernels"):
            sys.modules.pop(name, None)


@pytest.fixture
def build_commands():
    return importlib.import_module("build_commands")


@pytest.fixture
def build_library():
    return importlib.import_module("build_library")


@pytest.fixture
def sources(build_commands, tmp_path, monkeypatch):
    """Empty source files, so that commands can be listed."""
    folder = tmp_path / "src"
    for path in [*(KERNELS / "src").rglob("*.cc"), KERNELS / "src/gpu/kernels.cu"]:
        name = path.relative_to(KERNELS / "src")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    monkeypatch.setattr(build_commands, "SOURCES", folder)
    return folder


def listed(build_commands, machine, folder, gpu_targets=()):
    tools = build_commands.Tools(
        compiler=["c++", "-v"], headers=Path("/headers"), nvcc="/opt/nvcc", gpu_targets=gpu_targets
    )
    return build_commands.commands(*machine, tools, folder)


@pytest.mark.parametrize(
    ("machine", "instructions"),
    [
        (("Linux", "x86_64"), {"avx512": "x86-64-v4", "avx2": "x86-64-v3", "plain": "x86-64"}),
        (("Linux", "aarch64"), {"neon": "armv8-a"}),
        (("Darwin", "arm64"), {"neon": "armv8.4-a"}),
    ],
)
def test_each_machine_compiles_one_object_per_instruction_set(machine, instructions, build_commands, sources, tmp_path):
    steps = listed(build_commands, machine, tmp_path)
    kernels = [command for command in steps.compiling if str(sources / "cpu/kernels.cc") in command]
    flags = [{f"-DHEADCOUNT_INSTRUCTIONS={name}", f"-march={march}"} for name, march in instructions.items()]
    assert len(kernels) == len(flags)
    assert all(wanted <= set(command) for wanted, command in zip(flags, kernels, strict=True))
    assert all(command[:2] == ["c++", "-v"] for command in [*steps.compiling, steps.linking])
    assert all(command[-1] in steps.linking for command in steps.compiling)
    # An inline function that several objects hold is taken from the first: the one that any processor can run.
    assert steps.linking.index(kernels[-1][-1]) <= steps.linking.index(kernels[0][-1])
    assert ("-arch" in steps.linking) == (machine[0] == "Darwin")
    assert any('-DHEADCOUNT_GPU_TARGETS=""' in command for command in steps.compiling)


def test_with_nvcc_the_code_for_gpus_is_embedded(build_commands, sources, tmp_path):
    steps = listed(build_commands, ("Linux", "x86_64"), tmp_path, gpu_targets=("80", "90"))
    (nvcc,) = (command for command in steps.compiling if command[0] == "/opt/nvcc")
    assert {f"-gencode=arch=compute_{number},code=sm_{number}" for number in ("80", "90")} <= set(nvcc)
    assert nvcc[-1] in (tmp_path / "fatbin.S").read_text()
    assert str(tmp_path / "fatbin.S") in steps.linking
    words = {word for command in steps.compiling for word in command}
    assert '-DHEADCOUNT_GPU_TARGETS="sm_80 sm_90 compute_90"' in words
    assert {str(path) for path in sources.rglob("*.c*")} <= words, "a source file that nothing compiles"


@pytest.mark.parametrize("machine", [("Windows", "AMD64"), ("Darwin", "x86_64"), ("Linux", "riscv64")])
def test_a_machine_without_kernels_is_named(machine, build_commands, sources, tmp_path):
    with pytest.raises(build_commands.BuildError, match=" on ".join(machine)):
        listed(build_commands, machine, tmp_path)


def test_a_missing_source_is_named(build_commands, sources, tmp_path):
    (sources / "bind_cpu.cc").unlink()
    with pytest.raises(build_commands.BuildError, match=r"bind_cpu\.cc"):
        listed(build_commands, ("Linux", "x86_64"), tmp_path)


def failing(folder: Path) -> str:
    """A compiler that prints an error."""
    program = folder / "failing-compiler"
    program.write_text(f"#!{sys.executable}\n{COMPILER_THAT_FAILS}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.skipif((platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="one machine is enough")
@pytest.mark.parametrize(
    ("compiler", "reason"),
    [("", "c++, g++, clang++"), ("/no/such/compiler", "/no/such/compiler"), (None, "no such thing")],
)
def test_without_a_compiler_there_is_one_reason_and_no_library(
    compiler, reason, build_library, sources, tmp_path, monkeypatch, capsys
):
    library = tmp_path / "library.so"
    library.write_text("of other sources")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("CXX", failing(tmp_path) if compiler is None else compiler)
    monkeypatch.setattr(build_library, "library_path", lambda: library)
    monkeypatch.setattr(sys, "argv", ["build_library.py"])
    with pytest.raises(SystemExit) as ended:
        build_library.main()
    assert reason in str(ended.value.code)
    assert "\n" not in str(ended.value.code)
    assert sorted(path.name for path in tmp_path.glob("*library*") if path.is_file()) == []


def test_a_folder_that_cannot_be_written_is_named(build_library, sources, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(build_library.BuildError, match="file"):
        build_library.build(tmp_path / "file" / "library.so")


@pytest.mark.parametrize(
    ("variable", "targets"),
    [("", ("90", "120")), ("0", ()), ("1", ("80", "90", "100")), ("100,80", ("80", "100"))],
)
def test_gpus_are_those_of_the_machine_or_those_asked_for(variable, targets, build_commands, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_KERNELS_GPU", variable)
    monkeypatch.setattr(build_commands, "gpus_here", lambda: {"120", "90"})
    monkeypatch.setattr(build_commands, "find_nvcc", lambda: "nvcc")
    monkeypatch.setattr(build_commands, "find_compiler", lambda: ["c++"])
    assert build_commands.find_tools().gpu_targets == targets


def test_without_nvcc_there_is_no_gpu_part_and_asking_for_it_fails(build_commands, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", sys.executable)
    monkeypatch.delenv("HEADCOUNT_KERNELS_GPU", raising=False)
    monkeypatch.setattr(build_commands, "gpus_here", lambda: {"90"})
    monkeypatch.setattr(build_commands.sysconfig, "get_path", lambda name: str(tmp_path))
    assert build_commands.find_tools().gpu_targets == ()
    for asked, named in (("90", "nvidia-cuda-nvcc"), ("yes", "yes")):
        monkeypatch.setenv("HEADCOUNT_KERNELS_GPU", asked)
        with pytest.raises(build_commands.BuildError, match=named):
            build_commands.find_tools()


def test_the_version_has_one_place_and_the_extra_allows_it(build_commands):
    packaged = tomllib.loads((KERNELS / "pyproject.toml").read_text())
    assert packaged["project"]["dynamic"] == ["version"]
    version = build_commands.__version__
    places = [path for path in KERNELS.rglob("*") if path.suffix in (".py", ".toml")]
    assert [path.name for path in places if f'"{version}"' in path.read_text()] == ["__init__.py"]
    (extra,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["fast"]
    major, minor, _ = version.split(".")
    assert extra.startswith(f"headcount-kernels>={major}.{minor},<{major}.{int(minor) + 1}")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="one instruction set only")
def test_a_lower_instruction_set_is_used_where_it_is_named_and_other_words_are_ignored(fused):
    script = (
        "import ctypes, sys\n"
        "name = ctypes.CDLL(sys.argv[1]).headcount_kernels_cpu\n"
        "name.restype = ctypes.c_char_p\n"
        "print(name().decode())\n"
    )

    def used(word: str) -> str:
        command = [sys.executable, "-S", "-c", script, str(kernels_here().path)]
        environment = os.environ | {"HEADCOUNT_KERNELS_CPU": word}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert used("fastest") == used("") == used("avx512")
    assert used("plain") == "plain"


@pytest.mark.slow
def test_the_library_is_built_and_says_its_version(tmp_path, build_commands):
    """By a real compiler, against the headers of this jaxlib, and in a process of its own."""
    script = (
        "import ctypes, sys, build_library\n"
        "from pathlib import Path\n"
        "build_library.build(Path(sys.argv[1]))\n"
        "version = ctypes.CDLL(sys.argv[1]).headcount_kernels_version\n"
        "version.restype = ctypes.c_char_p\n"
        "print(version().decode())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "library.so")]
    ended = subprocess.run(command, cwd=KERNELS, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == build_commands.__version__
    assert [path.name for path in tmp_path.iterdir()] == ["library.so"]
