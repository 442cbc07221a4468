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
from ...errors import InputError, require, require_count
from .passage_files import PassageFiles, Row, is_passages, open_passages

__all__ = ["PassageSet", "is_passages", "read_passages"]

Places = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class PassageSet:
    """Queries, passages, and which passages answer which query.

    `positives` and `negatives` are indices into `passages`, one tuple per query. All known positives of a query are
    listed; the first is the one to rank highest. `negatives` are the user's, hardest first; None: they are mined.

    Raises:
        InputError: no query, an empty text, a duplicate id or index, or tuples that do not match.
    """

    name: str
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    passages: tuple[str, ...]
    positives: Places
    negatives: Places | None = None

    def __post_init__(self):
        name, queries = self.name, len(self.queries)
        require(queries > 0, f"{name}: there are no queries; at least one is needed.")
        for what in ("query_ids", "positives", "negatives"):
            count = queries if getattr(self, what) is None else len(getattr(self, what))
            require(count == queries, f"{name}: {count} {what} but {queries} queries; they must match.")
        require(len(set(self.query_ids)) == queries, f"{name}: query ids must not repeat.")
        for what, texts in (("query", self.queries), ("passage", self.passages)):
            empty = next((place for place, text in enumerate(texts) if not text.strip()), None)
            require(empty is None, f"{name}: {what} {empty} is empty; remove it.")
        require(all(self.positives), f"{name}: every query needs a positive passage; remove those without.")
        self._check_places("positive", self.positives)
        self._check_places("negative", self.negatives or ((),) * queries)

    def _check_places(self, what: str, lists: Places) -> None:
        for query_id, places in zip(self.query_ids, lists, strict=True):
            outside = next((place for place in places if not 0 <= place < len(self.passages)), None)
            require(
                outside is None,
                f"{self.name}: query {query_id} has {what} {outside}, but there are {len(self.passages)} passages.",
            )
            require(len(set(places)) == len(places), f"{self.name}: query {query_id} has a duplicate {what}.")

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

    Args:
        path: a folder with the official MS MARCO files or in BEIR's layout, or a file of JSON lines.
        split: which queries, where the folder has several sets (train, dev.small).
        max_queries: keep a random subset of the queries.
        max_passages: keep what the queries need and a random subset of the rest, drawn while the file is read, so
            that a collection of millions is never in memory.
        seed: of both subsets.

    Raises:
        InputError: a file that is missing, damaged or contradicts another; the message names the file and line.
    """
    for name, limit in (("max_queries", max_queries), ("max_passages", max_passages)):
        if limit is not None:
            require_count(name, limit)
    files = open_passages(Path(path), split)
    queries = _answered(files)
    if max_queries is not None and max_queries < len(queries):
        drawn = named_generator(seed, "queries").choice(len(queries), max_queries, replace=False)
        queries = [queries[place] for place in np.sort(drawn)]
    needed = {judgement.passage: judgement.line for query in queries for judgement in files.judged[query.id]}
    if files.negatives is not None:
        needed |= {passage: query.line for query in queries for passage in files.negatives[query.id]}
    spare = None if max_passages is None else max_passages - len(needed)
    require(
        spare is None or spare >= 0,
        f"{files.passages_path}: {len(queries)} queries need {len(needed)} passages, more than max_passages "
        f"{max_passages}; lower max_queries.",
    )
    rows = sorted(
        _sampled(files.passages(), needed, spare, named_generator(seed, "passages")), key=lambda row: row.line
    )
    places = _places(rows, files.passages_path)
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
    """Return the queries that have a positive passage."""
    answered, seen = [], set()
    for query in files.queries():
        if query.id in seen:
            bad_line(files.queries_path, query.line, f"duplicate query id {query.id}")
        seen.add(query.id)
        if query.id in files.judged:
            answered.append(query)
    for query_id, judgements in files.judged.items():
        if query_id not in seen:
            bad_line(
                files.judged_path, judgements[0].line, f"there is no query {query_id} in {files.queries_path.name}"
            )
    if not answered:
        raise InputError(
            f"{files.judged_path}: no passage answers any of the {len(seen)} queries; the ids in both files must match."
        )
    return answered


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


def _places(rows: list[Row], path: Path) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, row in enumerate(rows):
        if places.setdefault(row.id, place) != place:
            bad_line(path, row.line, f"duplicate passage id {row.id}")
    return places
