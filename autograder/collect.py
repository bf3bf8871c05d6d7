"""Collecting without following what a student may have planted: nbgrader's copies links as the instructor."""

from __future__ import annotations

import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import ignore_patterns

from autograder.notebook import MAX_BYTES
from autograder.submission import HARD_LINK, LINK, NOT_COLLECTED, NOT_PLAIN, TOO_LARGE


class Collect(ExchangeCollect):
    """nbgrader's `collect`, which leaves out links, pipes and oversize files and says so, also to the grader."""

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy what one student handed in."""
        if Path(src).is_symlink():
            self.log.error("%s is a symbolic link and was not collected", src)
            Path(dest).mkdir(parents=True)
            _note(Path(dest), f"{self.coursedir.assignment_id}.ipynb", LINK)
            return
        directory = self.coursedir
        unwanted = ignore_patterns(directory.ignore, directory.include, directory.max_file_size, self.log)

        def left_out(folder: str, names: list[str]) -> set[str]:
            odd = {name: why for name in names if (why := _odd(Path(folder) / name))}
            for name, why in odd.items():
                self.log.warning("%s was not collected: %s", Path(folder) / name, why)
            if folder == src:
                beside.update(odd)
            return {*unwanted(folder, names), *odd, *(name for name in names if name.endswith(NOT_COLLECTED))}

        beside: dict[str, str] = {}
        shutil.copytree(src, dest, symlinks=True, ignore=left_out)  # a link put there meanwhile stays a link
        for name, why in beside.items():
            _note(Path(dest), name, why)


def _note(folder: Path, name: str, why: str) -> None:
    with suppress(OSError):  # such as a name that leaves no room for more
        folder.joinpath(name + NOT_COLLECTED).write_text(why, encoding="utf-8")


def _odd(path: Path) -> str:
    facts = path.lstat()
    if stat.S_ISDIR(facts.st_mode):
        return ""
    if stat.S_ISLNK(facts.st_mode):
        return LINK
    if not stat.S_ISREG(facts.st_mode):
        return NOT_PLAIN
    if facts.st_nlink != 1:
        return HARD_LINK
    return TOO_LARGE if facts.st_size > MAX_BYTES else ""
