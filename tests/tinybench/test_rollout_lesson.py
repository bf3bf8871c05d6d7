"""`tinybench.rollout`: its functions against independent truths and for any values."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import comb
from statsmodels.stats.proportion import samplesize_proportions_2indep_onetail  # type: ignore[import-untyped]

from tinybench.rollout import (
    STAGES,
    RolloutState,
    Seen,
    advance,
    best_split,
    change_points,
    in_canary,
    share_e_value,
    users_needed,
)

few = settings(max_examples=30, deadline=None)
numbers = st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=30)


# ---- A/B tests and rollout


@few
@given(
    st.floats(0.01, 0.4), st.floats(0.005, 0.3), st.sampled_from([0.01, 0.05, 0.1]), st.sampled_from([0.5, 0.8, 0.9])
)
def test_users_needed_are_statsmodels(share: float, change: float, level: float, power: float) -> None:
    needed = users_needed(share, change, level, power)
    p, q = share, share + change
    deviation = math.sqrt((p * (1 - p) + q * (1 - q)) / needed)
    reached = stats.norm.cdf(change / deviation - stats.norm.isf(level / 2))
    assert reached >= power - 1e-9
    if needed > 1:
        deviation = math.sqrt((p * (1 - p) + q * (1 - q)) / (needed - 1))
        assert stats.norm.cdf(change / deviation - stats.norm.isf(level / 2)) < power + 1e-9
    # statsmodels takes the pooled share for the scatter without a change: nearly the same
    theirs = samplesize_proportions_2indep_onetail(change, share, power, alpha=level, alternative="two-sided")
    assert needed == pytest.approx(theirs, rel=0.12, abs=12)


@few
@given(st.integers(0, 60), st.sampled_from([0.05, 0.2, 0.5, 0.9]))
def test_evidence_is_a_likelihood_ratio_with_the_mean_1(both: int, share: float) -> None:
    chances = stats.binom.pmf(np.arange(both + 1), both, share)
    values = [share_e_value(new, both, share) for new in range(both + 1)]
    assert float(np.dot(chances, values)) == pytest.approx(1)
    # a uniform share makes each number of events as probable as any other
    order = [1 / ((both + 1) * comb(both, new)) / share**new / (1 - share) ** (both - new) for new in range(both + 1)]
    assert values == pytest.approx(order)


def test_evidence_begins_with_1_and_is_capped() -> None:
    assert share_e_value(0, 0) == 1
    assert share_e_value(10**6, 10**6) == pytest.approx(math.exp(700))


def test_evidence_however_often_one_looks() -> None:
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        new = np.cumsum(rng.random(100) < 0.2)
        alarms += any(share_e_value(int(n), both + 1, 0.2) >= 10 for both, n in enumerate(new))
    assert alarms <= stats.binom.isf(1e-6, 200, 0.1)


@few
@given(st.text(max_size=20), st.text(max_size=5), st.floats(0, 1), st.floats(0, 1))
def test_whoever_is_in_stays_in(user: str, salt: str, a: float, b: float) -> None:
    small, large = sorted((a, b))
    assert not in_canary(user, small, salt) or in_canary(user, large, salt)
    assert in_canary(user, 1.0, salt)
    assert not in_canary(user, 0.0, salt)
    digest = hashlib.sha256((salt + user).encode()).hexdigest()[:16]
    assert in_canary(user, a, salt) == (int(digest, 16) / 2**64 < a)


def test_the_canary_gets_its_share_of_users_and_others_by_another_salt() -> None:
    users = [f"user {i}" for i in range(4000)]
    first, second = ({user for user in users if in_canary(user, 0.2, salt)} for salt in ("", "other"))
    for chosen, chance in ((first, 0.2), (second, 0.2), (first & second, 0.04)):
        assert stats.binomtest(len(chosen), 4000, chance).pvalue > 1e-3  # of fixed names


looks = st.lists(
    st.builds(
        Seen,
        st.booleans(),
        st.dictionaries(st.sampled_from(["slow", "failed"]), st.sampled_from([0.1, 1.0, 99.9, 100.0, 1e9])),
        st.booleans(),
    ),
    max_size=12,
)


@few
@given(looks)
def test_a_rollout_goes_one_stage_at_a_time_and_ends_on_the_safe_side(seen: list[Seen]) -> None:
    state = RolloutState()
    for look in seen:
        after = advance(state, look)
        harm = look.fresh and any(value >= 100 for value in look.evidence.values())
        if state.status != "running":
            assert after == state
        elif harm:
            assert (after.status, after.share) == ("rolled back", 0)
            assert look.evidence[after.why] == max(look.evidence.values())
        elif not look.fresh:
            assert (after.stage, after.blind) == (state.stage, state.blind + 1)
            assert (after.status, after.why) == (("rolled back", "blind") if after.blind == 3 else ("running", ""))
        elif not look.enough:
            assert after == replace(state, blind=0)
        elif state.stage == len(STAGES) - 1:
            assert (after.status, after.share) == ("promoted", 1)
        else:
            assert (after.stage, after.status, after.blind) == (state.stage + 1, "running", 0)
        state = after


# ---- history


@few
@given(numbers)
def test_the_best_split_is_that_of_the_rank_sum_test(values: list[float]) -> None:
    n = len(values)
    scores = {}
    for k in range(1, n):
        u = stats.mannwhitneyu(values[:k], values[k:], method="asymptotic").statistic
        scores[k] = abs(u - k * (n - k) / 2) / math.sqrt(k * (n - k) * (n + 1) / 12)
    k, score = best_split(values)
    assert score == pytest.approx(max(scores.values()), abs=1e-9) == pytest.approx(scores[k], abs=1e-9)
    assert best_split([3 * value + 1 for value in values]) == (k, score)


def test_change_points_are_those_made() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(size=45)
    values[15:] += 12
    values[30:] -= 6
    assert change_points(values.tolist(), permutations=199) == [15, 30]
    assert change_points(rng.normal(size=30).tolist()) == []
    assert change_points([1.0] * 40) == []
    assert change_points([0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 5.0]) == []  # shorter than twice 5


def test_change_points_without_a_change_are_rare() -> None:
    rng = np.random.default_rng(5)
    alarms = sum(bool(change_points(rng.standard_t(2, 12).tolist(), 0.1, permutations=49)) for _ in range(40))
    assert alarms <= stats.binom.isf(1e-6, 40, 0.1)
