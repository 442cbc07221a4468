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
        return any(_plain_or_gzipped(path / name) for name in ("collection.tsv", "corpus.jsonl"))
    return os.path.isfile(path) and _is_json_lines(path)


def open_passages(path: Path, split: str | None) -> PassageFiles:
    if path.is_dir():
        if passages := _plain_or_gzipped(path / "collection.tsv"):
            return _official(path, passages, split)
        if passages := _plain_or_gzipped(path / "corpus.jsonl"):
            return _beir(path, passages, split)
        raise InputError(
            f"{path} has no passages; give a folder with collection.tsv, queries.tsv and qrels.tsv, or with "
            "corpus.jsonl, queries.jsonl and qrels/, or one JSON-lines file (each may be .gz)."
        )
    require(path.exists(), f"there is no file or folder {path}; check the name.")
    require(_is_json_lines(path), f"{path} must be a folder, or a file that ends in .jsonl or .jsonl.gz.")
    require(
        split is None,
        f'{path} is one file, so split="{split}" cannot be chosen; leave it out.',
        what="split",
        given=split,
    )
    return _json_lines(path)


def _is_json_lines(path: Path) -> bool:
    return path.name.endswith((".jsonl", ".jsonl.gz"))


def _official(folder: Path, passages: Path, split: str | None) -> PassageFiles:
    found = {}
    for kind in ("queries", "qrels"):
        # Such as queries.tsv and queries.train.tsv; a plain file comes after a gzipped one, and replaces it.
        files = sorted((*folder.glob(f"{kind}.*tsv"), *folder.glob(f"{kind}.*tsv.gz")), reverse=True)
        found[kind] = {_without(each.name, ".tsv").removeprefix(kind).removeprefix("."): each for each in files}
        require(len(files) > 0, f"{folder} has {passages.name} but no {kind}.tsv or {kind}.*.tsv; add it.")
    return _three_files(folder, passages, found["queries"], found["qrels"], split, _tab_separated)


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


def _beir(folder: Path, passages: Path, split: str | None) -> PassageFiles:
    queries = _plain_or_gzipped(folder / "queries.jsonl")
    if queries is None:
        raise InputError(f"{folder} has {passages.name} but no queries.jsonl; add it.")
    files = sorted((*folder.glob("qrels/*.tsv"), *folder.glob("qrels/*.tsv.gz")), reverse=True)
    judged = {_without(file.name, ".tsv"): file for file in files}
    require(len(judged) > 0, f"{folder} has {passages.name} but no qrels/*.tsv; add it.")
    return _three_files(folder, passages, {"": queries}, judged, split, _beir_rows)


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


def _three_files(
    folder: Path,
    passages: Path,
    queries: Mapping[str, Path],
    judged: Mapping[str, Path],
    split: str | None,
    rows: Callable[..., Iterator[Row]],
) -> PassageFiles:
    """Passages, and the queries and judgements of one split; queries without a split belong to every split."""
    if len(queries) == len(judged) == 1 and split is None:
        chosen, queries_path = next(iter(judged)), next(iter(queries.values()))
    else:
        both = sorted(name for name in judged if name in queries or "" in queries)
        require(
            len(both) > 0,
            f"{folder} has queries for {_listed(queries)} and qrels for {_listed(judged)}, "
            "but no split has both; add one.",
        )
        if split is None:
            require(len(both) == 1, f'{folder} has the splits {_listed(both)}; choose one with split="{both[-1]}".')
        chosen = both[0] if split is None else split
        require(chosen in both, f'{folder} has no split "{split}", only {_listed(both)}.{did_you_mean(chosen, both)}')
        queries_path = queries.get(chosen) or queries[""]
    return PassageFiles(
        name=folder.resolve().name + (f".{chosen}" if chosen else ""),
        queries_path=queries_path,
        passages_path=passages,
        judged_path=judged[chosen],
        queries=lambda: rows(queries_path, kept=True),
        passages=lambda: rows(passages, kept=False),  # a sample of them may be all that is kept
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
        name=_without(path.name, ".jsonl"),
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


def _without(name: str, ending: str) -> str:
    return name.removesuffix(".gz").removesuffix(ending)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or "(no name)" for name in sorted(names))


def _keys(record: dict[str, Any]) -> str:
    return f", found {', '.join(record)}" if record else ""


def _plain_or_gzipped(path: Path) -> Path | None:
    """`path` if there is such a file, else `path` with .gz, else None."""
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)


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
