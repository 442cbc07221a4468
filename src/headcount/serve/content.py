"""What is drawn of results: the content of the pages that `headcount report` and `compare` write."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from ..report.compare import compared, comparison_chart, comparison_document, named_documents
from ..report.document import Document, Notes, Text
from ..report.render.html import page


def report_content(documents: Sequence[Document], warnings: Iterable[str] = ()) -> str:
    """Return the content of the page of these documents; without any, the warnings."""
    if not documents:
        return "".join(Markup('<p class="warning">{}</p>').format(words) for words in warnings)
    found = re.search(r"<main[^>]*>(.*)</main>", page(documents, folder="", warnings=warnings), re.DOTALL)
    assert found is not None
    return found[1]


def comparison_content(folders: Mapping[str, Sequence[Document]]) -> str:
    """Return the results of several folders side by side."""
    comparison = compared(named_documents(folders))
    if not comparison.documents:
        return report_content((), ["Neither folder has a finished model yet."])
    shown, charts = comparison_document(comparison), map(comparison_chart, comparison.tables)
    remarks = Notes(tuple(each.plain for each in shown.blocks_of(Text)), "")
    headline = " and ".join(folders)
    return report_content([replace(shown, headline=headline, blocks=(*charts, *shown.blocks, remarks))])
