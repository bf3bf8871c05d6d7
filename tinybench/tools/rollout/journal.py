"""The journal of a rollout: a file with one JSON line per checkpoint.

An interrupted rollout is resumed or rolled back with the data in this file.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tinybench.rollout import RolloutState

__all__ = ["EventLog"]


class EventLog:
    """A journal in a file of JSON lines. If `path` is None, no file is written.

    Each line is written to disk at once. If a crash left an incomplete last line, this line is skipped.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.rows = path, _rows(path) if path is not None and path.exists() else []
        self.whole = path is None or not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")

    @property
    def state(self) -> RolloutState | None:
        """The last state of the last rollout in the journal, or None if the journal is empty."""
        return RolloutState(**self.rows[-1]["state"]) if self.rows else None

    @property
    def unfinished(self) -> bool:
        """Whether the last rollout in the journal was neither finished nor rolled back."""
        return self.state is not None and self.state.status == "running"

    def last_rollout(self) -> list[dict[str, Any]]:
        """Return the lines of the last rollout, beginning with the line that was written at its start."""
        begin = max((number for number, row in enumerate(self.rows) if "salt" in row), default=0)
        return self.rows[begin:]

    def write(self, state: RolloutState, **more: Any) -> None:
        """Append a line with the current time, the state of the rollout and other data."""
        row = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "state": asdict(state), **more}
        self.rows.append(row)
        if self.path is None:
            return
        text = "\n" * (not self.whole) + json.dumps(row) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                f"cannot write the journal {self.path} ({error.strerror}); choose another --journal"
            ) from None
        self.whole = True


def _rows(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            RolloutState(**row["state"])
        except (ValueError, TypeError, KeyError):
            if number < len(lines) and line.strip() and not line.startswith("{"):
                raise ValueError(
                    f"{path}, line {number}, is no line of a rollout's journal; choose another file"
                ) from None
            continue  # incomplete: the machine crashed while the line was written
        rows.append(row)
    if lines and not rows:
        raise ValueError(f"{path} is no journal of a rollout; choose another file")
    return rows
