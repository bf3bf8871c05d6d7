"""Attacks by the folder: links, a second notebook, and files that the grader's own Python might load."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.attacks.notebooks import SOURCE, Attack

EMPTY_EVERY_CELL = """
import ast
from IPython import get_ipython
class T(ast.NodeTransformer):
    def visit_Module(self, node): return ast.Module([], [])
get_ipython().ast_transformers.append(T())
"""


def _instead(make: Callable[[Path, Path], object]) -> Callable[[Path, Path], None]:
    """Put something else in the notebook's place."""

    def arrange(folder: Path, source: Path) -> None:
        (folder / SOURCE.name).unlink()
        make(source, folder / SOURCE.name)

    return arrange


def _symbolic_link(source: Path, path: Path) -> None:
    path.symlink_to(os.path.relpath(source, path.parent))


def _folder_is_a_link(folder: Path, source: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(os.path.relpath(source.parent, folder.parent))


def _second_notebook(folder: Path, source: Path) -> None:
    shutil.copy(folder / SOURCE.name, folder / "another.ipynb")


def _no_notebook(folder: Path, source: Path) -> None:
    (folder / SOURCE.name).rename(folder / "my homework.ipynb")


def _planted_library(folder: Path, source: Path) -> None:
    for name in ("matplotlib", "autograder"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(EMPTY_EVERY_CELL)


ATTACKS = [
    Attack(
        "symbolic_link", "A symbolic link to the instructor's notebook in place of a submission",
        reason="symbolic link", arrange=_instead(_symbolic_link),
    ),
    Attack("hard_link", "A hard link to it", reason="hard link", arrange=_instead(os.link)),
    Attack("folder_is_a_link", "The whole folder a link to the instructor's", reason="symbolic link", arrange=_folder_is_a_link),
    Attack("second_notebook", "Hand in two notebooks", arrange=_second_notebook),
    Attack("wrong_name", "Hand in a notebook of another name", reason="missing", arrange=_no_notebook),
    Attack(
        "named_pipe", "A pipe that is never written, for the grader to wait on",
        reason="file", arrange=_instead(lambda source, path: os.mkfifo(path)),
    ),
    Attack("planted_library", "A package of one's own next to the notebook, named like a library", arrange=_planted_library),
]  # fmt: skip
