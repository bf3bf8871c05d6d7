"""A writer and a reader of CSV files that hold the requests of a load test."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.traffic.load_checks import LoadRun


def write_rows(result: LoadRun, path: str | Path) -> None:
    """Write a CSV file with one row for each request. The first line of the file is ``#`` and the metadata as JSON."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"# {json.dumps({'seconds': result.seconds, **result.metadata})}\n")
        rows = csv.writer(file)
        rows.writerow(["intended", "started", "finished", "ok"])
        rows.writerows(zip(result.intended, result.started, result.finished, result.ok.astype(int), strict=True))


def read_rows(path: str | Path) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return the columns and the metadata of a file that `write_rows` wrote. For any other file, raise ValueError."""
    with open(path, encoding="utf-8", newline="") as file:
        first, *rows = file.read().splitlines() or [""]
    try:
        if not first.startswith("# ") or rows[:1] != ["intended,started,finished,ok"]:
            raise ValueError
        columns = np.array([row.split(",") for row in rows[1:]], dtype=float).reshape(-1, 4).T
        return [*columns], json.loads(first[2:])
    except ValueError:
        raise ValueError(f"{path} was not written by LoadResult.save, or is damaged") from None
