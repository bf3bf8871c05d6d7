"""Independent values from dependent series: the spacing, the choice of values, and the false alarms that are left."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tinybench.course.lessons.m16_dependence import autoregressive, of_users
from tinybench.production import DriftAlarm
from tinybench.support.basics.spacing import SpacedChoice, independent_spacing, mean_distance
from tinybench.tools.drifting import DriftWatch, NewRows, Reference
from tinybench.tools.drifting.new_rows import MOST_USERS

Rng = np.random.Generator


@given(st.integers(1, 50), st.integers(0, 2**32))
@settings(max_examples=30)
def test_chosen_values_are_at_least_the_spacing_and_less_than_twice_the_spacing_apart(spacing: int, seed: int) -> None:
    choice = SpacedChoice(spacing, random.Random(seed))
    chosen = [n for n in range(2000) if choice.takes()]
    assert chosen[0] < spacing
    gaps = np.diff(chosen)
    assert spacing <= gaps.min() <= gaps.max() < 2 * spacing
    assert abs(gaps.mean() - mean_distance(spacing)) <= 6 * spacing / np.sqrt(12 * len(gaps))


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.normal(size=300),
        lambda rng: rng.poisson(0.7, 300),
        lambda rng: (rng.random(300) < 0.02).astype(float),
        lambda rng: rng.standard_cauchy((250, 6)),
        lambda rng: np.column_stack([rng.normal(size=250), np.full(250, 3.0), rng.random(250) < 0.01]),
    ],
    ids=["normal", "ties", "rare", "six columns", "constant and rare"],
)
def test_one_in_ten_independent_series_is_taken_for_dependent(make: Callable[[Rng], np.ndarray]) -> None:
    """For any distribution and number of columns: more than the binomial's bound would have a probability of 1e-6."""
    spaced = sum(independent_spacing(make(np.random.default_rng(seed)), seed) > 1 for seed in range(100))
    assert spaced <= stats.binom.isf(1e-6, 100, 0.1)


@pytest.mark.parametrize(("part", "time"), [(0.5, 3), (0.8, 9), (0.95, 39)])
def test_the_spacing_is_about_twice_the_correlation_time(part: float, time: float) -> None:
    """The correlation time of an AR(1) process is (1 + φ) / (1 − φ)."""
    found = [independent_spacing(autoregressive(part, 20_000, np.random.default_rng(seed))) for seed in range(10)]
    assert 1.5 * time < min(found) <= max(found) < 5 * time
    assert 1.8 * time < np.median(found) < 3.5 * time


def test_the_spacing_is_that_of_the_column_that_depends_most() -> None:
    rng = np.random.default_rng(0)
    columns = [autoregressive(part, 5000, rng) for part in (0.0, 0.8, 0.0)]
    assert independent_spacing(np.column_stack(columns)) >= 12
    assert independent_spacing(np.column_stack(columns[::2])) < 6


def test_a_slow_swing_below_noise_is_seen() -> None:
    """Its autocorrelation of 0.2 lasts for a hundred values."""
    rng = np.random.default_rng(1)
    assert independent_spacing(rng.normal(size=10_000) + 0.5 * autoregressive(0.99, 10_000, rng)) > 30


def test_missing_and_infinite_values_have_ranks() -> None:
    values = autoregressive(0.8, 3000, np.random.default_rng(2))
    values[values > 1] = np.nan
    values[values < -1] = -np.inf
    assert 8 < independent_spacing(values) < 40


@pytest.mark.parametrize("size", [0, 1, 199])
def test_few_values_do_not_show_their_dependence(size: int) -> None:
    with pytest.raises(ValueError, match="cannot show whether values depend on one another; give at least 200"):
        independent_spacing(np.arange(float(size)))


@pytest.mark.parametrize(
    "values",
    [np.arange(1000.0), np.sin(np.arange(1000) / 100), np.repeat([0.0, 1.0], 500)],
    ids=["a trend", "two periods", "a step, as of sorted classes"],
)
def test_a_reference_without_enough_independent_values_is_refused(values: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"only \d+ of them are nearly independent; give at least .* shuffle them"):
        DriftAlarm(values.tolist())
    with pytest.raises(ValueError, match="the rows cannot be a reference for drift: 1000 values depend"):
        Reference.of(values)


KINDS: dict[str, Callable[[int, Rng], np.ndarray]] = {
    "AR(1) 0.5": lambda n, rng: autoregressive(0.5, n, rng),
    "AR(1) 0.95": lambda n, rng: autoregressive(0.95, n, rng),
    "5 values a user": lambda n, rng: of_users(5, n, rng)[0],
    "tied": lambda n, rng: np.floor(of_users(16, n, rng)[0]),
    "a day of 100 values": lambda n, rng: (
        rng.normal(size=n) + np.sin(2 * np.pi * (np.arange(n) + rng.integers(100)) / 100)
    ),
    "one of three features": lambda n, rng: np.column_stack([rng.normal(size=(n, 2)), autoregressive(0.9, n, rng)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_alarms_in_unchanged_streams_are_rare_though_values_depend_on_one_another(kind: str) -> None:
    """More than the bound would have a probability below 1e-6 at 5 %."""
    rang, spacings = 0, []
    for seed in range(40):
        rows = KINDS[kind](10_000, np.random.default_rng(seed)).reshape(10_000, -1)
        reference = Reference.of(rows[:8000], seed=seed)
        rang += DriftWatch(reference, 0.05, seed).add(rows[8000:])
        spacings.append(reference.spacing)
    assert min(spacings) > 1
    assert rang <= stats.binom.isf(1e-6, 40, 0.05)


def test_a_shift_of_dependent_values_is_found_and_its_feature_named() -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([autoregressive(0.8, 8000, rng) for _ in range(3)])
    rows[5000:, 1] += 1
    watch = DriftWatch(Reference.of(rows[:4000]))
    assert watch.add(rows[4000:])
    assert 1000 < (watch.streams["inputs"].first or 0) < 2500
    name, evidence = next(iter(watch.features.items()))
    assert name == "x1"
    assert evidence > 100


def test_one_row_of_each_user_counts() -> None:
    rows = np.random.default_rng(4).normal(size=(400, 2))
    users = np.repeat([f"u{n}" for n in range(200)], 2)
    reference = Reference.of(rows, users=users)
    assert (reference.one_for_each_user, reference.spacing, reference.rows) == (True, 1, 160)
    new = NewRows(reference)
    batch = new.batch(rows[:6], [0, 1, 2, 3, 4, 5], ["a", "a", None, "b", "a", "c"])
    assert batch.numbers.tolist() == [1, 4, 6]
    assert np.array_equal(batch.rows, rows[[0, 3, 5]])
    assert batch.labels == ["0", "3", "5"]
    assert new.batch(rows[:3], None, ["c", "d", "d"]).numbers.tolist() == [8]
    assert not len(new.batch(rows[:3]).numbers)  # nobody knows their users, and the reference counts users


def test_rows_without_a_user_count_by_their_distance_and_users_are_forgotten_in_the_end() -> None:
    rows = np.random.default_rng(5).normal(size=(200, 1))
    new = NewRows(Reference.of(rows, seed=1))
    assert new.batch(rows[:4], None, [None, "a", "a", None]).numbers.tolist() == [1, 2, 4]
    others = [f"u{n}" for n in range(MOST_USERS - 1)]
    assert len(new.batch(np.zeros((len(others), 1)), None, others).numbers) == len(others)
    assert not len(new.batch(rows[:1], None, ["a"]).numbers)
    assert len(new.batch(rows[:2], None, ["one more", "a"]).numbers) == 2


def test_near_copies_of_a_user_ring_and_one_of_each_user_does_not() -> None:
    """The reference was shuffled, so its order says nothing about users who send five rows each."""
    rng = np.random.default_rng(8)
    reference = Reference.of(rng.normal(size=(1000, 3)))
    assert reference.spacing == 1
    rows, users = np.repeat(rng.normal(size=(300, 3)), 5, axis=0), np.repeat(np.arange(300), 5).astype(str)
    assert DriftWatch(reference).add(rows + 0.01 * rng.normal(size=rows.shape))
    assert not DriftWatch(reference).add(rows + 0.01 * rng.normal(size=rows.shape), users=users.tolist())
