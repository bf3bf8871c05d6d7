"""Hidden checks of module 07: against SciPy, statsmodels' formulas, closed forms, simulations and a fake clock."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy import integrate, stats

from autograder.checks import FakeClock, all_close, close, draw, expect, judges, raises, words
from tinybench.comparison import compare
from tinybench.result import BenchmarkResult

INF = math.inf


def _list(values: Any) -> list[float]:
    return [float(value) for value in values]


def _latency(values: Any, metric: str = "latency", **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult(metric, _list(values), unit="s", metadata=metadata)


def _balanced(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    """Return noise in pairs of opposite sign: a verdict must not hang on how the draw came out."""
    signs = np.resize([1.0, -1.0], size)
    return signs * scale * np.repeat(rng.standard_normal(size // 2), 2)


@judges("check_comparable")
def unlike_results_are_refused(student: Any) -> None:
    """Each condition alone refuses, alone is allowed, and silence refuses nothing."""
    rng = draw()
    rows, columns, cores = (int(number) for number in rng.integers(1, 64, 3))
    metric, processor, another, typo = words(rng, 4)
    base: dict[str, Any] = {
        "input_shape": [rows, columns],
        "system": {"cpu_model": processor, "cores": cores, "time": "noon"},
    }
    one = _latency([1.0], **base)
    hardware = ({"cpu_model": another, "cores": cores}, {"cpu_model": processor, "cores": cores + 1})[rng.integers(2)]
    others = {
        "metric": _latency([1.0], metric=metric, **base),
        "unit": BenchmarkResult("latency", [1.0], unit="J", metadata=base),
        "shape": _latency([1.0], **{**base, "input_shape": [rows + 1, columns]}),
        "machine": _latency([1.0], **{**base, "system": hardware}),
        "measured": _latency([1.0], **base, measured=False),
    }
    for name, other in others.items():
        for x, y in ((one, other), (other, one)):
            raises(
                ValueError,
                lambda x=x, y=y: student.check_comparable(x, y),
                f"results that differ in {name}",
                mentions=[name],
            )
        student.check_comparable(one, other, allow=[name])
        wrong = str(rng.choice([n for n in others if n != name]))
        raises(
            ValueError,
            lambda other=other, wrong=wrong: student.check_comparable(one, other, allow=[wrong]),
            f"results that differ in {name} where only {wrong} may",
            cause="skip only the conditions that allow names",
        )
    student.check_comparable(
        one, _latency([2.0, 3.0], **{**base, "system": {"cpu_model": processor, "cores": cores, "time": "one"}})
    )
    student.check_comparable(one, _latency([2.0]))
    student.check_comparable(_latency([2.0]), one)
    for unknown in ("shap", typo):
        raises(
            ValueError,
            lambda u=unknown: student.check_comparable(one, one, allow=[u]),
            f"allow=[{unknown!r}]",
            mentions=[unknown],
        )


@judges("median_ratio")
def ratio_is_the_median_of_pairs(student: Any) -> None:
    """Ratio and ends are order statistics of the paired ratios."""
    rng = draw()
    for n, confidence in ((6, 0.95), (25, 0.95), (40, 0.8), (101, 0.99)):
        b = rng.lognormal(0, 1, n)
        a = b * rng.lognormal(0.1, 0.2, n)
        ratios, tail = np.sort(a / b), (1 - confidence) / 2
        lower = max(rank for rank in range(1, n + 1) if stats.binom.cdf(rank - 1, n, 0.5) <= tail)
        got = student.median_ratio(_list(a), _list(b), confidence)
        truth = [math.exp(np.median(np.log(ratios))), ratios[lower - 1], ratios[n - lower]]
        cause = "median and order statistics of log(a/b), round by round, and exp of all three"
        all_close(got, truth, f"median_ratio of {n} rounds at {confidence}", cause=cause)
    low, high = student.median_ratio([1.0] * 5, [2.0] * 5)[1:]
    expect(low == 0 and high == INF, f"5 rounds have no 95 % interval: 0 to inf expected, got {low} to {high}")
    raises(ValueError, lambda: student.median_ratio([1.0] * 7, [1.0] * 8), "7 against 8 values", mentions=["7", "8"])
    for bad in (0.0, -1.0):
        values = [1.0] * 8
        values[3] = bad
        raises(ValueError, lambda v=values: student.median_ratio(v, [1.0] * 8), f"{bad} among the values of a")
        raises(ValueError, lambda v=values: student.median_ratio([1.0] * 8, v), f"{bad} among the values of b")


@judges("sign_test")
def sign_test_counts(student: Any) -> None:
    """The p value is the exact binomial one, and ties count for neither side."""
    rng = draw()
    for n in (1, 5, 12, 60, 301):
        a, b = rng.normal(0.3, 1, n), rng.normal(0, 1, n)
        for x, y in ((a, b), (b, a)):
            truth = stats.binomtest(int(np.sum(x > y)), n).pvalue
            close(
                student.sign_test(_list(x), _list(y)),
                truth,
                f"sign_test of {n} rounds",
                cause="twice the upper tail, at most 1",
                rel=1e-7,
            )
    tied = student.sign_test([2.0] * 9 + [1.0] * 3, [1.0] * 12)
    close(
        tied,
        min(1.0, 2 * float(stats.binom.sf(8, 12, 0.5))),
        "9 wins and 3 ties of 12",
        cause="ties stay in n, and count for neither side",
    )
    close(student.sign_test([1.0] * 4, [1.0] * 4), 1.0, "four ties")


@judges("wilcoxon_test")
def wilcoxon_ranks(student: Any) -> None:
    """The p value is SciPy's asymptotic one, with ties and zeros."""
    rng = draw()
    for differences in (
        rng.normal(0.4, 1, 30),
        rng.integers(-3, 5, 50).astype(float),
        -rng.exponential(1, 15),
        rng.normal(0, 1, 400),
    ):
        truth = stats.wilcoxon(differences, method="asymptotic", zero_method="wilcox").pvalue
        cause = "rank |d| without zeros, ties sharing their mean rank; correct the variance for ties"
        close(
            student.wilcoxon_test(_list(differences)),
            float(truth),
            f"wilcoxon_test of {len(differences)}",
            cause=cause,
            rel=1e-6,
        )
    close(student.wilcoxon_test([0.0, 0.0]), 1.0, "wilcoxon_test of zeros only")


def answer_sign(student: Any) -> None:
    """Both answers follow from the binomial distribution."""
    truth = stats.binomtest(60, 100).pvalue
    close(student.p_of_sixty_in_a_hundred(), truth, "question (a)", cause="count 60 of 100 in sign_test", rel=0.01)
    expect(student.more_than_a_million_times_smaller() is True, "question (b): p falls from 0.057 to about 3e-10")


@judges("welch_test")
def welch_is_welch(student: Any) -> None:
    """All three numbers are SciPy's."""
    rng = draw()
    for n, m, scale in ((5, 5, 1.0), (3, 40, 5.0), (20, 8, 0.2), (2, 2, 1.0)):
        a, b = rng.normal(10, 1, n), rng.normal(10.5, scale, m)
        truth = stats.ttest_ind(a, b, equal_var=False)
        got = student.welch_test(_list(a), _list(b))
        for mine, value, what in zip(got, (truth.statistic, truth.df, truth.pvalue), ("t", "df", "p"), strict=True):
            close(
                mine,
                float(value),
                f"welch_test's {what} for {n} and {m} values",
                cause="variances by n, Welch's degrees of freedom, two-sided",
                rel=1e-7,
            )
    close(student.welch_test([2.0, 2.0], [2.0, 2.0])[2], 1.0, "p of equal values without scatter")
    close(student.welch_test([2.0, 2.0], [3.0, 3.0])[2], 0.0, "p of different values without scatter")
    raises(ValueError, lambda: student.welch_test([1.0], [1.0, 2.0]), "a sample of one value")


def answer_welch(student: Any) -> None:
    """The blog's p value follows from its six numbers."""
    truth = stats.ttest_ind_from_stats(12.5, 1.2, 10, 11.8, 1.5, 10, equal_var=False).pvalue
    close(
        student.p_of_the_blog(),
        truth,
        "question (a)",
        cause="t = 0.7 / √(1.2²/10 + 1.5²/10), then Welch's degrees of freedom",
        rel=0.03,
    )
    expect(student.blog_is_significant() is False, "question (b): 0.26 is far above 0.05")


@judges("welch_intervals")
def welch_intervals_agree(student: Any) -> None:
    """The difference is SciPy's, the ratio's ends are where the contradiction begins, and the coverage holds."""
    rng = draw()
    for n, m, confidence in ((8, 8, 0.95), (5, 30, 0.9), (40, 12, 0.99)):
        a, b = rng.normal(10, 1, n), rng.normal(9, 2, m)
        test = stats.ttest_ind(a, b, equal_var=False)
        difference, ratio = student.welch_intervals(_list(a), _list(b), confidence)
        truth = test.confidence_interval(confidence)
        all_close(
            difference, [truth.low, truth.high], "the difference's interval", cause="± t(df) · √(v_a + v_b)", rel=1e-7
        )
        t = stats.t.ppf(0.5 + confidence / 2, test.df)
        expect(
            ratio[0] < a.mean() / b.mean() < ratio[1], f"the ratio's interval {ratio} should hold the ratio of means"
        )
        for end in ratio:
            contradiction = abs(a.mean() - end * b.mean()) / math.sqrt(a.var(ddof=1) / n + end**2 * b.var(ddof=1) / m)
            close(
                contradiction,
                float(t),
                f"at the end {end:.4g} of the ratio's interval, standard errors off",
                cause="solve the quadratic",
                rel=1e-6,
            )
    unclear = student.welch_intervals([1.0, 2.0, 3.0], [-1.0, 1.0, 0.5])[1]
    expect(
        list(unclear) == [0.0, INF], f"where b's mean may be 0 any ratio is possible: (0, inf) expected, got {unclear}"
    )


@judges("permutation_test")
def permutation_shuffles(student: Any) -> None:
    """Near SciPy's exact p values, seeded, never zero."""
    rng = draw()
    a, b = rng.normal(0.9, 1, 7), rng.normal(0, 1, 6)

    def size(x: Any, y: Any, axis: int) -> Any:
        return np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    # SciPy's own two-sided p doubles the smaller tail, which is another number where a and b differ in length
    truth = stats.permutation_test((a, b), size, alternative="greater", n_resamples=np.inf, vectorized=True).pvalue
    got = student.permutation_test(_list(a), _list(b), resamples=8000, seed=3)
    cause = "shuffle all values, compare |differences| with ≥"
    close(got, float(truth), "permutation_test", cause=cause, rel=0, abs=0.03)  # more than five standard errors
    four = student.permutation_test([3.0, 4.0], [1.0, 2.0], resamples=2000, seed=3)
    close(
        four, 1 / 3, "p of (3, 4) against (1, 2): 2 of 6 splits", cause="shuffle without replacement", rel=0, abs=0.06
    )
    x, y = rng.normal(0.7, 1, 8), rng.normal(0, 1, 8)
    d = x - y
    signs = np.array(list(product([-1, 1], repeat=8)))
    exact = float(np.mean(np.abs((signs * d).mean(axis=1)) >= abs(d.mean()) * (1 - 1e-12)))
    got = student.permutation_test(_list(x), _list(y), paired=True, resamples=8000, seed=3)
    close(got, exact, "permutation_test of pairs", cause="flip the sign of each round's difference", rel=0, abs=0.03)
    for paired in (False, True):
        far = student.permutation_test(
            [9.0 + i for i in range(20)], [1.0 + i / 9 for i in range(20)], paired=paired, resamples=199
        )
        close(far, 1 / 200, f"p of a huge difference in 199 shuffles, paired={paired}", cause="add 1 to both counts")
        same = student.permutation_test([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], paired=paired, resamples=50)
        close(
            same,
            1.0,
            f"p without any difference, paired={paired}",
            cause="count shuffles that are at least as large: ≥",
        )
    by_seed = [
        [float(student.permutation_test(_list(a), _list(b), resamples=200, seed=s)) for s in range(6)] for _ in "12"
    ]
    all_close(by_seed[1], by_seed[0], "permutation_test with the same seeds", cause="default_rng(seed)")
    several = set(by_seed[0])
    expect(len(several) > 1, "another seed should shuffle differently: pass it to default_rng")


@judges("cohens_d", "cohens_d_paired", "vargha_delaney_a12")
def effects_are_standard(student: Any) -> None:
    """Cohen's formulas, and A12 by counting pairs."""
    rng = draw()
    for n, m in ((6, 9), (30, 4)):
        a, b = rng.normal(5, 3, n), rng.normal(4, 1, m)
        pooled = math.sqrt(((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1)) / (n + m - 2))
        close(
            student.cohens_d(_list(a), _list(b)),
            (a.mean() - b.mean()) / pooled,
            "cohens_d",
            cause="weight the variances by n − 1",
        )
        x, y = rng.integers(0, 6, n).astype(float), rng.integers(1, 7, m).astype(float)
        pairs = [(u > v) + 0.5 * (u == v) for u in x for v in y]
        close(
            student.vargha_delaney_a12(_list(x), _list(y)),
            float(np.mean(pairs)),
            "vargha_delaney_a12",
            cause="P(a > b) plus half of the ties",
        )
    a, b = rng.normal(5, 1, 12), rng.normal(4, 1, 12)
    truth = float((a - b).mean() / (a - b).std(ddof=1))
    close(
        student.cohens_d_paired(_list(a), _list(b)),
        truth,
        "cohens_d_paired",
        cause="mean and deviation of the differences",
    )
    for name in ("cohens_d", "cohens_d_paired"):
        close(getattr(student, name)([1.0, 1.0], [1.0, 1.0]), 0.0, f"{name} of equal values")
        expect(
            getattr(student, name)([1.0, 1.0], [2.0, 2.0]) == -INF,
            f"{name} of a difference without scatter should be −inf",
        )


@judges("anova")
def anova_is_one_way(student: Any) -> None:
    """F and p are SciPy's, for groups of different sizes; eta squared is the explained share."""
    rng = draw()
    for sizes in ((5, 5), (4, 9, 6), (12, 3, 7, 20)):
        groups = [rng.normal(10 + 0.4 * i, 1, n) for i, n in enumerate(sizes)]
        truth = stats.f_oneway(*groups)
        pool = np.concatenate(groups)
        within = sum(((g - g.mean()) ** 2).sum() for g in groups)
        table = student.anova({f"m{i}": _latency(g) for i, g in enumerate(groups)})
        cause = "sums of squares over k − 1 and N − k, the grand mean over all values"
        for key, value in {
            "f": truth.statistic,
            "p_value": truth.pvalue,
            "df_between": len(sizes) - 1,
            "df_within": sum(sizes) - len(sizes),
            "eta_squared": 1 - within / ((pool - pool.mean()) ** 2).sum(),
        }.items():
            close(table[key], float(value), f"anova's {key} for groups of {sizes}", cause=cause, rel=1e-6)


@judges("holm")
def holm_steps_down(student: Any) -> None:
    """Adjusted p values by Holm's definition, in the original order."""
    rng = draw()
    for p_values in (
        [0.01, 0.04, 0.03, 0.005],
        [0.6, 0.2, 0.9],
        [0.02],
        _list(rng.beta(0.4, 3, 12)),
        [0.01, 0.01, 0.01],
    ):
        m, order = len(p_values), np.argsort(p_values, kind="stable")
        truth = [0.0] * m
        for rank, index in enumerate(order):
            truth[index] = min(1.0, max((m - j) * p_values[order[j]] for j in range(rank + 1)))
        got = student.holm(p_values)
        all_close(
            got,
            truth,
            f"holm of {m} p values",
            cause="m, m − 1, … times the sorted values, never falling, at most 1, original order",
        )


@judges("runs_to_decide")
def runs_follow_from_the_distance(student: Any) -> None:
    """The formula, and that many runs do decide with the promised power."""
    rng = draw()
    drawn = [
        (
            int(rng.integers(6, 300)),
            *(round(float(x), 3) for x in rng.uniform((0.01, 0.01, 0.8, 0.6), (0.1, 0.1, 0.99, 0.95))),
        )
        for _ in range(8)
    ]
    for n, half, distance, confidence, power in (
        *drawn,
        (100, 0.02, 0.01, 0.95, 0.8),
        (30, 0.05, 0.04, 0.95, 0.9),
        (50, 0.1, 0.02, 0.8, 0.8),
        (200, 0.01, 0.05, 0.95, 0.8),
    ):
        widening = 1 + stats.norm.ppf(power) / stats.norm.ppf(0.5 + confidence / 2)
        truth = max(6, math.ceil(n * (half / distance * widening) ** 2))
        cause = "n (h/δ)² (1 + z_power/z_confidence)², rounded up, at least 6"
        close(
            student.runs_to_decide(n, half, distance, confidence, power),
            truth,
            f"runs_to_decide({n}, {half}, {distance})",
            cause=cause,
        )
    close(student.runs_to_decide(4, INF, 0.1), 6, "an infinite half-width", cause="there is no interval below 6 rounds")
    close(
        student.runs_to_decide(50, 0.1, 0.0),
        10**9,
        "a distance of 0",
        cause="no number of runs decides that; return 10**9",
    )
    close(student.runs_to_decide(50, 0.1, 1e-12), 10**9, "a tiny distance", cause="at most 10**9")


@judges("decide")
def verdicts_follow_from_the_interval(student: Any) -> None:
    """Each of the four verdicts, at and beside its borders."""
    rng = draw()
    near, far, margin, scale = (float(x) for x in rng.uniform((0.01, 0.15, 0.02, 1.1), (0.1, 0.4, 0.05, 2)))
    middle, n = (near + far) / 2, int(rng.integers(10, 200))
    drawn = (
        (-middle, (-far, -near), n, 0.0, "faster"),
        (middle, (near, far), n, 0.0, "slower"),
        (-middle, (-far, -margin / scale), n, margin, "faster"),
        (middle, (margin / scale, far), n, margin, "slower"),
        (margin / 9, (-margin / scale, margin), n, margin, "equivalent"),
        (-margin / 2, (-margin, -margin / 9), n, margin, "equivalent"),
    )
    for change, interval, n, margin, truth in (
        *drawn,
        (-0.2, (-0.3, -0.1), 20, 0.0, "faster"),
        (0.2, (0.1, 0.3), 20, 0.0, "slower"),
        (-0.2, (-0.3, -0.005), 20, 0.02, "faster"),
        (0.2, (0.01, 0.3), 20, 0.02, "slower"),
        (0.0, (-0.01, 0.015), 20, 0.02, "equivalent"),
        (-0.01, (-0.02, -0.001), 20, 0.02, "equivalent"),
        (0.01, (0.001, 0.02), 20, 0.02, "equivalent"),
    ):
        got = student.decide(change, interval, n, margin)
        expect(got == truth, f"decide({change}, {interval}, {n}, margin={margin}): {truth!r} expected, got {got!r}")
    unclear = list[tuple[float, tuple[float, float], int, float, float]]()
    for shift, half, margin, confidence in rng.uniform((-0.8, 0.03, 0, 0.8), (0.8, 0.1, 0.02, 0.99), (6, 4)).tolist():
        change = shift * half  # 0 lies inside the interval, which is wider than the margin
        unclear.append(
            (change, (change - half, change + half), int(rng.integers(10, 99)), margin, round(confidence, 2))
        )
    for change, interval, n, margin, confidence in (
        *unclear,
        (0.02, (-0.01, 0.06), 50, 0.0, 0.95),
        (0.001, (-0.03, 0.03), 80, 0.02, 0.95),
        (0.03, (-0.01, 0.07), 80, 0.04, 0.9),
    ):
        half, distance = (interval[1] - interval[0]) / 2, max(abs(change), margin - abs(change))
        widening = 1 + stats.norm.ppf(0.8) / stats.norm.ppf(0.5 + confidence / 2)
        more = max(1, max(6, math.ceil(n * (half / distance * widening) ** 2)) - n)
        wanted = f"about {more:,}" if more <= 10**6 else "over 1,000,000"
        got = student.decide(change, interval, n, margin, confidence)
        expect(
            got == f"undecided: needs {wanted} more rounds",
            f"{wanted} more rounds expected for ± {half:g} at {change} with margin {margin}, got {got!r}",
        )
    got = student.decide(0.0, (-0.1, 0.1), 50)
    expect(
        got == "undecided: needs over 1,000,000 more rounds", f"a change of 0 without margin never decides: got {got!r}"
    )
    got = student.decide(-0.3, (-1.0, INF), 4)
    expect(got == "undecided: needs about 2 more rounds", f"4 rounds without interval need 2 more, got {got!r}")


def _drawn_sentences(rng: np.random.Generator) -> list[tuple[dict[str, Any], str]]:
    """Return fields of comparisons with their sentences, put together of whole numbers."""
    a, b = words(rng, 2)
    n, m, family = (int(number) for number in rng.integers((10, 10, 2), (99, 99, 20)))
    p, level = int(rng.integers(11, 99)), int(rng.integers(80, 99))
    k, below, above = (int(number) for number in rng.integers((20, 3, 3), (60, 9, 9)))
    # tenths of a percent, in an interval so narrow that they are due
    t, under, over = (int(number) for number in rng.integers((30, 8, 8), (90, 20, 20)))
    rounds, change, within = (int(number) for number in rng.integers((10, 1, 15), (999, 6, 30)))
    common: dict[str, Any] = {"name_a": a, "name_b": b, "counts": (n, n), "confidence": level / 100}
    low, middle, high = (f"{tenths / 10:.1f}" for tenths in (t - under, t, t + over))
    return [
        (
            {**common, "ratio": 1 - k / 100, "ratio_ci": (1 - (k + above) / 100, 1 - (k - below) / 100)},
            f"{a} is {k} % faster than {b} ({level} % CI {k - below}–{k + above} %, p < 0.001, n = {n})",
        ),
        (
            {
                **common,
                "ratio": 1 + t / 1000,
                "ratio_ci": (1 + (t - under) / 1000, 1 + (t + over) / 1000),
                "verdict": "slower",
                "p_value": p / 1000,
                "counts": (n, m),
                "paired": False,
            },
            f"{a} is {middle} % slower than {b} ({level} % CI {low}–{high} %, p = {p / 1000:g}, n = {n} + {m})",
        ),
        (
            {
                **common,
                "ratio": 1 + change / 100,
                "ratio_ci": (1 - below / 100, 1 + (change + above) / 100),
                "verdict": "equivalent",
                "p_value": p / 100,
                "margin": within / 100,
                "measured": False,
            },
            f"{a} and {b} are equivalent within ± {within} % (change {change} %, "
            f"{level} % CI −{below} to {change + above} %, p = {p / 100:g}, n = {n}, partly an estimate)",
        ),
        (
            {
                **common,
                "ratio": 1 - k / 100,
                "ratio_ci": (1 - (k + above) / 100, 1 + below / 100),
                "verdict": f"undecided: needs about {rounds} more rounds",
                "p_value": p / 100,
                "corrected_for": family,
            },
            f"{a} against {b} is undecided: needs about {rounds} more rounds (change −{k} %, "
            f"{level} % CI −{k + above} to {below} %, p = {p / 100:g} after Holm over {family}, n = {n})",
        ),
        (
            {
                **common,
                "ratio": math.nan,
                "ratio_ci": (math.nan, math.nan),
                "difference": t * 1e5,
                "difference_ci": ((t - under) * 1e5, (t + over) * 1e5),
                "unit": "B",
                "verdict": "higher",
            },
            f"{a} is {middle} MB higher than {b} ({level} % CI {low}–{high} MB, p < 0.001, n = {n})",
        ),
    ]


@judges("Comparison.__str__")
def sentences_are_exact(student: Any) -> None:
    """The sentence of every verdict."""
    facts: dict[str, Any] = {
        "name_a": "int8",
        "name_b": "fp32",
        "counts": (30, 30),
        "paired": True,
        "method": "m",
        "ratio": 0.59,
        "ratio_ci": (0.56, 0.62),
        "difference": -1.0,
        "difference_ci": (-2.0, -0.5),
        "p_value": 1e-9,
        "effect_size": -1.0,
        "verdict": "faster",
        "unit": "s",
    }
    for changes, truth in (
        *_drawn_sentences(draw()),
        ({}, "int8 is 41 % faster than fp32 (95 % CI 38–44 %, p < 0.001, n = 30)"),
        (
            {
                "ratio": 1.023,
                "ratio_ci": (1.011, 1.032),
                "verdict": "slower",
                "p_value": 0.0123,
                "counts": (8, 12),
                "paired": False,
                "confidence": 0.9,
            },
            "int8 is 2.3 % slower than fp32 (90 % CI 1.1–3.2 %, p = 0.012, n = 8 + 12)",
        ),
        (
            {"ratio": 1.003, "ratio_ci": (0.995, 1.011), "verdict": "equivalent", "p_value": 0.4, "margin": 0.02},
            "int8 and fp32 are equivalent within ± 2 % (change 0.3 %, 95 % CI −0.5 to 1.1 %, p = 0.4, n = 30)",
        ),
        (
            {
                "ratio": 0.97,
                "ratio_ci": (0.90, 1.05),
                "verdict": "undecided: needs about 80 more rounds",
                "p_value": 0.3,
                "corrected_for": 3,
            },
            "int8 against fp32 is undecided: needs about 80 more rounds "
            "(change −3 %, 95 % CI −10 to 5 %, p = 0.3 after Holm over 3, n = 30)",
        ),
        (
            {
                "ratio": 0.5,
                "ratio_ci": (0.0, INF),
                "verdict": "undecided: needs about 3 more rounds",
                "p_value": 0.25,
                "counts": (3, 3),
            },
            "int8 against fp32 is undecided: needs about 3 more rounds "
            "(change −50 %, no finite interval, p = 0.25, n = 3)",
        ),
        (
            {
                "ratio": math.nan,
                "ratio_ci": (math.nan, math.nan),
                "difference": -2e6,
                "difference_ci": (-2.5e6, -1.9e6),
                "unit": "B",
                "verdict": "lower",
            },
            "int8 is 2.0 MB lower than fp32 (95 % CI 1.9–2.5 MB, p < 0.001, n = 30)",
        ),
        ({"measured": False}, "int8 is 41 % faster than fp32 (95 % CI 38–44 %, p < 0.001, n = 30, partly an estimate)"),
    ):
        got = str(student.Comparison(**{**facts, **changes}))
        expect(got == truth, f"{truth!r} expected, got {got!r}")


def _rounds(n: int, change: float, scatter: float = 0.02) -> tuple[list[float], list[float]]:
    rng = draw()
    drift = 1e-3 * (1 + np.abs(np.cumsum(rng.normal(0, 0.3, n))))
    return _list(drift * (1 + change) * np.exp(rng.normal(0, scatter, n))), _list(drift)


@judges("compare")
def compare_pairs(student: Any) -> None:
    """Every number of a paired comparison, and when results pair by themselves."""
    x, y = _rounds(60, -0.1)
    together = {"pairing": "one", "order": "shuffled rounds"}
    a, b = _latency(x, model="A", **together), _latency(y, model="B", **together)
    found = student.compare(a, b, confidence=0.9, margin=0.01)
    expect(found.paired is True, "two results with the same pairing mark pair by themselves")
    ratios, differences = np.sort(np.divide(x, y)), np.sort(np.subtract(x, y))
    lower = max(rank for rank in range(1, 61) if stats.binom.cdf(rank - 1, 60, 0.5) <= 0.05)
    close(found.ratio, math.exp(np.median(np.log(ratios))), "the ratio of pairs", cause="median of paired ratios")
    all_close(found.ratio_ci, [ratios[lower - 1], ratios[60 - lower]], "ratio_ci", cause="pass the confidence on")
    close(found.difference, float(np.median(differences)), "the difference of pairs", cause="median of a − b")
    all_close(found.difference_ci, [differences[lower - 1], differences[60 - lower]], "difference_ci")
    close(
        found.p_value,
        stats.binomtest(int(np.sum(differences > 0)), 60).pvalue,
        "the p value of pairs",
        cause="sign_test",
        rel=1e-6,
    )
    close(
        found.effect_size,
        float(differences.mean() / differences.std(ddof=1)),
        "effect_size of pairs",
        cause="cohens_d_paired",
    )
    wilcoxon = stats.wilcoxon(np.log(x) - np.log(y), method="asymptotic").pvalue
    close(
        found.checks["wilcoxon_p"],
        float(wilcoxon),
        "checks['wilcoxon_p']",
        cause="wilcoxon_test of the log-ratios",
        rel=1e-6,
    )
    expect((found.name_a, found.name_b, found.verdict) == ("A", "B", "faster"), f"A is faster than B: {found}")
    close(student.compare(b, a).ratio, 1 / found.ratio, "the ratio of b against a")
    expect(
        student.compare(a, b, margin=0.5).verdict == "equivalent",
        "with a margin of 50 % they are equivalent: pass the margin on",
    )
    expect(
        student.compare(a, _latency(y, pairing="two")).paired is False,
        "results of different sessions do not pair by themselves",
    )
    expect(
        student.compare(x[:20], y[:20], paired=True).verdict == "lower",
        "less of an unknown metric is 'lower', not 'faster'",
    )
    few = student.compare(x[:4], y[:4], paired=True).verdict
    expect(few == "undecided: needs about 2 more rounds", f"4 rounds need 2 more, got {few!r}")


@judges("compare")
def compare_independent(student: Any) -> None:
    """Every number of an independent comparison."""
    rng = draw()
    x, y = (1.0 + _balanced(rng, 0.1, 14)) * 1e-3, rng.normal(1.4, 0.15, 9) * 1e-3
    found = student.compare(_latency(x), _latency(y), confidence=0.9)
    truth = stats.ttest_ind(x, y, equal_var=False)
    expect(found.paired is False, "results without a pairing mark are independent")
    close(found.p_value, float(truth.pvalue), "the p value of independent samples", cause="welch_test", rel=1e-6)
    close(found.ratio, float(x.mean() / y.mean()), "the ratio of independent samples", cause="ratio of means")
    close(found.difference, float(x.mean() - y.mean()), "the difference of means")
    ends = truth.confidence_interval(0.9)
    all_close(found.difference_ci, [ends.low, ends.high], "difference_ci", cause="pass the confidence on", rel=1e-6)
    expect(
        found.ratio_ci[0] < found.ratio < found.ratio_ci[1] < 1,
        f"ratio_ci should be Fieller's interval, it is {found.ratio_ci}",
    )
    vague = student.compare([1e-3, 2e-3, 3e-3, 1e-3, 1e-3, 2e-3, 2e-3], [1e-3, 1e-3, 9e-3, 1e-3, 1e-3, 1e-3, 1e-3])
    stated = int("".join(c for c in vague.verdict if c.isdigit()) or 0)
    cause = "where Fieller's interval is infinite, decide by the difference and its interval"
    expect(stated > 10, f"such scatter takes many more rounds, got {vague.verdict!r}; {cause}")
    pooled = math.sqrt((13 * x.var(ddof=1) + 8 * y.var(ddof=1)) / 21)
    close(found.effect_size, float((x.mean() - y.mean()) / pooled), "effect_size", cause="cohens_d")
    expect(
        0 < found.checks["permutation_p"] < 0.02,
        f"checks['permutation_p'] should be small here, it is {found.checks['permutation_p']}",
    )
    close(found.checks["a12"], float(np.mean([u > v for u in x for v in y])), "checks['a12']")
    expect(found.verdict == "faster" and found.counts == (14, 9), f"14 against 9 values, faster: {found}")
    few = student.compare(_list(x * 1e3), _list(1.02 + _balanced(rng, 0.1, 8)))
    half, change = (few.ratio_ci[1] - few.ratio_ci[0]) / 2, abs(few.ratio - 1)
    needed = 8 * (half / change * (1 + stats.norm.ppf(0.8) / stats.norm.ppf(0.975))) ** 2
    wanted = f"undecided: needs about {max(6, math.ceil(needed)) - 8:,} more rounds"
    expect(
        few.verdict == wanted,
        f"{wanted!r} expected, got {few.verdict!r}: decide takes ratio − 1 and its interval, n the smaller count",
    )


@judges("compare")
def compare_without_a_ratio(student: Any) -> None:
    """Values at or below zero have no ratio; the difference decides."""
    rng = draw()
    for paired in (True, False):
        x, y = _list(rng.normal(0, 1, 30)), _list(rng.normal(5, 1, 30))
        found = student.compare(
            BenchmarkResult("growth", x, unit="B"), BenchmarkResult("growth", y, unit="B"), paired=paired
        )
        expect(math.isnan(found.ratio), f"values below 0 have no ratio, got {found.ratio}")
        expect(found.verdict == "lower", f"a is lower than b, by the difference: {found}")
        same = student.compare(x, _list(np.add(x, _balanced(rng, 0.5, 30))), paired=paired)
        expect(same.verdict.startswith("undecided"), f"nothing differs here: {same}")
    raises(ValueError, lambda: student.compare([0.0, 1.0], [1.0, 1.0], margin=0.1), "a margin without a ratio")


@judges("compare_all")
def all_pairs_are_corrected(student: Any) -> None:
    """All pairs in order, p values by Holm, verdicts that respect them."""
    rng = draw()
    results = {
        name: _latency(rng.normal(mean, 0.05, 25)) for name, mean in (("p", 1.0), ("q", 1.03), ("r", 1.0), ("s", 1.5))
    }
    found = student.compare_all(results, confidence=0.95)
    names = [(c.name_a, c.name_b) for c in found]
    truth = [("p", "q"), ("p", "r"), ("p", "s"), ("q", "r"), ("q", "s"), ("r", "s")]
    expect(names == truth, f"pairs {truth} expected, got {names}")
    raw = [float(stats.ttest_ind(results[a].values, results[b].values, equal_var=False).pvalue) for a, b in truth]
    order, largest = np.argsort(raw), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (6 - rank) * raw[index]))
        comparison = found[index]
        close(comparison.p_value, largest, f"the corrected p of {truth[index]}", cause="holm over all pairs", rel=1e-6)
        expect(comparison.corrected_for == 6, f"corrected_for should be 6, it is {comparison.corrected_for}")
        claims = comparison.verdict in ("faster", "slower")
        expect(
            claims == (largest <= 0.05),
            f"corrected p = {largest:.3g}, verdict {comparison.verdict!r}: a claim needs p ≤ 0.05 after correction",
        )
    nearly = {
        name: _latency(np.array([-1.0, 0.0, 1.0] * 8) * 0.05 + mean)
        for name, mean in (("a", 1.0), ("b", 1.0275), ("c", 1.0137))
    }
    first = student.compare_all(nearly)[0]
    expect(
        first.verdict == "undecided: not significant after correction",
        f"p = {first.p_value:.3f} after correction is no claim, got {first.verdict!r}",
    )
    wide = student.compare_all(results, margin=0.2)[0]
    expect(
        wide.verdict == "equivalent", f"within ± 20 % p and q are equivalent: pass the margin on; got {wide.verdict!r}"
    )
    paired = student.compare_all(results, paired=True)[0]
    expect(paired.paired is True, "pass paired on to compare")


@judges("regression_gate")
def gate_knows_three_answers(student: Any) -> None:
    """Passes, fails and cannot tell, on both sides, also where more is better; slowdown and interval are compare's."""
    rng = draw()
    base = _latency(np.exp(_balanced(rng, 0.01, 60)))
    for change, limit, truth in (
        (0.0, 0.05, "passes"),
        (0.10, 0.05, "fails"),
        (-0.3, 0.05, "passes"),
        (0.03, 0.0, "fails"),
        (0.03, 0.05, "passes"),
    ):
        candidate = _latency((1 + change) * np.exp(_balanced(rng, 0.01, 60)))
        gate = student.regression_gate(base, candidate, limit)
        what = f"{change:+.0%} with a limit of {limit:.0%}"
        expect(gate.verdict == truth, f"{what}: {truth!r} expected, got {gate.verdict!r}")
        expect(gate.needs is None, f"a decided gate needs nothing, got {gate.needs}")
        _gate_is(gate, compare(candidate, base), what)
    candidate = _latency(1.048 * np.exp(_balanced(rng, 0.01, 60)))
    gate = student.regression_gate(base, candidate, 0.049)
    low, high, distance = _gate_is(gate, compare(candidate, base), "+4.8% with a limit of 4.9%", 0.049)
    needed = math.ceil(60 * ((high - low) / 2 / distance * (1 + stats.norm.ppf(0.8) / stats.norm.ppf(0.975))) ** 2)
    needed = max(61, min(10**9, needed))
    close(
        gate.needs, needed, "the runs the gate needs", cause="runs_to_decide from the distance to the limit", rel=1e-6
    )
    expect(
        gate.verdict == f"cannot tell: needs {gate.needs} runs",
        f"the verdict should name the runs, it is {gate.verdict!r}",
    )
    speed, fewer = (
        BenchmarkResult("throughput", _list(rate * np.exp(rng.normal(0, 0.01, 60))), unit="Hz")
        for rate in (100, 100 / rng.uniform(1.5, 2.5))
    )
    slower, faster = student.regression_gate(speed, fewer, 0.05), student.regression_gate(fewer, speed, 0.05)
    for gate, truth, pair in ((slower, "fails", (speed, fewer)), (faster, "passes", (fewer, speed))):
        what = "a lower throughput is slower" if truth == "fails" else "a higher throughput is faster"
        expect(gate.verdict == truth, f"{what}: {truth!r} expected, got {gate.verdict!r}")
        _gate_is(gate, compare(*pair), what)


def _gate_is(gate: Any, truth: Any, what: str, limit: float = 0.0) -> tuple[float, float, float]:
    """Check slowdown and interval of a gate; return the true interval, and how far the slowdown is from a limit."""
    low, high = (end - 1 for end in truth.ratio_ci)
    cause = "the ratio of compare, and its interval, less 1"
    close(gate.slowdown, truth.ratio - 1, f"the slowdown, {what}", cause=cause, abs=1e-9)
    all_close(gate.interval, [low, high], f"the interval, {what}", cause=cause, abs=1e-9)
    return low, high, abs(truth.ratio - 1 - limit)


@judges("sign_e_value")
def evidence_is_a_fair_bet(student: Any) -> None:
    """The integral, its mean of 1 under no difference, and large counts."""
    for more, n in ((0, 0), (1, 1), (3, 10), (10, 10), (30, 40), (55, 100)):
        truth = 2.0**n * integrate.quad(lambda t, k=more, n=n: t**k * (1 - t) ** (n - k), 0, 1)[0]
        close(
            student.sign_e_value(more, n),
            truth,
            f"sign_e_value({more}, {n})",
            cause="2ⁿ · B(k + 1, n − k + 1)",
            rel=1e-5,
        )
    rng = draw()
    for n in (int(number) for number in rng.integers(2, 120, 12)):
        more = int(rng.integers(n + 1))
        truth = 2**n / ((n + 1) * math.comb(n, more))
        close(student.sign_e_value(more, n), truth, f"sign_e_value({more}, {n})", cause="2ⁿ · B(k + 1, n − k + 1)")
    for n in (5, 20):
        mean = sum(stats.binom.pmf(k, n, 0.5) * student.sign_e_value(k, n) for k in range(n + 1))
        close(
            mean,
            1.0,
            f"the mean fortune after {n} fair rounds",
            cause="a fair bet neither gains nor loses on average",
            rel=1e-6,
        )
    big = float(student.sign_e_value(9000, 10_000))
    expect(math.isfinite(big) and big > 1e300, f"sign_e_value(9000, 10000) should be huge and finite, it is {big}")
    expect(
        0 <= float(student.sign_e_value(500, 1000)) < 1, "an even count of 1000 rounds is evidence for nothing: e < 1"
    )


@judges("anytime_interval")
def anytime_interval_inverts_the_bet(student: Any) -> None:
    """The ends are those order statistics between which no median is refused."""
    rng = draw()
    for n, stop_at in ((8, 20.0), (30, 20.0), (200, 20.0), (75, 100.0), (7, 5.0)):
        values = rng.normal(0, 1, n)
        refused = [
            k
            for k in range(n // 2)
            if 2.0**n * math.exp(math.lgamma(k + 1) + math.lgamma(n - k + 1) - math.lgamma(n + 2)) >= stop_at
        ]
        ordered, rank = np.sort(values), len(refused)
        truth = [ordered[rank - 1], ordered[n - rank]] if rank else [-INF, INF]
        got = student.anytime_interval(_list(values), stop_at)
        expect(
            _list(got) == _list(truth),
            f"anytime_interval of {n} values at {stop_at:g}: ranks {rank} from either side expected, got {got}",
        )
    expect(list(student.anytime_interval([1.0] * 7)) == [-INF, INF], "7 values: e = 2⁷/8 = 16 < 20 refuses nothing")


def answer_live(student: Any) -> None:
    """Both counts follow from powers of two."""
    first = next(n for n in range(1, 99) if 2**n / (n + 1) >= 20)
    close(student.rounds_to_twenty(), first, "question (a)", cause="2ⁿ / (n + 1) ≥ 20")
    close(
        student.rounds_for_one_look(),
        next(n for n in range(1, 99) if 2 / 2**n <= 0.05),
        "question (b)",
        cause="2 / 2ⁿ ≤ 0.05",
    )


class _Clock(FakeClock):
    """Time that passes only while a model works."""

    def model(self, durations: Any, log: list[str] | None = None, name: str = "") -> Any:
        def call(_: Any) -> None:
            if log is not None:
                log.append(name)
            self.now += float(durations())

        return call


@judges("compare_live")
def live_stops_in_time(student: Any) -> None:
    """Stops at the first round with enough evidence, at the time limit, and flips its coin."""
    rng, x = draw(), np.zeros((1, 2))
    for threshold in (20.0, 100.0, *(float(stop_at) for stop_at in rng.uniform(5, 900, 2))):
        rounds = next(n for n in range(1, 99) if 2**n / (n + 1) >= threshold)
        ratio = float(rng.uniform(1.5, 4) ** rng.choice([-1, 1]))
        clock, took = _Clock(), float(rng.uniform(0.001, 0.003))
        models = {"one": clock.model(lambda r=ratio, t=took: r * t), "other": clock.model(lambda t=took: t)}
        seed = int(rng.integers(1000))
        found = student.compare_live(models, x, stop_at=threshold, warmup_runs=0, seed=seed, clock=clock)
        close(
            found.counts[0],
            rounds,
            f"rounds to e ≥ {threshold:g}, all one way",
            cause="look after every round, stop at e ≥ stop_at",
        )
        verdict = "slower" if ratio > 1 else "faster"
        expect(found.verdict == verdict, f"the first model is {verdict}: {found}")
        close(found.checks["e_value"], 2.0**rounds / (rounds + 1), "the evidence", rel=1e-6)
        close(found.ratio, ratio, "the ratio", rel=1e-6)
    clock, log = _Clock(), []  # type: ignore[var-annotated]
    coin, longest = iter(range(10**6)), float(rng.uniform(2, 2.5))
    models = {
        "a": clock.model(lambda: 0.010 + 0.001 * (next(coin) % 3), log, "a"),
        "b": clock.model(lambda: 0.010 + 0.001 * (next(coin) % 3), log, "b"),
    }
    before, seed = clock.now, int(rng.integers(1000))
    found = student.compare_live(models, x, stop_at=1e12, max_seconds=longest, warmup_runs=0, seed=seed, clock=clock)
    expect(found.counts[0] == found.counts[1], "both models are timed in every round")
    expect(
        longest <= clock.now - before < longest + 0.03,
        f"it should stop after the round that reaches {longest:.3f} s, it ran {clock.now - before:.3f} s",
    )
    firsts = log[::2].count("a")
    expect(  # by a fair coin so far off in less than one of 10^10 sessions of some 90 rounds
        0.15 < firsts / len(log[::2]) < 0.85,
        f"a went first in {firsts} of {len(log[::2])} rounds: toss a coin for each round",
    )
    expect(all(set(log[i : i + 2]) == {"a", "b"} for i in range(0, len(log), 2)), "each round times each model once")
    clock, took = _Clock(), int(rng.integers(8, 16)) / 1024  # sums of which are exact
    models = {"a": clock.model(lambda: took), "b": clock.model(lambda: took)}
    found = student.compare_live(models, x, max_seconds=1.0, warmup_runs=0, seed=seed, clock=clock)
    ties_decide_nothing = found.verdict.startswith("undecided") and found.checks["e_value"] == 1.0
    expect(
        ties_decide_nothing, f"rounds that tie are no evidence; e = {found.checks['e_value']:.3g}, {found.verdict!r}"
    )
    close(found.p_value, 1.0, "the p value of ties only")


@judges("compare_live")
def live_keeps_its_promise(student: Any) -> None:
    """Few false verdicts between equals, equivalence within a margin, and real differences found."""
    rng, x, false = draw(), np.zeros((1, 2)), 0
    for seed in range(60):
        clock = _Clock()
        noise = iter(0.001 * np.exp(rng.normal(0, 0.1, 2000)))
        same = clock.model(lambda noise=noise: next(noise))
        found = student.compare_live({"a": same, "b": same}, x, max_seconds=0.08, warmup_runs=0, seed=seed, clock=clock)
        false += not found.verdict.startswith("undecided")
    expect(  # right answers have more than 12 once in two thousand million gradings
        false <= 12,
        f"{false} of 60 races of a model against itself had a winner; at e ≥ 20 about 3 are expected at most",
    )
    clock = _Clock()
    noise = iter(np.exp(rng.normal(0, 0.02, 200_000)))
    models = {"a": clock.model(lambda: 0.001 * next(noise)), "b": clock.model(lambda: 0.001 * next(noise))}
    found = student.compare_live(
        models, x, stop_at=200.0, max_seconds=20.0, margin=0.03, warmup_runs=0, seed=1, clock=clock
    )
    expect(found.verdict == "equivalent", f"equal models with a margin of 3 % are equivalent: {found}")
    expect(
        found.counts[0] < 100,
        f"with 2 % scatter a margin of 3 % takes a few dozen rounds, not {found.counts[0]}: look at it in every round",
    )
    models = {"a": clock.model(lambda: 0.001 * next(noise)), "b": clock.model(lambda: 0.0011 * next(noise))}
    found = student.compare_live(models, x, max_seconds=5.0, margin=0.02, warmup_runs=0, seed=1, clock=clock)
    expect(found.verdict == "faster", f"10 % apart with a margin of 2 %: {found}")


def answer_understanding(student: Any) -> None:
    """The four answers follow from the definitions."""
    close(student.percent_of_at_least_one(), 100 * (1 - 0.95**20), "question 1", cause="1 − 0.95²⁰", rel=0.02)
    close(student.percent_faster(), 75, "question 2", cause="faster means less time: 1 − 1/4")
    expect(
        _list(student.significant_after()) == [3, 1],
        "question 3: Holm gives 0.03, 0.04, 0.04; Bonferroni 0.03, 0.06, 0.09",
    )
    expect(
        student.verdict_inside_the_margin() == "equivalent",
        "question 4: the interval lies inside ± 1 %, and that comes first",
    )
