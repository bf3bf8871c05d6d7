"""Hidden checks for the optional notebook 16_rollout.

Exact fractions, the normal distribution and hashlib supply the expected values.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from itertools import product
from operator import attrgetter
from statistics import NormalDist
from typing import Any

import numpy as np

from autograder.checks import judges
from autograder.checks.check_helpers import *

# ---- A/B tests


@judges("users_needed")
def users_are_enough(student: Any) -> None:
    """Check that `users_needed` returns the fewest users that reach the power, by the normal distribution."""
    rng = draw()
    for _ in range(25):
        share, level, power = (
            float(rng.uniform(0.01, 0.6)),
            float(rng.uniform(0.005, 0.2)),
            float(rng.uniform(0.55, 0.97)),
        )
        change = float(rng.choice([-1, 1]) * rng.uniform(0.1, 0.6) * share)
        case = {"share": share, "change": change, "level": level, "power": power}
        told = number(student.users_needed(**case), "users_needed")
        what = f"users_needed({', '.join(f'{name}={value:.4g}' for name, value in case.items())})"
        expect(told == int(told) >= 1, f"{what}: expected whole users, got {told}")

        def reached(n: float, p: float = share, q: float = share + change, alpha: float = level) -> float:
            error = math.sqrt((p * (1 - p) + q * (1 - q)) / n)
            return NormalDist().cdf(abs(q - p) / error - NormalDist().inv_cdf(1 - alpha / 2))

        near = 1e-9
        expect(reached(told) >= power - near, f"{what}: {told:g} users give a power of {reached(told):.4f} only")
        if told > 1:
            expect(reached(told - 1) < power + near, f"{what}: {told - 1:g} users are enough; got {told:g}")


@judges("share_e_value")
def evidence_of_shares(student: Any) -> None:
    """Check that `share_e_value` agrees with exact fractions, and is finite for huge counts.

    If events follow the given share, the mean e-value over all outcomes must be 1.
    """
    rng = draw()
    for _ in range(30):
        both, parts = int(rng.integers(0, 60)), int(rng.integers(1, 20))
        new, share = int(rng.integers(0, both + 1)), Fraction(parts, 20)
        old = both - new
        beta = Fraction(math.factorial(new) * math.factorial(old), math.factorial(both + 1))
        truth = float(beta / (share**new * (1 - share) ** old))
        cause = "B(new + 1, both − new + 1) / (share^new (1 − share)^(both − new))"
        agrees(student.share_e_value, truth, [(new, both, float(share))], cause, rel=1e-8)
        if parts == 10:
            agrees(student.share_e_value, truth, [(new, both)], f"{cause}, at one half by default", rel=1e-8)
    for both in rng.integers(1000, 5000, 3).tolist():  # the factors, without logarithms, are below the smallest float
        new = round(both * 0.3)
        log = math.lgamma(new + 1) + math.lgamma(both - new + 1) - math.lgamma(both + 2)
        truth = math.exp(log - new * math.log(0.3) - (both - new) * math.log(0.7))
        agrees(student.share_e_value, truth, [(new, both, 0.3)], "add logarithms, and take exp at the end", rel=1e-6)
    n, s = int(rng.integers(3, 12)), float(rng.uniform(0.05, 0.95))
    mean = sum(
        math.comb(n, k) * s**k * (1 - s) ** (n - k) * number(student.share_e_value(k, n, s), "an e value")
        for k in range(n + 1)
    )
    same(mean, 1.0, f"the mean of share_e_value over all {n} events at a share of {s:.3g}", "a fair bet", rel=1e-8)
    for case in ((50_000, 50_000, 0.05), (0, 50_000, 0.9)):
        told = number(student.share_e_value(*case), "share_e_value")
        expect(1e250 < told < math.inf, f"share_e_value{case}: expected a huge number, e⁷⁰⁰ at most, got {told}")


def answer_failures(student: Any) -> None:
    """Check that the answers are the first k at which 20^k / (k + 1), or 2^k / (k + 1), reaches 100.

    The canary gets 5 % (1/20) of the users, and the A/B test 50 % (1/2).
    """
    for function, rate in ((student.failures_at_5_percent, 20), (student.failures_at_50_percent, 2)):
        first = next(k for k in range(1, 99) if Fraction(rate**k, k + 1) >= 100)
        same(function(), first, "the number of failures", f"{rate}^k / (k + 1) ≥ 100")


def answer_unit(student: Any) -> None:
    """Check that the false-alarm rate per request is the two-sided normal tail probability beyond 1.96 / √16."""
    truth = math.erfc(1.959964 / 4 / math.sqrt(2))
    same(student.false_alarms_per_request(), truth, "the share of false alarms", "both tails beyond 1.96 / 4", rel=0.03)


@judges("in_canary")
def users_stay_where_they_are(student: Any) -> None:
    """Check that `in_canary` is true exactly if the hash of salt and user, as a fraction, lies below the share.

    The shares are just below and just above each user's fraction, random, 0 and 1.
    """
    rng = draw()
    for user in [*words(rng, 8), "", "Zoë", "用户 7"]:
        salt = str(rng.choice(["", "v2 ", "ü-"]))
        digest = hashlib.new("sha256", f"{salt}{user}".encode()).hexdigest()
        place = int(digest[:16], 16) / 16**16
        for share in (max(0.0, place - 1e-6), min(1.0, place + 1e-6), float(rng.uniform()), 0.0, 1.0):
            given = (user, share, salt) if salt else (user, share)
            told = flag(student.in_canary(*given), "in_canary")
            cause = "the first 8 bytes of SHA-256 of salt + user, by 2⁶⁴"
            same(told, place < share, f"in_canary{given}", f"{cause}: {place:.6g}")


@judges("advance")
def a_rollout_goes_its_way(student: Any) -> None:
    """Check that `advance` returns the next state of a rollout by the rules.

    A running rollout receives all kinds of observations in every stage, and a finished one a random selection.
    """
    rng = draw()
    either = (False, True)
    kinds = list(product(range(4), either, either, either))
    final = [kinds[i] for i in rng.choice(len(kinds), 8, replace=False)]
    looks = [("running", *kind) for kind in kinds]
    looks += [(status, *kind) for status, kind in zip(["promoted", "rolled back"] * 4, final, strict=True)]
    harms = rng.permutation(list(product((20.0, 100.0, 1000.0), (1.0, 1.5, 1e6)))).tolist()
    given = list[tuple[Any, ...]]()
    expected = list[tuple[Any, ...]]()
    for status, stage, fresh, harm, enough in looks:
        decisive = (status, fresh, harm) == ("running", True, True)  # eight looks, each with other harm
        stop_at, times = harms.pop() if decisive else (float(rng.choice([20.0, 100.0, 1000.0])), 1.5)
        patience = int(rng.choice([1, 3, 5]))
        blind = int(rng.integers(max(0, patience - 2), patience + 1))
        why = "slow" if status == "rolled back" else ""
        names = words(rng, max((stage + enough) % 4, int(harm)))  # from none to three, whatever else there is
        parts = rng.permutation([0.01, 0.6, 0.99])[: len(names)] * rng.uniform(0.9, 1)  # three are more than `stop_at`
        evidence = dict(zip(names, (stop_at * parts).tolist(), strict=True))
        worst = sorted(names)[stage % len(names)] if harm else ""  # the first by name, or the last
        if harm:
            evidence[worst] = stop_at * times
        if status != "running":
            truth: tuple[Any, ...] = (stage, status, blind, why)
        elif not fresh:
            back = blind + 1 >= patience
            truth = (stage, "rolled back" if back else "running", blind + 1, "blind" if back else "")
        elif worst:
            truth = (stage, "rolled back", 0, worst)
        elif not enough:
            truth = (stage, "running", 0, "")
        else:
            truth = (3, "promoted", 0, "") if stage == 3 else (stage + 1, "running", 0, "")
        given.append((stage, status, blind, why, fresh, evidence, enough, stop_at, patience))
        expected.append(truth)
    columns = [*zip(*given, strict=True)]
    states = each(student, student.RolloutState, *columns[:4])
    seen = each(student, student.Seen, *columns[4:7])
    fields = "stage", "status", "blind", "why"
    for by_default in (False, True):
        rows = [i for i, row in enumerate(given) if (row[7:] == (100.0, 3)) == by_default]
        limits = [] if by_default else [[columns[k][i] for i in rows] for k in (7, 8)]
        new = each(student, student.advance, [states[i] for i in rows], [seen[i] for i in rows], *limits)
        for i, found in zip(rows, each(student, attrgetter(*fields), new), strict=True):
            stage, status, blind, _, fresh, evidence, enough, *_ = given[i]
            what = f"stage {stage}, {status}, blind {blind}, after fresh {fresh}, evidence {evidence}, enough {enough}"
            told = dict(zip(fields, items(found, what, 4), strict=True))
            same(told, dict(zip(fields, expected[i], strict=True)), what)


# ---- history
@judges("best_split")
def series_divide_best(student: Any) -> None:
    """Check that `best_split` finds the split with the largest rank-sum statistic, with and without ties."""
    rng = draw()
    for n in (2, 3, 8, 31):
        for series in (rng.normal(size=n), rng.integers(0, 4, n).astype(float), np.sort(rng.exponential(size=n))):
            ranks = [float(np.sum(series < x) + (np.sum(series == x) + 1) / 2) for x in series]
            scores = []
            for k in range(1, n):
                expected = k * (n + 1) / 2
                scores.append(abs(sum(ranks[:k]) - expected) / math.sqrt(k * (n - k) * (n + 1) / 12))
            what = f"best_split of {n} values"
            place, score = items(student.best_split(series.tolist()), what, 2)
            same(score, max(scores), f"{what}, the score", "the largest of all k from 1 to n − 1", abs=1e-9)
            best = [k for k, one in enumerate(scores, 1) if one > max(scores) - 1e-9]
            expect(number(place, what) in best, f"{what}: expected the place {best[0]}, got {place}")


@judges("change_points")
def changes_are_found(student: Any) -> None:
    """Check that `change_points` finds clear steps of random size, and none in a series without a step.

    The p-value must be exact. Each part must be searched again at half the level, if it is long enough.
    """
    rng = draw()
    often: dict[str, Any] = {"level": 0.4, "permutations": 9}  # enough for steps as clear as these
    for places, how in (((30,), often), ((20, 45), often), ((15, 32, 50), {**often, "fewest": 9})):
        shift = np.sum([np.arange(65) >= place for place in places], axis=0)
        sign, size = float(rng.choice([-1, 1])), float(rng.uniform(1, 9))
        series = sign * size * shift + np.resize([0.1, 0.2, 0.0, 0.3], 65)  # between the steps nothing rises or falls
        told = numbers(student.change_points(series.tolist(), **how), "change_points")
        same(told, list(places), f"change_points of steps at {places}", "each part is asked again; indices in order")
    flat = (np.arange(65) % 2 + rng.normal()).tolist()
    same(student.change_points(flat, 0.05, permutations=19), [], "change_points of what changes each time", "no step")
    steep = [*rng.uniform(0, 1, 9).tolist(), *rng.uniform(9, 10, 9).tolist()]
    same(student.change_points(steep, permutations=99), [9], "change_points of 18 values", "p is 1/100")
    low, high = sorted(rng.normal(size=3).tolist()), sorted((10 + rng.normal(size=3)).tolist())
    six, why = [*low, *high], "10 % of the orders of six values divide as well"
    same(student.change_points(six, 0.3, 3, 49), [3], "change_points of six values at 30 %", why)
    same(student.change_points(six, 0.02, 3, 49), [], "change_points of six values at 2 %", why)
    same(student.change_points(six, 0.3, 4, 99), [], "change_points of six values with fewest=4", "too short")
    begin = (rng.permutation(3) - 30.0).tolist()
    found = student.change_points([*begin, *low[:2], *high[:2]], 0.98, 2, 59)
    why = "parts may be as short as `fewest`; a third of the orders of four divide as well"
    same(found, [3, 5], "change_points at 98 % of three values, then two and two", why)
    a, b, c, d, e, f = np.sort(rng.normal(size=6)).tolist()
    found = student.change_points([*begin, f, d, c, b, e, a], 0.98, 3, 39)
    why = "half the level; three quarters of the orders of six divide as well"
    same(found, [3], "change_points at 98 % of three values, then six", why)
    never = student.change_points([1.5] * 12, 0.05, 5, 19)
    same(never, [], "change_points of what never moves", "all orders are alike")
    step = [*rng.uniform(0, 1, 20).tolist(), *rng.uniform(9, 10, 20).tolist()]
    same(student.change_points(step, 0.01, 15, 49), [], "change_points with 49 permutations", "p is at least 1/50")
    same(student.change_points(step, 0.02, 15, 49), [20], "change_points with 49 permutations at 2 %", "p is 1/50")


def answer_rollout(student: Any) -> None:
    """Check that the users who met a failure are 10 % of 2,000 · 5 % and of 2,000 · 20 %.

    A slowdown of both versions must cancel in the ratio.
    """
    same(student.users_who_met_it(), 50, "the users", "(100 + 400) · 0.1", rel=0.01)
    truth = 0.97 * 1.05 / 1.05
    same(student.ratio_changes_by(), truth, "the factor", "the machine slows both", rel=1e-3)
