"""Further reading can be opened: every recap has links, well formed, and one title for each. Nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from autograder.course.notebook import cells_of, course_notebooks, read_notebook

ROOT = Path(__file__).parents[2]
NOTEBOOKS = list(course_notebooks(ROOT))
LINK = re.compile(r"\[([^\]\n]+)\]\(([^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)")  # a DOI may hold brackets
FORMS = {
    "doi.org": re.compile(r"/10\.\d{4,9}/[-.;()/:\w]*[\w)]"),
    "arxiv.org": re.compile(r"/(?:abs|pdf)/(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?"),
}


def links(notebook: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the links of a notebook's prose as cell, title and address; those to other notebooks are none."""
    for cell in cells_of(read_notebook(notebook)):
        if not cell.is_code:
            for title, address in LINK.findall(re.sub(r"`[^`]*`", "", cell.source)):
                if not address.startswith(("#", "../", "attachment:")):
                    yield cell.id, title, address


def problem(address: str) -> str:
    """Return what is wrong with an address, nothing if it is well formed."""
    parts = urlsplit(address)
    form = FORMS.get(parts.netloc.removeprefix("www.").removeprefix("dx."))
    if parts.scheme != "https":
        return "begins with https://"
    if not re.fullmatch(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", parts.netloc):
        return "names no host"
    return "is no DOI, or no number of arXiv" if form and not form.fullmatch(parts.path) else ""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_recap_has_links_that_are_well_formed(notebook: Path) -> None:
    found = list(links(notebook))
    last = [cell.id for cell in cells_of(read_notebook(notebook)) if not cell.is_code][-1]
    assert any(cell == last for cell, _, _ in found), f"{last}: further reading without a link"
    wrong = [f"{address} {why}" for _, _, address in found if (why := problem(address))]
    assert not wrong, "\n".join(wrong)


def test_no_link_has_two_titles() -> None:
    titles: dict[str, set[str]] = {}
    for notebook in NOTEBOOKS:
        for _, title, address in links(notebook):
            titles.setdefault(address.casefold().rstrip("/"), set()).add(title.casefold().strip(" *."))
    twice = {address: sorted(names) for address, names in titles.items() if len(names) > 1}
    assert not twice, f"one work, one title: {twice}"


@pytest.mark.parametrize(
    ("address", "sound"),
    [
        ("https://doi.org/10.1214/ss/1009213286", True),
        ("https://doi.org/10.1016/0005-2795(75)90109-9", True),
        ("https://arxiv.org/abs/1503.02531", True),
        ("https://arxiv.org/abs/cs.LG/0501001v2", True),
        ("https://docs.scipy.org/doc/scipy/", True),
        ("http://arxiv.org/abs/1503.02531", False),
        ("https://doi.org/1214/ss/1009213286", False),
        ("https://doi.org/10.1214/ss/1009213286.", False),
        ("https://arxiv.org/abs/150302531", False),
        ("https://", False),
        ("www.example.org", False),
    ],
)
def test_what_is_well_formed(address: str, sound: bool) -> None:
    assert (not problem(address)) is sound
    assert LINK.findall(f"see [a title]({address}), 2015") == [("a title", address)]
