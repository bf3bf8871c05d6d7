"""Compression against independent truth: singular values, silenced units, finite differences; the journal's rules."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.neural_network import MLPClassifier

from tinybench import compress
from tinybench.comparison import compare
from tinybench.compress import (
    Journal,
    distillation_loss,
    factorise,
    low_rank,
    prune_units,
    prune_weights,
    softmax,
    train,
)
from tinybench.course import cached_fit
from tinybench.onnx import OnnxModel, operators
from tinybench.quantize import integer_operators, quantize_static_int8
from tinybench.support.basics.layer_networks import (
    Layer,
    activations,
    initial_layers,
    layers_of,
    parameters,
    save_layers,
    zipped_size,
)
from tinybench.support.compression.journal_pages import changes
from tinybench.support.compression.seeds import AccuracyChange, accuracy_change, seed_verdict

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 20)).astype(np.float32)
y = (X @ RNG.normal(size=(20, 4))).argmax(axis=1)

networks = st.builds(
    lambda sizes, seed: [
        layer._replace(b=np.random.default_rng(seed).normal(size=layer.b.shape).astype(np.float32))
        for layer in initial_layers(sizes, seed)
    ],
    st.lists(st.integers(2, 12), min_size=2, max_size=5),
    st.integers(0, 2**32 - 1),
)


def rows_for(layers: list[Layer]) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(15, len(layers[0].W))).astype(np.float32)


def scores(layers: list[Layer], rows: np.ndarray) -> np.ndarray:
    return activations(layers, rows)[-1]


def silenced(layers: list[Layer], kept: list[np.ndarray]) -> list[Layer]:
    """The same network, in which the next layer does not hear the other units."""
    quiet = list(layers)
    for i, units in enumerate(kept):
        W = np.zeros_like(layers[i + 1].W)
        W[units] = layers[i + 1].W[units]
        quiet[i + 1] = quiet[i + 1]._replace(W=W)
    return quiet


@given(networks, st.floats(0, 0.999))
def test_sparsity_is_exact_and_the_largest_stay(layers: list[Layer], sparsity: float) -> None:
    for old, new in zip(layers, prune_weights(layers, sparsity), strict=True):
        count = round(sparsity * old.W.size)
        assert np.sum(new.W == 0) == count
        assert np.array_equal(new.W[new.W != 0], old.W[new.W != 0])
        gone = np.abs(old.W[new.W == 0])
        assert not gone.size or not np.any(np.abs(new.W[new.W != 0]) < gone.max())
        assert np.array_equal(new.b, old.b)
        assert new.relu == old.relu


@given(networks, st.floats(0, 0.999))
def test_pruned_units_are_silenced_units(layers: list[Layer], fraction: float) -> None:
    smaller = prune_units(layers, fraction)
    kept = []
    for i in range(len(layers) - 1):
        pairs = zip(layers[i].W.T.tolist(), layers[i + 1].W.tolist(), strict=True)
        importance = [math.hypot(*heard) * math.hypot(*said) for heard, said in pairs]
        stay = max(1, len(importance) - round(fraction * len(importance)))
        kept.append(np.sort(np.argsort(importance)[::-1][:stay]))
    assert [layer.W.shape[1] for layer in smaller] == [*map(len, kept), layers[-1].W.shape[1]]
    rows = rows_for(layers)
    assert scores(smaller, rows) == pytest.approx(scores(silenced(layers, kept), rows), rel=1e-4, abs=1e-4)


@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_truncation_is_the_best_of_its_rank(n: int, m: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    layer = Layer(rng.normal(size=(n, m)), rng.normal(size=m))
    rank = min(rank, n, m)
    first, second = factorise(layer, rank)
    sizes = np.linalg.svd(layer.W, compute_uv=False)
    error = np.linalg.norm(layer.W - first.W @ second.W)
    assert error == pytest.approx(math.sqrt(np.sum(sizes[rank:] ** 2)), abs=1e-9)  # Eckart and Young
    for _ in range(5):  # and no other pair of factors does better
        other = rng.normal(size=(n, rank))
        best_with_it = other @ np.linalg.lstsq(other, layer.W, rcond=None)[0]
        assert error <= np.linalg.norm(layer.W - best_with_it) + 1e-9
    assert np.linalg.svd(first.W, compute_uv=False) == pytest.approx(np.linalg.svd(second.W, compute_uv=False))


@given(networks, st.integers(1, 12))
def test_low_rank_makes_networks_smaller_or_refuses(layers: list[Layer], rank: int) -> None:
    useful = [rank * sum(layer.W.shape) < layer.W.size for layer in layers]
    if not any(useful):
        with pytest.raises(ValueError, match="smaller"):
            low_rank(layers, rank)
        return
    made = low_rank(layers, rank)
    assert len(made) == len(layers) + sum(useful)
    assert sum(layer.W.size for layer in made) < sum(layer.W.size for layer in layers)


def test_full_rank_changes_no_answer() -> None:
    layers = initial_layers((9, 7, 4), 0)
    split = [piece for layer in layers for piece in factorise(layer, min(layer.W.shape))]
    assert scores(split, rows_for(layers)) == pytest.approx(scores(layers, rows_for(layers)), abs=1e-5)


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 8), st.floats(0, 1), st.booleans())
def test_distillation_by_closed_form_and_finite_differences(
    seed: int, temperature: float, share: float, taught: bool
) -> None:
    rng = np.random.default_rng(seed)
    z, t, labels = rng.normal(0, 2, (3, 4)), rng.normal(0, 2, (3, 4)), rng.integers(0, 4, 3)
    teacher = t if taught else None

    def loss(z: np.ndarray) -> float:
        hard = -np.mean(log_softmax(z, axis=1)[np.arange(3), labels])
        if not taught:
            return float(hard)
        q = np.exp(log_softmax(t / temperature, axis=1))
        soft = -np.mean(np.sum(q * log_softmax(z / temperature, axis=1), axis=1))
        return float((1 - share) * hard + share * temperature**2 * soft)

    assert compress.distillation_loss(z, labels, teacher, temperature, share) == pytest.approx(loss(z))
    slope = compress.distillation_gradient(z, labels, teacher, temperature, share)
    for place in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[place] = 1e-5
        assert slope[place] == pytest.approx((loss(z + step) - loss(z - step)) / 2e-5, rel=1e-4, abs=1e-7)


def test_softmax_stays_finite_and_needs_a_temperature() -> None:
    assert softmax(np.array([[1e4, 0.0, -1e4]])) == pytest.approx(np.array([[1.0, 0.0, 0.0]]))
    with pytest.raises(ValueError, match="above 0"):
        softmax(np.zeros((1, 2)), -1)


def test_training_by_backpropagation_follows_the_slope() -> None:
    """One step of Adam moves each weight by about the rate, against the numeric slope of the loss."""
    layers = [Layer(p.W.astype(float), p.b.astype(float), p.relu) for p in initial_layers((5, 6, 4, 3), 3)]
    rows, labels = RNG.normal(size=(40, 5)), RNG.integers(0, 3, 40)
    rate = 1e-4
    trained = train(layers, rows, labels, 1, seed=0, rate=rate, batch=40)

    def loss(layers: list[Layer]) -> float:
        a = rows
        for W, b, relu in layers:
            a = np.maximum(a @ W + b, 0 if relu else -np.inf)
        return float(-np.mean(log_softmax(a, axis=1)[np.arange(40), labels]))

    for i, layer in enumerate(layers):
        for place in np.ndindex(*layer.W.shape):
            ends = []
            for step in (1e-5, -1e-5):
                W = layer.W.copy()
                W[place] += step
                ends.append(loss([*layers[:i], layer._replace(W=W), *layers[i + 1 :]]))
            slope = (ends[0] - ends[1]) / 2e-5
            if abs(slope) > 1e-3:
                moved = float(trained[i].W[place] - layer.W[place])
                assert moved == pytest.approx(-rate * np.sign(slope), rel=0.02)


def test_training_learns_keeps_zeros_and_repeats() -> None:
    start = initial_layers((20, 32, 4), 0)
    trained, again = (train(start, X, y, 30, seed=1, batch=20) for _ in range(2))
    assert np.mean(scores(trained, X).argmax(1) == y) > 0.85
    assert all(np.array_equal(a.W, b.W) for a, b in zip(trained, again, strict=True))
    sparse = prune_weights(trained, 0.8)
    tuned = train(sparse, X, y, 1, seed=2)
    assert all(np.all(t.W[s.W == 0] == 0) for s, t in zip(sparse, tuned, strict=True))
    grown = train(sparse, X, y, 1, seed=2, keep_zeros=False)
    assert np.mean(grown[0].W == 0) < 0.01
    assert np.array_equal(sparse[0].W, prune_weights(trained, 0.8)[0].W)  # what is given stays


def test_a_student_comes_to_agree_with_its_teacher() -> None:
    teacher = 3 * X[:, :4]  # at odds with the labels
    net = train(initial_layers((20, 32, 4), 0), X, y, 30, seed=0, teacher=teacher, share=1.0, temperature=2.0, batch=20)
    assert np.mean(scores(net, X).argmax(1) == teacher.argmax(1)) > 0.85


@pytest.fixture(scope="module")
def model() -> Any:
    return cached_fit(MLPClassifier((64, 32), max_iter=20, random_state=0), X, y)


@pytest.mark.processor
def test_layers_of_a_model_answer_as_it_does(model: Any, tmp_path: Path) -> None:
    layers = layers_of(model)
    assert softmax(scores(layers, X)) == pytest.approx(model.predict_proba(X), abs=1e-4)
    assert parameters(layers) == 20 * 64 + 64 + 64 * 32 + 32 + 32 * 4 + 4
    path = save_layers(layers, tmp_path / "network.onnx")
    assert OnnxModel(path).forward(X) == pytest.approx(model.predict_proba(X), abs=1e-4)
    with pytest.raises(FileExistsError, match="overwrite"):
        save_layers(layers, path)


@pytest.mark.processor
def test_files_of_compressed_networks(model: Any, tmp_path: Path) -> None:
    dense = layers_of(model)
    changed = {"sparse": prune_weights(dense, 0.9), "units": prune_units(dense, 0.5), "rank": low_rank(dense, 6)}
    paths = {}
    for name, layers in {"dense": dense, **changed}.items():
        paths[name] = save_layers(layers, tmp_path / f"{name}.onnx")
        assert OnnxModel(paths[name]).forward(X) == pytest.approx(softmax(scores(layers, X)), abs=1e-4)
    assert paths["sparse"].stat().st_size == paths["dense"].stat().st_size  # zeros are stored like other numbers
    assert zipped_size(paths["sparse"]) < 0.5 * zipped_size(paths["dense"])
    assert paths["units"].stat().st_size < 0.6 * paths["dense"].stat().st_size
    assert (operators(paths["rank"])["Relu"], operators(paths["rank"])["MatMul"]) == (2, 5)
    for name in changed:  # each of them stacks with INT8
        int8 = quantize_static_int8(paths[name], X[:256])
        assert sum(integer_operators(int8).values()) == operators(paths[name])["MatMul"]
        same = OnnxModel(int8).forward(X).argmax(1) == OnnxModel(paths[name]).forward(X).argmax(1)
        assert np.mean(same) > 0.9


def broken(W: float = 0.0, b: float = 0.0) -> list[Layer]:
    return [Layer(np.full((3, 2), W), np.full(2, b), False)]


@pytest.mark.parametrize("call", [lambda n: prune_weights(n, 0.5), lambda n: prune_units(n, 0.5), lambda n: low_rank(n, 1),
                                  lambda n: train(n, np.zeros((4, 3)), [0, 1, 0, 1], 1, seed=0),
                                  lambda n: save_layers(n, Path("never.onnx"))])  # fmt: skip
def test_broken_networks_are_refused(call: Any) -> None:
    for layers, why in (
        ([], "no layers"),
        (broken(W=np.nan), "layer 0 holds NaN"),
        (broken(b=np.inf), "layer 0 holds NaN or infinite"),
        ([*broken(), *broken()], "layer 1.*do not fit"),
        ([Layer(np.zeros((3, 2)), np.zeros(3))], "layer 0.*do not fit"),
        ([Layer(np.zeros(3), np.zeros(3))], "layer 0.*do not fit"),
    ):
        with pytest.raises(ValueError, match=why):
            call(layers)


@pytest.mark.parametrize("share", [-0.1, 1.0, 2, math.nan])
def test_shares_out_of_range(share: float) -> None:
    for prune, why in (prune_weights, "sparsity is"), (prune_units, "fraction is"):
        with pytest.raises(ValueError, match=why):
            prune(broken(), share)


def test_a_loss_far_from_the_label_is_large_and_not_infinite() -> None:
    assert distillation_loss([[0, 800]], [0]) == 800
    assert distillation_loss([[0, 800]], [1], [[0, 0]], 1.0, 1.0) == pytest.approx(400)


@given(st.sampled_from([(30, 20, 12, 4), (40, 8, 8, 4), (12, 10)]), st.integers(1, 4))
def test_layers_are_split_where_that_saves_work(sizes: tuple[int, ...], rank: int) -> None:
    network = initial_layers(sizes, 0)
    shapes: list[tuple[int, ...]] = []
    for n, m in (layer.W.shape for layer in network):
        shapes += [(n, rank), (rank, m)] if rank * (n + m) < n * m else [(n, m)]
    assert [layer.W.shape for layer in low_rank(network, rank)] == shapes


def test_a_journal_keeps_a_copy_of_the_settings() -> None:
    journal, half = Journal("base", dict(SETTINGS)), {"units": 256, "bits": 32}
    entry = journal.record("new", "faster", half, [UNCLEAR, CLEAR], "keep")
    half["units"] = 1
    assert journal.settings == {"units": 256, "bits": 32}
    assert entry.measurements == (str(UNCLEAR), str(CLEAR))


def test_ranks_out_of_range() -> None:
    for bad, why in (3, "rank 2 at most"), (0, "rank"), (1.5, "rank"):
        with pytest.raises(ValueError, match=why):
            factorise(broken()[0], bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"rank 2 makes none of the layers \[\(3, 2\)\] smaller"):
        low_rank(broken(), 2)


def test_other_models_have_no_layers() -> None:
    with pytest.raises(TypeError, match="pass a fitted MLPClassifier"):
        layers_of(MLPClassifier())
    with pytest.raises(TypeError, match="ReLU"):
        layers_of(cached_fit(MLPClassifier((4,), activation="tanh", max_iter=3, random_state=0), X, y))
    bad = cached_fit(MLPClassifier((4,), max_iter=3, random_state=0), X, y)
    bad.coefs_[1][0, 0] = np.nan
    with pytest.raises(ValueError, match="layer 1 holds NaN"):
        layers_of(bad)


def test_training_refuses_what_does_not_fit() -> None:
    net = initial_layers((20, 4), 0)
    for rows in (X[:, :5], X[:0], np.full((3, 20), np.nan)):
        with pytest.raises(ValueError, match="rows of 20 finite numbers"):
            train(net, rows, y[: len(rows)], 1, seed=0)
    for labels in (y[:-1], y + 1, y + 0.5):
        with pytest.raises(ValueError, match="a label from 0 to 3"):
            train(net, X, labels, 1, seed=0)
    with pytest.raises(ValueError, match=r"teacher's scores have shape \(600, 3\)"):
        train(net, X, y, 1, seed=0, teacher=np.zeros((600, 3)))
    for epochs in (0, 1.5):
        with pytest.raises(ValueError, match="epochs"):
            train(net, X, y, epochs, seed=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="training went wrong"), np.errstate(all="ignore"):
        train(net, X, y, 3, seed=0, rate=math.inf)


ends = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(ends, min_size=2, max_size=5), st.sampled_from([0.0, 0.1, 0.5]))
def test_seeds_must_be_unanimous(intervals: list[tuple[float, float]], margin: float) -> None:
    verdict = seed_verdict(intervals, margin)
    inside = margin > 0 and all(-margin <= low and high <= margin for low, high in intervals)
    assert (verdict == "equivalent") == inside
    assert (verdict == "higher") == (not inside and all(low > 0 for low, _ in intervals))
    assert (verdict == "lower") == (not inside and all(high < 0 for _, high in intervals))


def test_one_seed_is_not_enough() -> None:
    for intervals, why in ([(0.1, 0.2)], "two or more"), ([(0.1, 0.2), (math.nan, 0.3)], "NaN"):
        with pytest.raises(ValueError, match=why):
            seed_verdict(intervals)
    for a, b, why in (
        ([y], [y], "1 and 1 seeds"),
        ([y] * 2, [y] * 3, "2 and 3 seeds"),
        ([y] * 2, [y, y[:-1]], "one label a row"),
    ):
        with pytest.raises(ValueError, match=why):
            accuracy_change(y, a, b, ("a", "b"))


def test_accuracy_changes_are_sentences() -> None:
    worse = y.copy()
    worse[:60] = (worse[:60] + 1) % 4
    change = accuracy_change(y, [y, y], [worse, worse], ("a", "b"))
    assert change.differences == pytest.approx((0.1, 0.1))
    assert change.verdict == "higher"
    assert str(change).startswith("a against b: accuracy +10 (8 to 13), ")
    assert accuracy_change(y, [y, worse], [y, worse], ("a", "b"), margin=0.02).verdict == "equivalent"


CLEAR = AccuracyChange("new", "base", (0.1, 0.1), ((0.05, 0.15), (0.05, 0.15)))
UNCLEAR = AccuracyChange("new", "base", (0.1, 0.0), ((0.05, 0.15), (-0.05, 0.05)))
SETTINGS = {"units": 512, "bits": 32}


few_settings = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))


@given(few_settings, few_settings)
def test_changes_are_counted(before: dict[str, int], after: dict[str, int]) -> None:
    truth = [name for name in "abcd" if before.get(name) != after.get(name)]
    assert [text.partition(":")[0] for text in changes(before, after)] == truth


@given(st.integers(0, 2), st.booleans(), st.sampled_from(["keep", "reject", "undecided"]))
def test_journal_takes_one_change_with_a_significant_measurement(count: int, clear: bool, verdict: str) -> None:
    journal = Journal("base", dict(SETTINGS))
    settings = dict(SETTINGS) | dict([("units", 64), ("bits", 8)][:count])
    if count == 1 and (clear or verdict == "undecided"):
        journal.record("new", "faster", settings, [CLEAR if clear else UNCLEAR], verdict)
        assert len(journal.entries) == 1
        assert (journal.baseline == "new") == (verdict == "keep")
        assert journal.settings == (settings if verdict == "keep" else SETTINGS)
    else:
        with pytest.raises(ValueError, match="changes at once" if count != 1 else "significant"):
            journal.record("new", "faster", settings, [CLEAR if clear else UNCLEAR], verdict)
        assert (journal.entries, journal.baseline) == ([], "base")


def test_journal_measures_against_the_kept_baseline() -> None:
    journal = Journal("base", dict(SETTINGS))
    half = {"units": 256, "bits": 32}
    for hypothesis, verdict, name, why in (
        ("faster", "keep", "other", "measured was new against base; this entry is about other"),
        (" ", "keep", "new", "what you expect"),
        ("faster", "great", "new", "keep, reject, undecided"),
        ("faster", "keep", "base", "already"),
    ):
        with pytest.raises(ValueError, match=why):
            journal.record(name, hypothesis, half, [CLEAR], verdict)
    journal.record("new", "faster", half, [CLEAR, UNCLEAR], "keep")
    quarter = {"units": 128, "bits": 32}
    old = AccuracyChange("next", "base", CLEAR.differences, CLEAR.intervals)
    with pytest.raises(ValueError, match="the kept baseline new"):
        journal.record("next", "faster still", quarter, [old], "keep")
    with pytest.raises(ValueError, match="already"):
        journal.record("new", "again", quarter, [CLEAR], "keep")


def test_latencies_count_and_estimates_do_not() -> None:
    journal = Journal("base", dict(SETTINGS))
    slow, fast = [1.0 + i / 100 for i in range(20)], [0.5 + i / 100 for i in range(20)]
    race = compare(fast, slow, paired=True, names=("new", "base"))
    assert race.verdict == "lower"
    settings = {**SETTINGS, "bits": 8}
    with pytest.raises(ValueError, match="significant"):
        journal.record("new", "less work", settings, [replace(race, measured=False)], "keep")
    journal.record("new", "less work", settings, [race], "keep")
    assert "1. new (bits: 32 → 8), against base: KEEP" in str(journal)
    assert str(journal).endswith("kept: new")
    shown = journal._repr_mimebundle_()
    assert shown["text/plain"] == str(journal)
    assert "bits: 32 → 8" in shown["text/html"]
