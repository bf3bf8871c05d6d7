"""The result and its intervals, against exact fractions, SciPy, binomial sums and published data."""

from __future__ import annotations

import doctest
import html
import json
import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tinybench.result
from tinybench.result import BenchmarkResult, bootstrap_interval, check_values, mean_and_std, required_runs, t_interval
from tinybench.support.basics.bootstrap import bca_interval
from tinybench.support.basics.result_text import format_measurement, json_safe, scale_unit

numbers = st.floats(-1e12, 1e12, allow_subnormal=False)
samples = st.lists(numbers, min_size=1, max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def exact_moments(values: list[float]) -> tuple[float, float]:
    fractions = [Fraction(value) for value in values]
    mean = sum(fractions) / len(fractions)
    squares = sum((value - mean) ** 2 for value in fractions)
    return float(mean), math.sqrt(squares / (len(fractions) - 1)) if len(fractions) > 1 else 0.0


class TestCheckValues:
    @given(samples)
    def test_finite_numbers_pass_in_order(self, values: list[float]) -> None:
        assert check_values(iter(values)) == values

    def test_numpy_numbers_become_floats(self) -> None:
        kept = check_values(np.array([1, 2], dtype=np.int32)) + check_values([np.float32(0.5), Fraction(1, 4)])
        assert kept == [1.0, 2.0, 0.5, 0.25]
        assert all(type(value) is float for value in kept)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "1.0", None, True, np.bool_(False), [1.0], 1j])
    @pytest.mark.parametrize("index", [0, 3, 11])
    def test_anything_else_is_refused_with_its_index(self, bad: object, index: int) -> None:
        values: list[object] = [1.0] * 12
        values[index] = bad
        with pytest.raises(ValueError, match=rf"values\[{index}\]"):
            check_values(values)


class TestMoments:
    # NIST Statistical Reference Datasets, univariate summary statistics, with certified values
    @pytest.mark.parametrize(
        ("values", "mean", "std"),
        [
            ([10000001.0, 10000003.0, 10000002.0], 10000002.0, 1.0),
            ([1.2] + [1.1, 1.3] * 500, 1.2, 0.1),
            ([1000000.2] + [1000000.1, 1000000.3] * 500, 1000000.2, 0.1),
            ([10000000.2] + [10000000.1, 10000000.3] * 500, 10000000.2, 0.1),
        ],
        ids=["NumAcc1", "NumAcc2", "NumAcc3", "NumAcc4"],
    )
    def test_nist(self, values: list[float], mean: float, std: float) -> None:
        got_mean, got_std = mean_and_std(values)
        assert math.isclose(got_mean, mean, rel_tol=1e-15)
        # the data themselves are rounded to floats: about 1e-9 of 0.1 in NumAcc4
        assert math.isclose(got_std, std, rel_tol=2e-8)
        assert math.isclose(got_std, exact_moments(values)[1], rel_tol=1e-12)

    @given(samples)
    def test_against_exact_fractions(self, values: list[float]) -> None:
        (mean, std), (exact_mean, exact_std) = mean_and_std(values), exact_moments(values)
        assert math.isclose(mean, exact_mean, rel_tol=1e-15, abs_tol=1e-300)
        assert math.isclose(std, exact_std, rel_tol=1e-9, abs_tol=1e-150)

    @given(st.integers(-(10**9), 10**9), st.lists(st.integers(0, 1000), min_size=2, max_size=50))
    def test_shift_leaves_the_deviation(self, shift: int, values: list[int]) -> None:
        std = mean_and_std([float(value) for value in values])[1]
        assert math.isclose(mean_and_std([float(value + shift) for value in values])[1], std, rel_tol=1e-9)

    def test_single_value(self) -> None:
        assert mean_and_std([7.5]) == (7.5, 0.0)


class TestTInterval:
    @given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=40, unique=True), st.floats(0.5, 0.999))
    def test_against_scipy(self, integers: list[int], confidence: float) -> None:
        values = [float(value) for value in integers]
        truth = stats.t.interval(confidence, len(values) - 1, np.mean(values), stats.sem(values))
        assert t_interval(values, confidence) == pytest.approx(truth, rel=1e-9, abs=1e-9 * (truth[1] - truth[0]))

    @pytest.mark.parametrize("n", [2, 5, 10, 30, 1000])
    def test_against_statsmodels_to_the_last_digits(self, n: int) -> None:
        from statsmodels.stats.weightstats import DescrStatsW

        values = np.random.default_rng(n).lognormal(0, 1, n)
        truth = DescrStatsW(values).tconfint_mean(0.1)
        assert t_interval(values.tolist(), 0.9) == pytest.approx(truth, rel=1e-12, abs=1e-12)
        scipy = stats.t.interval(0.9, n - 1, np.mean(values), stats.sem(values))
        assert t_interval(values.tolist(), 0.9) == pytest.approx(scipy, rel=1e-12, abs=1e-12)

    def test_half_width_in_standard_errors(self) -> None:
        values = [float(x) for x in range(10)]
        low, high = t_interval(values)
        assert (high - low) / 2 / (statistics.stdev(values) / math.sqrt(10)) == pytest.approx(2.262157, rel=1e-6)

    def test_single_value(self) -> None:
        assert t_interval([4.2]) == (4.2, 4.2)


class TestRequiredRuns:
    @given(st.floats(0, 20), st.floats(0.1, 10), st.floats(0.5, 0.99))
    def test_smallest_that_suffices(self, std: float, half_width: float, confidence: float) -> None:
        runs = required_runs(std, half_width, confidence)

        def width(n: int) -> float:
            return float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * std / math.sqrt(n)

        assert width(runs) <= half_width * (1 + 1e-9)
        assert runs == 2 or width(runs - 1) > half_width * (1 - 1e-9)

    def test_worked_example(self) -> None:
        assert required_runs(2.0, 0.5) == 64


class TestPercentiles:
    @pytest.mark.parametrize(("q", "runs"), [(50, 6), (90, 36), (99, 368), (99.9, 3688), (10, 36), (1, 368)])
    def test_runs_for_percentile(self, q: float, runs: int) -> None:
        assert tinybench.result.runs_for_percentile(q) == runs

    @given(st.integers(6, 150), st.integers(5, 95), st.sampled_from([0.8, 0.9, 0.95]), st.randoms())
    def test_coverage_is_kept_and_tight(self, n: int, q: int, confidence: float, random: object) -> None:
        values = [float(rank) for rank in range(1, n + 1)]
        random.shuffle(values)  # type: ignore[attr-defined]
        least = tinybench.result.runs_for_percentile(q, confidence)
        if n < least:
            with pytest.raises(ValueError, match=f"takes at least {least} values, got {n}"):
                tinybench.result.percentile_interval(values, q, confidence)
            return
        lower, upper = (int(end) for end in tinybench.result.percentile_interval(values, q, confidence))
        below, tail = stats.binom(n, q / 100), (1 - confidence) / 2
        assert below.cdf(lower - 1) <= tail < below.cdf(lower)
        assert below.sf(upper - 1) <= tail < below.sf(upper - 2)

    @pytest.mark.parametrize("n", [6, 10, 30, 100])
    def test_median_against_scipy(self, n: int) -> None:
        values = np.random.default_rng(n).lognormal(0, 1, n)
        truth = stats.quantile_test(values, p=0.5).confidence_interval(0.95)
        assert tinybench.result.percentile_interval(values.tolist(), 50) == (truth.low, truth.high)

    def test_coverage_on_skewed_data(self) -> None:
        rng = np.random.default_rng(1)
        ends = [tinybench.result.percentile_interval(row.tolist(), 50) for row in rng.lognormal(0, 1, (2000, 25))]
        assert 0.94 < np.mean([low <= 1.0 <= high for low, high in ends]) < 0.98  # 95.7 % by the binomial sum


class TestBootstrap:
    def test_against_scipy(self) -> None:
        values = np.random.default_rng(4).lognormal(0, 0.7, 60)
        truth = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=8000, rng=np.random.default_rng(5))
        got = bootstrap_interval(values.tolist(), np.mean, seed=1, resamples=8000)
        assert got == pytest.approx(tuple(truth.confidence_interval), abs=0.15 * float(truth.standard_error))

    def test_seed_decides(self) -> None:
        values = [float(x) for x in range(30)]
        first, again, other = (bootstrap_interval(values, np.mean, seed=n, resamples=100) for n in (1, 1, 2))
        assert first == again != other

    @given(samples)
    @settings(max_examples=25)
    def test_stays_within_the_sample(self, values: list[float]) -> None:
        low, high = bootstrap_interval(values, np.median, resamples=50)
        assert math.isnan(low) or min(values) <= low < high <= max(values)


class TestBca:
    @pytest.mark.parametrize("statistic", [np.mean, np.median, np.std, np.max])
    @pytest.mark.parametrize("n", [3, 5, 30, 200])
    def test_against_scipy(self, statistic: Callable[[Any], Any], n: int) -> None:
        """With the same seed both draw the same resamples, and SciPy at a higher level goes as far."""
        values = np.random.default_rng(n).lognormal(0, 1, n)
        wider = 2 * stats.norm.cdf(math.sqrt(n / (n - 1)) * stats.t.ppf(0.95, n - 1)) - 1
        settings = {"method": "BCa", "confidence_level": wider, "n_resamples": 500, "vectorized": False}
        truth = stats.bootstrap((values,), statistic, **settings, rng=np.random.default_rng(3)).confidence_interval
        got = bca_interval(values.tolist(), statistic, 0.9, seed=3, resamples=500)
        assert got == pytest.approx((truth.low, truth.high), rel=1e-12)

    def test_values_left_out_in_groups(self) -> None:
        """Leaving out groups of many values moves the ends by far less than the interval is wide."""
        values = np.random.default_rng(1).lognormal(0, 1, 1200)
        options = {"method": "BCa", "n_resamples": 500, "vectorized": True}
        truth = stats.bootstrap((values,), np.mean, **options, rng=np.random.default_rng(3)).confidence_interval
        got = bca_interval(values.tolist(), np.mean, seed=3, resamples=500)
        assert got == pytest.approx((truth.low, truth.high), abs=0.1 * (truth.high - truth.low))

    @pytest.mark.parametrize("values", [[2.0], [2.0] * 5])
    def test_without_scatter(self, values: list[float]) -> None:
        assert np.isnan(bca_interval(values, np.mean, resamples=20)).all()

    @given(samples)
    @settings(max_examples=25)
    def test_stays_within_the_sample(self, values: list[float]) -> None:
        low, high = bca_interval(values, np.median, resamples=50)
        assert math.isnan(low) or min(values) <= low <= high <= max(values)


@given(samples)
def test_tukey_outliers(values: list[float]) -> None:
    first, third = np.percentile(values, [25, 75])
    reach = 1.5 * (third - first)
    assert tinybench.result.tukey_outliers(values) == [
        value for value in values if not first - reach <= value <= third + reach
    ]


class TestFormat:
    @pytest.mark.parametrize(
        ("size", "unit", "factor", "scaled"),
        [
            (0.0123, "s", 1e-3, "ms"),
            (1.5, "s", 1.0, "s"),
            (3600.0, "s", 1.0, "s"),
            (2e-6, "s", 1e-6, "µs"),
            (1e-12, "s", 1e-9, "ns"),
            (-0.002, "J", 1e-3, "mJ"),
            (2.5e9, "B", 1e9, "GB"),
            (17.0, "B", 1.0, "B"),
            (0.0, "s", 1.0, "s"),
            (0.001, "", 1.0, ""),
            (0.001, "qps", 1.0, "qps"),
        ],
    )
    def test_scale_unit(self, size: float, unit: str, factor: float, scaled: str) -> None:
        assert scale_unit(size, unit) == (factor, scaled)

    @pytest.mark.parametrize(
        ("mean", "std", "unit", "text"),
        [
            (0.0123, 0.0008, "s", "12.3 ± 0.8 ms"),
            (4.56e-6, 1.2e-7, "s", "4.56 ± 0.12 µs"),
            (2.5e6, 3e4, "B", "2.50 ± 0.03 MB"),
            (1.5, 0.0, "s", "1.5 s"),
            (123.4, 55.0, "B", "123 ± 55 B"),
            (0.98, 0.0123, "", "0.980 ± 0.012"),
        ],
    )
    def test_format_measurement(self, mean: float, std: float, unit: str, text: str) -> None:
        assert format_measurement(mean, std, unit) == text


class TestBenchmarkResult:
    @given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=40))
    def test_summary(self, values: list[float]) -> None:
        result = BenchmarkResult("latency", values, unit="s", confidence=0.9)
        assert (result.mean, result.std) == mean_and_std(values)
        assert result.median == pytest.approx(statistics.median(values), rel=1e-12)
        assert (result.min_val, result.max_val, result.count) == (min(values), max(values), len(values))
        assert (result.ci_lower, result.ci_upper) == t_interval(values, 0.9)
        assert result.scattered == (len(set(values)) > 1)
        assert result.cv == result.std / abs(result.mean)

    def test_survives_large_offsets(self) -> None:
        values = [10000000.2] + [10000000.1, 10000000.3] * 500
        result = BenchmarkResult("timestamp", values)
        assert (result.mean, result.std) == pytest.approx(exact_moments(values), rel=1e-9)

    @pytest.mark.parametrize("form", [tuple, np.array, iter])
    def test_values_become_a_list_of_floats(self, form: Callable[[Any], Any]) -> None:
        assert BenchmarkResult("x", form([1, 2.0])).values == [1.0, 2.0]

    def test_keeps_no_reference_to_the_callers_data(self) -> None:
        values, metadata = [1.0, 2.0], {"shape": [1, 28]}
        result = BenchmarkResult("x", values, metadata=metadata)
        values.append(3.0)
        metadata["shape"].append(28)
        assert (result.values, result.metadata) == ([1.0, 2.0], {"shape": [1, 28]})

    def test_single_value(self) -> None:
        result = BenchmarkResult("latency", [2.0])
        assert (result.std, result.ci_lower, result.ci_upper, result.cv) == (0.0, 2.0, 2.0, 0.0)
        assert result.undetermined == ("std", "ci_lower", "ci_upper")
        with pytest.raises(ValueError, match="one value cannot tell how far the mean may be off"):
            result.mean_ci()
        with pytest.raises(ValueError, match="6 equal values cannot tell"):
            BenchmarkResult("latency", [2.0] * 6).mean_ci()

    def test_the_convention_holds_whatever_a_student_returns_for_one_value(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        unknown = (math.nan, math.nan)
        monkeypatch.setattr(tinybench.result, "t_interval", lambda values, confidence: unknown)
        monkeypatch.setattr(tinybench.result, "mean_and_std", lambda values: (values[0], math.nan))
        result = BenchmarkResult("latency", [2.0])
        assert (result.std, result.ci_lower, result.ci_upper) == (0.0, 2.0, 2.0)
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["std"] is None

    def test_cv_without_a_mean(self) -> None:
        assert math.isnan(BenchmarkResult("gain", [-1.0, 1.0]).cv)
        assert BenchmarkResult("gain", [-2.0, -4.0]).cv > 0

    def test_methods(self) -> None:
        values = [float(x) for x in np.random.default_rng(3).lognormal(0, 1, 60)]
        result = BenchmarkResult("latency", values, confidence=0.8)
        assert result.percentile(95) == pytest.approx(float(np.percentile(values, 95)))
        assert result.median_ci() == tinybench.result.percentile_interval(values, 50, 0.8)
        assert result.bootstrap_ci(np.mean, seed=3) == bca_interval(values, np.mean, 0.8, 3)
        assert result.outliers() == tinybench.result.tukey_outliers(values)


INDEPENDENT = np.random.default_rng(1).normal(10, 1, 100).tolist()
DRIFT = [float(i // 10) for i in range(60)]


class TestCautions:
    def test_nothing_to_say(self) -> None:
        result = BenchmarkResult("latency", INDEPENDENT)
        assert result.cautions == []
        assert result.independent_values == result.values
        assert result.mean_ci() == (result.ci_lower, result.ci_upper)
        assert "take care" not in result._repr_mimebundle_()["text/html"]

    def test_dependent_values_go_into_batches(self) -> None:
        result = BenchmarkResult("latency", DRIFT)
        assert result.dependence["autocorrelation"] > 0.9
        assert result.dependence["effective_count"] < 10
        assert result.dependence["batches"] == len(result.independent_values) == 6
        assert result.median_ci() == (1.0, 5.0)
        low, high = result.mean_ci()
        assert low < result.ci_lower < result.ci_upper < high
        (sentence,) = result.cautions
        assert sentence in result._repr_mimebundle_()["text/html"]
        assert result.to_dict()["cautions"] == [sentence]

    def test_the_level_decides_how_many_batches(self) -> None:
        result = BenchmarkResult("latency", DRIFT, confidence=0.99)
        assert result.dependence["batches"] == 8
        assert result.median_ci() == (0.0, 5.0)

    def test_rounds_at_random_times_may_drift(self) -> None:
        """Where each round began at a random time of a session, their order says nothing about the interval."""
        result = BenchmarkResult("latency", DRIFT, {"round_starts": list(range(60))})
        assert result.cautions == []
        assert result.median_ci() == tinybench.result.percentile_interval(DRIFT, 50)

    def test_skewed_values(self) -> None:
        values = np.random.default_rng(2).lognormal(0, 1, 50).tolist()
        assert [text.split(":")[0] for text in BenchmarkResult("latency", values).cautions] == ["values are skewed"]

    @pytest.mark.parametrize(
        ("values", "unit", "said"),
        [
            ([1.0], "s", "one value says nothing about scatter, measure at least 6 times"),
            ([1.0], "B", "enough for a constant, such as the size of a file"),
            ([1.0], "", "enough for a constant"),
            ([1.0] * 2, "s", "all 2 values are equal: the clock or counter is too coarse to show scatter; put more"),
            ([1.0] * 20, "J", "all 20 values are equal: the clock or counter is too coarse"),
            ([1.0] * 20, "B", "all 20 values are equal: they are a constant, or their counter is too coarse"),
            ([1.0, 2.0], "B", "2 values are too few for an interval of the median, which takes at least 6"),
            ([1.0, 2.0, 3.0, 4.0, 5.0], "s", "5 values are too few for an interval of the median"),
            ([1e-200, 2e-200], "s", "2 values are too few for an interval"),
        ],
    )
    def test_values_that_tell_little(self, values: list[float], unit: str, said: str) -> None:
        result = BenchmarkResult("size", values, unit=unit)
        assert said in result.cautions[0]
        assert said in result.to_dict()["cautions"][0]
        assert result.cautions[0] in html.unescape(result._repr_mimebundle_()["text/html"])

    def test_at_another_confidence_other_numbers_are_few(self) -> None:
        few = BenchmarkResult("latency", [1.0, 3.0, 2.0, 5.0, 4.0, 6.0, 9.0], unit="s", confidence=0.99)
        assert few.cautions[0] == "7 values are too few for an interval of the median, which takes at least 8"

    @pytest.mark.parametrize("values", [[0.966], [0.966] * 3, [0.96, 0.97]])
    def test_shares_of_rows_need_no_more_values(self, values: list[float]) -> None:
        metadata = {"accuracy": 0.966, "wilson_interval": [0.942, 0.980], "correct": 348, "total": 360}
        assert BenchmarkResult("accuracy", values, metadata).cautions == []
        assert BenchmarkResult("accuracy", values, {"correct": 348, "total": 360}).cautions == []


class TestJson:
    @given(
        values=st.lists(st.floats(-1e150, 1e150, exclude_min=True, exclude_max=True), min_size=1, max_size=20),
        metadata=st.dictionaries(st.text(), json_values, max_size=4),
        name=st.text(),
        unit=st.sampled_from(["s", "B", "J", "W", ""]),
        confidence=st.floats(0.5, 0.999),
    )
    def test_round_trip_without_loss(self, name: str, values: list[float], **options: Any) -> None:
        result = BenchmarkResult(name, values, **options)
        text = json.dumps(result.to_dict(), allow_nan=False)
        copy = BenchmarkResult.from_dict(json.loads(text))
        assert copy == result
        assert [value.hex() for value in copy.values] == [value.hex() for value in result.values]
        assert json.dumps(copy.to_dict(), allow_nan=False) == text

    def test_summary_goes_along(self) -> None:
        result = BenchmarkResult("latency", [1.0, 2.0, 4.0], unit="s")
        data = result.to_dict()
        for name in ("count", "mean", "std", "median", "min_val", "max_val", "ci_lower", "ci_upper"):
            assert data[name] == getattr(result, name)

    def test_numpy_metadata(self) -> None:
        metadata = {"batch": np.int64(8), "shape": (1, 28), "thresholds": np.array([0.5, 0.25]), 3: np.bool_(True)}
        result = BenchmarkResult("x", [1.0], metadata=metadata)  # type: ignore[arg-type]
        assert result.metadata == {"batch": 8, "shape": [1, 28], "thresholds": [0.5, 0.25], "3": True}

    @pytest.mark.parametrize("name", ["metric_name", "values"])
    def test_missing_field(self, name: str) -> None:
        data = BenchmarkResult("x", [1.0]).to_dict()
        del data[name]
        with pytest.raises(ValueError, match=f"'{name}' is missing; a result is written by"):
            BenchmarkResult.from_dict(data)

    def test_defaults_of_a_bare_file(self) -> None:
        assert BenchmarkResult.from_dict({"metric_name": "x", "values": [1.0]}) == BenchmarkResult("x", [1.0])


class TestDisplay:
    @pytest.mark.parametrize(
        ("values", "given", "text"),
        [
            ([12.1, 11.9, 12.4, 12.0, 12.2, 12.1], {}, "x: median 12.1 s (95 % CI 11.9–12.4), n = 6"),
            (INDEPENDENT, {"confidence": 0.999}, "x: median 10.0 s (99.9 % CI 9.7–10.3), n = 100"),
            ([11.5, 12.3, 13.1], {}, "x: median 12.3 s (range 11.5–13.1), n = 3, too few for an interval"),
            ([0.0123], {}, "x: median 12.3 ms, n = 1, too few for an interval"),
            ([-0.4, 0.6, 1.0, -0.5, 0.2, 0.4], {"unit": "B"}, "x: median 0.3 B (95 % CI −0.5 to 1.0), n = 6"),
            (DRIFT, {}, "x: median 2.5 s (95 % CI 1.0–5.0), n = 60 in 6 batches"),
            (
                [*map(float, range(8))],
                {},
                "x: median 4 s (95 % CI 0–7), n = 8, which depend on one another: too narrow",
            ),
            ([*map(float, range(8))], {"metadata": {"round_starts": []}}, "x: median 4 s (95 % CI 0–7), n = 8"),
            ([2.0] * 7, {"metadata": {"measured": False}}, "x: median 2 s, n = 7, all equal, an estimate"),
            ([123456.0] * 2, {"unit": "qps"}, "x: median 123456 qps, n = 2, all equal"),
        ],
    )
    def test_text(self, values: list[float], given: dict[str, Any], text: str) -> None:
        assert str(BenchmarkResult("x", values, **{"unit": "s"} | given)) == text

    def test_shares_of_rows_show_their_own_interval(self) -> None:
        metadata = {"accuracy": 0.966, "wilson_interval": [0.942, 0.980], "correct": 348, "total": 360}
        assert (
            str(BenchmarkResult("accuracy", [0.96, 0.97], metadata))
            == "accuracy: 0.966 (95 % CI 0.942–0.980), 348 of 360"
        )

    def test_mean_and_deviation_where_asked_for(self) -> None:
        result = BenchmarkResult("latency", [0.0115, 0.0123, 0.0131], unit="s")
        assert f"{result:sd}" == "latency: 12.3 ± 0.8 ms (mean ± sd), n = 3, too few for an interval"
        assert f"{result:>90}" == str(result).rjust(90)

    def test_notebook_shows_table_and_text(self) -> None:
        result = BenchmarkResult("latency", [0.01, 0.011, 0.012, 0.2], unit="s")
        shown = result._repr_mimebundle_()
        assert shown["text/plain"] == str(result)
        table = shown["text/html"]
        assert table.count('scope="row"') == 6
        assert "4 values are too few to see whether they depend on one another or are skewed" in table
        assert "(too few values for an interval)" in table
        assert "4, 1 of them outliers" in table
        assert "estimate" not in table

    def test_estimate_says_so(self) -> None:
        result = BenchmarkResult("energy", [1.0, 1.1], metadata={"measured": False}, unit="J")
        assert not result.measured
        assert "no, an estimate" in result._repr_mimebundle_()["text/html"]

    def test_names_cannot_inject_markup(self) -> None:
        table = BenchmarkResult("<script>alert(1)</script>", [1.0], unit="<b>")._repr_mimebundle_()["text/html"]
        assert "<script>" not in table
        assert "<b>" not in table

    @given(samples)
    def test_always_shows_something(self, values: list[float]) -> None:
        result = BenchmarkResult("x", values, unit="s")
        assert f", n = {len(values)}" in str(result)
        assert "<table>" in result._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: check_values([]), "empty; a result needs at least one measurement"),
        (lambda: required_runs(-1.0, 0.5), "std is -1.0; a standard deviation"),
        (lambda: required_runs(math.nan, 0.5), "std is nan"),
        (lambda: required_runs(1.0, 0.0), "half_width is 0.0; it must be positive"),
        (lambda: required_runs(1.0, math.inf), "half_width is inf"),
        (lambda: required_runs(1.0, 0.5, 1.0), "confidence is 1.0; it must lie between 0 and 1"),
        (lambda: tinybench.result.runs_for_percentile(0), "q is 0; a percentile with an interval"),
        (lambda: tinybench.result.runs_for_percentile(0.95), r"q is 0\.95; .* \(p95 is 95, not 0\.95\)"),
        (lambda: tinybench.result.percentile_interval([1.0] * 50, 0.5), r"p95 is 95, not 0\.95"),
        (lambda: tinybench.result.runs_for_percentile(100), "q is 100; a percentile with an interval"),
        (lambda: tinybench.result.runs_for_percentile(-1), "q is -1; a percentile with an interval"),
        (lambda: tinybench.result.runs_for_percentile(101), "q is 101; a percentile with an interval"),
        (lambda: json_safe([0, {1}], "here"), r"here\[1\] is \{1\}, which JSON cannot hold"),
        (lambda: BenchmarkResult("x", [1.0]).percentile(-1), r"p95 is 95, not 0\.95"),
        (lambda: BenchmarkResult("x", [1.0]).percentile(0.95), r"p95 is 95, not 0\.95"),
        (lambda: BenchmarkResult("x", [1.0]).percentile(100.5), r"p95 is 95, not 0\.95"),
        (lambda: BenchmarkResult("x", [1.0] * 5).median_ci(), "at least 6 values, got 5"),
        (lambda: BenchmarkResult("x", []), "values is empty"),
        (lambda: BenchmarkResult("x", [1.0, math.nan]), r"values\[1\] is nan"),
        (lambda: BenchmarkResult("x", ["1.0"]), r"values\[0\] is '1\.0', not a number"),  # type: ignore[list-item]
        (lambda: BenchmarkResult("x", [1.0], confidence=95), "confidence is 95; it must lie between 0 and 1"),
        (lambda: BenchmarkResult("x", [1.0], confidence=math.nan), "confidence is nan"),
        (lambda: BenchmarkResult("x", [1.0], {"model": object}), r"metadata\['model'\] is <class 'object'>"),
        (lambda: BenchmarkResult("x", [1.0], {"a": [1, {"b": math.inf}]}), r"metadata\['a'\]\[1\]\['b'\] is inf"),
    ],
)
def test_bad_input_is_named(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        use()


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(tinybench.result).failed == 0


def test_what_no_meter_saw_says_so() -> None:
    unseen = BenchmarkResult("memory", [0.0] * 3, {"seen": False, "caution": "at most 70 MB"}, "B")
    assert str(unseen) == "memory: median 0 B, n = 3, all equal, not seen"
    assert unseen.cautions == ["at most 70 MB"]
    assert "at most 70 MB" in unseen._repr_mimebundle_()["text/html"]
