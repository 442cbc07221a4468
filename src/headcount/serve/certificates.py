"""What `headcount collide` left in a folder, as a page: certified floors, a pair of sequences, and pictures."""

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

from .._files import read_regular
from ..answer import count_of_heads
from ..answer.words import decimal
from ..errors import InputError, require
from ..report.document import Document, Grid, Notes
from .content import report_content
from .folder import CERTIFICATES

MAX_BYTES = 50_000_000
MAX_MODELS, MAX_NUMBERS = 500, 10_000
"""Models that are listed, and numbers of two sequences that are shown: a browser takes seconds for more."""
QUESTIONS = {"anywhere": "both sequences searched for", "near_data": "one sequence drawn, one searched for"}
ABOUT = "A floor is the error, in standard deviations of the target, that a readout must make on one of two sequences."


class CertificatesPage(NamedTuple):
    """The `content` of the page, and the choices of models and pairs, keys to words; `chosen` are two of the keys."""

    content: str
    models: dict[str, str]
    questions: dict[str, str]
    chosen: tuple[str, str]


def certificates_page(folder: Path, key: str, question: str) -> CertificatesPage | None:
    """Read the certificates and show the pair that is asked for, or the first; None where none can be understood.

    Raises InputError where the file is too large to be shown.
    """
    try:
        path = folder / CERTIFICATES
        content = read_regular(path, MAX_BYTES + 1)
        too_large = f"{path} is larger than {MAX_BYTES // 10**6} MB, which is the most that this page reads"
        require(len(content) <= MAX_BYTES, f"{too_large}; search fewer models.")
        entries = json.loads(content)
        return _page(folder, entries, key, question) if entries else None
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _page(folder: Path, entries: Any, key: str, question: str) -> CertificatesPage:
    shown = entries[:MAX_MODELS]
    pairs = [(entry, name) for entry in shown for name in QUESTIONS if entry[name]]
    asked = [(entry, name) for entry, name in pairs if (entry["key"], name) == (key, question)]
    notes = [ABOUT]
    if len(entries) > len(shown):
        notes.append(f"The first {len(shown)} are listed; {len(entries) - len(shown):,} more are in the file.")
    grids, headline, chosen, drawn = [_floors(shown)], "No pair was certified", ("", ""), ""
    for entry, name in (asked or pairs)[:1]:
        chosen, pair, spread = (str(entry["key"]), name), entry[name], float(entry["spread"])
        readouts = "any readout errs" if pair["exact"] else "readouts of bounded slope err"
        headline = f"{_model_words(entry)}: {readouts} by {decimal(float(pair['floor']) / spread)}"
        notes.append(_pair_words(entry, pair, spread))
        numbers = sum(len(token) for sequence in pair["pair"] for token in sequence)
        if numbers > MAX_NUMBERS:
            notes.append(f"The two sequences have {numbers:,} numbers, and at most {MAX_NUMBERS:,} are shown.")
        else:
            grids = [*map(_sequence, ("First", "Second"), pair["pair"]), *grids]
        drawn = f"-{chosen[0][:6]}.svg" if name == "anywhere" else ""
    document = Document(headline=headline, blocks=(*grids, Notes(tuple(notes), "Notes")))
    models = {str(entry["key"]): _model_words(entry) for entry, _ in pairs}
    questions = {name: QUESTIONS[name] for entry, name in pairs if str(entry["key"]) == chosen[0]}
    content = f"{report_content([document])}{_pictures((folder / CERTIFICATES).parent, drawn)}"
    return CertificatesPage(content, models, questions, chosen)


def _model_words(entry: dict[str, Any]) -> str:
    heads = f"{count_of_heads(int(entry['heads']))}{' and a norm' if entry.get('final_norm') else ''}"
    return f"{heads}, {int(entry['length'])} tokens, seed {int(entry['seed'])}"


def _pair_words(entry: dict[str, Any], pair: dict[str, Any], spread: float) -> str:
    apart = f"The model's outputs are at most {decimal(float(pair['distance'] or 0.0))} apart"
    proved = "An exact collision is proved" if pair["exact"] else apart
    estimated = f", estimated: {pair['estimated']}" if pair["estimated"] else ""
    gap, error = decimal(float(pair["gap"]) / spread), decimal(float(entry["nmse"]))
    return f"{proved}; the targets differ by {gap}{estimated}. Validation error {error}."


def _sequence(place: str, tokens: list[list[float]]) -> Grid:
    """Return a row per token."""
    rows = tuple((str(token), *(f"{float(value):.3g}" for value in row)) for token, row in enumerate(tokens, start=1))
    columns = ("token", *(f"number {i + 1}" for i in range(max(map(len, tokens), default=0))))
    return Grid(title=f"{place} sequence", columns=columns, rows=rows, folded=len(rows) > 64)


def _floors(entries: list[dict[str, Any]]) -> Grid:
    def floor_words(pair: dict[str, Any] | None, spread: float) -> str:
        if not pair:
            return "none found"
        return f"{decimal(float(pair['floor']) / spread)} ({'any' if pair['exact'] else 'bounded'} readout)"

    rows = []
    for entry in entries:
        floors = (floor_words(entry[question], float(entry["spread"])) for question in QUESTIONS)
        rows.append((_model_words(entry), decimal(float(entry["nmse"])), *floors))
    return Grid(title="Certified floors", columns=("model", "error", *QUESTIONS.values()), rows=tuple(rows))


def _pictures(folder: Path, of_pair: str) -> str:
    """Return the pictures of a pair and of all floors, as images that run nothing; links are not followed."""
    names = sorted(path.name for path in folder.glob("*.svg") if not path.is_symlink())
    wanted = [name for name in names if of_pair and name.startswith("pair-") and name.endswith(of_pair)][:1]
    wanted += [name for name in names if name.startswith("floor-")]
    contents = (base64.b64encode(read_regular(folder / name, MAX_BYTES)).decode() for name in wanted)
    image = '<figure class="picture"><img src="data:image/svg+xml;base64,{}" alt="drawn by headcount collide"></figure>'
    return "".join(map(image.format, contents))
