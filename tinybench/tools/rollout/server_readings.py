"""Metrics reported by the servers, read through Prometheus or directly while traffic runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tinybench.tools.watching.metrics_reader import Readings
from tinybench.tools.watching.prometheus_server import AwayError, Prometheus

__all__ = ["Told", "Watcher", "by_prometheus", "by_reading"]

STABLE, CANARY = "stable", "canary"


class Told(NamedTuple):
    """One reading of a version's metrics: its time by the reader's clock, total requests and worker restarts."""

    stamp: float
    requests: float
    restarts: float


Ask = Callable[[], Mapping[str, Told]]


def by_prometheus(prometheus: Prometheus) -> Ask:
    """Return a function that reads the servers' metrics through Prometheus.

    The function leaves out servers for which Prometheus has no reading.
    """
    queries = (
        "max by (version) (timestamp(tinybench_worker_restarts_total))",
        "sum by (version) (tinybench_requests_total)",
        "sum by (version) (tinybench_worker_restarts_total)",
    )

    def ask() -> Mapping[str, Told]:
        found: dict[str, list[float]] = {}
        for query in queries:
            for labels, value in prometheus.query(query):
                found.setdefault(labels.get("version", ""), []).append(value)
        return {version: Told(*values) for version, values in found.items() if len(values) == len(queries)}

    return ask


def by_reading(readings: Mapping[str, Readings]) -> Ask:
    """Return a function that reads the servers' metrics directly, without Prometheus."""

    def ask() -> Mapping[str, Told]:
        return {version: _latest(each) for version, each in readings.items() if each.look()}

    return ask


def _latest(readings: Readings) -> Told:
    names = "tinybench_requests_total", "tinybench_worker_restarts_total"
    requests, restarts = (sum(readings.latest(name).values()) for name in names)
    return Told(readings.kept[-1].at, requests, restarts)


class Watcher:
    """A thread that polls the metrics of both servers at intervals. `look` evaluates the latest reading.

    Parameters
    ----------
    ask
        A function that returns one reading per version. It raises an exception if the metrics cannot be read.
    every
        Seconds between two polls.

    Attributes
    ----------
    problem
        The reason why the last `look` found no valid new reading. Empty if there was one.
    """

    def __init__(self, ask: Ask, every: float = 0.25) -> None:
        self.ask, self.every, self.problem = ask, every, ""
        self.told: Mapping[str, Told] = {}
        self.failed = "nobody has told anything yet"
        self._looks: deque[tuple[Mapping[str, Told], Mapping[str, int]]] = deque(maxlen=8)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            self.ask_once()
            self._stop.wait(max(0.0, self.every - (time.monotonic() - begun)))

    def ask_once(self) -> None:
        """Poll once. Keep the readings, or the reason why there are none."""
        try:
            self.told, self.failed = dict(self.ask()), ""
        except (AwayError, OSError, ValueError, KeyError) as error:
            self.failed = str(error)

    def look(self, answers: Mapping[str, int]) -> bool:
        """Return whether each version has a valid new reading since the last call.

        `answers` holds the number of answers that users have got so far, by version.
        """
        told, before = self.told, self._looks[-1][0] if self._looks else {}
        self._looks.append((told, dict(answers)))
        self.problem = self.failed or self._stale(told, before) or self._stuck(told)
        return not self.problem

    def _stale(self, told: Mapping[str, Told], before: Mapping[str, Told]) -> str:
        for version in (STABLE, CANARY):
            if version not in told:
                return f"the {version} server cannot be read"
            if version in before and told[version].stamp <= before[version].stamp:
                return f"there is no new reading of the {version} server"
        return ""

    def _stuck(self, told: Mapping[str, Told]) -> str:
        """Return a message if a server's request counter has not moved although users got answers, or else "".

        A reading may lag by several checkpoints. So only answers that arrived several checkpoints ago are considered.
        """
        if len(self._looks) < (self._looks.maxlen or 0):
            return ""
        (first, answered), (_, by_now) = self._looks[0], self._looks[len(self._looks) // 2]
        for version in (STABLE, CANARY):
            moved = version not in first or told[version].requests != first[version].requests
            if by_now.get(version, 0) > answered.get(version, 0) and not moved:
                return f"tinybench_requests_total of the {version} server never moves, and users got answers from it"
        return ""

    def restarts(self, version: str) -> int:
        """Return the number of workers of a version that have died so far."""
        return int(self.told[version].restarts) if version in self.told else 0
