"""The trace: one row a request, with the server's own times."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TextIO

HEAD = ["request_id", "received", "started", "finished", "code", "batch"]
Row = tuple[str, float, float, float, int, int]


class Trace:
    """Keeps rows and writes them when told; a disk that is full costs the trace, not the server."""

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
        """Write what has come since."""
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
        """Write the rest."""
        self.flush()
        self._close()

    def _close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            try:
                file.close()
            except OSError:  # it could not write what it still held
                self.failed = True
