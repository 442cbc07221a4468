"""What every verb returns. The renderers show it and compute nothing: terminal, page, JSON, CSV.

A block is shown everywhere, or on a page alone, where there is room. A terminal shows the blocks in their order; a page
orders them by their kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from ..errors import require

if TYPE_CHECKING:  # a verb that prints a few words imports no numbers
    from ..answer import Answer, ClaimResult, ErrorTable
    from ..answer.coverage import Coverage
    from ..answer.next_steps import NextStep
    from .chart import Chart, HeatMap
    from .heads import HeadsRead
    from .provenance import Provenance


Shown = Literal["always", "page", "terminal"]
"""Where a block is shown."""
Words = str | tuple[str, str]
"""Words, or words with a style."""


@dataclass(frozen=True)
class Text:
    """Prose; `indent` columns are left free before each line. It is `unbroken` where it is to be copied or searched.

    The `role` places it on a page.
    """

    words: tuple[Words, ...]
    indent: int = 0
    unbroken: bool = False
    role: Literal["", "prose", "warning"] = ""
    shown: Shown = "always"

    @classmethod
    def of_sentences(cls, sentences: Sequence[str]) -> "Text":
        """Join the sentences of an answer."""
        return cls((*sentences[:1], *(f" {each}" for each in sentences[1:])), role="prose")

    @property
    def plain(self) -> str:
        """The words without their styles."""
        return "".join(each if isinstance(each, str) else each[0] for each in self.words)


def text(*words: Words, indent: int = 0) -> Text:
    """Return a paragraph of words, or of words with a style."""
    return Text(words, indent)


def line(*words: Words) -> Text:
    """Return one line of a terminal, however long."""
    return Text(words, unbroken=True)


class Entry(NamedTuple):
    """One entry of a grid.

    A terminal adds the words `aside`; a page has the lines `below`, and sets words of any style in bold.
    """

    words: str
    aside: str = ""
    below: tuple[str, ...] = ()
    style: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Entries in rows and columns. The first `keys` columns name a row; `marked` rows stand out.

    `align` has a letter per column: l, r, or p for prose that is wrapped; where it is empty the first is left and
    the others right. `caption` is the title of a page where it differs. `folded`: a page opens it on a click, a
    terminal leaves it out. `errors`: it has the errors of the document's table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | Entry, ...], ...]
    title: str = ""
    caption: str = ""
    keys: int = 1
    align: str = ""
    marked: tuple[int, ...] = ()
    folded: bool = False
    errors: bool = False
    shown: Shown = "always"

    def as_dict(self) -> dict[str, Any]:
        """Return the grid as JSON."""
        return {"title": self.title, "columns": self.columns, "rows": self.rows}


@dataclass(frozen=True)
class NamedFacts:
    """Names and what is said of them; `title` is the heading of a page."""

    rows: tuple[tuple[str, str], ...]
    title: str = ""
    shown: Shown = "always"


@dataclass(frozen=True)
class Notes:
    """What is left open, or was decided otherwise; `name` stands before each on a terminal."""

    items: tuple[str, ...]
    title: str
    name: str = "note"
    shown: Shown = "always"


@dataclass(frozen=True)
class Claims:
    """Statements with their verdicts and evidence."""

    results: "tuple[ClaimResult, ...]"


@dataclass(frozen=True)
class Steps:
    """What to do next, with commands."""

    steps: "tuple[NextStep, ...]"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A finished picture, as a PNG; pages show it."""

    title: str
    png: bytes
    caption: str


BlockKind = TypeVar("BlockKind")

Block: TypeAlias = "Text | Grid | NamedFacts | Notes | Claims | Steps | Chart | HeatMap | Picture | HeadsRead"


@dataclass(frozen=True, kw_only=True)
class DocumentSource:
    """The results behind a document, for comparisons and lists; models of an own experiment share its `settings`."""

    task: str
    table: "ErrorTable | None" = None
    answer: "Answer | None" = None
    settings: Mapping[str, Any] | None = None
    coverage: "Coverage | None" = None

    @property
    def answer_sentence(self) -> str:
        """The answer in a sentence; empty where there is none."""
        return "" if self.answer is None else self.answer.sentence


@dataclass(frozen=True, kw_only=True)
class Document:
    """A verb's result.

    Args:
        content: The JSON, made when it is asked for. With another `form` than terminal it is rows, which are the data.
        kind: How a page is laid out.
        name: Part of the names of its files.
        title: What lists call it.
        question: What it answers.
        headline: The answer in one sentence.
        heading: The same as a heading of a page, where blocks say a part of it; empty: the headline.
        unit: What the errors are, for a page.
        closing: The last line of a terminal, where it is not the headline.
        warning: Why not to trust the answer yet; said before it.
        blocks: What is shown.
        code: The exit code.
        messages: What is said on stderr afterwards.
        only_closing: Only the last line is data; the blocks are messages.
        form: What is printed where no JSON is asked for.
        out: The file that is written instead of stdout.
        figure: Draws what `--figure` saves, or nothing yet, as of a plan; None: the first chart.
        source: The results behind it.
        provenance: Where its numbers come from.
    """

    content: Callable[[], Any] = dict
    kind: Literal["", "own", "study", "inspection"] = ""
    name: str = ""
    title: str = ""
    question: str = ""
    headline: str = ""
    heading: str = ""
    unit: str = ""
    closing: str = ""
    warning: str = ""
    blocks: "tuple[Block, ...]" = ()
    code: int = 0
    messages: tuple[Words, ...] = ()
    only_closing: bool = False
    form: Literal["terminal", "csv", "json"] = "terminal"
    out: Path | None = None
    figure: "Callable[[], Chart | HeatMap | None] | None" = None
    source: DocumentSource | None = None
    provenance: "Provenance | None" = None

    def as_dict(self) -> Any:
        """Return the JSON: the content, and what all documents with a name have."""
        if not self.name:
            return self.content()
        common: dict[str, Any] = {"name": self.name, "title": self.title}
        common |= {"warning": self.warning} if self.warning else {}
        if self.source is not None and self.source.coverage is not None:
            common |= self.source.coverage.as_dict()
        common |= {"headline": self.headline, "claims": [claim.as_dict() for claim in self.claims]}
        common |= {"grids": [grid.as_dict() for grid in self.grids]} if self.grids else {}
        if self.provenance is not None:
            common["backends"] = self.provenance.backends
        return common | self.content()

    def blocks_of(self, *kinds: type[BlockKind]) -> tuple[BlockKind, ...]:
        """Return the blocks of some kinds, in their order."""
        return tuple(block for block in self.blocks if isinstance(block, kinds))

    @property
    def charts(self) -> "tuple[Chart | HeatMap, ...]":
        """Everything that is drawn."""
        from .chart import Chart, HeatMap

        return self.blocks_of(Chart, HeatMap)

    @property
    def claims(self) -> "tuple[ClaimResult, ...]":
        """The results of all claims."""
        return tuple(result for block in self.blocks_of(Claims) for result in block.results)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """All grids but those of errors."""
        return tuple(grid for grid in self.blocks_of(Grid) if not grid.errors)

    @property
    def notes(self) -> tuple[str, ...]:
        """The items of all notes."""
        return tuple(item for block in self.blocks_of(Notes) for item in block.items)

    @property
    def figure_chart(self) -> "Chart | HeatMap | None":
        """What `--figure` draws. Raises InputError where there is nothing to draw, or too much."""
        if self.figure is not None:
            return self.figure()
        require(len(self.charts) > 0, f"{self.title} has nothing to draw.")
        return self.charts[0]
