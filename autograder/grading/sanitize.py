"""What a student's notebook may show in the instructor's browser: nothing that runs."""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass
from typing import Any

import bleach  # type: ignore[import-untyped]
from bleach.css_sanitizer import CSSSanitizer  # type: ignore[import-untyped]

MAX_TEXT = 100_000
MAX_PICTURE = 2 * 2**20
MAX_TAGS = 5000  # of a cell: cleaning takes the square of their number where they are not closed
TAGS = {
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "dd", "details", "div", "dl", "dt", "em",
    "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "li", "ol", "p", "pre", "s", "small",
    "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"*": ["class", "style", "title"], "a": ["href"], "td": ["colspan", "rowspan"], "th": ["scope", "colspan"]}
CODE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
LINES = re.compile(r"[\s\u200b-\u200f\u202a-\u202e\u2060-\u2069]+")
ODD_MARKDOWN = re.compile(
    r"<[A-Za-z/!?]|&[#\w]+;|!\[|\]\(\s*+(?!https?://|#)|^[\s>*+\-\d.)]*\[[^\]]+\]:\s*+(?!https?://|#)|attachment:",
    re.M | re.I,
)
# MathJax, which the pages load, makes these links and elements of its own
TEX = re.compile(r"\\(?:href|require|style|cssId|class|data|unicode|bbox|mmlToken|enclose|toggle|(?:text|math)?tip)\b")
LENGTH = re.compile(r"(?:width|max-width|margin(?:-\w+)?)\s*:[^;]*?(?:-\s*\.?\d|\d{4}|[(!])", re.I)


def _attribute(tag: str, name: str, value: str) -> bool:
    # the pages' own classes and lengths beyond the cell would lay a student's text over the instructor's buttons
    if name == "class":
        return value == "dataframe"
    if name == "style" and LENGTH.search(value):
        return False
    if tag == "img":
        return name in ("alt", "style") or (name == "src" and value.startswith("data:image/png;base64,"))
    if name == "href":
        return value.startswith(("https://", "http://", "#"))
    return name in ATTRIBUTES["*"] or name in ATTRIBUTES.get(tag, [])


_cleaner = bleach.Cleaner(
    tags=TAGS, attributes=_attribute, protocols=["http", "https", "data"], strip=True,
    css_sanitizer=CSSSanitizer(allowed_css_properties=["color", "margin", "max-width", "text-align", "width"]),
)  # fmt: skip


def safe_text(value: object, most: int = MAX_TEXT) -> str:
    """Return text without control characters, cut to a length."""
    text = str(value)
    short = text if len(text) <= most else text[:most] + " … (cut)"
    return CODE.sub("", short).encode("utf-8", "replace").decode("utf-8")


def safe_line(value: object, most: int = 200) -> str:
    """Return text on one line, without characters that turn the direction of reading: it cannot fake a second line."""
    return LINES.sub(" ", safe_text(value, most))


def safe_markdown(text: str) -> str:
    """Return plain Markdown unchanged, and as literal text if it holds HTML, or an unusual link or formula."""
    text = safe_text(text)
    if not ODD_MARKDOWN.search(text) and not TEX.search(text):
        return text
    fence = "~" * (3 + max((len(run) for run in re.findall("~+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


@dataclass
class Allowance:
    """How many characters a submission's outputs may still take: they are stored several times, and read by people."""

    characters: int = 1_000_000
    rich: int = 8_000_000


def safe_outputs(outputs: object, allowance: Allowance | None = None) -> list[dict[str, Any]]:
    """Return the outputs that the sandbox claims for a cell, cut and cleaned."""
    kept: list[dict[str, Any]] = []
    allowance = allowance or Allowance()
    left, tags = min(MAX_TEXT, allowance.characters), MAX_TAGS
    for output in outputs[:100] if type(outputs) is list else []:
        if type(output) is not dict:
            continue
        text, shown = output.get("text"), output.get("data")
        if type(text) is str:
            text = safe_text(text, max(0, left))
            left -= len(text)
            allowance.characters -= len(text)
            kept.append({"output_type": "stream", "name": "stdout", "text": text})
        elif type(shown) is dict:
            # what is not text stands for an object in the sandbox, and would answer for itself
            data = {kind: value for kind, value in shown.items() if type(kind) is type(value) is str}
            tags -= data.get("text/html", "").count("<")
            allowance.rich -= sum(len(value) for value in data.values())
            if allowance.rich >= 0 and (safe := _safe_data(data, markup=tags >= 0)):
                kept.append({"output_type": "display_data", "data": safe, "metadata": {}})
    return kept


def _safe_data(data: dict[str, str], *, markup: bool) -> dict[str, str]:
    safe = {}
    if "text/plain" in data:
        safe["text/plain"] = safe_text(data["text/plain"])
    for kind, start in (("image/png", b"\x89PNG\r\n"), ("image/jpeg", b"\xff\xd8\xff")):
        picture = data.get(kind, "")
        if 0 < len(picture) <= MAX_PICTURE and _starts(picture, start):
            safe[kind] = picture
    page = data.get("text/html", "")
    if markup and 0 < len(page) <= MAX_PICTURE and not TEX.search(html.unescape(page)):
        safe["text/html"] = _cleaner.clean(safe_text(page, MAX_PICTURE))
    return safe


def _starts(picture: str, start: bytes) -> bool:
    try:
        return base64.b64decode(picture, validate=True).startswith(start)
    except ValueError:
        return False
