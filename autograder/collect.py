"""Collecting without following what a student may have planted: nbgrader's copies links as the instructor."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import ignore_patterns

from autograder.notebook import MAX_BYTES


class Collect(ExchangeCollect):
    """nbgrader's `collect`, which leaves out links, pipes and oversize files and says so."""

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy what one student handed in."""
        if Path(src).is_symlink():
            self.log.error("%s is a symbolic link and was not collected", src)
            Path(dest).mkdir(parents=True)  # with nothing in it: graded as missing, with the reason
            return
        directory = self.coursedir
        unwanted = ignore_patterns(directory.ignore, directory.include, directory.max_file_size, self.log)

        def left_out(folder: str, names: list[str]) -> set[str]:
            odd = {name: why for name in names if (why := _odd(Path(folder) / name))}
            for name, why in odd.items():
                self.log.warning("%s %s and was not collected", Path(folder) / name, why)
            return {*unwanted(folder, names), *odd}

        shutil.copytree(src, dest, symlinks=True, ignore=left_out)  # a link put there meanwhile stays a link


def _odd(path: Path) -> str:
    facts = path.lstat()
    if stat.S_ISDIR(facts.st_mode):
        return ""
    if not stat.S_ISREG(facts.st_mode):
        return "is a link or no plain file"
    if facts.st_nlink != 1:
        return "is a hard link"
    return "is too large" if facts.st_size > MAX_BYTES else ""
