"""Hidden checks of module 01: against exact fractions, SciPy, binomial sums and simulated coverage."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import all_close, close, draw, expect, judges, number, raises, words
from tinybench.result import BenchmarkResult, bootstrap_interval, percentile_interval, tukey_outliers

NAN, INF = float("nan"), float("inf")


@judges("check_values")
def values_are_guarded(student: Any) -> None:
    """Numbers pass in order, anything else is refused with its index."""
    rng = draw()
    drawn = rng.normal(0, 1e3, 2)
    whole = rng.integers(-50, 50, 2)
    good = [int(whole[0]), float(drawn[0]), drawn[1], whole[1]]
    kept = student.check_values(iter(good))
    truth = [float(value) for value in (whole[0], drawn[0], drawn[1], whole[1])]
    all_close(kept, truth, "check_values of ints, floats and NumPy numbers")
    expect(all(type(value) is float for value in kept), "check_values should return plain floats")
    size = int(rng.integers(40, 60))
    for bad in (NAN, INF, -INF, "1.0", None, True, [1.0], 1j):
        # two digits, so that an index is not in a message by accident
        for index in (0, int(rng.integers(10, size - 1)), size - 1):
            values: list[Any] = [1.0] * size
            values[index] = bad
            raises(
                ValueError, lambda v=values: student.check_values(v), f"{bad!r} at index {index}", mentions=[str(index)]
            )
    raises(ValueError, lambda: student.check_values([]), "an empty list")


@judges("mean_and_std")
def moments_are_exact(student: Any) -> None:
    """Both moments agree with exact rational arithmetic, also where digits cancel."""
    rng = draw()
    hard = [1e7 + 0.2] + [1e7 + 0.1, 1e7 + 0.3] * 500
    shifted = [float(x) for x in rng.normal(1e9, 1e-3, 50)]
    for values in (hard, shifted, [float(x) for x in rng.lognormal(0, 1, 31)], [5.0, 5.0]):
        exact = [Fraction(value) for value in values]
        mean = sum(exact) / len(exact)
        variance = sum((value - mean) ** 2 for value in exact) / (len(exact) - 1)
        got_mean, got_std = student.mean_and_std(values)
        close(got_mean, float(mean), "the mean", rel=1e-14)
        cause = "divide by n − 1, and subtract the mean before squaring"
        close(got_std, math.sqrt(variance), "the standard deviation", cause=cause, rel=1e-9)
    all_close(student.mean_and_std([7.5]), [7.5, 0.0], "mean and std of a single value")


@judges("t_interval")
def t_interval_is_student_t(student: Any) -> None:
    """The interval equals SciPy's for several sizes and confidences."""
    rng = draw()
    for n in (2, 3, 10, 40):
        values = [float(x) for x in rng.normal(5, 2, n)]
        for confidence in (0.8, 0.95, 0.99):
            truth = stats.t.interval(confidence, n - 1, np.mean(values), stats.sem(values))
            cause = "half-width is t(n − 1) · s / √n, with the quantile at 0.5 + confidence / 2"
            got = student.t_interval(values, confidence)
            all_close(got, truth, f"t_interval at n = {n}, confidence {confidence}", cause=cause, rel=1e-7)
    all_close(student.t_interval([4.0]), [4.0, 4.0], "the interval of one value")


@judges("required_runs")
def runs_reach_the_half_width(student: Any) -> None:
    """The number is the smallest that suffices."""
    rng = draw()
    drawn = [
        (float(std), float(std / over), round(float(confidence), 2))
        for std, over, confidence in zip(
            rng.uniform(0.1, 4, 6), [0.4, *rng.uniform(1, 15, 5)], rng.uniform(0.7, 0.99, 6), strict=True
        )
    ]
    for std, half, confidence in (
        (2.0, 0.5, 0.95),
        (1.0, 1.0, 0.99),
        (0.3, 0.1, 0.9),
        (1.5, 0.1, 0.95),
        (1, 5, 0.95),
        *drawn,
    ):
        sizes = np.arange(2, 3000)
        widths = stats.t.ppf(0.5 + confidence / 2, sizes - 1) * std / np.sqrt(sizes)
        truth = int(sizes[np.argmax(widths <= half)])
        got = student.required_runs(std, half, confidence)
        close(
            got,
            truth,
            f"required_runs({std}, {half}, {confidence})",
            cause="use t, not z, and the smallest n that suffices",
        )
    raises(ValueError, lambda: student.required_runs(1.0, 0.0), "a half-width of 0")
    raises(ValueError, lambda: student.required_runs(-1.0, 0.5), "a negative deviation")
    raises(ValueError, lambda: student.required_runs(1.0, 0.5, 1.5), "a confidence of 1.5")


def answer_runs(student: Any) -> None:
    """The answers follow from the t interval."""
    sizes = np.arange(2, 3000)
    truth = int(sizes[np.argmax(stats.t.ppf(0.975, sizes - 1) * 1.5 / np.sqrt(sizes) <= 0.1)])
    close(student.runs_for_tenth_of_a_millisecond(), truth, "runs for ± 0.1 ms", cause="call required_runs(1.5, 0.1)")
    close(student.growth_when_half_width_halves(), 4, "the growth", cause="n grows with the square of 1 / half-width")


@judges("runs_for_percentile")
def percentiles_need_enough_runs(student: Any) -> None:
    """The smallest n at which the extreme measurement bounds the percentile."""
    rng = draw()
    drawn = [
        (round(float(q), 1), round(float(confidence), 2))
        for low, high in ((0.5, 20), (20, 80), (80, 99.5))
        for q, confidence in zip(rng.uniform(low, high, 3), rng.uniform(0.7, 0.99, 3), strict=True)
    ]
    given = ((50, 0.95), (90, 0.95), (99, 0.95), (99.9, 0.95), (5, 0.95), (75, 0.9), (95, 0.99))
    for q, confidence in (*given, *drawn):
        p, n = max(q, 100 - q) / 100, 1
        while p**n > (1 - confidence) / 2:
            n += 1
        got = student.runs_for_percentile(q, confidence)
        close(
            got,
            n,
            f"runs_for_percentile({q}, {confidence})",
            cause="both sides must miss by at most (1 − confidence) / 2",
        )
    for q in (0, 100, -5):
        raises(ValueError, lambda q=q: student.runs_for_percentile(q), f"percentile {q}")


@judges("percentile_interval")
def percentile_interval_counts(student: Any) -> None:
    """The ends are the order statistics that binomial sums give, and the coverage holds on skewed data."""
    rng = draw()
    for n, q, confidence in ((6, 50, 0.95), (30, 50, 0.95), (80, 90, 0.95), (400, 99, 0.95), (60, 25, 0.8)):
        values = [float(x) for x in rng.lognormal(0, 1, n)]
        below, tail = stats.binom(n, q / 100), (1 - confidence) / 2
        lower = max(rank for rank in range(1, n + 1) if below.cdf(rank - 1) <= tail)
        upper = min(rank for rank in range(1, n + 1) if below.sf(rank - 1) <= tail)
        ordered = sorted(values)
        truth = [ordered[lower - 1], ordered[upper - 1]]
        cause = f"ranks {lower} and {upper} of {n} expected, each side missing at most {tail:g}"
        got = student.percentile_interval(values, q, confidence)
        all_close(got, truth, f"percentile_interval of {n} values, q = {q}", cause=cause)
    raises(ValueError, lambda: student.percentile_interval([1.0] * 35, 90), "35 values for p90", mentions=["36"])


@judges("bootstrap_interval")
def bootstrap_resamples(student: Any) -> None:
    """Ends near SciPy's percentile bootstrap, moved by seed and confidence alone."""
    values = [float(x) for x in draw().lognormal(0, 0.7, 60)]
    for statistic in (np.mean, np.median, np.max):
        for confidence in (0.8, 0.95):
            truth = stats.bootstrap(
                (values,),
                statistic,
                method="percentile",
                confidence_level=confidence,
                n_resamples=6000,
                rng=np.random.default_rng(5),
            )
            got = student.bootstrap_interval(values, statistic, confidence, seed=11, resamples=3000)
            tail = (1 - confidence) / 2
            chance = 5 * math.sqrt(tail * (1 - tail) * (1 / 3000 + 1 / 6000))  # of both simulations together
            for end, mine, at in zip(("lower", "upper"), got, (tail, 1 - tail), strict=True):
                low, high = np.quantile(truth.bootstrap_distribution, [at - chance, at + chance])
                plain = number(mine, f"the {end} end")
                expect(
                    low - 1e-9 <= plain <= high + 1e-9,
                    f"the {end} end for {statistic.__name__} at {confidence}: expected {low:.6g} to {high:.6g}, got "
                    f"{plain:.6g}; resample with replacement at the full size and take the middle of the replicas",
                )
    first = student.bootstrap_interval(values, np.mean, seed=1, resamples=200)
    all_close(
        student.bootstrap_interval(values, np.mean, seed=1, resamples=200), list(first), "the interval of the same seed"
    )
    expect(
        list(student.bootstrap_interval(values, np.mean, seed=2, resamples=200)) != list(first),
        "another seed should give slightly another interval: pass the seed to default_rng",
    )
    calls: list[int] = []

    def first_value(sample: Any) -> float:
        calls.append(len(sample))
        return float(sample[0])

    student.bootstrap_interval(values, first_value, resamples=150)
    expect(calls.count(60) >= 150, f"150 resamples of all 60 values expected, got {len(calls)} of {set(calls)} values")


@judges("tukey_outliers")
def outliers_are_tukeys(student: Any) -> None:
    """Values beyond 1.5 interquartile ranges on either side, in their order."""
    rng = draw()
    for _ in range(20):
        values = [float(x) for x in rng.standard_t(1.5, 40)]
        first, third = np.percentile(values, [25, 75])
        truth = [v for v in values if v < first - 1.5 * (third - first) or v > third + 1.5 * (third - first)]
        all_close(
            student.tukey_outliers(values), truth, "tukey_outliers", cause="fences lie 1.5 IQR beyond the quartiles"
        )


@judges("format_measurement")
def measurements_read_well(student: Any) -> None:
    """Units scale and digits follow the deviation."""
    rng = draw()
    drawn: dict[tuple[float, float, str], str] = {}
    for factor, unit, name in ((1e-3, "s", "ms"), (1e-6, "s", "µs"), (1e6, "B", "MB"), (1e-3, "J", "mJ")):
        # in steps of the last digit shown: a deviation of 3 to 8, or of 11 to 18, and what rounding takes away
        for places, least, most in ((1, 3, 9), (2, 3, 9), (1, 11, 19), (2, 11, 19), (0, 30, 90)):
            step = 10.0**-places
            mean = int(rng.integers(2 * 10**places + 1, 900 * 10**places))
            std = int(rng.integers(least, most))
            above, beyond = (float(x) for x in rng.uniform(-0.3, 0.3, 2))
            text = f"{mean * step:.{places}f} ± {std * step:.{places}f} {name}"
            drawn[(mean + above) * step * factor, (std + beyond) * step * factor, unit] = text
    for (middle, deviation, unit), truth in {
        (0.0123, 0.0008, "s"): "12.3 ± 0.8 ms",
        (4.56e-6, 1.2e-7, "s"): "4.56 ± 0.12 µs",
        (2.5e6, 3e4, "B"): "2.50 ± 0.03 MB",
        (1.5, 0.0, "s"): "1.5 ± 0 s",
        (123.4, 55.0, "B"): "123 ± 55 B",
        (0.0021, 0.0003, "J"): "2.1 ± 0.3 mJ",
        (0.95, 0.02, ""): "0.95 ± 0.02",
        **drawn,
    }.items():
        got = str(student.format_measurement(middle, deviation, unit))
        expect(got == truth, f"format_measurement({middle}, {deviation}, {unit!r}): {truth!r} expected, got {got!r}")


@judges("BenchmarkResult.__post_init__")
def result_summarises(student: Any) -> None:
    """Every field of the summary, and the guard on the way in."""
    values = [float(x) for x in draw().lognormal(0, 1, 12)]
    result = student.BenchmarkResult("latency", values, unit="s", confidence=0.9)
    lower, upper = stats.t.interval(0.9, 11, np.mean(values), stats.sem(values))
    truth = {
        "mean": np.mean(values),
        "std": np.std(values, ddof=1),
        "median": np.median(values),
        "min_val": min(values),
        "max_val": max(values),
        "count": 12,
        "ci_lower": lower,
        "ci_upper": upper,
    }
    for name, value in truth.items():
        close(getattr(result, name), float(value), f"result.{name}", rel=1e-7)
    single = student.BenchmarkResult("latency", [2.0])
    all_close([single.std, single.ci_lower, single.ci_upper], [0.0, 2.0, 2.0], "std and interval of one value")
    expect(isinstance(student.BenchmarkResult("x", (1, 2)).values, list), "values should be kept as a list")
    raises(ValueError, lambda: student.BenchmarkResult("latency", [1.0, NAN]), "a NaN among the values", mentions=["1"])
    raises(ValueError, lambda: student.BenchmarkResult("latency", []), "no values")


@judges(*(f"BenchmarkResult.{name}" for name in ("cv", "percentile", "median_ci", "bootstrap_ci", "outliers")))
def methods_use_their_functions(student: Any) -> None:
    """Each method hands its values, confidence and seed to its function."""
    rng = draw()
    values = [float(x) for x in rng.lognormal(0, 1, 60)]
    result = student.BenchmarkResult("latency", values, confidence=0.8)
    close(result.cv, float(np.std(values, ddof=1) / np.mean(values)), "cv")
    close(
        student.BenchmarkResult("gain", [-2.0, -4.0]).cv,
        math.sqrt(2) / 3,
        "cv of negative values",
        cause="divide by |mean|",
    )
    expect(math.isnan(number(student.BenchmarkResult("x", [0.0, 0.0]).cv, "cv")), "cv should be NaN when the mean is 0")
    for q in (0, 12.5, 95, 100):
        close(result.percentile(q), float(np.percentile(values, q)), f"percentile({q})")
    for q in (-1, 101):
        raises(ValueError, lambda q=q: result.percentile(q), f"percentile({q})")
    all_close(
        result.median_ci(), percentile_interval(values, 50, 0.8), "median_ci", cause="use the result's confidence"
    )
    expected = bootstrap_interval(values, np.mean, 0.8, 3, 300)
    all_close(
        result.bootstrap_ci(np.mean, seed=3, resamples=300),
        expected,
        "bootstrap_ci",
        cause="pass statistic, confidence and seed on",
    )
    all_close(result.outliers(), tukey_outliers(values), "outliers()")


@judges("BenchmarkResult.to_dict", "BenchmarkResult.from_dict", "BenchmarkResult.__str__")
def results_survive_json(student: Any) -> None:
    """What is written and what is read are whole, each by itself; a round trip keeps every bit."""
    rng = draw()
    metric, note, *keys = words(rng, 4)

    def made(size: int) -> tuple[BenchmarkResult, dict[str, Any]]:
        metadata = {keys[0]: np.int64(rng.integers(100)), "shape": (1, 28), "note": f"{note}ü"}
        given: dict[str, Any] = {
            "metadata": metadata | {"nested": {keys[1]: False}},
            "confidence": round(rng.uniform(0.7, 0.99), 3),
        }
        given |= {"metric_name": metric, "values": [float(x) for x in rng.lognormal(0, 1, size)], "unit": "J"}
        return BenchmarkResult(**given), given

    truth, given = made(9)
    text = json.dumps(student.BenchmarkResult(**given).to_dict(), allow_nan=False)
    data = json.loads(text)
    for name, value in truth.to_dict().items():
        expect(name in data, f"to_dict() should also hold {name}, for those who read the file")
        _same(data[name], value, f"to_dict()[{name!r}]")
    # besides the student's own text, one that the student's code has not written, and so cannot remember
    other, _ = made(int(rng.integers(5, 12)))
    for written, result in ((text, truth), (json.dumps(other.to_dict()), other)):
        copy = student.BenchmarkResult.from_dict(json.loads(written))
        for name, value in result.to_dict().items():
            _same(getattr(copy, name), value, f"after a round trip {name}")
    raises(
        ValueError,
        lambda: student.BenchmarkResult.from_dict({"metric_name": "x"}),
        "a dict without values",
        mentions=["values"],
    )
    plain = BenchmarkResult(metric, [float(x) for x in rng.lognormal(0, 1, 4)])
    bare = student.BenchmarkResult.from_dict({"metric_name": metric, "values": plain.values})
    for name, value in plain.to_dict().items():
        _same(getattr(bare, name), value, f"{name} of a dict of a name and values")
    for values, unit in (([1.0e6, 1.2e6], "B"), (other.values, "J"), ([x / 1e3 for x in truth.values], "s")):
        expected = str(BenchmarkResult(metric, values, unit=unit))
        shown = str(student.BenchmarkResult(metric, values, unit=unit))
        expect(shown == expected, f"{expected!r} expected, got {shown!r}")


def _same(got: Any, truth: Any, what: str) -> None:
    """Fail unless two pieces of JSON are the same to the last bit."""
    same = got == truth and repr(got) == repr(truth)
    expect(same, f"{what} should be {truth!r}, it is {got!r}")


def answer_understanding(student: Any) -> None:
    """The three numbers follow from t, from 95 % of 200, and from (q/100)^n."""
    close(student.t_against_z_at_three(), 4.303 / 1.96, "question 1", cause="4.303 / 1.96", rel=0.02)
    close(student.misses_in_two_hundred(), 10, "question 2", cause="5 % of 200 miss")
    expect(
        list(student.intervals_from_fifty()) == [True, False], "question 3: p90 takes 36 measurements, p99 takes 368"
    )
