"""A rollout from its first request to its end. `tinybench.rollout.advance` makes the decisions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.load import arrivals
from tinybench.rollout import STAGES, RolloutState, Seen, advance, in_canary
from tinybench.tools.rollout.e_values import METRICS, Evidence
from tinybench.tools.rollout.journal import EventLog
from tinybench.tools.rollout.plan import Checkpoint, Plan, Report
from tinybench.tools.rollout.rollout_metrics import own_metrics
from tinybench.tools.rollout.router import OLD, Router
from tinybench.tools.rollout.server_readings import CANARY, STABLE, Ask, Watcher, by_prometheus, by_reading
from tinybench.tools.rollout.tally import Tally
from tinybench.tools.serving.child_servers import serving
from tinybench.tools.serving.client import Address, address_of, ask, sample_bodies
from tinybench.tools.watching.metrics_reader import Readings
from tinybench.tools.watching.prometheus_server import ScrapeTarget, start_prometheus

__all__ = ["roll_out", "run_rollout"]

SCRAPE = 0.2  # s between two scrapes
TOO_LATE = 0.5  # s; if requests are sent later than this, the load generator is too slow and the result is not valid
OnLook = Callable[[Checkpoint], Any]


def roll_out(
    old: str | Path,
    new: str | Path,
    rows: np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    plan: Plan | None = None,
    *,
    journal: Path | None = None,
    resume: bool = False,
    on_look: OnLook = lambda look: None,
    options: Sequence[str] = (),
) -> Report:
    """Roll out a new model to 5, 20, 50 and then 100 % of the users, or roll it back.

    The old and the new model each run on their own server.

    Parameters
    ----------
    old, new
        Files of the two models (.onnx), which may be the same file.
    rows, labels
        The rows that users send and, if known, the right answers. With labels, a new version is harmful if it is wrong
        more often than the old version; its answers may differ. Without labels, a rollout stops if more than
        `Plan.allowed` of the answers differ, because nobody can tell which answers are right.
    plan
        The settings of the rollout; see `Plan`.
    journal
        A file in which every checkpoint is recorded.
    resume
        Whether to resume the unfinished rollout in the journal. If False, an unfinished rollout is rolled back.
    on_look
        A function that is called with each checkpoint.
    options
        Additional options of `tinybench serve`, for both servers.
    """
    plan = plan or Plan()
    commands = [[str(old), *options], [str(new), *options, *(["--fault", plan.fault] if plan.fault else [])]]
    kept = EventLog(journal)
    if taken_back := _left(kept, resume):
        return taken_back
    with serving(commands) as urls:
        return run_rollout(urls[0], urls[1], rows, labels, plan, journal=kept, on_look=on_look)


def run_rollout(
    old_url: str,
    new_url: str,
    rows: np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    plan: Plan | None = None,
    *,
    journal: EventLog | None = None,
    on_look: OnLook = lambda look: None,
) -> Report:
    """Run a rollout between two servers that are already running. For the parameters, see `roll_out`.

    An unfinished rollout in the journal is resumed.
    """
    plan, journal = plan or Plan(), journal or EventLog(None)
    addresses = address_of(old_url), address_of(new_url)
    bodies = sample_bodies(addresses[OLD], rows, plan.seed, 10.0)  # the first body is tested on the old server only
    numbers = _answers_numbers(addresses[0], bodies[0])
    other = "labels" if labels is None else "differs"
    run = _Run(addresses, bodies, labels, plan, journal, Evidence([name for name in METRICS if name != other]), numbers)
    with _watched(old_url, new_url, plan, run) as (watcher, name):
        run.report.watched_by = name
        try:
            run.go(watcher, on_look)
        except BaseException as error:
            if run.state.status == "running":
                run.state = replace(run.state, status="rolled back", why="interrupted")
                journal.write(run.state, problem=type(error).__name__)
            raise
        finally:
            run.router.close()
    return run.report


class _Run:
    """A rollout in progress."""

    def __init__(
        self,
        addresses: tuple[Address, Address],
        bodies: Sequence[bytes],
        labels: Sequence[Any] | np.ndarray | None,
        plan: Plan,
        journal: EventLog,
        evidence: Evidence,
        numbers: bool,
    ) -> None:
        self.plan, self.journal, self.evidence = plan, journal, evidence
        self.state, self.salt = RolloutState(), f"rollout-{plan.seed}-"
        before = journal.last_rollout() if journal.unfinished else []
        rng = np.random.default_rng([plan.seed, len(before)])
        due = arrivals(plan.rate, len(STAGES) * plan.longest, seed=int(rng.integers(2**31)))
        users, rows = rng.integers(0, plan.population, len(due)), rng.integers(0, len(bodies), len(due))
        self.coins = rng.random(len(due))
        self.router = Router(addresses, bodies, due, rows, self.route, plan.timeout)
        truth = None if labels is None else labels[: len(bodies)]
        self.tally = Tally(self.router, plan, evidence, users, rows, truth, numbers)
        self.stage_began = 0.0
        self.report = Report(self.state, stop_at=evidence.stop_at, fault=plan.fault, labelled=labels is not None)
        if before:
            self._go_on(before)
        else:
            journal.write(self.state, salt=self.salt, rate=plan.rate, seed=plan.seed, fault=plan.fault)

    def _go_on(self, before: Sequence[dict[str, Any]]) -> None:
        self.salt = before[0]["salt"]
        self.state = RolloutState(**before[-1]["state"])
        self.evidence.take(next((row["counts"] for row in reversed(before) if "counts" in row), []))
        for row in before:
            for metric, user in row.get("counted", []):
                self.tally.counted.setdefault(metric, set()).add(int(user))

    def route(self, number: int) -> tuple[bool, bool]:
        """Decide whether a request goes to the new version, and whether it is mirrored, that is, goes to both versions.

        Record both decisions and return them.
        """
        stage, tally = self.state.stage, self.tally
        is_new = in_canary(f"user-{tally.users[number]}", self.state.share, self.salt)
        mirrored = bool(self.coins[number] < self.plan.mirrored_at(stage))
        tally.stage[number], tally.is_new[number], tally.mirrored[number] = stage, is_new, mirrored
        return is_new, mirrored

    def go(self, watcher: Watcher, on_look: OnLook) -> None:
        """Send requests and take checkpoints until the rollout ends."""
        self.router.start()
        looks = 0
        while self.state.status == "running":
            looks += 1
            self.router.run_until(looks * self.plan.every)
            on_look(self.look(watcher))
        self.report.seconds = self.router.now
        self.router.drain(self.plan.timeout / 4)
        self.tally.take()
        tally, report = self.tally, self.report
        report.state, report.labels_missing = self.state, len(tally.labels_waiting)
        report.users, report.exposed, report.harmed = len(tally.seen), len(tally.exposed), len(tally.harmed)
        report.differing, report.met = len(tally.differing), len(tally.harmed | tally.differing)

    def look(self, watcher: Watcher) -> Checkpoint:
        """Take a checkpoint: count events, read the metrics, decide how to continue, and write it to the journal."""
        tally, stage, share = self.tally, self.state.stage, self.state.share
        tally.take()
        tally.take_restarts(stage, watcher.restarts(STABLE), watcher.restarts(CANARY))
        answers = {name: side.answers for name, side in zip((STABLE, CANARY), self.router.sides, strict=True)}
        watcher.look(answers)
        problem = watcher.problem or self._problem()
        evidence = self.evidence.e_values()
        seen = Seen(not problem, evidence, tally.enough(stage))
        self.state = advance(self.state, seen, self.evidence.stop_at, self.plan.patience)
        if self.state.stage != stage:
            self.stage_began = self.router.now
        look = Checkpoint(
            self.router.now, share, self.state, not problem, problem, evidence, self.evidence.seen(stage),
            len(tally.stage_users[stage]), tally.stage_pairs[stage], tally.latencies,
        )  # fmt: skip
        self.report.looks.append(look)
        more = {key: value for key, value in look.to_dict().items() if key != "state"}
        self.journal.write(self.state, **more, counts=self.evidence.to_rows(), counted=tally.fresh_users)
        tally.fresh_users = []
        return look

    def _problem(self) -> str:
        """Return the reason why the data of this checkpoint cannot be trusted.

        If the data can be trusted, return an empty string.
        """
        if self.router.late > TOO_LATE:
            return f"requests are sent {self.router.late:.1f} s late: this machine cannot send so many"
        if self.router.now - self.stage_began > self.plan.longest:
            late = ", or labels that come too late" if self.tally.truth is not None else ""
            return f"{self.plan.longest:g} s were not enough to see what this stage needs: too little traffic{late}"
        return ""


def _left(journal: EventLog, resume: bool) -> Report | None:
    """Roll back an unfinished rollout in the journal, unless `resume` is True.

    Return the report of the rollback, or None if nothing was rolled back. If there is nothing to resume, raise
    ValueError.
    """
    if resume and not journal.unfinished:
        raise ValueError(f"--resume: {journal.path or 'without a --journal there'} holds no unfinished rollout")
    if not journal.unfinished or resume:
        return None
    assert journal.state is not None
    state = replace(journal.state, status="rolled back", why="interrupted")
    journal.write(state, problem="found unfinished")
    return Report(state)


def _answers_numbers(address: Address, body: bytes) -> bool:
    """Return whether the server answers with a number instead of one score for each class."""
    outputs = json.loads(ask(address, "/predict", body).body)["outputs"][0]
    return not (isinstance(outputs, list) and len(outputs) > 1)


@contextmanager
def _watched(old_url: str, new_url: str, plan: Plan, run: _Run) -> Iterator[tuple[Watcher, str]]:
    """Read the metrics of both servers during the block, through Prometheus or directly.

    Yield the watcher and the name of the reader.
    """
    targets = [ScrapeTarget(old_url, STABLE), ScrapeTarget(new_url, CANARY)]
    here = shutil.which("prometheus") is not None if plan.prometheus is None else plan.prometheus
    with ExitStack() as stack:
        asking: Ask
        if here:
            mine = stack.enter_context(own_metrics(run.tally, lambda: run.state.share))
            prometheus = stack.enter_context(
                start_prometheus([*targets, ScrapeTarget(mine, "rollout")], interval=SCRAPE, timeout=1.0)
            )
            prometheus.wait_for('count(tinybench_worker_restarts_total{job="tinybench"}) == 2')
            asking = by_prometheus(prometheus)
        else:
            asking = by_reading({target.version: Readings(target, keep=60.0) for target in targets})
        watcher = Watcher(asking, plan.every / 2)
        watcher.ask_once()
        with watcher:
            yield watcher, "Prometheus" if here else "own reader"
