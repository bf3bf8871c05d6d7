"""Hidden checks for module 09.

Expected values come from comparing all pairs, counting unit cells, exact fractions and known probabilities.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.plain_answers import array
from tinybench.result import BenchmarkResult

NAN = float("nan")
SIGNS = {"min": 1, "max": -1}


def seconds(values: Iterable[float], **notes: Any) -> BenchmarkResult:
    """Return a latency result with these values in seconds."""
    return BenchmarkResult("latency", [float(value) for value in values], notes, unit="s")


def accuracy(correct: int, total: int, **notes: Any) -> BenchmarkResult:
    """Return an accuracy result whose metadata hold the counts `correct` and `total`."""
    return BenchmarkResult("accuracy", [correct / total], {"correct": correct, "total": total, **notes})


def beaten_by_none(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Return, for each point, whether no other point dominates it.

    Smaller costs are better. All pairs of points are compared.
    """
    return [
        not any(all(x <= y for x, y in zip(a, b, strict=True)) and tuple(a) != tuple(b) for a in costs) for b in costs
    ]


def misspelt(rng: np.random.Generator, word: str) -> str:
    """Return a word without one of its letters, as a typo. The closest valid name must still be the full word."""
    place = int(rng.choice([i for i, letter in enumerate(word) if letter.isalpha()]))
    return word[:place] + word[place + 1 :]


def table(value: Any, what: str, rows: int, columns: int) -> np.ndarray:
    """Return an answer as an array of finite numbers with the given numbers of rows and columns."""
    found = array(value, what, (rows, columns))
    expect(bool(np.isfinite(found).all()), f"{what} should be finite")
    return found


def of_each(rows: Any, what: str, name: str = "model") -> list[Any]:
    """Return the entry `name` of each row of an answer."""
    return [entries(row, f"a row of {what}").get(name) for row in items(rows, what)]


@judges("dominates")
def dominance_is_strict_somewhere(student: Any) -> None:
    """Check that `dominates` needs a point to be as good in every objective and better in at least one.

    One objective, or all the others, may be better, worse or equal, by small and large differences. Directions, places
    and numbers of objectives vary.
    """
    rng, dominates = draw(), student.dominates
    cases: list[tuple[Any, ...]] = [((2.0, 3.0), (1.0, 3.0), True, True)]  # one `maximize` for all objectives
    for size in (1, 2, 3, 4) * 2:
        kinds = {(own, *[rest] * (size - 1)) for own in (-3, -1, 0, 1, 3) for rest in (-1, 0, 1)}
        for kind in sorted(kinds):
            gains, ups = rng.permutation(kind), rng.random(size) < 0.5
            a = rng.integers(3, 6, size)
            b = a - np.where(ups, gains, -gains)
            cases.append((tuple(a.tolist()), tuple(b.tolist()), ups.tolist(), min(kind) >= 0 and max(kind) > 0))
    for a, b, larger, truth in cases:
        what, cause = f"dominates({a}, {b}, maximize={larger})", "as good everywhere and better somewhere"
        same(dominates(a, b, maximize=larger), truth, what, cause)
    same(dominates((2.0, 3.0), (1.0, 3.0)), False, "dominates((2, 3), (1, 3))", "by default smaller is better")


def answer_dominance(student: Any) -> None:
    """Check that only D is dominated (by B)."""
    cause = "compare pair by pair: is one at least as good in both and better in one?"
    same(student.number_dominated(), 1, "the number of dominated models", cause)


@judges("frontier_2d")
def frontiers_agree_with_brute_force(student: Any) -> None:
    """Check that `frontier_2d` agrees with comparing all pairs, with many ties and duplicates.

    It must also handle a curve of 30 000 points, for which comparing all pairs takes too long.
    """
    rng = draw()
    for levels in (2, 3, 7, 1000) * 2:
        size = 1 if levels == 3 else int(rng.integers(2, 20))
        costs = rng.integers(-levels, levels, (size, 2)).astype(float).repeat(2, axis=0)[levels % 2 :]
        truth = beaten_by_none(costs.tolist())
        same(student.frontier_2d(costs), truth, f"frontier_2d of {len(truth)} points", "think of ties and duplicates")
    # a curve, all of whose points are on the frontier, and a slightly worse copy of each point
    x = np.linspace(0, 1, 15_000)
    curve = np.column_stack([x, 1 - np.sqrt(x)])
    mask = items(student.frontier_2d(np.vstack([curve, curve + 1e-9])), "frontier_2d of 30 000 points", 30_000)
    kept = [x if x is True or x is False else flag(x, "an element of frontier_2d") for x in mask]
    expect(
        kept == [True] * 15_000 + [False] * 15_000,
        "15 000 points of a curve are on the frontier, their copies 1e-9 worse are not",
    )


@judges("pareto_frontier")
def frontier_respects_directions(student: Any) -> None:
    """Check that `pareto_frontier` is right for rows and for tuples, whichever objectives are maximised.

    Duplicates and order must be kept, and a result must count by its median.
    """
    rng, frontier = draw(), student.pareto_frontier
    names = ["latency", "accuracy", "memory", "energy"]
    for dimensions in (1, 2, 3, 4) * 6:
        objectives = {name: ("min", "max")[int(rng.integers(2))] for name in names[:dimensions]}
        points = [tuple(row) for row in rng.integers(1, 6, (20, dimensions)).tolist()]
        costs = np.array(points) * [SIGNS[direction] for direction in objectives.values()]
        kept = [i for i, keep in enumerate(beaten_by_none(costs.tolist())) if keep]
        rows = [{"model": i, **dict(zip(objectives, point, strict=True))} for i, point in enumerate(points)]
        what = f"the frontier under {objectives}"
        found = of_each(frontier(iter(rows), objectives), what)
        same(found, kept, what, "order and duplicates stay")
        found, truth = frontier(points, objectives), [points[i] for i in kept]
        same(found, truth, what, "tuples should come back as they were", rel=0)
    outlier = {"model": "outlier", "latency": seconds([1.0, 1.1, 90.0]), "accuracy": 0.9}
    calm = {"model": "calm", "latency": seconds([2.0, 2.1, 2.2]), "accuracy": 0.9}
    found = of_each(frontier([outlier, calm]), "the frontier of results")
    same(found, ["outlier"], "the frontier of results", "a result counts by its median: use objective_values")
    refuses(frontier, ([],), ([(1.0, NAN)],), ([{"latency": 1.0}],))


@judges("hypervolume_2d")
def area_counts_dominated_cells(student: Any) -> None:
    """Check that the area from `hypervolume_2d` is the number of unit cells that at least one point dominates."""
    rng = draw()
    mixes = (("min", "max"), ("min", "min"), ("max", "max"), ("max", "min")) * 4
    for size, directions in zip(rng.permutation([*range(1, 9)] * 2).tolist(), mixes, strict=True):
        objectives = dict(zip(("memory", "energy"), directions, strict=True))
        signs = np.array([SIGNS[direction] for direction in directions])
        points = rng.integers(0, 13, (size, 2))
        reference = 10 * signs + np.where(signs > 0, 0, 12)
        costs, worst = [tuple(cost) for cost in (points * signs).tolist()], signs * reference
        cells = [(i, j) for i in range(-14, worst[0]) for j in range(-14, worst[1])]
        area = sum(any(a <= i and b <= j for a, b in costs) for i, j in cells)
        given, end = [tuple(point) for point in points.tolist()], tuple(reference.tolist())
        what, cause = f"hypervolume of {given} up to {end}, {directions}", "strips up to the reference point"
        same(student.hypervolume_2d(given, end, objectives), area, what, cause, abs=1e-9)
    same(student.hypervolume_2d([(5.0, 0.5)], (4.0, 0.4)), 0.0, "what a point worse than the reference in x adds")
    row = {"model": "base", "accuracy": 0.5, "latency": 5.0}
    same(student.hypervolume_2d([{"latency": 1.0, "accuracy": 1.0}], row), 2.0, "hypervolume of a row up to a row")


@judges("composite_score")
def scores_follow_the_formula(student: Any) -> None:
    """Check that the scale-free score is a product of powers, and the same in any unit."""
    rng = draw()
    metrics = ("accuracy", "latency", "memory", "energy")
    drawn = (rng.uniform(0.2, 1, (5, 4)) * [1, 0.01, 1e7, 0.005]).tolist()
    rows = [dict(zip(metrics, row, strict=True)) for row in drawn]
    weights = {"accuracy": 0.5, "latency": 0.3, "throughput": 0.2}
    many = [{**row, "throughput": x} for row, x in zip(rows, rng.uniform(10, 500, 5).tolist(), strict=True)]
    accuracy, latency, rate = (np.array([row[name] for row in many]) for name in weights)
    truth = (accuracy / accuracy.max()) ** 0.5 * (latency.min() / latency) ** 0.3 * (rate / rate.max()) ** 0.2
    scaled = [{**row, "latency": 1e3 * row["latency"]} for row in many]
    cause = "the product of (ratio to the best) ** weight, minus where small is good: whatever the unit"
    agrees(partial(student.composite_score, scale_free=True), truth, [(many, weights), (scaled, weights)], cause)
    costs = np.array([[row[name] for name in ("memory", "energy")] for row in rows])
    truth = np.prod(costs.min(axis=0) / costs, axis=1) ** 0.5
    cause = "memory and energy: small is good"
    agrees(partial(student.composite_score, scale_free=True), truth, [(rows, {"energy": 0.5, "memory": 0.5})], cause)
    zero = [{"accuracy": 0.0, "latency": 1.0}, {"accuracy": 0.5, "latency": 1.0}]
    refuses(partial(student.composite_score, scale_free=True), (zero, {"accuracy": 1.0}), what="a ratio to 0")


@judges("Requirements.violations", "Requirements.filter", "Requirements.rank")
def filter_then_rank(student: Any) -> None:
    """Check that `Requirements` handles every limit that is met, met exactly or broken.

    `rank` must put the best row first and keep the order of ties. If no row meets the limits, the ranking is empty. A
    metric that was not measured must be refused.
    """
    rng = draw()
    latency, energy, memory, rate, share = rng.integers(3, 16, 5).tolist()
    base = {
        "model": "m",
        "latency_p95": latency / 1024,
        "latency": 0.003,
        "energy": energy / 1024,
    }  # exact in ms and mJ
    base |= {"accuracy": share / 16, "memory": memory * 1e6, "throughput": 10.0 * rate}
    shown = {"latency_p95_ms": 1000 * latency / 1024, "accuracy_min": share / 16, "memory_max_mb": float(memory)}
    shown |= {"throughput_min_qps": 10.0 * rate, "energy_budget_mj": 1000 * energy / 1024}
    limits = dict[str, tuple[float, ...]]()
    for name, exact in shown.items():
        apart = float(rng.uniform(0.002, 0.06)) * (exact if "_min" in name else -exact)
        limits[name] = exact, exact + apart, exact - apart
    for name, (exact, breaks, loose) in limits.items():
        met, broken, easy = (student.Requirements(**{name: limit}) for limit in (exact, breaks, loose))
        what, cause = f"violations of {name}: {exact:g}", "it is met exactly, which is good enough"
        same(items(met.violations(base), what), [], what, cause)
        same(items(easy.violations(base), what), [], f"violations of {name}: {loose:g}", "it is met")
        same(items(easy.filter([base]), "filter"), [base], f"rows that meet {name}: {loose:g}")
        what = f"{name}: {breaks}, which is broken"
        [said] = items(broken.violations(base), f"violations of {what}", 1)
        expect(name in text(said, "a violation"), f"one sentence with the name expected of {what}, got {said!r}")
        same(items(broken.filter([base]), "filter"), [], f"rows that meet {what}")
    everything = student.Requirements(**{name: breaks for name, (_, breaks, _) in limits.items()})
    said = items(everything.violations(base), "violations of five limits", 5)
    missing = [name for name in limits if not any(name in text(each, "a violation") for each in said)]
    expect(not missing, f"five broken limits make five sentences, and none names {missing}")
    same(items(student.Requirements().violations(base), "violations"), [], "violations without limits")

    drawn = (rng.integers(1, 6, (25, 3)) / [1e3, 6, 1]).tolist()
    columns = ("latency", "accuracy", "throughput")
    same_for_all = {"memory": 1e6, "energy": 1e-3}
    rows = [{"model": i, **dict(zip(columns, row, strict=True)), **same_for_all} for i, row in enumerate(drawn)]
    needs = student.Requirements(accuracy_min=0.5)
    for by, sign in (("latency", 1), ("accuracy", -1), ("throughput", -1), ("memory", 1)):
        truth = [row["model"] for row in sorted((r for r in rows if r["accuracy"] >= 0.5), key=lambda r: sign * r[by])]
        found = of_each(needs.rank(iter(rows), by=by), f"rank(by={by!r})")
        same(found, truth, f"rank(by={by!r})", "filter, then put the best first, ties in their order")
    nothing = items(student.Requirements(accuracy_min=1.0).rank(rows), "rank")
    same(nothing, [], "rank where nothing meets the limits", "an empty ranking, not an error")
    refuses(needs.filter, ([{"model": "x", "latency": 1.0}],), mentions="accuracy", what="a missing accuracy")
    default, by_latency = (of_each(needs.rank(rows, **by), "rank") for by in ({}, {"by": "latency"}))
    same(default, by_latency, "rank without by", "by default rank by latency")


@judges("replicate")
def replicates_have_the_right_spread(student: Any) -> None:
    """Check that `replicate` draws constants, accuracies and latencies from the right distributions.

    An accuracy must follow the Beta distribution that results from Jeffreys' prior, and a latency the distribution of
    bootstrap medians. Models that were measured in the same rounds must share one draw of rounds.
    """
    same(student.replicate([2.5, 1.0], 3, [1]), [[2.5, 1.0]] * 3, "replicates of two numbers")
    for correct, total in ((0, 50), (90, 100), (360, 360)):
        drawn = student.replicate([accuracy(correct, total)], 4000, [3])
        got = np.sort(table(drawn, "4000 replicates of an accuracy", 4000, 1)[:, 0])
        truth = stats.beta(correct + 0.5, total - correct + 0.5)
        for q in (0.1, 0.5, 0.9):
            what, cause = f"P(Beta below the {q:.0%} quantile", "draw from Beta(correct + 1/2, total - correct + 1/2)"
            same(truth.cdf(got[int(q * 4000)]), q, f"{what} of {correct}/{total})", cause, rel=0, abs=0.04)
    values = shuffled(draw().lognormal(0, 0.6, 31))
    got = table(student.replicate([seconds(values)], 4000, [5]), "4000 replicates of a latency", 4000, 1)
    for rank in (12, 15, 18):
        # the bootstrap median is at most the k-th value if at least 16 of the 31 values drawn are
        wanted = float(stats.binom.sf(15, 31, (rank + 1) / 31))
        what = f"the share of bootstrap medians that are at most the value of rank {rank + 1}"
        share = float(np.mean(got <= np.sort(values)[rank]))
        same(share, wanted, what, "take the median of each resample of draw_rounds", rel=0, abs=0.04)

    def rounds(seed: int, *offsets: float) -> np.ndarray:
        drawn = student.replicate([seconds(values + off, pairing="one") for off in offsets], 50, [seed, 1])
        return table(drawn, "50 replicates, a row for each resample,", 50, len(offsets))

    both = rounds(8, 0, 7)
    same(both[:, 1], both[:, 0] + 7, "replicates of the same rounds, 7 s later", "the same rounds for all models")
    first, again, other = (rounds(seed, 0) for seed in (8, 8, 9))
    same(again, first, "replicates with the same seed", "draw by the rng that is given")
    expect(not np.array_equal(other, first), "another seed should pick other rounds")


def right_on(rows: np.ndarray) -> BenchmarkResult:
    """Return an accuracy result that records, for each row, whether the prediction is right."""
    return accuracy(int(rows.sum()), len(rows), right=np.packbits(rows).tobytes().hex())


@judges("membership_probability")
def membership_is_a_share_of_frontiers(student: Any) -> None:
    """Check that `membership_probability` returns the known probability of being on the frontier.

    For exact points, it is 0 or 1. For uncertain points, the check computes it. Models that were measured together must
    share the drawn rows and rounds, and the seed must decide the draw.
    """
    rng, membership = draw(), student.membership_probability
    points = rng.integers(0, 4, (12, 3)).astype(float)
    objectives = {"latency": "min", "accuracy": "max", "memory": "min"}
    exact = [dict(zip(objectives, point, strict=True)) for point in points.tolist()]
    truth = [float(kept) for kept in beaten_by_none((points * [1, -1, 1]).tolist())]
    cause = "they are on every frontier or on none"
    same(membership(exact, objectives, resamples=3), truth, "membership of exact points", cause)

    # For each of 16 slower models, there are `own` rows that the quick model gets wrong and only this slower model gets
    # right, and `others` rows that only this model gets wrong. It is on the frontier if more of the former rows are
    # drawn than of the latter. Each slower model takes less memory than the one before, so that only the quick model
    # can dominate it.
    apart = [(3, 1), (4, 1), (5, 2), (6, 3), (1, 2), (2, 4), (3, 5), (4, 7)]  # far from even, in either direction
    rows, slower, (own, others) = 400, 16, apart[int(rng.integers(len(apart)))]
    order, x = rng.permutation(rows), np.arange(rows)
    lists = np.tile(x >= slower * own, (slower + 2, 1))
    for place in range(slower):
        lists[place + 1, place * own : (place + 1) * own] = True
        lists[place + 1, rows - (place + 1) * others : rows - place * others] = False
    wins = stats.binom.pmf(x, rows, own / rows) @ stats.binom.cdf(x - 1, rows - x, others / (rows - own))
    known = [
        {"latency": 1.0 + place, "accuracy": right_on(r[order]), "memory": 99.0 - place}
        for place, r in enumerate(lists)
    ]
    known[0]["memory"], known[-1]["memory"] = 1.0, 1.0
    what = f"membership of a quick model, slower ones (rows each alone gets right: {own}, wrong: {others}), and a copy"
    cause = "one call of replicate for each group of shared values, each model in its place"
    certain, *doubted, never = numbers(membership(known, objectives, resamples=120, seed=4), what, len(known))
    same([certain, never], [1.0, 0.0], f"the first and the last value of the {what}", cause)
    same(doubted, [float(wins)] * slower, f"the others of the {what}", cause, rel=0, abs=0.25)  # 5 std errors
    same(np.mean(doubted), float(wins), f"the mean of the others of the {what}", cause, rel=0, abs=0.05)  # 5 std errors

    # if rows are unknown and latencies equal, only the more accurate model is on the frontier: P(Beta > Beta)
    pairs = [
        {"latency": 1.0 + pair, "accuracy": accuracy(correct, 200), "memory": 9.0 - pair}  # no pair dominates another
        for pair in range(8)
        for correct in (180, 186)
    ]
    grid = np.linspace(0, 1, 20_001)
    a, b = (stats.beta(correct + 0.5, 200 - correct + 0.5) for correct in (180, 186))
    first = float(np.sum(a.pdf(grid) * b.cdf(grid)) * (grid[1] - grid[0]))
    what, cause = "membership of 180/200 and 186/200, eight times", "the share of resampled frontiers with the point"

    def doubtful(unknown: list[dict[str, Any]], resamples: int, seed: int) -> list[float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return numbers(membership(unknown, objectives, resamples=resamples, seed=seed), what, len(unknown))

    told = doubtful(pairs, 160, 4)
    same(told, [first, 1 - first] * 8, what, cause, rel=0, abs=0.25)
    means = np.reshape(told, (8, 2)).mean(axis=0)
    same(means, [first, 1 - first], f"the means of the {what}", cause, rel=0, abs=0.05)  # 5 std errors

    drift, notes = shuffled(rng.lognormal(0, 0.6, 30)), {"pairing": "one"}
    pair = [{"latency": seconds(drift * factor, **notes), "accuracy": 0.9} for factor in (1.001, 1.0)]
    same(membership(pair, resamples=40), [0.0, 1.0], "membership of paired rounds", "the same rounds for all models")
    pairs = [
        {"latency": seconds(9.0**pair * drift * factor), "accuracy": 0.5 + pair / 10}  # no pair dominates another
        for pair in range(4)
        for factor in (1.001, 1.0)
    ]
    cause = "unpaired, each is on the frontier about half of the time: another seed for each group"
    shares = numbers(membership(pairs, resamples=100), "membership of two models, four times", 8)
    same(shares[::2], [0.5] * 4, "membership of the first of two models", cause, rel=0, abs=0.3)
    same(np.mean(shares[::2]), 0.5, "the mean membership of the first of two models", cause, rel=0, abs=0.2)
    many = [
        {"latency": 1.0, "accuracy": accuracy(n, 200), "memory": 1.0} for n in range(180, 188)
    ]  # so many that two seeds do not agree by chance
    again, same_seed, other = (doubtful(many, 60, seed) for seed in (4, 4, 5))
    same(again, same_seed, "membership with the same seed")
    expect(again != other, "another seed should draw other frontiers")


def answer_understanding(student: Any) -> None:
    """Check that area and frontier with model D are right, and the accuracy factor that offsets a factor of four."""
    same(student.hypervolume_with_d(), 140, "question 1", "2 ms × 10 % from A, then 8 ms × 15 % from D")
    same(student.frontier_size_with_d(), 2, "question 2", "D dominates B (same accuracy) and C (same latency)")
    same(student.accuracy_factor(), 4, "question 3", "equal weights: (1/4)^0.5 · f^0.5 = 1")
