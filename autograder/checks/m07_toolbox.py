"""Hidden checks for the optional toolbox of module 07, against SciPy, closed forms and counting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.m07_comparison import NAN, _latency, _samples
from tinybench.support.comparisons.cautions import independent_values


def _welch(a: Any, b: Any) -> Any:
    return stats.ttest_ind(a, b, equal_var=False)


@judges("welch_test")
def welch_is_welch(student: Any) -> None:
    """Check that the statistic, degrees of freedom and p-value of `welch_test` equal SciPy's."""
    rng = draw()
    kinds = ((5, 5, 1.0), (3, 40, 5.0), (20, 8, 0.2), (2, 2, 1.0))
    cases = [tuple(_samples(rng, (10, 1, n), (10.5, scale, m))) for n, m, scale in kinds]

    def three(a: list[float], b: list[float]) -> tuple[float, float, float]:
        test = _welch(a, b)
        return test.statistic, test.df, test.pvalue

    agrees(student.welch_test, three, cases, "variances by n, Welch's degrees of freedom, two-sided", rel=1e-7)
    for other in (2.0, 3.0):
        p = number(items(student.welch_test([2.0, 2.0], [other, other]), "welch_test", 3)[2], "p")
        expect(math.isnan(p) or p > 0, f"p of two of 2 and two of {other:g}: equal values show no scatter; got {p}")
    refuses(student.welch_test, ([1.0], [1.0, 2.0]))


@judges("welch_intervals")
def welch_intervals_agree(student: Any) -> None:
    """Check that both intervals of `welch_intervals` equal SciPy's.

    The difference has Welch's interval of the values. The ratio has Welch's interval of their logarithms. If a value is
    negative, the ratio must have no interval.
    """
    rng = draw()
    for n, m, confidence in ((8, 8, 0.95), (5, 30, 0.9), (40, 12, 0.99)):
        a, b = rng.lognormal(1, 0.1, n), rng.lognormal(0.9, 0.4, m)
        difference, ratio = items(student.welch_intervals(a.tolist(), b.tolist(), confidence), "welch_intervals", 2)
        truth = _welch(a, b).confidence_interval(confidence)
        same(difference, [truth.low, truth.high], "the difference's interval", "± t(df) · √(v_a + v_b)", rel=1e-7)
        logs = _welch(np.log(a), np.log(b)).confidence_interval(confidence)
        ends, cause = [math.exp(logs.low), math.exp(logs.high)], "Welch's interval of the logarithms, exp of both ends"
        same(ratio, ends, "the ratio's interval", cause, rel=1e-7)
    difference, ratio = items(student.welch_intervals([1.0, 2.0, 3.0], [-1.0, 1.0, 0.5]), "welch_intervals", 2)
    same(ratio, [NAN, NAN], "the ratio's interval where a value is negative", "there is no logarithm: (nan, nan)")
    truth = _welch([1.0, 2.0, 3.0], [-1.0, 1.0, 0.5]).confidence_interval(0.95)
    same(difference, [truth.low, truth.high], "the difference's interval where a value is negative", rel=1e-7)


@judges("permutation_test")
def permutation_shuffles(student: Any) -> None:
    """Check that p-values of `permutation_test` are close to exact ones, reproducible by seed, and never zero."""
    rng, test = draw(), partial(student.permutation_test, resamples=8000, seed=3)
    a, b = rng.normal(0.9, 1, 7), rng.normal(0, 1, 6)

    # counted, because SciPy's two-sided p doubles the smaller tail, which differs if a and b differ in length
    both = np.concatenate([a, b])
    chosen = both[np.array(list(combinations(range(13), 7)))].sum(axis=1)
    sizes, due = abs(chosen / 7 - (both.sum() - chosen) / 6), abs(a.mean() - b.mean())
    truth = float(np.mean(sizes >= due * (1 - 1e-12)))
    cause = "shuffle all values, compare |differences| with ≥"
    got = test(a.tolist(), b.tolist())
    same(got, truth, "permutation_test", cause, rel=0, abs=0.03)  # more than five standard errors
    four, cause = test([3.0, 4.0], [1.0, 2.0], resamples=2000), "shuffle without replacement"
    same(four, 1 / 3, "p of (3, 4) against (1, 2): 2 of 6 splits", cause, rel=0, abs=0.06)
    x, y = rng.normal(0.7, 1, 8), rng.normal(0, 1, 8)
    d, signs = x - y, np.array(list(product([-1, 1], repeat=8)))
    exact = float(np.mean(np.abs((signs * d).mean(axis=1)) >= abs(d.mean()) * (1 - 1e-12)))
    got, cause = test(x.tolist(), y.tolist(), paired=True), "flip the sign of each round's difference"
    same(got, exact, "permutation_test of pairs", cause, rel=0, abs=0.03)
    twenty, three = ([9.0 + i for i in range(20)], [1.0 + i / 9 for i in range(20)]), ([1.0, 2.0, 3.0],) * 2
    for paired in (False, True):
        far = student.permutation_test(*twenty, paired=paired, resamples=199)
        same(far, 1 / 200, f"p of a huge difference in 199 shuffles, paired={paired}", "add 1 to both counts")
        equal, cause = student.permutation_test(*three, paired=paired, resamples=50), "count shuffles as large, too: ≥"
        same(equal, 1.0, f"p without any difference, paired={paired}", cause)
    seeded = partial(test, a.tolist(), b.tolist(), resamples=200)
    first, again = ([number(seeded(seed=s), "permutation_test") for s in range(6)] for _ in "12")
    same(again, first, "permutation_test with the same seeds", "default_rng(seed)")
    expect(len(set(first)) > 1, "another seed should shuffle differently: pass it to default_rng")


@judges("wilcoxon_test")
def wilcoxon_ranks(student: Any) -> None:
    """Check that the p-value of `wilcoxon_test` equals SciPy's asymptotic one, with ties and zeros."""
    rng = draw()
    whole = rng.integers(-3, 5, 50).astype(float)
    cases = [rng.normal(0.4, 1, 30), whole, -rng.exponential(1, 15), rng.normal(0, 1, 400)]
    cause = "rank |d| without zeros, ties sharing their mean rank; correct the variance for ties"
    truth = partial(stats.wilcoxon, method="asymptotic", zero_method="wilcox")
    agrees(student.wilcoxon_test, lambda d: truth(d).pvalue, [d.tolist() for d in cases], cause, rel=1e-6)
    agrees(student.wilcoxon_test, 1.0, [[0.0, 0.0]])


@judges("cohens_d", "cohens_d_paired", "vargha_delaney_a12")
def effects_are_standard(student: Any) -> None:
    """Check that `cohens_d` and `cohens_d_paired` follow Cohen's formulas.

    `vargha_delaney_a12` must agree with counting pairs.
    """
    rng = draw()

    def pooled(a: list[float], b: list[float]) -> float:
        n, m = len(a), len(b)
        variance = ((n - 1) * np.var(a, ddof=1) + (m - 1) * np.var(b, ddof=1)) / (n + m - 2)
        return float((np.mean(a) - np.mean(b)) / math.sqrt(variance))

    def of_differences(a: list[float], b: list[float]) -> float:
        return float(np.mean(np.subtract(a, b)) / np.std(np.subtract(a, b), ddof=1))

    for n, m in ((6, 9), (30, 4)):
        agrees(student.cohens_d, pooled, [tuple(_samples(rng, (5, 3, n), (4, 1, m)))], "weight the variances by n − 1")
        x, y = rng.integers(0, 6, n).astype(float).tolist(), rng.integers(1, 7, m).astype(float).tolist()
        agrees(student.vargha_delaney_a12, _a12, [(x, y)], "P(a > b) plus half of the ties")
    cause = "mean and deviation of the differences"
    agrees(student.cohens_d_paired, of_differences, [tuple(_samples(rng, (5, 1, 12), (4, 1, 12)))], cause)
    for function in (student.cohens_d, student.cohens_d_paired):
        for other in (1.0, 2.0):
            size = number(function([1.0, 1.0], [other, other]), "the effect size")
            known = size == 0 and other == 1
            expect(known or not math.isfinite(size), f"without scatter the effect size is not known: NaN, not {size:g}")


def _a12(a: Sequence[float], b: Sequence[float]) -> float:
    return float(np.mean([(u > v) + 0.5 * (u == v) for u in a for v in b]))


@judges("friedman")
def friedman_ranks_within_rounds(student: Any) -> None:
    """Check that the statistic and p-value of `friedman` equal SciPy's with and without ties, despite drift.

    Equal times and plain lists must work too.
    """
    rng = draw()
    for k, n in ((3, 8), (5, 30), (4, 60)):
        drift = np.exp(np.cumsum(rng.normal(0, 0.3, n)))
        times = drift * np.exp(rng.normal(0, 0.1, (k, n)) + 0.05 * np.arange(k)[:, None])
        for values in (times, rng.integers(1, 4, (k, n)).astype(float)):
            test = stats.friedmanchisquare(*values)
            truth = {"chi2": test.statistic, "p_value": test.pvalue, "df": k - 1, "w": test.statistic / n / (k - 1)}
            table = student.friedman({f"m{i}": _latency(row) for i, row in enumerate(values)})
            holds(
                table, truth, f"friedman of {k} models in {n} rounds", "ranks in each round, ties corrected", rel=1e-7
            )
    equal = student.friedman([_latency([2.0] * 7)] * 3)
    holds(equal, {"chi2": 0.0, "p_value": 1.0}, "friedman of equal times", "then no rank differs, and p is 1")
    plain = student.friedman([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 5.0]])
    holds(plain, {"chi2": 6.0, "df": 2, "w": 1.0}, "friedman of plain lists that agree in each round")


@judges("holm")
def holm_steps_down(student: Any) -> None:
    """Check that `holm` adjusts p-values by Holm's definition and returns them in the original order."""

    def stepped(p_values: list[float]) -> list[float]:
        m, order = len(p_values), np.argsort(p_values, kind="stable")
        truth = [0.0] * m
        for rank, index in enumerate(order):
            truth[index] = min(1.0, max((m - j) * p_values[order[j]] for j in range(rank + 1)))
        return truth

    cases = [[0.01, 0.04, 0.03, 0.005], [0.6, 0.2, 0.9], [0.02], draw().beta(0.4, 3, 12).tolist(), [0.01] * 3]
    agrees(student.holm, stepped, cases, "m, m − 1, … times sorted values, never falling, at most 1, original order")


@judges("compare_all")
def all_pairs_are_corrected(student: Any) -> None:
    """Check that `compare_all` returns all pairs in order, with p-values corrected by Holm.

    The verdicts must respect the corrected p-values.
    """
    rng = draw()
    means = {"p": 1.0, "q": 1.03, "r": 1.0, "s": 1.5}
    results = {name: _latency(rng.normal(mean, 0.05, 25)) for name, mean in means.items()}
    pairs = [("p", "q"), ("p", "r"), ("p", "s"), ("q", "r"), ("q", "s"), ("r", "s")]
    found = items(student.compare_all(results, confidence=0.95), "compare_all of four models", 6)
    same([(c.name_a, c.name_b) for c in found], pairs, "the pairs")
    logs = [[np.log(v) for v in independent_values(results[a].values, results[b].values, False)[:2]] for a, b in pairs]
    raw, largest = [float(_welch(*both).pvalue) for both in logs], 0.0
    for rank, index in enumerate(np.argsort(raw)):
        largest, comparison = max(largest, min(1.0, (6 - rank) * raw[index])), found[index]
        truth = {"p_value": largest, "corrected_for": 6}
        holds(comparison, truth, f"comparison of {pairs[index]}", "holm over all pairs", rel=1e-6)
        verdict = text(comparison.verdict, "the verdict")
        what = f"that {verdict!r} claims something, at a corrected p of {largest:.3g}"
        same(verdict in ("faster", "slower"), largest <= 0.05, what, "a claim needs p ≤ 0.05")
    spread = np.array([-1.0, 0.0, 1.0] * 8) * 0.05
    nearly = {name: _latency(spread + mean) for name, mean in (("a", 1.0), ("b", 1.0275), ("c", 1.0137))}
    first, *_ = items(student.compare_all(nearly), "compare_all of three models", 3)
    told = f"the verdict at p = {number(first.p_value, 'p_value'):.3f}"
    same(first.verdict, "undecided: not significant after correction", told)
    options: tuple[dict[str, Any], ...] = {"margin": 0.2}, {"paired": True}
    wide, paired = (items(student.compare_all(results, **more), "compare_all", 6)[0] for more in options)
    same(wide.verdict, "equivalent", "the verdict on p and q within ± 20 %", "pass the margin on")
    same(paired.paired, True, "paired", "pass it on to compare")


def answer_understanding(student: Any) -> None:
    """Check that the answers on 20 tests at 5 %, on Holm against Bonferroni, and on A12 are right."""
    same(student.percent_of_at_least_one(), 100 * (1 - 0.95**20), "question 1", "1 − 0.95²⁰", rel=0.02)
    same(student.significant_after(), [3, 1], "question 2", "Holm gives 0.03, 0.04, 0.04; Bonferroni 0.03, 0.06, 0.09")
    same(student.faster_one(), "b", "question 3", "a's latency is the larger one in 90 % of pairs")
