"""The `tinybench watch` command: poll servers and check whether they meet their objective."""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinybench.shell.options import FILE, Command, duration, refuse_given, share, some_time, with_options

if TYPE_CHECKING:
    from tinybench.tools.watching.budget_burn import Bucket, Look
    from tinybench.tools.watching.queries import Objective, Window

MET, MISSED, UNKNOWN = 0, 1, 2
UNKNOWN_YET = "Prometheus"  # the name shown until Prometheus has reported its servers
CODES = {"met": MET, "missed": MISSED, "cannot tell": UNKNOWN}
WATCHING = [
    click.option(
        "--objective", "promised", type=share, default="99.9%", help="Fraction of requests to be answered in time."
    ),
    click.option(
        "--bound", type=duration, default="50ms", metavar="TIME", help="An answer within this time is in time."
    ),
    click.option("--every", type=some_time, default="5s", metavar="TIME", help="Time between polls."),
    click.option(
        "--for", "lasting", type=some_time, metavar="TIME", help="How long to watch; by default until Ctrl-C."
    ),
    click.option(
        "--window",
        "long",
        type=some_time,
        default="1h",
        help="Long window of the burn rate; the short window is a twelfth of it.",
    ),
    click.option(
        "--factor", type=click.FloatRange(min=0, min_open=True), default=14.4, help="Burn rate that raises an alarm."
    ),
    click.option("--prometheus", "asked", metavar="URL", help="Query a Prometheus server that is already running."),
    click.option("--start-prometheus", is_flag=True, help="Start a Prometheus server, and query it."),
    click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each poll, and for the verdict."),
    click.option("--figure", type=FILE, metavar="FILE", help="Draw the metrics over time, .svg or .png."),
    click.option("--rules", type=FILE, metavar="FILE", help="Write alert rules for Prometheus, .yml."),
    click.option("--dashboard", type=FILE, metavar="FILE", help="Write a dashboard for Grafana, .json."),
]


@click.command(cls=Command)
@click.argument("urls", nargs=-1, metavar="[URL...]")
@with_options(WATCHING)
def watch(
    urls: Sequence[str], promised: float, bound: float, long: float, factor: float, as_json: bool, **how: Any
) -> int:
    """Check whether servers meet their objective: the fraction of requests that must be answered in time.

    URL is the address that `tinybench serve` prints. Write canary=URL if that server runs a version named canary. At
    each poll, a line is printed for each server: the requests since the previous poll, p50 and p99 with the bounds of
    their histogram bucket, the fraction of the error budget that is left since the first poll, the burn rates over the
    long and the short window, and evidence of drift.

    Exit code 0: the objective is met; 1: it is missed, or its budget burns too fast; 2: the data cannot tell.
    """
    try:
        from tinybench.production import burning  # noqa: F401
    except ImportError as missing:  # in a student's package without module 16
        raise ValueError(f"tinybench watch uses what module 16 builds, and {missing}") from None
    from tinybench.tools.watching.queries import Objective, Window

    objective = Objective(promised, bound).checked()
    _check(urls, long, **how)
    if not urls and not how["asked"]:
        refuse_given({"every", "lasting", "long", "factor", "as_json", "figure"}, "with a server to watch")
    written = _write(objective, how["rules"], how["dashboard"])
    if not urls and not how["asked"]:
        return MET if written else _nothing()
    window = Window("Fast", factor, long, long / 12, "page")
    show = _show_json if as_json else _show
    with ExitStack() as stack:
        look = _looker(stack, urls, objective, window, **how)
        looks = _all_looks(look, how["every"], how["lasting"], lambda each: show(each, objective))
    return _tell(looks, objective, window, how["figure"], as_json)


def _nothing() -> int:
    raise click.UsageError("watch what? Give the URL that `tinybench serve` prints, or --prometheus URL")


def _check(
    urls: Sequence[str],
    long: float,
    every: float,
    lasting: float | None,
    asked: str | None,
    start_prometheus: bool,
    **files: Path | None,
) -> None:
    """Raise an error for options that cannot work, before the first poll."""
    if asked and (urls or start_prometheus):
        raise click.UsageError("--prometheus knows its servers: give no URL and no --start-prometheus beside it")
    if start_prometheus and not urls:
        raise click.UsageError("--start-prometheus: for which servers? Give their URLs")
    if long < 12 * every:
        raise ValueError(f"a window of {long:g} s has no short one of a twelfth with looks every {every:g} s; widen it")
    if lasting is not None and lasting < every:
        raise ValueError(f"--for {lasting:g} s is over before the second look, after {every:g} s; nothing can be told")
    for name, file in files.items():
        if file is not None and not file.parent.is_dir():
            raise FileNotFoundError(f"--{name} {file}: there is no folder {file.parent}")


def _write(objective: Objective, rules: Path | None, dashboard: Path | None) -> bool:
    """Write the files given for Prometheus's rules and Grafana's dashboard. Return whether any file was written."""
    from tinybench.tools.watching.alerts import write_rules
    from tinybench.tools.watching.dashboard import dashboard_json

    if rules:
        write_rules(rules, objective)
    if dashboard:
        dashboard.write_text(dashboard_json(objective), encoding="utf-8")
    for file in filter(None, (rules, dashboard)):
        print(f"tinybench: wrote {file}", file=sys.stderr)
    return bool(rules or dashboard)


Looker = Callable[[float, int], "list[Look]"]


def _looker(
    stack: ExitStack,
    urls: Sequence[str],
    objective: Objective,
    window: Window,
    *,
    every: float,
    asked: str | None,
    start_prometheus: bool,
    **_: Any,
) -> Looker:
    """Return a function that polls all servers once, directly or through Prometheus."""
    from tinybench.tools.watching.alerts import write_rules
    from tinybench.tools.watching.budget_burn import Look, Watched
    from tinybench.tools.watching.metrics_reader import Readings
    from tinybench.tools.watching.prometheus_server import AwayError, Prometheus, ScrapeTarget
    from tinybench.tools.watching.prometheus_server import start_prometheus as start

    named = [url.partition("=") if "=" in url.partition("//")[0] else ("stable", "", url) for url in urls]
    targets = [ScrapeTarget(url, version) for version, _, url in named]
    if len({target.address for target in targets}) < len(targets):
        raise ValueError(f"{' '.join(urls)}: a server is watched once; one stands here twice")
    if not asked and not start_prometheus:
        patience = min(2.0, every / (2 * len(targets)))
        keep = max(10 * every, 60.0)
        servers = [Watched(Readings(each, keep=keep, timeout=patience), objective, window, every) for each in targets]
        return lambda at, missed: [server.look(at, missed) for server in servers]
    from tinybench.tools.watching.prometheus_looks import PrometheusLooks

    if asked:
        prometheus = Prometheus(asked, timeout=min(10.0, every))
    else:
        rules = Path(stack.enter_context(tempfile.TemporaryDirectory()), "rules.yml")
        write_rules(rules, objective)
        interval = max(0.1, min(every / 2, window.short / 5))
        prometheus = stack.enter_context(start(targets, interval=interval, rules=rules, timeout=every))
        print(f"tinybench: Prometheus runs at {prometheus.url}, with alert rules, until this ends", file=sys.stderr)
        prometheus.wait_for("up")
    watched, known = PrometheusLooks(prometheus, objective, window, every), [UNKNOWN_YET]

    def look(at: float, _: int) -> list[Look]:
        try:
            found = watched.look(at)
        except AwayError as away:
            return [Look(server, at, str(away), read=False) for server in known]
        known[:] = [each.server for each in found] or known
        return found or [Look(server, at, "it has no server of the job tinybench", read=False) for server in known]

    return look


def _all_looks(look: Looker, every: float, lasting: float | None, show: Callable[[Look], None]) -> list[Look]:
    """Poll every `every` seconds until the time is over or Ctrl-C, and return the results of all polls."""
    from tinybench.shell.measuring_sessions import stopping_on_term

    looks: list[Look] = []
    began, number = time.monotonic(), 0
    with stopping_on_term():
        try:
            while lasting is None or number * every <= lasting * (1 + 1e-9):
                wait = began + number * every - time.monotonic()
                time.sleep(max(0.0, wait))
                missed = math.floor(max(0.0, -wait) / every)  # the machine slept, or was too busy
                number += missed
                if missed:
                    print(f"tinybench: stood still for {-wait:.3g} s; nobody looked", file=sys.stderr)
                for each in look(time.monotonic() - began, missed):
                    looks.append(each)
                    show(each)
                number += 1
        except KeyboardInterrupt:
            if not looks or lasting is not None:
                raise
            print(file=sys.stderr)
    return looks


def _show(look: Look, objective: Objective) -> None:
    print(f"{look.at:6.0f} s  {look.server}  {told(look, objective)}", flush=True)


def _show_json(look: Look, objective: Objective) -> None:
    from tinybench.support.basics.numbers import finite

    budget = {"left": look.left(objective), "budget_seconds": look.at}
    print(json.dumps(finite(asdict(look) | budget)), flush=True)


def told(look: Look, objective: Objective) -> str:
    """Return the result of one poll of a server as one line."""
    if look.problem:
        return f"cannot tell: {look.problem}"
    parts = [f"{look.rate:.3g}/s, {look.failed:.0f} failed", _quantile("p50", look.p50), _quantile("p99", look.p99)]
    if look.total:
        parts.append(_budget(look, objective))
    parts.append(f"burns {_times(look.long)} / {_times(look.short)}")
    parts += [f"drift of {what} {value:.2g}" for what, value in look.drift.items()]
    parts += ["BURNING"] * look.burning + [f"DRIFT of {what}" for what in look.alarm]
    return " · ".join([*filter(None, parts), *look.notes])


def _budget(look: Look, objective: Objective) -> str:
    """Describe how much of the error budget since the first poll is left, or how many times the budget was spent."""
    left = look.left(objective)
    if left >= 0:
        return f"{100 * left:.0f} % of the error budget for these {look.at:.0f} s is left"
    return f"error budget for these {look.at:.0f} s spent {1 - left:.1f} times over"


def _times(rate: float) -> str:
    return "?" if math.isnan(rate) else f"{rate:.1f}"


def _quantile(name: str, found: Bucket | None) -> str:
    if found is None:
        return ""
    low, high = (f"{1e3 * end:g}" for end in (found.low, found.high))
    estimate = 1e3 * found.estimate
    return f"{name} {estimate:{'.0f' if estimate >= 10 else '.2g'}} ms ({low}–{high})"


def _tell(looks: Sequence[Look], objective: Objective, window: Window, figure: Path | None, as_json: bool) -> int:
    """Print the verdict on each server, draw the polls if `figure` is given, and return the exit code."""
    from tinybench.tools.watching.panel_figures import panel_picture, panels_from_looks
    from tinybench.tools.watching.queries import promql_time

    worst = MET
    for server, verdict in _verdicts(looks, objective):
        worst = min({worst, CODES[verdict.verdict]} - {MET}, default=MET)
        if as_json:
            print(json.dumps({"server": server, "objective": str(objective), **verdict._asdict()}))
        else:
            print(f"{server}: {objective}: {verdict.verdict} ({verdict.why})")
    if figure:
        curves = panels_from_looks(looks, objective, promql_time(window.long), promql_time(window.short))
        panel_picture(curves).save(figure)
        print(f"tinybench: wrote {figure}", file=sys.stderr)
    return worst


def _verdicts(looks: Sequence[Look], objective: Objective) -> Iterator[tuple[str, Any]]:
    from tinybench.tools.watching.budget_burn import verdict_of_looks

    servers = [*dict.fromkeys(look.server for look in looks)]
    for server in [each for each in servers if each != UNKNOWN_YET] or servers:
        yield server, verdict_of_looks([look for look in looks if look.server == server], objective)
