"""Alert rules: promtool reads them, and on made series exactly those fire that should."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tinybench.tools.serving.counters import SECONDS
from tinybench.tools.watching.alerts import Limits, alert_rules, write_rules
from tinybench.tools.watching.queries import PANELS, WINDOWS, Objective, promql_time

ALERTS = {rule["alert"] for group in alert_rules()["groups"] for rule in group["rules"]}


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    """Return a series of a server of the job, as promtool makes it: a reading a minute."""
    labels = {"job": "tinybench", "version": "stable", "instance": "a:1"} | labels
    return {
        "series": f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels.items())}}}",
        "values": values,
    }


def server(
    minutes: int, per_minute: int = 600, late: int = 0, failed: int = 0, seconds: float = 0.01, **labels: str
) -> list[dict[str, str]]:
    """Return what a server shows that answers so many requests a minute, of which some come late and some fail."""
    good = per_minute - failed
    counters = {f"0+{good}x{minutes}": {"code": "200"}, f"0+{failed}x{minutes}": {"code": "500"}}
    found = [series("tinybench_requests_total", values, **code, **labels) for values, code in counters.items()]
    for end in ["0.005", "0.01", "0.05", "0.1", "+Inf"]:
        within = good - late * (float(end) < 0.1) if float(end) >= seconds else 0
        found.append(series("tinybench_request_seconds_bucket", f"0+{within}x{minutes}", le=end, **labels))
    return [*found, series("up", f"1+0x{minutes}", **labels)]


def few(good: int = 10, failed: int = 0) -> list[dict[str, str]]:
    """Return what a server shows that nobody asks for 100 minutes, and then a few a minute."""
    counters = {f"0+0x100 {good}+{good}x40": "200", f"0+0x100 {failed}+{failed}x40": "500"}
    found = [series("tinybench_requests_total", values, code=code) for values, code in counters.items()]
    ends = [
        series("tinybench_request_seconds_bucket", f"0+0x100 {good}+{good}x40", le=end)
        for end in ("0.01", "0.05", "+Inf")
    ]
    return [*found, *ends, series("up", "1+0x140")]


def labels(values: str, correct: str) -> list[dict[str, str]]:
    """Return the counter of labels that came, of right or of wrong answers."""
    return [series("tinybench_labelled_total", values, correct=correct)]


HEALTHY = server(120)
CASES: dict[str, tuple[list[dict[str, str]], str, set[str]]] = {
    # name: series, when to look, which alerts fire then
    "all is well": (HEALTHY, "2h", set()),
    "just within the budget": (server(120, per_minute=10_000, failed=9), "2h", set()),
    "young, and nobody has asked yet": (server(5, per_minute=0), "5m", set()),
    "young, and evidence has not moved yet": (
        [*server(20), *(series("tinybench_drift_evidence", "1+0x20", what=what) for what in ("inputs", "predictions"))],
        "20m",
        set(),
    ),
    "half of the answers are late": (
        server(90, late=300),
        "90m",
        {"BudgetBurnsFast", "BudgetBurnsSlowly", "BudgetBurnsSteadily", "LatencyHigh"},
    ),
    "one of eleven requests failed, three times: too few for an alert": (few(failed=1), "103m", set()),
    "all of three requests failed": (few(good=0, failed=1), "103m", set()),
    "ten requests failed in ten minutes": (
        few(failed=1),
        "112m",
        {"BudgetBurnsFast", "BudgetBurnsSlowly", "BudgetBurnsSteadily"},
    ),
    "one of two labels is wrong, three times: too few for an alert": (
        [*few(), *labels("0+0x100 1+1x40", "true"), *labels("0+0x100 1+1x40", "false")],
        "103m",
        set(),
    ),
    "ten of twenty labels are wrong": (
        [*few(), *labels("0+0x100 1+1x40", "true"), *labels("0+0x100 1+1x40", "false")],
        "114m",
        {"AnswersWrong"},
    ),
    "one of three answers differs, three times: too few for an alert": (
        [
            *few(),
            *(
                series(f"tinybench_shadow_{what}_total", f"0+0x100 {by}+{by}x40")
                for what, by in (("compared", 3), ("disagreed", 1))
            ),
        ],
        "103m",
        set(),
    ),
    "two in a hundred fail": (
        server(90, failed=12),
        "90m",
        {"BudgetBurnsFast", "BudgetBurnsSlowly", "BudgetBurnsSteadily"},
    ),
    "eight in a thousand fail": (
        server(120, per_minute=1000, failed=8),
        "2h",
        {"BudgetBurnsSlowly", "BudgetBurnsSteadily"},
    ),
    "two in a thousand fail": (server(120, per_minute=1000, failed=2), "2h", {"BudgetBurnsSteadily"}),
    "it failed, and is well again: the short windows are over": (
        [
            series("tinybench_requests_total", "0+600x400", code="200"),
            series("tinybench_requests_total", "0+60x20 1200+0x380", code="500"),
            series("tinybench_request_seconds_bucket", "0+600x400", le="0.05"),
            series("tinybench_request_seconds_bucket", "0+600x400", le="+Inf"),
            series("up", "1+0x400"),
        ],
        "60m",
        {"BudgetBurnsSteadily"},  # its short window is six hours
    ),
    "three bad minutes: the long windows are not burning": (
        [
            series("tinybench_requests_total", "0+600x117 70680+480x3", code="200"),
            series("tinybench_requests_total", "0+0x117 120+120x3", code="500"),
            series("tinybench_request_seconds_bucket", "0+600x117 70680+480x3", le="0.05"),
            series("tinybench_request_seconds_bucket", "0+600x117 70680+480x3", le="+Inf"),
            series("up", "1+0x130"),
        ],
        "2h",
        {"BudgetBurnsSteadily"},
    ),
    "everything fails": (
        server(90, failed=600),
        "90m",
        {"BudgetBurnsFast", "BudgetBurnsSlowly", "BudgetBurnsSteadily"},
    ),
    "only the canary is slow": (
        [*HEALTHY, *server(120, late=60, version="canary", instance="b:1")],
        "2h",
        {"BudgetBurnsFast", "BudgetBurnsSlowly", "BudgetBurnsSteadily", "LatencyHigh"},
    ),
    "a counter begins anew, and nothing failed": (
        [
            series("tinybench_requests_total", "0+600x60 0+600x60", code="200"),
            series("tinybench_request_seconds_bucket", "0+600x60 0+600x60", le="0.05"),
            series("tinybench_request_seconds_bucket", "0+600x60 0+600x60", le="+Inf"),
            series("process_start_time_seconds", "1000+0x60 5000+0x60"),
            series("up", "1+0x120"),
        ],
        "70m",
        set(),
    ),
    "started anew again and again": (
        [*HEALTHY, series("process_start_time_seconds", "1+0x100 2+0x3 3+0x3 4+0x50")],
        "112m",
        {"ServerStartsAnew"},
    ),
    "a p99 that only just became high": (
        server(3, late=300),
        "3m",
        {"BudgetBurnsFast", "BudgetBurnsSlowly", "BudgetBurnsSteadily"},
    ),
    "the counter of requests does not move": (server(60, per_minute=0), "1h", {"NoRequests"}),
    "a server cannot be read": ([*HEALTHY, series("up", "1+0x50 0+0x20", instance="b:1")], "60m", {"ServerDown"}),
    "it was away for less than a minute": ([*HEALTHY, series("up", "1 1 0 1 1", instance="b:1")], "2m30s", set()),
    "its readings are missing, as of a target that vanished": (
        [series("up", "1+0x10 stale"), *HEALTHY[:-1]],
        "20m",
        {"NothingWatched"},
    ),
    "a worker died": ([*HEALTHY, series("tinybench_worker_restarts_total", "0+0x60 1+0x100")], "65m", {"WorkersDie"}),
    "a worker died long ago": ([*HEALTHY, series("tinybench_worker_restarts_total", "0+0x60 1+0x100")], "110m", set()),
    "drift": (
        [
            *HEALTHY,
            series("tinybench_drift_alarm", "0+0x60 1+0x60", what="inputs"),
            series("tinybench_drift_alarm", "0+0x120", what="predictions"),
        ],
        "2h",
        {"Drift"},
    ),
    "evidence that moves": (
        [
            *HEALTHY,
            series("tinybench_drift_alarm", "0+0x120", what="inputs"),
            series("tinybench_drift_evidence", "1+0.01x120", what="inputs"),
            series("tinybench_drift_watching", "1+0x120"),
        ],
        "2h",
        set(),
    ),
    "evidence that never moves": (
        [*HEALTHY, series("tinybench_drift_evidence", "1+0x120", what="inputs")],
        "2h",
        {"DriftUnwatched"},
    ),
    "evidence that waits for a row far enough from the last": (
        [
            *HEALTHY,
            series("tinybench_drift_evidence", "1+0x120", what="inputs"),
            series("tinybench_drift_rows_total", "0+600x120"),
            series("tinybench_drift_compared_total", "5+0x120"),
        ],
        "2h",
        set(),
    ),
    "evidence that never moves, though rows are compared": (
        [
            *HEALTHY,
            series("tinybench_drift_evidence", "1+0x120", what="inputs"),
            series("tinybench_drift_rows_total", "0+600x120"),
            series("tinybench_drift_compared_total", "0+5x120"),
        ],
        "2h",
        {"DriftUnwatched"},
    ),
    "evidence that never moves, as no rows are read": (
        [
            *HEALTHY,
            series("tinybench_drift_evidence", "1+0x120", what="inputs"),
            series("tinybench_drift_rows_total", "600+0x120"),
            series("tinybench_drift_compared_total", "5+0x120"),
        ],
        "2h",
        {"DriftUnwatched"},
    ),
    "evidence that rests, as nobody asks": (
        [*server(120, per_minute=0), series("tinybench_drift_evidence", "1+0x120", what="inputs")],
        "2h",
        {"NoRequests"},
    ),
    "the process that looks for drift has ended": (
        [
            *HEALTHY,
            series("tinybench_drift_evidence", "1+0.01x120", what="inputs"),
            series("tinybench_drift_watching", "1+0x90 0+0x100"),
        ],
        "2h",
        {"DriftUnwatched"},
    ),
    "a fifth is wrong": (
        [
            *HEALTHY,
            series("tinybench_labelled_total", "0+400x120", correct="true"),
            series("tinybench_labelled_total", "0+100x120", correct="false"),
        ],
        "2h",
        {"AnswersWrong"},
    ),
    "labels come, and answers are right": (
        [
            *HEALTHY,
            series("tinybench_labelled_total", "0+95x120", correct="true"),
            series("tinybench_labelled_total", "0+5x120", correct="false"),
        ],
        "2h",
        set(),
    ),
    "labels do not come": (
        [*HEALTHY, series("tinybench_labelled_total", "0+0x120", correct="true")],
        "2h",
        {"LabelsMissing"},
    ),
    "labels do not come for three answers: too few for an alert": (
        [*few(good=1), series("tinybench_labelled_total", "0+0x140", correct="true")],
        "103m",
        set(),
    ),
    "labels do not come for fourteen answers": (
        [*few(good=1), series("tinybench_labelled_total", "0+0x140", correct="true")],
        "114m",
        {"LabelsMissing"},
    ),
    "the versions disagree": (
        [
            *HEALTHY,
            series("tinybench_shadow_compared_total", "0+100x120"),
            series("tinybench_shadow_disagreed_total", "0+2x120"),
        ],
        "2h",
        {"ShadowDisagrees"},
    ),
    "the versions hardly disagree": (
        [
            *HEALTHY,
            series("tinybench_shadow_compared_total", "0+1000x120"),
            series("tinybench_shadow_disagreed_total", "0+5x120"),
        ],
        "2h",
        set(),
    ),
}


def promtool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run promtool in a folder."""
    return subprocess.run(["promtool", *words], cwd=folder, capture_output=True, text=True)


def firing(alerts: set[str], when: str, **more: Any) -> dict[str, Any]:
    """Return that exactly these alerts fire then."""
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)]
    query = 'count by (alertname) (count by (alertname, version) (ALERTS{alertstate="firing"}))'
    return {"promql_expr_test": [{"expr": query, "eval_time": when, "exp_samples": samples}], **more}


def test_every_alert_is_made_to_fire_and_to_stay_silent() -> None:
    fired = [alerts for _, _, alerts in CASES.values()]
    assert set().union(*fired) == ALERTS
    assert set.intersection(*fired) == set()


@pytest.mark.needs("prometheus")
def test_exactly_those_alerts_fire_that_should(tmp_path: Path) -> None:
    write_rules(tmp_path / "rules.yml", Objective())
    checked = promtool(tmp_path, "check", "rules", "rules.yml")
    assert checked.returncode == 0, checked.stderr
    assert f"{len(ALERTS)} rules found" in checked.stdout
    tests = [
        {"interval": "1m", "name": name, "input_series": given, **firing(alerts, when)}
        for name, (given, when, alerts) in CASES.items()
    ]
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    found = promtool(tmp_path, "test", "rules", "tests.yml")
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.needs("prometheus")
def test_a_wrong_expectation_is_noticed(tmp_path: Path) -> None:
    """What stays silent is really asked: promtool fails where an alert fires that is not foreseen."""
    write_rules(tmp_path / "rules.yml", Objective())
    for alerts in (set(), {"BudgetBurnsFast", "ServerDown"}):
        test = {"interval": "1m", "input_series": server(90, failed=12), **firing(alerts, "90m")}
        document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]}
        (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
        assert promtool(tmp_path, "test", "rules", "tests.yml").returncode == 1


@pytest.mark.needs("prometheus")
@pytest.mark.parametrize("scale", [1 / 3600, 1 / 60])
def test_scaled_rules_say_what_they_mean(tmp_path: Path, scale: float) -> None:
    """With every time divided by 60 the same series, a reading a second, gives the same alert with its words."""
    write_rules(tmp_path / "rules.yml", Objective(), scale=scale)
    assert promtool(tmp_path, "check", "rules", "rules.yml").returncode == 0
    if scale < 1 / 60:
        return
    alert = {
        "exp_labels": {"severity": "page", "version": "stable"},
        "exp_annotations": {
            "summary": "stable spends its budget 20.0 times too fast over 1m",
            "description": "Objective: 99.9 % within 50 ms. It goes on over 5s, too. Is it failures, or latency? "
            "Roll back what is new.",
        },
    }
    test = {
        "interval": "1s",
        "input_series": server(90, failed=12),
        "alert_rule_test": [{"alertname": "BudgetBurnsFast", "eval_time": "90s", "exp_alerts": [alert]}],
    }
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1s", "tests": [test]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    found = promtool(tmp_path, "test", "rules", "tests.yml")
    assert found.returncode == 0, found.stdout + found.stderr


def test_burn_rates_are_those_of_the_book() -> None:
    """A budget of 30 days: 2 % of it in an hour, 5 % in six, 10 % in three days."""
    shares = [window.factor * window.long / (30 * 24 * 3600) for window in WINDOWS]
    assert shares == pytest.approx([0.02, 0.05, 0.1])
    assert [window.long / window.short for window in WINDOWS] == [12, 12, 12]


def test_limits_and_objective_stand_in_the_rules() -> None:
    text = str(alert_rules(Objective(0.99, 0.1), Limits(accuracy=0.8, disagreement=0.05, labelled=0.2)))
    for part in ('le="0.1"', "/ 0.01 >= 14.4", "< 0.8", "> 0.05", "< 0.2"):
        assert part in text
    assert 'le="0.05"' not in text


@pytest.mark.parametrize("end", SECONDS)
def test_every_bound_of_the_server_can_be_an_objective(end: float) -> None:
    from tinybench.tools.serving.counters import Histogram

    assert Objective(0.9, end * (1 + 1e-12)).checked().le in dict(Histogram(SECONDS).buckets())


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        (Objective(0.999, 0.03), "a bound of 30 ms lies within a bucket .* take 25ms or 50ms"),
        (Objective(0.999, 0.0), "a bound of 0 ms lies within a bucket"),
        (Objective(1.0, 0.05), "an objective of 1 is no share between 0 and 1; write 99.9% or 0.999"),
        (Objective(99.9, 0.05), "an objective of 99.9 is no share"),
    ],
)
def test_what_cannot_be_watched_is_refused(objective: Objective, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        alert_rules(objective)


def test_a_scale_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a scale of 0 leaves no windows"):
        alert_rules(scale=0)


@pytest.mark.parametrize(("seconds", "text"), [(3600, "1h"), (300, "5m"), (90, "90s"), (0.25, "250ms"), (1e-9, "1ms")])
def test_durations_as_promql_writes_them(seconds: float, text: str) -> None:
    assert promql_time(seconds) == text


def test_panels_have_names_of_their_own() -> None:
    titles = [panel.title for panel in PANELS]
    assert len(set(titles)) == len(titles)
