"""Hidden checks of module 04: against SciPy, plain counting, simulated coverage and models that break."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from autograder.checks import all_close, close, draw, expect, judges, raises, words

NAN, INF = float("nan"), float("inf")


class Scores:
    """A classifier that answers with given scores, whatever it is asked."""

    shows = ("classes_",)

    def __init__(self, scores: Any, classes: Any = None) -> None:
        self.scores, self.asked = np.asarray(scores), 0
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict_proba(self, inputs: Any) -> np.ndarray:
        """Return the scores of as many rows as asked, and remember the question."""
        self.asked += 1
        return self.scores[: len(inputs)]


@judges("wilson_interval")
def wilson_is_wilsons(student: Any) -> None:
    """The interval equals SciPy's for counts at both ends and in the middle."""
    rng = draw()
    cases = [
        (0, 1),
        (1, 1),
        (0, 30),
        (30, 30),
        (353, 360),
        (1, 1000),
        *((int(rng.integers(n + 1)), n) for n in (7, 60, 5000)),
    ]
    for correct, total in cases:
        for confidence in (0.8, 0.95, 0.99):
            truth = stats.binomtest(correct, total).proportion_ci(confidence, method="wilson")
            got = student.wilson_interval(correct, total, confidence)
            cause = "z at 0.5 + confidence / 2, z²/2n and z²/4n² in the formula, all over 1 + z²/n"
            what = f"wilson_interval({correct}, {total}, {confidence})"
            all_close(got, [float(truth.low), float(truth.high)], what, cause=cause, rel=1e-6, abs=1e-12)
    lower, upper = student.wilson_interval(0, 3)[0], student.wilson_interval(3, 3)[1]
    expect(lower == 0.0 and upper == 1.0, "0 of 3 should begin at exactly 0, and 3 of 3 end at exactly 1")
    all_close(
        student.wilson_interval(353, 360), student.wilson_interval(353, 360, 0.95), "the default confidence is 0.95"
    )
    for wrong in ((0, 0), (5, 4), (-1, 4), (0.5, 4)):
        raises(ValueError, lambda w=wrong: student.wilson_interval(*w), f"wilson_interval{wrong}")
    raises(ValueError, lambda: student.wilson_interval(1, 2, 1.5), "a confidence of 1.5")


def answer_rows(student: Any) -> None:
    """Rows follow from the half-width."""
    truth = stats.norm.ppf(0.975) ** 2 * 0.97 * 0.03 / 0.01**2
    close(student.rows_for_one_point(), truth, "rows for ± 1 point", cause="n = 1.96² · 0.97 · 0.03 / 0.01²", rel=0.05)
    close(student.growth_for_half_a_point(), 4, "the growth", cause="n grows with the square of 1 / half-width")


@judges("output_kind")
def kinds_are_told(student: Any) -> None:
    """Probabilities, logits and labels of every shape and type."""
    rng = draw()
    many = rng.dirichlet(np.ones(4), 25)
    sigmoids = rng.uniform(0, 1, (25, 3))
    sigmoids[0] = 0.9  # three times 0.9 is no distribution
    below = rng.uniform(0.1, 0.9, 9)
    below[4] = -0.2
    above = rng.uniform(0.1, 0.9, 9)
    above[7] = 1.4
    cases = [
        (many, "probabilities", "rows within 0 and 1 that sum to 1"),
        (many.astype(np.float16), "probabilities", "half-precision rows, which sum to 1 within 0.001"),
        (rng.normal(size=(25, 4)), "logits", "four columns of any numbers"),
        (sigmoids, "logits", "rows within 0 and 1 that do not sum to 1"),
        (np.array([[1.5, -0.5], [0.4, 0.6]]), "logits", "rows that sum to 1 with a negative number"),
        (rng.uniform(0.01, 0.99, 9), "probabilities", "one column within 0 and 1"),
        (rng.uniform(0.01, 0.99, (9, 1)), "probabilities", "one column within 0 and 1, of two dimensions"),
        (below, "logits", "one column with a negative number"),
        (above, "logits", "one column with a number above 1"),
        (rng.integers(0, 5, 9), "labels", "whole numbers"),
        (rng.integers(0, 2, (9, 1)), "labels", "one column of whole numbers"),
        (rng.integers(0, 5, 9).astype(float), "labels", "whole numbers as floats"),
        (np.array(["cat", "dog"]), "labels", "texts"),
        (np.array(["cat", "dog"], dtype=object), "labels", "texts as objects"),
        (np.array([True, False]), "labels", "True and False"),
        (np.array([[1.0, 0.0], [0.0, 1.0]]), "probabilities", "two columns of certain probabilities"),
        (np.array([[3, -1], [2, 4]]), "logits", "two columns of whole numbers"),
    ]
    for outputs, truth, what in cases:
        got = student.output_kind(outputs)
        expect(str(got) == truth, f"{what}: {truth!r} expected, got {got!r}")


@judges("predicted_labels")
def labels_are_found(student: Any) -> None:
    """Every kind becomes the right label, with and without a threshold."""
    rng = draw()
    scores, names = rng.dirichlet(np.ones(3), 40), np.array(["a", "b", "c"])
    truth = [names[row.tolist().index(max(row))] for row in scores]
    _same(
        student.predicted_labels(scores, "probabilities", names),
        truth,
        "labels of three columns",
        "take the column of the largest",
    )
    _same(
        student.predicted_labels(np.log(scores), "logits", list(names)),
        truth,
        "labels of three columns of logits",
        "argmax serves logits too",
    )
    one = np.append(rng.uniform(0.01, 0.99, 30), 0.5)
    for column in (one, one[:, None]):
        cause = "one column is the score of the second class: 0.5 and more is class 1"
        _same(
            student.predicted_labels(column, "probabilities", [0, 1]),
            [int(p >= 0.5) for p in one],
            "labels of one column",
            cause,
        )
        cut = ["yes" if p >= 0.8 else "no" for p in one]
        _same(
            student.predicted_labels(column, "probabilities", ["no", "yes"], 0.8),
            cut,
            "labels at threshold 0.8",
            "use the threshold given",
        )
    logit = np.append(rng.normal(0, 0.6, 30), 0.0)
    _same(
        student.predicted_labels(logit, "logits", [-1, 1]),
        [1 if z >= 0 else -1 for z in logit],
        "labels of one logit",
        "a logit is cut at 0",
    )
    _same(
        student.predicted_labels(logit, "logits", [-1, 1], 0.7),
        [1 if z >= 0.7 else -1 for z in logit],
        "labels of one logit at 0.7",
    )
    two = np.stack([1 - one, one], axis=1)
    _same(
        student.predicted_labels(two, "probabilities", [0, 1], 0.3),
        [int(p >= 0.3) for p in one],
        "two columns at threshold 0.3",
        "cut the second column",
    )
    _same(
        student.predicted_labels(two, "probabilities", [0, 1], 0.0),
        [1] * len(one),
        "two columns at threshold 0",
        "0 is a threshold, not the lack of one",
    )
    pair = rng.normal(size=(30, 2))
    difference = [int(z1 - z0 >= 0.5) for z0, z1 in pair]
    _same(
        student.predicted_labels(pair, "logits", [0, 1], 0.5),
        difference,
        "two columns of logits at 0.5",
        "cut the difference of the two logits",
    )
    labels = rng.integers(0, 9, 12)
    _same(student.predicted_labels(labels, "labels", [0, 1]), labels.tolist(), "labels")
    _same(student.predicted_labels(labels[:, None], "labels", [0, 1]), labels.tolist(), "labels in a column")
    raises(ValueError, lambda: student.predicted_labels(scores, "probabilities", [0, 1]), "3 columns and 2 classes")
    raises(ValueError, lambda: student.predicted_labels(one, "probabilities", [0, 1, 2]), "1 column and 3 classes")
    raises(
        ValueError,
        lambda: student.predicted_labels(scores, "probabilities", names, 0.5),
        "a threshold for three classes",
    )


def _same(got: Any, truth: list[Any], what: str, cause: str = "") -> None:
    plain = np.asarray(got).tolist()
    expect(
        isinstance(plain, list) and len(plain) == len(truth),
        f"{what}: {len(truth)} labels in a row expected, got {plain!r}",
    )
    for row, (mine, right) in enumerate(zip(plain, truth, strict=True)):
        expect(
            bool(mine == right),
            f"{what}: {right!r} expected in row {row}, got {mine!r}" + (f"; {cause}" if cause else ""),
        )


@judges("checked_outputs")
def outputs_are_checked(student: Any) -> None:
    """Good outputs pass unchanged; wrong lengths, shapes and NaN are refused by name."""
    rng = draw()
    scores = rng.normal(size=(12, 3))
    scores[2, 1] = -INF
    all_close(
        np.asarray(student.checked_outputs(scores, 12, "day")).ravel(),
        scores.ravel().tolist(),
        "good outputs (−∞ is a logit)",
    )
    all_close(student.checked_outputs([1, 2, 3], 3, "day"), [1, 2, 3], "a plain list of labels")
    expect(
        list(student.checked_outputs(["a", "b"], 2, "day")) == ["a", "b"],
        "texts are outputs too; isnan does not take them",
    )
    for shape in ((11, 3), (13, 3), (), (12, 3, 2), (12, 0)):
        raises(
            ValueError,
            lambda s=shape: student.checked_outputs(np.ones(s), 12, "foggy"),
            f"shape {shape} for 12 rows",
            mentions=["foggy"],
        )
    for kind in (np.float64, np.float32, np.float16):
        row = int(rng.integers(3, 9))
        broken = np.ones((12, 3), kind)
        broken[row, int(rng.integers(3))] = NAN
        broken[10, 0] = NAN
        raises(
            ValueError,
            lambda b=broken: student.checked_outputs(b, 12, "foggy"),
            f"NaN in row {row}",
            mentions=["foggy", str(row)],
        )
        raises(
            ValueError,
            lambda b=broken[:, 0]: student.checked_outputs(b, 12, "foggy"),
            "NaN in row 10",
            mentions=["foggy"],
        )


@judges("measure_accuracy")
def accuracy_is_counted(student: Any) -> None:
    """Values, pooled counts and intervals agree with counting, for every kind of output."""
    rng = draw()
    scores = rng.dirichlet(np.ones(3), 90)
    names = np.array(["a", "b", "c"])
    best = np.array([names[row.tolist().index(max(row))] for row in scores])
    y = np.where(rng.uniform(size=90) < 0.8, best, names[rng.integers(0, 3, 90)])
    X = np.zeros((90, 2))
    model = Scores(scores, names)
    datasets = {"day": (X[:70], y[:70]), "night": (X[:25], y[:25].tolist())}
    result = student.measure_accuracy(model, datasets, confidence=0.9)
    counts = [(int(sum(best[i] == y[i] for i in range(n))), n) for n in (70, 25)]
    all_close(result.values, [c / n for c, n in counts], "one fraction for each dataset")
    correct, total = counts[0][0] + counts[1][0], 95
    close(result.metadata["correct"], correct, "metadata['correct']", cause="add up the counts of all datasets")
    close(result.metadata["total"], total, "metadata['total']")
    close(
        result.metadata["accuracy"],
        correct / total,
        "metadata['accuracy']",
        cause="pooled: correct / total, not the mean of the fractions",
    )
    wilson = stats.binomtest(correct, total).proportion_ci(0.9, method="wilson")
    all_close(
        result.metadata["wilson_interval"],
        [float(wilson.low), float(wilson.high)],
        "the pooled Wilson interval at 0.9",
        cause="hand the confidence on",
        rel=1e-6,
    )
    night = result.metadata["datasets"]["night"]
    close(night["correct"], counts[1][0], "metadata['datasets']['night']['correct']")
    close(night["total"], 25, "metadata['datasets']['night']['total']")
    expect(
        result.metadata["outputs"] == "probabilities",
        f"metadata['outputs'] should say 'probabilities', not {result.metadata.get('outputs')!r}",
    )
    expect(result.metric_name == "accuracy" and result.unit == "", "metric_name is 'accuracy', unit is ''")
    close(result.confidence, 0.9, "result.confidence")
    expect(model.asked == 2, f"the model should run once for each dataset: 2 calls, not {model.asked}")
    several = student.measure_accuracy(model, [(X[:70], y[:70]), (X[:25], y[:25])])
    all_close(several.values, [c / n for c, n in counts], "the fractions of a list of pairs")
    close(
        student.measure_accuracy(model, (X[:70], y[:70])).values[0], counts[0][0] / 70, "the fraction of a single pair"
    )

    logit = rng.uniform(0.01, 0.99, 60)  # all within 0 and 1, but for two in the second dataset
    logit[-2:] = (-3.0, 4.0)
    truth = rng.integers(0, 2, 60)
    parts = [(logit[:40, None], truth[:40]), (logit[40:, None], truth[40:])]
    got = student.measure_accuracy(lambda x: x[:, 0], parts).values
    right = [float(np.mean((z[:, 0] >= 0) == t)) for z, t in parts]
    all_close(
        got, right, "one logit a row, in two datasets", cause="decide the kind of output over all datasets together"
    )
    cut = student.measure_accuracy(lambda x: x[:, 0], parts, threshold=0.4).values
    all_close(
        cut,
        [float(np.mean((z[:, 0] >= 0.4) == t)) for z, t in parts],
        "the same at threshold 0.4",
        cause="hand the threshold on",
    )
    told = student.measure_accuracy(lambda x: x[:, 0], parts[:1], outputs="logits").values
    all_close(told, [right[0]], "the first alone, told that it is logits", cause="outputs='logits' overrides the guess")
    signs = np.where(truth[:40] == 1, 1, -1)
    close(
        student.measure_accuracy(lambda x: x[:, 0], (parts[1][0], np.where(truth[40:] == 1, 1, -1))).values[0],
        right[1],
        "labels −1 and 1",
    )
    named = student.measure_accuracy(Scores(np.stack([-logit, logit], 1)[:40]), (X[:40], signs), classes=[1, -1]).values
    all_close(
        named,
        [float(np.mean((logit[:40] < 0) == (signs == 1)))],
        "classes=[1, −1]",
        cause="classes name the columns, in their order",
    )
    said = student.measure_accuracy(lambda x: x[:, 0], (np.array([[3], [4], [5]]), [3, 4, 4])).values
    all_close(said, [2 / 3], "a model that answers with labels")


@judges("measure_accuracy")
def accuracy_refuses_nonsense(student: Any) -> None:
    """What cannot be scored raises and names the dataset; what the model raises comes through."""
    rng = draw()
    short, hollow, fog = words(rng, 3)
    rows = int(rng.integers(6, 12))
    X, y = rng.random((rows, 2)), rng.permutation(np.arange(rows) % 3)
    model = Scores(np.eye(3)[y] * 0.8 + 0.1)
    good = (X, y)
    nothings: tuple[Any, ...] = (None, [], {}, ())
    for nothing in nothings:
        raises(ValueError, lambda n=nothing: student.measure_accuracy(model, n), f"datasets={nothing!r}")
    raises(
        ValueError,
        lambda: student.measure_accuracy(model, {"good": good, short: (X, y[:-1])}),
        f"{rows} rows and {rows - 1} labels",
        mentions=[short],
    )
    raises(
        ValueError,
        lambda: student.measure_accuracy(model, {"good": good, hollow: (X[:0], y[:0])}),
        "an empty dataset",
        mentions=[hollow],
    )
    expect(model.asked == 0, "datasets are checked before the model runs: it may run for hours")
    hole = int(rng.integers(3, rows))
    holes = Scores(np.where(np.arange(rows)[:, None] == hole, NAN, np.eye(3)[y]))
    raises(
        ValueError,
        lambda: student.measure_accuracy(holes, {"good": (X[:hole], y[:hole]), fog: good}),
        f"NaN outputs in row {hole}",
        mentions=[fog],
    )
    few = int(rng.integers(1, rows))
    raises(
        ValueError,
        lambda: student.measure_accuracy(lambda x: np.eye(3)[y[:few]], {fog: good}),
        f"{few} outputs for {rows} rows",
        mentions=[fog],
    )
    texts = Scores(np.eye(3)[y], ["0", "1", "2"])
    raises(
        ValueError, lambda: student.measure_accuracy(texts, {fog: good}), "text labels against numbers", mentions=[fog]
    )

    def breaks(x: Any) -> Any:
        if len(x) == rows:
            raise ZeroDivisionError("inside the model")
        return np.eye(3)[y[: len(x)]]

    cause = "no try … except around the model"
    raises(
        ZeroDivisionError,
        lambda: student.measure_accuracy(breaks, {"small": (X[:few], y[:few]), "big": good}),
        "a model that raises",
        cause=cause,
    )
    raises(TypeError, lambda: student.measure_accuracy(float(rng.random()), good), "a number instead of a model")


@judges("recall_per_class")
def recalls_are_per_class(student: Any) -> None:
    """Recalls agree with counting; classes that do not occur have none."""
    rng = draw()
    for names in (["x", "y", "z", "w"], [3, 1, 7, 9]):
        y = [names[i] for i in rng.integers(0, 3, 60)]
        said = [names[i] for i in rng.integers(0, 4, 60)]
        got = student.recall_per_class(y, said)
        truth = {c: sum(s == c for t, s in zip(y, said, strict=True) if t == c) / y.count(c) for c in sorted(set(y))}
        expect(list(got) == list(truth), f"classes {list(truth)} expected, got {list(got)}: those of y, sorted")
        cause = "the denominator counts the rows whose true label it is"
        all_close(got.values(), list(truth.values()), "the recalls", cause=cause)
    raises(ValueError, lambda: student.recall_per_class([1, 2], [1]), "2 labels and 1 prediction")
    raises(ValueError, lambda: student.recall_per_class([], []), "no labels")
    raises(ValueError, lambda: student.recall_per_class([1, 2], ["1", "2"]), "numbers against text")


@judges("balanced_accuracy")
def balance_is_the_mean_recall(student: Any) -> None:
    """The mean of the recalls, on unbalanced classes."""
    rng = draw()
    for _ in range(5):
        y = rng.choice(4, 80, p=[0.7, 0.2, 0.05, 0.05])
        said = np.where(rng.uniform(size=80) < 0.7, y, rng.integers(0, 5, 80))
        truth = np.mean([np.mean(said[y == c] == c) for c in sorted(set(y.tolist()))])
        close(
            student.balanced_accuracy(y, said),
            float(truth),
            "balanced_accuracy",
            cause="the plain mean of the recalls of the classes in y",
        )


def answer_fraud(student: Any) -> None:
    """Silence on 20 of 10 000."""
    close(student.accuracy_of_silence(), 0.998, "the accuracy", cause="9980 of 10 000 payments are honest")
    close(
        student.balanced_accuracy_of_silence(),
        0.5,
        "the balanced accuracy",
        cause="recall 1 of the honest, 0 of the fraud",
    )


@judges("mcnemar")
def mcnemar_agrees_with_scipy(student: Any) -> None:
    """Counts by hand; p values from SciPy's binomial test and chi-squared."""
    rng = draw()
    for only_a, only_b in (
        (0, 0),
        (1, 0),
        (0, 6),
        (5, 5),
        (10, 14),
        (13, 12),
        (24, 0),
        (25, 0),
        (40, 20),
        (20, 40),
        (13, 13),
    ):
        rows = 150
        y = rng.integers(0, 3, rows)
        kind = rng.permutation(
            ["a"] * only_a + ["b"] * only_b + ["neither"] * 20 + ["both"] * (rows - 20 - only_a - only_b)
        )
        a = np.where(np.isin(kind, ["a", "both"]), y, y + 3)
        b = np.where(np.isin(kind, ["b", "both"]), y, np.where(kind == "neither", y + 4, y + 3))
        got = student.mcnemar(y, a, b)
        where = f"with {only_a} and {only_b} discordant rows"
        all_close(
            [got.only_a, got.only_b],
            [only_a, only_b],
            f"only_a and only_b {where}",
            cause="count rows that one alone gets right; both wrong is no discord",
        )
        discordant = only_a + only_b
        if discordant < 25:
            truth = float(stats.binomtest(only_a, discordant).pvalue) if discordant else 1.0
            cause = "below 25 the p value is exact and two-sided, at most 1"
        else:
            truth = float(stats.chi2.sf((abs(only_a - only_b) - 1) ** 2 / discordant, 1))
            cause = "from 25 on it is chi-squared with continuity correction: (|b − c| − 1)²/(b + c)"
        close(got.p_value, truth, f"p {where}", cause=cause, rel=1e-6)
        expect(bool(got.exact) == (discordant < 25), f"exact should be {discordant < 25} {where}")
        close(got.rows, rows, "rows")
    raises(ValueError, lambda: student.mcnemar([1, 2], [1, 2], [1]), "3 lists of unequal lengths", mentions=["pred_b"])
    raises(ValueError, lambda: student.mcnemar([1, 2], [1], [1, 2]), "3 lists of unequal lengths", mentions=["pred_a"])
    raises(ValueError, lambda: student.mcnemar([1, 2], ["1", "2"], [1, 2]), "text against numbers")


@judges("difference_interval")
def difference_is_paired(student: Any) -> None:
    """The ends follow from the weighted mean and variance of +1, −1 and 0, and the coverage holds."""
    rng = draw()
    drawn = [
        (int(only_a), int(only_b), int(only_a + only_b + rest), round(float(confidence), 2))
        for only_a, only_b, rest, confidence in zip(
            *rng.integers((0, 0, 1), (30, 30, 300), (8, 3)).T, rng.uniform(0.7, 0.99, 8), strict=True
        )
    ]
    for only_a, only_b, rows, confidence in (
        *drawn,
        (10, 2, 100, 0.95),
        (0, 0, 50, 0.95),
        (3, 30, 400, 0.9),
        (0, 5, 20, 0.99),
        (4, 4, 8, 0.95),
        (0, 3, 4, 0.95),
    ):
        points, weights = (
            np.array([1.0, -1.0, 0.0]),
            np.array([only_a + 0.5, only_b + 0.5, rows - only_a - only_b + 1.0]),
        )
        mean = float(np.average(points, weights=weights))
        reach = stats.norm.ppf(0.5 + confidence / 2) * math.sqrt(
            np.average((points - mean) ** 2, weights=weights) / weights.sum()
        )
        got = student.difference_interval(only_a, only_b, rows, confidence)
        cause = "half a row more of each of the four kinds; the variance of +1, −1 and 0"
        all_close(
            got,
            [max(-1.0, mean - reach), min(1.0, mean + reach)],
            f"difference_interval({only_a}, {only_b}, {rows}, {confidence})",
            cause=cause,
            rel=1e-7,
        )
    many = int(rng.integers(2, 50))
    for wrong in ((-1, 0, 5), (0, -1, 5), (3, 3, 5), (0, 0, 0), (many, many, 2 * many - 1)):
        raises(ValueError, lambda w=wrong: student.difference_interval(*w), f"difference_interval{wrong}")


@judges("parity")
def parity_compares(student: Any) -> None:
    """Differences and agreement agree with counting, for every kind of output."""
    rng = draw()
    a = rng.dirichlet(np.ones(3), 50)
    b = a + rng.normal(0, 0.1, a.shape)
    b = np.abs(b) / np.abs(b).sum(axis=1, keepdims=True)
    got = student.parity(a, b)
    gaps = [abs(float(p) - float(q)) for p, q in zip(a.ravel(), b.ravel(), strict=True)]
    close(got.max_difference, max(gaps), "max_difference")
    close(
        got.mean_difference,
        sum(gaps) / len(gaps),
        "mean_difference",
        cause="the mean of the absolute differences of all scores",
    )
    agreement = sum(np.argmax(p) == np.argmax(q) for p, q in zip(a, b, strict=True)) / 50
    close(got.label_agreement, float(agreement), "label_agreement")
    close(got.rows, 50, "rows")
    logit = rng.normal(0, 1, 40)
    moved = logit + rng.normal(0, 0.7, 40)
    got = student.parity(logit, moved)
    close(
        got.label_agreement,
        float(np.mean((logit >= 0) == (moved >= 0))),
        "label_agreement of one logit",
        cause="cut logits at 0",
    )
    got = student.parity(logit, moved, threshold=0.5)
    close(
        got.label_agreement,
        float(np.mean((logit >= 0.5) == (moved >= 0.5))),
        "label_agreement at threshold 0.5",
        cause="hand the threshold on",
    )
    ruled_out = np.array([[1.0, -INF], [0.5, 0.25]])
    close(
        student.parity(ruled_out, ruled_out + np.array([[0, 0], [0.5, 0]])).max_difference,
        0.5,
        "max_difference with −∞ in both",
        cause="equal infinities do not differ",
    )
    whole = np.array([[16777216.0, 0.5]], np.float32)
    close(
        student.parity(whole, whole.astype(np.float64) + np.array([[1.0, 0.0]])).max_difference,
        1.0,
        "float32 against float64",
        cause="subtract in double precision",
    )
    labels = student.parity(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 4]))
    close(labels.label_agreement, 0.75, "label_agreement of labels")
    expect(
        labels.max_difference is None and labels.mean_difference is None,
        "labels have no differences: class 9 is not 8 away from class 1",
    )
    raises(ValueError, lambda: student.parity(a, b[:49]), "50 rows against 49")
    raises(ValueError, lambda: student.parity(a, a[:, :2]), "3 columns against 2")
    raises(ValueError, lambda: student.parity(a, np.where(a > 0.9, NAN, NAN)), "NaN in the second", mentions=["pred_b"])
    raises(ValueError, lambda: student.parity([1, 2], ["1", "2"]), "numbers against text")
    raises(ValueError, lambda: student.parity([], []), "no rows")


def answer_understanding(student: Any) -> None:
    """Wilson at 360 of 360, powers of one half, and what a failed run is worth."""
    lower = float(stats.binomtest(360, 360).proportion_ci(0.95, method="wilson").low)
    close(student.lower_end_of_perfection(), lower, "question 1", cause="wilson_interval(360, 360)", rel=6e-4)
    expect(student.may_claim_99_percent() is False, "question 1: the interval begins below 99 %, so 98.9 % is possible")
    close(
        student.discordant_rows_needed(),
        6,
        "question 2",
        cause="2 · (1/2)^n first falls below 0.05 at n = 6; at n = 5 it is 0.0625",
    )
    printed = student.accuracy_to_print()
    expect(
        printed is None,
        f"question 3: {printed!r} is no accuracy of this model; a failed measurement has no value, report the error",
    )
