"""Honest solutions of module 01 that are written otherwise."""

VARIANTS = {
    "answer_first": [("answer_counted", "return 9", "return sum(ms < 13.2 for ms in (12, 11, 13, 12, 12, 25, 11, 12, 12, 12))")],
    "check_values": [
        ("values_by_generator", "", '''
def _finite(pair):
    index, value = pair
    match value:
        case bool() | np.bool_() | str() | bytes():
            raise ValueError(f"not a number at {index}")
        case Real() if math.isfinite(value):
            return float(value)
    raise ValueError(f"value number {index} is unusable: {value}")


def check_values(values):
    if not (found := list(map(_finite, enumerate(values)))):
        raise ValueError("nothing was measured")
    return found
'''),
        ("values_as_array", "    return checked\n", "    return np.array(checked)\n"),
        ("values_as_tuple_of_numpy", "    return checked\n", "    return tuple(map(np.float64, checked))\n"),
    ],
    "mean_and_std": [
        ("moments_by_statistics", "", '''
import statistics


def mean_and_std(values):
    mean = statistics.mean(values)
    return [mean, statistics.stdev(values, mean) if len(values) > 1 else 0]
'''),
        ("moments_by_fractions", "", '''
from fractions import Fraction


def mean_and_std(values):
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    if len(exact) < 2:
        return mean, 0
    return mean, math.sqrt(sum((v - mean) * (v - mean) for v in exact) / (len(exact) - 1))
'''),
        ("std_of_one_is_nan", "return mean, 0.0", "return mean, math.nan"),
        ("moments_by_numpys_own", "", '''
def mean_and_std(values):
    data = np.asarray(values, dtype=np.longdouble)
    return float(np.mean(data)), float(np.std(data, ddof=1))
'''),
        ("moments_by_numpy", "", '''
def mean_and_std(values):
    """Two passes by NumPy, on values that begin near 0."""
    data = np.array(values, dtype=np.longdouble)
    shift = data[0]
    data = data - shift
    spread = np.sqrt(((data - data.mean()) ** 2).sum() / (len(data) - 1)) if len(data) > 1 else 0.0
    return np.array([float(shift + data.mean()), float(spread)])
'''),
    ],
    "t_interval": [
        ("t_as_list", "return mean - half_width, mean + half_width", "return [mean - half_width, mean + half_width]"),
        ("t_by_scipy_stats", "", '''
from scipy import stats


def t_interval(values, confidence=0.95):
    if len(values) == 1:
        return values[0], values[0]
    return stats.t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
'''),
        ("t_without_a_special_case", "    if n == 1:\n        return mean, mean\n", ""),
        ("t_by_scipy_interval", "", '''
from scipy import stats


def t_interval(values, confidence=0.95):
    return stats.t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
'''),
        ("t_by_scipy_test", "", '''
def t_interval(values, confidence=0.95):
    from scipy.stats import ttest_1samp

    ends = ttest_1samp(values, 0).confidence_interval(confidence)
    return ends.low, ends.high
'''),
        ("t_by_statistics", "", '''
from statistics import fmean, stdev

from scipy.stats import t as student


def t_interval(values, confidence=0.95):
    if len(values) < 2:
        return (math.nan, math.nan)
    reach = student.ppf((1 + confidence) / 2, df=len(values) - 1) * stdev(values) / len(values) ** 0.5
    return fmean(values) - reach, fmean(values) + reach
'''),
        ("t_as_array", "", '''
def t_interval(values: list[float], confidence: float = 0.95):
    from scipy import stats

    mean, std = mean_and_std(values)
    n = len(values)
    t = stats.t(n - 1).ppf((1 + confidence) / 2) if n > 1 else 0.0
    print("n =", n)
    return mean + np.array([-1, 1]) * t * std / n**0.5
'''),
    ],
    "required_runs": [
        ("runs_by_counting", "", '''
import itertools

from scipy import stats


def _enough(n, std, half_width, confidence):
    return stats.t.ppf(0.5 + confidence / 2, n - 1) * std / math.sqrt(n) <= half_width


def required_runs(std, half_width, confidence=0.95):
    if std < 0 or half_width <= 0 or not 0 < confidence < 1:
        raise ValueError("std is at least 0, half_width is positive, and confidence between 0 and 1")
    return next(n for n in itertools.count(2) if _enough(n, std, half_width, confidence))
'''),
        ("runs_as_numpy", "    return runs\n", "    return np.int64(runs)\n"),
    ],
    "answer_runs": [
        ("answer_by_function", "return 867", "return required_runs(1.5, half_width=0.1)"),
        ("answer_as_floats", "", '''
runs_for_tenth_of_a_millisecond = lambda: 867.0


def growth_when_half_width_halves():
    return 4.0
'''),
    ],
    "runs_for_percentile": [
        ("percentile_runs_by_loop", "", '''
def runs_for_percentile(q, confidence=0.95):
    if q < 1 or q >= 100:
        raise ValueError("percentiles go from 1 to below 100")
    share, n, chance = max(q, 100 - q) / 100, 0, 1.0
    while chance > (1 - confidence) / 2:
        n, chance = n + 1, share ** (n + 1)
    return n
'''),
        ("percentile_runs_by_numpy", "return math.ceil(math.log(", "return np.ceil(np.log("),
    ],
    "percentile_interval": [
        ("percentile_by_scipy_stats", "", '''
from scipy import stats


def percentile_interval(values, q, confidence=0.95):
    needed = runs_for_percentile(q, confidence)
    if len(values) < needed:
        raise ValueError(f"it takes {needed} values")
    tail, below = (1 - confidence) / 2, stats.binom(len(values), q / 100)
    ranks = range(len(values))
    lower = max(rank for rank in ranks if below.cdf(rank) <= tail)
    upper = min(rank for rank in ranks if below.sf(rank) <= tail)
    ordered = np.sort(values)
    return [ordered[lower], ordered[upper]]
'''),
        ("percentile_as_array", "return ordered[lower], ordered[upper]", "return np.array(ordered)[[lower, upper]]"),
    ],
    "bootstrap_interval": [
        ("bootstrap_by_choice", "", '''
def bootstrap_interval(values, statistic, confidence=0.95, seed=0, resamples=2000):
    rng, replicas = np.random.default_rng(seed=seed), []
    while len(replicas) < resamples:
        replicas.append(statistic(rng.choice(values, len(values))))
    return np.quantile(replicas, [(1 - confidence) / 2, (1 + confidence) / 2])
'''),
        ("bootstrap_by_matrix", "", '''
def bootstrap_interval(values, statistic, confidence=0.95, seed=0, resamples=2000):
    n = len(values)
    rows = np.asarray(values)[np.random.default_rng(seed).integers(0, n, (resamples, n))]
    replicas = sorted(map(statistic, rows))
    tail = (1 - confidence) / 2
    return [np.quantile(replicas, at, method="hazen") for at in (tail, 1 - tail)]
'''),
        ("bootstrap_by_scipy", "", '''
def bootstrap_interval(values, statistic, confidence=0.95, seed=0, resamples=2000):
    from scipy import stats

    settings = dict(method="percentile", vectorized=False, n_resamples=resamples, confidence_level=confidence)
    found = stats.bootstrap((values,), statistic, **settings, rng=np.random.default_rng(seed))
    return found.confidence_interval
'''),
    ],
    "tukey_outliers": [
        ("outliers_as_array", "", '''
def tukey_outliers(values):
    data = np.asarray(values)
    low, high = np.quantile(data, [0.25, 0.75])
    return data[np.abs(data - (low + high) / 2) > 2 * (high - low)]
'''),
        ("outliers_by_statistics", "", '''
from statistics import quantiles


def tukey_outliers(values):
    first, _, third = quantiles(values, n=4, method="inclusive")
    fence = 1.5 * (third - first)
    return tuple(filter(lambda v: not first - fence <= v <= third + fence, values))
'''),
        ("outliers_as_generator", "return [value for value in values if value < first - reach or value > third + reach]",
         "return (value for value in values if value < first - reach or value > third + reach)"),
    ],
    "method_cv": [
        ("cv_early_return", "", '''
def _cv(self):
    if self.mean == 0 or len(self.values) == 1:
        return float("nan")
    return np.float64(self.std) / np.abs(self.mean)


add_to_class(BenchmarkResult)(property(_cv))
BenchmarkResult.cv = BenchmarkResult._cv
'''),
        ("cv_as_numpy", "return self.std / abs(self.mean) if self.mean else math.nan",
         "return np.nan if self.count < 2 or not self.mean else np.abs(self.std / self.mean)"),
    ],
    "method_percentile": [
        ("percentile_by_interpolation", "", '''
@add_to_class(BenchmarkResult)
def percentile(self, q):
    if q < 0 or q > 100 or 0 < q < 1:
        raise ValueError(f"{q} is no percentile")
    ordered = sorted(self.values)
    at = q / 100 * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] * (1 - (at - low)) + ordered[high] * (at - low)
'''),
    ],
    "method_intervals": [
        ("intervals_as_lists", "return percentile_interval(self.independent_values, 50, self.confidence)",
         "return [*percentile_interval(q=50, confidence=self.confidence, values=self.independent_values)]"),
    ],
    "answer_understanding": [
        ("answers_computed", "", '''
def misses_in_two_hundred():
    return 200 * 0.05


def intervals_from_fifty():
    return [50 >= runs_for_percentile(q) for q in (90, 99)]
'''),
        ("answers_as_array", "return True, False", "return np.array([True, False])"),
    ],
}  # fmt: skip
