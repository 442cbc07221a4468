"""What `headcount collide` left in a folder: certified floors, pairs of sequences, and pictures."""

import base64
import itertools
import json
from pathlib import Path
from typing import Any

from .._files import read_regular
from ..answer import count_of_heads
from ..answer.words import decimal
from ..report.document import Document, Grid, Notes
from ..report.render.html import page_content
from ..store.database import UNREADABLE
from .folder import CERTIFICATES

MAX_BYTES = 50_000_000
MAX_MODELS, MAX_NUMBERS = 500, 10_000
"""Models that are listed, and numbers of all sequences that are shown: a browser takes seconds for more."""
QUESTIONS = {"anywhere": "both sequences searched for", "near_data": "one sequence drawn, one searched for"}
ABOUT = "A floor is the error, in standard deviations of the target, that a readout must make on one of two sequences."
PICTURE = '<figure class="picture"><img src="data:image/svg+xml;base64,{}" alt="drawn by headcount collide"></figure>'


def certificates_content(folder: Path) -> str:
    """Return the certificates of a folder and their pictures as content of a page; "" where none can be understood."""
    try:
        entries = json.loads(read_regular(folder / CERTIFICATES, MAX_BYTES))
        content = page_content([_certificates_document(entries)], folder="") if entries else ""
        drawn = sorted((folder / CERTIFICATES).parent.glob("*.svg")) if entries else ()
        pictures = (read_regular(path, MAX_BYTES) for path in drawn if not path.is_symlink())
        return content + "".join(PICTURE.format(base64.b64encode(each).decode()) for each in pictures)
    except (OSError, *UNREADABLE):
        return ""


def _certificates_document(entries: Any) -> Document:
    """Tabulate the floors of all models, and the pairs that show them, opened by a click."""
    shown, notes = entries[:MAX_MODELS], [ABOUT]
    if len(entries) > len(shown):
        notes.append(f"The first {len(shown)} are listed; {len(entries) - len(shown):,} more are in the file.")
    pairs = [(entry, question) for entry in shown for question in QUESTIONS if entry[question]]
    sizes = (sum(map(len, itertools.chain(*entry[question]["pair"]))) for entry, question in pairs)
    room = sum(size <= MAX_NUMBERS for size in itertools.accumulate(sizes))
    if room < len(pairs):
        notes.append(f"The sequences of {room} of {len(pairs)} pairs are shown: at most {MAX_NUMBERS:,} numbers.")
    headline = _readouts(*pairs[0]) if pairs else "No pair was certified"
    grids = (_floors(shown), *(_pair(*each) for each in pairs[:room]))
    return Document(headline=headline, blocks=(*grids, Notes(tuple(notes), "Notes")))


def _model_words(entry: dict[str, Any]) -> str:
    heads = f"{count_of_heads(int(entry['heads']))}{' and a norm' if entry.get('final_norm') else ''}"
    return f"{heads}, {int(entry['length'])} tokens, seed {int(entry['seed'])}"


def _readouts(entry: dict[str, Any], question: str) -> str:
    pair = entry[question]
    readouts = "any readout errs" if pair["exact"] else "readouts of bounded slope err"
    return f"{_model_words(entry)}: {readouts} by {decimal(float(pair['floor']) / float(entry['spread']))}"


def _floors(entries: list[dict[str, Any]]) -> Grid:
    def floor(pair: dict[str, Any] | None, spread: float) -> str:
        if not pair:
            return "none found"
        return f"{decimal(float(pair['floor']) / spread)} ({'any' if pair['exact'] else 'bounded'} readout)"

    rows = []
    for entry in entries:
        floors = (floor(entry[question], float(entry["spread"])) for question in QUESTIONS)
        rows.append((_model_words(entry), decimal(float(entry["nmse"])), *floors))
    return Grid(title="Certified floors", columns=("model", "error", *QUESTIONS.values()), rows=tuple(rows))


def _pair(entry: dict[str, Any], question: str) -> Grid:
    """Tabulate the two sequences of a pair, a row per token."""
    pair = entry[question]
    apart = f"the model's outputs are at most {decimal(float(pair['distance'] or 0.0))} apart"
    proved = "an exact collision is proved" if pair["exact"] else apart
    estimated = f", estimated: {pair['estimated']}" if pair["estimated"] else ""
    gap = decimal(float(pair["gap"]) / float(entry["spread"]))
    rows = tuple(
        (f"{name} {token}", *(f"{float(value):.3g}" for value in row))
        for name, sequence in zip(("first", "second"), pair["pair"], strict=True)
        for token, row in enumerate(sequence, start=1)
    )
    return Grid(
        title=f"{_readouts(entry, question)}, {QUESTIONS[question]}; {proved}; the targets differ by {gap}{estimated}",
        columns=("sequence, token", *(f"number {i + 1}" for i in range(max(map(len, rows), default=1) - 1))),
        rows=rows,
        folded=True,
    )
