"""The report: one HTML page that needs nothing but itself.

Style and script are inside it, charts are SVG, and its content policy forbids every request, so it opens from a file,
without a network, for as long as there are browsers. Equal results make equal pages.
"""

import base64
import html
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..analysis import summaries
from ..analysis.comparison import Verdict
from ..analysis.summary import NMSE
from .account import Account
from .chart import Chart, HeatMap
from .charts import judged_by
from .files import write_whole
from .section import Grid, Picture, Section
from .svg import heat_map, line_chart, mark_path
from .text import bottleneck_rows, evidence_rows, number, spoken_time

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SIGNS = {Verdict.HOLDS: "\u2713", Verdict.DIFFERS: "\u2260", Verdict.UNDECIDED: "?"}


def _what_errors_are(sections: list[Section]) -> str:
    """What every error on the page is; sections of data with labels say so themselves."""
    tables = (section.table or section.rank_table for section in sections)
    units = {s.unit or (NMSE if t is None else t.unit) for s, t in zip(sections, tables, strict=True)}
    if NMSE not in units:
        return "Errors are shares of wrong answers."
    return (
        "Errors are validation mean squared errors over the variance of the target (NMSE): 1 is as good as predicting "
        "the mean, 0 is exact."
    )


def page(sections: list[Section], *, folder: str, warnings: Iterable[str] = ()) -> str:
    """The whole page. Sections that read the same models are one result, and the first one's answer is the title; with
    more results an overview is."""
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    shared = tuple(note for note in sections[0].notes if len(sections) > 1 and all(note in s.notes for s in sections))
    results = len({section.account.keys if section.account else section.name for section in sections})
    heading = _text(sections[0].headline) if results == 1 else f"{len(sections)} results in {_text(folder)}"
    of_rank = ", and of which rank" if any(section.bottleneck is not None for section in sections) else ""
    body = "".join(
        [
            '<div class="bar"><span class="brand">headcount</span>'
            '<button id="theme" type="button" hidden>theme: auto</button></div>',
            f"<h1>{heading}</h1>",
            f'<p class="lead">How many attention heads does a task need{of_rank}? {_what_errors_are(sections)}</p>',
            *(f'<p class="warning">{_text(warning)}</p>' for warning in warnings),
            _overview(sections) if len(sections) > 1 else "",
            *(_section(section, shared) for section in sections),
            _notes(shared, "For all of these"),
            f"<footer>Made by headcount {__version__} from the folder <code>{_text(folder)}</code>. "
            "The page holds everything it shows and asks no network for anything.</footer>",
            '<div id="tip" role="status" hidden></div>',
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>headcount: {_text(folder)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def write_page(text: str, path: Path) -> None:
    """Write the page whole or not at all."""
    write_whole(path, text.encode("utf-8", errors="replace"), "the report")


def _asset(name: str) -> str:
    return (files("headcount.report") / "assets" / name).read_text(encoding="utf-8")


def _text(value: Any) -> str:
    return html.escape(str(value))


def _overview(sections: list[Section]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{_text(s.name)}">{_text(s.title)}</a></td><td>{_text(s.headline)}</td>'
        f'<td class="tally">{_tally(s)}</td></tr>'
        for s in sections
    )
    return f'<table class="overview"><tbody>{rows}</tbody></table>'


def _tally(section: Section) -> str:
    counts = [(verdict, sum(claim.verdict is verdict for claim in section.claims)) for verdict in Verdict]
    return " ".join(_chip(verdict, _counted(verdict, count)) for verdict, count in counts if count)


def _counted(verdict: Verdict, count: int) -> str:
    several = {Verdict.HOLDS: "hold", Verdict.DIFFERS: "differ", Verdict.UNDECIDED: "undecided"}
    return f"{count} {verdict if count == 1 else several[verdict]}"


def _chip(verdict: Verdict, words: str) -> str:
    return f'<span class="chip {verdict}">{_SIGNS[verdict]} {words}</span>'


def _section(section: Section, shared: tuple[str, ...]) -> str:
    parts = [
        f'<p class="kicker">{_text(section.title)}</p><h2>{_text(section.headline)}</h2>',
        f'<p class="asks">{_text(section.asks)}</p>',
        _missing(section.account),
        _claims(section),
        f'<div class="charts">{"".join(_figure(chart) for chart in section.charts)}</div>',
        "".join(map(_picture, section.pictures)),
        _numbers(section),
        _rank_numbers(section),
        "".join(map(_grid, section.grids)),
        _evidence(section),
        _notes(tuple(note for note in section.notes if note not in shared), "What to know beside the paper"),
        _account(section.account),
    ]
    return f'<section id="{_text(section.name)}">{"".join(parts)}</section>'


def _missing(account: Account | None) -> str:
    if account is None or not (account.missing or account.outcomes.get("failed") or account.outcomes.get("diverged")):
        return ""
    lost = [f"{account.missing} of {account.cells + account.missing} models are not trained yet"] * bool(
        account.missing
    )
    lost += [f"{account.outcomes[name]} {name}" for name in ("failed", "diverged") if account.outcomes.get(name)]
    again = "; the same command goes on where it stopped" if account.missing and account.commands else ""
    said = f" ({_text(account.messages[0])})" if account.messages else ""
    return f'<p class="warning">{", ".join(lost)}{again}. What is shown rests on the rest.{said}</p>'


def _claims(section: Section) -> str:
    rows = "".join(
        f"<li>{_chip(claim.verdict, claim.verdict)}<span>{_text(claim.statement)}</span>"
        f'<span class="evidence">{_text(claim.evidence)}</span></li>'
        for claim in section.claims
    )
    return f'<ul class="claims">{rows}</ul>' if rows else ""


def _figure(chart: Chart | HeatMap) -> str:
    drawing = heat_map(chart) if isinstance(chart, HeatMap) else _legend(chart) + line_chart(chart)
    return f"<figure><h3>{_text(chart.title)}</h3>{drawing}<figcaption>{_text(chart.caption)}.</figcaption></figure>"


def _picture(picture: Picture) -> str:
    source = f"data:image/png;base64,{base64.b64encode(picture.png).decode()}"
    title, caption = _text(picture.title), _text(picture.caption)
    return (
        f'<figure class="picture"><h3>{title}</h3><img src="{source}" alt="{caption}">'
        f"<figcaption>{caption}.</figcaption></figure>"
    )


def _legend(chart: Chart) -> str:
    """A button a colour, which hides its lines; one more for published lines or fits that share the colours."""
    buttons = []
    named: dict[int, str] = {}
    for series in chart.series:
        named.setdefault(series.place, series.name)
    for place, name in named.items():
        first = next(series for series in chart.series if series.place == place)
        swatch = (
            f'<svg viewBox="-12 -7 24 14" class="series p{place % 7} {first.kind}" aria-hidden="true">'
            f'<path class="line" d="M-11 0H11"/><g class="point"><path d="{mark_path(first.marker)}"/></g></svg>'
        )
        buttons.append(f'<button type="button" aria-pressed="true" data-place="{place}">{swatch}{_text(name)}</button>')
    for kind, words in (("published", "published, dashed"), ("fit", "fitted lines")):
        if {s.place for s in chart.series if s.kind == kind} & {s.place for s in chart.series if s.kind != kind}:
            buttons.append(f'<button type="button" aria-pressed="true" data-kind="{kind}">{words}</button>')
    return f'<div class="legend">{"".join(buttons)}</div>'


def _numbers(section: Section) -> str:
    table = section.table
    if table is None:
        return ""
    published = section.published
    title = "Errors by heads and length"
    title += f", beside {published.source}: each number there a {published.statistic} over seeds" if published else ""
    lines = ["<b>best</b>", '<span class="more">mean \u00b1 deviation</span>']
    lines += ['<span class="theirs">published, ours over it</span>'] * (published is not None)
    what = f'<td class="what">{"".join(lines)}</td>'
    heads_row = "".join(f'<th scope="col">T = {length}</th>' for length in table.lengths)
    rows = {(row.heads, row.length): row for row in summaries(table)}
    body = []
    for heads in table.heads:
        enough = section.answer is not None and section.answer.heads == heads
        cells = []
        for length in table.lengths:
            row = rows[heads, length]
            lost = f'<span class="more">{row.lost} of {row.seeds + row.lost} seeds lost</span>' if row.lost else ""
            spread = f'<span class="more">{number(row.mean)} \u00b1 {number(row.std)}</span>'
            theirs = ""
            value, deviation = (np.nan, np.nan) if published is None else published.at(heads, length)
            if published is not None and np.isfinite(value):
                ours = row.mean if published.statistic == "mean" else row.minimum
                spread_there = f" \u00b1 {number(deviation)}" if np.isfinite(deviation) else ""
                ratio = f", \u00d7{ours / value:.2g}" if np.isfinite(ours) else ""
                theirs = f'<span class="theirs">{number(value)}{spread_there}{ratio}</span>'
            cells.append(f"<td><b>{number(row.minimum)}</b>{spread}{theirs}{lost}</td>")
        cls = ' class="enough"' if enough else ""
        body.append(f'<tr{cls}><th scope="row">{heads}</th>{what}{"".join(cells)}</tr>')
    return (
        f'<div class="scroll"><table class="numbers"><caption>{title}</caption>'
        f'<thead><tr><th scope="col">heads</th><td></td>{heads_row}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _rank_numbers(section: Section) -> str:
    table, found = section.rank_table, section.bottleneck
    if table is None:
        return ""
    columns = "".join(f'<th scope="col">rank {rank}</th>' for rank in table.ranks)
    body = []
    for i, heads in enumerate(table.heads):
        cells = []
        for j, rank in enumerate(table.ranks):
            kept = table.errors[i, j]
            lost = int(np.sum(~np.isfinite(kept)))
            # A cell without any model may never have been asked for; the dash says all there is to say.
            said = f'<span class="more">{lost} of {kept.size} models lost</span>' if 0 < lost < kept.size else ""
            value = number(table.worst[i, j])
            solved = found is not None and found.solves(heads, rank)
            cells.append(f"<td>{f'<b>{value}</b>' if solved else value}{said}</td>")
        body.append(f'<tr><th scope="row">{heads}</th>{"".join(cells)}</tr>')
    return (
        '<div class="scroll"><table class="numbers"><caption>Errors by heads and rank: '
        f"{judged_by(table)}; bold where it is solved</caption>"
        f'<thead><tr><th scope="col">heads</th>{columns}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def _grid(grid: Grid) -> str:
    columns = "".join(f'<th scope="col">{_text(column)}</th>' for column in grid.columns)
    body = "".join(
        f'<tr><th scope="row">{_text(name)}</th>{"".join(f"<td>{_text(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in grid.rows
    )
    return (
        f'<div class="scroll"><table class="numbers"><caption>{_text(grid.title)}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _evidence(section: Section) -> str:
    said = [] if section.answer is None else evidence_rows(section.answer)
    said += [] if section.bottleneck is None else bottleneck_rows(section.bottleneck)
    if not said:
        return ""
    rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(words)}</dd>" for name, words in said)
    return f'<h3>Evidence for the answer</h3><dl class="facts">{rows}</dl>'


def _notes(notes: tuple[str, ...], title: str) -> str:
    items = "".join(f"<li>{_text(note)}</li>" for note in notes)
    return f'<h3>{title}</h3><ul class="notes">{items}</ul>' if notes else ""


def _account(account: Account | None) -> str:
    if account is None:
        return ""
    facts = [
        ("models", ", ".join(f"{count} {name}" for name, count in account.outcomes.items() if count) or "none"),
        ("machine", "; ".join(account.devices) or "unknown"),
        ("versions", "; ".join(account.versions) or "unknown"),
        ("time spent", f"{spoken_time(account.seconds)} of training, summed over models"),
        ("first asked for", account.began or "unknown"),
        ("last model done", account.ended or "none"),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts)
    commands = "\n".join(account.commands) or "# a sweep from Python"
    specs = "".join(
        f"<dt>{_text(title)}</dt><dd>{_text(', '.join(f'{key} {value}' for key, value in values.items()))}</dd>"
        for title, values in account.settings
    )
    return (
        "<details><summary>How this was made</summary>"
        f"<pre>{_text(commands)}</pre>"
        f'<dl class="facts">{rows}{specs}</dl></details>'
    )
