"""Hidden checks for module 04, some with models that fail.

SciPy and plain counting supply the expected values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import judges
from autograder.checks.check_helpers import *

NAN, INF = float("nan"), float("inf")


class Scores:
    """A classifier that returns the same given scores for any inputs, and counts its calls."""

    shows = ("classes_",)

    def __init__(self, scores: Any, classes: Any = None) -> None:
        self.scores, self.asked = np.asarray(scores), 0
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict_proba(self, inputs: Any) -> np.ndarray:
        """Return the first rows of the scores, one row for each input."""
        self.asked += 1
        return self.scores[: len(items(inputs, "what the model is called with"))]


def _wilson(correct: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    interval = stats.binomtest(correct, total).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


@judges("wilson_interval")
def wilson_is_wilsons(student: Any) -> None:
    """Check that `wilson_interval` equals SciPy's for no correct rows, for all correct rows, and in between."""
    rng = draw()
    counts = [(0, 1), (1, 1), (0, 30), (30, 30), (353, 360), (1, 1000)]
    counts += [(int(rng.integers(n + 1)), n) for n in (7, 60, 5000)]
    cases = [(*count, confidence) for count in counts for confidence in (0.8, 0.95, 0.99)]
    cause = "z at 0.5 + confidence / 2, z²/2n and z²/4n² in the formula, all over 1 + z²/n"
    agrees(student.wilson_interval, _wilson, cases, cause, rel=1e-6, abs=1e-12)
    lower, upper = (numbers(student.wilson_interval(end, 3), "the interval", 2)[end // 3] for end in (0, 3))
    expect(lower == 0.0 and upper == 1.0, "0 of 3 should begin at exactly 0, and 3 of 3 end at exactly 1")
    agrees(student.wilson_interval, _wilson, [(353, 360)], "the default confidence is 0.95", rel=1e-6)
    refuses(student.wilson_interval, (0, 0), (5, 4), (-1, 4), (0.5, 4), (1, 2, 1.5))
    many = int(rng.integers(20, 60))
    truth, worth_a_seventh = _wilson(3 * many, 4 * many), [(21 * many, 28 * many, 0.95, 4 * many)]
    agrees(student.wilson_interval, truth, worth_a_seventh, "keep the lines about worth", rel=1e-6)
    refuses(student.wilson_interval, (3, 5, 0.95, 0.0), (3, 5, 0.95, 6.0), cause="keep the lines about worth")


def _group_sums(values: np.ndarray, groups: Sequence[Any]) -> list[float]:
    """Return the sum of the deviations from the mean of all values, for each group."""
    sums: dict[Any, float] = {}
    for value, group in zip(values.tolist(), groups, strict=True):
        sums[group] = sums.get(group, 0.0) + value - values.mean()
    return [*sums.values()]


def _design_effect(values: np.ndarray, groups: Sequence[Any]) -> float:
    sums, mean = _group_sums(values, groups), float(values.mean())
    squares: float = sum((value - mean) ** 2 for value in values.tolist())
    return len(sums) / (len(sums) - 1) * sum(each**2 for each in sums) / squares


def _grouped_samples() -> list[tuple[np.ndarray, list[Any]]]:
    """Return right and wrong rows, and differences of two models, in groups of different sizes and names."""
    rng, samples = draw(), []
    for number, often in ((20, 0.8), (45, 0.9), (60, 0.5)):
        groups = np.repeat(np.arange(number), rng.integers(1, 7, number))
        chances = np.clip(rng.normal(often, 0.3, number), 0.02, 0.98)[groups]
        right = (rng.random(len(groups)) < chances).astype(int)
        other = (rng.random(len(groups)) < chances).astype(int)
        order = rng.permutation(len(groups))
        users = [f"user {group}" for group in groups[order]]
        samples += [(right[order], groups[order].tolist()), ((right - other)[order], users)]
    return samples


@judges("design_effect")
def groups_have_a_design_effect(student: Any) -> None:
    """Check that `design_effect` equals a plain sum over groups, for right rows and for differences of two models."""
    cause = "G / (G − 1) times the squares of the groups' sums, over the squares of the rows' deviations"
    agrees(student.design_effect, _design_effect, _grouped_samples(), cause, rel=1e-6)
    agrees(student.design_effect, 2.0, [([1] * 6, [1, 1, 2, 2, 3, 3])], "equal values: keep the lines given")
    refuses(student.design_effect, ([1, 0, 1], [1, 1, 1]), ([1, 0], [1]))


@judges("effective_rows")
def rows_are_worth_less(student: Any) -> None:
    """Check that `effective_rows` divides by the design effect, and allows for few groups by Student's t.

    The result must lie between its two limits.
    """

    def worth(values: np.ndarray, groups: list[Any], confidence: float) -> float:
        squares, number = np.square(_group_sums(values, groups)), len(values)
        freedom = max(1.0, squares.sum() ** 2 / (squares**2).sum() - 1)
        quantile = 0.5 + confidence / 2
        narrower = stats.norm.ppf(quantile) / stats.t.ppf(quantile, freedom)
        sizes = np.unique(groups, return_counts=True)[1]
        found = number / _design_effect(values, groups) * narrower**2
        return float(np.clip(found, number**2 / (sizes**2).sum(), number))

    cases = [(*sample, confidence) for sample in _grouped_samples() for confidence in (0.8, 0.95, 0.99)]
    pairs = np.repeat(np.arange(40), 2).tolist()
    cases += [(np.array([0, 1] * 28 + [1] * 12 + [0] * 12), pairs, 0.95), (np.array([1] * 78 + [0, 0]), pairs, 0.95)]
    cases += [(np.array([0] + [1] * 799), np.repeat(np.arange(8), 100).tolist(), 0.9)]
    cause = "n / design effect · (z / t)², with Satterthwaite's degrees of freedom, between least and n"
    agrees(student.effective_rows, worth, cases, cause, rel=1e-6)
    agrees(student.effective_rows, worth(*cases[1]), [cases[1][:2]], "the default confidence is 0.95", rel=1e-6)


def answer_rows(student: Any) -> None:
    """Check that the rows for ± 1 point are right."""
    truth = stats.norm.ppf(0.975) ** 2 * 0.97 * 0.03 / 0.01**2
    same(student.rows_for_one_point(), truth, "rows for ± 1 point", "n = 1.96² · 0.97 · 0.03 / 0.01²", rel=0.05)


@judges("checked_outputs")
def outputs_are_checked(student: Any) -> None:
    """Check that `checked_outputs` returns good outputs unchanged.

    For wrong lengths, wrong shapes and NaN, the error must name the dataset.
    """
    rng = draw()
    checked = student.checked_outputs
    scores = rng.normal(size=(12, 3))
    scores[2, 1] = -INF
    same(checked(scores, 12, "day"), scores, "good outputs (−∞ is a logit)")
    same(checked([1, 2, 3], 3, "day"), [1, 2, 3], "a plain list of labels")
    same(checked(["a", "b"], 2, "day"), ["a", "b"], "texts", "they are outputs too; isnan does not take them")
    shapes = (11, 3), (13, 3), (), (12, 3, 2), (12, 0)
    refuses(checked, *((np.ones(shape), 12, "foggy") for shape in shapes), mentions="foggy")
    for kind in (np.float64, np.float32, np.float16):
        row = int(rng.integers(3, 9))
        broken = np.ones((12, 3), kind)
        broken[row, int(rng.integers(3))] = broken[10, 0] = NAN
        refuses(checked, (broken, 12, "foggy"), mentions=["foggy", str(row)], what=f"NaN in row {row}")
        refuses(checked, (broken[:, 0], 12, "foggy"), mentions="foggy", what="NaN in row 10")


def _right(scores: Any, truth: Any, threshold: float = 0.0) -> float:
    """Return the fraction of rows that a single logit, cut at the threshold, classifies correctly."""
    return float(np.mean((scores >= threshold) == truth))


@judges("measure_accuracy")
def accuracy_is_counted(student: Any) -> None:
    """Check that values, pooled counts and intervals of `measure_accuracy` agree with counting.

    Every kind of output is tested.
    """
    rng = draw()
    scores = rng.dirichlet(np.ones(3), 90)
    names = np.array(["a", "b", "c"])
    best = np.array([names[row.tolist().index(max(row))] for row in scores])
    y = np.where(rng.uniform(size=90) < 0.8, best, names[rng.integers(0, 3, 90)])
    X, model = np.zeros((90, 2)), Scores(scores, names)
    datasets = {"day": (X[:70], y[:70]), "night": (X[:25], y[:25].tolist())}
    result = student.measure_accuracy(model, datasets, confidence=0.9)
    counts = [int(sum(best[i] == y[i] for i in range(n))) for n in (70, 25)]
    fractions, correct = [counts[0] / 70, counts[1] / 25], sum(counts)
    same(result.values, fractions, "one fraction for each dataset")
    pooled = {"correct": correct, "total": 95, "accuracy": correct / 95, "outputs": "probabilities"}
    holds(result.metadata, pooled, "metadata", "add up all datasets; pooled is correct / total, no mean of fractions")
    interval = {"wilson_interval": _wilson(correct, 95, 0.9)}
    holds(result.metadata, interval, "metadata", "pooled; hand the confidence on", rel=1e-6)
    each = entries(entries(result.metadata, "metadata")["datasets"], "metadata['datasets']")
    copies = {"day": np.arange(70) // 5, "night": np.arange(25) // 5 + 100}
    grouped = student.measure_accuracy(model, datasets, confidence=0.9, groups=copies).metadata
    right = [int(best[i] == y[i]) for n in (70, 25) for i in range(n)]
    effect = _design_effect(np.array(right), [*copies["day"].tolist(), *copies["night"].tolist()])
    holds(grouped, {"groups": 19, "design_effect": effect}, "metadata with groups", "pass groups on", rel=1e-6)
    same(list(each), ["day", "night"], "the datasets in the metadata")
    holds(each["night"], {"correct": counts[1], "total": 25}, "metadata['datasets']['night']")
    holds(result, {"metric_name": "accuracy", "unit": "", "confidence": 0.9}, "result")
    same(model.asked, 4, "the calls of the model", "it should run once for each dataset")

    logit = rng.uniform(0.01, 0.99, 60)  # all between 0 and 1, except two in the second dataset
    logit[-2:] = (-3.0, 4.0)
    truth = rng.integers(0, 2, 60)
    signs = np.where(truth == 1, 1, -1)
    first, second = parts = [(logit[:40, None], truth[:40]), (logit[40:, None], truth[40:])]
    rights, cuts = ([_right(z[:, 0], t, at) for z, t in parts] for at in (0, 0.4))
    named = [float(np.mean((logit[:40] < 0) == (signs[:40] == 1)))]
    for data, settings, values, cause in (
        ([(X[:70], y[:70]), (X[:25], y[:25])], {"model": model}, fractions, "datasets may be a list of pairs"),
        ((X[:70], y[:70]), {"model": model}, fractions[:1], "datasets may be a single pair"),
        (parts, {}, rights, "decide the kind of output over all datasets together"),
        (parts, {"threshold": 0.4}, cuts, "hand the threshold on"),
        ([first], {"outputs": "logits"}, rights[:1], "outputs='logits' overrides the guess"),
        ((second[0], signs[40:]), {}, rights[1:], "labels may be −1 and 1"),
        (
            (X[:40], signs[:40]), {"model": Scores(np.stack([-logit, logit], 1)[:40]), "classes": [1, -1]}, named,
            "classes name the columns, in their order",
        ),
        ((np.array([[3], [4], [5]]), [3, 4, 4]), {}, [2 / 3], "a model may answer with labels"),
    ):  # fmt: skip
        options: dict[str, Any] = {"model": lambda x: x[:, 0], **settings}
        got = student.measure_accuracy(options.pop("model"), data, **options).values
        same(got, values, f"the fractions with {options}", cause)


@judges("measure_accuracy")
def accuracy_refuses_nonsense(student: Any) -> None:
    """Check that `measure_accuracy` refuses data that cannot be scored, with an error that names the dataset.

    An exception raised by the model must pass through unchanged.
    """
    rng = draw()
    short, hollow, fog = words(rng, 3)
    rows = int(rng.integers(6, 12))
    X, y = rng.random((rows, 2)), rng.permutation(np.arange(rows) % 3)
    good, model, measure = (X, y), Scores(np.eye(3)[y] * 0.8 + 0.1), student.measure_accuracy
    refuses(measure, (model, None), (model, []), (model, {}), (model, ()))
    unequal = {"good": good, short: (X, y[:-1])}
    refuses(measure, (model, unequal), mentions=short, what=f"{rows} rows and {rows - 1} labels")
    refuses(measure, (model, {"good": good, hollow: (X[:0], y[:0])}), mentions=hollow, what="an empty dataset")
    same(model.asked, 0, "the calls of the model before datasets are checked", "it may run for hours")
    hole, few = int(rng.integers(3, rows)), int(rng.integers(1, rows))
    holes = Scores(np.where(np.arange(rows)[:, None] == hole, NAN, np.eye(3)[y]))
    before = {"good": (X[:hole], y[:hole]), fog: good}
    refuses(measure, (holes, before), mentions=fog, what=f"NaN outputs in row {hole}")
    what = f"{few} outputs for {rows} rows"
    refuses(measure, (lambda x: np.eye(3)[y[:few]], {fog: good}), mentions=fog, what=what)
    texts = Scores(np.eye(3)[y], ["0", "1", "2"])
    refuses(measure, (texts, {fog: good}), mentions=fog, what="text labels against numbers")

    def breaks(x: Any) -> Any:
        if len(x) == rows:
            raise ZeroDivisionError("inside the model")
        return np.eye(3)[y[: len(x)]]

    both, cause = {"small": (X[:few], y[:few]), "big": good}, "no try … except around the model"
    refuses(measure, (breaks, both), error=ZeroDivisionError, what="a model that raises", cause=cause)
    refuses(measure, (float(rng.random()), good), error=TypeError, what="a number instead of a model")


@judges("recall_per_class")
def recalls_are_per_class(student: Any) -> None:
    """Check that `recall_per_class` agrees with counting, and omits classes that do not occur in `y`."""
    rng = draw()

    def counted(y: list[Any], said: list[Any]) -> dict[Any, float]:
        return {c: sum(s == c for t, s in zip(y, said, strict=True) if t == c) / y.count(c) for c in sorted(set(y))}

    for names in (["x", "y", "z", "w"], [3, 1, 7, 9]):
        y, said = ([names[i] for i in rng.integers(0, top, 60)] for top in (3, 4))
        cause = "classes of y, sorted; over the rows whose true label it is"
        agrees(student.recall_per_class, counted, [(y, said)], cause)
        recalls = entries(student.recall_per_class(y, said), "the recalls")
        same(list(recalls), sorted(set(y)), "the classes", "those of y, sorted")
    refuses(student.recall_per_class, ([1, 2], [1]), ([], []), ([1, 2], ["1", "2"]))


@judges("balanced_accuracy")
def balance_is_the_mean_recall(student: Any) -> None:
    """Check that `balanced_accuracy` is the mean of the recalls of the classes, on unbalanced classes."""
    rng = draw()
    for _ in range(5):
        y = rng.choice(4, 80, p=[0.7, 0.2, 0.05, 0.05])
        said = np.where(rng.uniform(size=80) < 0.7, y, rng.integers(0, 5, 80))
        truth = np.mean([np.mean(said[y == c] == c) for c in sorted(set(y.tolist()))])
        agrees(student.balanced_accuracy, truth, [(y, said)], "the plain mean of the recalls of the classes in y")


@judges("mcnemar")
def mcnemar_agrees_with_scipy(student: Any) -> None:
    """Check that counts of `mcnemar` agree with counting, and p-values with SciPy.

    The p-value comes from the binomial distribution below 25 discordant rows, and from chi-squared from 25 on.
    """
    rng, rows = draw(), 150
    few = [(0, 0), (1, 0), (0, 6), (5, 5), (10, 14), (24, 0)]
    for only_a, only_b in [*few, (13, 12), (25, 0), (40, 20), (20, 40), (13, 13)]:
        y, discordant = rng.integers(0, 3, rows), only_a + only_b
        both = ["neither"] * 20 + ["both"] * (rows - 20 - discordant)
        kind = rng.permutation(["a"] * only_a + ["b"] * only_b + both)
        a = np.where(np.isin(kind, ["a", "both"]), y, y + 3)
        b = np.where(np.isin(kind, ["b", "both"]), y, np.where(kind == "neither", y + 4, y + 3))
        if discordant < 25:
            truth = float(stats.binomtest(only_a, discordant).pvalue) if discordant else 1.0
            cause = "below 25 the p value is exact and two-sided, at most 1"
        else:
            truth = float(stats.chi2.sf((abs(only_a - only_b) - 1) ** 2 / discordant, 1))
            cause = "from 25 on it is chi-squared with continuity correction: (|b − c| − 1)²/(b + c)"
        got, what = student.mcnemar(y, a, b), f"mcnemar of {only_a} and {only_b} discordant rows"
        counts = {"only_a": only_a, "only_b": only_b, "rows": rows}
        holds(got, counts, what, "count rows that one alone gets right; both wrong is no discord")
        holds(got, {"p_value": truth, "exact": discordant < 25}, what, cause, rel=1e-6)
    refuses(student.mcnemar, ([1, 2], [1, 2], [1]), mentions="pred_b")
    refuses(student.mcnemar, ([1, 2], [1], [1, 2]), mentions="pred_a")
    refuses(student.mcnemar, ([1, 2], ["1", "2"], [1, 2]))


@judges("parity")
def parity_compares(student: Any) -> None:
    """Check that the differences and the label agreement from `parity` agree with counting.

    Every kind of output is tested.
    """
    rng = draw()
    a = rng.dirichlet(np.ones(3), 50)
    b = np.abs(a + rng.normal(0, 0.1, a.shape))
    b /= b.sum(axis=1, keepdims=True)
    gaps = [abs(float(p) - float(q)) for p, q in zip(a.ravel(), b.ravel(), strict=True)]
    agreement = sum(np.argmax(p) == np.argmax(q) for p, q in zip(a, b, strict=True)) / 50
    truth = {"max_difference": max(gaps), "mean_difference": sum(gaps) / len(gaps)}
    cause = "the largest and the mean of the absolute differences of all scores"
    holds(student.parity(a, b), {**truth, "label_agreement": agreement, "rows": 50}, "parity", cause)
    logit = rng.normal(0, 1, 40)
    moved = logit + rng.normal(0, 0.7, 40)
    for settings, cut, cause in (({}, 0, "cut logits at 0"), ({"threshold": 0.5}, 0.5, "hand the threshold on")):
        agreed = {"label_agreement": _right(logit, moved >= cut, cut)}
        holds(student.parity(logit, moved, **settings), agreed, f"parity of one logit with {settings}", cause)
    ruled_out, whole = np.array([[1.0, -INF], [0.5, 0.25]]), np.array([[16777216.0, 0.5]], np.float32)
    got = student.parity(ruled_out, ruled_out + np.array([[0, 0], [0.5, 0]]))
    holds(got, {"max_difference": 0.5}, "parity with −∞ in both", "equal infinities do not differ")
    got = student.parity(whole, whole.astype(np.float64) + np.array([[1.0, 0.0]]))
    holds(got, {"max_difference": 1.0}, "parity of float32 and float64", "subtract in double precision")
    got = student.parity(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 4]))
    none = {"label_agreement": 0.75, "max_difference": None, "mean_difference": None}
    holds(got, none, "parity of labels", "labels have no differences: class 9 is not 8 away from class 1")
    refuses(student.parity, (a, b[:49]), (a, a[:, :2]), ([1, 2], ["1", "2"]), ([], []))
    refuses(student.parity, (a, np.full(a.shape, NAN)), mentions="pred_b", what="NaN in the second")


def answer_understanding(student: Any) -> None:
    """Check that the answers follow from Wilson's interval at 360 of 360 correct rows, and from powers of 1/2.

    The last answer must report no accuracy for a run that failed.
    """
    same(student.lower_end_of_perfection(), _wilson(360, 360)[0], "question 1", "wilson_interval(360, 360)", rel=6e-4)
    same(student.discordant_rows_needed(), 6, "question 2", "2 · (1/2)^n falls below 0.05 at n = 6; at 5 it is 0.0625")
    cause = "it is no accuracy of this model; a failed measurement has no value, report the error"
    same(student.accuracy_to_print(), None, "question 3", cause)
