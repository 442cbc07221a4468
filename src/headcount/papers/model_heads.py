"""Head counts of published models, carried as data.

Model, year, layers, heads and width are Table 10 of Yu et al. (arXiv 2510.06662). Key heads and other head_dims than
width / heads were added from the models' papers and public configuration files; a number that is not known there is
left empty.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files

SOURCE = "Table 10, arXiv 2510.06662; key heads and head_dim from the models' papers and configuration files"


@dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """Sizes of one layer of a published model. `kv_heads` are heads with keys of their own; None where not known.

    `head_dim` is the number of components of a query or key: the largest rank that a head's scores can have.
    """

    model: str
    year: int
    layers: int
    heads: int
    kv_heads: int | None
    head_dim: int
    width: int
    note: str = ""

    @property
    def rank_share(self) -> float:
        """head_dim over width."""
        return self.head_dim / self.width


def published_models() -> tuple[PublishedModel, ...]:
    """Every model of the table, by year and then by size.

    Example:
        >>> [each.model for each in published_models()][:2]
        ['Attention is all you need', 'GPT']
    """
    lines = (files("headcount.papers") / "data" / "model_heads.csv").read_text(encoding="utf-8").splitlines()
    models = [
        PublishedModel(
            model=row["model"],
            year=int(row["year"]),
            layers=int(row["layers"]),
            heads=int(row["heads"]),
            kv_heads=int(row["kv_heads"]) if row["kv_heads"] else None,
            head_dim=int(row["head_dim"]) if row["head_dim"] else int(row["width"]) // int(row["heads"]),
            width=int(row["width"]),
            note=row["note"],
        )
        for row in csv.DictReader(lines)
    ]
    return tuple(sorted(models, key=lambda each: (each.year, each.width, each.layers, each.heads)))
