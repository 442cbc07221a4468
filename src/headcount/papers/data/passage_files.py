"""The file layouts of queries and passages: recognised and opened, but read only when asked.

    collection.tsv, queries.*.tsv, qrels.*.tsv     the official MS MARCO files; the star is a split (train, dev.small)
    corpus.jsonl, queries.jsonl, qrels/*.tsv       the layout of the BEIR benchmark
    one file .jsonl                                one query per line, with its passages (also Tevatron's)

Every file may be gzipped (.gz).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...data.lines import bad_line, numbered_lines, numbered_records, type_name
from ...errors import InputError, did_you_mean, require


class Row(NamedTuple):
    """One query or passage, and its line in the file."""

    line: int
    id: str
    text: str


class Judgement(NamedTuple):
    """A passage that answers a query, and the line of the file that says so."""

    line: int
    passage: str


@dataclass(frozen=True)
class PassageFiles:
    """The content of any layout; `queries` and `passages` read their files when called."""

    name: str
    queries_path: Path
    passages_path: Path
    judged_path: Path
    queries: Callable[[], Iterable[Row]]
    passages: Callable[[], Iterable[Row]]
    judged: Mapping[str, list[Judgement]]
    negatives: Mapping[str, list[str]] | None = None


def is_passages(path: Path) -> bool:
    """Return whether `path` looks like queries and passages, by file names alone."""
    if os.path.isdir(path):  # unlike Path.is_dir, False for a name too long
        return any(_by_split(path, layout.passages) for layout in LAYOUTS)
    return os.path.isfile(path) and path.name.endswith(JSON_LINES)


def open_passages(path: Path, split: str | None) -> PassageFiles:
    if path.is_dir():
        for layout in LAYOUTS:
            if passages := _by_split(path, layout.passages):
                return _three_files(path, passages[""], layout, split)
        raise InputError(
            f"{path} has no passages; give a folder with collection.tsv, queries.tsv and qrels.tsv, or with "
            "corpus.jsonl, queries.jsonl and qrels/, or one JSON-lines file (each may be .gz)."
        )
    require(path.exists(), f"there is no file or folder {path}; check the name.")
    require(path.name.endswith(JSON_LINES), f"{path} must be a folder, or a file that ends in .jsonl or .jsonl.gz.")
    one = f'{path} is one file, so split="{split}" cannot be chosen; leave it out.'
    require(split is None, one, what="split", given=split)
    return _json_lines(path)


def _by_split(folder: Path, pattern: str) -> dict[str, Path]:
    """Return the files of a pattern by the split that stands for its star; a plain file is preferred to a .gz one."""
    before, _, after = Path(pattern).name.partition("*")
    files = sorted((*folder.glob(pattern), *folder.glob(f"{pattern}.gz")), reverse=True)
    names = (file.name.removesuffix(".gz").removeprefix(before).removesuffix(after).strip(".") for file in files)
    return {name: file for name, file in zip(names, files, strict=True) if file.is_file()}


def _tab_separated(path: Path, *, kept: bool) -> Iterator[Row]:
    for line, content in numbered_lines(path, kept=kept):
        row_id, tab, text = content.partition("\t")
        if not tab:
            bad_line(path, line, "an id, a tab and a text are needed, found no tab")
        yield Row(line, _as_text(row_id, "id", path, line).strip(), _as_text(text, "text", path, line))


def _judgements(path: Path) -> dict[str, list[Judgement]]:
    """Return the qrels "query [iteration] passage grade"; grade 0 means that the passage is no answer."""
    judged: dict[str, list[Judgement]] = {}
    for line, text in numbered_lines(path, kept=True):
        columns = text.split()
        if columns[0] == "query-id":
            continue
        try:
            query, *_, passage, grade = columns
            positive = float(grade) > 0
        except ValueError:
            query, passage, positive = "", "", False
        if not query or len(columns) > 4:
            bad_line(path, line, f'"query 0 passage grade" or "query passage grade" is needed, got "{text[:60]}"')
        known = judged.setdefault(query, [])
        if positive and all(passage != other.passage for other in known):
            known.append(Judgement(line, passage))
    return {query: positives for query, positives in judged.items() if positives}


def _beir_rows(path: Path, *, kept: bool) -> Iterator[Row]:
    for line, record in numbered_records(path, kept=kept):
        if "_id" not in record:
            bad_line(path, line, f"the key _id is missing{_keys(record)}")
        yield Row(line, _as_id(record["_id"], "_id", path, line), _with_title(record, path, line))


def _with_title(record: dict[str, Any], path: Path, line: int) -> str:
    title, text = record.get("title") or "", record.get("text")
    if not title:
        return _as_text(text, "text", path, line)
    title = _as_text(title, "title", path, line)
    return f"{title} {_as_text(text, 'text', path, line)}" if text else title


class PassageLayout(NamedTuple):
    """Patterns of the file of passages, and of those of queries and judgements, where the star is a split."""

    passages: str
    queries: str
    judged: str
    rows: Callable[..., Iterator[Row]]


LAYOUTS = (
    PassageLayout("collection.tsv", "queries.*tsv", "qrels.*tsv", _tab_separated),
    PassageLayout("corpus.jsonl", "queries.jsonl", "qrels/*.tsv", _beir_rows),
)
JSON_LINES = (".jsonl", ".jsonl.gz")


def _three_files(folder: Path, passages: Path, layout: PassageLayout, split: str | None) -> PassageFiles:
    """Passages, and the queries and judgements of one split; queries without a split belong to every split."""
    queries, judged = _by_split(folder, layout.queries), _by_split(folder, layout.judged)
    for pattern, files in ((layout.queries, queries), (layout.judged, judged)):
        missing = pattern.replace("*tsv", "tsv")
        require(len(files) > 0, f"{folder} has {passages.name} but no {missing}; add it.")
    if len(queries) == len(judged) == 1 and split is None:
        chosen, queries_path = next(iter(judged)), next(iter(queries.values()))
    else:
        both = sorted(name for name in judged if name in queries or "" in queries)
        apart = f"queries for {_names_of(queries)} and qrels for {_names_of(judged)}, but no split has both; add one."
        require(len(both) > 0, f"{folder} has {apart}")
        if split is None:
            require(len(both) == 1, f'{folder} has the splits {_names_of(both)}; choose one with split="{both[-1]}".')
        chosen = both[0] if split is None else split
        require(chosen in both, f'{folder} has no split "{split}", only {_names_of(both)}.{did_you_mean(chosen, both)}')
        queries_path = queries.get(chosen) or queries[""]
    return PassageFiles(
        name=folder.resolve().name + (f".{chosen}" if chosen else ""),
        queries_path=queries_path,
        passages_path=passages,
        judged_path=judged[chosen],
        queries=lambda: layout.rows(queries_path, kept=True),
        passages=lambda: layout.rows(passages, kept=False),  # a sample of them may be all that is kept
        judged=_judgements(judged[chosen]),
    )


def _json_lines(path: Path) -> PassageFiles:
    """Equal texts are one passage; negatives are used only if every query has some."""
    queries, judged, negatives = [], {}, {}
    passages: dict[str, Row] = {}

    def ids(texts: list[str], line: int) -> list[str]:
        return list(dict.fromkeys(passages.setdefault(text, Row(line, str(len(passages)), text)).id for text in texts))

    for line, record in numbered_records(path, kept=True):
        query_id = _as_id(record.get("query_id", line), "query_id", path, line)
        queries.append(Row(line, query_id, _as_text(record.get("query"), "query", path, line)))
        positive = _texts(record, ("positive", "positives", "positive_passages"), path, line)
        if positive is None:
            bad_line(path, line, f"positive, positives or positive_passages is missing{_keys(record)}")
        negative = _texts(record, ("negatives", "negative_passages"), path, line)
        if positive:
            judged[query_id] = [Judgement(line, passage) for passage in ids(positive, line)]
            negatives[query_id] = ids(negative or [], line)
    return PassageFiles(
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        queries_path=path,
        passages_path=path,
        judged_path=path,
        queries=lambda: queries,
        passages=passages.values,
        judged=judged,
        negatives=negatives if all(negatives.values()) else None,
    )


def _texts(record: dict[str, Any], keys: tuple[str, ...], path: Path, line: int) -> list[str] | None:
    """The passages under the first of `keys` in the record: a string, a list of strings, or objects with a text."""
    key = next((key for key in keys if record.get(key) is not None), None)
    if key is None:
        return None
    values = [record[key]] if key == "positive" else record[key]
    if not isinstance(values, list):
        bad_line(path, line, f"{key} must be a list, got {type_name(values)}")
    if not key.endswith("_passages"):
        return [_as_text(value, key, path, line) for value in values]
    for value in values:
        if not isinstance(value, dict):
            bad_line(path, line, f'{key} must hold objects with the key "text"')
    return [_with_title(value, path, line) for value in values]


def _names_of(names: Iterable[str]) -> str:
    return ", ".join(name or "(no name)" for name in sorted(names))


def _keys(record: dict[str, Any]) -> str:
    return f", found {', '.join(record)}" if record else ""


def _as_text(value: Any, what: str, path: Path, line: int) -> str:
    if not isinstance(value, str):
        bad_line(path, line, f"{what} must be a string, got {type_name(value)}")
    if not value.strip():
        bad_line(path, line, f"{what} is empty")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            bad_line(path, line, f"{what} has a lone surrogate, which is not a character", "remove it")
    return value


def _as_id(value: Any, what: str, path: Path, line: int) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _as_text(value, what, path, line)
