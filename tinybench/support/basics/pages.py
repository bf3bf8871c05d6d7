"""A report as a page: a self-contained HTML file, or Markdown."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Section(NamedTuple):
    """One section of a report: a heading, a text, the rows of a table, and the names of the pictures to show."""

    title: str
    text: str
    rows: list[dict[str, str]]
    pictures: list[str]


class Picture(NamedTuple):
    """A figure of a report, with an alternative text for readers who cannot see it."""

    figure: Figure
    alt: str
    caption: str = ""


_STYLE = """
:root { color-scheme: light dark; --line: #767676; --soft: #f2f2f2; --page: #fff; --ink: #1a1a1a; --act: #0b5394; }
@media (prefers-color-scheme: dark) {
  :root { --soft: #26282c; --page: #16181b; --ink: #e8e8e8; --act: #8fc1f5; }
}
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0; }
main { margin: 0 auto; max-width: 62rem; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .3rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
.act { border-left: .35rem solid var(--act); font-size: 1.2rem; margin: 1rem 0; padding-left: .8rem; }
.warnings { background: var(--soft); border: 1px solid var(--line); margin: 1rem 0; padding: .1rem 1rem; }
.warnings h2 { margin-top: .6rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem 1rem .3rem 0; text-align: left; vertical-align: top; }
thead th { background: var(--soft); }
tbody th { font-weight: 600; }
figure { margin: 1rem 0 1.5rem; }
figcaption { font-size: .9rem; max-width: 46rem; }
img { background: #fff; height: auto; max-width: 100%; width: 720px; }
@media print {
  :root { color-scheme: light; --soft: #f2f2f2; --page: #fff; --ink: #000; --act: #0b5394; }
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  th, td { padding-right: .5rem; }
  figure, tr, .act, .warnings { break-inside: avoid; }
  h2 { break-after: avoid; }
  details::details-content { content-visibility: visible; height: auto; }
}
"""


class Page(NamedTuple):
    """A report as one page that can be printed.

    Attributes
    ----------
    title, sentence
        The heading, and the one sentence that states the decision.
    pictures
        The pictures by name. `sections` refer to pictures by name. A picture that no section names stands at the top.
    sections
        The sections, in order.
    warnings
        Warnings, one sentence each. They stand before all sections and pictures.
    """

    title: str
    sentence: str
    pictures: Mapping[str, Picture]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()

    def at_the_top(self) -> list[str]:
        """Return the names of the pictures that no section refers to."""
        placed = {name for section in self.sections for name in section.pictures}
        return [name for name in self.pictures if name not in placed]

    def html(self) -> str:
        """Return the report as a self-contained HTML page. A table with more than 30 rows is collapsed."""
        title = html.escape(self.title)
        parts = [f"<h1>{title}</h1>", f'<p class="act"><strong>{html.escape(self.sentence)}</strong></p>']
        if self.warnings:
            items = "".join(f"<li>{html.escape(warning)}</li>" for warning in self.warnings)
            parts.append(
                f'<section class="warnings" aria-label="Warnings"><h2>Read with care</h2><ul>{items}</ul></section>'
            )
        parts += [_html_picture(self.pictures[name]) for name in self.at_the_top()]
        for section in self.sections:
            heading = html.escape(section.title)
            parts.append(f"<h2>{heading}</h2>\n<p>{html.escape(section.text)}</p>")
            if section.rows:
                table = Table(section.rows).html()
                table = f'<div class="scroll" tabindex="0" role="region" aria-label="{heading}">{table}</div>'
                folded = f"<details><summary>{number_of(len(section.rows), 'row')}</summary>{table}</details>"
                parts.append(folded if len(section.rows) > 30 else table)
            parts += [_html_picture(self.pictures[name]) for name in section.pictures]
        return (
            '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
            f"<style>{_STYLE}</style></head>\n<body><main>\n{chr(10).join(parts)}\n</main></body>\n</html>\n"
        )

    def markdown(self) -> str:
        """Return the report as Markdown. It refers to pictures by file name, but does not write these files."""
        parts = [f"# {self.title}", f"**{self.sentence}**"]
        if self.warnings:
            parts += ["## Read with care", "\n".join(f"- {warning}" for warning in self.warnings)]
        parts += [f"![{self.pictures[name].alt}]({name})" for name in self.at_the_top()]
        for section in self.sections:
            parts += [f"## {section.title}", section.text, *([Table(section.rows).markdown()] if section.rows else [])]
            parts += [f"![{self.pictures[name].alt}]({name})" for name in section.pictures]
        return "\n\n".join(parts) + "\n"


def _html_picture(picture: Picture) -> str:
    stream = io.BytesIO()
    picture.figure.savefig(stream, format="png", dpi=130)
    source = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
    caption = f"<figcaption>{html.escape(picture.caption)}</figcaption>" if picture.caption else ""
    return f'<figure><img alt="{html.escape(picture.alt)}" src="{source}">{caption}</figure>'
