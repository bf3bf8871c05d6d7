"""Module 04 against scikit-learn, SciPy and statsmodels, simulated coverage, and models that break."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from tinybench import accuracy
from tinybench.accuracy import mcnemar, measure_accuracy, parity, wilson_interval
from tinybench.support.basics.class_labels import checked_labels, output_kind, predicted_labels
from tinybench.support.basics.labelled_data import known_classes, named_datasets
from tinybench.support.basics.paired_rows import difference_interval

DIGITS = load_digits()
X, Y = (DIGITS.data / 16).astype(np.float32), DIGITS.target


@pytest.fixture(scope="module")
def digits_model() -> LogisticRegression:
    return LogisticRegression(max_iter=300).fit(X[:900], Y[:900])


@given(st.integers(1, 10_000), st.data(), st.floats(0.5, 0.999))
def test_wilson_agrees_with_statsmodels_and_scipy(total: int, data: st.DataObject, confidence: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    correct = data.draw(st.integers(0, total))
    lower, upper = wilson_interval(correct, total, confidence)
    assert 0 <= lower <= correct / total <= upper <= 1
    scipys = tuple(stats.binomtest(correct, total).proportion_ci(confidence, method="wilson"))
    for truth in (proportion_confint(correct, total, 1 - confidence, "wilson"), scipys):
        assert (lower, upper) == pytest.approx(truth, rel=1e-6, abs=1e-9)


@given(st.integers(1, 5000), st.data())
def test_wilson_is_symmetric(total: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, total))
    lower, upper = wilson_interval(correct, total)
    assert wilson_interval(total - correct, total) == pytest.approx((1 - upper, 1 - lower), abs=1e-12)


def test_wilson_takes_numpy_counts_and_refuses_shares() -> None:
    assert wilson_interval(np.int64(3), np.int64(5)) == wilson_interval(3, 5)  # type: ignore[arg-type]
    for correct, total in [(0, 0), (2, 1), (-1, 1), (0.9, 10), (1, 1.5)]:
        with pytest.raises(ValueError, match=r"total|correct"):
            wilson_interval(correct, total)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson_interval(1, 2, confidence=95)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(2, 5)), elements=st.floats(-30, 30)))
def test_softmax_keeps_the_labels(logits: np.ndarray) -> None:
    logits[0, 0] += 40  # certainly no distribution
    assert output_kind(logits) == "logits"
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    assert output_kind(probabilities) == "probabilities"
    classes = [f"class {i}" for i in range(logits.shape[1])]
    from_logits = predicted_labels(logits, "logits", classes)
    decided = np.diff(np.sort(probabilities, axis=1))[:, -1] > 1e-9
    assert np.array_equal(from_logits[decided], predicted_labels(probabilities, "probabilities", classes)[decided])


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-20, 20)))
def test_one_logit_is_one_probability(logits: np.ndarray) -> None:
    probabilities = 1 / (1 + np.exp(-logits))
    clear = np.abs(logits) > 1e-9
    cut = predicted_labels(logits, "logits", [0, 1])
    assert np.array_equal(cut[clear], predicted_labels(probabilities, "probabilities", [0, 1])[clear])
    assert np.array_equal(cut, predicted_labels(logits[:, None], "logits", [0, 1]))
    pair = np.stack([np.zeros_like(logits), logits], axis=1)
    assert np.array_equal(cut, predicted_labels(pair, "logits", [0, 1], threshold=0.0))


def test_scikit_learn_models_agree_with_their_score(digits_model: LogisticRegression) -> None:
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    for model, y in (
        (digits_model, Y),
        (RandomForestClassifier(20, random_state=0), names[Y]),
        (make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)), Y + 1),
        (LinearSVC(), Y == 8),
    ):
        result = measure_accuracy(model.fit(X[:900], y[:900]), (X[900:], y[900:]))
        score = model.score(X[900:], y[900:])
        assert result.values == [pytest.approx(score)]
        assert result.metadata["correct"] == round(score * len(y[900:]))
        json.dumps(result.to_dict(), allow_nan=False)


def test_binary_columns_of_a_real_model() -> None:
    inputs, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(inputs[:300], y[:300])
    inputs, y = inputs[300:], y[300:]
    score = model.score(inputs, y)
    ways = {"labels": model.predict, "logits": model.decision_function}
    ways["probabilities"] = lambda x: model.predict_proba(x)[:, 1]
    for kind, way in ways.items():
        result = measure_accuracy(way, (inputs, y))
        assert result.metadata["outputs"] == kind
        assert result.values == [pytest.approx(score)]
    strict = measure_accuracy(ways["probabilities"], (inputs, y), threshold=0.9)
    assert strict.values == [pytest.approx(np.mean((model.predict_proba(inputs)[:, 1] >= 0.9) == y))]
    for yes, no, classes in ((1, -1, None), ("ill", "well", ["well", "ill"])):
        result = measure_accuracy(ways["logits"], (inputs, np.where(y == 1, yes, no)), classes=classes)
        assert result.values == [pytest.approx(score)]


def test_onnx_sessions(digits_model: LogisticRegression) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skl2onnx import to_onnx

        graph = to_onnx(digits_model, X[:1], options={"zipmap": False})
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    rest = (X[900:], Y[900:])
    assert measure_accuracy(session, rest).values == measure_accuracy(digits_model, rest).values


def test_several_datasets(digits_model: LogisticRegression) -> None:
    parts = {"first": (X[900:1300], Y[900:1300]), "rest": (X[1300:], Y[1300:].tolist())}
    result = measure_accuracy(digits_model, parts, confidence=0.9)
    right = [digits_model.predict(inputs) == np.asarray(y) for inputs, y in parts.values()]
    assert result.values == [pytest.approx(part.mean()) for part in right]
    pooled = np.concatenate(right)
    assert (result.metadata["correct"], result.metadata["total"]) == (pooled.sum(), len(pooled))
    interval = wilson_interval(int(pooled.sum()), len(pooled), 0.9)
    assert result.metadata["wilson_interval"] == pytest.approx(list(interval))
    assert list(result.metadata["datasets"]) == ["first", "rest"]
    assert measure_accuracy(digits_model, list(parts.values())).values == result.values


def test_lists_and_columns_are_datasets() -> None:
    x = [[1], [2]]
    for data, share in ((x, [2, 5]), 0.5), ((x, [[2], [4]]), 1.0), ([[x, [2, 4]]], 1.0):
        assert measure_accuracy(lambda x: x[:, 0] * 2, data).values == [share]


@pytest.mark.parametrize("nothing", [None, [], (), {}])
def test_no_dataset(nothing: Any) -> None:
    with pytest.raises(ValueError, match="no dataset"):
        measure_accuracy(len, nothing)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ((X[:3], Y[:2]), "3 rows, y has 2"),
        ((X[:0], Y[:0]), "empty"),
        ((X[:2], np.eye(10)[Y[:2]]), "one-hot"),
        ((X[:2], [0.5, 1.0]), "0.5, which is no class"),
        ((X[:2], [np.nan, 1.0]), "no class"),
        (X[:2], "no pair"),
        ((X[:2],), "no pair"),
    ],
)
def test_bad_datasets_are_named(pair: Any, words: str, digits_model: LogisticRegression) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        measure_accuracy(digits_model, {"good": (X[:2], Y[:2]), "fog": pair})
    assert "fog" in str(raised.value)


def test_bad_outputs_are_named() -> None:
    good = (X[:4], Y[:4])
    for model, data, why in (
        (lambda x: np.full((len(x), 10), np.nan), good, r"fog: the output for row 0 is NaN \(4 of 4 rows\)"),
        (lambda x: np.zeros((1, 10)), good, "fog: 4 rows went in"),
        (lambda x: np.array(["a"] * len(x)), good, "fog: the prediction is 'a' where y is"),
        (lambda x: np.zeros((len(x), 3)), (X[:2], [7, 8]), "classes"),
    ):
        with pytest.raises(ValueError, match=why):
            measure_accuracy(model, {"fog": data})
    with pytest.raises(ValueError, match="'auto'"):
        measure_accuracy(lambda x: x, good, outputs="probs")


def test_errors_surface() -> None:
    def fails(x: np.ndarray) -> np.ndarray:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        measure_accuracy(fails, (X, Y))
    with pytest.raises(TypeError):
        measure_accuracy(object(), (X, Y))


def test_the_kind_is_decided_over_all_datasets() -> None:
    scores = np.array([[0.2], [0.3], [-5.0], [4.0]])
    parts = [(scores[:2], [1, 1]), (scores[2:], [0, 1])]
    assert measure_accuracy(lambda x: x, parts).values == [1.0, 1.0]
    assert measure_accuracy(lambda x: x, parts[0]).values == [0.0]  # alone they look like probabilities …
    assert measure_accuracy(lambda x: x, parts[0], outputs="logits").values == [1.0]  # … unless one says


TALL = np.array([[0.2, 0.8], [0.7, 0.3], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [
        (TALL, "probabilities"),
        (np.array([[0.333, 0.333, 0.333]]), "probabilities"),
        (TALL.astype(np.float16), "probabilities"),
        (np.eye(2), "probabilities"),
        (np.log(TALL), "logits"),
        (np.array([[3, -1], [2, 4]]), "logits"),
        (np.array([[0.2, 0.9], [0.7, 0.6]]), "logits"),
        (np.array([[1.5, -0.5], [0.4, 0.6]]), "logits"),
        (np.array([0.1, 0.8]), "probabilities"),
        (np.array([[0.1], [0.8]]), "probabilities"),
        (np.array([0.1, -0.8]), "logits"),
        (np.array([0.4, 1.3]), "logits"),
        (np.array([2, 0, 1]), "labels"),
        (np.array([[1], [0]]), "labels"),
        (np.array([2.0, 0.0]), "labels"),
        (np.array(["cat", "dog"]), "labels"),
        (np.array(["cat", "dog"], dtype=object), "labels"),
        (np.array([True, False]), "labels"),
    ],
)
def test_kinds_of_outputs(outputs: np.ndarray, kind: str) -> None:
    assert output_kind(outputs) == kind


def test_labels_of_outputs() -> None:
    pair = np.array([[1.0, 1.2], [0.0, 0.9]])
    for outputs, kind, classes, threshold, truth in [
        (TALL, "probabilities", ["no", "yes"], None, ["yes", "no", "no"]),
        (np.array([0.2, -0.2, 0.0]), "logits", [0, 1], None, [1, 0, 1]),
        (np.array([0.2, 0.5]), "probabilities", [0, 1], None, [0, 1]),
        (np.array([[0.2], [0.4]]), "probabilities", [-1, 1], 0.3, [-1, 1]),
        (TALL, "probabilities", [0, 1], 0.6, [1, 0, 0]),
        (TALL, "probabilities", [0, 1], 0.0, [1, 1, 1]),
        (pair, "logits", [0, 1], 0.5, [0, 1]),
        (np.array([[3], [0]]), "labels", [0, 1], None, [3, 0]),
    ]:
        assert predicted_labels(outputs, kind, classes, threshold).tolist() == truth
    for wrong in [(TALL, "probabilities", [0, 1, 2]), (np.eye(3), "probabilities", [0, 1, 2], 0.5)]:
        with pytest.raises(ValueError, match=r"column|threshold"):
            predicted_labels(*wrong)


def test_known_classes() -> None:
    def named(y: list[Any]) -> Any:
        return named_datasets((np.zeros((len(y), 1)), y))

    assert known_classes(object(), "logits", np.zeros((2, 3)), named([0, 2])).tolist() == [0, 1, 2]
    assert known_classes(object(), "logits", np.zeros(2), named(["b", "a"])).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="pass classes"):
        known_classes(object(), "logits", np.zeros((2, 3)), named([1, 3]))


labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=60)


@given(labels)
def test_recalls_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    y, said = (list(column) for column in zip(*pairs, strict=True))
    recalls = accuracy.recall_per_class(y, said)
    occurring = sorted(set(y))
    assert list(recalls) == occurring
    truth = recall_score(y, said, labels=occurring, average=None, zero_division=0)
    assert list(recalls.values()) == pytest.approx(truth.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes that only the prediction has
        assert accuracy.balanced_accuracy(y, said) == pytest.approx(balanced_accuracy_score(y, said))


def test_labels_that_cannot_be_compared() -> None:
    for wrong in [([1], [1, 2]), ([], []), ([1], ["1"]), ([[1]], [[1]])]:
        with pytest.raises(ValueError, match="the prediction"):
            checked_labels(*wrong)


@settings(max_examples=200)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 50), st.integers(0, 50))
def test_mcnemar_agrees_with_statsmodels(only_a: int, only_b: int, both: int, neither: int) -> None:
    counts = [only_a, only_b, both, neither]
    rows = sum(counts)
    if rows == 0:
        return
    y = np.zeros(rows, int)
    right_a, right_b = np.repeat([True, False, True, False], counts), np.repeat([False, True, True, False], counts)
    result = mcnemar(y, np.where(right_a, 0, 1), np.where(right_b, 0, 2))
    assert (result.only_a, result.only_b, result.rows) == (only_a, only_b, rows)
    assert result.difference == pytest.approx(right_a.mean() - right_b.mean())
    assert result.exact == (only_a + only_b < 25)
    truth = 1.0
    if only_a + only_b:
        from statsmodels.stats import contingency_tables

        table = [[both, only_a], [only_b, neither]]
        truth = min(1.0, contingency_tables.mcnemar(table, exact=result.exact, correction=True).pvalue)
    assert result.p_value == pytest.approx(truth, rel=1e-9)
    assert "McNemar" in str(result)


def test_mcnemar_holds_its_level() -> None:
    rng, trials, rows = np.random.default_rng(3), 3000, 400
    false_alarms = 0
    for only_a, only_b, _ in rng.multinomial(rows, [0.05, 0.05, 0.9], size=trials):
        y, right_a, right_b = np.zeros(rows, int), np.ones(rows, int), np.ones(rows, int)
        right_b[:only_a] = 0
        right_a[only_a : only_a + only_b] = 0
        false_alarms += mcnemar(y, 1 - right_a, 1 - right_b).p_value < 0.05
    assert false_alarms / trials < 0.06


@pytest.mark.parametrize("counts", [(10, 2, 100), (0, 0, 50), (3, 30, 400), (4, 4, 8), (0, 3, 4), (23, 7, 410)])
def test_the_difference_joins_the_exact_intervals_of_both_counts(counts: tuple[int, int, int]) -> None:
    def upper(more: int, fewer: int, rows: int) -> float:
        high = stats.chi2.ppf(0.975, 2 * more + 2) / 2
        low = stats.chi2.isf(0.975, 2 * fewer) / 2 if fewer else 0.0
        end = more - fewer + math.hypot(high - more, fewer - low)
        undecided = more + fewer == 0 or stats.binomtest(more, more + fewer).pvalue >= 0.05
        return min(1.0, (max(end, 0.0) if undecided else end) / rows)

    only_a, only_b, rows = counts
    truth = -upper(only_b, only_a, rows), upper(only_a, only_b, rows)
    assert difference_interval(*counts) == pytest.approx(truth, rel=1e-6)


def missed(rows: int, loss: float, gained: float) -> tuple[float, float]:
    """Return how probable it is that the interval lies below a true loss, and above it: all outcomes, weighed."""
    lost = gained + loss
    low = stats.binom.ppf(1e-9, rows, [lost, gained]).astype(int)
    high = stats.binom.isf(1e-9, rows, [lost, gained]).astype(int)
    below = above = 0.0
    for only_a in range(low[0], high[0] + 1):
        others = np.arange(low[1], min(high[1], rows - only_a) + 1)
        weights = stats.binom.pmf(only_a, rows, lost) * stats.binom.pmf(others, rows - only_a, gained / (1 - lost))
        ends = np.array([difference_interval(only_a, int(only_b), rows) for only_b in others])
        below += float(weights[ends[:, 1] < loss - 1e-12].sum())
        above += float(weights[ends[:, 0] > loss + 1e-12].sum())
    return below, above


@pytest.mark.parametrize("rows", [50, 214, 1000, 10_000])
@pytest.mark.parametrize("gained", [0.0, 0.0005, 0.004])
@pytest.mark.parametrize("loss", [0.0, 0.001, 0.01, 0.05])
def test_a_loss_is_missed_in_at_most_one_of_40_cases_on_each_side(rows: int, gained: float, loss: float) -> None:
    if rows * (gained + loss) < 120:  # more outcomes than a test has time for; the extremes lie at few
        assert max(missed(rows, loss, gained)) <= 0.025


@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
@example(11, 3, 0.95)
@example(5, 0, 0.95)
def test_interval_and_exact_test_agree_about_zero(only_a: int, only_b: int, confidence: float) -> None:
    lower, upper = difference_interval(only_a, only_b, 100_000, confidence)
    p_value = stats.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert (lower > 0 or upper < 0) == (p_value < 1 - confidence)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 400))
def test_difference_is_antisymmetric(only_a: int, only_b: int, others: int) -> None:
    rows = only_a + only_b + others
    lower, upper = difference_interval(only_a, only_b, rows)
    assert difference_interval(only_b, only_a, rows) == pytest.approx((-upper, -lower))
    assert -1 <= lower <= upper <= 1
    with pytest.raises(ValueError, match="whose sum is at most rows"):
        difference_interval(only_a, only_b + others + 1, rows)


@pytest.mark.processor
@given(hnp.arrays(np.float64, (2, 7, 3), elements=st.floats(0, 1)))
def test_parity_agrees_with_numpy(pair: np.ndarray) -> None:
    a, b = pair
    result = parity(a, b)
    assert result.max_difference == pytest.approx(np.abs(a - b).max())
    assert result.mean_difference == pytest.approx(np.abs(a - b).mean())
    assert result.label_agreement == pytest.approx(np.mean(a.argmax(axis=1) == b.argmax(axis=1)))
    itself = parity(a, a)
    assert (itself.max_difference, itself.mean_difference, itself.label_agreement) == (0.0, 0.0, 1.0)


@pytest.mark.processor
def test_parity_refuses() -> None:
    a = np.array([[0.5, 0.5]])
    wrong_ones = ((a, a[:, :1]), "shape"), ((a, a * np.nan), "pred_b"), ((["a"], [1]), "text"), (([], []), "0 rows")
    for wrong, words in wrong_ones:
        with pytest.raises(ValueError, match=words):
            parity(*wrong)
    texts = parity(["a", "b"], ["a", "c"])
    assert (texts.label_agreement, texts.max_difference) == (0.5, None)
    low = np.array([[0.0, -np.inf]])
    assert parity(low, low).max_difference == 0.0
