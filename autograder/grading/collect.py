"""A replacement for nbgrader's `collect` that follows no links and does not trust folder names.

Students may plant links, and everyone who may submit can create a folder of any name in the exchange. nbgrader's own
`collect` copies the targets of links with the instructor's permissions. It also takes the student's name and the time
of submission from the name of the folder.
"""

from __future__ import annotations

import shutil
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import ignore_patterns, parse_utc

from autograder.course.notebook import MAX_BYTES
from autograder.grading.names import why_no_student
from autograder.grading.sanitize import safe_line
from autograder.grading.submission import FOREIGN, HARD_LINK, LINK, NOT_COLLECTED, NOT_PLAIN, TOO_LARGE

try:
    import pwd
except ImportError:  # Windows, where owners are not checked
    pwd = None  # type: ignore[assignment]

CLOCKS_DIFFER = timedelta(minutes=10)


class Collect(ExchangeCollect):
    """A variant of nbgrader's `collect` that does not copy links, special files (such as pipes) or oversized files.

    For each such file at the top level of a submission, it writes a text file with the reason instead.
    """

    duedate: datetime | None = None
    src_records: list[dict[str, Any]]

    def init_src(self) -> None:
        """List the submissions whose names can be those of students. Log an error for each other submission."""
        super().init_src()
        kept = []
        for record in self.src_records:
            if why := why_no_student(record["username"]):
                self.log.error(
                    "%s was not collected, no student can have this name: %s", _line(record["filename"]), why
                )
            else:
                kept.append(record)
        self.src_records = kept

    def _path_to_record(self, path: str) -> dict[str, Any]:
        try:
            record: dict[str, Any] = super()._path_to_record(path)
        except Exception:  # the time parser raises many types; one bad name must not stop the collection
            self.log.error("%s names no time; taken as handed in when it was made", _line(path))
            name = Path(path).name
            record = {"username": name.rsplit("+", 3)[0], "filename": name, "timestamp": _made(Path(path))}
        return record

    def _sort_by_timestamp(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        own = [record for record in records if self._is_of(record["username"], record["filename"])]
        # another user's folder must not replace a student's own folder, even if the name claims a later time
        latest: list[dict[str, Any]] = super()._sort_by_timestamp(own or records)
        return latest

    def _is_of(self, student: str, name: str) -> bool:
        if not self.check_owner or pwd is None:
            return True
        return self._owner(Path(self.inbound_path, name)) == student

    def _owner(self, folder: Path) -> str:
        with suppress(KeyError):
            return pwd.getpwuid(folder.lstat().st_uid).pw_name
        return ""

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy one student's submission, without links, special files and oversized files.

        If the folder belongs to another user or is a link, copy nothing. Write a file with the reason instead.
        """
        foreign = not self._is_of(Path(dest).parent.name, Path(src).name)
        if foreign or Path(src).is_symlink():
            why = FOREIGN if foreign else LINK
            self.log.error("%s was not collected: %s", _line(src), why)
            Path(dest).mkdir(parents=True)
            _note(Path(dest), f"{self.coursedir.assignment_id}.ipynb", why)
            return
        directory = self.coursedir
        unwanted = ignore_patterns(directory.ignore, directory.include, directory.max_file_size, self.log)

        def left_out(folder: str, names: list[str]) -> set[str]:
            odd = {name: why for name in names if (why := _odd(Path(folder) / name))}
            for name, why in odd.items():
                self.log.warning("%s was not collected: %s", _line(Path(folder) / name), why)
            if folder == src:
                reasons.update(odd)
            return {*unwanted(folder, names), *odd, *(name for name in names if name.endswith(NOT_COLLECTED))}

        reasons: dict[str, str] = {}
        shutil.copytree(src, dest, symlinks=True, ignore=left_out)  # a link created during the copy stays a link
        for name, why in reasons.items():
            _note(Path(dest), name, why)
        # nbgrader decides by this file whether a submission is late, so it must hold the time used to select the folder
        handed_in, made, file = self._path_to_record(src)["timestamp"], _made(Path(src)), Path(dest) / "timestamp.txt"
        if self.duedate and handed_in <= self.duedate < made - CLOCKS_DIFFER:
            when = f"{made:%Y-%m-%d %H:%M:%S} UTC"
            self.log.warning(
                "%s says it was handed in on time, and was made or moved at %s: look at it", _line(src), when
            )
        if time_of(file) != handed_in:
            file.unlink(missing_ok=True)
            file.write_text(f"{handed_in:%Y-%m-%d %H:%M:%S.%f} UTC", encoding="utf-8")


def _line(path: object) -> str:
    return safe_line(path, 400)


def _note(folder: Path, name: str, why: str) -> None:
    with suppress(OSError):  # for example, the name may be too long for the suffix
        folder.joinpath(name + NOT_COLLECTED).write_text(why, encoding="utf-8")


def time_of(file: Path) -> datetime | None:
    """Return the UTC time that a timestamp file holds, or None if the file holds no valid time."""
    try:
        with file.open(encoding="utf-8") as opened:
            found: datetime = parse_utc(opened.read(200).strip())
    except Exception:  # the time parser raises many types
        return None
    return found


def _made(path: Path) -> datetime:
    """Return the UTC time at which a folder was last created or moved, or its permissions last changed.

    The owner of the folder cannot set this time.
    """
    return datetime.fromtimestamp(path.lstat().st_ctime, UTC).replace(tzinfo=None)


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
