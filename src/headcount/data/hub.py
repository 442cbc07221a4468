"""MS MARCO passages and BERT's embeddings from the Hugging Face hub, downloaded by `huggingface_hub`.

MS MARCO comes as the copy of the BEIR benchmark (8.8 million passages, over a gigabyte), which `read_passages` reads.
The data are for non-commercial research.
"""

import io
import os
import re
import shutil
from pathlib import Path
from typing import Any

from ..errors import HeadcountError
from .download import OnBytes, sha256

PASSAGES = "BeIR/msmarco"
JUDGEMENTS = "BeIR/msmarco-qrels"
BERT = "google-bert/bert-base-uncased"
JUDGED = "qrels"
STAGING = ".download"
REVISIONS = {
    PASSAGES: "a918e0d11a77ed33f42f29d98340b655593b96ad",
    JUDGEMENTS: "253fbf8a3f8d4a0932b63882b5162bedc84779f5",
    BERT: "86b5e0934494bd15c9632b12f734a8a67f723594",
}
"""The state of each repository that is downloaded, so that a later upload changes nothing."""
HASHES = {(BERT, "model.safetensors"): "68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3"}
"""SHA-256 of files, where it is known from several publications. Of the others the server's own hash is checked, where
it is one (large files), and the revision says which content is meant."""
MARCO_FILES = ("queries.jsonl.gz", "corpus.jsonl.gz")  # the corpus last: `is_passages` recognises a folder by it
BERT_FILES = ("config.json", "tokenizer.json", "model.safetensors")


def fetch_marco(folder: Path, on_bytes: OnBytes) -> Path:
    """Download the passages, queries and judgements of MS MARCO into `folder`, except files that are there.

    Raises:
        HeadcountError: no network, a server or disk error, or the `text` extra is not installed.
    """
    for split in ("train", "dev", "test"):
        _fetch(JUDGEMENTS, f"{split}.tsv", folder / JUDGED, on_bytes, kind="dataset")
    for name in MARCO_FILES:
        _fetch(PASSAGES, name, folder, on_bytes, kind="dataset")
    return folder


def fetch_bert(folder: Path, on_bytes: OnBytes) -> Path:
    """Download the weights and tokenizer of bert-base-uncased (width 768) into `folder`; raises as `fetch_marco`."""
    for name in BERT_FILES:
        _fetch(BERT, name, folder, on_bytes, kind="model")
    return folder


def _fetch(repository: str, name: str, folder: Path, on_bytes: OnBytes, *, kind: str) -> None:
    """Download into a hidden folder, check, and only then move into `folder`."""
    if (folder / name).is_file():
        return
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError as error:
        raise HeadcountError("downloads need the package huggingface_hub: pip install 'headcount[text]'.") from error
    staging = folder / STAGING
    try:
        # Without a network this fails at once; hf_hub_download alone would retry for half a minute.
        revision = REVISIONS[repository]
        metadata = get_hf_file_metadata(hf_hub_url(repository, name, repo_type=kind, revision=revision))
        received = Path(
            hf_hub_download(
                repository,
                name,
                repo_type=kind,
                revision=revision,
                local_dir=staging,
                tqdm_class=_progress_class(on_bytes),
            )
        )
        served = metadata.etag if re.fullmatch("[0-9a-f]{64}", metadata.etag or "") else None
        expected = HASHES.get((repository, name), served)
        if expected is not None and sha256(received) != expected:
            shutil.rmtree(staging)
            raise OSError(f"its sha256 is not {expected}")
        os.replace(received, folder / name)
        shutil.rmtree(staging)
    except Exception as error:  # the package raises its own kinds, those of its HTTP client, and OSError
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise HeadcountError(
            f"{name} of {repository} could not be downloaded from the Hugging Face hub to {folder} ({reason}); "
            "run again when the network is up, or put the file there yourself."
        ) from error


def _progress_class(on_bytes: OnBytes) -> type[Any]:
    """A progress bar that prints nothing and calls `on_bytes`; one file may have two bars, so only increases count."""
    from tqdm import tqdm

    reported = 0

    class Progress(tqdm):
        def __init__(self, *arguments: Any, **options: Any):
            options.pop("name", None)  # of the hub's own bars; tqdm refuses it
            super().__init__(*arguments, **options | {"disable": False, "file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal reported
            refreshed = super().update(n)
            if self.n > reported:
                reported = int(self.n)
                on_bytes(reported, None if self.total is None else int(self.total))
            return refreshed

    return Progress
