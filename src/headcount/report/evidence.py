"""What an answer rests on, and what would make it more certain, as rows of words."""

from collections.abc import Mapping
from typing import Any

from ..answer import Answer, ErrorTable, Interval, size_of
from ..answer.next_steps import narrowing_of
from .charts import about_rank
from .heads_map import place_name


def evidence_rows(table: ErrorTable | None, answer: Answer, effort: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what an answer rests on, by name; `effort` is how it was asked for. A table that others show is None."""
    if answer.map:
        rows = [(place_name(each.kv_heads, each.head_dim), each.sentence) for each in answer.map]
        return [("at every place", rows[0][1])] if len({sentence for _, sentence in rows}) == 1 else rows
    if table is not None and about_rank(table):
        return _rank_evidence(answer)
    return _heads_evidence(table, answer, effort)


def _heads_evidence(table: ErrorTable | None, answer: Answer, effort: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [("drop", f"{_signal(answer.signals.get('drop'))}; {answer.reason}")]
    if len(answer.by_length) > 1:
        rows.append(("slope in length", _signal(answer.signals["slope"])))
        rows.append(("reversal score", _signal(answer.signals["reversal"])))
        alone = [f"T = {t}: {'no drop' if h is None else h}" for t, h in answer.by_length.items()]
        rows.append(("each length alone", ", ".join(alone)))
    return rows if answer.heads is None or table is None else rows + _unknowns(answer, table, effort)


def _unknowns(answer: Answer, table: ErrorTable, effort: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the interval allows for: other seeds, other draws of the data, solutions that the search missed."""
    draws = len(table.values("data_seed"))
    seeds, data, search = (answer.unknowns.get(name) for name in ("seeds", "data", "search"))
    over = "seeds" if data is None else "seeds and data"
    rows = [
        ("interval", f"[{answer.low}, {answer.high}] is the 90 % interval over {over}, and what the search may miss")
    ]
    rows.append(("seeds", f"{_bounds(seeds)}{_resamples(answer)}"))
    rows.append(("data", "one draw only" if data is None else f"{_bounds(data)}{draws} draws"))
    if search is None:
        rows.append(("search", "nothing smaller was tried"))
    else:
        words = "may have missed" if search.low < search.at else "unlikely to have missed"
        rows.append(("search", f"{_bounds(search)}{words} a smaller solution"))
    if answer.widest is None:
        rows.append(("widest", "none: seeds, data and search leave one head count"))
    else:
        rows.append(("widest", f"{answer.widest}{_narrowing(answer, table, effort)}"))
    return rows


def _bounds(interval: Interval | None) -> str:
    return "" if interval is None else f"[{interval.low}, {interval.high}], "


def _resamples(answer: Answer) -> str:
    """Return the shares of resamples; those that show no transition are in no interval."""
    words = f"{answer.support:.0%} of resamples give {answer.heads}"
    if answer.silent is None:
        others = "another head count" + (" or no transition" if answer.kind != "enough" else "")
        return words if answer.support == 1 else f"{words}, the others {others}"
    others = max(0.0, 1 - answer.support - answer.silent)
    shares = [(answer.silent, "show no transition"), (others, "another head count")]
    return ", ".join([words, *(f"{share:.0%} {what}" for share, what in shares if share > 0.004)])


def _narrowing(answer: Answer, table: ErrorTable, effort: Mapping[str, Any]) -> str:
    """Return what to run to leave fewer head counts open."""
    options = narrowing_of(answer, table, effort)
    if options is None:
        return "; more examples narrow it" if answer.kind == "enough" else "; the most that is tried was tried"
    if "heads" in options:
        untried = [count for count in options["heads"] if count not in table.values("heads")]
        return f"; to narrow it, add {', '.join(map(str, untried))} to --heads"
    ((name, value),) = options.items()
    return f"; to narrow it, run it with --{name} {value}"


def _rank_evidence(answer: Answer) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [("short of", answer.limit)]
    if answer.fold is not None:
        rows.append(("drop", f"the error falls {answer.fold:.3g}-fold where it is solved"))
    if answer.at is not None:
        heads, rank = answer.at
        rows.append(("smallest solved", f"{size_of(heads, rank)}, heads x rank = {heads * rank}"))
    if len(answer.frontier) > 1:
        rows.append(("frontier", ", ".join(size_of(*size) for size in answer.frontier)))
    if answer.needs:
        rows.append(("interval", "in brackets: 90 % intervals over seeds"))
    if answer.limit != "unknown":
        rows.append(("seeds", f"{answer.support:.0%} of resamples agree"))
    return rows


def _signal(heads: int | None) -> str:
    return "none" if heads is None else f"{heads}"
