"""Hidden checks of module 13: against sorting by hand, silenced units, singular values and finite differences.

Networks are judged by their numbers and answers, never by a clock; the journal by what it takes and refuses.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from autograder.checks import all_close, close, draw, expect, judges, raises, words
from tinybench import compress
from tinybench.layers import Layer


def _network(rng: np.random.Generator, sizes: tuple[int, ...]) -> list[Layer]:
    """Return a random network with biases; the last layer has no ReLU."""
    shapes = list(pairwise(sizes))
    return [
        Layer(rng.normal(size=shape), rng.normal(size=shape[1]), i < len(shapes) - 1) for i, shape in enumerate(shapes)
    ]


def _given(student: Any, network: list[Layer]) -> list[Any]:
    """Return a network of the student's own layers; what it is, is known here."""
    return [student.Layer(np.array(layer.W), np.array(layer.b), layer.relu) for layer in network]


def _scores(layers: list[Any], X: np.ndarray) -> np.ndarray:
    """Return what a network answers, computed here."""
    a = X
    for layer in layers:
        a = a @ np.asarray(layer.W, float) + np.asarray(layer.b, float)
        a = np.maximum(a, 0) if layer.relu else a
    return a


def _answers_alike(got: list[Any], truth: list[Any], X: np.ndarray, what: str, cause: str) -> None:
    found, wanted = _scores(got, X), _scores(truth, X)
    expect(found.shape == wanted.shape, f"{what}: scores of shape {wanted.shape} expected, got {found.shape}")
    gap = float(np.abs(found - wanted).max())
    expect(gap <= 1e-4 * (1 + float(np.abs(wanted).max())), f"{what}: the scores differ by up to {gap:.3g}; {cause}")


@judges("prune_weights")
def weights_are_pruned(student: Any) -> None:
    """Exactly the smallest magnitudes of each layer, ties included; the rest, biases, ReLU and the original stay."""
    rng = draw()
    truths = _network(rng, (7, 6, 5, 4))
    network = _given(student, truths)
    for sparsity in (0.0, 0.33, 0.5, 0.9, 0.999):
        pruned = list(student.prune_weights(network, sparsity))
        expect(len(pruned) == 3, f"three layers expected, got {len(pruned)}")
        for i, (layer, old) in enumerate(zip(pruned, truths, strict=True)):
            W = old.W
            count = round(sparsity * W.size)
            threshold = np.sort(np.abs(W), axis=None)[count] if count < W.size else math.inf
            truth = np.where(np.abs(W) < threshold, 0, W)
            got, what = np.asarray(layer.W), f"layer {i} at sparsity {sparsity}"
            zeros = int(np.sum(got == 0))
            expect(zeros == count, f"{what}: {count} of {W.size} weights should be 0, not {zeros}")
            expect(np.array_equal(got, truth), f"{what}: the smallest by magnitude become 0, the others stay")
            expect(np.array_equal(layer.b, old.b), f"{what}: biases stay as they are")
            expect(bool(layer.relu) == old.relu, f"{what}: whether a ReLU follows stays as it is")
    for layer, old in zip(network, truths, strict=True):
        expect(np.array_equal(layer.W, old.W), "the network that was given has changed; copy the weights first")
    tied = [student.Layer(rng.choice([-1.0, 1.0], (20, 15)), np.zeros(15), False)]
    (got,) = student.prune_weights(tied, 0.7)
    zeros = int(np.sum(np.asarray(got.W) == 0))
    expect(zeros == 210, f"300 weights of equal magnitude at sparsity 0.7: 210 zeros expected, got {zeros}")
    for bad in (1.0, -0.1, math.nan):
        raises(ValueError, lambda s=bad: student.prune_weights(network, s), f"sparsity {bad}")


def answer_sparse(student: Any) -> None:
    """Eight bytes for each weight that is left, four for each that was."""
    close(student.shrink_at_ninety_percent(), 5.0, "(a)", cause="a tenth of the weights at 8 bytes, instead of 4 each")
    close(student.break_even_share(), 0.5, "(b)", cause="8 bytes for each weight left, against 4 for each")


@judges("prune_units")
def units_are_removed(student: Any) -> None:
    """The right shapes; answers as of the dense network with these units silenced; importance by both norms."""
    rng = draw()
    X = rng.normal(size=(30, 9))
    for sizes in ((9, 12, 8, 4), (9, 10, 3), (9, 7, 6, 5, 4)):
        for fraction in (0.0, 0.3, 0.5, 0.75, 0.99):
            truths = _network(rng, sizes)
            silenced = list(truths)
            widths = []
            for i, (layer, following) in enumerate(pairwise(truths)):
                both = np.linalg.norm(layer.W, axis=0) * np.linalg.norm(following.W, axis=1)
                widths.append(max(1, both.size - round(fraction * both.size)))
                after = np.array(following.W)
                after[np.argsort(-both)[widths[-1] :]] = 0
                silenced[i + 1] = Layer(after, following.b, following.relu)
            network = _given(student, truths)
            pruned = list(student.prune_units(network, fraction))
            ends = [sizes[0], *widths, sizes[-1]]
            wanted = list(pairwise(ends))
            shapes = [tuple(np.shape(layer.W)) for layer in pruned]
            what = f"{'-'.join(map(str, sizes))} at fraction {fraction}"
            expect(shapes == wanted, f"{what}: weights of shapes {wanted} expected, got {shapes}")
            cause = "importance is the product of the norms of incoming and outgoing weights, as given"
            _answers_alike(pruned, silenced, X, what, cause)
            for layer, old in zip(network, truths, strict=True):
                expect(np.array_equal(layer.W, old.W), f"{what}: the network that was given has changed")
    first = student.Layer(np.array([[1.0, 9.0, 3.0]]), np.array([0.1, 0.2, 0.3]))
    network = [first, student.Layer(np.array([[9.0], [4.0], [1.0]]), np.zeros(1), False)]
    kept = np.asarray(student.prune_units(network, 0.34)[0].W).ravel()
    expect(kept.tolist() == [1.0, 9.0], f"importances 9, 36 and 3: the first two stay, in their order; got {kept}")
    for bad in (1.0, -0.1):
        raises(ValueError, lambda f=bad: student.prune_units(network, f), f"fraction {bad}")


def answer_units(student: Any) -> None:
    """Only the middle matrix loses on both sides."""
    truth = (784 * 256 + 256 * 128 + 128 * 10) / (784 * 512 + 512 * 256 + 256 * 10)
    cause = "784 · 256 + 256 · 128 + 128 · 10 over 784 · 512 + 512 · 256 + 256 · 10"
    close(student.share_of_multiplications(), truth, "the share", cause=cause, rel=2e-3)


@judges("factorise", "low_rank")
def factors_are_best(student: Any) -> None:
    """The error that Eckart and Young allow, balanced factors, and exactly the layers that get smaller."""
    rng = draw()
    for shape in ((14, 9), (9, 14), (10, 10)):
        for rank in (1, 4, 9):
            for relu in (True, False):
                W, b = rng.normal(size=shape), rng.normal(size=shape[1])
                sizes = np.linalg.svd(W, compute_uv=False)
                what = f"{shape} at rank {rank}"
                first, second = student.factorise(student.Layer(np.array(W), np.array(b), relu), rank)
                A, B = np.asarray(first.W), np.asarray(second.W)
                fits = A.shape == (shape[0], rank) and B.shape == (rank, shape[1])
                expect(fits, f"{what}: {(shape[0], rank)} and {(rank, shape[1])} expected, got {A.shape} and {B.shape}")
                best = math.sqrt(float(np.sum(sizes[rank:] ** 2)))
                cause = "keep the largest singular values with their vectors"
                close(np.linalg.norm(W - A @ B), best, f"error, {what}", cause=cause, rel=1e-6, abs=1e-8)
                root = np.sqrt(sizes[:rank]).tolist()
                for name, factor in (("first", A), ("second", B)):
                    found = np.linalg.svd(factor, compute_uv=False)
                    cause = "the square root of the singular values goes to both"
                    all_close(found, root, f"singular values of the {name} layer, {what}", cause=cause, rel=1e-6)
                expect(not first.relu, f"{what}: no ReLU may follow the first of the two")
                zero = np.shape(first.b) == (rank,) and not np.any(np.asarray(first.b))
                expect(bool(zero), f"{what}: the first layer has {rank} biases, all 0")
                expect(bool(second.relu) == relu, f"{what}: the second has the ReLU of the layer it stands for")
                expect(np.array_equal(second.b, b), f"{what}: the second has the biases of the layer")
    layer = student.Layer(np.ones((5, 4)), np.zeros(4))
    for bad in (0, 5):
        raises(ValueError, lambda r=bad: student.factorise(layer, r), f"rank {bad} of a 5 × 4 layer")
    sizes_of = (30, 20, 12, 4)
    network = _given(student, _network(rng, sizes_of))
    for rank in (1, 3, 7, 8, 11):
        truth: list[tuple[int, int]] = []
        for n, m in pairwise(sizes_of):
            truth += [(n, rank), (rank, m)] if rank * (n + m) < n * m else [(n, m)]
        got = [tuple(np.shape(piece.W)) for piece in student.low_rank(network, rank)]
        expect(got == truth, f"low_rank at {rank}: shapes {truth} expected, got {got}")
    full = [Layer(rng.normal(size=(12, 3)) @ rng.normal(size=(3, 10)), rng.normal(size=10), False)]
    cause = "a matrix of rank 3 is exact at rank 3"
    _answers_alike(list(student.low_rank(_given(student, full), 3)), full, rng.normal(size=(20, 12)), "low_rank", cause)
    square = [student.Layer(rng.normal(size=(8, 8)), np.zeros(8), False)]
    raises(ValueError, lambda: student.low_rank(square, 4), "rank 4 of an 8 × 8 layer: 64 weights before and after")


def answer_rank(student: Any) -> None:
    """309 · 1296 is below 784 · 512, 310 · 1296 above."""
    close(student.largest_useful_rank(), 309, "the rank", cause="the largest r with r · (784 + 512) < 784 · 512")


def _softmax(scores: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    from scipy.special import softmax

    return np.asarray(softmax(scores / temperature, axis=1))


@judges("softmax")
def probabilities_are_soft(student: Any) -> None:
    """As SciPy's, at any temperature and size, along rows; the input stays."""
    rng = draw()
    for shape in ((6, 4), (1, 9), (3, 3)):
        scores = rng.normal(0, 3, shape)
        before = scores.copy()
        for temperature in (0.5, 1.0, 4.0):
            got = np.asarray(student.softmax(scores, temperature))
            expect(got.shape == shape, f"softmax: shape {shape} expected, got {got.shape}")
            cause = "divide by the temperature, then normalise each row"
            truth = _softmax(before, temperature).ravel().tolist()
            all_close(got.ravel(), truth, f"softmax at T = {temperature}", cause=cause)
        all_close(np.ravel(student.softmax(scores)), _softmax(before).ravel().tolist(), "softmax at T = 1")
    big = np.array([[2000.0, 1999.0], [-3000.0, -3001.0], [0.0, -5000.0]])
    cause = "subtract each row's largest score"
    all_close(np.ravel(student.softmax(big)), _softmax(big).ravel().tolist(), "softmax of large scores", cause=cause)
    raises(ValueError, lambda: student.softmax(big, 0.0), "temperature 0")


def _loss(
    scores: np.ndarray, labels: np.ndarray, teacher: np.ndarray | None, temperature: float, share: float
) -> float:
    """Return the loss by its formula, from SciPy's log-softmax."""
    from scipy.special import log_softmax

    hard = float(np.mean([-log_softmax(row)[label] for row, label in zip(scores, labels, strict=True)]))
    if teacher is None:
        return hard
    soft = -_softmax(teacher, temperature) * log_softmax(scores / temperature, axis=1)
    return (1 - share) * hard + share * temperature**2 * float(soft.sum(axis=1).mean())


@judges("distillation_loss", "distillation_gradient")
def teaching_has_the_right_slope(student: Any) -> None:
    """The loss by its closed form; the slope by finite differences of that form, not of the student's."""
    rng = draw()
    for n, classes in ((5, 4), (3, 6)):
        scores, teacher = rng.normal(0, 2, (n, classes)), rng.normal(0, 2, (n, classes))
        labels = rng.integers(0, classes, n)
        cases: list[tuple[Any, float, float]] = [(None, 4.0, 0.9)]
        cases += [(teacher, 1.0, 0.5), (teacher, 4.0, 0.9), (teacher, 2.5, 1.0), (teacher, 3.0, 0.0)]
        for taught, temperature, share in cases:
            rest = (labels, taught, temperature, share)
            what = "without a teacher" if taught is None else f"at T = {temperature} and share {share}"
            cause = "means over the rows; the teacher's part times T²"
            close(student.distillation_loss(scores, *rest), _loss(scores, *rest), f"loss {what}", cause=cause, rel=1e-6)
            slope = np.asarray(student.distillation_gradient(scores, *rest))
            expect(slope.shape == scores.shape, f"slope {what}: shape {scores.shape} expected, got {slope.shape}")
            truth = np.empty_like(scores)
            for place in np.ndindex(*scores.shape):
                step = np.zeros_like(scores)
                step[place] = 1e-5
                truth[place] = (_loss(scores + step, *rest) - _loss(scores - step, *rest)) / 2e-5
            cause = "p − [c = y] for labels, T · (p − q) for the teacher, divided by the number of rows"
            all_close(slope.ravel(), truth.ravel().tolist(), f"slope {what}", cause=cause, rel=1e-4, abs=1e-7)
    plain = np.asarray(student.distillation_gradient(scores, labels))
    default = np.asarray(student.distillation_gradient(scores, labels, None, 9.0, 0.1))
    expect(np.allclose(plain, default), "without a teacher, temperature and share must not matter")


@judges("seed_verdict")
def seeds_must_agree(student: Any) -> None:
    """All seeds on one side, all within the margin, or undecided; one seed is refused."""
    rng = draw()
    for seeds in (2, 3, 5):
        middle = rng.uniform(0.02, 0.03, seeds)
        above = [(float(m) - 0.01, float(m) + 0.01) for m in middle]
        below = [(-high, -low) for low, high in above]
        around = (-0.004, 0.006)
        undecided = f"undecided: not established over {seeds} seeds"
        cases = [
            (above, 0.0, "higher"),
            (below, 0.0, "lower"),
            ([*above[1:], around], 0.0, undecided),
            ([around, *below[1:]], 0.0, undecided),
            ([above[0], *below[1:]], 0.0, undecided),
            ([around] * seeds, 0.0, undecided),
            ([around] * seeds, 0.01, "equivalent"),
            ([(0.001, 0.004)] * seeds, 0.01, "equivalent"),
            ([(0.001, 0.004)] * seeds, 0.0, "higher"),
            ([around] * (seeds - 1) + [(-0.002, 0.011)], 0.01, undecided),
            ([(-0.011, 0.002)] + [around] * (seeds - 1), 0.01, undecided),
            (above, 0.001, "higher"),
            (below, 0.001, "lower"),
            ([(0.0, 0.01)] * seeds, 0.0, undecided),
            ([(-0.01, 0.0)] * seeds, 0.0, undecided),
        ]
        for intervals, margin, truth in cases:
            got = str(student.seed_verdict(intervals, margin))
            shown = ", ".join(f"({low:.3f}, {high:.3f})" for low, high in intervals)
            expect(got == truth, f"seed_verdict of {shown} with margin {margin}: {truth!r} expected, got {got!r}")
    raises(ValueError, lambda: student.seed_verdict([(0.1, 0.2)]), "a single seed")


def _measured(student: Any, name: str, against: str, *, clear: bool = True) -> Any:
    intervals = ((0.01, 0.03), (0.02, 0.04)) if clear else ((0.01, 0.03), (-0.02, 0.02))
    return student.AccuracyChange(name, against, (0.02, 0.03), intervals)


def _raced(student: Any, name: str, against: str, verdict: str, measured: bool = True) -> Any:
    return student.Comparison(
        name_a=name, name_b=against, counts=(20, 20), paired=True, method="sign test", ratio=0.8, ratio_ci=(0.7, 0.9),
        difference=-1e-3, difference_ci=(-2e-3, -1e-4), p_value=1e-4, effect_size=-2.0, verdict=verdict, margin=0.05,
        metric="latency", unit="s", measured=measured,
    )  # fmt: skip


@judges("changes", "Journal.record")
def journals_hold_their_rules(student: Any) -> None:
    """What differs, what is refused, what is recorded, and which baseline is kept."""
    cases: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
        ({"a": 1}, {"a": 1}, []),
        ({"b": 1, "a": "x"}, {"b": 2, "a": "y"}, ["a: x → y", "b: 1 → 2"]),
        ({"a": 1}, {"a": 1, "z": 8}, ["z: none → 8"]),
        ({"a": 1, "z": 8}, {"a": 1}, ["z: 8 → none"]),
        ({"a": 0}, {"a": ""}, ["a: 0 → "]),
    ]
    rng = draw()
    for _ in range(4):
        old, new, truths = dict[str, Any](), dict[str, Any](), list[str]()
        for name in sorted(words(rng, 5)):
            one, other = words(rng, 2)
            kind = int(rng.integers(4))
            old |= {name: one} if kind != 1 else {}
            new |= {name: one if kind == 0 else other} if kind != 2 else {}
            shown = {1: f"none → {other}", 2: f"{one} → none", 3: f"{one} → {other}"}
            truths += [f"{name}: {shown[kind]}"] if kind else []
        reverse = bool(rng.integers(2))  # the settings in another order, the sentences by name
        cases.append(
            (dict(sorted(old.items(), reverse=reverse)), dict(sorted(new.items(), reverse=not reverse)), truths)
        )
    for before, after, truth in cases:
        got = [str(text) for text in student.changes(before, after)]
        expect(got == truth, f"changes from {before} to {after}: {truth} expected, got {got}")

    base, a, b, c, d, other = words(rng, 6)
    large, small, few, fewer = (f"{share} %" for share in rng.permutation(90)[:4].tolist())
    settings = {"network": large, "zeros": "none", "precision": "FP32"}
    pruned = {**settings, "network": small}

    def fresh() -> Any:
        return student.Journal(base, dict(settings))

    clear, unclear = _measured(student, b, base), _measured(student, b, base, clear=False)
    refused: list[tuple[str, Any, list[Any], str, str]] = [
        ("two changes at once", {**pruned, "precision": "INT8"}, [clear], "keep", "network"),
        ("three changes at once", {"network": 1, "zeros": 2, "precision": 3}, [clear], "reject", "zeros"),
        ("no change", dict(settings), [clear], "keep", ""),
        ("a setting dropped and one changed", {"network": small, "zeros": "none"}, [clear], "keep", ""),
        ("'keep' without a decided measurement", pruned, [unclear], "keep", ""),
        ("'reject' without a decided measurement", pruned, [unclear], "reject", ""),
        ("'keep' without any measurement", pruned, [], "keep", ""),
        ("'keep' on an estimate", pruned, [_raced(student, b, base, "faster", False)], "keep", ""),
        ("another baseline", pruned, [_measured(student, b, other)], "keep", other),
        ("another candidate", pruned, [_measured(student, other, base)], "keep", other),
        ("a comparison the wrong way round", pruned, [_measured(student, base, b)], "keep", ""),
        ("one of two measurements of another model", pruned, [clear, _measured(student, c, base)], "keep", c),
        ("an undecided entry on another baseline", pruned, [_measured(student, b, other)], "undecided", ""),
    ]
    for what, after, measurements, verdict, mention in refused:
        journal = fresh()
        mentions = [mention] if mention else []
        raises(ValueError, lambda j=journal, s=after, m=measurements, v=verdict: j.record(b, "faster", s, m, v),
               f"an entry with {what}", mentions=mentions)  # fmt: skip
        expect(len(journal.entries) == 0, f"an entry with {what} was refused, and recorded all the same")
        expect(str(journal.baseline) == base, f"an entry with {what} was refused, and changed the baseline")

    journal = fresh()
    raced = _raced(student, a, base, "undecided: needs about 40 more rounds")
    entry = journal.record(a, "zeros help", {**settings, "zeros": few}, [raced], "undecided")
    facts = (str(entry.name), str(entry.against), str(entry.hypothesis), str(entry.change), str(entry.verdict))
    truth_facts = (a, base, "zeros help", f"zeros: none → {few}", "undecided")
    expect(facts == truth_facts, f"the entry should hold {truth_facts}, it holds {facts}")
    journal.record(c, "…", {**settings, "zeros": fewer}, [_raced(student, c, base, "equivalent")], "reject")
    kept = (str(journal.baseline), dict(journal.settings))
    expect(kept == (base, settings), f"undecided and rejected entries leave the baseline as it is, not {kept}")

    measurements = [unclear, _raced(student, b, base, "faster")]
    told = [str(_measured(compress, b, base, clear=False)), str(_raced(compress, b, base, "faster"))]
    handed = dict(pruned)
    entry = journal.record(b, "smaller is faster", handed, measurements, "keep")
    handed["precision"] = "changed later"
    kept = (str(journal.baseline), dict(journal.settings))
    expect(kept == (b, pruned), f"what is kept is the new baseline with its settings: {(b, pruned)}, not {kept}")
    sentences = [str(text) for text in entry.measurements]
    expect(sentences == told, "the entry holds its measurements as sentences, all of them, in their order")
    int8 = {**pruned, "precision": "INT8"}
    old, new = _measured(student, d, base), _measured(student, d, b)
    cause = "what was measured against the former baseline does not count"
    raises(ValueError, lambda: journal.record(d, "on top", int8, [old], "keep"), "the old baseline", cause=cause)
    entry = journal.record(d, "on top", int8, [new], "keep")
    expect(str(entry.against) == b, f"the entry is against the kept baseline {b}, not {entry.against}")
    names = [str(each.name) for each in journal.entries]
    expect(names == [a, c, b, d], f"entries {[a, c, b, d]} expected, got {names}")


def answer_understanding(student: Any) -> None:
    """A fifth; two seeds that do not agree; a half of e²."""
    close(student.share_at_rank_100(), 0.2, "question 1", cause="100 · (1000 + 1000) of 1000 · 1000")
    expect(
        str(student.what_two_seeds_say()).startswith("undecided"),
        "question 2: the interval of seed 1 holds 0, so the seeds do not agree",
    )
    close(student.probability_at_four(), 1 / (1 + math.exp(-2)), "question 3", cause="scores 2 and 0", rel=1e-3)
