"""What spoils a comparison is said, and decides nothing: dependent rounds, coarse clocks, suspended machines."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tinybench.comparison import compare, median_ratio, sign_test
from tinybench.result import BenchmarkResult
from tinybench.support.comparisons.two_samples import welch


def latency(values: Any, **metadata: Any) -> BenchmarkResult:
    return BenchmarkResult("latency", [float(v) for v in values], unit="s", metadata=metadata)


def test_rounds_that_depend_on_one_another_count_as_fewer() -> None:
    rng, wander = np.random.default_rng(11), [0.0]
    for _ in range(199):
        wander.append(0.8 * wander[-1] + rng.normal(0, 0.02))
    values = 0.97e-3 * np.exp(wander)
    found = compare(latency(values), latency([1e-3] * 200), paired=True)
    assert found.checks["autocorrelation"] > 0.6
    assert f"n = 200 rounds that count as {found.checks['effective_rounds']:.0f}" in str(found)
    assert "batches" in found.method
    alone = median_ratio(list(values), [1e-3] * 200)
    assert found.ratio_ci[1] - found.ratio_ci[0] > 1.3 * (alone[2] - alone[1])
    shuffled = compare(latency(rng.permutation(values)), latency([1e-3] * 200), paired=True)
    assert "effective_rounds" not in shuffled.checks
    assert shuffled.counts == (200, 200)


@pytest.mark.audit
@pytest.mark.parametrize("paired", [True, False])
def test_batches_keep_the_level(paired: bool) -> None:
    rng, alarms, naive, trials = np.random.default_rng(12), 0, 0, 150
    for _ in range(trials):
        noise = rng.normal(0, 0.05, (2, 160))
        for i in range(1, 160):
            noise[:, i] += 0.7 * noise[:, i - 1]
        a, b = np.exp(noise[:, 60:]) * 1e-3
        alarms += compare(latency(a), latency(b), paired=paired).p_value <= 0.05
        naive += (sign_test(a, b) if paired else welch(np.log(a), np.log(b))[0]) <= 0.05
    assert naive / trials > 0.2
    assert alarms / trials < 0.13


def test_a_coin_makes_the_sign_test_exact_whatever_the_noise() -> None:
    rng, alarms = np.random.default_rng(13), 0
    for _ in range(400):
        steps = np.round(np.cumsum(rng.normal(0, 0.1, 80)), 1).reshape(40, 2)  # wanders, and ties
        first = rng.random(40) < 0.5
        a, b = np.where(first, steps[:, 0], steps[:, 1]), np.where(first, steps[:, 1], steps[:, 0])
        alarms += compare(np.exp(a).tolist(), np.exp(b).tolist(), paired=True).p_value <= 0.05
    assert alarms / 400 < 0.08


def test_a_coarse_clock_is_called_one() -> None:
    rng = np.random.default_rng(14)
    a, b = (latency(np.floor(rng.uniform(size, size + 1, 40) + 1) * 0.015625) for size in (0.2, 0.25))
    for found in (compare(a, b, paired=True), compare(a, b, paired=True, margin=0.1), compare(a, b, paired=False)):
        assert found.verdict.startswith("undecided: the clock is too coarse")
    assert "it saw no time pass" in compare(latency([0] * 9), latency([0] * 9), paired=True).verdict
    assert "steps of 15.6 ms" in str(compare(a, b, paired=True))
    counted = BenchmarkResult("memory", [8.0] * 9, unit="B")  # bytes tie because they are equal
    assert compare(counted, counted, paired=True, margin=0.01).verdict == "equivalent"


def test_a_suspended_machine_decides_nothing() -> None:
    rng = np.random.default_rng(15)
    a, b = 1e-3 * rng.lognormal(0, 0.02, (2, 40))
    a = 0.9 * a
    b[7] = 7200.0
    for paired in (True, False):
        found = compare(latency(a), latency(b), paired=paired)
        assert "was the machine suspended?" in str(found)
        assert found.verdict != "slower"
    assert compare(latency(a), latency(b), paired=True).ratio == pytest.approx(0.9, rel=0.02)
    assert compare(latency(b), latency(b[::-1]), paired=False).verdict.startswith("undecided")


def test_what_the_layout_in_memory_does_is_no_difference() -> None:
    rng, loops = np.random.default_rng(16), {"loops": 500}
    a, b = (size * rng.lognormal(0, 1e-3, 100) for size in (20.0e-9, 20.3e-9))
    assert "2 ns a call" in compare(latency(a, **loops), latency(b, **loops), paired=True).verdict
    assert compare(latency(1e3 * a, **loops), latency(1e3 * b, **loops), paired=True).verdict == "faster"
    less = 1e3 * b
    assert "less than 0.5 %" in compare(latency(less * 0.996, **loops), latency(less, **loops), paired=True).verdict
    assert compare(latency(less * 0.996, loops=1), latency(less, loops=1), paired=True).verdict == "faster"
    assert "less than 0.25 %" in compare(latency(less * 0.998, loops=1), latency(less, loops=1), paired=True).verdict


def test_advice_is_in_time_or_says_that_nobody_would_wait() -> None:
    rng = np.random.default_rng(17)
    a, b = 1e-3 * rng.lognormal(0, 0.05, (2, 60))
    near = b * np.exp(0.05 * np.resize([1, -1], 60) + 2e-4)
    told = compare(latency(near, loops=1), latency(b, loops=1), paired=True).verdict
    assert (
        re.fullmatch(r"undecided: needs about [\d,]+ more rounds( \(about \d+ (s|min)\))?", told)
        or "reasonable" in told
    )
    slow = compare(latency(1e4 * near, loops=1), latency(1e4 * b, loops=1), paired=True)
    assert re.search(r"not decidable in reasonable time, within ± \d", slow.verdict)
    assert "about" in compare(latency(a * 1.01, loops=1), latency(b, loops=1), paired=True).verdict


def test_far_apart_is_said_in_times() -> None:
    rng = np.random.default_rng(18)
    short, long = latency(rng.lognormal(-17, 0.1, 30)), latency(rng.lognormal(0, 0.1, 30))
    assert re.match(r"a is over 1,000,000 times as fast as b \(95 % CI over", str(compare(short, long, paired=True)))
    assert str(compare(long, short, paired=True)).startswith("a takes over 1,000,000 times as long as b")
    tenth = compare(latency([1e-3] * 9), latency([2e-2] * 9), paired=True)
    assert str(tenth).startswith(
        "a is 20 times as fast as b (no interval, as all are equal, p ≤ 0.0039, the least that 9 rounds allow"
    )
    assert str(compare([1.0] * 3, [1e-6] * 3, paired=True)).endswith(
        "no finite interval, p ≤ 0.25, the least that 3 rounds allow, n = 3)"
    )


def test_latencies_measured_apart_are_said_to_be() -> None:
    rng = np.random.default_rng(19)
    a, b = rng.lognormal(-7, 0.02, (2, 30))
    apart = compare(latency(a, loops=1), latency(b, loops=1))
    assert "how sessions differ is not in the interval" in str(apart)
    assert apart.caution in apart.to_dict()["caution"]
    together = [latency(times, loops=1, pairing="one") for times in (a, b)]
    assert compare(*together).caution == compare(*together, paired=False).caution == ""


def wandering(phi: float, trials: int, n: int, seed: int) -> np.ndarray:
    """Return rows of AR(1) values of variance 1."""
    noise = np.random.default_rng(seed).normal(0, np.sqrt(1 - phi**2), (trials, n + 100))
    for i in range(1, n + 100):
        noise[:, i] += phi * noise[:, i - 1]
    return noise[:, 100:]


@pytest.mark.parametrize(("phi", "n", "most"), [(0.3, 100, 0.1), (0.6, 100, 0.1), (0.8, 300, 0.1), (0.9, 300, 0.13)])
def test_few_batches_keep_the_level_and_agree_with_the_interval(phi: float, n: int, most: float) -> None:
    """The page coverage.md has the exact levels, from 1,000 trials each."""
    found = [
        compare(np.exp(0.05 * row).tolist(), [1.0] * n, paired=True)
        for row in wandering(phi, 150, n, seed=int(100 * phi))
    ]
    assert np.mean([each.p_value <= 0.05 for each in found]) <= most
    for each in found:
        low, high = each.ratio_ci
        less, more = each.difference_ci
        assert (each.p_value <= 0.05) == (not low <= 1 <= high) == (not less <= 0 <= more)


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("n", [30, 100, 5462])
def test_a_difference_of_19_times_has_a_tiny_p_value_however_few_the_batches(n: int, positive: bool) -> None:
    [row] = wandering(0.999 if n > 1000 else 0.9, 1, n, seed=3)
    a, b = (np.exp(0.05 * row) / 19, np.ones(n)) if positive else (row / 20 - 18, np.ones(n))
    found = compare(a.tolist(), b.tolist(), paired=True)
    assert re.search(r"Student's t test.*, of medians of \d+ batches", found.method)
    assert found.p_value < 1e-3
    assert "p < 0.001" in str(found)
    assert found.verdict == "lower"


@pytest.mark.parametrize("n", range(2, 13))
def test_the_sign_test_says_when_its_p_value_is_the_least(n: int) -> None:
    found = compare(latency([1.1] * n), latency([1.0] * n), paired=True)
    least = f"p ≤ {2 / 2**n:.2g}, the least that {n} rounds allow"
    assert (least in str(found)) == (n <= 10)
    assert (least.removeprefix("p ") in found._repr_mimebundle_()["text/html"]) == (n <= 10)
    mixed = compare(latency([1.1] * (n - 1) + [0.9]), latency([1.0] * n), paired=True)
    assert "the least" not in str(mixed)
