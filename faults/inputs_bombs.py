# ruff: noqa: E501 - a table of bombs, one per line
"""Small files that unpack to more than memory, headers that claim terabytes, and sizes that no machine has.

Each runs in a process of its own whose memory is limited, with `HEADCOUNT_MAX_GB=0.25`: it must be refused by that limit,
not by the system.
"""

import functools
import os
import pickle
import random
import resource
import signal
import struct
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from inputs_case import Case, Input
from inputs_judge import Verdict, judged

from tests.helpers import cifar_files
from tests.helpers.commands import Result, headcount
from tests.papers.data import texts

GIB = 2**30
MAX_GB = 0.25
"""What a command may use for what it reads."""
SPARE = 2 * GIB
"""Of address space and of memory, beyond what the process has when it starts: programs, buffers, copies."""
BOMB_SECONDS = 30
BLOCK = 2**24


def _zipped(blocks: int, block: bytes) -> bytes:
    """A deflate stream of many equal blocks, made of one that is compressed once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    one = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return one * blocks + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


def _gzipped(path: Path, size: int, block: bytes, start: bytes = b"") -> Path:
    """A gzip file of `size` bytes; its checksum is wrong, which only a reader that reads it all would see."""
    block = block * (BLOCK // len(block))
    packed = _zipped(size // len(block), block)
    if start:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH) + packed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + packed + struct.pack("<II", 0, size % 2**32))
    return path


def _npy_header(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def _npz(path: Path, content: bytes, claimed: int, checksum: int = 0) -> Path:
    """An archive with an array x of this deflated content; its directory claims `claimed` bytes."""
    head = struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 8, 0, 0, checksum, len(content), min(claimed, 2**32 - 1), 5, 20)
    extra = struct.pack("<HHQQ", 1, 16, claimed, len(content))
    local = head + b"x.npy" + extra + content
    entry = struct.pack(
        "<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 8, 0, 0, checksum, len(content), 2**32 - 1, 5, 12, 0, 0, 0, 0, 0
    ) + b"x.npy" + struct.pack("<HHQ", 1, 8, claimed)  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(local), 0)
    path.write_bytes(local + entry + end)
    return path


def _sparse(path: Path, start: bytes = b"", size: int = 100 * GIB) -> Path:
    """A file that says it is huge and takes no space on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(start)
    os.truncate(path, size)
    return path


def _parquet(path: Path, rows: int, *, text: int = 0) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = 10_000_000 if not text else 1000
    value = pa.array(["a" * text] * part) if text else pa.nulls(part, pa.float64()).fill_null(0.5)
    table = pa.table({"a": value, "y": pa.nulls(part, pa.float64()).fill_null(1.0)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(rows // part):
            writer.write_table(table)
    return path


def _arrow(path: Path, rows: int) -> Path:
    import pyarrow as pa

    table = pa.table(
        {
            "a": pa.nulls(rows // 100, pa.float64()).fill_null(0.5),
            "y": pa.nulls(rows // 100).cast(pa.float64()).fill_null(1),
        }
    )
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        for _ in range(100):
            writer.write_table(table)
    return path


def _png(path: Path, width: int, height: int) -> Path:
    """A black image of one bit per pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    row = bytes(1 + (width + 7) // 8)
    content = zlib.compress(row * min(height, 2000))
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", content) + chunk(b"IEND", b""))
    return path


def _image_folder(folder: Path, width: int, height: int) -> Path:
    for name in ("cat/0.png", "dog/0.png"):
        _png(folder / name, width, height)
    return folder


def _function(folder: Path, function: str, more: str = "") -> str:
    code = f"import headcount as hc, jax.numpy as jnp\nmade = hc.FunctionTask(function=lambda x: {function}, length=8, dim=2)\n"
    (folder / "mine.py").write_text(code + more)
    return f"{folder / 'mine.py'}:made"


def _measured(write: Callable[[Path], Path | str], *options: object) -> Callable[[Path], Case]:
    return lambda folder: Case(("measure", write(folder), *options, "--dry-run"), refused=True)


def _trained(function: str) -> Callable[[Path], Case]:
    """What could be planned, and must not be trained."""
    return lambda folder: Case(("measure", _function(folder, function), "--out", folder / "out"), refused=True)


def _passages(write: Callable[[Path], object], name: str) -> Callable[[Path], Case]:
    def case(folder: Path) -> Case:
        bert = texts.write_bert(folder / "bert")
        base = (
            texts.write_official(folder / "bad")
            if name.endswith((".tsv", ".tsv.gz"))
            else texts.write_beir(folder / "bad", "")
        )
        (base / name.removesuffix(".gz")).unlink(missing_ok=True)
        write(base / name)
        return Case(("measure", base, "--embeddings", bert, "--dry-run"), refused=True)

    return case


def _cifar_bomb(folder: Path) -> Path:
    return _gzipped(
        folder / "cifar-10-binary.tar.gz", 6 * GIB, b"\0", _tar_header("cifar-10-batches-bin/data_batch_1.bin", 5 * GIB)
    )


def _tar_header(name: str, size: int) -> bytes:
    import tarfile

    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def _sparse_batches(folder: Path) -> Path:
    base = cifar_files.write_cifar_folder(folder, *cifar_files.random_cifar(2))
    for file in base.iterdir():
        os.truncate(file, 3073 * 10_000_000)
    return base


def _json(text: str) -> Callable[[Path], Path]:
    return lambda folder: texts.write(folder / "bad.json", text)


def _with_shard(name: str, size: int = 100 * GIB) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        from tests.data.written import write_dataset

        base = write_dataset(folder / "bad", {"x": [[1.0, 2.0]] * 100, "y": [float(row) for row in range(100)]})
        return _sparse(base / name, size=size).parent

    return write


def bombs(_: random.Random) -> Iterator[Input]:
    """Every bomb, those that differ most first."""
    files: dict[str, Callable[[Path], Case]] = {
        "a line of 6 GiB in .csv.gz": _measured(lambda folder: _gzipped(folder / "bad.csv.gz", 6 * GIB, b"1,")),
        "6 GiB of zeros in .npz": _measured(lambda folder: _npz(folder / "bad.npz", _zipped(400, bytes(BLOCK)), 400 * BLOCK)),
        "an image of 60,000 x 60,000": _measured(lambda folder: _image_folder(folder / "bad", 60_000, 60_000), "--side", 8),
        "1,000,000 outputs": _trained("jnp.tile(x[0, 0], 10**6)"),
        "10,000,000 columns": _measured(lambda folder: texts.write(folder / "bad.csv", ",".join(f"a{i}" for i in range(10**7)) + "\n")),
        "200 million rows of Parquet": _measured(lambda folder: _parquet(folder / "bad.parquet", 200_000_000)),
        "a header of 8 TB in .npy": _measured(lambda folder: _npy(folder, "(1000000, 1000, 1000)")),
        "6 GiB of rows in .csv.gz": _measured(lambda folder: _gzipped(folder / "bad.csv.gz", 6 * GIB, b"1,2,3,4,5,6,7,8\n", b"a,b,c,d,e,f,g,y\n")),
        "a line of 6 GiB in .jsonl.gz": _measured(lambda folder: _gzipped(folder / "bad.jsonl.gz", 6 * GIB, b"[")),
        "6 GiB of lines in .jsonl.gz": _measured(lambda folder: _gzipped(folder / "bad.jsonl.gz", 6 * GIB, b'{"x": [[1.0, 2]], "y": 1234567}\n')),
        "an archive that lies": _measured(lambda folder: _npz(folder / "bad.npz", _zipped(400, bytes(BLOCK)), 1000)),
        "a header of 8 TB in .npz": _measured(lambda folder: _npz_header(folder, "(1000000, 1000, 1000)")),
        "a header of 7 GiB in .npz": _measured(lambda folder: _npz_header(folder, "(1000, 1000, 1000)")),
        "300 MB of text per value of Parquet": _measured(lambda folder: _parquet(folder / "bad.parquet", 100_000, text=1_000_000)),
        "200 million rows of Arrow": _measured(lambda folder: _arrow(folder / "bad.arrow", 200_000_000)),
        "an image of 13,000 x 13,000": _measured(lambda folder: _image_folder(folder / "bad", 13_000, 13_000)),
        "images of side 1,000,000": _measured(lambda folder: _image_folder(folder / "bad", 100, 100), "--side", 1_000_000),
        "10**9 outputs": _trained("jnp.tile(x[0, 0], 10**9)"),
        "a batch of 5 GiB in an archive": _measured(_cifar_bomb),
        "batches of 30 GB": _measured(_sparse_batches),
        "deep JSON": _measured(_json("[" * 10**6)),
        "deep JSON of x": _measured(_json('{"x": ' + "[" * 500 + "1" + "]" * 500 + ', "y": [1]}')),
        "JSON of 60 million lists": _measured(_json('{"y": [1], "x": [' + "[]," * (60 * 10**6) + "[]]}")),
        "a line of 6 GiB of passages": _passages(lambda path: _gzipped(path, 6 * GIB, b"a"), "collection.tsv.gz"),
        "6 GiB of passages": _passages(lambda path: _gzipped(path, 6 * GIB, b"1\tword word word\n"), "queries.dev.small.tsv.gz"),
        "a line of 6 GiB of BEIR": _passages(lambda path: _gzipped(path, 6 * GIB, b" "), "corpus.jsonl.gz"),
        "a tokenizer of 100 GiB": lambda folder: _bert(folder, "tokenizer.json"),
        "a model of 100 GiB": lambda folder: _bert(folder, "model.safetensors"),
        "a shard of 100 GiB": _measured(_with_shard("data-00000-of-00002.arrow")),
        "a state of 100 GiB": _measured(_with_shard("state.json")),
    }  # fmt: skip
    sparse = {".csv": b"", ".json": b"[", ".jsonl": b"{", ".npz": b"PK\3\4", ".npy": _npy_header("(13421772790,)"),
              ".pt": b"PK\3\4", ".safetensors": b"", ".parquet": b"PAR1", ".arrow": b"ARROW1\0\0", ".feather": b"ARROW1\0\0"}  # fmt: skip
    for kind, start in sparse.items():
        target = ("--targets", "bad.npy") if kind == ".npy" else ()
        write = functools.partial(
            lambda folder, kind, start: _sparse(folder / f"bad{kind}", start), kind=kind, start=start
        )
        files[f"a {kind} file of 100 GiB"] = _measured(write, *target)
    for words, write in files.items():
        yield Input("bomb", words, write)


def _npy(folder: Path, shape: str) -> Path:
    (folder / "bad.npy").write_bytes(_npy_header(shape) + bytes(64))
    return _npz_header(folder, shape, folder / "bad.npz")


def _npz_header(folder: Path, shape: str, path: Path | None = None) -> Path:
    content = _npy_header(shape) + bytes(64)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return _npz(
        path or folder / "bad.npz", packer.compress(content) + packer.flush(), len(content), zlib.crc32(content)
    )


def _bert(folder: Path, name: str) -> Case:
    from inputs_files import FOLDERS

    bert = texts.write_bert(folder / "bert")
    _sparse(bert / name)
    return Case(("measure", FOLDERS["passages"](folder / "bad"), "--embeddings", bert, "--dry-run"), refused=True)


def run_bombs(given: list[Input], root: Path) -> list[tuple[Input, Verdict]]:
    """Every bomb in a process of its own, one after another: together they would need the memory they must not."""
    import headcount.cli.export
    import headcount.cli.measure
    import headcount.cli.show
    import headcount.cli.status  # noqa: F401 - once, rather than in every process

    seen = []
    for place, each in enumerate(given):
        folder = root / str(place)
        folder.mkdir()
        try:
            case = each.write(folder)
            seen.append((each, _exploded(case, folder)))
            print(f"{each.words}: {seen[-1][1]}"[:300], file=sys.stderr, flush=True)
        finally:
            for file in folder.rglob("*"):
                if file.is_file() and file.stat().st_size > 2**20:
                    file.unlink()
    return seen


def _exploded(case: Case, folder: Path) -> Verdict:
    answer = folder / "answer.pickle"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of forks; it has not begun to compute here
        child = os.fork()
    if child == 0:
        _in_child(case, folder, answer)
    began = time.monotonic()
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - began
    if not answer.is_file():
        return Verdict(("traceback",), f"the process ended with status {status}, signal {os.WTERMSIG(status)}")
    result, grown = pickle.loads(answer.read_bytes())
    result = result if isinstance(result, Result) else RuntimeError(result)
    verdict = judged(result, seconds, refused=case.refused, limit=BOMB_SECONDS)
    over = grown > MAX_GB * GIB + SPARE // 2
    return Verdict(
        (*verdict.faults, *(("too slow",) if over else ())),
        f"{verdict.message} [{grown / GIB:.1f} GiB, {seconds:.0f} s]",
    )


def _in_child(case: Case, folder: Path, answer: Path) -> None:
    try:
        os.environ["HEADCOUNT_MAX_GB"] = str(MAX_GB)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + int(MAX_GB * GIB) + SPARE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        signal.alarm(2 * BOMB_SECONDS)
        os.chdir(folder)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            result: object = headcount(*case.arguments)
        except BaseException:
            result = traceback.format_exc()[-300:]
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        answer.write_bytes(pickle.dumps((result, grown)))
    finally:
        os._exit(0)
