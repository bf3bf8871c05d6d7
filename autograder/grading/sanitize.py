"""Filters for a student's text and outputs, so that nothing in a notebook can run in the instructor's browser."""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import bleach  # type: ignore[import-untyped]
from bleach.css_sanitizer import CSSSanitizer  # type: ignore[import-untyped]

MAX_TEXT = 100_000
MAX_PICTURE = 2 * 2**20
# The cleaning time grows with the square of the number of tags and attributes that are open at once, and with the
# square of the length of numeric entities.
MAX_TAGS, MAX_DEPTH, MAX_STYLE = 3000, 100, 200
TAGS = {
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "dd", "details", "div", "dl", "dt", "em",
    "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "li", "ol", "p", "pre", "s", "small",
    "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"*": ["class", "style", "title"], "a": ["href"], "td": ["colspan", "rowspan"], "th": ["scope", "colspan"]}
VOID = {"br", "col", "hr", "img", "input", "wbr"}  # tags without an end tag
CODE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
LINES = re.compile(r"[\s\u200b-\u200f\u202a-\u202e\u2060-\u2069]+")
# For any text, the time that these patterns take is proportional to its length, as tests/grading/test_linear.py checks.
ODD_MARKDOWN = re.compile(
    r"<[A-Za-z/!?]|&[#\w]++;|!\[|\]\(\s*+(?!https?://|#)|attachment:"
    r"|^(?:[^\S\n]|[>*+\-\d.)])*+\[(?:[^\[\]\\]|\\[\s\S]?)++\]:\s*+(?!https?://|#)",
    re.M | re.I,
)
# a tag that ends at the same place for every HTML parser, or the beginning of a comment
TAG = re.compile(
    r"<(?:!--|(/?)([A-Za-z][\w:-]*+)"
    r"(?:\s++[A-Za-z_][\w:.-]*+(?:\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>=`]++))?+){0,20}+\s*+/?>)"
)
LONG_NUMBER = re.compile(r"&#\w{9}")
# The pages load MathJax, which creates links and other elements from these commands.
TEX = re.compile(r"\\(?:href|require|style|cssId|class|data|unicode|bbox|mmlToken|enclose|toggle|(?:text|math)?tip)\b")
LENGTH = re.compile(r"(?:width|max-width|margin(?:-\w+)?)\s*:[^;]*?(?:-\s*\.?\d|\d{4}|[(!])", re.I)


def _attribute(tag: str, name: str, value: str) -> bool:
    # The pages' own classes, or lengths beyond the cell, could place a student's text over the instructor's buttons.
    if name == "class":
        return value == "dataframe"
    if name == "style" and (len(value) > MAX_STYLE or LENGTH.search(value)):
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
    """Return text without control characters, cut to `most` characters."""
    text = str(value)
    short = text if len(text) <= most else text[:most] + " … (cut)"
    return CODE.sub("", short).encode("utf-8", "replace").decode("utf-8")


def safe_line(value: object, most: int = 200) -> str:
    """Return text on a single line, without characters that change the reading direction.

    The result cannot fake a second line.
    """
    return "".join(each if each.isprintable() else "\ufffd" for each in LINES.sub(" ", safe_text(value, most)))


def safe_markdown(text: str) -> str:
    """Return plain Markdown unchanged.

    Return any text with HTML, or with an unusual link or formula, as a code block.
    """
    text = safe_text(text)
    if not ODD_MARKDOWN.search(text) and not TEX.search(text):
        return text
    fence = "~" * (3 + max((len(run) for run in re.findall("~+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


@dataclass
class Allowance:
    """The amount of output that a submission may still add.

    Output is limited because it is stored several times and read by people.
    """

    characters: int = 1_000_000
    rich: int = 8_000_000
    tags: int = 10 * MAX_TAGS
    outputs: int = 2000


def safe_outputs(outputs: object, allowance: Allowance | None = None) -> list[dict[str, Any]]:
    """Return the outputs that the sandbox reports for a cell, cleaned and cut to what the allowance permits."""
    kept: list[dict[str, Any]] = []
    allowance = allowance or Allowance()
    left = min(MAX_TEXT, allowance.characters)
    for output in outputs[:100] if type(outputs) is list else []:
        allowance.outputs -= 1
        if type(output) is not dict or allowance.outputs < 0:
            continue
        text, shown = output.get("text"), output.get("data")
        if type(text) is str:
            text = safe_text(text, max(0, left))
            left -= len(text)
            allowance.characters -= len(text)
            kept.append({"output_type": "stream", "name": "stdout", "text": text})
        elif type(shown) is dict:
            # a value that is not text could be a proxy, whose methods run in the sandbox
            data = {kind: value for kind, value in shown.items() if type(kind) is type(value) is str}
            allowance.tags -= sum(map(data.get("text/html", "").count, "<&"))
            allowance.rich -= sum(len(value) for value in data.values())
            if allowance.rich >= 0 and (safe := _safe_data(data, markup=allowance.tags >= 0)):
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
    if markup and 0 < len(page) <= MAX_PICTURE and _is_plain(page := safe_text(page, MAX_PICTURE)):
        safe["text/html"] = _cleaner.clean(page)
    return safe


def _is_plain(page: str) -> bool:
    """Return whether an HTML text can be cleaned quickly: it has few tags, and these are not deeply nested."""
    if sum(map(page.count, "<&")) > MAX_TAGS or LONG_NUMBER.search(page) or TEX.search(html.unescape(page)):
        return False
    tags = TAG.findall(page)
    opened, depth, deepest = Counter[str](), 0, 0
    for end, name in ((end, name.lower()) for end, name in tags if name and name.lower() not in VOID):
        step = 1 if not end else -1 if opened[name] else 0
        opened[name] += step
        depth += step
        deepest = max(deepest, depth)
    return len(tags) == page.count("<") and deepest <= MAX_DEPTH


def _starts(picture: str, start: bytes) -> bool:
    try:
        return base64.b64decode(picture, validate=True).startswith(start)
    except ValueError:
        return False
