"""Drift: references, windows, sequential alarms, against SciPy, students' functions and truth."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tests.benchmarks.drift import chi2_of, ks_of, p_value, psi_of
from tinybench.production import DriftAlarm, conformal_p, ks, psi
from tinybench.tools.drifting import Capital, DriftWatch, Reference
from tinybench.tools.drifting.drift_watch import BETS, Ranks, bets
from tinybench.tools.drifting.reference import OTHER, labels_of

COUNTS = arrays(int, st.just(7), elements=st.integers(0, 50)).filter(lambda counts: counts.sum() > 0)


def normal(n: int, columns: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, columns))


@given(COUNTS, COUNTS)
@settings(max_examples=40)
def test_statistics_of_counts_are_those_of_values(a: np.ndarray, b: np.ndarray) -> None:
    values = [np.repeat(np.arange(7), counts) for counts in (a, b)]
    assert psi_of(a, b) == pytest.approx(psi(a, b))
    assert ks_of(a, b) == pytest.approx(ks(*values))
    assert ks_of(a, b) == pytest.approx(stats.ks_2samp(*values, method="asymp").statistic)
    table = np.array([a, b])[:, a + b > 0]
    truth = stats.chi2_contingency(table, correction=False).statistic if table.shape[1] > 1 else 0.0
    assert chi2_of(a, b) == pytest.approx(truth, abs=1e-9)


def test_p_values_by_permutation_are_uniform_where_nothing_changed() -> None:
    """The share of false alarms at 5 % lies where a binomial of 200 does, with a probability above 1 − 1e-6."""
    rang = 0
    for seed in range(200):
        values = np.random.default_rng(seed).poisson(2, size=(1060, 1))
        rang += p_value(Reference.of(values[60:], seed=seed), values[:60], "PSI", 99, seed) <= 0.05
    assert rang <= stats.binom.ppf(1 - 1e-6, 200, 0.05)


def test_what_cannot_be_judged_is_said() -> None:
    reference = Reference.of(normal(200))
    with pytest.raises(ValueError, match="rows of 2 numbers; the reference has 1"):
        DriftWatch(reference).add(normal(10, 2))
    for wrong in ({"outputs": [1, 2]}, {"users": ["a", "b"]}):
        with pytest.raises(ValueError, match=f"2 {next(iter(wrong))} for 10 rows"):
            DriftWatch(reference).add(normal(10), **wrong)
    with pytest.raises(ValueError, match="199 values cannot show whether values depend on one another"):
        Reference.of(normal(199))
    with pytest.raises(ValueError, match="numbers, one row after the other"):
        Reference.of(["a"] * 50)
    with pytest.raises(ValueError, match="3 outputs for 50 rows"):
        Reference.of(normal(50), [1, 2, 3])
    with pytest.raises(ValueError, match="3 users for 50 rows"):
        Reference.of(normal(50), users=[1, 2, 3])


def test_a_reference_is_kept_as_json(tmp_path: Path) -> None:
    rows = normal(200, 2)
    rows[:5, 0], rows[5:9, 1] = np.nan, np.inf
    reference = Reference.of(rows, np.arange(200) % 3)
    reference.save(tmp_path / "kept.json")
    json.loads((tmp_path / "kept.json").read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    again = Reference.load(tmp_path / "kept.json")
    assert (again.labels, again.spacing, again.one_for_each_user) == (reference.labels, reference.spacing, False)
    for a, b in zip(again.inputs, reference.inputs, strict=True):
        assert a.name == b.name
        assert all(np.array_equal(getattr(a, what), getattr(b, what)) for what in ("edges", "groups", "counts"))
    np.savez(tmp_path / "rows.npz", X=rows, outputs=np.arange(200) % 3)
    assert Reference.load(tmp_path / "rows.npz").labels == reference.labels


@pytest.mark.parametrize("text", ["", "[]", '{"inputs": []}', '{"inputs": [], "labels": {}}', "\x00\xff"])
def test_what_is_no_reference_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "kept.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"kept\.json is no reference: "):
        Reference.load(tmp_path / "kept.json")


def test_a_file_that_is_missing_is_said(tmp_path: Path) -> None:
    for name in ("kept.json", "rows.npz"):
        with pytest.raises(FileNotFoundError, match=f"{name}: no such file"):
            Reference.load(tmp_path / name)


@pytest.mark.parametrize("rows", [200, 400, 500, 5000])
def test_groups_of_numbers_that_never_repeat_are_filled(rows: int) -> None:
    [feature] = Reference.of(normal(rows, seed=rows)).inputs
    counts = feature.grouped(feature.counts)
    assert counts.sum() == rows - rows // 5
    assert np.count_nonzero(counts[1:]) >= min(10, rows // 50)
    assert counts[0] < rows / 2


def test_every_value_has_a_bin() -> None:
    [feature] = Reference.of(normal(500)).inputs
    odd = np.array([-np.inf, -1e300, np.nan, 1e300, np.inf, 0.0])
    assert len(set(feature.bins(odd)[[0, 2, 3]])) == 3
    assert feature.histogram(odd).sum() == len(odd)
    assert feature.grouped(feature.counts)[1:-1].min() > 10


def test_a_feature_that_never_moves_is_said_and_its_first_movement_seen() -> None:
    rows = np.hstack([normal(500), np.full((500, 1), 3.0)])
    reference = Reference.of(rows)
    assert reference.constants == ["x1"]
    watch = DriftWatch(reference)
    assert not watch.add(np.hstack([normal(200, seed=1), np.full((200, 1), 3.0)]))
    assert watch.add(np.hstack([normal(20, seed=2), np.full((20, 1), 3.1)]))
    assert next(iter(watch.features)) == "x1"


def test_nan_that_was_rare_and_becomes_frequent_is_drift() -> None:
    rows, rng = normal(1000), np.random.default_rng(1)
    rows[rng.random(1000) < 0.05] = np.nan
    reference, now = Reference.of(rows), normal(300, seed=2)
    now[rng.random(300) < 0.05] = np.nan
    assert not DriftWatch(reference).add(now)
    now[rng.random(300) < 0.4] = np.nan
    assert DriftWatch(reference).add(now)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
@settings(max_examples=30)
def test_p_values_in_blocks_are_those_of_students_one_by_one(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    seen, new = rng.integers(0, 5, 30), rng.integers(0, 5, n)

    class Half(random.Random):
        def random(self) -> float:
            return 0.5

    class Halves:
        def random(self, shape: tuple[int, ...]) -> np.ndarray:
            return np.full(shape, 0.5)

    ranks = Ranks([np.bincount(seen, minlength=5)], Halves())  # type: ignore[arg-type]
    sofar = sorted(map(float, seen))
    truth = []
    for value in new.tolist():
        truth.append(conformal_p(sofar, value, Half()))
        sofar = sorted([*sofar, float(value)])
    assert ranks.p_values(new[:, None])[:, 0] == pytest.approx(truth)
    assert ranks.counts[0].tolist() == np.bincount(np.concatenate([seen, new]), minlength=5).tolist()


def test_bets_are_fair() -> None:
    """The mean of each over all p is 1 and never more; powers are a little less, for p is cut at 1e-9."""
    ends = np.concatenate([[0], np.geomspace(1e-9, 0.5, 20_000)])
    ends = np.concatenate([ends, 1 - ends[-2::-1]])
    means = np.diff(ends) @ bets((ends[1:] + ends[:-1]) / 2)
    assert means.max() < 1 + 1e-6
    assert means == pytest.approx(np.ones(BETS), abs=0.02)
    slopes = [0, 1, 2, 3, 8, 9]
    assert means[slopes] == pytest.approx(np.ones(len(slopes)), abs=1e-6)
    assert bets(np.array([0.0, 1.0])).min() > 0


@given(arrays(float, st.tuples(st.integers(0, 80), st.just(2), st.just(3)), elements=st.floats(0.1, 50)))
@settings(max_examples=50)
def test_capital_in_blocks_is_capital_one_by_one(factors: np.ndarray) -> None:
    capital, stakes, truth = Capital(2, 3), np.zeros((2, 3)), []
    for n, factor in enumerate(factors, 1):
        fresh = 1 / (1 + math.log(n)) - 1 / (1 + math.log(n + 1))
        stakes = np.minimum((stakes + fresh / 3) * factor, 1e100)
        truth.append(1 / (1 + math.log(n + 1)) + stakes.sum(axis=1))
    path = capital.add(factors)
    assert path.shape == (len(factors), 2)
    if factors.size and path.max() < 1e90:
        assert path == pytest.approx(np.array(truth))
        assert capital.evidence == pytest.approx(truth[-1])


def test_capital_never_leaves_the_range_of_numbers() -> None:
    capital = Capital(1, 1)
    assert np.isfinite(capital.add(np.full((500, 1, 1), np.inf))).all()
    assert np.isfinite(capital.add(np.full((500, 1, 1), 1e-3))).all()
    assert capital.evidence[0] >= capital.kept


def test_the_watch_is_quiet_where_nothing_changes_and_rings_where_something_does() -> None:
    """Of 20 equal streams of 2,000 rows few ring: more than 8 would have a probability below 1e-6 at 5 %."""
    rang = 0
    for seed in range(20):
        rows = normal(3000, 2, seed=seed)
        rang += DriftWatch(Reference.of(rows[:1000], seed=seed), seed=seed).add(rows[1000:])
    assert rang <= 8
    reference = Reference.of(normal(2000))
    for changed in (normal(300, seed=3) + 1, 3 * normal(300, seed=4), 0.3 * normal(300, seed=5), np.zeros((300, 1))):
        watch = DriftWatch(reference)
        watch.add(normal(500, seed=6))
        assert watch.streams["inputs"].first is None
        assert watch.add(changed)
        assert 500 < (watch.streams["inputs"].first or 0) <= 800


def test_the_watch_is_not_slower_to_see_a_late_change_than_students() -> None:
    values = normal(8000, seed=15)
    values[4000:] += 0.7
    watch, alarm = DriftWatch(Reference.of(values[:3000])), DriftAlarm(values[:3000, 0].tolist())
    watch.add(values[3000:])
    first = next(n for n, value in enumerate(values[3000:, 0].tolist(), 1) if alarm.add(value))
    assert 1000 < (watch.streams["inputs"].first or 0) < first + 20


def test_predictions_are_watched_by_their_labels() -> None:
    rng = np.random.default_rng(8)
    reference = Reference.of(normal(1000), rng.integers(0, 4, 1000))
    assert sum(reference.labels.values()) == 800
    watch = DriftWatch(reference)
    assert not watch.add(normal(300, seed=9), rng.integers(0, 4, 300))
    assert watch.add(normal(100, seed=10), np.zeros(100, dtype=int))
    assert not watch.streams["inputs"].alarm
    assert watch.streams["predictions"].alarm
    unheard = DriftWatch(reference)
    assert unheard.add(normal(20, seed=11), ["cat"] * 20)


@pytest.mark.parametrize(
    ("outputs", "labels"),
    [
        ([[0.1, 0.9], [0.8, 0.2]], ["1", "0"]),
        ([3, 4], ["3", "4"]),
        ([3.0, math.nan, 0.5, math.inf], ["3", OTHER, OTHER, OTHER]),
        ([["cat"], ["dog"]], ["cat", "dog"]),
        ([[2], [7]], ["2", "7"]),
        ([True, False], ["True", "False"]),
    ],
)
def test_labels_of_outputs(outputs: list[object], labels: list[str]) -> None:
    assert labels_of(outputs) == labels


def test_a_reference_of_numbers_has_no_labels() -> None:
    assert Reference.of(normal(200), normal(200)[:, 0]).labels == {}
