"""The numbers the first paper printed, carried as data: table, metric, heads, length, value, std."""

import csv
import functools
from importlib.resources import files

import numpy as np

from ..analysis.comparison import PublishedTable


@functools.cache
def published_table(table: str, *, statistic: str) -> PublishedTable:
    """One table of arXiv 2510.06662 by its name in the file, such as table2."""
    lines = (files("headcount.studies") / "data" / "paper_tables.csv").read_text().splitlines()
    rows = [row for row in csv.DictReader(lines) if row["table"] == table]
    heads = tuple(sorted({int(row["heads"]) for row in rows}))
    lengths = tuple(sorted({int(row["length"]) for row in rows}))
    values, std = np.full((2, len(heads), len(lengths)), np.nan)
    for row in rows:
        place = heads.index(int(row["heads"])), lengths.index(int(row["length"]))
        values[place] = float(row["value"])
        std[place] = float(row["std"]) if row["std"] else np.nan
    source = f"Table {table.removeprefix('table')}, arXiv 2510.06662"
    return PublishedTable(source=source, statistic=statistic, heads=heads, lengths=lengths, values=values, std=std)
