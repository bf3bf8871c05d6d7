"""Hidden checks of module 07: against SciPy, statsmodels' formulas, closed forms, simulations and a fake clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import integrate, stats

from autograder.checks import (
    agrees,
    draw,
    entries,
    expect,
    holds,
    items,
    judges,
    number,
    numbers,
    refuses,
    same,
    shuffled,
    text,
    words,
)  # fmt: skip
from autograder.checks.m03_latency import Clock, named
from tinybench.cautions import independent_values
from tinybench.comparison import compare
from tinybench.result import BenchmarkResult

NAN, INF = math.nan, math.inf
NO_RATIO = {"ratio": NAN, "ratio_ci": (NAN, NAN)}
UNDECIDED = "undecided: needs {} more rounds"


def _latency(values: Any, metric: str = "latency", unit: str = "s", **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult(metric, np.asarray(values, float).tolist(), unit=unit, metadata=metadata)


def _balanced(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    """Return noise in pairs of opposite sign: a verdict must not hang on how the draw came out."""
    return np.resize([1.0, -1.0], size) * scale * np.repeat(rng.standard_normal(size // 2), 2)


def _samples(rng: np.random.Generator, *kinds: tuple[float, float, int]) -> list[list[float]]:
    """Return normal samples of these means, deviations and sizes."""
    return [rng.normal(mean, std, size).tolist() for mean, std, size in kinds]


def _lower_rank(n: int, confidence: float) -> int:
    """Return the rank of the lower end of the median's interval."""
    return int(np.sum(stats.binom.cdf(np.arange(n), n, 0.5) <= (1 - confidence) / 2))


def _runs(n: int, half: float, distance: float, confidence: float = 0.95, power: float = 0.8) -> int:
    """Return how many runs decide, by the formula."""
    widening: float = 1 + stats.norm.ppf(power) / stats.norm.ppf(0.5 + confidence / 2)
    return max(6, math.ceil(n * (half / distance * widening) ** 2))


@judges("check_comparable")
def unlike_results_are_refused(student: Any) -> None:
    """Each condition alone refuses, alone is allowed, and silence refuses nothing."""
    rng, check = draw(), student.check_comparable
    rows, columns, cores = rng.integers(1, 64, 3).tolist()
    metric, processor, another, typo = words(rng, 4)
    machine = {"cpu_model": processor, "cores": cores}
    base: dict[str, Any] = {"input_shape": [rows, columns], "system": {**machine, "time": "noon"}}
    one = _latency([1.0], **base)
    hardware = ({"cpu_model": another, "cores": cores}, {**machine, "cores": cores + 1})[rng.integers(2)]
    others = {
        "metric": _latency([1.0], metric, **base),
        "unit": _latency([1.0], unit="J", **base),
        "shape": _latency([1.0], **{**base, "input_shape": [rows + 1, columns]}),
        "machine": _latency([1.0], **{**base, "system": hardware}),
        "measured": _latency([1.0], **base, measured=False),
    }
    for name, other in others.items():
        refuses(check, (one, other), (other, one), mentions=name, what=f"results that differ in {name}")
        check(one, other, allow=[name])
        wrong = str(rng.choice([n for n in others if n != name]))
        what, cause = f"results that differ in {name} where {wrong} may", "skip only the conditions that allow names"
        refuses(check, (one, other, [wrong]), what=what, cause=cause)
    silent = _latency([2.0])
    later = _latency([2.0, 3.0], **{**base, "system": {**machine, "time": "one"}})
    for pair in ((one, later), (one, silent), (silent, one)):
        check(*pair)
    for unknown in ("shap", typo):
        refuses(check, (one, one, [unknown]), mentions=unknown, what=f"allow=[{unknown!r}]")


@judges("median_ratio")
def ratio_is_the_median_of_pairs(student: Any) -> None:
    """Ratio and ends are order statistics of the paired ratios."""
    rng = draw()

    def by_ranks(a: list[float], b: list[float], confidence: float = 0.95) -> list[float]:
        ratios, lower = np.sort(np.divide(a, b)), _lower_rank(len(a), confidence)
        return [math.exp(np.median(np.log(ratios))), ratios[lower - 1], ratios[len(a) - lower]]

    for n, confidence in ((6, 0.95), (25, 0.95), (40, 0.8), (101, 0.99)):
        b = rng.lognormal(0, 1, n)
        cause = "median and order statistics of log(a/b), round by round, and exp of all three"
        cases = [((b * rng.lognormal(0.1, 0.2, n)).tolist(), b.tolist(), confidence)]
        agrees(student.median_ratio, by_ranks, cases, cause)
    few = items(student.median_ratio([1.0] * 5, [2.0] * 5), "the ratio of 5 rounds with its ends", 3)
    same(few[1:], [0, INF], "the interval of 5 rounds", "they have none of 95 %")
    refuses(student.median_ratio, ([1.0] * 7, [1.0] * 8), mentions=["7", "8"])
    ones = [1.0] * 8
    for bad in ([1.0, 0.0] * 4, [1.0, -1.0] + [1.0] * 6):
        refuses(student.median_ratio, (bad, ones), (ones, bad))


@judges("sign_test")
def sign_test_counts(student: Any) -> None:
    """The p value is the exact binomial one, and ties count for neither side."""
    rng = draw()
    pairs = [_samples(rng, (0.3, 1, n), (0, 1, n)) for n in (1, 5, 12, 60, 301)]

    def binomial(a: list[float], b: list[float]) -> float:
        return float(stats.binomtest(sum(x > y for x, y in zip(a, b, strict=True)), len(a)).pvalue)

    cases = [case for a, b in pairs for case in ((a, b), (b, a))]
    agrees(student.sign_test, binomial, cases, "twice the upper tail, at most 1", rel=1e-7)
    truth, cause = min(1.0, 2 * float(stats.binom.sf(8, 12, 0.5))), "ties stay in n, and count for neither side"
    agrees(student.sign_test, truth, [([2.0] * 9 + [1.0] * 3, [1.0] * 12)], cause)
    agrees(student.sign_test, 1.0, [([1.0] * 4, [1.0] * 4)], cause)


@judges("wilcoxon_test")
def wilcoxon_ranks(student: Any) -> None:
    """The p value is SciPy's asymptotic one, with ties and zeros."""
    rng = draw()
    whole = rng.integers(-3, 5, 50).astype(float)
    cases = [rng.normal(0.4, 1, 30), whole, -rng.exponential(1, 15), rng.normal(0, 1, 400)]
    cause = "rank |d| without zeros, ties sharing their mean rank; correct the variance for ties"
    truth = partial(stats.wilcoxon, method="asymptotic", zero_method="wilcox")
    agrees(student.wilcoxon_test, lambda d: truth(d).pvalue, [d.tolist() for d in cases], cause, rel=1e-6)
    agrees(student.wilcoxon_test, 1.0, [[0.0, 0.0]])


def answer_sign(student: Any) -> None:
    """Both answers follow from the binomial distribution."""
    truth = stats.binomtest(60, 100).pvalue
    same(student.p_of_sixty_in_a_hundred(), truth, "question (a)", "count 60 of 100 in sign_test", rel=0.01)
    same(student.more_than_a_million_times_smaller(), True, "question (b)", "p falls from 0.057 to about 3e-10")


def _welch(a: Any, b: Any) -> Any:
    return stats.ttest_ind(a, b, equal_var=False)


@judges("welch_test")
def welch_is_welch(student: Any) -> None:
    """All three numbers are SciPy's."""
    rng = draw()
    kinds = ((5, 5, 1.0), (3, 40, 5.0), (20, 8, 0.2), (2, 2, 1.0))
    cases = [tuple(_samples(rng, (10, 1, n), (10.5, scale, m))) for n, m, scale in kinds]

    def three(a: list[float], b: list[float]) -> tuple[float, float, float]:
        test = _welch(a, b)
        return test.statistic, test.df, test.pvalue

    agrees(student.welch_test, three, cases, "variances by n, Welch's degrees of freedom, two-sided", rel=1e-7)
    for other, p in ((2.0, 1.0), (3.0, 0.0)):
        three_numbers = items(student.welch_test([2.0, 2.0], [other, other]), "welch_test", 3)
        same(three_numbers[2], p, f"p of two of 2 and two of {other:g}")
    refuses(student.welch_test, ([1.0], [1.0, 2.0]))


def answer_welch(student: Any) -> None:
    """The blog's p value follows from its six numbers."""
    truth = stats.ttest_ind_from_stats(12.5, 1.2, 10, 11.8, 1.5, 10, equal_var=False).pvalue
    same(student.p_of_the_blog(), truth, "question (a)", "t = 0.7 / √(1.2²/10 + 1.5²/10), Welch's df", rel=0.03)
    same(student.blog_is_significant(), False, "question (b)", "0.26 is far above 0.05")


@judges("welch_intervals")
def welch_intervals_agree(student: Any) -> None:
    """Both intervals are SciPy's, of the values and of their logarithms, and the ratio has none below 0."""
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
    """Near SciPy's exact p values, seeded, never zero."""
    rng, test = draw(), partial(student.permutation_test, resamples=8000, seed=3)
    a, b = rng.normal(0.9, 1, 7), rng.normal(0, 1, 6)

    def size(x: Any, y: Any, axis: int) -> Any:
        return np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    # SciPy's own two-sided p doubles the smaller tail, which is another number where a and b differ in length
    truth = stats.permutation_test((a, b), size, alternative="greater", n_resamples=np.inf, vectorized=True).pvalue
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


@judges("cohens_d", "cohens_d_paired", "vargha_delaney_a12")
def effects_are_standard(student: Any) -> None:
    """Cohen's formulas, and A12 by counting pairs."""
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
        agrees(function, 0.0, [([1.0, 1.0], [1.0, 1.0])])
        agrees(function, -INF, [([1.0, 1.0], [2.0, 2.0])], "a difference without scatter")


def _a12(a: Sequence[float], b: Sequence[float]) -> float:
    return float(np.mean([(u > v) + 0.5 * (u == v) for u in a for v in b]))


@judges("friedman")
def friedman_ranks_within_rounds(student: Any) -> None:
    """Statistic and p are SciPy's, with and without ties, whatever drifts; two models and equal ones work, too."""
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
    table = student.friedman([_latency([1.0, 2.0, 3.0, 5.0]), _latency([2.0, 3.0, 4.0, 4.0])])
    holds(table, {"chi2": 1.0, "df": 1}, "friedman of two models, 3 of 4 rounds one way")  # (3 − 1)² / 4
    equal = student.friedman([_latency([2.0] * 7)] * 3)
    holds(equal, {"chi2": 0.0, "p_value": 1.0}, "friedman of equal times", "then no rank differs, and p is 1")


@judges("holm")
def holm_steps_down(student: Any) -> None:
    """Adjusted p values by Holm's definition, in the original order."""

    def stepped(p_values: list[float]) -> list[float]:
        m, order = len(p_values), np.argsort(p_values, kind="stable")
        truth = [0.0] * m
        for rank, index in enumerate(order):
            truth[index] = min(1.0, max((m - j) * p_values[order[j]] for j in range(rank + 1)))
        return truth

    cases = [[0.01, 0.04, 0.03, 0.005], [0.6, 0.2, 0.9], [0.02], draw().beta(0.4, 3, 12).tolist(), [0.01] * 3]
    agrees(student.holm, stepped, cases, "m, m − 1, … times sorted values, never falling, at most 1, original order")


@judges("runs_to_decide")
def runs_follow_from_the_distance(student: Any) -> None:
    """The formula, and that many runs do decide with the promised power."""
    rng = draw()
    sizes, rows = rng.integers(6, 300, 8), rng.uniform((0.01, 0.01, 0.8, 0.6), (0.1, 0.1, 0.99, 0.95), (8, 4))
    cases = [(int(n), *np.round(row, 3).tolist()) for n, row in zip(sizes, rows, strict=True)]
    cases += [(100, 0.02, 0.01, 0.95, 0.8), (30, 0.05, 0.04, 0.95, 0.9)]
    cases += [(50, 0.1, 0.02, 0.8, 0.8), (200, 0.01, 0.05, 0.95, 0.8)]
    agrees(student.runs_to_decide, _runs, cases, "n (h/δ)² (1 + z_power/z_confidence)², rounded up, at least 6")
    agrees(student.runs_to_decide, 6, [(4, INF, 0.1)], "there is no interval below 6 rounds")
    agrees(student.runs_to_decide, 10**9, [(50, 0.1, 0.0), (50, 0.1, 1e-12)], "at most 10**9, where nothing decides it")


@judges("decide")
def verdicts_follow_from_the_interval(student: Any) -> None:
    """Each of the four verdicts, at and beside its borders."""
    rng = draw()
    near, far, margin, scale = rng.uniform((0.01, 0.15, 0.02, 1.1), (0.1, 0.4, 0.05, 2)).tolist()
    middle, n = (near + far) / 2, int(rng.integers(10, 200))
    faster = [(-middle, (-far, -near), n, 0.0), (-middle, (-far, -margin / scale), n, margin)]
    agrees(student.decide, "faster", [*faster, (-0.2, (-0.3, -0.1), 20, 0.0), (-0.2, (-0.3, -0.005), 20, 0.02)])
    slower = [(middle, (near, far), n, 0.0), (middle, (margin / scale, far), n, margin)]
    agrees(student.decide, "slower", [*slower, (0.2, (0.1, 0.3), 20, 0.0), (0.2, (0.01, 0.3), 20, 0.02)])
    equal = [(margin / 9, (-margin / scale, margin), n, margin), (-margin / 2, (-margin, -margin / 9), n, margin)]
    equal += [(0.0, (-0.01, 0.015), 20, 0.02), (-0.01, (-0.02, -0.001), 20, 0.02), (0.01, (0.001, 0.02), 20, 0.02)]
    agrees(student.decide, "equivalent", equal)
    unclear = [(0.02, (-0.01, 0.06), 50, 0.0, 0.95), (0.001, (-0.03, 0.03), 80, 0.02, 0.95)]
    unclear += [(0.03, (-0.01, 0.07), 80, 0.04, 0.9)]
    for shift, half, margin, confidence in rng.uniform((-0.8, 0.03, 0, 0.8), (0.8, 0.1, 0.02, 0.99), (6, 4)).tolist():
        change = shift * half  # 0 lies inside the interval, which is wider than the margin
        interval = change - half, change + half
        unclear.append((change, interval, int(rng.integers(10, 99)), margin, round(confidence, 2)))

    def more(change: float, interval: tuple[float, float], n: int, margin: float, confidence: float) -> str:
        half, distance = (interval[1] - interval[0]) / 2, max(abs(change), margin - abs(change))
        rounds = max(1, _runs(n, half, distance, confidence) - n)
        return UNDECIDED.format(f"about {rounds:,}" if rounds <= 10**6 else "over 1,000,000")

    agrees(student.decide, more, unclear)
    cause = "0 without margin never decides"
    agrees(student.decide, UNDECIDED.format("over 1,000,000"), [(0.0, (-0.1, 0.1), 50)], cause)
    agrees(student.decide, UNDECIDED.format("about 2"), [(-0.3, (-1.0, INF), 4)], "an interval takes 6 rounds")


def _drawn_sentences(rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Return sentences, put together of whole numbers, with the fields of their comparisons."""
    a, b = words(rng, 2)
    n, m, family, p, level = rng.integers((10, 10, 2, 11, 80), (99, 99, 20, 99, 99)).tolist()
    k, below, above = rng.integers((20, 3, 3), (60, 9, 9)).tolist()
    # tenths of a percent, in an interval so narrow that they are due
    t, under, over = rng.integers((30, 8, 8), (90, 20, 20)).tolist()
    rounds, change, within = rng.integers((10, 1, 15), (999, 6, 30)).tolist()
    low, middle, high = (f"{tenths / 10:.1f}" for tenths in (t - under, t, t + over))
    needs, ci = UNDECIDED.format(f"about {rounds}"), f"{level} % CI"
    ends, bytes_ = (-k - above, below), {"difference": t * 1e5, "difference_ci": ((t - under) * 1e5, (t + over) * 1e5)}
    told = {
        f"{a} is {k} % faster than {b} ({ci} {k - below}–{k + above} %, p < 0.001, n = {n})": _ratio(
            -k, -k - above, below - k
        ),
        f"{a} is {middle} % slower than {b} ({ci} {low}–{high} %, p = {p / 1000:g}, n = {n} + {m})": _ratio(
            t, t - under, t + over, 1000, verdict="slower", p_value=p / 1000, counts=(n, m), paired=False
        ),
        f"{a} and {b} are equivalent within ± {within} % (change {change} %, {ci} −{below} to {change + above} %, "
        f"p = {p / 100:g}, n = {n}, partly an estimate)": _ratio(
            change, -below, change + above, verdict="equivalent", p_value=p / 100, margin=within / 100, measured=False
        ),
        f"{a} against {b} is {needs} (change −{k} %, {ci} −{k + above} to {below} %, "
        f"p = {p / 100:g} after Holm over {family}, n = {n})": _ratio(
            -k, *ends, verdict=needs, p_value=p / 100, corrected_for=family
        ),
        f"{a} is {middle} MB higher than {b} ({ci} {low}–{high} MB, p < 0.001, n = {n})": (
            {**NO_RATIO, **bytes_, "unit": "B", "verdict": "higher"}
        ),
    }
    common = {"name_a": a, "name_b": b, "counts": (n, n), "confidence": level / 100}
    return {sentence: {**common, **fields} for sentence, fields in told.items()}


def _ratio(middle: float, low: float, high: float, whole: int = 100, **fields: Any) -> dict[str, Any]:
    """Return fields of a comparison whose ratio and interval are so many parts of a whole above 1."""
    return {"ratio": 1 + middle / whole, "ratio_ci": (1 + low / whole, 1 + high / whole), **fields}


@judges("Comparison.__str__")
def sentences_are_exact(student: Any) -> None:
    """The sentence of every verdict."""
    facts: dict[str, Any] = {"name_a": "int8", "name_b": "fp32", "counts": (30, 30), "paired": True, "method": "m"}
    facts |= {"difference": -1.0, "difference_ci": (-2.0, -0.5), "p_value": 1e-9, "effect_size": -1.0, "unit": "s"}
    facts |= _ratio(-41, -44, -38, verdict="faster")
    more, fewer = UNDECIDED.format("about 80"), UNDECIDED.format("about 3")
    megabytes = {"difference": -2e6, "difference_ci": (-2.5e6, -1.9e6), "unit": "B", "verdict": "lower"}
    sentences: dict[str, dict[str, Any]] = {
        "int8 is 41 % faster than fp32 (95 % CI 38–44 %, p < 0.001, n = 30)": {},
        "int8 is 41 % faster than fp32 (95 % CI 38–44 %, p < 0.001, n = 30, partly an estimate)": {"measured": False},
        "int8 is 2.3 % slower than fp32 (90 % CI 1.1–3.2 %, p = 0.012, n = 8 + 12)": _ratio(
            2.3, 1.1, 3.2, verdict="slower", p_value=0.0123, counts=(8, 12), paired=False, confidence=0.9
        ),
        "int8 and fp32 are equivalent within ± 2 % (change 0.3 %, 95 % CI −0.5 to 1.1 %, p = 0.4, n = 30)": _ratio(
            0.3, -0.5, 1.1, verdict="equivalent", p_value=0.4, margin=0.02
        ),
        "int8 against fp32 is undecided: needs about 80 more rounds "
        "(change −3 %, 95 % CI −10 to 5 %, p = 0.3 after Holm over 3, n = 30)": _ratio(
            -3, -10, 5, verdict=more, p_value=0.3, corrected_for=3
        ),
        "int8 against fp32 is undecided: needs about 3 more rounds "
        "(change −50 %, no finite interval, p = 0.25, n = 3)": _ratio(
            -50, -100, INF, verdict=fewer, p_value=0.25, counts=(3, 3)
        ),
        "int8 is 2.0 MB lower than fp32 (95 % CI 1.9–2.5 MB, p < 0.001, n = 30)": {**NO_RATIO, **megabytes},
    }
    for sentence, fields in {**sentences, **_drawn_sentences(draw())}.items():
        same(str(student.Comparison(**{**facts, **fields})), sentence, "str(comparison)")


@judges("compare")
def compare_pairs(student: Any) -> None:
    """Every number of a paired comparison, and when results pair by themselves."""
    rng = draw()
    y = 1e-3 * (1 + np.abs(np.cumsum(rng.normal(0, 0.3, 60))))
    x = y * 0.9 * np.exp(shuffled(rng.normal(0, 0.02, 60)))
    together = {"pairing": "one", "order": "shuffled rounds"}
    a, b = _latency(x, model="A", **together), _latency(y, model="B", **together)
    found = student.compare(a, b, confidence=0.9, margin=0.01)
    holds(found, {"paired": True}, "comparison", "two results with the same pairing mark pair by themselves")
    x, y = map(np.array, independent_values(x.tolist(), y.tolist(), True)[:2])
    ratios, differences, lower = np.sort(x / y), np.sort(x - y), _lower_rank(len(x), 0.9)
    middle, spread = float(np.median(differences)), float(differences.mean() / differences.std(ddof=1))
    truth: dict[str, Any] = {"ratio": math.exp(np.median(np.log(ratios))), "difference": middle}
    truth |= {"ratio_ci": [ratios[lower - 1], ratios[-lower]], "effect_size": spread}
    truth |= {"difference_ci": [differences[lower - 1], differences[-lower]]}
    holds(found, truth, "comparison of pairs", "medians of ratios and of a − b, cohens_d_paired; pass confidence on")
    p = stats.binomtest(int(np.sum(differences > 0)), len(x)).pvalue
    same(found.p_value, p, "the p value of pairs", "sign_test", rel=1e-6)
    wilcoxon = stats.wilcoxon(np.log(x) - np.log(y), method="asymptotic").pvalue
    holds(found.checks, {"wilcoxon_p": wilcoxon}, "checks", "wilcoxon_test of the log-ratios", rel=1e-6)
    holds(found, {"name_a": "A", "name_b": "B", "verdict": "faster"}, "comparison")
    same(student.compare(b, a).ratio, 1 / found.ratio, "the ratio of b against a")
    holds(student.compare(a, b, margin=0.5), {"verdict": "equivalent"}, "comparison at 50 %", "pass the margin on")
    same(student.compare(a, _latency(y, pairing="two")).paired, False, "paired for results of different sessions")
    lower, few = (student.compare(x[:n].tolist(), y[:n].tolist(), paired=True).verdict for n in (20, 4))
    same(lower, "lower", "the verdict on less of an unknown metric")
    same(few, UNDECIDED.format("about 2"), "the verdict after 4 rounds")


@judges("compare")
def compare_independent(student: Any) -> None:
    """Every number of an independent comparison."""
    rng = draw()
    x, y = (1.0 + _balanced(rng, 0.1, 14)) * 1e-3, rng.normal(1.4, 0.15, 9) * 1e-3
    found = student.compare(_latency(x), _latency(y), confidence=0.9)
    x, y = map(np.array, independent_values(x.tolist(), y.tolist(), False)[:2])
    test, middle = _welch(np.log(x), np.log(y)), float(np.exp(np.log(x).mean() - np.log(y).mean()))
    squares, n, m = x.var(ddof=1) * (len(x) - 1) + y.var(ddof=1) * (len(y) - 1), len(x), len(y)
    truth: dict[str, Any] = {"paired": False, "verdict": "faster", "counts": (14, 9), "ratio": middle}
    truth |= {"effect_size": (x.mean() - y.mean()) / math.sqrt(squares / (n + m - 2))}
    holds(found, truth, "comparison of independent samples", "the ratio of geometric means, cohens_d")
    logs, cause = test.confidence_interval(0.9), "Welch of the logarithms; pass the confidence on"
    truth = {"p_value": test.pvalue, "ratio_ci": [math.exp(logs.low), math.exp(logs.high)]}
    holds(found, truth, "comparison of independent samples", cause, rel=1e-6)
    truth = {"difference": math.exp(np.log(x).mean()) - math.exp(np.log(y).mean())}
    holds(
        found, truth, "comparison of independent samples", "difference_within gives difference and interval", rel=1e-6
    )
    difference_ci = numbers(found.difference_ci, "difference_ci", 2)
    expect(difference_ci[1] < 0, f"difference_ci should lie below 0, as the ratio's below 1: {difference_ci}")
    checks = entries(found.checks, "checks")
    p = number(checks.get("permutation_p"), "checks['permutation_p']")
    expect(0 < p < 0.02, f"checks['permutation_p'] should be small here, it is {p}")
    holds(checks, {"a12": _a12(x.tolist(), y.tolist())}, "checks")
    raw, other = _samples(rng, (0, 1, 20), (0.4, 1, 12))  # without logarithms
    signed, test = student.compare(raw, other, paired=False), _welch(*independent_values(raw, other, False)[:2])
    truth = {"p_value": test.pvalue, "difference_ci": list(test.confidence_interval(0.95))}
    holds(signed, truth, "comparison of values below 0", "Welch of the values as they are", rel=1e-6)
    few = student.compare((1.0 + _balanced(rng, 0.1, 14)).tolist(), (1.02 + _balanced(rng, 0.1, 8)).tolist())
    low, high = numbers(few.ratio_ci, "ratio_ci", 2)
    needed = _runs(8, (high - low) / 2, abs(number(few.ratio, "ratio", finite=True) - 1)) - 8
    cause = "decide takes ratio − 1 and its interval, n rounds"
    if needed <= 10**5:  # more are said in other words, by given code
        same(few.verdict, UNDECIDED.format(f"about {needed:,}"), "the verdict on 14 and 8 values", cause)


@judges("compare")
def compare_without_a_ratio(student: Any) -> None:
    """Values at or below zero have no ratio; the difference decides."""
    rng = draw()
    for paired in (True, False):
        x, y = _samples(rng, (0, 1, 30), (5, 1, 30))
        found = student.compare(_latency(x, "growth", "B"), _latency(y, "growth", "B"), paired=paired)
        holds(found, {"ratio": NAN, "verdict": "lower"}, "comparison of values below 0", "the difference decides")
        equal = student.compare(x, np.add(x, _balanced(rng, 0.5, 30)).tolist(), paired=paired)
        verdict = text(equal.verdict, "the verdict")
        expect(verdict.startswith("undecided"), f"nothing differs here, and the verdict is {verdict!r}")
    refuses(partial(student.compare, [0.0, 1.0], [1.0, 1.0]), {"margin": 0.1}, cause="there is no ratio")


@judges("compare_all")
def all_pairs_are_corrected(student: Any) -> None:
    """All pairs in order, p values by Holm, verdicts that respect them."""
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


@judges("regression_gate")
def gate_knows_three_answers(student: Any) -> None:
    """Passes, fails and cannot tell, on both sides, also where more is better; slowdown and interval are compare's."""
    rng = draw()
    base = _latency(np.exp(_balanced(rng, 0.01, 60)))

    def gated(before: BenchmarkResult, after: BenchmarkResult, limit: float) -> tuple[Any, Any]:
        """Return the gate, checked as far as the comparison of two results goes, and this comparison."""
        gate = student.regression_gate(before, after, limit)
        truth = compare(after, before) if before.unit == "s" else compare(before, after)  # more is slower, or faster
        compared = {"slowdown": truth.ratio - 1, "interval": [end - 1 for end in truth.ratio_ci]}
        holds(gate, compared, "gate", "the ratio of compare, and its interval, less 1", abs=1e-9)
        return gate, truth

    cases = {"passes": [(0.0, 0.05), (-0.3, 0.05), (0.03, 0.05)], "fails": [(0.10, 0.05), (0.03, 0.0)]}
    for verdict, change, limit in ((verdict, *case) for verdict, pairs in cases.items() for case in pairs):
        gate, _ = gated(base, _latency((1 + change) * np.exp(_balanced(rng, 0.01, 60))), limit)
        holds(gate, {"verdict": verdict, "needs": None}, f"gate on {change:+.0%} with a limit of {limit:.0%}")
    gate, truth = gated(base, _latency(1.048 * np.exp(_balanced(rng, 0.01, 60))), 0.049)
    half, distance = (truth.ratio_ci[1] - truth.ratio_ci[0]) / 2, abs(truth.ratio - 1 - 0.049)
    needed, cause = max(61, min(10**9, _runs(60, half, distance))), "runs_to_decide from the distance to the limit"
    needs = number(gate.needs, "the runs the gate needs", finite=True)
    same(needs, needed, "the runs the gate needs", cause, rel=1e-6)
    same(gate.verdict, f"cannot tell: needs {needs:.0f} runs", "the verdict of the gate")
    rates = 100, 100 / rng.uniform(1.5, 2.5)
    more, less = (_latency(rate * np.exp(rng.normal(0, 0.01, 60)), "throughput", "Hz") for rate in rates)
    for before, after, verdict in ((more, less, "fails"), (less, more, "passes")):
        gate, _ = gated(before, after, 0.05)
        same(gate.verdict, verdict, "the gate on throughput", "more is better")


def _fortune(more: int, n: int) -> float:
    """Return the e value of so many wins in n rounds."""
    return math.exp(n * math.log(2) + math.lgamma(more + 1) + math.lgamma(n - more + 1) - math.lgamma(n + 2))


@judges("sign_e_value")
def evidence_is_a_fair_bet(student: Any) -> None:
    """The integral, its mean of 1 under no difference, and large counts."""
    rng, bet, cause = draw(), student.sign_e_value, "2ⁿ · B(k + 1, n − k + 1)"

    def integral(more: int, n: int) -> float:
        return float(2.0**n * integrate.quad(lambda t: t**more * (1 - t) ** (n - more), 0, 1)[0])

    agrees(bet, integral, [(0, 0), (1, 1), (3, 10), (10, 10), (30, 40), (55, 100)], cause, rel=1e-5)
    cases = [(int(rng.integers(n + 1)), n) for n in rng.integers(2, 120, 12).tolist()]
    agrees(bet, lambda more, n: 2**n / ((n + 1) * math.comb(n, more)), cases, cause)
    for n in (5, 20):
        mean = sum(stats.binom.pmf(k, n, 0.5) * number(bet(k, n), f"sign_e_value({k}, {n})") for k in range(n + 1))
        same(mean, 1.0, f"the mean fortune after {n} fair rounds", "a fair bet keeps its mean", rel=1e-6)
    big = number(bet(9000, 10_000), "sign_e_value(9000, 10000)")
    expect(math.isfinite(big) and big > 1e300, f"sign_e_value(9000, 10000) should be huge and finite, it is {big}")
    even = number(bet(500, 1000), "sign_e_value(500, 1000)")
    expect(0 <= even < 1, "an even count of 1000 rounds is evidence for nothing: e < 1")


@judges("anytime_interval")
def anytime_interval_inverts_the_bet(student: Any) -> None:
    """The ends are those order statistics between which no median is refused."""
    rng = draw()

    def between(values: list[float], stop_at: float) -> list[float]:
        n, ordered = len(values), sorted(values)
        rank = sum(_fortune(k, n) >= stop_at for k in range(n // 2))
        return [ordered[rank - 1], ordered[n - rank]] if rank else [-INF, INF]

    kinds = ((8, 20.0), (30, 20.0), (200, 20.0), (75, 100.0), (7, 5.0))
    cases = [(rng.normal(0, 1, n).tolist(), stop_at) for n, stop_at in kinds]
    agrees(student.anytime_interval, between, cases, "the last values from either side that the bet refuses", rel=0)
    agrees(student.anytime_interval, [-INF, INF], [[1.0] * 7], "of 7 values e = 2⁷/8 = 16 < 20 refuses nothing")


def _rounds_to(evidence: float) -> int:
    """Return how many rounds, all one way, are this much evidence."""
    return next(n for n in range(1, 99) if 2**n / (n + 1) >= evidence)


def answer_live(student: Any) -> None:
    """Both counts follow from powers of two."""
    same(student.rounds_to_twenty(), _rounds_to(20), "question (a)", "2ⁿ / (n + 1) ≥ 20")
    one_look = next(n for n in range(1, 99) if 2 / 2**n <= 0.05)
    same(student.rounds_for_one_look(), one_look, "question (b)", "2 / 2ⁿ ≤ 0.05")


def _race(student: Any, seconds: Mapping[str, Sequence[float]], **settings: Any) -> tuple[Any, float, list[str]]:
    """Return the comparison of models that take these seconds, how long it took, and who was called when."""
    clock = Clock()
    models, log = named(seconds, clock)
    found = student.compare_live(models, np.zeros((1, 2)), warmup_runs=0, clock=clock, **settings)
    return found, clock.now, log


@judges("compare_live")
def live_stops_in_time(student: Any) -> None:
    """Stops at the first round with enough evidence, at the time limit, and flips its coin."""
    rng = draw()
    for threshold in (20.0, 100.0, *rng.uniform(5, 900, 2).tolist()):
        rounds, took, seed = _rounds_to(threshold), float(rng.uniform(0.001, 0.003)), int(rng.integers(1000))
        ratio = float(rng.uniform(1.5, 4) ** rng.choice([-1, 1]))
        found, _, _ = _race(student, {"one": [ratio * took], "other": [took]}, stop_at=threshold, seed=seed)
        what, cause = f"rounds to e ≥ {threshold:g}, all one way", "look after every round, stop at e ≥ stop_at"
        same(found.counts, [rounds, rounds], what, cause)
        holds(found, {"verdict": "slower" if ratio > 1 else "faster", "ratio": ratio}, "comparison", rel=1e-6)
        holds(found.checks, {"e_value": 2.0**rounds / (rounds + 1)}, "checks", rel=1e-6)
    longest, (a, b) = float(rng.uniform(2, 2.5)), rng.uniform(0.01, 0.0125, (2, 300)).tolist()
    found, ran, log = _race(student, {"a": a, "b": b}, stop_at=1e12, max_seconds=longest, seed=int(rng.integers(1000)))
    one, other = numbers(found.counts, "the timed calls of both models", 2)
    same(one, other, "the timed calls of both models")
    in_time = 0.95 * longest <= ran < longest + 0.03  # the results take some time, too
    expect(in_time, f"it should stop after the round that reaches {longest:.3f} s, it ran {ran:.3f} s")
    firsts, rounds = log[::2].count("a"), len(log[::2])
    # by a fair coin so far off in less than one of 10^10 sessions of some 90 rounds
    expect(0.15 < firsts / rounds < 0.85, f"a went first in {firsts} of {rounds} rounds: toss a coin for each round")
    expect(all(set(log[i : i + 2]) == {"a", "b"} for i in range(0, len(log), 2)), "each round times each model once")
    took = int(rng.integers(8, 16)) / 1024  # sums of which are exact
    found, _, _ = _race(student, {"a": [took], "b": [took]}, max_seconds=1.0, seed=int(rng.integers(1000)))
    verdict = text(found.verdict, "the verdict")
    expect(verdict.startswith("undecided"), f"rounds that tie are no evidence, and the verdict is {verdict!r}")
    holds(found.checks, {"e_value": 1.0}, "checks", "rounds that tie are no evidence")
    same(found.p_value, 1.0, "the p value of ties only")


@judges("compare_live")
def live_keeps_its_promise(student: Any) -> None:
    """Few false verdicts between equals, equivalence within a margin, and real differences found."""
    rng, false = draw(), 0

    def noisy(first: float, second: float, scatter: float, size: int) -> dict[str, list[float]]:
        noise = np.exp(rng.normal(0, scatter, (2, size)))
        return {"a": (first * noise[0]).tolist(), "b": (second * noise[1]).tolist()}

    for seed in range(60):
        found, _, _ = _race(student, noisy(0.001, 0.001, 0.1, 1000), max_seconds=0.08, seed=seed)
        false += not text(found.verdict, "the verdict").startswith("undecided")
    # right answers have more than 12 once in two thousand million gradings
    expect(false <= 12, f"{false} of 60 races between equals had a winner; at e ≥ 20 about 3 are expected at most")
    equal, apart = noisy(0.001, 0.001, 0.02, 20_000), noisy(0.001, 0.0011, 0.02, 20_000)
    found, _, _ = _race(student, equal, stop_at=200.0, max_seconds=20.0, margin=0.03, seed=1)
    same(found.verdict, "equivalent", "the verdict on equal models with a margin of 3 %")
    rounds = max(numbers(found.counts, "the timed calls of both models", 2))
    looked = f"with 2 % scatter a margin of 3 % takes a few dozen rounds, not {rounds:.0f}: look at it in each"
    expect(rounds < 100, looked)
    found, _, _ = _race(student, apart, max_seconds=5.0, margin=0.02, seed=1)
    same(found.verdict, "faster", "the verdict on 10 % with a margin of 2 %")


def answer_understanding(student: Any) -> None:
    """The four answers follow from the definitions."""
    same(student.percent_of_at_least_one(), 100 * (1 - 0.95**20), "question 1", "1 − 0.95²⁰", rel=0.02)
    same(student.percent_faster(), 75, "question 2", "faster means less time: 1 − 1/4")
    same(student.significant_after(), [3, 1], "question 3", "Holm gives 0.03, 0.04, 0.04; Bonferroni 0.03, 0.06, 0.09")
    same(student.verdict_inside_the_margin(), "equivalent", "question 4", "it lies inside ± 1 %, which comes first")
