"""Text lines, and pairs of texts with scores, from files and from Python values. Without torch."""

import csv
import json
from pathlib import Path

from ...data.lines import bad_line, raw_lines
from ...errors import InputError, require

MOST_BYTES = 50_000_000
"""Of a text file; what comes after is not read."""
Pair = tuple[str, str, float]


def read_text_file(path: Path) -> tuple[list[str], list[str] | None] | list[Pair]:
    """Texts with their labels (None where there are none), or pairs with scores.

    A .txt file has one text per line. A .jsonl file has objects with "text" (and perhaps "label"), or with two texts
    and a "score". A .tsv or .csv file has rows of text, text, score; a first row whose last field is not a number is a
    heading.

    Raises:
        InputError: a file that is not there, is empty, is not text, or has rows of another form.
    """
    lines = _lines(path)
    if path.suffix == ".jsonl":
        return _of_objects(path, lines)
    if path.suffix in (".tsv", ".csv"):
        return _of_rows(path, lines)
    return [line for _, line in lines], None


Numbered = list[tuple[int, str]]
"""Lines that are not blank, with their numbers in the file, from 1."""


def _lines(path: Path) -> Numbered:
    lines, size = [], 0
    for number, line in raw_lines(path):
        size += len(line.encode())
        if size > MOST_BYTES:
            break
        require("\0" not in line, f"{path} is a binary file; give a text file (UTF-8) with one text per line.")
        if line.strip():
            lines.append((number, line.strip()))
    require(len(lines) > 0, f"{path} is empty, or has only blank lines; give a file with one text per line.")
    return lines


def _of_objects(path: Path, lines: Numbered) -> tuple[list[str], list[str] | None] | list[Pair]:
    rows = []
    for number, line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            bad_line(path, number, f"not JSON ({error})", "each line must be one object")
        require(isinstance(row, dict), f"{path}, line {number}: must be a JSON object, got {line[:40]!r}.")
        rows.append((number, row))
    if "text" in rows[0][1]:
        for number, row in rows:
            require(isinstance(row.get("text"), str), f'{path}, line {number}: must have "text", a string.')
        labels = [row.get("label") for _, row in rows]
        return [row["text"] for _, row in rows], None if None in labels else [str(label) for label in labels]
    pairs = []
    for number, row in rows:
        texts = [value for value in row.values() if isinstance(value, str)]
        scores = [value for value in row.values() if isinstance(value, int | float)]
        require(
            len(texts) == 2 and len(scores) == 1,
            f'{path}, line {number}: must have "text", or two texts and a score, got {", ".join(row) or "nothing"}.',
        )
        pairs.append((texts[0], texts[1], float(scores[0])))
    return pairs


def _of_rows(path: Path, lines: Numbered) -> list[Pair]:
    if path.suffix == ".tsv":
        rows = [(number, line.split("\t")) for number, line in lines]
    else:
        reader = csv.reader(line for _, line in lines)  # a quoted field may continue in the next line
        rows = [(lines[reader.line_num - 1][0], row) for row in reader]
    if len(rows[0][1]) == 3 and _number(rows[0][1][2]) is None:
        rows = rows[1:]
    pairs = []
    for number, row in rows:
        score = _number(row[2]) if len(row) == 3 else None
        if score is None:
            raise InputError(f"{path}, line {number}: must be text, text, score, got {len(row)} fields.")
        pairs.append((row[0], row[1], score))
    require(len(pairs) > 0, f"{path} has no pairs; give rows of text, text, score.")
    return pairs


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
