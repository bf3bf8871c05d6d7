"""The rows of a load test, and what follows from their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from tinybench.result import BenchmarkResult
from tinybench.support.basics.arguments import check_least, check_positive
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.traffic.load_checks import check_arrivals, objections
from tinybench.support.traffic.request_files import read_rows, write_rows


@dataclass(eq=False)
class RequestRows:
    """The base class of `tinybench.load.LoadResult`, which adds the latencies and their intervals."""

    intended: np.ndarray
    started: np.ndarray
    finished: np.ndarray
    ok: np.ndarray
    seconds: float
    metadata: dict[str, Any] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_positive(seconds=self.seconds)
        self.intended = check_arrivals(self.intended)
        self.started, self.finished = (np.asarray(x, dtype=float) for x in (self.started, self.finished))
        self.ok = np.asarray(self.ok, dtype=bool)
        for name in ("started", "finished", "ok"):
            if getattr(self, name).shape != self.intended.shape:
                raise ValueError(
                    f"{name} has {getattr(self, name).size} rows, intended {self.intended.size}; give one each"
                )

    @property
    def latencies(self) -> np.ndarray:
        """The latency of each request in seconds. The subclass `LoadResult` computes it."""
        raise NotImplementedError("write LoadResult.latencies")

    @property
    def lateness(self) -> np.ndarray:
        """The delay with which the generator itself started each request, in seconds."""
        return np.asarray(self.started - self.intended)

    @property
    def throughput(self) -> float:
        """The number of answers per second, while requests were sent."""
        return float(np.sum(self.ok & (self.finished <= self.seconds)) / self.seconds)

    def goodput(self, bound: float) -> float:
        """Return the requests per second that were answered within `bound` seconds of their intended start."""
        check_least(bound=bound)
        return float(np.sum(self.latencies <= bound) / self.seconds)

    def backlog(self, at: Any) -> np.ndarray:
        """Return the number of requests that were due and not yet answered at each of the times `at`, in seconds."""
        due, done = np.sort(self.intended), np.sort(self.finished)
        return np.asarray(np.searchsorted(due, at, side="right") - np.searchsorted(done, at, side="right"))

    def percentile(self, q: float) -> float:
        """Return the q-th percentile of latencies in s. Raise ValueError, with the reason, if it is unknown."""
        if found := objections(self, q):
            raise ValueError("; ".join(found))
        return float(np.quantile(self.latencies, q / 100, method="inverted_cdf"))

    def latency(self) -> BenchmarkResult:
        """Return the latencies of the answered requests as a result."""
        notes = {"failed": int(np.sum(~self.ok)), **self.metadata}
        return BenchmarkResult("latency", self.latencies[self.ok].tolist(), notes, unit="s")

    def save(self, path: str | Path) -> None:
        """Write a CSV file: a first line with the metadata, then one row for each request."""
        write_rows(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the result in a file that `save` wrote. Raise ValueError for any other file."""
        (intended, started, finished, ok), known = read_rows(path)
        return cls(intended, started, finished, ok > 0, known.pop("seconds"), known)
