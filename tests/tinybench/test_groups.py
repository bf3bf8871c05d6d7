"""Rows that depend on each other: intervals and tests by groups, against statsmodels, enumeration and simulation."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tinybench import Benchmark, accuracy, compare, measure_accuracy, pareto
from tinybench.accuracy import cluster_interval, design_effect, effective_rows, mcnemar
from tinybench.result import BenchmarkResult
from tinybench.support.basics.grouped_rows import named_groups, sign_flip_p
from tinybench.support.basics.paired_rows import difference_interval, exact_p
from tinybench.tools.study.ship_decision import interval_of

RNG = np.random.default_rng(0)
IMAGES = np.repeat(np.arange(60), 6)
Y = np.zeros(360, int)


def drawn(rng: np.random.Generator, groups: int, size: int, correlation: float, share: float) -> np.ndarray:
    """Return which rows are right, a row for each group; rows of a group correlate as in a beta-binomial."""
    if correlation == 1:
        return np.repeat(rng.random((groups, 1)) < share, size, axis=1)
    scale = 1 / correlation - 1
    chances = rng.beta(share * scale, (1 - share) * scale, (groups, 1))
    return rng.random((groups, size)) < chances


def labels(correlation: float = 0.8, share: float = 0.9, seed: int = 1) -> np.ndarray:
    """Return labels for `Y`, wrong where 1, that agree within images."""
    return 1 - drawn(np.random.default_rng(seed), 60, 6, correlation, share).ravel().astype(int)


def test_the_design_effect_is_that_of_a_cluster_robust_variance() -> None:
    import statsmodels.api as sm

    for values in (1 - labels(), labels(seed=2) - labels(seed=3)):
        robust = sm.OLS(values.astype(float), np.ones(360)).fit(cov_type="cluster", cov_kwds={"groups": IMAGES})
        plain = np.var(values) / 360
        assert design_effect(values, IMAGES) == pytest.approx(robust.bse[0] ** 2 / plain, rel=1e-9)


def test_both_ends_are_wilsons() -> None:
    right = 1 - labels(0.3)
    assert cluster_interval(right, np.arange(360)) == pytest.approx(accuracy.wilson_interval(int(right.sum()), 360))
    once = 1 - labels(1)[::6]
    assert cluster_interval(np.repeat(once, 6), IMAGES) == pytest.approx(accuracy.wilson_interval(int(once.sum()), 60))
    low, high = cluster_interval(np.ones(360), IMAGES)
    assert (low, high) == (pytest.approx(accuracy.wilson_interval(60, 60)[0]), 1.0)
    assert effective_rows(np.ones(9), [1, 1, 1, 1, 1, 1, 1, 2, 3]) == pytest.approx(81 / 51)


def test_names_and_order_of_groups_do_not_matter() -> None:
    right, order = 1 - labels(), RNG.permutation(360)
    names = [f"image {image}" for image in IMAGES]
    assert cluster_interval(right[order], np.array(names)[order]) == pytest.approx(cluster_interval(right, IMAGES))


@pytest.mark.parametrize(("correlation", "share"), [(0.3, 0.97), (0.8, 0.9), (1, 0.97)])
def test_intervals_by_groups_cover(correlation: float, share: float) -> None:
    """The whole table is in tests/benchmarks/results/coverage.md."""
    rng, groups = np.random.default_rng(7), np.repeat(np.arange(60), 6)
    ends = [cluster_interval(drawn(rng, 60, 6, correlation, share).ravel(), groups) for _ in range(400)]
    held = np.mean([low <= share <= high for low, high in ends])
    assert held > 0.92
    rng = np.random.default_rng(7)
    counts = [int(drawn(rng, 60, 6, correlation, share).sum()) for _ in range(400)]
    by_rows = [accuracy.wilson_interval(count, 360) for count in counts]
    assert np.mean([low <= share <= high for low, high in by_rows]) < 0.85


def test_signs_are_counted() -> None:
    for only_a, only_b in [(7, 2), (0, 0), (5, 5), (12, 1)]:
        gaps = np.array([1] * only_a + [-1] * only_b + [0] * 9)
        truth = stats.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
        assert sign_flip_p(gaps) == (pytest.approx(truth), True)
    steps = np.array([6, -2, 5, 3, 0, 1])
    sums = [abs(np.dot(signs, np.abs(steps))) for signs in product((-1, 1), repeat=len(steps))]
    assert sign_flip_p(steps)[0] == pytest.approx(np.mean(np.array(sums) >= steps.sum()))
    many = RNG.integers(-5, 6, 3000)
    p_value, exact = sign_flip_p(many)
    assert exact
    assert not sign_flip_p(np.concatenate([many, many]))[1]
    assert stats.chi2.sf((abs(many.sum()) - 1) ** 2 / np.sum(many**2), 1) == pytest.approx(p_value, abs=0.01)


def test_mcnemar_by_groups() -> None:
    a, b = labels(seed=4, share=0.95), labels(seed=5, share=0.85)
    rows, alone = mcnemar(Y, a, b), mcnemar(Y, a, b, np.arange(360))
    assert alone.p_value == pytest.approx(exact_p(rows.only_a, rows.only_b))
    assert alone.difference_ci == pytest.approx(rows.difference_ci)
    assert rows.difference_ci == difference_interval(rows.only_a, rows.only_b, 360)
    found = mcnemar(Y, a, b, IMAGES)
    assert (found.only_a, found.only_b, found.groups, found.exact) == (rows.only_a, rows.only_b, 60, True)
    assert found.p_value > rows.p_value
    assert found.difference_ci[0] < rows.difference_ci[0] < found.difference < rows.difference_ci[1]
    assert "360 rows in 60 groups" in str(found)
    assert "signs of groups, exact" in str(found)
    same = mcnemar(Y, a, a, IMAGES)
    assert same.p_value == 1
    assert same.difference_ci[0] < 0 < same.difference_ci[1]


def test_the_test_of_equal_models_by_groups_holds_its_level() -> None:
    rng, alarms, rows, held = np.random.default_rng(11), 0, 0, 0
    for _ in range(400):
        a, b = (drawn(rng, 60, 6, 0.6, 0.9).ravel().astype(int) for _ in "ab")
        found = mcnemar(Y + 1, a, b, IMAGES)
        alarms += found.p_value < 0.05
        rows += mcnemar(Y + 1, a, b).p_value < 0.05
        held += found.difference_ci[0] <= 0 <= found.difference_ci[1]
    assert alarms <= 28
    assert held >= 376
    assert rows > 80


def test_a_result_keeps_its_groups_and_prints_them() -> None:
    found = measure_accuracy(lambda rows: labels(), (np.zeros((360, 1)), Y), groups=IMAGES)
    about = found.metadata
    assert about["groups"] == 60
    assert about["design_effect"] == pytest.approx(design_effect(1 - labels(), IMAGES))
    assert about["wilson_interval"] == pytest.approx(cluster_interval(1 - labels(), IMAGES))
    assert f"of 360 in 60 groups, design effect {about['design_effect']:.3g}" in str(found)
    assert BenchmarkResult.from_dict(found.to_dict()).metadata == about
    assert pareto.interval(found) == interval_of("accuracy_min", found) == tuple(about["wilson_interval"])


def test_groups_of_several_datasets() -> None:
    day, night = (np.zeros((4, 1)), [0, 0, 1, 0]), (np.zeros((2, 1)), [0, 1])

    def model(rows: Any) -> np.ndarray:
        return np.zeros(len(rows))

    for groups in ({"day": [1, 1, 2, 2], "night": [2, 3]}, [[1, 1, 2, 2], [2, 3]]):
        found = measure_accuracy(model, {"day": day, "night": night}, groups=groups).metadata
        assert found["groups"] == 3
        assert found["datasets"]["night"]["groups"] == 2
    for wrong in (
        [1, 2, 3, 4, 5, 6],
        {"day": [1, 1, 2, 2]},
        [[1, 1, 2], [2, 3]],
        [[1] * 4, [2, 3]],
        [[None, 1, 2, 2], [1, 2]],
    ):
        with pytest.raises(ValueError, match="group"):
            measure_accuracy(model, {"day": day, "night": night}, groups=wrong)
    assert list(named_groups(["a", "b"], {"one": 2})["one"]) == ["a", "b"]


def results(*groups: Any) -> dict[str, BenchmarkResult]:
    said = {f"model {place}": labels(seed=place, share=0.95 - 0.1 * place) for place in range(len(groups))}
    return {
        name: measure_accuracy(lambda rows, one=one: one, (np.zeros((360, 1)), Y), groups=ids)
        for (name, one), ids in zip(said.items(), groups, strict=True)
    }


def test_models_are_compared_by_groups() -> None:
    class Model:
        def __init__(self, place: int) -> None:
            self.name, self.said = f"model {place}", labels(seed=place, share=0.95 - 0.1 * place)

        def predict(self, rows: Any) -> np.ndarray:
            return self.said

    bench = Benchmark([Model(0), Model(1)], datasets=(np.zeros((360, 1)), Y))
    by_rows = bench.compare_models("accuracy")[1]
    bench.run_accuracy_benchmark(groups=IMAGES)
    by_groups = bench.compare_models("accuracy")[1]
    truth = mcnemar(Y, Model(1).said, Model(0).said, IMAGES)
    assert by_groups["p_value"] == pytest.approx(truth.p_value)
    assert (by_groups["difference_lower"], by_groups["difference_upper"]) == pytest.approx(truth.difference_ci)
    assert by_groups["p_value"] > by_rows["p_value"]


def test_groups_are_never_ignored() -> None:
    from tinybench.support.metric_tests import compare_pair

    grouped, plain = results(IMAGES, None).values()
    other = results(np.repeat(np.arange(120), 3))["model 0"]
    for pair in ((grouped, plain), (plain, grouped), (grouped, other)):
        with pytest.raises(ValueError, match="groups"):
            compare_pair("accuracy", ("a", "b"), *pair)
        with pytest.raises(ValueError, match="groups"):
            pareto.membership_probability([{"accuracy": one, "latency": 1.0} for one in pair])
        with pytest.raises(ValueError, match="groups"):
            compare(*pair)
    with pytest.raises(ValueError, match="by groups"):
        compare(grouped, grouped)


def test_the_frontier_draws_whole_groups() -> None:
    rng = np.random.default_rng(3)
    grouped, plain = (list(results(ids, ids).values()) for ids in (IMAGES, None))
    by_groups, by_rows = (np.std(pareto.draw_rows(each, 4000, rng), axis=0) for each in (grouped, plain))
    effects = [each.metadata["design_effect"] for each in grouped]
    assert by_groups / by_rows == pytest.approx(np.sqrt(effects), rel=0.08)


def test_a_study_counts_originals() -> None:
    from types import SimpleNamespace

    from tinybench.tools.study.measurements import study_accuracy
    from tinybench.tools.study.variants import FP32

    digits, classes = np.eye(2)[labels(seed=1)], np.arange(2)
    other = np.eye(2)[labels(seed=2)]
    forms: Any = {FP32: SimpleNamespace(call=lambda rows: digits), "INT8": SimpleNamespace(call=lambda rows: other)}
    X = np.zeros((360, 3), np.float32)
    found, results_ = study_accuracy(forms, X, Y, classes, 0.1, 0, IMAGES)
    truth = mcnemar(Y, labels(seed=1), labels(seed=2), IMAGES)
    assert found["INT8"]["loss_ci"] == pytest.approx(truth.difference_ci)
    assert found[FP32]["accuracy_ci"] == pytest.approx(cluster_interval(1 - labels(seed=1), IMAGES))
    assert results_[FP32].metadata["groups"] == 60
    plain, _ = study_accuracy(forms, X, Y, classes, 0.1, 0)
    assert plain["INT8"]["design_effect"] is None
    assert np.ptp(plain["INT8"]["loss_ci"]) < np.ptp(found["INT8"]["loss_ci"])


def test_a_file_names_groups(tmp_path: Path) -> None:
    from tinybench.support.basics.array_files import load_grouped, load_labelled

    np.savez(tmp_path / "copies.npz", X=np.zeros((4, 2)), y=[0, 1, 0, 1], groups=[1, 1, 2, 2])
    assert load_grouped(tmp_path / "copies.npz")[2].tolist() == [1, 1, 2, 2]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="only tinybench study"):
        load_labelled(tmp_path / "copies.npz")
    np.savez(tmp_path / "rows.npz", X=np.zeros((4, 2)), y=[0, 1, 0, 1])
    assert load_grouped(tmp_path / "rows.npz")[2] is None


def test_case_studies_name_the_originals() -> None:
    from sklearn.datasets import load_digits

    from tinybench.course import case_study
    from tinybench.course.case_study_data import distorted, originals_of

    case = case_study("narrow")
    assert len(np.unique(case.groups)) == 360
    assert case.X.shape[0] == len(case.groups) == 2160
    for image in np.unique(case.groups)[:20]:
        assert len(set(case.y[case.groups == image])) == 1
    assert case_study("small").groups is None
    chosen = np.arange(40, 70)
    truth = distorted(chosen, 90, 3)[1]
    assert np.array_equal(load_digits().target[originals_of(chosen, 90, 3)], truth)
