"""A reader of a server's /metrics that works without Prometheus and computes changes of counters over time windows."""

from __future__ import annotations

import math
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from typing import NamedTuple

from tinybench.tools.watching.prometheus_server import Labels, ScrapeTarget

__all__ = ["Reading", "Readings", "fetch_metrics", "increases", "parse_metrics"]

Key = tuple[str, tuple[tuple[str, str], ...]]  # name, and labels in sorted order
STARTED = "process_start_time_seconds"
MOST = 2**24  # maximum bytes that are read from /metrics


class Reading(NamedTuple):
    """One reading of a server's metrics, with its time on the reader's clock.

    ``anew`` is True if the server has restarted since the previous reading.
    """

    at: float
    gauges: dict[Key, float]
    counters: dict[Key, float]
    anew: bool = False


def fetch_metrics(target: ScrapeTarget, timeout: float) -> str:
    """Return the text that a server serves at /metrics."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{target.address}/metrics", timeout=timeout) as answer:
        return str(answer.read(MOST).decode())


def parse_metrics(text: str, at: float = 0.0) -> Reading:
    """Parse a text in Prometheus's format. If the text is invalid or holds no metric, raise ValueError."""
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ModuleNotFoundError:
        raise ValueError("reading /metrics takes prometheus_client: pip install 'tinybench-ml[serve]'") from None
    gauges: dict[Key, float] = {}
    counters: dict[Key, float] = {}
    for family in text_string_to_metric_families(text):
        into = counters if family.type in ("counter", "histogram", "summary") else gauges
        for sample in family.samples:
            into[sample.name, tuple(sorted(sample.labels.items()))] = float(sample.value)
    if not gauges and not counters:
        raise ValueError("it holds no metric")
    return Reading(at, gauges, counters)


class Readings:
    """The readings of one server over the last `keep` seconds.

    Parameters
    ----------
    target
        The server.
    keep
        Seconds for which readings are kept: the longest window that will be used.
    timeout
        Seconds after which a reading fails.
    clock
        The clock. It must not jump when the system time is set; the default does not.
    fetch
        A function that returns the text of /metrics.

    Attributes
    ----------
    problem
        The reason why the last attempt to read failed; empty if the attempt succeeded.
    restarts
        The number of restarts of the server. Each restart sets the counters to 0.
    """

    def __init__(
        self,
        target: ScrapeTarget,
        *,
        keep: float = 3600.0,
        timeout: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        fetch: Callable[[ScrapeTarget, float], str] = fetch_metrics,
    ) -> None:
        self.target, self.keep, self.timeout, self.clock, self.fetch = target, keep, timeout, clock, fetch
        self.kept: deque[Reading] = deque()
        self.problem, self.restarts = "nobody has looked yet", 0

    def look(self) -> bool:
        """Read the metrics once. Return True on success; on failure, store the reason in `problem`."""
        self.problem = ""
        try:
            text = self.fetch(self.target, self.timeout)
            reading = parse_metrics(text, self.clock())  # timed after arrival: a reading describes the time before
        except urllib.error.HTTPError as error:
            with error:
                self.problem = f"its /metrics answers {error.code}"
        except TimeoutError:
            self.problem = f"its /metrics does not answer within {self.timeout:g} s"
        except (OSError, HTTPException) as error:
            self.problem = f"its /metrics does not answer ({getattr(error, 'reason', None) or error})"
        except (ValueError, UnicodeError) as error:
            self.problem = f"what it answers at /metrics cannot be read ({error})"
        if self.problem:
            return False
        if self.kept and reading.at <= self.kept[-1].at:
            self.problem = "the reader's clock stands still or runs backwards"
            return False
        if self.kept and (anew := began_anew(self.kept[-1], reading)):
            self.restarts += 1
            reading = reading._replace(anew=anew)
        self.kept.append(reading)
        while len(self.kept) > 2 and self.kept[1].at <= reading.at - self.keep:  # keep one reading before the window
            self.kept.popleft()
        return True

    @property
    def age(self) -> float:
        """Seconds since the last reading; infinite if there is no reading."""
        return self.clock() - self.kept[-1].at if self.kept else math.inf

    def window(self, seconds: float) -> list[Reading]:
        """Return the readings of the last `seconds`, preceded by the latest reading before this window.

        The preceding reading holds the counters at the start of the window. If the window contains no reading, or if
        there is only one reading in all, return an empty list.
        """
        start = self.clock() - seconds
        found = [reading for reading in self.kept if reading.at > start]
        before = [reading for reading in self.kept if reading.at <= start][-1:]
        return before + found if found and len(before + found) > 1 else []

    def increase(self, name: str, seconds: float, **labels: str) -> float:
        """Return the increase of a counter in the last `seconds`, summed over all series with these labels.

        If there are not enough readings, return NaN.
        """
        rows = self.window(seconds)
        return sum(increases(name, rows, labels).values()) if rows else math.nan

    def histogram(self, name: str, seconds: float, **labels: str) -> tuple[list[float], list[float]]:
        """Return the bounds and cumulative counts of the values that a histogram received in the last `seconds`.

        If there are not enough readings, both lists are empty.
        """
        counts: dict[float, float] = {}
        for (_, pairs), more in increases(f"{name}_bucket", self.window(seconds), labels).items():
            bound = float(dict(pairs)["le"])
            counts[bound] = counts.get(bound, 0.0) + more
        return sorted(counts), [counts[bound] for bound in sorted(counts)]

    def latest(self, name: str, seconds: float = math.inf, **labels: str) -> dict[Key, float]:
        """Return the latest value of each series of a metric. If the values are older than `seconds`, return {}."""
        if not self.kept or self.age > seconds:
            return {}
        last = self.kept[-1]
        return {key: value for key, value in _all(last) if _fits(key, name, labels)}

    def moved(self, name: str, seconds: float, **labels: str) -> bool:
        """Return whether any series of a metric changed in the last `seconds`."""
        rows = self.window(seconds)
        seen = [{key: value for key, value in _all(row) if _fits(key, name, labels)} for row in rows]
        return any(row != seen[0] for row in seen)


def increases(name: str, rows: Sequence[Reading], labels: Labels) -> dict[Key, float]:
    """Return the increase of each series of a counter over the readings in `rows`.

    A series that is missing in a reading counts as 0 in that reading. After a restart of the server, every counter is
    taken to start at 0, even if its value is already higher than before the restart.
    """
    from tinybench.production import increase

    found = {}
    for key in {key: None for row in rows for key in row.counters if _fits(key, name, labels)}:
        values: list[float] = []
        for row in rows:
            values += [0.0] * (row.anew and bool(values))
            values.append(row.counters.get(key, 0.0))
        found[key] = increase(values)
    return found


def began_anew(before: Reading, after: Reading) -> bool:
    """Return True if a server restarted between two readings: the start time changed, or a counter decreased."""
    started = [reading.gauges.get((STARTED, ())) for reading in (before, after)]
    return started[0] != started[1] or any(
        value < before.counters.get(key, -math.inf) for key, value in after.counters.items()
    )


def _all(reading: Reading) -> Iterator[tuple[Key, float]]:
    yield from reading.gauges.items()
    yield from reading.counters.items()


def _fits(key: Key, name: str, labels: Labels) -> bool:
    return key[0] == name and labels.items() <= set(key[1])
