"""Regular polls of servers: the result of each poll (`Look`), burn rates of the error budget, and a final verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tinybench.support.basics.arguments import check_least
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.short_reprs import short_repr
from tinybench.tools.watching.metrics_reader import Reading, Readings, increases
from tinybench.tools.watching.queries import COUNTED, Objective, Window

__all__ = ["Bucket", "Look", "Verdict", "Watched", "verdict_of_looks"]

SURE = 0.95
COUNTER, HISTOGRAM, EVIDENCE, ALARM, OPEN = (
    f"tinybench_{name}"
    for name in ("requests_total", "request_seconds", "drift_evidence", "drift_alarm", "requests_open")
)
READ_ROWS, COMPARED_ROWS = "tinybench_drift_rows_total", "tinybench_drift_compared_total"
LOOKS_TO_MOVE = 3


class Bucket(NamedTuple):
    """A quantile: its estimate, and the bounds of the histogram bucket that contains the true value."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Look:
    """The result of one poll of a server. Values that cannot be determined are NaN.

    Attributes
    ----------
    server, at
        The server's name, and the time of the poll in seconds from the first poll.
    problem, read
        ``problem`` is the reason why the poll has no values, or an empty text if there are values. ``read`` is True if
        the server could be read.
    rate, failed
        Requests per second, and the number of failed requests, since the previous poll.
    p50, p99
        Quantiles of the latency in seconds, since the previous poll.
    long, short, burning
        Burn rates over the long and the short window, and whether both burn rates are high enough for an alert.
    bad, total
        Requests that failed or were late, and all requests, since the first poll.
    drift, alarm
        Evidence of drift in ``"inputs"`` and ``"predictions"``, and the names of those with an alarm.
    open
        Requests without an answer yet.
    notes
        Further remarks, such as a restart of the server.
    """

    server: str
    at: float
    problem: str = ""
    rate: float = math.nan
    failed: float = math.nan
    p50: Bucket | None = None
    p99: Bucket | None = None
    long: float = math.nan
    short: float = math.nan
    burning: bool = False
    bad: float = 0.0
    total: float = 0.0
    drift: Mapping[str, float] = field(default_factory=dict)
    alarm: Sequence[str] = ()
    open: float = math.nan
    notes: Sequence[str] = ()
    read: bool = True

    __repr__ = short_repr

    def left(self, objective: Objective) -> float:
        """Return the unspent fraction of the error budget so far, which is negative if too many requests failed."""
        return 1 - self.bad / (objective.budget * self.total) if self.total else math.nan


class Watched:
    """A server that is polled directly, without Prometheus, every `every` seconds."""

    def __init__(self, readings: Readings, objective: Objective, window: Window, every: float) -> None:
        self.readings, self.objective, self.window, self.every = readings, objective.checked(), window, every
        target = readings.target
        self.name = f"{target.version} {target.address}"
        self.bad, self.total = [0.0], [0.0]  # one value per poll, as `burning` takes values at regular intervals

    def look(self, at: float, missed: int = 0) -> Look:
        """Poll the server. `missed` is the number of earlier polls that did not run because the monitor was halted."""
        from tinybench.production import burn_rate, burning, increase

        for _ in range(missed):
            self._count(0.0, 0.0)
        restarts, known = self.readings.restarts, len(self.readings.kept)
        if not self.readings.look():
            self._count(0.0, 0.0)
            return Look(self.name, at, self.readings.problem, bad=self.bad[-1], total=self.total[-1], read=False)
        rows = list(self.readings.kept)[-2:]
        counts = requests_in(rows, self.objective)
        if not known or not counts.known:
            self._count(0.0, 0.0)
            other = f"its /metrics has no {COUNTER} or no bound of {self.objective.le} s; is it `tinybench serve`?"
            first = "the first look: what has come since, the next one tells"
            return Look(self.name, at, first if counts.known else other)
        self._count(counts.bad, counts.total)
        steps = [max(1, round(seconds / self.every)) for seconds in (self.window.long, self.window.short)]
        past = [(self.bad[-step - 1 :], self.total[-step - 1 :]) for step in steps]
        (bad, all_), rates = past[0], [burn_rate(increase(b), increase(t), self.objective.share) for b, t in past]
        burns = burning(self.bad, self.total, self.objective.share, self.window.factor, steps[0], steps[1])
        notes = ["it was started anew"] * (self.readings.restarts > restarts)
        return Look(
            self.name,
            at,
            rate=counts.total / (rows[1].at - rows[0].at),
            failed=counts.failed,
            p50=bucket(0.5, counts.buckets),
            p99=bucket(0.99, counts.buckets),
            long=rates[0] if increase(all_) else math.nan,
            short=rates[1] if increase(past[1][1]) else math.nan,
            burning=burns and share_interval(increase(bad), increase(all_))[0] > self.objective.budget,
            bad=self.bad[-1],
            total=self.total[-1],
            **self._gauges(notes),
        )

    def _count(self, bad: float, total: float) -> None:
        self.bad.append(self.bad[-1] + bad)
        self.total.append(self.total[-1] + total)

    def _gauges(self, notes: list[str]) -> dict[str, Any]:
        drift = {dict(labels).get("what", ""): value for (_, labels), value in self.readings.latest(EVIDENCE).items()}
        alarms = {dict(labels).get("what", ""): value for (_, labels), value in self.readings.latest(ALARM).items()}
        looks = LOOKS_TO_MOVE * self.every
        answered = self.readings.increase(COUNTER, looks, code="200")
        evidence, read, compared = (self.readings.moved(name, looks) for name in (EVIDENCE, READ_ROWS, COMPARED_ROWS))
        waits = read and not compared  # for rows that are far enough from those before
        if drift and len(self.readings.kept) > LOOKS_TO_MOVE and answered > 0 and not (evidence or waits):
            notes.append("its evidence of drift does not move, though answers are given: nobody watches for drift")
        waiting = sum(self.readings.latest(OPEN).values())
        alarm = [what for what, value in alarms.items() if value > 0]
        return {"drift": drift, "alarm": alarm, "open": waiting, "notes": notes}


class Counts(NamedTuple):
    """The numbers of requests between two readings of a server, counted by the rules of the objective.

    ``total`` counts all requests, ``failed`` the failed ones, and ``bad`` those that failed or were late. ``buckets``
    maps each latency bound to the number of answers within the bound. ``known`` is True if the server counts requests
    and has a bucket for the objective's bound.
    """

    total: float
    bad: float
    failed: float
    buckets: dict[float, float]
    known: bool


def requests_in(rows: Sequence[Reading], objective: Objective) -> Counts:
    """Count the requests between the first and the last reading in `rows`."""
    codes = {dict(labels).get("code", ""): count for (_, labels), count in increases(COUNTER, rows, {}).items()}
    total = sum(count for code, count in codes.items() if re.fullmatch(COUNTED, code))
    below = {dict(labels)["le"]: count for (_, labels), count in increases(f"{HISTOGRAM}_bucket", rows, {}).items()}
    good, known = below.get(objective.le, 0.0), bool(codes) and objective.le in below
    buckets = {float(bound): count for bound, count in below.items()}
    return Counts(total, max(0.0, total - good), total - codes.get("200", 0.0), buckets, known)


def bucket(q: float, counts: Mapping[float, float]) -> Bucket | None:
    """Estimate quantile `q` from the number of values up to each bound. If there are no values, return None."""
    from tinybench.production import histogram_quantile
    from tinybench.support.basics.buckets import quantile_bounds

    bounds = sorted(counts)
    below = [counts[bound] for bound in bounds]
    if not below or not below[-1] > 0:
        return None
    return Bucket(histogram_quantile(q, bounds, below), *quantile_bounds(q, bounds, below))


def share_interval(bad: float, total: float) -> tuple[float, float]:
    """Return the 95 % Clopper-Pearson interval of `bad / total`, which shows whether a few failures may be chance."""
    from scipy.stats import beta

    if not total > 0:
        return 0.0, 1.0
    check_least(bad=bad, total=total)
    bad = min(bad, total)  # Prometheus extrapolates, so `bad` may exceed `total`
    low = float(beta.ppf((1 - SURE) / 2, bad, total - bad + 1)) if bad else 0.0
    high = float(beta.ppf((1 + SURE) / 2, bad + 1, total - bad)) if bad < total else 1.0
    return low, high


class Verdict(NamedTuple):
    """A verdict on an objective, ``"met"``, ``"missed"`` or ``"cannot tell"``, with the reason."""

    verdict: str
    why: str


def verdict_of_looks(looks: Sequence[Look], objective: Objective, patience: int = 3) -> Verdict:
    """Judge from all polls of one server whether the server met its objective.

    The objective is missed if the budget burned too fast at any poll, or if all requests together are significantly
    worse than the objective. The verdict is ``"cannot tell"`` if the last `patience` polls could not read the server,
    if no requests or too few requests came, or if there is drift, so that answers in time may be wrong.
    """
    last = looks[-1]
    bad, total = next(((look.bad, look.total) for look in reversed(looks) if look.total > 0), (0.0, 0.0))
    if burned := next((look for look in looks if look.burning), None):
        return Verdict("missed", f"its budget burned {burned.long:.3g} times too fast after {burned.at:.0f} s")
    low, high = share_interval(bad, total)
    seen = (
        f"{bad:,.0f} of {number_of(f'{total:,.0f}', 'request')} failed or took longer than {1e3 * objective.bound:g} ms"
    )
    if low > objective.budget:
        return Verdict("missed", f"{seen}, more than {100 * objective.budget:.3g} % of them")
    if all(look.problem or not look.read for look in looks[-patience:]):
        return Verdict("cannot tell", last.problem or "; ".join(last.notes))
    if not total:
        return Verdict("cannot tell", "no request came: the counter does not move")
    if last.alarm:
        return Verdict("cannot tell", f"{seen}, but there is drift of {' and '.join(last.alarm)}: are they right?")
    if high <= objective.budget:
        return Verdict("met", seen)
    fewest = math.ceil(math.log((1 - SURE) / 2) / math.log(objective.share))
    return Verdict(
        "cannot tell", f"{seen}; to show {100 * objective.share:.6g} % takes {fewest:,} or more, none of them bad"
    )
