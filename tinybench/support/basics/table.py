"""Tables as text, Markdown, HTML or CSV. All tables of the library are made here."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

__all__ = ["Table", "csv_text", "facts"]

EMPTY = "There is nothing to show here."
_NUMBER = re.compile(r"(?=.*\d)[-+]?[\d,.]+(e[-+]?\d+)?( ?%)?|–?")


class Table:
    """A table with a header, as text, Markdown, HTML or CSV. Columns of numbers are aligned to the right.

    Parameters
    ----------
    rows
        One dictionary for each row. The keys of the first row are the header; the first column names the row.
    caption
        A description of the table.
    header
        Whether to show the names of the columns.
    empty
        The sentence to show if there are no rows. CSV stays empty because programs read it.
    """

    def __init__(
        self, rows: Iterable[Mapping[str, str]], caption: str = "", *, header: bool = True, empty: str = EMPTY
    ) -> None:
        self.rows, self.caption, self.header, self.empty = [dict(row) for row in rows], caption, header, empty

    def _lines(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Return the column names, the cells of each row, and one boolean per column: whether it holds only numbers."""
        names = list(self.rows[0]) if self.rows else []
        cells = [[row.get(name, "") for name in names] for row in self.rows]
        return (
            names,
            cells,
            [all(map(_NUMBER.fullmatch, column)) and any(column) for column in zip(*cells, strict=True)],
        )

    def text(self) -> str:
        """Return the table as text with aligned columns, without the caption."""
        if not self.rows:
            return self.empty
        names, cells, numeric = self._lines()
        lines = [names, *cells] if self.header else cells
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        )

    def __str__(self) -> str:
        """Return the caption, then the table as text with aligned columns."""
        return f"{self.caption}\n\n{self.text()}"

    def markdown(self) -> str:
        """Return a Markdown table, without the caption."""
        if not self.rows:
            return self.empty
        names, cells, numeric = self._lines()
        lines = [names, ["---:" if right else "---" for right in numeric], *cells]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)

    def csv(self) -> str:
        """Return CSV with a header."""
        return csv_text(self.rows).rstrip("\n")

    def html(self) -> str:
        """Return an accessible HTML table. Line breaks within cells are kept."""
        if not self.rows:
            return f"<p>{html.escape(' '.join(filter(None, [self.caption, self.empty])))}</p>"
        names, cells, numeric = self._lines()
        head = "".join(map(_html_cell, ['th scope="col"'] * len(names), names, numeric))
        tags = ['th scope="row"', *["td"] * (len(names) - 1)]
        rows = ("".join(map(_html_cell, tags, row, numeric)) for row in cells)
        body = "\n".join(f"<tr>{row}</tr>" for row in rows)
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        return (
            f"<table>{caption}{f'<thead><tr>{head}</tr></thead>' if self.header else ''}<tbody>{body}</tbody></table>"
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        markdown = f"{self.caption}\n\n{self.markdown()}"
        return {"text/plain": str(self), "text/html": self.html(), "text/markdown": markdown}


# Programs read all of these but the first two, which people read: with those, notes may follow on standard output
FORMATS: dict[str, Callable[[Table], str]] = {"table": str, "markdown": Table.markdown, "csv": Table.csv}


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header. None and NaN become empty. A quote is put before text that begins a formula."""
    if not rows:
        return ""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _csv_cell(value) for key, value in row.items()} for row in rows)
    return stream.getvalue()


def _csv_cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    runs = isinstance(value, str) and value.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(value)
    return f"'{value}" if runs else value


def _html_cell(tag: str, text: str, right: bool) -> str:
    content = html.escape(text).replace("\n", "<br>")
    return f'<{tag} style="text-align:{"right" if right else "left"}">{content}</{tag[:2]}>'


def facts(values: Mapping[str, str], caption: str = "") -> Table:
    """Return a table of names and values, without a header."""
    return Table([{"name": name, "value": value} for name, value in values.items()], caption, header=False)
