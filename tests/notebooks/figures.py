"""Every figure of a module as a reader sees it: 800 and 400 pixels wide, on a light and on a dark page.

``python -m tests.notebooks.figures NN_name FOLDER`` runs the notebook with its solutions and writes one sheet for each.
"""

from __future__ import annotations

import base64
import html
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from PIL import Image, ImageDraw

from autograder.course.assignment import Assignment
from autograder.course.execute import run_notebook
from autograder.course.notebook import cells_of
from tests.course.perfect_student import ROOT, solved

PICTURE = re.compile(r'src="data:image/png;base64,([^"]+)"')
PAGES = {"light": "#ffffff", "dark": "#111111"}


def figures(notebook: nbformat.NotebookNode) -> Iterator[tuple[str, bytes, str]]:
    """Yield the pictures of an executed notebook: cell, PNG, and its texts."""
    for cell in cells_of(notebook):
        for output in cell.node.get("outputs", []):
            data = output.get("data", {})
            markup = "".join(data.get("text/html", ""))
            for match in PICTURE.finditer(markup):
                yield cell.id, base64.b64decode(match[1]), html.unescape("".join(data.get("text/plain", "")))
            if "image/png" in data:
                yield cell.id, base64.b64decode("".join(data["image/png"])), "no alternative text"


def sheet(picture: bytes) -> Image.Image:
    """Return a picture at two widths on two pages."""
    shown = Image.open(io.BytesIO(picture)).convert("RGBA")
    sizes = [min(width, shown.width) for width in (800, 400)]
    small = [shown.resize((w, round(shown.height * w / shown.width)), Image.Resampling.LANCZOS) for w in sizes]
    width, height = sum(sizes) + 60, max(each.height for each in small) + 40
    page = Image.new("RGB", (width, height * len(PAGES)))
    draw = ImageDraw.Draw(page)
    for row, colour in enumerate(PAGES.values()):
        draw.rectangle((0, row * height, width, (row + 1) * height), fill=colour)
        for each, x in zip(small, (20, sizes[0] + 40), strict=True):
            page.paste(each, (x, row * height + 20), each)
    return page


def main() -> None:
    """Run a notebook and write the sheets of its figures."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    source = next((ROOT / "modules").glob(f"{name}*/*.ipynb"))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        Assignment.read(source).lay_out(Path(work))
        done = run_notebook(solved(source), folder=Path(work), variables={"MPLBACKEND": "agg"})
    print(f"{source.stem}: {done.seconds:.0f} s {done.failure}")
    for number, (cell, picture, text) in enumerate(figures(done.notebook), start=1):
        path = folder / f"{number:02}_{cell}.png"
        sheet(picture).save(path)
        print(f"{path}\n    {text}")
    for cell_ in cells_of(done.notebook):
        for output in cell_.node.get("outputs", []):
            if output.output_type == "error":
                print(f"{cell_.id}: {output.ename}: {output.evalue}")


if __name__ == "__main__":
    main()
