"""A client for Prometheus, and a context manager that runs Prometheus with a list of servers to scrape."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tinybench.support.basics.child_process import ChildProcess

__all__ = ["AwayError", "Labels", "Point", "Prometheus", "ScrapeTarget", "start_prometheus"]

STARTING = 60.0  # s, timeout of the start, which usually takes 0.1 s, but longer on a busy machine
JOB = "tinybench"
NOT_HERE = (
    "Prometheus is not installed here: apt-get install prometheus (Debian, Ubuntu), brew install prometheus (macOS), "
    "or put a program of that name on the path; without it `tinybench watch URL` reads the servers itself"
)

Labels = dict[str, str]
Point = tuple[float, float]  # time in seconds of Prometheus's clock, and value


class AwayError(ConnectionError):
    """The error raised when Prometheus does not answer."""


class ScrapeTarget(NamedTuple):
    """A server to scrape: its URL, as printed by `tinybench serve`, and the version that it serves."""

    url: str
    version: str = "stable"

    @property
    def address(self) -> str:
        """The host and port of the server, such as ``127.0.0.1:8000``."""
        parts = urlsplit(self.url if "//" in self.url else f"//{self.url}")
        if not parts.hostname or parts.scheme not in ("", "http"):
            raise ValueError(f"{self.url} is no address to watch; write it as http://127.0.0.1:8000")
        return parts.netloc.rpartition("@")[2] if parts.port else f"{parts.netloc}:80"


class Prometheus:
    """A client for a running Prometheus, for example `Prometheus("http://127.0.0.1:9090").query("up")`.

    Parameters
    ----------
    url
        The address of Prometheus.
    timeout
        Seconds after which a request raises `AwayError`.
    """

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        self.url, self.timeout = url.rstrip("/"), timeout
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise ValueError(f"{url} is no address of a Prometheus; write it as http://127.0.0.1:9090")
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # without any proxy

    def query(self, promql: str, at: float | None = None) -> list[tuple[Labels, float]]:
        """Evaluate an expression, now or at a given Prometheus time. Return the labels and the value of each series."""
        found = self._ask("query", query=promql, **({} if at is None else {"time": repr(float(at))}))
        if found["resultType"] == "scalar":
            return [({}, float(found["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in found["result"]]

    def readings(self, selector: str, seconds: float, at: float) -> list[tuple[Labels, list[Point]]]:
        """Return the stored samples of each series in the `seconds` before `at`, a time on Prometheus's clock."""
        window = f"[{max(1, round(1000 * seconds))}ms]"
        found = self._ask("query", query=selector + window, time=repr(float(at)))["result"]
        return [(each["metric"], [(float(t), float(value)) for t, value in each["values"]]) for each in found]

    def now(self) -> float:
        """Return the time on Prometheus's clock, which timestamps all samples and may differ from the local clock."""
        return self.query("time()")[0][1]

    def alerts(self) -> list[dict[str, Any]]:
        """Return the pending and firing alerts, as reported by Prometheus's API."""
        return list(self._ask("alerts")["alerts"])

    def wait_for(self, promql: str, seconds: float = 30.0) -> list[tuple[Labels, float]]:
        """Evaluate an expression until it has a result, and return the result. After `seconds`, raise TimeoutError."""
        until = time.monotonic() + seconds
        while not (found := self.query(promql)):
            if time.monotonic() > until:
                raise TimeoutError(f"Prometheus has nothing for {promql} after {seconds:g} s")
            time.sleep(0.02)
        return found

    def _ask(self, path: str, **parameters: str) -> dict[str, Any]:
        data = urlencode(parameters).encode() if parameters else None  # sent as a form, since an expression may be long
        try:
            with self._open(f"{self.url}/api/v1/{path}", data, self.timeout) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
        except (OSError, HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise AwayError(f"Prometheus at {self.url} does not answer ({why}); is it running there?") from None
        try:
            told = json.loads(text)
            failed = told["status"] != "success"
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"what answers at {self.url} is no Prometheus") from None
        if failed:
            raise ValueError(f"Prometheus refuses {parameters.get('query', path)}: {told['error']}")
        return dict(told["data"])


@contextmanager
def start_prometheus(
    targets: Sequence[ScrapeTarget], *, interval: float = 1.0, rules: Path | None = None, timeout: float = 10.0
) -> Iterator[Prometheus]:
    """Run Prometheus on a free port of this machine while the block runs, and delete its data at the end.

    The first scrape takes place 5 s after the start. This delay cannot be changed. To wait for the first scrape, call
    ``wait_for("up")``.

    Parameters
    ----------
    targets
        Servers to scrape, at /metrics. The series carry the labels ``job="tinybench"``, ``version`` and ``instance``.
    interval
        Seconds between two scrapes of a target, and between two evaluations of the rules; at least 0.1.
    rules
        A file of alert rules, such as one written by `tinybench.tools.watching.alerts.write_rules`.
    timeout
        Seconds after which a query raises `AwayError`.
    """
    program = shutil.which("prometheus")
    if program is None:
        raise FileNotFoundError(NOT_HERE)
    if not interval >= 0.1:
        raise ValueError(f"an interval of {interval:g} s is too short for Prometheus here; take 0.1 s or more")
    with tempfile.TemporaryDirectory(prefix="tinybench-prometheus-") as name:
        folder = Path(name)
        config = folder / "prometheus.json"  # JSON is YAML
        config.write_text(json.dumps(configuration(targets, interval, rules)), encoding="utf-8")
        options = ["--web.listen-address=127.0.0.1:0", f"--storage.tsdb.path={folder / 'data'}"]
        command = [program, f"--config.file={config}", *options]
        with ChildProcess(command, "Prometheus", wrapped=True, output="file", patience=STARTING) as process:
            yield Prometheus(f"http://{_listening(process)}", timeout)


def configuration(targets: Sequence[ScrapeTarget], interval: float, rules: Path | None = None) -> dict[str, Any]:
    """Return a configuration of Prometheus that scrapes `targets` once per `interval` (in seconds)."""
    if twice := {target.address for target in targets if sum(target.address == t.address for t in targets) > 1}:
        raise ValueError(f"{', '.join(sorted(twice))}: listed twice; a server is watched once")
    every = f"{round(interval * 1000)}ms"
    static = [{"targets": [target.address], "labels": {"version": target.version}} for target in targets]
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "scrape_configs": [{"job_name": JOB, "static_configs": static}],
        "rule_files": [str(rules.resolve())] if rules else [],
    }


def _listening(child: ChildProcess) -> str:
    """Wait until Prometheus is ready, and return its address. If it does not start, raise OSError with its message."""
    until = time.monotonic() + STARTING
    while True:
        text = child.written()
        where = re.search(r'msg="Listening on".*?\baddress=(\S+)', text)
        if where and "Server is ready to receive web requests" in text:
            return where[1]
        if (code := child.process.poll()) is not None or time.monotonic() > until:
            errors = re.findall(r'(?:err|error)="((?:[^"\\]|\\.)*)"', text) or text.strip().splitlines()[-1:]
            raise OSError(f"Prometheus did not start: {errors[0] if errors else f'exit code {code}'}")
        time.sleep(0.02)
