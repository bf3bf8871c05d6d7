"""Polls of servers through Prometheus. Each poll returns its results as one `Look` for each version of the server."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

import numpy as np

from tinybench.tools.watching.budget_burn import (
    ALARM,
    COUNTER,
    EVIDENCE,
    HISTOGRAM,
    OPEN,
    Look,
    bucket,
    requests_in,
    share_interval,
)
from tinybench.tools.watching.metrics_reader import STARTED, Reading, began_anew
from tinybench.tools.watching.prometheus_server import Prometheus
from tinybench.tools.watching.queries import COUNTED, Objective, Window, promql_time

__all__ = ["PrometheusLooks"]

ALL = "all servers"  # the name if the series in Prometheus have no version label
NAMES = "|".join((COUNTER, f"{HISTOGRAM}_bucket", STARTED))
SERVER_LABELS = ("job", "version", "instance")
Servers = dict[str, dict[str, list[Reading]]]  # readings by version and instance


class PrometheusLooks:
    """The servers that Prometheus monitors, polled every `every` seconds.

    Burn rates are computed from PromQL's `increase` over the long and the short window. A burn rate is a ratio of two
    counts, so it stays correct even if a window is longer than the recorded series. Requests and requests per second
    are counted from one reading to the next instead. For these, PromQL's `rate` would divide by the whole window even
    if the series covers only a part of it, and `increase` would extrapolate.
    """

    def __init__(self, prometheus: Prometheus, objective: Objective, window: Window, every: float) -> None:
        self.prometheus, self.objective, self.window, self.every = prometheus, objective.checked(), window, every
        self.recent = max(every, 2.5 * window.short / 12)  # seconds that hold at least two readings
        self.before = math.nan  # time of the previous poll, by Prometheus's clock
        self.last: dict[tuple[str, str], Reading] = {}  # the last reading of each server that was counted
        self.bad, self.total = defaultdict[str, float](float), defaultdict[str, float](float)

    def look(self, at: float) -> list[Look]:
        """Poll each version through Prometheus. `at` is the time in seconds from the first poll."""
        now = self.prometheus.now()  # one time for all queries
        servers = self._servers(now)
        self._count(servers)
        self.before = now
        rates, surely = self._burn_rates(now)
        up, all_up = self._gauges("up", now), self._gauges("up", now, of="min")
        drift, alarms = (self._gauges(metric, now, "what") for metric in (EVIDENCE, ALARM))
        waiting = self._gauges(OPEN, now)
        found = []
        for version in sorted(up):
            if not up[version][""]:
                found.append(Look(version, at, "Prometheus cannot read it", read=False))
                continue
            if version not in servers:  # not a model server, such as a rollout's own metrics
                continue
            pairs = [self._latest(rows) for rows in servers[version].values() if len(rows) > 1]
            if not pairs:
                found.append(Look(version, at, "Prometheus does not have two readings of its requests yet"))
                continue
            counts = [requests_in(rows, self.objective) for rows in pairs]
            heights = defaultdict[float, float](float)
            for each in counts:
                for bound, count in each.buckets.items():
                    heights[bound] += count
            long, short = rates.get(version, (math.nan, math.nan))
            found.append(
                Look(
                    version,
                    at,
                    rate=sum(each.total / (rows[-1].at - rows[0].at) for each, rows in zip(counts, pairs, strict=True)),
                    failed=sum(each.failed for each in counts),
                    p50=bucket(0.5, heights),
                    p99=bucket(0.99, heights),
                    long=long,
                    short=short,
                    burning=min(long, short) >= self.window.factor and version in surely,
                    bad=self.bad[version],
                    total=self.total[version],
                    drift=drift.get(version, {}),
                    alarm=[what for what, value in alarms.get(version, {}).items() if value > 0],
                    open=waiting.get(version, {}).get("", math.nan),
                    notes=["one of its servers cannot be read"] * (not all_up[version][""]),
                    read=bool(all_up[version][""]),
                )
            )
        return found

    def _servers(self, now: float) -> Servers:
        """Return all readings since `recent` seconds before the previous poll.

        At the first poll, return the readings of the last `recent` seconds.
        """
        seconds = self.recent if math.isnan(self.before) else self.recent + now - self.before
        by_server = defaultdict[tuple[str, str], dict[float, Reading]](dict)
        for labels, points in self.prometheus.readings(f'{{__name__=~"{NAMES}",job="tinybench"}}', seconds, now):
            name = labels.pop("__name__")
            server = labels.get("version", ALL), labels.get("instance", "")
            key = name, tuple(sorted((label, text) for label, text in labels.items() if label not in SERVER_LABELS))
            for at, value in points:
                reading = by_server[server].setdefault(at, Reading(at, {}, {}))
                (reading.gauges if name == STARTED else reading.counters)[key] = value
        found: Servers = defaultdict(dict)
        for (version, instance), readings in by_server.items():
            rows = [readings[at] for at in sorted(readings)]
            if any(name == COUNTER for row in rows for name, _ in row.counters):
                anew = [False, *(began_anew(*pair) for pair in pairwise(rows))]
                found[version][instance] = [row._replace(anew=is_anew) for row, is_anew in zip(rows, anew, strict=True)]
        return found

    def _latest(self, rows: list[Reading]) -> list[Reading]:
        """Return the readings of the last `every` seconds and the reading before these, at least two in all."""
        since = rows[-1].at - self.every
        begin = sum(row.at <= since for row in rows[:-1])
        return rows[min(max(0, begin - 1), len(rows) - 2) :]

    def _count(self, servers: Servers) -> None:
        """Count the requests since the previous poll, or since the first reading of a new server."""
        for version, instances in servers.items():
            for instance, rows in instances.items():
                first = rows[-1] if math.isnan(self.before) else rows[0]
                last = self.last.get((version, instance), first)
                counts = requests_in([last, *(row for row in rows if row.at > last.at)], self.objective)
                self.bad[version] += counts.bad
                self.total[version] += counts.total
                self.last[version, instance] = rows[-1]

    def _burn_rates(self, now: float) -> tuple[dict[str, tuple[float, float]], set[str]]:
        """Return burn rates over both windows by version, and the versions that significantly miss the objective."""
        from tinybench.production import burn_rate

        found, surely = defaultdict[str, list[float]](list), set()
        for span in (self.window.long, self.window.short):
            totals = self._counts(span, now, COUNTER, f',code=~"{COUNTED}"')
            goods = self._counts(span, now, f"{HISTOGRAM}_bucket", f',le="{self.objective.le}"')
            for version, total in totals.items():
                bad = float(np.maximum(0.0, total - goods.get(version, math.nan)))
                known = total > 0 and not math.isnan(bad)
                found[version].append(burn_rate(bad, total, self.objective.share) if known else math.nan)
                if known and span == self.window.long and share_interval(bad, total)[0] > self.objective.budget:
                    surely.add(version)
        return {version: (each[0], each[1]) for version, each in found.items() if len(each) == 2}, surely

    def _counts(self, span: float, now: float, metric: str, more: str) -> dict[str, float]:
        promql = f'sum by (version) (increase({metric}{{job="tinybench"{more}}}[{promql_time(span)}]))'
        return {labels.get("version", ALL): value for labels, value in self.prometheus.query(promql, now)}

    def _gauges(self, metric: str, now: float, by: str = "", of: str = "max") -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        promql = f'{of} by (version{by and ", "}{by}) ({metric}{{job="tinybench"}})'
        for labels, value in self.prometheus.query(promql, now):
            found.setdefault(labels.get("version", ALL), {})[labels.get(by, "")] = value
        return found
