"""The files in which people keep queries and passages, found and opened but not yet read.

    collection.tsv, queries.*.tsv, qrels.*.tsv     the official MS MARCO files; the star is a split (train, dev.small)
    corpus.jsonl, queries.jsonl, qrels/*.tsv       the layout of the BEIR benchmark; the qrels may lie beside the rest
    *_passages.jsonl, *_queries.jsonl              a pool of passages around a set of queries
    one file .jsonl                                a query on each line, with its passages

Every file may be gzipped (.gz).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .._errors import InputError, did_you_mean, require
from .lines import as_list, as_name, as_text, bad_line, numbered_lines, numbered_records, plain_or_gzipped


class Row(NamedTuple):
    """One query or passage, and the line that holds it."""

    line: int
    name: str
    text: str


class Judgement(NamedTuple):
    """That a passage answers a query, and the line that says so."""

    line: int
    passage: str


@dataclass(frozen=True)
class PassageFiles:
    """What any of the layouts holds; `queries` and `passages` are read when they are called."""

    name: str
    queries_path: Path
    passages_path: Path
    judged_path: Path
    queries: Callable[[], Iterable[Row]]
    passages: Callable[[], Iterable[Row]]
    judged: Mapping[str, list[Judgement]]
    negatives: Mapping[str, list[str]] | None = None


def is_passages(path: Path) -> bool:
    """Whether `path` looks like queries and passages, by the names of its files alone."""
    return (path.is_file() and _is_lines(path)) or (path.is_dir() and any(mark(path) for mark, _ in LAYOUTS))


def open_passages(path: Path, split: str | None) -> PassageFiles:
    """The queries and passages at `path`; `split` chooses where a folder holds several sets of queries."""
    if path.is_dir():
        for mark, layout in LAYOUTS:
            if mark(path):
                return layout(path, split)
        raise InputError(
            f"{path} holds no passages: collection.tsv, corpus.jsonl or *_passages.jsonl is needed (each may be .gz)."
        )
    require(path.exists(), f"there is no file or folder {path}.")
    require(_is_lines(path), f"{path} must be a folder, or a file of JSON lines that ends in .jsonl or .jsonl.gz.")
    require(split is None, f'{path} is one file, so split="{split}" has no use.')
    return _lines(path)


def _is_lines(path: Path) -> bool:
    return path.name.endswith((".jsonl", ".jsonl.gz"))


def _official(folder: Path, split: str | None) -> PassageFiles:
    passages = plain_or_gzipped(folder / "collection.tsv")
    assert passages is not None
    queries, judged = _by_split(folder, "queries", ".tsv"), _by_split(folder, "qrels", ".tsv")
    require(len(queries) > 0, f"{folder} has {passages.name} and no queries.tsv or queries.*.tsv.")
    require(len(judged) > 0, f"{folder} has {passages.name} and no qrels.tsv or qrels.*.tsv to say what answers what.")
    return _three_files(folder, passages, queries, judged, split, _tab_separated)


def _tab_separated(path: Path) -> Iterator[Row]:
    for line, text in numbered_lines(path):
        name, tab, words = text.partition("\t")
        if not tab:
            bad_line(path, line, "an identifier, a tab and a text are needed, found no tab")
        yield Row(line, as_text(name, "the identifier", path, line).strip(), as_text(words, "the text", path, line))


def _judgements(path: Path) -> dict[str, list[Judgement]]:
    """Query, passage and grade on each line, with or without the column that nobody uses; grade 0 is no answer."""
    judged: dict[str, list[Judgement]] = {}
    for line, text in numbered_lines(path):
        columns = text.split()
        if columns[0] == "query-id":
            continue
        try:
            query, *_, passage, grade = columns
            answers = float(grade) > 0
        except ValueError:
            query, passage, answers = "", "", False
        if not query or len(columns) > 4:
            bad_line(path, line, f'"query 0 passage grade" or "query passage grade" is needed, got "{text[:60]}"')
        known = judged.setdefault(query, [])
        if answers and all(passage != other.passage for other in known):
            known.append(Judgement(line, passage))
    return {query: positives for query, positives in judged.items() if positives}


def _beir(folder: Path, split: str | None) -> PassageFiles:
    passages, queries = plain_or_gzipped(folder / "corpus.jsonl"), plain_or_gzipped(folder / "queries.jsonl")
    assert passages is not None
    if queries is None:
        raise InputError(f"{folder} has {passages.name} and no queries.jsonl.")
    files = [*_tables(folder / "qrels"), *(file for file in _tables(folder) if _has_header(file))]
    judged = {_without(file.name, ".tsv"): file for file in reversed(files)}
    require(
        len(judged) > 0,
        f"{folder} has {passages.name} and no qrels to say what answers what: "
        "qrels/*.tsv, or *.tsv that begins with query-id, is needed.",
    )
    return _three_files(folder, passages, {"": queries}, judged, split, _titled)


def _tables(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.tsv*") if file.name.endswith((".tsv", ".tsv.gz")))


def _has_header(file: Path) -> bool:
    return next((text for _, text in numbered_lines(file)), "").startswith("query-id")


def _titled(path: Path) -> Iterator[Row]:
    for line, record in numbered_records(path):
        if "_id" not in record:
            bad_line(path, line, f"the key _id is missing{_found(record)}")
        yield Row(line, as_name(record["_id"], "_id", path, line), _with_title(record, path, line))


def _with_title(record: dict[str, Any], path: Path, line: int) -> str:
    title, text = record.get("title") or "", record.get("text")
    if not title:
        return as_text(text, "text", path, line)
    title = as_text(title, "title", path, line)
    return f"{title} {as_text(text, 'text', path, line)}" if text else title


def _pool(folder: Path, split: str | None) -> PassageFiles:
    splits = _pools(folder)
    passages, queries = splits[_choose_split(folder, sorted(splits), split)]
    return PassageFiles(
        name=_without(queries.name, "_queries.jsonl"),
        queries_path=queries,
        passages_path=passages,
        judged_path=queries,
        queries=lambda: _keyed(queries, "query_id", "query"),
        passages=lambda: _keyed(passages, "id", "text"),
        judged=_pool_judgements(queries, _official_names(passages)),
    )


def _official_names(path: Path) -> dict[str, str]:
    """The `id` in the pool of every passage whose official `pid` is known."""
    return {
        as_name(record["pid"], "pid", path, line): as_name(record.get("id"), "id", path, line)
        for line, record in numbered_records(path)
        if record.get("pid") is not None
    }


def _pools(folder: Path) -> dict[str, tuple[Path, Path]]:
    found = {}
    for end in ("_passages.jsonl.gz", "_passages.jsonl"):
        for passages in folder.glob("*" + end):
            split = passages.name.removesuffix(end)
            queries = plain_or_gzipped(folder / f"{split}_queries.jsonl")
            if queries is not None:
                found[split] = (passages, queries)
    return found


def _keyed(path: Path, name: str, text: str) -> Iterator[Row]:
    for line, record in numbered_records(path):
        yield Row(line, as_name(record.get(name), name, path, line), as_text(record.get(text), text, path, line))


def _pool_judgements(path: Path, pool: Mapping[str, str]) -> dict[str, list[Judgement]]:
    """The `positive` of each query, and whatever else answers it and is in the pool."""
    judged = {}
    for line, record in numbered_records(path):
        official = as_list(record.get("qrels_pids", []), "qrels_pids", path, line)
        others = [as_name(name, "qrels_pids", path, line) for name in official]
        positives = dict.fromkeys(
            [as_name(record.get("positive"), "positive", path, line), *(pool[name] for name in others if name in pool)]
        )
        judged[as_name(record.get("query_id"), "query_id", path, line)] = [Judgement(line, name) for name in positives]
    return judged


def _lines(path: Path) -> PassageFiles:
    """Equal texts are one passage; the negatives count as given only where every query has some."""
    queries, judged, negatives = [], {}, {}
    passages: dict[str, Row] = {}

    def names(texts: list[str], line: int) -> list[str]:
        return list(
            dict.fromkeys(passages.setdefault(text, Row(line, str(len(passages)), text)).name for text in texts)
        )

    for line, record in numbered_records(path):
        name = as_name(record.get("query_id", line), "query_id", path, line)
        queries.append(Row(line, name, as_text(record.get("query"), "query", path, line)))
        positive = _texts(record, ("positive", "positives", "positive_passages"), path, line)
        if positive is None:
            bad_line(path, line, f"positive, positives or positive_passages is missing{_found(record)}")
        negative = _texts(record, ("negatives", "negative_passages"), path, line)
        if positive:
            judged[name] = [Judgement(line, passage) for passage in names(positive, line)]
            negatives[name] = names(negative or [], line)
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
    """The passages under the one of `keys` that the record has: a text, a list of texts, or of records with texts."""
    key = next((key for key in keys if record.get(key) is not None), None)
    if key is None:
        return None
    values = [record[key]] if key == "positive" else as_list(record[key], key, path, line)
    if key.endswith("_passages"):
        for value in values:
            if not isinstance(value, dict):
                bad_line(path, line, f'{key} must hold objects with the key "text"')
        return [_with_title(value, path, line) for value in values]
    return [as_text(value, key, path, line) for value in values]


def _three_files(
    folder: Path,
    passages: Path,
    queries: Mapping[str, Path],
    judged: Mapping[str, Path],
    split: str | None,
    rows: Callable[[Path], Iterator[Row]],
) -> PassageFiles:
    """Passages, and the queries and judgements of one split; queries without a split serve every split."""
    common = sorted(name for name in judged if name in queries or "" in queries)
    if len(queries) == len(judged) == 1 and split is None:
        chosen, queries_path = next(iter(judged)), next(iter(queries.values()))
    else:
        require(
            len(common) > 0,
            f"{folder} has queries for {_listed(queries)} and qrels for {_listed(judged)}, and no split has both.",
        )
        chosen = _choose_split(folder, common, split)
        queries_path = queries.get(chosen) or queries[""]
    return PassageFiles(
        name=folder.resolve().name + (f".{chosen}" if chosen else ""),
        queries_path=queries_path,
        passages_path=passages,
        judged_path=judged[chosen],
        queries=lambda: rows(queries_path),
        passages=lambda: rows(passages),
        judged=_judgements(judged[chosen]),
    )


def _by_split(folder: Path, kind: str, end: str) -> dict[str, Path]:
    """The files queries.tsv, queries.train.tsv ... by split; a plain file goes before a gzipped one."""
    files = sorted(folder.glob(f"{kind}.*"), reverse=True)
    files = [file for file in files if file.name.endswith((end, end + ".gz"))]
    return {_without(file.name, end).removeprefix(kind).removeprefix("."): file for file in files}


def _choose_split(folder: Path, splits: list[str], split: str | None) -> str:
    if split is None:
        require(len(splits) == 1, f'{folder} has the splits {_listed(splits)}; choose one with split="{splits[-1]}".')
        return splits[0]
    require(split in splits, f'{folder} has no split "{split}", it has {_listed(splits)}.{did_you_mean(split, splits)}')
    return split


def _without(name: str, end: str) -> str:
    return name.removesuffix(".gz").removesuffix(end)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or "(no name)" for name in sorted(names))


def _found(record: dict[str, Any]) -> str:
    return f", found {', '.join(record)}" if record else ""


LAYOUTS: tuple[tuple[Callable[[Path], object], Callable[[Path, str | None], PassageFiles]], ...] = (
    (lambda folder: plain_or_gzipped(folder / "collection.tsv"), _official),
    (lambda folder: plain_or_gzipped(folder / "corpus.jsonl"), _beir),
    (_pools, _pool),
)
