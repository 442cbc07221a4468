"""The published data: CIFAR-10, and MS MARCO's passages and BERT's embeddings from the Hugging Face hub.

A file is received in `NAME.part`, checked against its hash where that is known, and only then renamed. A `.part` file
left by a broken connection is resumed. MS MARCO comes as the copy of the BEIR benchmark (8.8 million passages, over a
gigabyte), which `read_passages` reads; the data are for non-commercial research.
"""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import HeadcountError
from ..data import cifar

OnBytes = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes that have come, and how many it has; None if the server does not say."""
TIMEOUT_SECONDS = 30
BLOCK_BYTES = 2**18


@dataclass(frozen=True)
class RemoteFile:
    """The address of a file, its path in a folder, and the SHA-256 of its content; None where nobody published it."""

    url: str
    file_name: str
    sha256: str | None = None


def on_hub(repository: str, revision: str, name: str, *, file_name: str = "", sha256: str | None = None) -> RemoteFile:
    """A file of the Hugging Face hub; a later upload to the repository is another revision."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    return RemoteFile(f"{endpoint}/{repository}/resolve/{revision}/{name}", file_name or name, sha256)


CIFAR10 = RemoteFile(cifar.URL, cifar.ARCHIVE, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd")


def marco() -> tuple[RemoteFile, ...]:
    """MS MARCO; the corpus last, because `is_passages` recognises a folder by it."""
    passages = ("datasets/BeIR/msmarco", "a918e0d11a77ed33f42f29d98340b655593b96ad")
    judged = ("datasets/BeIR/msmarco-qrels", "253fbf8a3f8d4a0932b63882b5162bedc84779f5")
    splits = (f"{split}.tsv" for split in ("train", "dev", "test"))
    return (
        *(on_hub(*judged, name, file_name=f"qrels/{name}") for name in splits),
        on_hub(*passages, "queries.jsonl.gz"),
        on_hub(*passages, "corpus.jsonl.gz"),
    )


def bert() -> tuple[RemoteFile, ...]:
    """bert-base-uncased (width 768); the weights last: a folder that has them holds a whole model."""
    repository = ("google-bert/bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594")
    weights = "68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3"
    return (
        on_hub(*repository, "config.json"),
        on_hub(*repository, "tokenizer.json"),
        on_hub(*repository, "model.safetensors", sha256=weights),
    )


def fetch(sources: Iterable[RemoteFile], folder: Path, on_bytes: OnBytes) -> None:
    """Download the files that `folder`, which is created if missing, does not have.

    Raises:
        HeadcountError: No network, a server or disk error, or a file with another hash.
    """
    for source in sources:
        _fetch_one(source, folder / source.file_name, on_bytes)


def to_be_fetched(folder: Path, files: Sequence[RemoteFile]) -> bool:
    """Whether a folder is missing, empty, or has what an unfinished download of these files left; the last is last."""
    names = [file.file_name for file in files]
    if not folder.exists():
        return True
    ours = {f"{Path(name).parts[0]}{ending}" for name in names for ending in ("", ".part")}
    is_whole = (folder / names[-1]).exists()
    return folder.is_dir() and not is_whole and {entry.name for entry in folder.iterdir()} <= ours


def _fetch_one(source: RemoteFile, path: Path, on_bytes: OnBytes) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        if path.exists():
            if not _is_right(path, source):
                raise HeadcountError(f"{path} does not have sha256 {source.sha256}; delete it to download it again.")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if source.sha256 is None or not part.exists() or not _is_right(part, source):
            _receive(source.url, part, on_bytes)
        if _is_right(part, source):
            os.replace(part, path)
            return
        part.unlink()
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise HeadcountError(
            f"{source.url} could not be downloaded to {part} ({str(error).strip('<>') or type(error).__name__}); "
            f"run again to continue with what arrived, or put {path.name} into {path.parent} yourself."
        ) from error
    raise HeadcountError(
        f"the download from {source.url} did not have sha256 {source.sha256} and was deleted; run again."
    )


def _is_right(path: Path, source: RemoteFile) -> bool:
    if source.sha256 is None:
        return True
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == source.sha256


def _receive(url: str, part: Path, on_bytes: OnBytes) -> None:
    """Append the bytes that `part` lacks; start over if the server cannot continue."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "headcount"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        part.unlink()  # at least as long as the file, and not known to be right
        return _receive(url, part, on_bytes)
    with response, open(part, "ab") as file:
        if response.status != http.client.PARTIAL_CONTENT:
            done = 0
            file.truncate(0)
        total = None if response.length is None else done + response.length
        while block := response.read1(BLOCK_BYTES):
            file.write(block)
            done += len(block)
            on_bytes(part.stem, done, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and done < total:
        raise OSError(f"the connection ended after {done:,} of {total:,} bytes")
    return None
