"""Choosing a model: against all pairs, areas by Monte Carlo and closed forms, and the figure as it is drawn."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.quick import within
from tinybench import pareto
from tinybench.pareto import Requirements, composite_score, dominates, hypervolume_2d, pareto_frontier
from tinybench.result import BenchmarkResult
from tinybench.support import metric_tests
from tinybench.support.choices.ranked_values import as_rows, central, interval
from tinybench.support.reports.frontier_border import staircase
from tinybench.support.reports.frontier_figure import plot_pareto_frontier

ENERGY = {"energy": "min"}


def latency(*values: float, **notes: Any) -> BenchmarkResult:
    return BenchmarkResult("latency", list(values), notes, unit="s")


def accuracy(correct: int, total: int, **notes: Any) -> BenchmarkResult:
    return BenchmarkResult("accuracy", [correct / total], {"correct": correct, "total": total, **notes})


def energy(value: float, measured: bool, unit: str = "J") -> BenchmarkResult:
    return BenchmarkResult("energy", [value], {"measured": measured}, unit=unit)


# --- dominance and frontier -------------------------------------------------------------------------------------------
# few distinct values make ties and duplicates the rule; signed zeros are equal
COORDINATE = st.one_of(st.integers(-2, 2).map(float), st.just(-0.0), st.floats(allow_nan=False, allow_infinity=True))
CASES = st.integers(2, 5).flatmap(
    lambda d: st.tuples(
        st.lists(st.tuples(*[COORDINATE] * d), min_size=1, max_size=30),
        st.lists(st.sampled_from(["min", "max"]), min_size=d, max_size=d),
    )
)


@settings(max_examples=300)
@given(CASES)
def test_frontier_agrees_with_all_pairs(case: tuple[list[tuple[float, ...]], list[str]]) -> None:
    points, directions = case
    maximize = [direction == "max" for direction in directions]
    truth = [p for p in points if not any(dominates(other, p, maximize=maximize) for other in points)]
    assert pareto_frontier(points, dict(zip("abcde", directions, strict=False))) == truth


@given(st.tuples(*[COORDINATE] * 3), st.tuples(*[COORDINATE] * 3), st.tuples(*[COORDINATE] * 3))
def test_dominance_is_a_strict_order(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> None:
    assert not dominates(a, a)
    assert not (dominates(a, b) and dominates(b, a))
    if dominates(a, b) and dominates(b, c):
        assert dominates(a, c)
    assert dominates(a, b) == dominates([-x for x in a], [-x for x in b], maximize=True)


def test_worked_examples_dominate_nobody() -> None:
    for points in ([(10, 0.90), (15, 0.95), (12, 0.91)], [(5, 0.88), (8, 0.92), (6, 0.89)]):
        assert pareto_frontier(points) == points


def test_hundred_thousand_points() -> None:
    random, curve = np.random.default_rng(0).random((100_000, 2)), np.linspace(0, 1, 100_000)
    within(5, lambda: pareto_frontier(random))  # all pairs take minutes
    within(5, lambda: pareto_frontier(np.column_stack([curve, curve])))
    assert len(pareto_frontier(np.column_stack([curve, curve]))) == 100_000


def test_rows_keep_identity_order_and_duplicates() -> None:
    numbers = {"a": (2, 0.9), "b": (1, 0.8), "c": (2, 0.9), "d": (3, 0.8)}
    rows = [{"model": name, "latency": x, "accuracy": y} for name, (x, y) in numbers.items()]
    frontier = pareto_frontier(rows)
    assert [row["model"] for row in frontier] == ["a", "b", "c"]
    assert frontier[0] is rows[0]


def test_results_count_by_median_and_by_all_answers() -> None:
    assert central(latency(1.0, 2.0, 90.0)) == 2.0
    assert central(BenchmarkResult("accuracy", [1.0, 0.5, 0.5], {"correct": 95, "total": 100})) == 0.95
    assert central(np.float32(0.5)) == 0.5


def test_as_rows_turns_the_table() -> None:
    rows = as_rows({"latency": {"a": 1.0, "b": 2.0}, "accuracy": {"b": 0.9}})
    assert rows == [{"model": "a", "latency": 1.0}, {"model": "b", "latency": 2.0, "accuracy": 0.9}]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_estimate_never_ranks_against_a_measurement(order: tuple[int, ...]) -> None:
    spent = [("m1", energy(1, True)), ("m2", energy(2, True)), ("guess", energy(0.5, False))]
    mixed = [{"model": spent[i][0], "energy": spent[i][1]} for i in order]
    for use in (
        lambda: pareto_frontier(mixed, ENERGY),
        lambda: composite_score(mixed, {"energy": 1.0}),
        lambda: Requirements(energy_budget_mj=5).filter(mixed),
        lambda: Requirements().rank(mixed, by="energy"),
        lambda: pareto.membership_probability(mixed, ENERGY),
        lambda: plot_pareto_frontier([{**row, "accuracy": 0.9} for row in mixed], {"energy": "min", "accuracy": "max"}),
    ):
        with pytest.raises(ValueError, match=r"'guess' is an estimate, of 'm[12]' a measurement"):
            use()
    assert len(pareto_frontier([row for row in mixed if row["model"] != "guess"], ENERGY)) == 1


def test_units_must_agree() -> None:
    rows = [{"energy": energy(1, False)}, {"energy": energy(1, False, unit="s")}]
    with pytest.raises(ValueError, match="is in 'J', of 'point 1' in 's'"):
        pareto_frontier(rows, ENERGY)
    with pytest.raises(ValueError, match="energy of point 0 is in 's', not in 'J'"):
        composite_score(rows[1:], {"energy": 1.0})
    with pytest.raises(ValueError, match="not in 'J'"):
        Requirements(energy_budget_mj=5).filter(rows[1:])


# --- staircase and hypervolume ----------------------------------------------------------------------------------------
SMALL = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=12)


@given(SMALL)
def test_hypervolume_counts_dominated_cells(points: list[tuple[int, int]]) -> None:
    cells = sum(any(x <= i and j < y for x, y in points) for i in range(7) for j in range(2, 8))
    assert hypervolume_2d(points, (7, 2)) == pytest.approx(cells)


@given(SMALL, st.tuples(st.integers(0, 8), st.integers(0, 8)))
def test_hypervolume_never_falls_with_another_point(points: list[tuple[int, int]], more: tuple[int, int]) -> None:
    assert hypervolume_2d([*points, more], (8, 0)) >= hypervolume_2d(points, (8, 0))


def test_hypervolume_of_the_worked_example() -> None:
    points = [(10, 90), (15, 95), (12, 91)]
    assert hypervolume_2d(points, (20, 80)) == pytest.approx(128)
    assert hypervolume_2d([*points, (12, 95)], {"latency": 20, "accuracy": 80}) == pytest.approx(140)


@given(SMALL)
def test_staircase_is_level_then_upright(points: list[tuple[int, int]]) -> None:
    corners = staircase(points)
    assert set(corners[::2]) == set(pareto_frontier(points))
    for (x1, y1), (x2, y2) in itertools.pairwise(corners):
        assert (x1 == x2) != (y1 == y2)
        assert x2 >= x1
        assert y2 >= y1


# --- scores -----------------------------------------------------------------------------------------------------------
ROWS = [
    {"model": "a", "accuracy": 0.9, "latency": 0.004, "memory": 9e6, "energy": 0.001},
    {"model": "b", "accuracy": 0.95, "latency": 0.009, "memory": 4e6, "energy": 0.003},
    {"model": "c", "accuracy": 0.8, "latency": 0.001, "memory": 1e6, "energy": 0.0005},
]


def test_default_score() -> None:
    assert composite_score(ROWS)[0] == pytest.approx(0.4 * 0.9 + 0.2 / 5 + 0.2 / 10 + 0.2 / 2)
    assert sum(pareto.DEFAULT_WEIGHTS.values()) == pytest.approx(1)


def test_default_score_takes_results() -> None:
    row = {"accuracy": accuracy(90, 100), "latency": latency(0.004), "energy": energy(0.001, True)}
    assert composite_score([{**row, "memory": BenchmarkResult("memory", [9e6], unit="B")}])[0] == pytest.approx(0.52)


@given(st.floats(1e-6, 1e6), st.sampled_from(["latency", "memory", "energy"]))
def test_scale_free_score_knows_no_units(factor: float, metric: str) -> None:
    scaled = [{**row, metric: row[metric] * factor} for row in ROWS]
    assert composite_score(scaled, scale_free=True) == pytest.approx(composite_score(ROWS, scale_free=True))


def test_scale_free_ranks_do_not_depend_on_other_rows() -> None:
    a, b, _ = composite_score(ROWS, scale_free=True)
    alone = composite_score(ROWS[:2], scale_free=True)
    assert alone[0] / alone[1] == pytest.approx(a / b)
    assert max(alone) <= 1


def test_weights_may_carry_rounding() -> None:
    assert composite_score(ROWS, {"accuracy": 0.7, "latency": 0.2, "memory": 0.1})
    assert composite_score([{"accuracy": 0.9}], {"accuracy": 1.0, "energy": 0.0}) == [0.9]
    with pytest.raises(ValueError, match="positive"):
        composite_score([{"accuracy": 0.0}], {"accuracy": 1.0}, scale_free=True)


# --- requirements -----------------------------------------------------------------------------------------------------
YAML = "latency_p95_ms: 5\naccuracy_min: 0.95\nmemory_max_mb: 100\nthroughput_min_qps: 200\nenergy_budget_mj: 20\n"


def test_requirements_from_file_and_text(tmp_path: Path) -> None:
    file = tmp_path / "needs.yaml"
    file.write_text(YAML, encoding="utf-8")
    for source in (YAML, file, str(file)):
        assert Requirements.from_yaml(source) == Requirements(5, 0.95, 100, 200, 20)
    with pytest.raises(FileNotFoundError):
        Requirements.from_yaml("nowhere.yaml")


def test_a_file_of_requirements_runs_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises((ValueError, yaml.YAMLError)):
        Requirements.from_yaml(f"accuracy_min: !!python/object/apply:os.mkdir ['{made}']\n")
    assert not made.exists()


def test_each_limit_reads_its_own_number() -> None:
    row = {
        "model": "m",
        "latency": latency(*[0.003] * 90, *[0.009] * 10),
        "accuracy": accuracy(96, 100),
        "memory": BenchmarkResult("memory", [5e7, 9e7], unit="B"),
        "energy": BenchmarkResult("energy", [0.001, 0.001, 0.010], unit="J"),
        "throughput": BenchmarkResult("throughput", [300.0, 310.0], unit="Hz"),
    }
    assert Requirements(9, 0.96, 90, 305, 4).violations(row) == []
    broken = Requirements(5, 0.97, 80, 306, 3.9).violations(row)
    assert [text.split()[0] for text in broken] == list(Requirements(5, 1, 1, 1, 1).limits())
    assert broken[0] == "latency_p95_ms is 5, the model has 9"


def test_a_percentile_may_be_given() -> None:
    assert Requirements(latency_p95_ms=1).filter([{"latency_p95": 0.001}]) == [{"latency_p95": 0.001}]


def test_filter_then_rank() -> None:
    needs = Requirements(accuracy_min=0.85)
    for by, models in ({}, ["a", "b"]), ({"by": "accuracy"}, ["b", "a"]), ({"by": "memory"}, ["b", "a"]):
        assert [row["model"] for row in needs.rank(ROWS, **by)] == models
    assert Requirements(accuracy_min=0.99).rank(ROWS) == []


# --- uncertainty ------------------------------------------------------------------------------------------------------


def right(*bits: bool, **notes: Any) -> BenchmarkResult:
    """An accuracy that knows on which rows it is right."""
    rows = np.array(bits, dtype=bool)
    return accuracy(int(rows.sum()), len(rows), right=np.packbits(rows).tobytes().hex(), **notes)


def test_replicates_scatter_as_a_repetition_would() -> None:
    assert pareto.replicate([accuracy(90, 100)], 20_000, [0]).std() == pytest.approx(0.03, rel=0.05)
    assert pareto.replicate([right(*[True] * 90, *[False] * 10)], 20_000, [0]).std() == pytest.approx(0.03, rel=0.05)
    assert pareto.replicate([accuracy(100, 100)], 2000, [0]).min() < 0.99
    values = np.random.default_rng(1).normal(10, 1, 101)
    asymptotic = math.sqrt(math.pi / 2 / 101)
    assert pareto.replicate([latency(*values)], 5000, [0]).std() == pytest.approx(asymptotic, rel=0.3)


def test_rounds_that_depend_on_one_another_are_drawn_in_blocks() -> None:
    """An AR(1) of 0.8: the median of 200 rounds scatters about three times as much as of independent ones."""
    rng, found = np.random.default_rng(0), []
    for _ in range(20):
        values = [0.0]
        for step in rng.normal(0, 0.6, 219):
            values.append(0.8 * values[-1] + step)
        found.append(pareto.replicate([latency(*(10 + np.array(values[20:])))], 500, [0]).std())
    assert 1.6 < np.median(found) / math.sqrt(math.pi / 2 / 200) < 4


@pytest.mark.filterwarnings("ignore:which rows")
def test_membership_of_equals_is_shared() -> None:
    rows = [{"latency": 1.0, "accuracy": accuracy(900, 1000)} for _ in range(4)]
    assert pareto.membership_probability(rows, resamples=4000) == pytest.approx([0.25] * 4, abs=0.03)


def test_a_bootstrap_of_rows_by_hand() -> None:
    """One row more of 800 is far from certain, and agrees with drawing 800 rows again and again."""
    rng = np.random.default_rng(5)
    slow = rng.uniform(size=800) < 0.9
    quick = slow.copy()
    quick[np.flatnonzero(slow)[:4]], quick[np.flatnonzero(~slow)[:3]] = False, True
    picks = rng.integers(800, size=(4000, 800))
    by_hand = float(np.mean(slow[picks].sum(axis=1) > quick[picks].sum(axis=1)))
    rows = [{"latency": 1.0, "accuracy": right(*quick)}, {"latency": 2.0, "accuracy": right(*slow)}]
    assert pareto.membership_probability(rows, resamples=4000) == pytest.approx([1.0, by_hand], abs=0.04)
    assert 0.4 < by_hand < 0.8


def test_a_model_that_is_right_on_the_same_rows_and_slower_is_dropped() -> None:
    bits = np.random.default_rng(0).uniform(size=300) < 0.95
    drift = np.random.default_rng(2).lognormal(0, 0.5, 30)
    for shared in ({"pairing": "x"}, {}):
        rows = [{"latency": latency(*(drift * f), **shared), "accuracy": right(*bits)} for f in (1.0, 160.0)]
        assert pareto.membership_probability(rows) == [1.0, 0.0]


def test_unknown_rows_are_said() -> None:
    rows = [{"model": "a", "latency": 1.0, "accuracy": accuracy(90, 100)}, {"latency": 2.0, "accuracy": right(True)}]
    with pytest.warns(UserWarning, match="which rows a got right is not known"):
        pareto.membership_probability(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pareto.membership_probability(rows[1:])


def test_paired_rounds_take_the_drift_out() -> None:
    drift = np.random.default_rng(2).lognormal(0, 0.5, 30)
    rows = [{"latency": latency(*(drift * factor), pairing="x"), "accuracy": 0.9} for factor in (1.0, 1.01)]
    assert pareto.membership_probability(rows) == [1.0, 0.0]
    rows = [{"latency": latency(*(drift * factor)), "accuracy": 0.9} for factor in (1.0, 1.01)]
    assert pareto.membership_probability(rows)[1] > 0.3


def test_many_rows_are_quick() -> None:
    bits = np.random.default_rng(3).uniform(size=(6, 100_000)) < 0.95
    rows = [{"latency": float(k), "accuracy": right(*each)} for k, each in enumerate(bits)]
    within(20, lambda: pareto.membership_probability(rows))


def test_what_was_not_seen_is_on_no_frontier() -> None:
    """0 bytes that a meter could not resolve are no smallest memory; at most so many may still meet a limit."""
    unseen = BenchmarkResult("memory", [0.0] * 6, {"seen": False, "at_most": 4096}, unit="B")
    zero = BenchmarkResult("memory", [0.0] * 6, unit="B")
    fine = BenchmarkResult("memory", [9e6] * 6, unit="B")
    assert [metric_tests.is_detected(each) for each in (unseen, zero, fine)] == [False, False, True]
    for bad in (unseen, zero):
        rows = [{"model": "a", "memory": bad}, {"model": "b", "memory": fine}]
        with pytest.raises(ValueError, match="memory of a was not seen"):
            pareto.pareto_frontier(rows, {"memory": "min"})
    assert Requirements(memory_max_mb=1).filter([{"memory": unseen}])
    assert not Requirements(memory_max_mb=0.001).filter([{"memory": unseen}])
    with pytest.raises(ValueError, match="memory was not seen"):
        Requirements(memory_max_mb=1).filter([{"memory": zero}])


# --- what is refused --------------------------------------------------------------------------------------------------
BOTH = {"latency": "min", "accuracy": "max"}


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: pareto_frontier([], {"latency": "min"}), "there are no points"),
        (lambda: pareto_frontier([(1.0,)], {}), "there are no objectives"),
        (lambda: pareto_frontier([(1.0, float("nan"))], BOTH), "accuracy of point 0 is NaN"),
        (lambda: pareto_frontier([{"model": "svm", "latency": 1.0}], BOTH), "svm has no 'accuracy'"),
        (lambda: pareto_frontier([(1.0, 2.0, 3.0)], BOTH), "point 0 has 3 numbers for 2 objectives"),
        (lambda: pareto_frontier([(1.0, 2.0)], {"latency": "min", "accuracy": "maximum"}), "it is 'min' or 'max'"),
        (lambda: pareto_frontier([(1.0, "fast")], BOTH), "holds something that is no number"),
        (lambda: composite_score(ROWS, {"accuracy": 0.5, "latency": 0.4}), "sum to 0.9, not to 1"),
        (lambda: composite_score(ROWS, {"acuracy": 1.0}), "'acuracy' to weight; did you mean 'accuracy'"),
        (lambda: composite_score(ROWS, {"accuracy": 1.5, "latency": -0.5}), "weight of 'latency' is -0.5"),
        (lambda: composite_score(ROWS, {}), "sum to 0"),
        (lambda: composite_score(ROWS, {"throughput": 1.0}), "no metric 'throughput'"),
        (lambda: Requirements.from_yaml("latency_p59_ms: 5\n"), "'latency_p59_ms'; did you mean 'latency_p95_ms'"),
        (lambda: Requirements.from_yaml("acuracy_min: 0.9\n"), "'acuracy_min'; did you mean 'accuracy_min'"),
        (lambda: Requirements.from_yaml("7: 0.9\n"), "'7'; did you mean"),
        (lambda: Requirements.from_yaml("accuracy_min: 95\n"), "give a fraction, such as 0.95"),
        (lambda: Requirements.from_yaml("latency_p95_ms: 5ms\n"), "latency_p95_ms is '5ms'; give a number"),
        (lambda: Requirements.from_yaml("memory_max_mb: -1\n"), "memory_max_mb is -1"),
        (lambda: Requirements.from_yaml("memory_max_mb: true\n"), "memory_max_mb is True"),
        (lambda: Requirements.from_yaml("energy_budget_mj: .nan\n"), "energy_budget_mj is nan"),
        (lambda: Requirements.from_yaml("- latency_p95_ms: 5\n"), "are lines such as"),
        (lambda: Requirements.from_yaml("\n"), "are lines such as"),
        (lambda: Requirements.from_yaml(""), "are lines such as"),
        (lambda: Requirements.from_yaml("latency_p95_ms:5"), "are lines such as"),
        (lambda: Requirements.from_yaml("accuracy_min:\n"), "accuracy_min has no limit"),
        (lambda: Requirements.from_yaml("accuracy_min:"), "accuracy_min has no limit"),
        (lambda: dominates((1, 2), (1, 2, 3)), "must match"),
        (lambda: dominates((1, 2), (1, 2), maximize=[True]), "must match"),
        (lambda: dominates((1, float("nan")), (1, 2)), "NaN"),
        (lambda: hypervolume_2d([(1, 2, 3)], (1, 2, 3), dict.fromkeys("abc", "min")), "2 objectives, not 3"),
        (lambda: hypervolume_2d([], (1, 2)), "no points"),
        (
            lambda: Requirements(memory_max_mb=1).filter([{"model": "m", "latency": 1.0}]),
            "m has no 'memory', which memory_max_mb limits",
        ),
        (
            lambda: Requirements(latency_p95_ms=1).filter([{"model": "m", "latency": 0.001}]),
            "one number has no 95th percentile",
        ),
        (
            lambda: Requirements(accuracy_min=0.85).rank(ROWS, by="latancy"),
            "'latancy' to rank by; did you mean 'latency'",
        ),
        (lambda: Requirements(accuracy_min=0.85).rank(ROWS, by="throughput"), "a has no 'throughput'"),
        (lambda: plot_pareto_frontier([(1, 2), (2, 3)], labels=["one"]), "one value for each point: lists of length 2"),
        (lambda: plot_pareto_frontier([(1, 2, 3)], dict.fromkeys("abc", "min")), "2 objectives, not 3"),
    ],
)
def test_bad_input_is_named(use: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        use()


# --- figure -----------------------------------------------------------------------------------------------------------


def overlaps(figure: Any, dpi: int = 100) -> tuple[list[str], int]:
    """Return the labels of a figure, and how many pairs of them overlap when it is drawn at a resolution."""
    from matplotlib.text import Text

    figure.set_dpi(dpi)
    figure.draw_without_rendering()
    texts = figure.axes[0].texts
    boxes = [Text.get_window_extent(text) for text in texts]  # the words, without the leading lines
    return [text.get_text() for text in texts], sum(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("seed", range(6))
def test_labels_do_not_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(14):
        times = rng.lognormal(-7, 0.2 if seed % 2 else 1.5) * rng.lognormal(0, 0.1, 12)
        right = accuracy(int(rng.integers(900, 990)), 1000)
        rows.append({"model": f"model number {i}", "latency": latency(*times), "accuracy": right})
    names, pairs = overlaps(plot_pareto_frontier(rows), dpi=100 + 60 * (seed % 3))
    assert pairs == 0
    assert {row["model"] for row in pareto_frontier(rows)} <= set(names)


def test_points_in_one_place_keep_their_names() -> None:
    rows = [{"model": name, "latency": 1.0, "accuracy": 0.9} for name in ("first", "second", "third")]
    names, pairs = overlaps(plot_pareto_frontier(rows))
    assert (sorted(names), pairs) == (["first", "second", "third"], 0)


def test_the_frontier_lies_above_what_it_beats_and_words_above_lines() -> None:
    near = [{"model": f"model {i}", "latency": 1.0, "accuracy": 0.9 - i * 1e-6} for i in range(30)]
    axes = plot_pareto_frontier([*near, {"model": "far", "latency": 2.0, "accuracy": 0.5}]).axes[0]
    drawn = {line.get_marker(): line.get_zorder() for line in axes.get_lines()}
    leading = [line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_label().startswith("_")]
    assert drawn["o"] > drawn["s"]
    assert leading
    assert max(line.get_zorder() for line in leading) < min(text.get_zorder() for text in axes.texts)


def test_figure_says_what_it_shows() -> None:
    rows = [
        {"model": model, "latency": latency(*[seconds] * 8), "accuracy": accuracy(right, 100)}
        for model, seconds, right in (("fast", 0.001, 90), ("good", 0.002, 95), ("poor", 0.003, 80))
    ]
    figure = plot_pareto_frontier(rows, probabilities=[1.0, 0.9, 0.0], title="Trial")
    axes = figure.axes[0]
    said = (axes.get_xlabel(), axes.get_ylabel(), axes.get_title())
    assert said == ("latency (ms), lower is better", "accuracy (%), higher is better", "Trial")
    assert sorted(text.get_text() for text in axes.texts) == ["fast (100%)", "good (90%)", "poor (0%)"]
    corners = list(
        zip(*next(line for line in axes.get_lines() if line.get_label() == "border").get_data(), strict=True)
    )
    assert np.allclose(corners[1:4], [(1, 90), (2, 90), (2, 95)])
    markers = {line.get_marker() for line in axes.get_lines()} - {"None", "|", "_"}
    assert len(markers) == 2  # not by colour alone
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["on the frontier", "dominated", "border"]


def test_estimates_are_labelled_in_the_figure() -> None:
    rows = [{"model": str(i), "energy": energy(1e-3 * (i + 1), False), "accuracy": 0.9 + i / 100} for i in range(2)]
    axes = plot_pareto_frontier(rows, {"energy": "min", "accuracy": "max"}).axes[0]
    assert axes.get_xlabel() == "energy (mJ, estimate), lower is better"


@pytest.mark.parametrize("directions", list(itertools.product(["min", "max"], repeat=2)))
def test_staircase_spans_the_axes(directions: tuple[str, str]) -> None:
    objectives = dict(zip(("memory", "throughput"), directions, strict=True))
    axes = plot_pareto_frontier([(1, 5), (2, 2), (5, 1), (4, 4)], objectives).axes[0]
    x, y = next(line for line in axes.get_lines() if line.get_label() == "border").get_data()
    assert y[0] == axes.get_ylim()[0 if directions[1] == "max" else 1]
    assert x[-1] == axes.get_xlim()[0 if directions[0] == "max" else 1]


def test_interval_of_every_kind() -> None:
    assert interval(3) == (3.0, 3.0)
    assert interval(latency(1, 2, 3)) == (1, 3)
    assert interval(latency(*range(1, 9))) == (1, 8)
    assert interval(accuracy(353, 360)) == pytest.approx((0.9604, 0.9906), abs=2e-4)


@pytest.mark.parametrize("order", [("latency", "accuracy"), ("accuracy", "latency")])
def test_the_warning_names_what_every_objective_lacks(order: tuple[str, str]) -> None:
    """One model has a latency of a single value, the other an accuracy without the list of right rows."""
    counted = {"correct": 90, "total": 100}
    points = [
        {"model": "once", "latency": BenchmarkResult("latency", [1.0]), "accuracy": 0.9},
        {"model": "counted", "latency": 2.0, "accuracy": BenchmarkResult("accuracy", [0.9], counted)},
        {
            "model": "both",
            "latency": BenchmarkResult("latency", [3.0]),
            "accuracy": BenchmarkResult("accuracy", [0.9], counted),
        },
    ]
    objectives = {name: {"latency": "min", "accuracy": "max"}[name] for name in order}
    with pytest.warns(UserWarning, match="any scatter") as told:
        pareto.membership_probability(points, objectives, resamples=10)
    text = str(told[0].message)
    assert "which rows counted, both got right is not known" in text
    assert "once, both: a single value or row" in text
