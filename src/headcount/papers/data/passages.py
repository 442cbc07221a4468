"""Queries, passages, and which passages answer which query; `passage_files` lists the layouts that are read."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..._draws import named_generator
from ...data.lines import bad_line
from ...errors import require
from .passage_files import PassageFiles, Row, is_passages, open_passages

__all__ = ["PassageSet", "is_passages", "read_passages"]

Places = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class PassageSet:
    """Queries, passages, and which passages answer which query.

    `positives` and `negatives` are indices into `passages`, one tuple per query. All known positives of a query are
    listed; the first is the one to rank highest. `negatives` are the user's, hardest first; None: they are mined.

    Raises:
        InputError: A tuple per query is missing, or an index is outside the passages.
    """

    name: str
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    passages: tuple[str, ...]
    positives: Places
    negatives: Places | None = None

    def __post_init__(self):
        name, queries, passages = self.name, len(self.queries), len(self.passages)
        for what in ("query_ids", "positives", "negatives"):
            lists = getattr(self, what)
            count = queries if lists is None else len(lists)
            require(count == queries, f"{name}: {count} {what} but {queries} queries; they must match.")
        require(all(self.positives), f"{name}: every query needs a positive passage; remove those without.")
        for place in {place for lists in (*self.positives, *(self.negatives or ())) for place in lists}:
            require(0 <= place < passages, f"{name}: there is no passage {place}, only {passages} of them.")

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content: ids, queries, passages, positives and negatives."""
        digest = hashlib.sha256()
        for part in (self.query_ids, self.queries, self.passages, self.positives, self.negatives):
            digest.update(json.dumps(part).encode())
        return digest.hexdigest()[:16]


def read_passages(
    path: Path,
    *,
    split: str | None = None,
    max_queries: int | None = None,
    max_passages: int | None = None,
    seed: int = 0,
) -> PassageSet:
    """Read queries and passages; queries without a positive passage are skipped.

    `split` says which queries, where a folder has several sets (train, dev.small). `max_queries` keeps a random subset
    of the queries, `max_passages` what they need and a random subset of the rest, drawn while the file is read, so that
    a collection of millions is never in memory. Raises InputError, with file and line, where a file is missing, damaged
    or contradicts another.
    """
    files = open_passages(path, split)
    queries = _answered(files)
    if max_queries is not None and max_queries < len(queries):
        drawn = named_generator(seed, "queries").choice(len(queries), max_queries, replace=False)
        queries = [queries[place] for place in np.sort(drawn)]
    needed = {judgement.passage: judgement.line for query in queries for judgement in files.judged[query.id]}
    if files.negatives is not None:
        needed |= {passage: query.line for query in queries for passage in files.negatives[query.id]}
    spare = None if max_passages is None else max(0, max_passages - len(needed))
    rows = sorted(
        _sampled(files.passages(), needed, spare, named_generator(seed, "passages")), key=lambda row: row.line
    )
    places: dict[str, int] = {}
    for place, row in enumerate(rows):
        if places.setdefault(row.id, place) != place:
            bad_line(files.passages_path, row.line, f"duplicate passage id {row.id}")
    for passage, line in needed.items():
        if passage not in places:
            bad_line(files.judged_path, line, f"there is no passage {passage} in {files.passages_path.name}")
    return PassageSet(
        name=files.name,
        query_ids=tuple(query.id for query in queries),
        queries=tuple(query.text for query in queries),
        passages=tuple(row.text for row in rows),
        positives=tuple(tuple(places[judgement.passage] for judgement in files.judged[query.id]) for query in queries),
        negatives=None
        if files.negatives is None
        else tuple(tuple(places[passage] for passage in files.negatives[query.id]) for query in queries),
    )


def _answered(files: PassageFiles) -> list[Row]:
    seen: dict[str, Row] = {}
    for query in files.queries():
        if seen.setdefault(query.id, query) is not query:
            bad_line(files.queries_path, query.line, f"duplicate query id {query.id}")
    for query_id, judgements in files.judged.items():
        if query_id not in seen:
            missing = f"there is no query {query_id} in {files.queries_path.name}"
            bad_line(files.judged_path, judgements[0].line, missing)
    unanswered = f"no passage answers any of the {len(seen)} queries; the ids in both files must match."
    require(len(files.judged) > 0, f"{files.judged_path}: {unanswered}")
    return [query for query in seen.values() if query.id in files.judged]


def _sampled(
    rows: Iterable[Row], needed: Collection[str], spare: int | None, generator: np.random.Generator
) -> Iterator[Row]:
    """The needed passages, and of the others all or `spare` drawn with equal probability (reservoir sampling)."""
    reservoir: list[Row] = []
    others = 0
    for row in rows:
        if spare is None or row.id in needed:
            yield row
            continue
        if others < spare:
            reservoir.append(row)
        elif spare and (place := int(generator.random() * (others + 1))) < spare:
            reservoir[place] = row
        others += 1
    yield from reservoir
