"""What a Prometheus knows of each version of a server, as looks."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tinybench.watching.looks import ALARM, COUNTER, EVIDENCE, HISTOGRAM, OPEN, Look, bucket, share_interval
from tinybench.watching.prometheus import Prometheus
from tinybench.watching.queries import COUNTED, Objective, Window, promql_time

__all__ = ["looks_by_prometheus"]

ALL = "all servers"  # where Prometheus was not told which version is where


def looks_by_prometheus(
    prometheus: Prometheus, objective: Objective, window: Window, every: float, at: float
) -> list[Look]:
    """Return what a Prometheus knows of each version, over windows of its own clock."""
    from tinybench.production import burn_rate

    now = prometheus.now()  # one moment for all: what is bad is the difference of two queries

    def counts(span: float, more: str = "", metric: str = COUNTER, by: str = "") -> dict[tuple[str, str], float]:
        labels = f"version{by and ', '}{by}"
        promql = f'sum by ({labels}) (increase({metric}{{job="tinybench"{more}}}[{promql_time(span)}]))'
        return {(found.get("version", ALL), found.get(by, "")): value for found, value in prometheus.query(promql, now)}

    def gauges(metric: str, by: str = "", of: str = "max") -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for labels, value in prometheus.query(f'{of} by (version{by and ", "}{by}) ({metric}{{job="tinybench"}})', now):
            found.setdefault(labels.get("version", ALL), {})[labels.get(by, "")] = value
        return found

    counted, recent = f',code=~"{COUNTED}"', max(every, 2.5 * window.short / 12)
    spans = (window.long, window.short, recent, max(at, recent))
    totals = [counts(span, counted) for span in spans]
    goods = [counts(span, f',le="{objective.le}"', f"{HISTOGRAM}_bucket") for span in spans]
    answered = counts(recent, ',code="200"')
    buckets = counts(recent, "", f"{HISTOGRAM}_bucket", "le")
    up, all_up = gauges("up"), gauges("up", of="min")
    counting, drift, alarms = gauges(COUNTER), gauges(EVIDENCE, "what"), gauges(ALARM, "what")
    waiting, found = gauges(OPEN), []
    for version in sorted(up):
        if not up[version][""]:
            found.append(Look(version, at, "Prometheus cannot read it", read=False))
            continue
        if version not in counting:  # no server of a model: what a rollout tells, for one
            continue
        all_ = [_known(each, version) for each in totals]
        bad = [
            float(np.maximum(0.0, total - good))
            for total, good in zip(all_, [_known(each, version) for each in goods], strict=True)
        ]
        if np.isnan(bad).all():
            found.append(Look(version, at, "Prometheus has no two readings of its requests yet"))
            continue
        rates = [burn_rate(b, t, objective.share) if t > 0 else math.nan for b, t in zip(bad, all_, strict=True)]
        heights = {float(le): count for (which, le), count in buckets.items() if which == version}
        found.append(
            Look(
                version,
                at,
                rate=all_[2] / recent,
                failed=max(0.0, all_[2] - _known(answered, version)),
                p50=bucket(0.5, heights),
                p99=bucket(0.99, heights),
                long=rates[0],
                short=rates[1],
                burning=min(rates[:2]) >= window.factor and share_interval(bad[0], all_[0])[0] > objective.budget,
                bad=bad[3],
                total=all_[3],
                drift=drift.get(version, {}),
                alarm=[what for what, value in alarms.get(version, {}).items() if value > 0],
                open=waiting.get(version, {}).get("", math.nan),
                notes=["one of its servers cannot be read"] * (not all_up[version][""]),
                read=bool(all_up[version][""]),
            )
        )
    return found


def _known(counts: Mapping[tuple[str, str], float], version: str) -> float:
    return counts.get((version, ""), math.nan)
