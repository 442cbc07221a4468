"""Queries, passages, and which passages answer which query.

`read_passages` takes the official MS MARCO files, the layout of BEIR, and files of JSON lines; see `passage_files`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from .._errors import InputError, require, require_count
from .._keys import named_generator
from .lines import bad_line
from .passage_files import PassageFiles, Row, is_passages, open_passages

__all__ = ["PassageSet", "is_passages", "read_passages"]

Places = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class PassageSet:
    """Queries, passages, and which passages answer which query.

    `positives` and `negatives` hold, for each query, places in `passages`. All known positives of a query are there,
    and the first is the one to find. The negatives are the user's own, best first; None: they are to be mined.
    """

    name: str
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    passages: tuple[str, ...]
    positives: Places
    negatives: Places | None = None
    left_out: int = 0  # queries of the files that no passage answers

    def __post_init__(self):
        name, queries = self.name, len(self.queries)
        require(queries > 0, f"{name}: there are no queries.")
        for what, count in (("query_ids", len(self.query_ids)), ("positives", len(self.positives))):
            require(count == queries, f"{name}: {count} {what} for {queries} queries; they must be as many.")
        require(len(set(self.query_ids)) == queries, f"{name}: two queries have the same id.")
        for what, texts in (("query", self.queries), ("passage", self.passages)):
            empty = next((place for place, text in enumerate(texts) if not text.strip()), None)
            require(empty is None, f"{name}: {what} {empty} is empty.")
        require(all(self.positives), f"{name}: every query needs a positive passage.")
        self._check_places("positive", self.positives)
        if self.negatives is not None:
            require(
                len(self.negatives) == queries,
                f"{name}: {len(self.negatives)} lists of negatives for {queries} queries; they must be as many.",
            )
            self._check_places("negative", self.negatives)

    def _check_places(self, what: str, lists: Places) -> None:
        for query_id, places in zip(self.query_ids, lists, strict=True):
            outside = [place for place in places if not 0 <= place < len(self.passages)]
            require(
                not outside,
                f"{self.name}: query {query_id} has the {what} {outside[:1]} of {len(self.passages)} passages.",
            )
            require(len(set(places)) == len(places), f"{self.name}: query {query_id} has a {what} twice.")

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the content: equal for equal queries, passages, positives and negatives."""
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
    """The queries and passages stored at `path`.

    `max_queries` of the answered queries are drawn by `seed`. With `max_passages`, what the queries need is kept and
    the rest is drawn while the file streams by, so that a collection of millions never lies in memory.
    """
    for name, most in (("max_queries", max_queries), ("max_passages", max_passages)):
        if most is not None:
            require_count(name, most)
    files = open_passages(Path(path), split)
    queries, left_out = _answered(files)
    if max_queries is not None and max_queries < len(queries):
        drawn = named_generator(seed, "queries").choice(len(queries), max_queries, replace=False)
        queries = [queries[place] for place in np.sort(drawn)]
    needed = {judgement.passage: judgement.line for query in queries for judgement in files.judged[query.name]}
    if files.negatives is not None:
        needed |= {passage: query.line for query in queries for passage in files.negatives[query.name]}
    room = None if max_passages is None else max_passages - len(needed)
    require(
        room is None or room >= 0,
        f"{files.passages_path}: {len(queries)} queries need {len(needed)} passages, so max_passages "
        f"{max_passages} is too few; ask for fewer queries with max_queries.",
    )
    rows = sorted(
        _kept(files.passages(), needed.keys(), room, named_generator(seed, "passages")), key=lambda row: row.line
    )
    places = _places(rows, files.passages_path)
    for passage, line in needed.items():
        if passage not in places:
            bad_line(files.judged_path, line, f"there is no passage {passage} in {files.passages_path.name}")
    return PassageSet(
        name=files.name,
        query_ids=tuple(query.name for query in queries),
        queries=tuple(query.text for query in queries),
        passages=tuple(row.text for row in rows),
        positives=tuple(
            tuple(places[judgement.passage] for judgement in files.judged[query.name]) for query in queries
        ),
        negatives=None
        if files.negatives is None
        else tuple(tuple(places[passage] for passage in files.negatives[query.name]) for query in queries),
        left_out=left_out,
    )


def _answered(files: PassageFiles) -> tuple[list[Row], int]:
    """The queries that some passage answers, and how many none does."""
    answered, seen = [], set()
    for query in files.queries():
        if query.name in seen:
            bad_line(files.queries_path, query.line, f"the query id {query.name} stands there a second time")
        seen.add(query.name)
        if query.name in files.judged:
            answered.append(query)
    for name, judgements in files.judged.items():
        if name not in seen:
            bad_line(files.judged_path, judgements[0].line, f"there is no query {name} in {files.queries_path.name}")
    if not answered:
        raise InputError(f"{files.judged_path}: no passage answers any of the {len(seen)} queries.")
    return answered, len(seen) - len(answered)


def _kept(
    rows: Iterable[Row], needed: Iterable[str], room: int | None, generator: np.random.Generator
) -> Iterator[Row]:
    """The needed passages, and of the others all or, with `room`, that many with equal chances (a reservoir)."""
    reservoir: list[Row] = []
    others, draws = 0, iter(())
    for row in rows:
        if room is None or row.name in needed:
            yield row
            continue
        if others < room:
            reservoir.append(row)
        elif room > 0:
            draw = next(draws, None)
            if draw is None:
                draws = iter(generator.random(1 << 14).tolist())
                draw = next(draws)
            place = int(draw * (others + 1))
            if place < room:
                reservoir[place] = row
        others += 1
    yield from reservoir


def _places(rows: list[Row], path: Path) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, row in enumerate(rows):
        if places.setdefault(row.name, place) != place:
            bad_line(path, row.line, f"the passage id {row.name} stands there a second time")
    return places
