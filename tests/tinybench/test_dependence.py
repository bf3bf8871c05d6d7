"""Dependence of values: against SciPy's correlations, exact permutations and series whose dependence is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tinybench.support.basics import dependence
from tinybench.support.basics.dependence import autocorrelation, batch_medians, caution, effective_count, is_dependent

samples = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=80)


def autoregressive(phi: float, n: int, rng: np.random.Generator) -> list[float]:
    """Return values of variance 1, each phi times the one before and something new."""
    values = [float(rng.normal())]
    for step in rng.normal(0, math.sqrt(1 - phi**2), n - 1):
        values.append(phi * values[-1] + float(step))
    return values


@given(samples)
def test_autocorrelation_is_that_of_the_ranks(values: list[float]) -> None:
    ranks = stats.rankdata(values)
    centred = ranks - ranks.mean()
    squares = float(centred @ centred)
    expected = float(centred[1:] @ centred[:-1]) / squares if squares else 0.0
    assert autocorrelation(values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [5, 30, 400])
def test_all_lags_against_statsmodels(n: int) -> None:
    from statsmodels.tsa.stattools import acf

    values = autoregressive(0.6, n, np.random.default_rng(n))
    rho = acf(stats.rankdata(values), nlags=n - 1, fft=False)
    assert autocorrelation(values) == pytest.approx(rho[1], abs=1e-12)
    pairs = list(itertools.takewhile(lambda pair: pair >= 0, (rho[k] + rho[k + 1] for k in range(0, n - 1, 2))))
    assert effective_count(values) == pytest.approx(min(n, n / (2 * sum(pairs) - 1)), rel=1e-12)


@given(samples)
def test_an_outlier_is_a_rank_like_any_other(values: list[float]) -> None:
    largest = max(values)
    longer = [1e9 if value == largest else value for value in values]
    assert autocorrelation(longer) == pytest.approx(autocorrelation(values), abs=1e-12)


@pytest.mark.parametrize(("phi", "count"), [(0.0, 4000), (0.3, 2154), (0.6, 1000), (0.9, 211)])
def test_effective_count_of_an_autoregressive_series(phi: float, count: float) -> None:
    """A series of φ counts as n (1 − φ) / (1 + φ); its ranks depend a little less."""
    values = autoregressive(phi, 4000, np.random.default_rng(1))
    assert effective_count(values) == pytest.approx(count, rel=0.25)


@pytest.mark.parametrize("values", [[5.0], [5.0] * 4, [5.0] * 50])
def test_equal_values_are_left_alone(values: list[float]) -> None:
    assert autocorrelation(values) == 0
    assert effective_count(values) == len(values)
    assert not is_dependent(values)
    assert batch_medians(values) == values
    assert caution(values) == ""


def test_false_alarms_among_all_orders() -> None:
    """Of all 5040 orders of 7 values as many count as dependent as the level says."""
    orders = list(itertools.permutations(map(float, range(7))))
    assert 0.03 < np.mean([is_dependent(order) for order in orders]) < 0.07


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "heavy", "ties"])
def test_independent_values_are_seldom_called_dependent(kind: str, n: int) -> None:
    rng = np.random.default_rng(2)
    drawn = {
        "normal": rng.normal(size=(2000, n)),
        "lognormal": rng.lognormal(size=(2000, n)),
        "heavy": rng.standard_t(2, (2000, n)),
        "ties": rng.poisson(0.7, (2000, n)),
    }
    assert np.mean([is_dependent(row) for row in drawn[kind].tolist()]) < 0.08


@pytest.mark.parametrize(("phi", "n", "power"), [(0.6, 30, 0.8), (0.6, 100, 0.99), (0.9, 30, 0.95), (0.3, 100, 0.6)])
def test_dependence_is_found(phi: float, n: int, power: float) -> None:
    rng = np.random.default_rng(3)
    assert np.mean([is_dependent(autoregressive(phi, n, rng)) for _ in range(300)]) > power


def test_drift_is_found_and_alternation_is_not() -> None:
    assert is_dependent([float(x) for x in range(10)])
    assert not is_dependent([1.0, 2.0] * 20)


@pytest.mark.parametrize("n", [13, 30, 97, 400])
def test_batches_are_medians_of_neighbours(n: int) -> None:
    values = autoregressive(0.9, n, np.random.default_rng(4))
    length = dependence.batch_length(values)
    medians = batch_medians(values)
    assert length % 2 == 1
    assert len(medians) == n // length >= 6
    assert medians == [
        float(np.median(values[end - length : end])) for end in range(n % length + length, n + 1, length)
    ]
    assert dependence.batch_means(values, length)[-1] == pytest.approx(np.mean(values[-length:]), rel=1e-12)
    assert dependence.batch_length(values, 12) <= length


def test_batches_hardly_depend_on_one_another() -> None:
    rng = np.random.default_rng(5)
    found = [batch_medians(autoregressive(0.6, 400, rng)) for _ in range(100)]
    assert np.mean([autocorrelation(medians) for medians in found]) < 0.1


def test_batch_interval_covers_where_the_plain_one_does_not() -> None:
    from tinybench.result import percentile_interval

    rng = np.random.default_rng(6)
    drawn = [autoregressive(0.6, 100, rng) for _ in range(300)]
    plain, batched = (
        np.mean([low <= 0 <= high for low, high in (percentile_interval(form(values), 50) for values in drawn)])
        for form in (list, batch_medians)
    )
    assert plain < 0.85
    assert batched > 0.92


class TestCaution:
    def test_too_few_to_see(self) -> None:
        values = np.random.default_rng(7).normal(size=10).tolist()
        assert caution(values) == "10 values are too few to see whether they depend on one another"

    def test_enough_and_independent(self) -> None:
        assert caution(np.random.default_rng(8).normal(size=100).tolist()) == ""

    def test_dependent(self) -> None:
        values = autoregressive(0.6, 300, np.random.default_rng(9))
        count = f"{effective_count(values):.0f}"
        assert caution(values).startswith(f"values depend on one another (autocorrelation 0.5: 300 count as {count}):")
        assert caution(values).endswith(f"only intervals from batches hold, here {len(batch_medians(values))}")

    def test_few_batches_say_so(self) -> None:
        assert caution([float(x) for x in range(40)]).endswith("here 8, which are few: measure for longer")

    def test_too_few_for_batches(self) -> None:
        assert "too few for batches: intervals are too narrow" in caution([float(x) for x in range(10)])
