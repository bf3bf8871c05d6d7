"""Numbers from counters that are young, begin again, or have a gap: by Prometheus's queries and by both readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.tinybench.test_watching_rules import promtool, series
from tinybench.tools.watching.budget_burn import Look, Watched
from tinybench.tools.watching.metrics_reader import Readings
from tinybench.tools.watching.prometheus_looks import PrometheusLooks
from tinybench.tools.watching.prometheus_server import Prometheus, ScrapeTarget
from tinybench.tools.watching.queries import Objective, Window, panels_for

OBJECTIVE, STEP = Objective(0.999), 5  # s between two readings
# in each step: 250 requests, 5 of them failed; 225 answers within 50 ms, 20 between 100 and 250 ms
BELOW = {"0.005": 0, "0.01": 225, "0.05": 225, "0.1": 225, "0.25": 245, "+Inf": 245}
COUNTERS: dict[str, list[tuple[dict[str, str], int]]] = {
    "tinybench_requests_total": [({"code": "200"}, 245), ({"code": "499"}, 0), ({"code": "500"}, 5)],
    "tinybench_request_seconds_bucket": [({"le": le}, count) for le, count in BELOW.items()],
    "tinybench_model_seconds_bucket": [({"le": le}, n) for le, n in {"0.001": 0, "0.0025": 200, "+Inf": 200}.items()],
    "tinybench_batch_size_sum": [({}, 500)],
    "tinybench_batch_size_count": [({}, 250)],
    "tinybench_predictions_total": [({"label": "a"}, 200), ({"label": "b"}, 50)],
    "tinybench_shadow_compared_total": [({}, 100)],
    "tinybench_shadow_disagreed_total": [({}, 3)],
    "tinybench_labelled_total": [({"correct": "true"}, 90), ({"correct": "false"}, 10)],
}
GAUGES = {"tinybench_requests_open": 3, "tinybench_queue_length": 1, "tinybench_rollout_share": 0.05}
OF_DRIFT = {"tinybench_drift_evidence": 7, "tinybench_drift_psi": 0.2}


class Life(NamedTuple):
    """Readings of a server: steps up to a restart and after it, readings that failed, and when one looks, in s."""

    at: int
    restart: int = 0
    failed: tuple[int, int] = (0, 0)

    def values(self, step: int, start: float = 0) -> str:
        """Return a series that grows by `step`, as promtool writes it."""
        last = self.at // STEP
        shown = [
            start + step * (n if n < self.restart or not self.restart else n - self.restart) for n in range(last + 1)
        ]
        return " ".join("_" if self.failed[0] <= n < self.failed[1] else f"{value}" for n, value in enumerate(shown))

    @property
    def up(self) -> str:
        """Return whether each reading succeeded."""
        return " ".join("0" if self.failed[0] <= n < self.failed[1] else "1" for n in range(self.at // STEP + 1))


LIVES = {
    "young": Life(20),
    "full": Life(120),
    "restarted": Life(120, restart=18),
    "a gap within the window": Life(110, failed=(11, 15)),
    "a gap at the beginning of the window": Life(125, failed=(11, 15)),
}
COVERED = {"full": 12, "restarted": 11, "a gap within the window": 12}  # steps of the last minute that readings show
# by title, and for a panel with several queries by its place; where a number is a rate, it is None in a young series
SHARES: dict[str, tuple[float, ...]] = {
    "Answered in time": (225 / 250,),
    "Failed": (5 / 250,),
    "Burn rate": (100.0, 100.0),
    "Budget left of 72m": (-99.0,),
    "Users with the new version": (0.05,),
    "Latency": (0.005 + 0.005 * 122.5 / 225, 0.1 + 0.15 * (0.99 * 245 - 225) / 20),
    "Time of the model": (0.001 + 0.0015 * 0.99,),
    "Requests in one call": (2.0,),
    "Under way": (3.0, 1.0),
    "Servers": (1.0,),
    "Workers that died": (1.0,),
    "Evidence of drift": (7.0,),
    "Distance from the reference": (0.2,),
    "Answers by label": (0.8,),
    "Disagreement in shadow": (0.03,),
    "Right, where labels came": (0.9,),
}
RATES = {"Requests": 250, "Labels that came": 100}  # in each step


def given(life: Life) -> list[dict[str, str]]:
    """Return all series of a server with this life; a worker died 15 s before one looks."""
    found = [series(name, life.values(step), **labels) for name, rows in COUNTERS.items() for labels, step in rows]
    found += [series(name, life.values(0, value)) for name, value in GAUGES.items()]
    found += [series(name, life.values(0, value), what="inputs") for name, value in OF_DRIFT.items()]
    deaths = f"0+0x{life.at // STEP - 3} 1+0x2"
    return [*found, series("up", life.up), series("tinybench_worker_restarts_total", deaths)]


@pytest.mark.needs("prometheus")
@pytest.mark.parametrize("kind", LIVES)
def test_every_query_of_the_panels_is_right_or_says_nothing(kind: str, tmp_path: Path) -> None:
    """The windows of rates and of fast burns are a minute; a young series is 20 s long."""
    life, tests = LIVES[kind], []
    panels = panels_for(OBJECTIVE, rate="1m", scale=1 / 60)
    assert {panel.title for panel in panels} == SHARES.keys() | RATES.keys(), "a new panel needs its truth here"
    for panel in panels:
        for place, query in enumerate(panel.queries):
            if panel.title in RATES:
                truth, known = RATES[panel.title] * COVERED.get(kind, 12) / 60, kind in COVERED
            else:
                truth, known = SHARES[panel.title][place], True
            expected = [{"labels": "{}", "value": 1}] if known else []
            one = f'({query.promql}) unless {{label="b"}}' if panel.title == "Answers by label" else query.promql
            near = f"count(abs(({one}) - {truth!r}) <= {abs(truth) / 100!r})"
            tests.append({"expr": near if known else one, "eval_time": f"{life.at}s", "exp_samples": expected})
    document = {
        "evaluation_interval": f"{STEP}s",
        "tests": [{"interval": f"{STEP}s", "input_series": given(life), "promql_expr_test": tests}],
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    found = promtool(tmp_path, "test", "rules", "tests.yml")
    assert found.returncode == 0, found.stdout + found.stderr


class Clock:
    """Readings of one server at given times: what it had answered by then, and when it was started."""

    def __init__(self, moments: list[tuple[float, int, int, float]]) -> None:
        self.moments, self.at = moments, 0

    def text(self, *_: Any) -> str:
        """Return its /metrics at the present reading: requests in time, failed ones, and its start."""
        _, good, failed, started = self.moments[self.at]
        buckets = "\n".join(
            f'tinybench_request_seconds_bucket{{le="{le}"}} {good * (le != "0.005")}' for le in (*BELOW, "10.0")
        )
        code = f'tinybench_requests_total{{code="500"}} {failed}\n' if failed else ""  # appears with the first failure
        return (
            f'# TYPE tinybench_requests_total counter\ntinybench_requests_total{{code="200"}} {good}\n{code}'
            f"# TYPE tinybench_request_seconds histogram\n{buckets}\n"
            f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {started}\n"
        )

    def now(self) -> float:
        """Return the time."""
        return self.moments[self.at][0]


class Stored(Prometheus):
    """A Prometheus that has stored these readings up to the present one."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def now(self) -> float:
        return self.clock.now()

    def query(self, promql: str, at: float | None = None) -> list[tuple[dict[str, str], float]]:
        del at
        return [({"version": "stable"}, 1.0)] if promql.endswith('(up{job="tinybench"})') else []

    def readings(self, selector: str, seconds: float, at: float) -> list[tuple[dict[str, str], list[Any]]]:
        assert "tinybench_requests_total" in selector
        found: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
        for place, moment in enumerate(self.clock.moments[: self.clock.at + 1]):
            if not at - seconds < moment[0] <= at:
                continue
            reading = Readings(
                ScrapeTarget("a:1"), clock=lambda when=moment[0]: when, fetch=Clock(self.clock.moments[place:]).text
            )
            assert reading.look()
            [row] = reading.kept
            for (name, labels), value in (row.counters | row.gauges).items():
                found.setdefault((("__name__", name), *labels), []).append((moment[0], value))
        own = {"job": "tinybench", "version": "stable", "instance": "a:1"}
        return [(dict(key) | own, rows) for key, rows in found.items()]


# time, requests in time, failed ones, start; and requests per second, failed ones, all and bad since the first look
CASES: dict[str, tuple[list[tuple[float, int, int, float]], tuple[float, float, float, float]]] = {
    "young": ([(0, 1000, 0, 7), (2.5, 1125, 0, 7)], (50, 0, 125, 0)),
    "the first failures": ([(0, 10, 0, 7), (5, 240, 20, 7)], (50, 20, 250, 20)),
    "started again": ([(0, 1000, 0, 7), (5, 200, 50, 9)], (50, 50, 250, 50)),
    "started again and past its old count": ([(0, 100, 0, 7), (5, 240, 10, 9)], (50, 10, 250, 10)),
    "a gap": ([(0, 1000, 0, 7), (40, 3000, 0, 7)], (50, 0, 2000, 0)),
    "three looks": ([(0, 0, 0, 7), (5, 500, 0, 7), (10, 740, 10, 7)], (50, 10, 750, 10)),
}


def by_prometheus(clock: Clock) -> Iterator[Look]:
    """Yield what looks at a Prometheus show."""
    asked = PrometheusLooks(Stored(clock), OBJECTIVE, Window("Fast", 14.4, 3600.0, 300.0, "page"), 5.0)
    for place, (at, *_) in enumerate(clock.moments):
        clock.at = place
        yield from asked.look(at)


def by_own_reader(clock: Clock) -> Iterator[Look]:
    """Yield what looks of the own reader show."""
    readings = Readings(ScrapeTarget("a:1"), clock=clock.now, fetch=clock.text)
    watched = Watched(readings, OBJECTIVE, Window("Fast", 14.4, 3600.0, 300.0, "page"), 5.0)
    for place, (at, *_) in enumerate(clock.moments):
        clock.at = place
        yield watched.look(at)


@pytest.mark.parametrize("looks", [by_prometheus, by_own_reader])
@pytest.mark.parametrize("kind", CASES)
def test_both_readers_count_what_was_answered_in_the_time_that_was_read(looks: Any, kind: str) -> None:
    moments, (rate, failed, total, bad) = CASES[kind]
    *_, last = looks(Clock(moments))
    assert not last.problem
    assert (last.rate, last.failed) == (pytest.approx(rate), failed)
    assert (last.total, last.bad) == (total, bad)
    assert last.left(OBJECTIVE) == pytest.approx(1 - bad / (0.001 * total))
    assert last.p50 is not None
    assert (last.p50.low, last.p50.high) == (0.005, 0.01)
