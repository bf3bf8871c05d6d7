"""Alert rules for Prometheus, with severity "page" for urgent problems and "ticket" for all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tinybench.tools.watching.queries import (
    COUNTED_CODES,
    HOUR,
    RIGHT,
    WINDOWS,
    Objective,
    burn,
    full_rate,
    in_time,
    per_second,
    promql_time,
    quantile,
    read_since,
    requests,
)

__all__ = ["Limits", "alert_rules", "write_rules"]

MINUTE = 60.0
FEW = 10  # bad answers in a window before an alert: at low traffic, a high share may be chance
WHERE = '{job="tinybench"}'
ABOUT = """\
# Alert rules for {objective}, by `tinybench watch --rules`; check them: promtool check rules {name}
# Alerts on a share wait for {few} bad answers in their window: where few ask, one of them is a large share.
# They look at servers that prometheus.yml lists so:
#   scrape_configs:
#   - job_name: tinybench
#     static_configs:
#     - {{targets: ['127.0.0.1:8000'], labels: {{version: stable}}}}
#     - {{targets: ['127.0.0.1:8001'], labels: {{version: canary}}}}
"""


class Limits(NamedTuple):
    """The thresholds of the alerts that are not about latency or failures.

    ``accuracy`` is the smallest allowed proportion of correct answers. ``disagreement`` is the largest allowed
    proportion of mirrored requests on which two versions disagree. ``labelled`` is the smallest allowed proportion of
    answers for which a label arrives.
    """

    accuracy: float = 0.9
    disagreement: float = 0.01
    labelled: float = 0.01


def alert_rules(
    objective: Objective = Objective(),  # noqa: B008
    limits: Limits = Limits(),  # noqa: B008
    scale: float = 1.0,
) -> dict[str, Any]:
    """Return the content of a rule file for Prometheus. Every duration in the rules is multiplied by `scale`."""
    objective = objective.checked()
    if not scale > 0:
        raise ValueError(f"a scale of {scale:g} leaves no windows; 1 is for hours, 0.001 for seconds")
    return {
        "groups": [
            {"name": "tinybench-promised", "rules": _promised(objective, scale)},
            {"name": "tinybench-servers", "rules": _servers(scale)},
            {"name": "tinybench-right", "rules": _right(limits, scale)},
        ]
    }


def write_rules(file: Path, objective: Objective, limits: Limits = Limits(), scale: float = 1.0) -> None:  # noqa: B008
    """Write the rules as a YAML file for the `rule_files` of Prometheus's configuration."""
    about = ABOUT.format(few=FEW, objective=objective, name=file.name)
    text = yaml.safe_dump(alert_rules(objective, limits, scale), sort_keys=False, width=100, allow_unicode=True)
    file.write_text(about + text, encoding="utf-8")


def _rule(name: str, promql: str, severity: str, summary: str, todo: str, wait: float = 0.0) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": name, "expr": promql}
    if wait:
        rule["for"] = promql_time(wait)
    return rule | {"labels": {"severity": severity}, "annotations": {"summary": summary, "description": todo}}


def _too_late(objective: Objective, window: str, seconds: float) -> str:
    """Return the PromQL for the number of requests that missed the latency bound in a window of `seconds`."""
    return f"(1 - {in_time(objective, window)}) * {requests(window)} * {seconds:g}"


def _promised(objective: Objective, scale: float) -> list[dict[str, Any]]:
    rules = []
    for window in WINDOWS:
        long, short = (promql_time(scale * seconds) for seconds in (window.long, window.short))
        both = " and ".join(f"{burn(objective, each)} >= {window.factor:g}" for each in (long, short))
        both += f" and {_too_late(objective, long, scale * window.long)} >= {FEW}"
        told = (
            f'{{{{ $labels.version }}}} spends its budget {{{{ $value | printf "%.1f" }}}} times too fast over {long}'
        )
        todo = (
            f"Objective: {objective}. It goes on over {short}, too. Is it failures, or latency? Roll back what is new."
        )
        rules.append(_rule(f"BudgetBurns{window.name}", both, window.severity, told, todo))
    minutes, quarter = promql_time(scale * 5 * MINUTE), promql_time(scale * 15 * MINUTE)
    return [
        *rules,
        _rule(
            "LatencyHigh",
            f"{quantile(0.99, 'tinybench_request_seconds', minutes)} > {objective.bound:g}"
            f" and {_too_late(objective, minutes, scale * 5 * MINUTE)} >= {FEW}",
            "ticket",
            '{{ $labels.version }}: p99 is about {{ $value | printf "%.3g" }} s',
            f"More than {1e3 * objective.bound:g} ms for a while. Is it the model's time, waiting, or more requests?",
            wait=scale * 5 * MINUTE,
        ),
        _rule(
            "NoRequests",
            f"{full_rate('tinybench_requests_total', quarter, COUNTED_CODES)} == 0",
            "ticket",
            "{{ $labels.version }}: the counter of requests does not move",
            "Nobody asks, requests do not arrive, or it does not count: whether it keeps its objective, nobody knows.",
        ),
    ]


def _servers(scale: float) -> list[dict[str, Any]]:
    while_ = promql_time(scale * 15 * MINUTE)
    return [
        _rule(
            "ServerDown",
            f"up{WHERE} == 0",
            "page",
            "{{ $labels.instance }} ({{ $labels.version }}) cannot be read",
            "It does not answer at /metrics. Is it running, and can it be reached?",
            wait=scale * MINUTE,
        ),
        _rule(
            "NothingWatched",
            f"absent(up{WHERE})",
            "page",
            "Prometheus has no server to read",
            "No target of job tinybench is left: none of the other alerts can fire.",
            wait=scale * MINUTE,
        ),
        _rule(
            "WorkersDie",
            f"sum by (version, instance) (increase(tinybench_worker_restarts_total{WHERE}[{while_}])) > 0",
            "ticket",
            "{{ $labels.instance }} ({{ $labels.version }}): workers died",
            "Requests that they held are lost. The server's log says how they ended.",
        ),
        _rule(
            "ServerStartsAnew",
            f"changes(process_start_time_seconds{WHERE}[{while_}]) >= 2",
            "page",
            "{{ $labels.instance }} ({{ $labels.version }}) was started {{ $value }} times anew",
            "It ends by itself again and again. Roll back what is new.",
        ),
    ]


def _right(limits: Limits, scale: float) -> list[dict[str, Any]]:
    window, shift = promql_time(scale * HOUR), promql_time(scale * 6 * HOUR)
    labelled, right = (per_second("tinybench_labelled_total", shift, each) for each in ("", f'correct=~"{RIGHT}"'))
    compared, disagreed = (per_second(f"tinybench_shadow_{what}_total", window) for what in ("compared", "disagreed"))
    answered = per_second("tinybench_requests_total", window, 'code="200"', by="version, instance")
    changes = "max by (version, instance) (changes(tinybench_drift_{}{}[{}]))"
    evidence, read, taken = (
        changes.format(name, WHERE, window) for name in ("evidence", "rows_total", "compared_total")
    )
    # a detector may wait for rows that are far enough from those before: it reads rows, and compares none
    still = f"({evidence} == 0 unless on (version, instance) ({read} > 0 and on (version, instance) {taken} == 0))"
    still += f" and on (version, instance) {read_since(window)}"  # on a newer server, evidence may not have changed yet
    ended = f"max by (version, instance) (tinybench_drift_watching{WHERE}) == 0"
    answers = 'sum(rate(tinybench_requests_total{job="tinybench",code="200"}[' + shift + "]))"
    with_label = f"sum(rate(tinybench_labelled_total{WHERE}[{shift}]))"
    return [
        _rule(
            "Drift",
            f"max by (version, what) (tinybench_drift_alarm{WHERE}) > 0",
            "ticket",
            "{{ $labels.version }}: the {{ $labels.what }} are not what they were",
            "Latency may be fine and answers wrong. Look at the features in tinybench_drift_feature, and get labels.",
        ),
        _rule(
            "DriftUnwatched",
            f"(({still}) or {ended}) and {answered} > 0",
            "ticket",
            "{{ $labels.instance }} ({{ $labels.version }}): evidence of drift does not move, though answers are given",
            "A metric that never moves watches nothing: whether there is drift, nobody knows.",
        ),
        _rule(
            "AnswersWrong",
            f"{right} / {labelled} < {limits.accuracy:g} and ({labelled} - {right}) * {scale * 6 * HOUR:g} >= {FEW}",
            "page",
            "{{ $labels.version }}: {{ $value | humanizePercentage }} of the answers with a label are right",
            f"Less than {100 * limits.accuracy:g} %. Roll back what is new.",
        ),
        _rule(
            "LabelsMissing",
            f"{with_label} / {answers} < {limits.labelled:g}"
            f" and ({answers} - {with_label}) * {scale * 6 * HOUR:g} >= {FEW}",
            "ticket",
            "labels came for {{ $value | humanizePercentage }} of the answers",
            "Whether answers are right, too few labels tell. They are late, or do not come.",
        ),
        _rule(
            "ShadowDisagrees",
            f"{disagreed} / {compared} > {limits.disagreement:g} and {disagreed} * {scale * HOUR:g} >= {FEW}",
            "ticket",
            "the versions disagree on {{ $value | humanizePercentage }} of the mirrored requests",
            f"More than {100 * limits.disagreement:g} % are allowed. Look at requests on which they do.",
        ),
    ]
