"""tinybench.toolbox against statsmodels, closed forms and simulations; and the library where it is not built."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from tinybench import toolbox
from tinybench.comparison import compare, compare_live
from tinybench.result import BenchmarkResult
from tinybench.support.comparisons.optional_toolbox import NOT_BUILT, corrected
from tinybench.support.comparisons.two_samples import compare_apart


def latency(values: Any, **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult("latency", [float(v) for v in values], unit="s", metadata=metadata)


@given(st.integers(2, 30), st.integers(2, 30), st.floats(0.1, 10), st.integers(0, 10**6))
def test_welch_is_statsmodels(n: int, m: int, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(10, 1, n).tolist(), rng.normal(11, scale, m).tolist()
    means = CompareMeans(DescrStatsW(a), DescrStatsW(b))
    t, p, df = means.ttest_ind(usevar="unequal")
    assert toolbox.welch_test(a, b) == pytest.approx((t, df, p))
    assert toolbox.welch_intervals(a, b)[0] == pytest.approx(means.tconfint_diff(usevar="unequal"))
    if min(a + b) > 0:
        assert toolbox.welch_intervals(a, b)[1] == pytest.approx(compare_apart(a, b)["ratio_ci"])


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=80).filter(any))
def test_wilcoxon_is_the_normal_approximation(differences: list[int]) -> None:
    kept = np.array([d for d in differences if d])
    ranks = stats.rankdata(np.abs(kept))
    z = (ranks[kept > 0].sum() - ranks.sum() / 2) / math.sqrt(float((ranks**2).sum()) / 4)
    least = 2 / 2 ** len(kept)
    assert toolbox.wilcoxon_test(differences) == pytest.approx(max(least, math.erfc(abs(z) / math.sqrt(2))), rel=1e-9)


def test_permutation_is_uniform_without_a_difference() -> None:
    rng = np.random.default_rng(2)
    for paired in (False, True):
        draws = rng.lognormal(0, 1, (400, 2, 12))
        p = [toolbox.permutation_test(*both, paired=paired, resamples=99) for both in draws]
        assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_a12_counts_pairs(a: list[int], b: list[int]) -> None:
    counted = np.mean([(x > y) + 0.5 * (x == y) for x in a for y in b])
    assert toolbox.vargha_delaney_a12(a, b) == pytest.approx(counted)
    assert toolbox.vargha_delaney_a12(a, b) == pytest.approx(1 - toolbox.vargha_delaney_a12(b, a))


def test_cohens_d_is_the_t_value_rescaled() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(1, 1, 14), rng.normal(0, 2, 9)
    assert toolbox.cohens_d(a, b) == pytest.approx(stats.ttest_ind(a, b).statistic * math.sqrt(1 / 14 + 1 / 9))
    assert toolbox.cohens_d_paired(a[:9], b) == pytest.approx(stats.ttest_rel(a[:9], b).statistic / 3)
    assert math.isnan(toolbox.cohens_d([1.0, 1.0], [2.0, 2.0]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    with mock.patch("gc.collect"):  # which statsmodels calls each time: seconds, late in a long run
        theirs = multipletests(p_values, method="holm")[1]
    assert toolbox.holm(p_values) == pytest.approx(theirs)
    assert corrected(p_values) == toolbox.holm(p_values)


@given(st.integers(3, 6), st.integers(2, 40), st.integers(0, 10**6))
def test_friedman_without_ties_is_its_formula(k: int, n: int, seed: int) -> None:
    times = np.random.default_rng(seed).lognormal(0, 1, (k, n))
    table = toolbox.friedman({str(i): latency(row) for i, row in enumerate(times)})
    sums = stats.rankdata(times, axis=0).sum(axis=1)
    chi2 = 12 / (n * k * (k + 1)) * float(np.sum((sums - n * (k + 1) / 2) ** 2))
    assert table["chi2"] == pytest.approx(chi2, rel=1e-9, abs=1e-9)
    assert table["p_value"] == pytest.approx(max(float(stats.chi2.sf(chi2, k - 1)), math.factorial(k) ** (1 - n)))
    assert table["w"] == pytest.approx(chi2 / n / (k - 1), rel=1e-9, abs=1e-9)
    assert toolbox.friedman(times.tolist()) == table, "plain lists are results"


def test_friedman_sees_through_a_drift_that_all_share() -> None:
    rng, seen = np.random.default_rng(4), {"anova": 0, "friedman": 0}
    for _ in range(50):
        drift = np.exp(np.cumsum(rng.normal(0, 0.15, 60)))
        times = drift * np.array([[1.0], [1.0], [1.05]]) * np.exp(rng.normal(0, 0.03, (3, 60)))
        seen["anova"] += stats.f_oneway(*times).pvalue < 0.05
        seen["friedman"] += toolbox.friedman([latency(row) for row in times])["p_value"] < 0.05
    assert seen["friedman"] == 50
    assert seen["anova"] < 10


@pytest.mark.audit
def test_compare_all_keeps_the_familywise_rate() -> None:
    rng, alarms = np.random.default_rng(5), 0
    for _ in range(300):
        results = {name: latency(values) for name, values in zip("abcd", rng.lognormal(0, 0.1, (4, 30)), strict=True)}
        alarms += any(c.verdict in ("faster", "slower") for c in toolbox.compare_all(results, paired=True))
    assert alarms / 300 < 0.09


def test_ten_models_at_once() -> None:
    rng = np.random.default_rng(25)
    drift = np.exp(np.cumsum(rng.normal(0, 0.1, 80)))
    shared = {"pairing": "one"}
    results = {
        f"m{i}": latency(1e-3 * drift * (1 + 0.1 * (i == 9)) * rng.lognormal(0, 0.01, 80), **shared) for i in range(10)
    }
    found = toolbox.compare_all(results)
    assert len(found) == 45
    assert all(("m9" in (c.name_a, c.name_b)) == (c.verdict in ("faster", "slower")) for c in found)
    assert toolbox.friedman(results)["p_value"] < 1e-6


TWO = latency([1, 2])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: toolbox.holm([0.5, 1.5]), r"p_values\[1\] is 1\.5"),
        (lambda: toolbox.friedman([TWO, TWO]), "three or more"),
        (lambda: toolbox.friedman([TWO, TWO, latency([1, 2, 3])]), "got 2 rounds and 2 rounds and 3 rounds"),
        (lambda: toolbox.friedman([[1.0], [1.0, 2.0], []]), "measurement"),
        (lambda: toolbox.compare_all({"a": TWO}), "at least two"),
        (lambda: toolbox.welch_test([1.0], [2.0, 3.0]), "a has 1 value; at least 2"),
    ],
)
def test_bad_arguments(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        use()


def test_compare_has_second_opinions() -> None:
    x, y = [1.0, 1.2, 1.1, 1.4, 1.3, 1.6], [1.0, 1.1, 1.3, 1.1, 1.0, 1.1]
    pairs, apart = compare(x, y, paired=True), compare(x, y, paired=False)
    logs = np.log(x) - np.log(y)
    assert pairs.checks == {"wilcoxon_p": toolbox.wilcoxon_test(logs), "a12": toolbox.vargha_delaney_a12(x, y)}
    assert pairs.effect_size == toolbox.cohens_d_paired(x, y)
    assert apart.checks["permutation_p"] == toolbox.permutation_test(np.log(x), np.log(y))
    assert apart.effect_size == toolbox.cohens_d(x, y)


def test_all_goes_on_without_the_toolbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tinybench.toolbox", None)
    found = compare([1.0, 1.2, 1.1, 1.4, 1.3, 1.6], [2.0, 2.1, 2.3, 2.1, 2.0, 2.1], paired=True)
    assert found.verdict == "lower"
    assert set(found.checks) == {"smallest_p"}
    assert math.isnan(found.effect_size)
    assert NOT_BUILT in found._repr_mimebundle_()["text/html"]
    assert found.to_dict()["effect_size"] is None
    ticks = (lambda x: None), (lambda x: None)
    assert compare_live(dict(zip("ab", ticks, strict=True)), 1, max_seconds=0.05).verdict
    assert all(more >= less for less, more in pairwise([0.02, *corrected([0.01, 0.02])]))
    assert corrected([0.01, 0.4]) == [0.02, 0.8], "by Bonferroni"
