"""The early estimate: how many heads a task looked like it needs, part-way through the training of a large model."""

from collections.abc import Iterable

from ..store import Record


def early_record(records: Iterable[Record]) -> Record | None:
    """Return the record that has the early estimate of an experiment: the one that was made first."""
    seen = [record for record in records if "early" in record.provenance]
    return min(seen, key=lambda record: record.provenance["early"]["seconds"], default=None)
