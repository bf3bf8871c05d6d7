"""The trace file: one row per request, with the server's own timestamps."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TextIO

HEAD = ["request_id", "received", "started", "finished", "code", "batch"]
Row = tuple[str, float, float, float, int, int]


class Trace:
    """A trace of requests, written on each `flush`. If writing fails, the trace ends but the server continues."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.rows, self.failed = path, list[Row](), False
        self.file: TextIO | None = None
        if path is not None:
            try:
                self.file = path.open("w", encoding="utf-8", newline="")
            except OSError as error:
                raise OSError(f"cannot write {path} ({error.strerror}); choose another --trace") from None
            csv.writer(self.file).writerow(HEAD)

    def flush(self) -> None:
        """Write the rows that were added since the last flush."""
        if self.file is None or not self.rows:
            return
        rows, self.rows = self.rows, []
        text = io.StringIO(newline="")
        csv.writer(text).writerows(
            [name, f"{received:.7f}", f"{started:.7f}" if started else "", f"{finished:.7f}", code, batch]
            for name, received, started, finished, code, batch in rows
        )
        try:
            self.file.write(text.getvalue())
            self.file.flush()
        except OSError as error:
            print(f"tinybench: cannot write {self.path} ({error.strerror}); the trace ends here", file=sys.stderr)
            self.failed = True
            self._close()

    def close(self) -> None:
        """Write the remaining rows and close the file."""
        self.flush()
        self._close()

    def _close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            try:
                file.close()
            except OSError:  # the buffered rows could not be written
                self.failed = True
