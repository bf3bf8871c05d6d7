"""Helpers for the notebook 16_rollout: simulated A/B tests, simulated and real rollouts, and commit histories."""

from __future__ import annotations

import math
import subprocess
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinybench.support.basics.numbers import number_of

Names = Mapping[str, Any]
Evidence = Callable[[int, int], float]
Z = 1.959964  # critical value of a two-sided test at 5 %
# pairs of a package and one of its modules, which is imported again so that it uses the notebook's functions
ON_ROLLOUT = (("tinybench", "rollout"), ("tinybench.tools", "rollout"))


def z_of_shares(bad_a: np.ndarray, bad_b: np.ndarray, n: Any) -> np.ndarray:
    """Return the z-score of the difference between `bad_a / n` and `bad_b / n`, or 0 if there are no bad events."""
    pooled = (bad_a + bad_b) / (2 * n)
    error = np.sqrt(2 * pooled * (1 - pooled) / n)
    z: np.ndarray = np.divide((bad_a - bad_b) / n, error, out=np.zeros(np.shape(error)), where=error > 0)
    return z


# ---- A/B tests
class Stops(NamedTuple):
    """A/B tests with several looks at the data. Rows are tests, columns are looks; `users` has one entry per look."""

    users: np.ndarray  # the number of users of each version at each look
    peeking: np.ndarray  # whether the rule p < 0.05 would stop the test
    anytime: np.ndarray  # whether the rule e ≥ 20 would stop the test
    estimates: np.ndarray  # the difference of the failure rates, new minus old

    def share(self, name: str) -> np.ndarray:
        """Return, for each look, the proportion of experiments that the rule `name` has stopped so far."""
        return np.asarray(np.maximum.accumulate(getattr(self, name), axis=1).mean(axis=0))

    def when(self, name: str) -> np.ndarray:
        """Return, for each experiment that the rule `name` stopped, the index of the look at which it did."""
        found: np.ndarray = getattr(self, name)
        return np.asarray(found[found.any(axis=1)].argmax(axis=1))


def experiments(
    evidence: Evidence, share: float, change: float, looks: int = 40, every: int = 100, number: int = 800, seed: int = 1
) -> Stops:
    """Simulate A/B tests, and look at the data after every `every` users of each version.

    A failure has the probability `share` in the old version and `share` + `change` in the new version.
    `evidence` takes the number of users with a failure in the new version, and the number in both versions together. It
    returns an e-value. The peeking rule stops at p < 0.05, the anytime-valid rule at e ≥ 20.
    """
    rng, known = np.random.default_rng(seed), cache(evidence)
    old, new = (rng.binomial(every, p, (number, looks)).cumsum(axis=1) for p in (share, share + change))
    users = every * np.arange(1, looks + 1)
    e = np.array([[known(int(a), int(a + b)) for a, b in zip(*row, strict=True)] for row in zip(new, old, strict=True)])
    return Stops(users, np.abs(z_of_shares(new, old, users)) > Z, e >= 20, (new - old) / users)


def alarms_by_unit(
    numbers: Sequence[int], share: float = 0.05, users: int = 400, trials: int = 800
) -> dict[str, list[float]]:
    """Return the false-alarm rates of tests of two equal versions at the 5 % level, counted per request and per user.

    There is a rate for each value in `numbers`, the number of requests that each user sends. The model fails more often
    for some users than for others: half of the variance lies between users.
    """
    rng = np.random.default_rng(3)
    found: dict[str, list[float]] = {"per request": [], "per user": []}
    for number in numbers:
        failed = rng.binomial(number, rng.beta(share, 1 - share, (2, trials, users)))
        a, b = failed.sum(axis=2)
        found["per request"].append(float(np.mean(np.abs(z_of_shares(a, b, users * number)) > Z)))
        a, b = failed / number
        error = np.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / users)
        found["per user"].append(float(np.mean(np.abs(a.mean(axis=1) - b.mean(axis=1)) > Z * error)))
    return found


# ---- rollout
def in_another_process(expression: str) -> str:
    """Evaluate an expression in a new Python process, and return the printed value."""
    done = subprocess.run(
        [sys.executable, "-c", f"print({expression})"], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


class RehearsedLook(NamedTuple):
    """One look at the metrics during a rollout."""

    at: float  # the time of the look, in users or in seconds
    share: float  # the new version's fraction of users
    evidence: dict[str, float]  # an e-value for each metric
    fresh: bool = True  # False if the metrics were missing


class Rehearsal(NamedTuple):
    """A simulated rollout: its looks, its final state, the number of users, and how many of the users met the fault."""

    looks: list[RehearsedLook]
    end: Any
    users: int
    met: int

    def __str__(self) -> str:
        state = self.end
        how = {"promoted": "promoted", "running": "still running"}.get(state.status, f"rolled back ({state.why})")
        met = f"{self.met / self.users:.1%} of them met the fault"
        return f"{how} at {self.looks[-1].share:.0%} after {number_of(f'{self.users:,}', 'user')}; {met}"


class StagedEvidence:
    """The evidence that the new version has too many bad events, such as slow answers, over the stages of a rollout.

    In a stage, the new version gets a fixed `share` of the requests. The e-values of the stages are multiplied.
    """

    def __init__(self, evidence: Callable[[int, int, float], float]) -> None:
        self.of, self.before, self.surplus = evidence, 1.0, 0.0
        self.new = self.both = 0

    def add(self, new: bool, happened: bool) -> None:
        """Add a request: whether the event `happened`, and whether the request went to the `new` version."""
        self.new, self.both = self.new + (new and happened), self.both + happened

    def value(self, share: float) -> float:
        """Return the product of the e-values, but at most 1 if the new version has no more than its share of events."""
        product = self.before * (self.of(self.new, self.both, share) if share < 1 else 1.0)
        more = self.surplus + self.new - share * self.both > 0
        return product if more else min(1.0, product)

    def close(self, share: float) -> None:
        """End a stage: keep its e-value as a factor of the product, and reset the counts."""
        if share < 1:
            self.before *= self.of(self.new, self.both, share)
            self.surplus += self.new - share * self.both
        self.new = self.both = 0


def rehearse_rollout(
    names: Names,
    wrong: Callable[[int], float] = lambda answered: 0.0,
    slow: float = 0.01,
    blind_from: float = math.inf,
    stage_users: int = 2000,
    every: int = 100,
    most: int = 20_000,
    seed: int = 0,
) -> Rehearsal:
    """Roll out a new version to simulated users, with the student's `in_canary`, `share_e_value` and `advance`.

    Each request to the new version is also sent to the old version in the background, and up to 1 % of these pairs of
    answers may differ. The number of slow answers is compared with the old version's as long as the old version has
    users. The e-values of the stages are multiplied.

    Parameters
    ----------
    names
        The variables of the notebook by name, which include these three functions.
    wrong
        A function from the number of answers by the new version to the probability that its next answer is wrong.
    slow
        The probability that an answer of the new version is slow. For the old version, this probability is 0.01.
    blind_from
        The number of users after which the metrics are missing.
    stage_users, every
        The number of users that a stage needs, and the number of users between two looks.
    """
    rng, state, looks = np.random.default_rng(seed), names["RolloutState"](), list[RehearsedLook]()
    answered = met = users = before = 0
    late, differ = StagedEvidence(names["share_e_value"]), StagedEvidence(names["share_e_value"])
    while state.status == "running" and users < most:
        share = state.share
        for _ in range(every):
            users += 1
            new = names["in_canary"](f"user {users}", share, f"rollout {seed}")
            is_late = rng.random() < (slow if new else 0.01)
            late.add(new, is_late)
            if new:
                is_wrong = rng.random() < wrong(answered)
                answered, met = answered + 1, met + (is_wrong or (is_late and slow > 0.01))
                differs = is_wrong or rng.random() < 0.003
                differ.both, differ.new = differ.both + 1, differ.new + differs
        evidence = {"slow answers": late.value(share), "differing answers": differ.value(0.01)}
        fresh = users <= blind_from
        looks.append(RehearsedLook(users, share, evidence if fresh else {}, fresh))
        state = names["advance"](state, names["Seen"](fresh, looks[-1].evidence, users - before >= stage_users))
        if state.status == "running" and state.share != share:
            before = users
            late.close(share)
    return Rehearsal(looks, state, users, met)


def roll_out_here(names: Names, model: Path, rows: np.ndarray, labels: Any, fault: str, **plan: Any) -> Any:
    """Roll out a faulty copy of a model on two real servers, and return the rollout's `Report`.

    The rollout uses the notebook's code as `tinybench.rollout`. If Prometheus is installed but does not answer,
    repeat the rollout without it.
    """
    with standing_in(names):
        from tinybench.tools.rollout.engine import roll_out
        from tinybench.tools.rollout.plan import Plan

        try:
            return roll_out(model, model, rows, labels, Plan(fault=fault, **plan))
        except OSError:
            return roll_out(model, model, rows, labels, Plan(fault=fault, **plan, prometheus=False))


@contextmanager
def standing_in(names: Names) -> Iterator[None]:
    """Let imports inside the ``with`` block find `names` as `tinybench.rollout`. Afterwards, restore all modules."""
    prefixes = tuple(map(".".join, ON_ROLLOUT))
    modules = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(prefixes)}
    places = [(vars(import_module(package)), name) for package, name in ON_ROLLOUT]
    attributes = [package.pop(name, None) for package, name in places]  # an import also sets the package's attribute
    mine = types.ModuleType("tinybench.rollout")
    vars(mine).update({name: value for name, value in names.items() if not name.startswith("_")})
    sys.modules[mine.__name__] = mine
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.startswith(prefixes)]:
            del sys.modules[name]
        for (package, name), attribute in zip(places, attributes, strict=True):
            package.pop(name, None)
            if attribute is not None:
                package[name] = attribute
        sys.modules.update(modules)


# ---- history
def noise(kind: str, rng: np.random.Generator, commits: int, spread: float = 0.005) -> np.ndarray:
    """Return relative errors, one per commit: normal, with heavy tails, or, for any other `kind`, autocorrelated."""
    if kind == "normal":
        return spread * rng.normal(size=commits)
    if kind == "heavy tails":
        return spread * rng.standard_t(2, commits)
    steps, errors = spread * math.sqrt(1 - 0.7**2) * rng.normal(size=commits), [spread * rng.normal()]
    for step in steps[1:]:
        errors.append(0.7 * errors[-1] + step)
    return np.array(errors)


def neighbours(values: Sequence[float] | np.ndarray, limit: float = 0.02) -> list[int]:
    """Return the indices of the values that differ from their predecessors by more than the relative `limit`."""
    series = np.asarray(values)
    return [int(i) + 1 for i in np.flatnonzero(np.abs(series[1:] / series[:-1] - 1) > limit)]


def false_alarms(
    rules: Mapping[str, Callable[[np.ndarray], list[int]]], kinds: Iterable[str], histories: int = 30
) -> dict[str, list[float]]:
    """Return the proportion of unchanged histories in which a rule finds a change, for each rule and kind of noise."""
    rng, found = np.random.default_rng(5), {name: list[float]() for name in rules}
    for kind in kinds:
        series = [1 + noise(kind, rng, 100) for _ in range(histories)]
        for name, rule in rules.items():
            found[name].append(sum(bool(rule(values)) for values in series) / histories)
    return found


class CommitTimes(NamedTuple):
    """A benchmark's time for each commit on a machine whose speed drifts, and a baseline's time in the same round.

    Both are in milliseconds. `step` is the index of the commit at which the true time changes.
    """

    milliseconds: np.ndarray
    baseline: np.ndarray
    step: int

    @property
    def ratio(self) -> np.ndarray:
        """The time of each commit divided by the baseline's. The machine's drift cancels out."""
        return np.asarray(self.milliseconds / self.baseline)


def drifting_history(commits: int = 120, step: int = 70, size: float = 0.02, seed: int = 4) -> CommitTimes:
    """Simulate a commit history on a machine whose speed drifts by a few per cent, with outliers and one real step."""
    rng = np.random.default_rng(seed)
    machine = (
        1
        + 0.04 * np.sin(np.arange(commits) / 17)
        + np.where((np.arange(commits) >= 30) & (np.arange(commits) < 48), 0.03, 0.0)
    )
    own, base = (1 + 0.004 * rng.normal(size=commits) for _ in range(2))
    own[rng.choice(commits, 4, replace=False)] *= 1.08
    return CommitTimes(5 * machine * own * (1 + size * (np.arange(commits) >= step)), 4 * machine * base, step)
