"""The laws of every page and every drawing on it."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

from headcount.report.render.html import POLICY

VOID = {"meta", "img"}
COORDINATES = {"d", "x", "y", "width", "height", "transform", "r", "rx", "dy", "font-size", "viewBox"}
NOT_A_NUMBER = re.compile(r"(?<![a-z])(nan|inf)(?![a-z])", re.IGNORECASE)


class Reader(HTMLParser):
    """What a browser would see of a page whose every tag is closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.links: list[str | None] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.links += [dict(attrs).get("href")] * (tag == "a")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    @property
    def said(self) -> str:
        return " ".join(self.words)


def check_page(text: str) -> Reader:
    """A whole page: balanced, self-contained, every drawing sound. What it says is handed back."""
    reader = Reader(text)
    ids = [value for name, value in reader.attributes if name == "id"]
    links = [value for name, value in reader.attributes if name in ("href", "src")]
    assert len(ids) == len(set(ids))
    assert {f"#{place}" for place in ids} >= set(links)
    assert not re.search("https?://", text)
    assert POLICY in [value for name, value in reader.attributes if name == "content"]
    assert reader.tags.count("script") == 1
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert not NOT_A_NUMBER.search(reader.said)
    levels = [int(tag[1]) for tag in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1, levels
    assert levels.count(1) == 1, levels
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    assert {"header", "main", "footer"} <= set(reader.tags)
    for drawing in re.findall("<svg.*?</svg>", text, re.DOTALL):
        check_drawing(drawing)
    return reader


def check_drawing(text: str) -> ElementTree.Element:
    """A drawing: well formed, every coordinate a number, nothing of negative size."""
    drawing = ElementTree.fromstring(text)
    for element in drawing.iter():
        for name, value in element.attrib.items():
            if name in COORDINATES:
                assert not NOT_A_NUMBER.search(re.sub("[MLHVvhaz]", " ", value)), (element.tag, name, value)
            if name in ("width", "height", "r", "font-size"):
                assert float(value) >= 0, (element.tag, name, value)
    return drawing


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 to 21, as WCAG defines it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
