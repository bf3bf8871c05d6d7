"""A/B tests: how often do equal versions look different, and what does each stopping rule cost?

Simulated are A/B tests of a failure that 2 % of the users meet.

Stopping rules, at a level of 5 %, two-sided; `users_needed` users of each version, for 2 % to 3 % with a power of 80 %:

- fixed horizon: one z test when all users have come;
- peeking: the same test every 100 users of each version, stopping when p < 0.05;
- anytime-valid: `share_e_value` after every 10 users, stopping at 20 (with as many users, and with twice as many).

What is counted: users stay with their version and make several requests (geometric, 10 on average); some users' requests
fail more often than others' (a beta distribution with the mean 2 %). Counted by request, a user is taken for many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from tests.benchmarks.formats import lines
from tests.benchmarks.harness import Benchmark, Part, Trial
from tinybench.course.lessons.m16_rollout import Z, experiments, z_of_shares
from tinybench.rollout import share_e_value, users_needed

SHARE, CHANGE, LEVEL, STEP, PEEK = 0.02, 0.01, 0.05, 10, 10


def rules(change: float, trials: int, users: int) -> dict[str, Any]:
    """Return alarms, the mean number of users, and the mean change found where there was an alarm, by stopping rule."""
    tests = experiments(share_e_value, SHARE, change, 2 * users // STEP, STEP, trials)
    half, found = users // STEP, {}
    for name, on, looks in (
        ("fixed horizon", tests.peeking, slice(half - 1, half)),
        ("peeking", tests.peeking, slice(PEEK - 1, half, PEEK)),
        ("anytime-valid", tests.anytime, slice(half)),
        ("anytime-valid, twice", tests.anytime, slice(None)),
    ):
        stops, seen = on[:, looks], tests.users[looks]
        alarm = stops.any(axis=1)
        last = np.where(alarm, stops.argmax(axis=1), len(seen) - 1)
        each = tests.estimates[:, looks][np.arange(trials), last][alarm]
        found[name] = {
            "alarms": int(alarm.sum()),
            "users": float(seen[last].mean()),
            "change": float(each.mean()) if change and len(each) else None,
        }
    return found


def counted(trials: int, users: int) -> dict[str, int]:
    """Return how often equal versions differ by requests and by users, by one test at the end."""
    alarms, rng = {"by request": 0, "by user": 0}, np.random.default_rng(0)
    for _ in range(trials):
        requests = rng.geometric(0.1, (2, users))
        failed = rng.binomial(requests, rng.beta(0.2, 0.2 * (1 - SHARE) / SHARE, (2, users)))
        whole = requests.sum(axis=1)
        pooled = failed.sum() / whole.sum()
        z = np.subtract(*(failed.sum(axis=1) / whole)) / np.sqrt(pooled * (1 - pooled) * (1 / whole).sum())
        alarms["by request"] += int(abs(z) > Z)
        alarms["by user"] += int(abs(z_of_shares(*(failed > 0).sum(axis=1), users)) > Z)
    return alarms


def measured(trial: Trial) -> dict[str, Any]:
    trials, users = (40 if trial.short else 4000), users_needed(SHARE, CHANGE, LEVEL)
    found = {"equal": rules(0.0, trials, users), "worse": rules(CHANGE, trials, users)}
    return {"trials": trials, "users": users, "counted": counted(trials, users), **found}


def goals(found: dict[str, Any]) -> dict[str, bool]:

    def kept(alarms: int) -> bool:
        return bool(binomtest(alarms, found["trials"], LEVEL, alternative="greater").pvalue > 0.01)

    equal = found["equal"]
    return {
        "fixed horizon: no more false alarms than a rate of 5 % gives": kept(equal["fixed horizon"]["alarms"]),
        "anytime-valid, a look every 10 users: the same": kept(equal["anytime-valid, twice"]["alarms"]),
        "one test at the end, counted by user: the same": kept(found["counted"]["by user"]),
    }


def page(found: dict[str, Any]) -> list[str]:
    n = found["trials"]
    rows = [
        {"rule": rule, "false": equal["alarms"] / n, "idle": equal["users"], "right": worse["alarms"] / n, **worse}
        for (rule, equal), worse in zip(found["equal"].items(), found["worse"].values(), strict=True)
    ]
    counts = [{"counted": how, "false": alarms / n} for how, alarms in found["counted"].items()]
    return [
        f"{n} tests each, of {found['users']} users of each version (anytime-valid, twice: up to {2 * found['users']}). "
        "The change told is the mean over those tests that ended with an alarm: whoever stops early, or tells only what "
        "was found, tells too much.",
        lines(
            rows,
            "rule | false alarms, % | found of 2 % → 3 %, % | users of each version, mean | without a change | change told, points (true: 1.00)",
            "{rule} | {false:100×.1f} | {right:100×.0f} | {users:.0f} | {idle:.0f} | {change:100×.2f}",
        ),
        "Equal versions, users with several requests each, one test at the end:",
        lines(counts, "counted | false alarms, %", "{counted} | {false:100×.1f}"),
    ]


BENCHMARK = Benchmark("A/B tests and when they may stop", {"trials": Part("", measured, page, goals)})
