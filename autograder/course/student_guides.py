"""The map, the glossary and the cheat sheet for students, and the links that open the course on Binder and Colab."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any
from urllib.parse import quote, urlsplit

import nbformat

from autograder.course.module_build import COLAB
from autograder.course.notebook import KERNEL
from autograder.files import write_atomically

PAPERS = Path(__file__).with_name("papers")  # glossary and cheat sheet
MAP = "map.ipynb"
BADGE = "[![{text}]({picture})]({address})"
BINDER_PICTURE = "https://mybinder.org/badge_logo.svg"
COLAB_PICTURE = "https://colab.research.google.com/assets/colab-badge.svg"

WELCOME = """\
# The course, and how far you are
{badges}
Run the cell below (Shift+Enter). It shows every module: done, in progress, or not begun. Run it as often as you like.
A check counts while it passes. If it fails later, or if you change its code, it no longer counts until it passes again.
"""
AT_HAND = """\
At hand while you work:
- [Glossary](glossary.md): every term, in a sentence or two, with the module where it is taught.
- [Cheat sheet](cheat_sheet.pdf), two pages to print; also [as a web page](cheat_sheet.html).
- In any notebook, `from tinybench.course import sections; sections()` shows its sections with what has passed.

## Save your work

Binder and Colab forget everything when you leave. First save your open notebooks (Ctrl+S). Then run this cell, and
download the file.
"""
RESTORE = """\
## Take it up again

Drag your `my-work-….zip` into the list of files on the left, next to this notebook (Colab asks you for it instead).
Then run this cell. Whatever it replaces is kept in a zip file of its own.
"""
SHOW = "from tinybench.course import course_map, restore, save\n\ncourse_map()"
FETCH = '''\
# Given: on Google Colab, fetch the course and what it needs. Elsewhere this cell does nothing.
import sys

if "google.colab" in sys.modules:
    import os
    import subprocess

    drive = "/content/drive/MyDrive"  # with Drive mounted, the course stays there; else save() before you leave
    start = drive if os.path.isdir(drive) else os.environ.setdefault("TINYBENCH_START", os.getcwd())
    home = os.path.join(start, {name!r})
    if not os.path.isdir(home):
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", {url!r}, home], check=True)
    wanted = """{wanted}"""
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted.split()], check=True)
    os.environ["PYTHONPATH"] = home
    os.environ["TINYBENCH_COLAB"] = {notebooks!r}
    sys.path.insert(0, home)
    os.chdir(os.path.join(home, {folder!r}))
    from tinybench.course.colab import keep_notebook

    keep_notebook({notebook!r})'''
# Colab has its own notebook server and kernel, which must not be changed. Elsewhere, these two also bring nbformat.
NOT_ON_COLAB = {"ipykernel", "jupyterlab"}


@dataclass(frozen=True)
class Site:
    """The address and branch of the published repository, without any user name or password."""

    url: str
    branch: str = "main"

    @classmethod
    def of(cls, address: str, branch: str = "main") -> Site:
        """Return the site at an address that `git clone` accepts.

        Raises
        ------
        ValueError
            If others cannot clone from this address.
        """
        if match := re.fullmatch(r"(?:ssh://)?git@([\w.-]+)[:/](.+)", address):
            address = f"https://{match[1]}/{match[2]}"
        parts = urlsplit(address)
        path = parts.path.rstrip("/").removesuffix(".git") if parts.scheme != "file" else parts.path
        host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
        if parts.scheme not in ("https", "http", "file") or not path or not (host or parts.scheme == "file"):
            raise ValueError(f"{address!r} is no address to clone from; write https://github.com/OWNER/REPOSITORY")
        return cls(f"{parts.scheme}://{host}{path}", branch)

    @classmethod
    def of_remote(cls, folder: Path) -> Site | None:
        """Return the site of a folder's git remote `origin`, or None if there is no remote that others can clone."""
        if not (folder / ".git").exists():
            return None
        try:
            branch = _git(folder, "symbolic-ref", "--short", "HEAD")
            return cls.of(_git(folder, "config", "--get", "remote.origin.url"), branch or "main")
        except (OSError, ValueError):
            return None

    @property
    def name(self) -> str:
        """The name of the folder that `git clone` creates."""
        return self.url.rpartition("/")[2].removesuffix(".git")

    @property
    def on_github(self) -> str:
        """The site's OWNER/REPOSITORY on GitHub, or an empty string. Colab opens notebooks from GitHub only."""
        match = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", self.url)
        return match[1] if match else ""

    @property
    def binder(self) -> str:
        """The address that starts Binder and opens the course's map."""
        where = f"gh/{self.on_github}" if self.on_github else f"git/{quote(self.url, safe='')}"
        return f"https://mybinder.org/v2/{where}/{quote(self.branch, safe='')}?urlpath=lab/tree/{MAP}"

    @property
    def colab(self) -> str:
        """The prefix of the addresses at which Colab opens notebooks, or an empty string outside GitHub."""
        github = "https://colab.research.google.com/github"
        return f"{github}/{self.on_github}/blob/{quote(self.branch)}/" if self.on_github else ""

    @property
    def badges(self) -> str:
        """The badges that link to Binder and Colab, in Markdown."""
        made = [BADGE.format(text="Open on Binder", picture=BINDER_PICTURE, address=self.binder)]
        if self.colab:
            made.append(BADGE.format(text="Open in Colab", picture=COLAB_PICTURE, address=self.colab + MAP))
        return "\n" + " ".join(made) + "\n"


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", folder, *words], capture_output=True, text=True, encoding="utf-8", errors="replace"
    ).stdout.strip()


def papers(site: Site | None = None, wanted: Iterable[str] = ()) -> dict[str, bytes]:
    """Return the files that lie next to the notebooks' folders, by name: the map, the glossary and the cheat sheet."""
    found = {path.name: path.read_bytes() for path in sorted(PAPERS.iterdir()) if path.is_file()}
    return {MAP: map_notebook(site, wanted), **found}


def lay_out_papers(folder: Path) -> None:
    """Write the files that `papers` returns into a student's folder. Skip files that have not changed."""
    for name, content in papers().items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomically(path, content)


def map_notebook(site: Site | None = None, wanted: Iterable[str] = ()) -> bytes:
    """Return the map of the course, which is the notebook at the top of the student's folder.

    With a `site`, the map has links to Binder and Colab, and a cell that installs the packages in `wanted` on Colab.
    """
    code: Callable[..., Any] = nbformat.v4.new_code_cell
    text: Callable[..., Any] = nbformat.v4.new_markdown_cell
    cells = [
        text(WELCOME.format(badges=site.badges if site else "").strip(), id="welcome"),
        code(SHOW, id="map"),
        text(AT_HAND.strip(), id="at-hand"),
        code("save()", id="save"),
        text(RESTORE.strip(), id="restore-text"),
        code("restore()", id="restore"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    content = (nbformat.writes(notebook) + "\n").encode()
    return with_colab(content, site, ".", MAP, wanted) if site else content


def with_colab(content: bytes, site: Site, folder: str, notebook: str, wanted: Iterable[str]) -> bytes:
    """Return a notebook with an additional cell, after the header, that prepares Google Colab.

    The cell installs the packages in `wanted`, except those in `NOT_ON_COLAB`.
    """
    listed = [each for each in wanted if re.split(r"[^\w-]", each)[0] not in NOT_ON_COLAB]
    needed = fill(" ".join([*listed, "nbformat"]), 110)
    places = {"name": site.name, "url": site.url, "notebooks": site.colab, "folder": folder, "notebook": notebook}
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": COLAB,
        "metadata": {"jupyter": {"source_hidden": True}, "tags": [COLAB]},
        "outputs": [],
        "source": FETCH.format(wanted=needed, **places).splitlines(keepends=True),
    }
    read = json.loads(content)
    read["cells"].insert(1, cell)
    return (json.dumps(read, indent=1, ensure_ascii=False) + "\n").encode()
