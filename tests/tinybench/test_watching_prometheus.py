"""The real Prometheus watching real servers: every query of the dashboard, every panel, alerts that fire, and its absence."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, ParamSpec

import numpy as np
import psutil
import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from tests.tinybench.servers import Served, double, served
from tinybench.shell.cli import main
from tinybench.tools.rollout.rollout_metrics import own_metrics
from tinybench.tools.watching.alerts import write_rules
from tinybench.tools.watching.budget_burn import Look
from tinybench.tools.watching.dashboard import STORED, dashboard_json, make_dashboard, stored_dashboard
from tinybench.tools.watching.panel_figures import Curves, panel_picture
from tinybench.tools.watching.prometheus_looks import PrometheusLooks
from tinybench.tools.watching.prometheus_server import (
    AwayError,
    Prometheus,
    ScrapeTarget,
    configuration,
    start_prometheus,
)
from tinybench.tools.watching.queries import Objective, Window, panels_for

EVERY = 0.25
SCALE = 1 / 300  # the short window of a fast burn is 1 s
OBJECTIVE = Objective(0.99)
P = ParamSpec("P")
WAIT = 120.0  # s at most, for what takes one or two


class Watching(NamedTuple):
    """A Prometheus, the servers that it watches by version, and what may be changed in them."""

    prometheus: Prometheus
    servers: dict[str, Served]
    began: float


CASES = 40
BOUNDS = (0.001, 0.0025, 0.01, 0.05, 0.1, 1.0, math.inf)


class Histograms:
    """Random histograms, for a registry: some nearly empty, some with all values in one bucket."""

    def __init__(self) -> None:
        rng = np.random.default_rng(16)
        chances = rng.dirichlet([0.3] * len(BOUNDS), CASES)
        self.counts = [
            np.cumsum(rng.multinomial(int(n), p)) for n, p in zip(10 ** rng.uniform(0, 4, CASES), chances, strict=True)
        ]

    def collect(self) -> Iterator[Any]:
        """Yield them as one family."""
        family = HistogramMetricFamily("random_seconds", "Random", labels=["case"])
        for case, counts in enumerate(self.counts):
            family.add_metric(
                [str(case)], list(zip(map(floatToGoString, BOUNDS), map(float, counts), strict=True)), 0.0
            )
        yield family


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    """Servers under load, of which one stands still most of the time, and what a rollout tells of itself."""
    folder = tmp_path_factory.mktemp("watching")
    rules, reference = folder / "rules.yml", folder / "reference.npz"
    write_rules(rules, OBJECTIVE, scale=SCALE)
    rng = np.random.default_rng(0)
    np.savez(reference, X=rng.normal(size=(500, 4)).astype(np.float32))
    model, tally = double(folder / "double.onnx"), SimpleNamespace(compared=0, disagreed=0, right=0, wrong=0)
    with ExitStack() as stack:
        stable = stack.enter_context(served(model, "--max-batch", "1", "--reference", str(reference)))
        canary = stack.enter_context(served(model, "--max-batch", "1", "--stall", "250ms/255ms"))
        leaving = stack.enter_context(served(model, "--max-batch", "1"))
        rollout = stack.enter_context(own_metrics(tally, lambda: 0.05))  # type: ignore[arg-type]
        registry = CollectorRegistry()
        registry.register(Histograms())  # type: ignore[arg-type]
        numbers, _ = start_http_server(0, "127.0.0.1", registry)
        stack.callback(numbers.server_close)
        stack.callback(numbers.shutdown)
        servers = {"stable": stable, "canary": canary, "leaving": leaving}
        targets = [
            *(ScrapeTarget(server.url, version) for version, server in servers.items()),
            ScrapeTarget(rollout, "rollout"),
        ]
        targets.append(ScrapeTarget(f"127.0.0.1:{numbers.server_port}", "numbers"))
        ended = threading.Event()

        def ask(server: Served, seed: int) -> None:
            rng = np.random.default_rng(seed)
            while not ended.wait(0.02):
                server.predict(rng.normal(size=(1, 4)).tolist())

        def count() -> None:
            while not ended.wait(0.05):
                tally.compared, tally.disagreed = tally.compared + 100, tally.disagreed + 1
                tally.right, tally.wrong = tally.right + 95, tally.wrong + 5  # well above 90 %

        asked = enumerate([stable, canary, canary, canary])
        threads = [threading.Thread(target=ask, args=(server, seed)) for seed, server in asked]
        threads.append(threading.Thread(target=count))
        for thread in threads:
            thread.start()
        stack.callback(lambda: [thread.join() for thread in threads])
        stack.callback(ended.set)
        prometheus = stack.enter_context(start_prometheus(targets, interval=EVERY, rules=rules, timeout=WAIT))
        prometheus.wait_for("up", WAIT)
        began = prometheus.now()
        prometheus.wait_for("tinybench_drift_evidence", WAIT)
        prometheus.wait_for(f"vector(time()) > {began + 4}", WAIT)  # some readings for every window
        yield Watching(prometheus, servers, began)


def soon(test: Callable[P, None]) -> Callable[P, None]:
    """Let a test try again for a while: a target that answers too late on a busy machine has no readings at that moment."""

    @wraps(test)
    def patient(*args: P.args, **kwargs: P.kwargs) -> None:
        until = time.monotonic() + WAIT / 2
        while True:
            try:
                return test(*args, **kwargs)
            except (AssertionError, KeyError, ValueError):
                if time.monotonic() > until:
                    raise
            time.sleep(EVERY)

    return patient


def queries_of(dashboard: dict[str, Any]) -> list[tuple[str, str]]:
    """Return title and expression of every query, with the variables as Grafana fills them in."""
    found = []
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            promql = target["expr"].replace("$version", "stable|canary|rollout").replace("$__rate_interval", "2s")
            assert "$" not in promql
            found.append((panel["title"], promql))
    return found


@pytest.mark.needs("prometheus")
@soon
def test_every_query_of_the_dashboard_returns_data(watching: Watching) -> None:
    queries = queries_of(json.loads(stored_dashboard()))
    assert len(queries) >= 20
    for title, promql in queries:
        found = watching.prometheus.query(promql)
        assert found, f"{title}: nothing for {promql}"
        assert any(np.isfinite(value) for _, value in found), f"{title}: only NaN for {promql}"


@pytest.mark.needs("prometheus")
@soon
def test_queries_tell_what_was_done(watching: Watching) -> None:
    """The numbers, not only that there are some."""
    panels = {panel.title: panel for panel in panels_for(OBJECTIVE, rate="3s", scale=SCALE)}

    def now(title: str, which: int = 0) -> dict[str, float]:
        found = watching.prometheus.query(panels[title].queries[which].promql)
        return {" ".join(label for name, label in sorted(labels.items())): value for labels, value in found}

    in_time, p99 = now("Answered in time"), now("Latency", 1)
    assert in_time["canary"] < in_time["stable"] <= 1
    assert p99["canary"] > max(0.1, now("Latency", 0)["stable"])
    assert now("Disagreement in shadow") == {"rollout": pytest.approx(0.01, rel=0.1)}  # read while it counts
    assert now("Right, where labels came") == {"rollout": pytest.approx(0.95, rel=0.02)}
    labels = now("Answers by label")
    assert labels.keys() == {f"{label} stable" for label in range(4)}
    assert sum(labels.values()) == pytest.approx(1)
    assert now("Evidence of drift").keys() == {"stable inputs", "stable predictions"}
    assert now("Servers").items() >= {"stable": 1, "canary": 1, "rollout": 1}.items()
    assert now("Workers that died")["stable"] == 0


@pytest.mark.needs("prometheus")
@soon
def test_alerts_fire_for_the_slow_version_and_name_it(watching: Watching) -> None:
    watching.prometheus.wait_for('ALERTS{alertname="BudgetBurnsFast",alertstate="firing"}', WAIT)
    alerts = [alert for alert in watching.prometheus.alerts() if alert["labels"].get("version") != "leaving"]
    firing = [alert for alert in alerts if alert["state"] == "firing"]
    burning = [alert for alert in firing if alert["labels"]["alertname"] == "BudgetBurnsFast"]
    assert "canary" in {alert["labels"]["version"] for alert in burning}
    assert "canary spends its budget" in " ".join(alert["annotations"]["summary"] for alert in burning)
    silent = {"WorkersDie", "ServerStartsAnew", "LabelsMissing", "AnswersWrong"}
    assert not silent & {alert["labels"]["alertname"] for alert in firing}


@pytest.mark.needs("prometheus")
@soon
def test_prometheus_has_data_for_every_panel(watching: Watching) -> None:
    curves: Curves = []
    for panel in panels_for(OBJECTIVE, rate="2s", scale=SCALE):
        found = [watching.prometheus.query(query.promql) for query in panel.queries]
        values = [(0.0, value) for series in found for _, value in series if math.isfinite(value)]
        curves.append((panel, {str(number): [point] for number, point in enumerate(values)}))
    assert [panel.title for panel, series in curves if not series] == []
    picture = panel_picture(curves)
    assert picture.caption == "Every panel of the dashboard has data."
    assert len(picture.figure.axes) == len(curves)
    if folder := os.environ.get("WATCHING_PICTURES"):  # to look at
        for dark in (False, True):
            for columns in (1, 2):
                panel_picture(curves, columns=columns, dark=dark).save(
                    Path(folder, f"panels-{columns}-{'dark' if dark else 'light'}.png")
                )


@pytest.mark.needs("prometheus")
@pytest.mark.parametrize("q", [0.01, 0.5, 0.9, 0.99, 1.0])  # at 0 with an empty first bucket Prometheus has NaN
@soon
def test_histogram_quantile_is_that_of_prometheus(watching: Watching, q: float) -> None:
    """An independent truth for what students write."""
    from tinybench.production import histogram_quantile
    from tinybench.support.basics.buckets import quantile_bounds

    found = watching.prometheus.query(f"histogram_quantile({q}, random_seconds_bucket)")
    assert len(found) == CASES
    for labels, value in found:
        counts = Histograms().counts[int(labels["case"])].tolist()
        assert histogram_quantile(q, BOUNDS, counts) == pytest.approx(value, nan_ok=True), (q, counts)
        low, high = quantile_bounds(q, BOUNDS, counts)
        assert low <= value <= high, (q, counts)


def looked_twice(prometheus: Prometheus, objective: Objective, window: Window) -> list[Look]:
    """Return the second of two looks: what came since the first one is counted."""
    asked = PrometheusLooks(prometheus, objective, window, 1.0)
    asked.look(0.0)
    prometheus.wait_for(f"vector(time()) > {prometheus.now() + 2}", WAIT)
    return asked.look(2.0)


@pytest.mark.needs("prometheus")
@soon
def test_looks_tell_the_versions_apart(watching: Watching) -> None:
    window = Window("Fast", 14.4, 12.0, 1.0, "page")
    looks = {look.server: look for look in looked_twice(watching.prometheus, Objective(0.9), window)}
    assert looks.keys() == {"stable", "canary", "leaving"}  # the other counts no requests
    canary, stable = looks["canary"], looks["stable"]
    assert not canary.problem
    assert not stable.problem
    assert canary.bad / canary.total > max(0.1, stable.bad / stable.total)
    assert canary.p99 is not None
    assert canary.p99.low <= canary.p99.estimate <= canary.p99.high


@pytest.mark.needs("prometheus")
@soon
def test_watch_asks_a_prometheus(watching: Watching, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(
        ["watch", "--prometheus", watching.prometheus.url, "--every=0.5s", "--for=1s", "--window=6s", "--objective=99%"]
    )
    said = capsys.readouterr().out
    assert code == 1, said
    assert "canary: 99 % within 50 ms: missed" in said
    assert {line.split()[2] for line in said.splitlines() if " s  " in line} == {"stable", "canary", "leaving"}


@pytest.mark.needs("prometheus")
@soon
def test_watch_starts_a_prometheus(
    watching: Watching, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `start_prometheus` would be called; the one that runs already answers, which saves its five seconds."""
    given: dict[str, Any] = {}

    @contextmanager
    def start(targets: list[ScrapeTarget], **how: Any) -> Iterator[Prometheus]:
        given.update(how, targets=targets, text=how["rules"].read_text())
        yield watching.prometheus

    monkeypatch.setattr("tinybench.tools.watching.prometheus_server.start_prometheus", start)
    options = ["--every=0.5s", "--for=1s", "--window=6s", "--objective=99%", "--start-prometheus"]
    assert main(["watch", "http://127.0.0.1:1", "canary=http://127.0.0.1:2", *options]) == 1
    assert given["targets"] == [ScrapeTarget("http://127.0.0.1:1"), ScrapeTarget("http://127.0.0.1:2", "canary")]
    assert 0.1 <= given["interval"] <= 0.25
    assert "99 % within 50 ms" in given["text"]
    assert not given["rules"].exists()
    assert f"Prometheus runs at {watching.prometheus.url}" in capsys.readouterr().err


@pytest.mark.needs("prometheus")
@soon
def test_versions_without_a_name_are_one(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Prometheus that somebody set up otherwise: no label `version`."""
    ask, read = Prometheus.query, Prometheus.readings

    def query(self: Prometheus, promql: str, at: float | None = None) -> list[tuple[dict[str, str], float]]:
        return ask(self, promql.replace("by (version, ", "by (").replace("by (version) ", ""), at)

    def readings(self: Prometheus, *how: Any) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        return [
            ({name: labels[name] for name in labels if name != "version"}, rows) for labels, rows in read(self, *how)
        ]

    monkeypatch.setattr(Prometheus, "query", query)
    monkeypatch.setattr(Prometheus, "readings", readings)
    [look] = looked_twice(watching.prometheus, OBJECTIVE, Window("Fast", 14.4, 12.0, 1.0, "page"))
    assert look.server == "all servers"
    assert look.total > 0


@pytest.mark.needs("prometheus")
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_away_for_a_while_and_back() -> None:
    """It hangs, as one does that is out of memory or cut off; then it goes on, and can be asked again."""
    with start_prometheus([ScrapeTarget("http://127.0.0.1:9")], timeout=0.2) as prometheus:
        children = psutil.Process().children(recursive=True)
        process = max((each for each in children if each.name() == "prometheus"), key=psutil.Process.create_time)
        process.suspend()
        try:
            with pytest.raises(AwayError, match="timed out"):
                list(map(prometheus.query, ["up"] * 100))  # it may answer until all its threads have stopped
        finally:
            process.resume()
        assert Prometheus(prometheus.url, WAIT).query("1 + 1") == [({}, 2.0)]


@pytest.mark.needs("prometheus")
def test_a_wrong_query_is_told_in_prometheus_words(watching: Watching) -> None:
    with pytest.raises(ValueError, match=r"Prometheus refuses rate\(up\[: .*parse error"):
        watching.prometheus.query("rate(up[")
    with pytest.raises(TimeoutError, match="has nothing for nowhere after 0 s"):
        watching.prometheus.wait_for("nowhere", 0)
    assert watching.prometheus.query("1 + 1") == [({}, 2.0)]
    at = watching.prometheus.now() - 1
    assert watching.prometheus.query("time()", at) == [({}, pytest.approx(at))]
    others = Prometheus(watching.servers["stable"].url)
    with pytest.raises(ValueError, match="is no Prometheus"):
        others.query("up")


@pytest.mark.needs("prometheus")
def test_a_target_that_vanishes_and_comes_back_anew(watching: Watching, tmp_path: Path) -> None:
    """Away it is said to be; as another process its counter begins anew."""
    prometheus, leaving = watching.prometheus, watching.servers["leaving"]
    leaving.predict([[1, 2, 3, 4]])
    prometheus.wait_for('tinybench_requests_total{version="leaving",code="200"} == 1', WAIT)
    leaving.process.terminate()
    leaving.process.wait()
    prometheus.wait_for('up{version="leaving"} == 0', WAIT)
    window = Window("Fast", 14.4, 12.0, 1.0, "page")
    [look] = [
        each for each in PrometheusLooks(prometheus, Objective(), window, 1.0).look(0.0) if each.server == "leaving"
    ]
    assert (look.problem, look.read) == ("Prometheus cannot read it", False)
    prometheus.wait_for('ALERTS{alertname="ServerDown",alertstate="firing",version="leaving"}', WAIT)
    with served(double(tmp_path / "double.onnx"), "--max-batch", "1", "--port", str(leaving.address[1])) as again:
        prometheus.wait_for('up{version="leaving"} == 1', WAIT)
        before = f"[{max(60, round(prometheus.now() - watching.began) + 60)}s]"
        query = f'resets(tinybench_requests_total{{version="leaving",code="200"}}{before})'
        [(_, resets)] = prometheus.wait_for(f"{query} > 0", WAIT)
        assert resets == 1
        again.predict([[1, 2, 3, 4]])
        more = f'increase(tinybench_requests_total{{version="leaving",code="200"}}{before})'
        [(_, answers)] = prometheus.wait_for(f"{more} > 1.5", WAIT)
        assert answers < 3  # two were answered, one by each; the counter shows 1


@pytest.mark.needs("prometheus")
def test_it_ends_with_the_block_and_its_data_go() -> None:
    with start_prometheus([ScrapeTarget("http://127.0.0.1:9")]) as prometheus:
        children = psutil.Process().children(recursive=True)
        process = max((each for each in children if each.name() == "prometheus"), key=psutil.Process.create_time)
        folder = Path(next(word.partition("=")[2] for word in process.cmdline() if "config.file" in word)).parent
        assert folder.is_dir()
    assert not process.is_running()
    assert not folder.exists()
    with pytest.raises(AwayError, match=r"does not answer \(.*\); is it running there\?"):
        prometheus.query("up")


@pytest.mark.needs("prometheus")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_it_ends_also_when_its_owner_is_killed() -> None:
    program = (
        "from tinybench.tools.watching.prometheus_server import *\n"
        "import time\n"
        "with start_prometheus([ScrapeTarget('http://127.0.0.1:9')]) as p:\n"
        "    print(p.url, flush=True)\n"
        "    time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        children = psutil.Process(owner.pid).children(recursive=True)
        owner.kill()
    assert len(children) == 2
    _, alive = psutil.wait_procs(children, timeout=WAIT)
    assert not alive
    with pytest.raises(AwayError):
        Prometheus(url).query("up")


@pytest.mark.needs("prometheus")
def test_rules_that_are_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text("groups: 3")
    with (
        pytest.raises(OSError, match=r"Prometheus did not start: .*cannot unmarshal"),
        start_prometheus([ScrapeTarget("http://127.0.0.1:9")], rules=tmp_path / "rules.yml"),
    ):
        pass


def test_without_prometheus_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(FileNotFoundError, match="Prometheus is not installed here: apt-get install prometheus"),
        start_prometheus([ScrapeTarget("http://127.0.0.1:9")]),
    ):
        pass


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ([ScrapeTarget("https://a:1")], "https://a:1 is no address to watch; write it as http://127.0.0.1:8000"),
        ([ScrapeTarget("http://")], "http:// is no address to watch"),
        ([ScrapeTarget("http://a:1"), ScrapeTarget("a:1", "canary")], "a:1: listed twice; a server is watched once"),
    ],
)
def test_targets_that_are_none(targets: list[ScrapeTarget], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        configuration(targets, 1.0)


def test_intervals_and_urls_that_are_none() -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9090 is no address of a Prometheus"):
        Prometheus("127.0.0.1:9090")
    if Path("/usr/bin/prometheus").exists():
        with (
            pytest.raises(ValueError, match=r"0.01 s is too short"),
            start_prometheus([ScrapeTarget("a:1")], interval=0.01),
        ):
            pass
    assert ScrapeTarget("http://a").address == "a:80"
    assert configuration([ScrapeTarget("a:1", "canary")], 0.2)["global"]["scrape_interval"] == "200ms"


def test_the_stored_dashboard_is_what_the_generator_makes() -> None:
    assert make_dashboard() == stored_dashboard(), f"write it anew: make_dashboard() into {STORED.name}"


def test_the_dashboard_goes_through_the_sdks_classes_and_back() -> None:
    """No Grafana is at hand: its own SDK reads the JSON, panel by panel, and gives the same."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    stored = json.loads(stored_dashboard())
    again = json.loads(json.dumps(Dashboard.from_json(stored).to_json(), cls=JSONEncoder))
    assert again == stored


def test_the_dashboard_hangs_together() -> None:
    stored = json.loads(stored_dashboard())
    panels = stored["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, f"{panel['title']} lies over another"
        taken |= cells
    drawn = [panel for panel in panels if panel["type"] != "row"]
    assert [panel["title"] for panel in drawn] == [panel.title for panel in panels_for(Objective())]
    variables = {variable["name"] for variable in stored["templating"]["list"]}
    for panel in drawn:
        assert panel["description"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert all("$version" in target["expr"] for target in panel["targets"])
    assert variables == {"datasource", "version"}


def test_another_objective_makes_another_dashboard() -> None:
    made = json.loads(dashboard_json(Objective(0.9, 0.1)))
    assert 'le=\\"0.1\\"' in json.dumps(made)
    assert made["description"].endswith("90 % within 100 ms.")
    assert dashboard_json() == stored_dashboard()


def test_another_objective_takes_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grafana_foundation_sdk.builders", None)
    with pytest.raises(ValueError, match="pip install grafana-foundation-sdk"):
        dashboard_json(Objective(0.9, 0.1))
