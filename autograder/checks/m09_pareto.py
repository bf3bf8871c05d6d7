"""Hidden checks of module 09: against all pairs, areas by counting cells, exact rationals, and known probabilities."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import all_close, close, draw, expect, judges, raises, words
from tinybench.result import BenchmarkResult

NAN = float("nan")
SIGNS = {"min": 1, "max": -1}


def beaten_by_none(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Compare every pair, smaller being better."""
    return [
        not any(all(x <= y for x, y in zip(a, b, strict=True)) and tuple(a) != tuple(b) for a in costs) for b in costs
    ]


def misspelt(rng: np.random.Generator, word: str) -> str:
    """Return a word without one of its letters, which is still nearest to the whole word."""
    place = int(rng.choice([i for i, letter in enumerate(word) if letter.isalpha()]))
    return word[:place] + word[place + 1 :]


@judges("dominates")
def dominance_is_strict_somewhere(student: Any) -> None:
    """All small integer points in two and three objectives, each direction."""
    rng = draw()
    for _ in range(300):
        size = int(rng.integers(1, 5))
        a, b = (tuple(int(x) for x in rng.integers(0, 3, size)) for _ in range(2))
        larger = [bool(x) for x in rng.integers(0, 2, size)]
        signed = [(-x, -y) if up else (x, y) for x, y, up in zip(a, b, larger, strict=True)]
        truth = all(x <= y for x, y in signed) and any(x < y for x, y in signed)
        got = student.dominates(a, b, maximize=larger)
        expect(
            bool(got) == truth,
            f"dominates({a}, {b}, maximize={larger}) should be {truth}: as good everywhere and better somewhere",
        )
    expect(bool(student.dominates((2.0, 3.0), (1.0, 3.0), maximize=True)), "maximize=True holds for all objectives")
    expect(not student.dominates((2.0, 3.0), (1.0, 3.0)), "by default smaller is better")


def answer_dominance(student: Any) -> None:
    """Nobody is dominated in the first example, D by B alone in the second."""
    cause = "compare pair by pair: is one at least as good in both and better in one?"
    close(student.dominated_in_the_first_example(), 0, "the first example", cause=cause)
    close(student.dominated_in_the_second_example(), 1, "the second example", cause=cause)


@judges("refuse_mixing")
def estimates_do_not_rank_with_measurements(student: Any) -> None:
    """Whatever their order, label and unit must agree; numbers pass."""

    rng = draw()
    metric, odd, *names = words(rng, 6)
    others = names[: int(rng.integers(2, 5))]

    def result(measured: bool | None, unit: str) -> BenchmarkResult:
        values = rng.uniform(1, 9, 2).tolist()
        return BenchmarkResult("energy", values, {} if measured is None else {"measured": measured}, unit=unit)

    for measured in (True, False, None):
        alike = {name: result(measured, "J") for name in others}
        student.refuse_mixing(metric, alike | {odd: float(rng.random())})
    student.refuse_mixing(metric, {others[0]: result(True, "J"), others[1]: result(None, "J")})
    student.refuse_mixing(metric, {})
    student.refuse_mixing(metric, dict(zip(others, rng.random(len(others)).tolist(), strict=True)))
    cases = (
        ("an estimate among measurements", (True, "J"), (False, "J"), [odd, metric]),
        ("a measurement among estimates", (False, "J"), (True, "J"), [odd]),
        ("another unit", (False, "J"), (False, "s"), [odd, metric]),
    )
    for what, usual, unlike, mentions in cases:
        for order in permutations([others[0], others[1], odd]):
            values = {name: result(*(unlike if name == odd else usual)) for name in order}
            values |= {name: result(*usual) for name in others[2:]}
            raises(ValueError, lambda v=values: student.refuse_mixing(metric, v), what, mentions=mentions)


@judges("frontier_2d", "frontier_nd")
def frontiers_agree_with_brute_force(student: Any) -> None:
    """Many ties and duplicates in one to five dimensions, real numbers, and a size that all pairs cannot do."""
    rng = draw()
    for dimensions in (1, 2, 3, 4, 5):
        for levels in (2, 3, 7, 1000):
            size = 1 if levels == 3 else int(rng.integers(2, 20))
            costs = rng.integers(-levels, levels, (size, dimensions)).astype(float).repeat(2, axis=0)[levels % 2 :]
            truth = beaten_by_none(costs.tolist())
            for name in ("frontier_nd", *(["frontier_2d"] if dimensions == 2 else [])):
                got = [bool(x) for x in getattr(student, name)(costs)]
                wrong = next((i for i, (x, y) in enumerate(zip(got, truth, strict=True)) if x != y), None)
                expect(
                    wrong is None and len(got) == len(truth),
                    f"{name} is wrong about point {wrong} of {len(truth)} in {dimensions} dimensions; "
                    "think of ties and duplicates",
                )
    # a curve (all on the frontier) with each point once more, slightly worse
    x = np.linspace(0, 1, 15_000)
    curve = np.column_stack([x, 1 - np.sqrt(x)])
    kept = [bool(value) for value in student.frontier_2d(np.vstack([curve, curve + 1e-9]))]
    expect(
        all(kept[:15_000]) and not any(kept[15_000:]),
        "15 000 points of a curve are on the frontier, their copies 1e-9 worse are not",
    )


@judges("pareto_frontier")
def frontier_respects_directions(student: Any) -> None:
    """Rows and tuples, every mix of directions, duplicates and order kept, results by their median."""
    rng = draw()
    names = ["latency", "accuracy", "memory", "energy"]
    for dimensions in (1, 2, 3, 4):
        for _ in range(6):
            objectives = {name: ("min", "max")[int(rng.integers(2))] for name in names[:dimensions]}
            values = rng.integers(1, 6, (20, dimensions)).tolist()
            truth = beaten_by_none(
                [[SIGNS[d] * x for x, d in zip(row, objectives.values(), strict=True)] for row in values]
            )
            rows = [{"model": i, **dict(zip(objectives, row, strict=True))} for i, row in enumerate(values)]
            got = [row["model"] for row in student.pareto_frontier(iter(rows), objectives)]
            expect(
                got == [i for i, keep in enumerate(truth) if keep],
                f"the frontier under {objectives} is wrong, or its order or duplicates are lost",
            )
            tuples = [tuple(row) for row in values]
            got = [tuple(point) for point in student.pareto_frontier(tuples, objectives)]
            expect(
                got == [t for t, keep in zip(tuples, truth, strict=True) if keep],
                "tuples should come back as they were",
            )
    outlier = {"model": "outlier", "latency": BenchmarkResult("latency", [1.0, 1.1, 90.0], unit="s"), "accuracy": 0.9}
    calm = {"model": "calm", "latency": BenchmarkResult("latency", [2.0, 2.1, 2.2], unit="s"), "accuracy": 0.9}
    got = [row["model"] for row in student.pareto_frontier([outlier, calm])]
    expect(got == ["outlier"], "a result counts by its median: use objective_values")
    for wrong in ([], [(1.0, NAN)], [{"latency": 1.0}]):
        raises(ValueError, lambda w=wrong: student.pareto_frontier(w), f"pareto_frontier({wrong})")


@judges("staircase", "hypervolume_2d")
def staircase_and_area(student: Any) -> None:
    """Corners point by point; areas by counting unit cells that some point dominates."""
    rng = draw()
    for directions in (("min", "max"), ("min", "min"), ("max", "max"), ("max", "min")):
        objectives = dict(zip(("memory", "energy"), directions, strict=True))
        signs = [SIGNS[d] for d in directions]
        for _ in range(8):
            points = [tuple(int(x) for x in rng.integers(0, 13, 2)) for _ in range(int(rng.integers(1, 9)))]
            reference = tuple(10 * sign + (0 if sign > 0 else 12) for sign in signs)
            costs = [tuple(s * x for s, x in zip(signs, point, strict=True)) for point in points]
            worst = tuple(s * x for s, x in zip(signs, reference, strict=True))
            cells = [(i, j) for i in range(-14, 14) for j in range(-14, 14)]
            area = sum(i < worst[0] and j < worst[1] and any(a <= i and b <= j for a, b in costs) for i, j in cells)
            got = student.hypervolume_2d(points, reference, objectives)
            close(
                got,
                area,
                f"hypervolume of {points} up to {reference}, {directions}",
                cause="strips up to the reference point",
                abs=1e-9,
            )
            best = sorted({c for c, keep in zip(costs, beaten_by_none(costs), strict=True) if keep})
            truth = [best[0]]
            for x, y in best[1:]:
                truth += [(x, truth[-1][1]), (x, y)]
            flat = [s * v for corner in truth for s, v in zip(signs, corner, strict=True)]
            mine = [v for corner in student.staircase(points, objectives) for v in corner]
            all_close(
                mine,
                flat,
                f"staircase of {points}, {directions}",
                cause="from the best x to the worst, level first, then up",
            )
    close(student.hypervolume_2d([(5.0, 0.5)], (4.0, 0.4)), 0.0, "a point worse than the reference in x adds nothing")
    row = {"latency": 5.0, "accuracy": 0.5}
    close(student.hypervolume_2d([{"latency": 1.0, "accuracy": 1.0}], row), 2.0, "hypervolume of a row up to a row")


@judges("check_weights")
def weights_are_checked(student: Any) -> None:
    """Sum, sign and names."""
    rng = draw()
    known = ["accuracy", "latency", "memory", "energy", "throughput"]
    picked = [str(name) for name in rng.permutation(known)[: int(rng.integers(2, 6))]]
    shares = dict(zip(picked, rng.dirichlet(np.ones(len(picked))).tolist(), strict=True))
    some, more = picked[:2]
    off = float(rng.uniform(0.002, 0.5))
    for good in (
        shares,
        {"accuracy": 1.0},
        dict.fromkeys(known, 0.2),
        {"accuracy": 0.7, "latency": 0.2, "memory": 0.1},
        {"accuracy": 1, "energy": 0},
    ):
        student.check_weights(good, known)
    for bad in (
        {**shares, some: shares[some] + off},
        {**shares, some: shares[some] + 1},
        {"accuracy": 0.9},
        {"accuracy": 0.4, "latency": 0.61},
        {},
        {"accuracy": 0.5, "latency": 0.499},
    ):
        raises(ValueError, lambda b=bad: student.check_weights(b, known), f"the weights {bad}", mentions=["1"])
    for wrong in (-0.5, NAN, -off):
        weights = {some: 1.0 if math.isnan(wrong) else 1 - wrong, more: wrong}
        raises(ValueError, lambda w=weights: student.check_weights(w, known), f"the weights {weights}", mentions=[more])
    for typo, meant in (
        ("latnecy", "latency"),
        ("Accuracy", "accuracy"),
        ("mem", "memory"),
        ("through_put", "throughput"),
        *((misspelt(rng, name), name) for name in known),
    ):
        weights = {typo: 1.0}
        raises(
            ValueError,
            lambda w=weights: student.check_weights(w, known),
            f"the weight of {typo!r}",
            mentions=[typo, meant],
        )


@judges("composite_score")
def scores_follow_the_formula(student: Any) -> None:
    """The default by exact rationals; the scale-free one by products of powers, whatever the unit."""
    rng = draw()
    metrics = ("accuracy", "latency", "memory", "energy")
    rows = [
        dict(zip(metrics, row, strict=True)) for row in (rng.uniform(0.2, 1, (5, 4)) * [1, 0.01, 1e7, 0.005]).tolist()
    ]

    def default(row: dict[str, float], weights: Sequence[Fraction]) -> float:
        accuracy, latency, memory, energy = (Fraction(row[metric]) for metric in metrics)
        terms = (accuracy, 1 / (1 + latency * 1000), 1 / (1 + memory / 10**6), 1 / (1 + energy * 1000))
        return float(sum(w * t for w, t in zip(weights, terms, strict=True)))

    cause = "values are in SI units: latency in ms, memory in MB, energy in mJ go into 1 / (1 + value)"
    fifths = [Fraction(2, 5), *[Fraction(1, 5)] * 3]
    all_close(student.composite_score(rows), [default(row, fifths) for row in rows], "the default score", cause=cause)
    weights = {"energy": 0.125, "accuracy": 0.25, "memory": 0.0, "latency": 0.625}
    exact = [Fraction(1, 4), Fraction(5, 8), Fraction(0), Fraction(1, 8)]
    all_close(
        student.composite_score(rows, weights),
        [default(row, exact) for row in rows],
        f"the score with {weights}",
        cause=cause,
    )

    weights = {"accuracy": 0.5, "latency": 0.3, "throughput": 0.2}
    many = [{**row, "throughput": float(x)} for row, x in zip(rows, rng.uniform(10, 500, 5), strict=True)]
    truth = [
        (row["accuracy"] / max(r["accuracy"] for r in many)) ** 0.5
        * (min(r["latency"] for r in many) / row["latency"]) ** 0.3
        * (row["throughput"] / max(r["throughput"] for r in many)) ** 0.2
        for row in many
    ]
    got = student.composite_score(many, weights, scale_free=True)
    all_close(
        got,
        truth,
        "the scale-free score",
        cause="the product of (ratio to the best) ** weight; minus where small is good",
    )
    scaled = [{**row, "latency": 1e3 * row["latency"]} for row in many]
    all_close(student.composite_score(scaled, weights, scale_free=True), truth, "the scale-free score in another unit")
    zero = [{"accuracy": 0.0, "latency": 1.0}, {"accuracy": 0.5, "latency": 1.0}]
    raises(ValueError, lambda: student.composite_score(zero, {"accuracy": 1.0}, scale_free=True), "a ratio to 0")


@judges("Requirements.from_dict", "Requirements.from_yaml")
def requirements_are_read(student: Any) -> None:
    """Files and texts give the limits; typos are named with the nearest key."""
    rng = draw()
    least, quick = round(float(rng.uniform(0.5, 0.99)), 3), int(rng.integers(1, 50))
    memory, rate, energy = (round(float(x), 1) for x in rng.uniform(10, 500, 3))
    truth = {
        "latency_p95_ms": quick,
        "accuracy_min": least,
        "memory_max_mb": memory,
        "throughput_min_qps": rate,
        "energy_budget_mj": energy,
    }
    text = "".join(f"{name}: {truth[name]}\n" for name in rng.permutation(list(truth)).tolist())
    path = student.Path("/tmp") / f"needs-{os.getpid()}.yaml"  # where the student's code runs
    path.write_text(text, encoding="utf-8")
    try:
        for what, source in (("a text", text), ("a path", path), ("a path as text", str(path))):
            limits = dict(student.Requirements.from_yaml(source).limits())
            expect(limits == truth, f"{what}: {truth} expected, got {limits}")
    finally:
        path.unlink()
    expect(
        dict(student.Requirements.from_dict({"accuracy_min": least}).limits()) == {"accuracy_min": least},
        "from_dict should set one limit",
    )
    expect(dict(student.Requirements.from_dict({}).limits()) == {}, "no limits are allowed, too")
    for typo, meant in (
        ("latency_p95", "latency_p95_ms"),
        ("Accuracy_Min", "accuracy_min"),
        ("memory_mb", "memory_max_mb"),
        ("throughput_qps", "throughput_min_qps"),
        ("energy_budget_mJ", "energy_budget_mj"),
        *((misspelt(rng, name), name) for name in truth),
    ):
        for what, call in (
            ("from_yaml", lambda t=typo: student.Requirements.from_yaml(f"accuracy_min: 0.5\n{t}: 3\n")),
            ("from_dict", lambda t=typo: student.Requirements.from_dict({"accuracy_min": 0.5, t: 3})),
        ):
            raises(ValueError, call, f"{what} with {typo!r}", mentions=[typo, meant])
    for text in ("- accuracy_min: 0.5\n", "# nothing here\n"):
        raises(
            ValueError,
            lambda t=text: student.Requirements.from_yaml(t),
            f"the YAML {text!r}, which holds no limits by name,",
        )
    raises(
        ValueError,
        lambda: student.Requirements.from_yaml(f"accuracy_min: {words(rng, 1)[0]}\n"),
        "a limit that is a word",
        mentions=["accuracy_min"],
    )


@judges("Requirements.violations", "Requirements.filter", "Requirements.rank")
def filter_then_rank(student: Any) -> None:
    """Every limit on both sides, equality, order, direction, ties, nothing left, nothing measured."""
    base = {
        "model": "m",
        "latency_p95": 0.004,
        "latency": 0.003,
        "accuracy": 0.9,
        "memory": 5e7,
        "throughput": 300.0,
        "energy": 0.012,
    }
    for name, meets, breaks in (
        ("latency_p95_ms", 4.0, 3.9),
        ("accuracy_min", 0.9, 0.91),
        ("memory_max_mb", 50.0, 49.9),
        ("throughput_min_qps", 300, 301),
        ("energy_budget_mj", 12.0, 11.5),
    ):
        expect(
            list(student.Requirements(**{name: meets}).violations(base)) == [],
            f"{name}: {meets} is met exactly, which is good enough",
        )
        broken = list(student.Requirements(**{name: breaks}).violations(base))
        expect(
            len(broken) == 1 and name in str(broken[0]),
            f"{name}: {breaks} is broken: one sentence with the name expected, got {broken}",
        )
        expect(
            list(student.Requirements(**{name: breaks}).filter([base])) == [],
            f"a row that breaks {name} should not pass the filter",
        )
    all_broken = student.Requirements(
        latency_p95_ms=1, accuracy_min=0.99, memory_max_mb=1, throughput_min_qps=1000, energy_budget_mj=1
    )
    expect(len(list(all_broken.violations(base))) == 5, "five broken limits make five sentences")
    expect(list(student.Requirements().violations(base)) == [], "no limits, no violations")

    rng = draw()
    rows = [
        {"model": i, "latency": float(x), "accuracy": float(y), "memory": 1e6, "energy": 1e-3, "throughput": float(z)}
        for i, (x, y, z) in enumerate(rng.integers(1, 6, (25, 3)) / [1e3, 6, 1])
    ]
    needs = student.Requirements(accuracy_min=0.5)
    for by, sign in (("latency", 1), ("accuracy", -1), ("throughput", -1), ("memory", 1)):
        truth = [row["model"] for row in sorted((r for r in rows if r["accuracy"] >= 0.5), key=lambda r: sign * r[by])]
        got = [row["model"] for row in needs.rank(iter(rows), by=by)]
        expect(got == truth, f"rank(by={by!r}) should filter, then put the best first, ties in their order")
    expect(
        list(student.Requirements(accuracy_min=1.0).rank(rows)) == [],
        "nothing meets the limits: an empty ranking, not an error",
    )
    raises(
        ValueError, lambda: needs.filter([{"model": "x", "latency": 1.0}]), "a missing accuracy", mentions=["accuracy"]
    )
    expect(
        [r["model"] for r in needs.rank(rows)] == [r["model"] for r in needs.rank(rows, by="latency")],
        "by default rank by latency",
    )


@judges("replicate")
def replicates_have_the_right_spread(student: Any) -> None:
    """Constant, Beta with Jeffreys' prior, bootstrap of the median; equal seeds pick equal rounds."""
    all_close(student.replicate(2.5, 3, [1]), [2.5] * 3, "replicates of a number")
    for correct, total in ((0, 50), (90, 100), (360, 360)):
        accuracy = BenchmarkResult("accuracy", [correct / total], {"correct": correct, "total": total})
        got = sorted(float(x) for x in student.replicate(accuracy, 4000, [3]))
        truth = stats.beta(correct + 0.5, total - correct + 0.5)
        cause = "draw from Beta(correct + 1/2, total - correct + 1/2)"
        for q in (0.1, 0.5, 0.9):
            where = float(truth.cdf(got[int(q * 4000)]))
            expect(
                abs(where - q) < 0.04,
                f"replicates of {correct}/{total}: their {q:.0%} quantile is {got[int(q * 4000)]:.4f}, "
                f"not {truth.ppf(q):.4f}; {cause}",
            )
    values = [float(x) for x in draw().lognormal(0, 1, 31)]
    result = BenchmarkResult("latency", values, unit="s")
    got = sorted(float(x) for x in student.replicate(result, 4000, [5]))
    ordered = sorted(values)
    cause = "resample all values with replacement and take the median"
    for rank in (12, 15, 18):
        # the bootstrap median is at most the k-th value when at least 16 of 31 picks are
        truth_share = float(stats.binom.sf(15, 31, (rank + 1) / 31))
        share = float(np.mean(np.array(got) <= ordered[rank]))
        expect(
            abs(share - truth_share) < 0.04,
            f"{truth_share:.0%} of the bootstrap medians should be at most the value of rank {rank + 1}, "
            f"{share:.0%} are; {cause}",
        )
    shifted = BenchmarkResult("latency", [x + 7 for x in values], unit="s")
    first, second = student.replicate(result, 50, [8, 1]), student.replicate(shifted, 50, [8, 1])
    all_close(
        second,
        [float(x) + 7 for x in first],
        "replicates of the same rounds, 7 s later",
        cause="equal seeds pick equal rounds",
        rel=1e-9,
    )
    expect(
        [float(x) for x in student.replicate(result, 50, [9, 1])] != [float(x) for x in first],
        "another seed should pick other rounds",
    )


@judges("membership_probability")
def membership_is_a_share_of_frontiers(student: Any) -> None:
    """Certain cases, a case with a known probability, pairing, and seeds."""
    rng = draw()
    exact = [{"latency": float(x), "accuracy": float(y), "memory": float(z)} for x, y, z in rng.integers(0, 4, (12, 3))]
    objectives = {"latency": "min", "accuracy": "max", "memory": "min"}
    truth = beaten_by_none([[p["latency"], -p["accuracy"], p["memory"]] for p in exact])
    got = student.membership_probability(exact, objectives, resamples=20)
    all_close(
        got, [float(x) for x in truth], "membership of exact points", cause="they are on every frontier or on none"
    )

    # at equal latency the frontier is the more accurate model: P(Beta > Beta)
    counts = [(180, 200), (186, 200)]
    rows = [
        {"latency": 1.0, "accuracy": BenchmarkResult("accuracy", [c / n], {"correct": c, "total": n})}
        for c, n in counts
    ]
    grid = np.linspace(0, 1, 20_001)
    a, b = (stats.beta(c + 0.5, n - c + 0.5) for c, n in counts)
    first = float(np.sum(a.pdf(grid) * b.cdf(grid)) * (grid[1] - grid[0]))
    got = student.membership_probability(rows, resamples=2500, seed=4)
    all_close(
        got,
        [first, 1 - first],
        "membership of 180/200 and 186/200",
        cause="the share of resampled frontiers that hold the point",
        rel=0,
        abs=0.05,  # five standard errors
    )

    drift = rng.lognormal(0, 0.6, 30)
    pair = [
        {"latency": BenchmarkResult("latency", [float(x) for x in drift * factor], unit="s"), "accuracy": 0.9}
        for factor in (1.001, 1.0)
    ]
    got = student.membership_probability(pair, paired=True, resamples=200)
    all_close(
        got,
        [0.0, 1.0],
        "membership of paired rounds",
        cause="paired: the same rounds for all models, so one seed for them",
    )
    first_share = float(student.membership_probability(pair, resamples=400)[0])
    expect(
        0.3 < first_share < 0.7,
        f"unpaired, each is on the frontier about half of the time, not {first_share:.0%}: a seed for each model",
    )
    again = [float(x) for x in student.membership_probability(rows, resamples=300, seed=4)]
    all_close(student.membership_probability(rows, resamples=300, seed=4), again, "membership with the same seed")
    expect(
        [float(x) for x in student.membership_probability(rows, resamples=300, seed=5)] != again,
        "another seed should draw other frontiers",
    )


def answer_understanding(student: Any) -> None:
    """Strips of the new staircase, its size, and the ratio that balances a factor of four."""
    close(student.hypervolume_with_d(), 140, "question 1", cause="2 ms × 10 % from A, then 8 ms × 15 % from D")
    close(student.frontier_size_with_d(), 2, "question 2", cause="D dominates B (same accuracy) and C (same latency)")
    close(student.accuracy_factor(), 4, "question 3", cause="equal weights: (1/4)^0.5 · f^0.5 = 1")
