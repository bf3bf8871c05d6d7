"""Servers read without Prometheus: windows, counters that begin anew, silence, jumping clocks; looks, panels, verdicts."""

from __future__ import annotations

import math
import time
import urllib.error
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import pytest

from tests.tinybench.servers import double, served
from tinybench.tools.serving.counters import SECONDS, Metrics
from tinybench.tools.watching.budget_burn import Bucket, Look, Watched, bucket, share_interval, verdict_of_looks
from tinybench.tools.watching.metrics_reader import Readings, parse_metrics
from tinybench.tools.watching.panel_figures import panel_picture, panels_from_looks
from tinybench.tools.watching.prometheus_server import ScrapeTarget
from tinybench.tools.watching.queries import Objective, Window

HERE = ScrapeTarget("http://127.0.0.1:8000")
COUNTER = "tinybench_requests_total"
HOURLY = Window("Fast", 14.4, 60.0, 5.0, "page")
OBJECTIVE = Objective(0.99, 0.05)


class Server:
    """What a server would show: its counts may be changed, it may be started anew, or gone; the clock is by hand."""

    def __init__(self) -> None:
        self.now, self.page, self.error = 100.0, "", None
        self.start()

    def start(self) -> None:
        """Begin to count, as a new process."""
        self.metrics = Metrics({"requests_open: Open": lambda: 2}, lambda: 0)
        self.metrics.started = self.now

    def answer(self, count: int, seconds: float = 0.001, code: int = 200) -> None:
        """Count so many requests."""
        self.metrics.codes[code] += count
        for _ in range(count * (code == 200)):
            self.metrics.request.add(seconds)

    def fetch(self, target: ScrapeTarget, timeout: float) -> str:
        """Return the text of /metrics, or fail."""
        if self.error is not None:
            raise self.error
        return self.page or self.metrics.text().decode()

    def readings(self, keep: float = 3600.0) -> Readings:
        """Return a reader of this server."""
        return Readings(HERE, keep=keep, clock=lambda: self.now, fetch=self.fetch)


def looked(server: Server, readings: Readings, counts: Iterable[int], every: float = 1.0) -> None:
    """Let so many requests come between looks."""
    for count in counts:
        server.now += every
        server.answer(count)
        assert readings.look()


def test_a_window_holds_what_came_in_it() -> None:
    server = Server()
    readings = server.readings()
    looked(server, readings, [5, 10, 20, 40])
    assert readings.increase(COUNTER, 2.0) == 60
    assert readings.increase(COUNTER, 2.0, code="200") == 60
    assert readings.increase(COUNTER, 1e9) == 70  # what came before the first look nobody knows
    assert readings.increase("nothing", 1e9) == 0


def test_only_one_reading_tells_nothing() -> None:
    server = Server()
    readings = server.readings()
    assert math.isnan(readings.increase(COUNTER, 60))
    looked(server, readings, [5])
    assert math.isnan(readings.increase(COUNTER, 60))
    assert readings.histogram("tinybench_request_seconds", 60) == ([], [])


def test_a_series_that_appears_stood_at_zero() -> None:
    """Prometheus's increase() misses the first failures of a new status; they count here."""
    server = Server()
    readings = server.readings()
    looked(server, readings, [5, 5])
    server.answer(7, code=418)
    looked(server, readings, [0])
    assert readings.increase(COUNTER, 60, code="418") == 7


@pytest.mark.parametrize("tells", [True, False])
def test_all_counters_begin_anew_together(tells: bool) -> None:
    """The new process has already counted more slow answers than the old one: they are all new, not the difference."""
    server = Server()
    server.answer(100)
    server.answer(3, seconds=0.2)
    readings = server.readings()
    if not tells:  # then a counter that became smaller gives it away
        server.metrics.started = 0.0
    looked(server, readings, [0, 10])
    server.start()
    if not tells:
        server.metrics.started = 0.0
    server.answer(5, seconds=0.2)
    looked(server, readings, [20])
    assert readings.restarts == 1
    assert readings.increase(COUNTER, 60) == 10 + 25
    bounds, counts = readings.histogram("tinybench_request_seconds", 60)
    assert bounds == [*SECONDS, math.inf]
    assert counts[-1] == 35
    assert counts[bounds.index(0.05)] == 30  # five were slow; 8 − 3 would be wrong


def test_a_restart_that_no_counter_shows() -> None:
    """The new process has overtaken the old in every counter: only when it started tells."""
    server = Server()
    server.answer(10)
    readings = server.readings()
    looked(server, readings, [0])
    server.now += 5
    server.start()
    server.answer(15)
    looked(server, readings, [0])
    assert (readings.restarts, readings.increase(COUNTER, 60)) == (1, 15)


def test_a_silent_server_is_stale_and_comes_back() -> None:
    server = Server()
    readings = server.readings()
    looked(server, readings, [1, 1])
    server.error = ConnectionRefusedError(111, "Connection refused")
    server.now += 60
    assert not readings.look()
    assert readings.problem == "its /metrics does not answer ([Errno 111] Connection refused)"
    assert readings.age == 60
    assert math.isnan(readings.increase(COUNTER, 30))  # not 0: nobody knows
    assert readings.latest("tinybench_requests_open", 30) == {}
    server.error = None
    looked(server, readings, [5])
    assert readings.problem == ""
    assert readings.increase(COUNTER, 30) == 5  # since the last reading before the window


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TimeoutError(), "does not answer within 1 s"),
        (urllib.error.URLError("no route"), "does not answer (no route)"),
        (urllib.error.HTTPError("u", 404, "no", None, None), "its /metrics answers 404"),  # type: ignore[arg-type]
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "cannot be read"),
    ],
)
def test_why_there_is_no_reading(error: Exception, says: str) -> None:
    server = Server()
    readings, server.error = server.readings(), error
    assert not readings.look()
    assert says in readings.problem


@pytest.mark.parametrize("page", ["<html>hello</html>", "", "a b c d", "\x00"])
def test_pages_that_are_no_metrics(page: str) -> None:
    with pytest.raises(ValueError):
        parse_metrics(page)
    server = Server()
    server.page = page or " "
    readings = server.readings()
    assert not readings.look()
    assert "cannot be read" in readings.problem


def test_a_clock_that_jumps_back_gives_no_reading() -> None:
    server = Server()
    readings = server.readings()
    looked(server, readings, [1, 1])
    server.now -= 3600
    assert not readings.look()
    assert readings.problem == "the reader's clock stands still or runs backwards"


def test_the_wall_clock_may_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are of monotonic time: whatever the clock on the wall says, nothing is lost or counted twice."""
    server = Server()
    readings = Readings(HERE, fetch=server.fetch)
    for wall in (1e9, 1e9 + 1e6, 5.0):
        monkeypatch.setattr(time, "time", lambda wall=wall: wall)
        server.answer(10)
        assert readings.look()
    assert readings.increase(COUNTER, 600) == 20


def test_old_readings_go() -> None:
    server = Server()
    readings = server.readings(keep=10)
    looked(server, readings, [1] * 100)
    assert len(readings.kept) == 11
    assert readings.increase(COUNTER, 10) == 10


def test_a_metric_that_never_moves() -> None:
    server = Server()
    readings = server.readings()
    looked(server, readings, [1, 1, 1])
    assert readings.moved(COUNTER, 60)
    assert not readings.moved("tinybench_requests_open", 60)
    assert not readings.moved("nothing", 60)


def watch(server: Server, counts: Iterable[Mapping[str, int]], window: Window = HOURLY) -> list[Look]:
    """Return the looks at a server, a second apart, at which so many good, slow and failed requests have come."""
    watched, looks = Watched(server.readings(), OBJECTIVE, window, 1.0), []
    for number, count in enumerate([{}, *counts]):
        server.now += 1
        server.answer(count.get("good", 0))
        server.answer(count.get("slow", 0), seconds=0.08)
        server.answer(count.get("failed", 0), code=500)
        server.answer(count.get("wrong", 0), code=422)
        looks.append(watched.look(float(number)))
    return looks


def test_a_look_counts_what_the_objective_counts() -> None:
    first, look = watch(Server(), [{"good": 95, "slow": 3, "failed": 2, "wrong": 50}])
    assert "the first look" in first.problem
    assert (look.total, look.bad, look.failed, look.rate) == (100, 5, 2, 100)
    assert look.long == look.short == pytest.approx(5)  # 5 % where 1 % is allowed
    assert look.left(OBJECTIVE) == pytest.approx(-4)
    assert look.p50 == Bucket(pytest.approx(0.00076, rel=0.02), 0.0005, 0.001)
    assert look.p99 is not None
    assert (look.p99.low, look.p99.high) == (0.05, 0.1)
    assert look.open == 2


def test_it_burns_only_while_both_windows_do() -> None:
    """A burst of failures: the long window remembers it, the short one soon not."""
    looks = watch(Server(), [{"good": 50}] * 3 + [{"failed": 50}] * 2 + [{"good": 50}] * 10)
    burning = [look.at for look in looks if look.burning]
    assert burning == [4, 5, 6, 7, 8, 9]
    assert looks[-1].long > 14.4 / 2 > looks[-1].short == 0


def test_one_failure_of_a_few_requests_wakes_nobody() -> None:
    """One of 6 is 17 times too much, and may be chance: one has a probability of 6 %."""
    looks = watch(Server(), [{"good": 5, "failed": 1}])
    assert looks[-1].long > 14.4
    assert not looks[-1].burning
    assert watch(Server(), [{"good": 4, "failed": 2}])[-1].burning


def test_looks_that_failed_are_gaps_and_no_good_ones() -> None:
    server = Server()
    watched = Watched(server.readings(), OBJECTIVE, HOURLY, 1.0)
    server.error = TimeoutError()
    looks = [watched.look(0.0)]
    server.error = None
    for at in (1.0, 2.0):
        server.now += 1
        server.answer(10)
        looks.append(watched.look(at))
    server.error = TimeoutError()
    server.answer(10, code=500)
    looks += [watched.look(at) for at in (3.0, 4.0, 5.0)]
    assert [bool(look.problem) for look in looks] == [True, True, False, True, True, True]
    assert [look.read for look in looks] == [False, True, True, False, False, False]
    assert verdict_of_looks(looks, OBJECTIVE) == ("cannot tell", "its /metrics does not answer within 1 s")
    server.now, server.error = server.now + 4, None
    assert watched.look(6.0).bad == 10  # what came meanwhile counts as soon as it is seen


def test_looks_that_did_not_take_place_keep_windows_long() -> None:
    """The machine slept for a minute: what was before is a minute old, and out of the short window."""
    server = Server()
    watched = Watched(server.readings(), OBJECTIVE, HOURLY, 1.0)
    for at in (0.0, 1.0):
        server.now += 1
        server.answer(50, code=500)
        watched.look(at)
    server.now += 11
    server.answer(50)
    look = watched.look(12.0, missed=10)
    assert look.short == 0
    assert look.long == pytest.approx(50)


def test_a_server_of_another_kind_is_told() -> None:
    server = Server()
    server.page = "# TYPE python_gc counter\npython_gc_total 3\n"
    watched = Watched(server.readings(), OBJECTIVE, HOURLY, 1.0)
    looks = []
    for at in (0.0, 1.0):
        server.now += 1
        looks.append(watched.look(at))
    assert all("is it `tinybench serve`?" in look.problem for look in looks)


def test_a_restart_is_told() -> None:
    server = Server()
    watched = Watched(server.readings(), OBJECTIVE, HOURLY, 1.0)
    for at in (0.0, 1.0, 2.0):
        server.now += 1
        if at == 2:
            server.start()
        server.answer(5)
        look = watched.look(at)
    assert look.notes == ["it was started anew"]
    assert look.total == 10


DRIFT = """# TYPE tinybench_drift_evidence gauge
tinybench_drift_evidence{{what="inputs"}} {evidence}
# TYPE tinybench_drift_alarm gauge
tinybench_drift_alarm{{what="inputs"}} {alarm}
"""


@pytest.mark.parametrize(("compared", "waits"), [(5, True), (None, False)])
def test_evidence_that_waits_for_a_row_is_watched(compared: int | None, waits: bool) -> None:
    """Rows are read all the time. A detector that waits compares none of them; one that is stuck compares more."""
    server = Server()
    watched = Watched(server.readings(), OBJECTIVE, HOURLY, 1.0)
    for at in range(6):
        server.now += 1
        server.answer(100)
        counts = {"rows": 100 * at, "compared": at if compared is None else compared}
        server.page = server.metrics.text().decode() + DRIFT.format(evidence=2.0, alarm=0)
        server.page += "".join(
            f"# TYPE tinybench_drift_{name} counter\ntinybench_drift_{name}_total {count}\n"
            for name, count in counts.items()
        )
        look = watched.look(float(at))
    assert any("does not move" in note for note in look.notes) != waits


def test_drift_that_does_not_move_and_drift_that_alarms() -> None:
    server = Server()
    watched = Watched(server.readings(), OBJECTIVE, HOURLY, 1.0)
    for at, evidence in enumerate([1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 150.0]):
        server.now += 1
        server.answer(100)
        server.page = server.metrics.text().decode() + DRIFT.format(evidence=evidence, alarm=int(evidence > 100))
        look = watched.look(float(at))
        assert any("does not move" in note for note in look.notes) == (at == 5)
        assert look.drift == ({} if at == 0 else {"inputs": evidence})
    assert look.alarm == ["inputs"]
    assert verdict_of_looks([look], OBJECTIVE) == (
        "cannot tell",
        "0 of 600 requests failed or took longer than 50 ms, but there is drift of inputs: are they right?",
    )


SEEN = Look("a", 5.0, long=0.0, short=0.0, total=1000.0)


@pytest.mark.parametrize(
    ("looks", "verdict", "why"),
    [
        ([SEEN], "met", "0 of 1,000 requests failed"),
        ([replace(SEEN, bad=30.0)], "missed", "more than 1 % of them"),
        ([replace(SEEN, bad=11.0)], "cannot tell", "to show 99 % takes 368 or more"),
        ([replace(SEEN, total=50.0)], "cannot tell", "to show 99 % takes 368 or more"),
        ([replace(SEEN, total=0.0)], "cannot tell", "no request came: the counter does not move"),
        ([replace(SEEN, burning=True, long=20.0), SEEN], "missed", "its budget burned 20 times too fast after 5 s"),
        ([SEEN, replace(SEEN, problem="away")], "met", "0 of 1,000"),
        ([SEEN, *[replace(SEEN, problem="away")] * 3], "cannot tell", "away"),
        ([SEEN, *[Look("a", 6.0, "away", read=False)] * 3], "cannot tell", "away"),
        ([*[replace(SEEN, read=False, notes=["one of its servers is away"])] * 3], "cannot tell", "one of its servers"),
    ],
)
def test_what_a_watch_says(looks: list[Look], verdict: str, why: str) -> None:
    found = verdict_of_looks(looks, OBJECTIVE)
    assert (found.verdict, why in found.why) == (verdict, True), found


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    from scipy.stats import binomtest

    for bad, total in [(0, 10), (3, 10), (10, 10), (1, 1000)]:
        expected = binomtest(bad, total).proportion_ci(0.95, "exact")
        assert share_interval(bad, total) == pytest.approx((expected.low, expected.high))
    assert share_interval(0, 0) == (0, 1)
    assert share_interval(math.nan, math.nan) == (0, 1)


def test_a_quantile_of_nothing_is_none() -> None:
    assert bucket(0.5, {}) is None
    assert bucket(0.5, {0.1: 0.0, math.inf: 0.0}) is None


def test_panels_from_looks_show_what_was_seen(tmp_path: Path) -> None:
    looks = watch(Server(), [{"good": 95, "failed": 5}] * 4)
    looks[3] = replace(looks[3], problem="away", read=False)
    curves = panels_from_looks(looks, OBJECTIVE, "1m", "5s")
    series = {panel.title: found for panel, found in curves}
    assert series["Answered in time"]["stable"] == [(-3.0, 0.95), (-2.0, 0.95), (0.0, pytest.approx(0.95))]
    assert series["Burn rate"]["stable, 1m"][-1][1] == pytest.approx(5)
    assert [value for _, value in series["Servers"]["stable"]] == [1, 1, 1, 0, 1]
    picture = panel_picture(curves)
    assert "Answered in time: stable 95 %" in picture.alt
    assert picture.caption.startswith("No data for: ")
    assert "Disagreement in shadow" in picture.caption
    assert len({len(column) for column in picture.data.values()}) == 1
    picture.save(tmp_path / "a.png")
    height, width, _ = matplotlib.image.imread(tmp_path / "a.png").shape
    assert width == 800
    narrow = panel_picture(curves, columns=1, dark=True)
    narrow.save(tmp_path / "b.png")
    image = matplotlib.image.imread(tmp_path / "b.png")
    assert image.shape[1] == 400
    assert image.shape[0] > height
    assert image[0, 0, :3].max() < 0.2


def test_two_servers_of_a_version_keep_their_addresses() -> None:
    looks = watch(Server(), [{"good": 5}] * 2)
    others = [replace(look, server="stable 127.0.0.1:9000") for look in looks]
    [(_, requests), *_] = panels_from_looks([*looks, *others], OBJECTIVE, "1m", "5s")
    assert set(requests) == {"stable 127.0.0.1:8000", "stable 127.0.0.1:9000"}


def test_a_gap_in_the_readings_is_a_gap_in_the_line() -> None:
    looks = watch(Server(), [{"good": 5}] * 9)
    curves = panels_from_looks(looks[:4] + looks[7:], OBJECTIVE, "1m", "5s")
    line = panel_picture(curves).figure.axes[0].lines[0]
    assert any(math.isnan(value) for value in line.get_ydata())  # type: ignore[union-attr]


def test_nothing_to_draw_is_told() -> None:
    with pytest.raises(ValueError, match="no panel has data"):
        panel_picture(panels_from_looks([], OBJECTIVE, "1h", "5m"))


def test_a_real_server_is_read(tmp_path: Path) -> None:
    with served(double(tmp_path / "double.onnx"), "--max-batch", "1") as server:
        readings = Readings(ScrapeTarget(server.url), timeout=60)
        assert readings.look()
        for _ in range(5):
            server.predict([[1, 2, 3, 4]])
        assert readings.look()
        assert readings.increase(COUNTER, 600, code="200") == 5
        bounds, counts = readings.histogram("tinybench_request_seconds", 600)
        assert (bounds[-1], counts[-1]) == (math.inf, 5)
    assert not readings.look()
    assert "does not answer" in readings.problem
