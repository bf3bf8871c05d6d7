"""What an attack got hold of, seen in its executed notebook: secrets, and markup that would run in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode

MARK = "LEAKED"
# lines of the hidden checks and of the reference, a line of the host's users, and what an attack prints when it worked
SECRETS = {
    "stats.sem(values)": "hidden checks",
    "from fractions import Fraction": "hidden checks",
    "stdtrit(n - 1": "the reference",
    "root:x:0": "the host's files",
}
WORKED = re.compile(r"^LEAK (.*)", re.M)


def shown(notebook: NotebookNode) -> str:
    """Return all that a submission made appear."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            texts.append(str(output.get("text", "")))
            texts += [str(value) for value in output.get("data", {}).values()]
            texts.append(str(output.get("evalue", "")))
    return "\n".join(texts)


def leaks(notebook: NotebookNode, canaries: dict[str, str]) -> list[str]:
    """Return what a submission learnt or did that it must not, in words."""
    text = shown(notebook)
    found = [what for secret, what in (SECRETS | canaries).items() if secret in text]
    found += [line[:40] for line in WORKED.findall(text)]
    if MARK in str(notebook) and runs_script(notebook):
        found.append("script runs in the instructor's browser")
    return list(dict.fromkeys(found))


def runs_script(notebook: NotebookNode) -> bool:
    """Whether the page that nbconvert makes of a notebook, as Formgrader and feedback do, runs the attack's script."""
    page, _ = HTMLExporter().from_notebook_node(nbformat.from_dict(notebook))
    reader = _Reader()
    reader.feed(page)
    return reader.live


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.live, self.inside = False, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        for name, value in attrs:
            if MARK in (value or "") and (name.startswith("on") or (value or "").startswith("javascript:")):
                self.live = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script" and MARK in data:
            self.live = True
