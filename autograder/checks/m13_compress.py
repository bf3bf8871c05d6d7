"""Hidden checks for module 13, against sorting by hand, silenced units, singular values and finite differences.

Networks are judged by their weights and outputs, never by speed. The journal of experiments is judged by the entries
that it accepts and refuses.
"""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy import special

from autograder.checks import judges
from autograder.checks.check_helpers import *
from autograder.checks.plain_answers import array, flag, items, text
from tinybench import compress
from tinybench.support.basics.layer_networks import Layer


def _network(rng: np.random.Generator, sizes: tuple[int, ...]) -> list[Layer]:
    """Return a random network with biases; the last layer has no ReLU."""
    last = len(sizes) - 2
    shapes = enumerate(pairwise(sizes))
    return [Layer(rng.normal(size=shape), rng.normal(size=shape[1]), i < last) for i, shape in shapes]


def _given(student: Any, network: list[Layer]) -> list[Any]:
    """Return a copy of the network in layers of the student's own class."""
    return [student.Layer(np.array(layer.W), np.array(layer.b), layer.relu) for layer in network]


def _taken(network: Any, number: int, what: str) -> list[Layer]:
    """Convert a student's network, which must have `number` layers, to layers of plain arrays."""
    layers = []
    for i, layer in enumerate(items(network, what, number)):
        of_it = f"layer {i} of {what}"
        weights = getattr(layer, "W", None)
        expect(weights is not None, f"{of_it} should be a Layer, not {type(layer).__name__}")
        relu = flag(layer.relu, f"relu of {of_it}")
        layers.append(Layer(array(weights, f"W of {of_it}"), array(layer.b, f"b of {of_it}"), relu))
    return layers


def _unchanged(network: list[Any], truths: list[Layer]) -> None:
    for layer, old in zip(network, truths, strict=True):
        same(layer.W, old.W, "the weights of the network that was given", "it has changed; copy them first", rel=0)


def _scores(layers: list[Layer], X: np.ndarray) -> np.ndarray:
    """Return the outputs of a network, computed by the check itself."""
    a = X
    for layer in layers:
        a = a @ layer.W + layer.b
        a = np.maximum(a, 0) if layer.relu else a
    return a


def _answers_alike(got: list[Layer], truth: list[Layer], X: np.ndarray, what: str, cause: str) -> None:
    wanted = _scores(truth, X)
    same(_scores(got, X), wanted, f"the scores of {what}", cause, rel=0, abs=1e-4 * (1 + float(np.abs(wanted).max())))


@judges("prune_weights")
def weights_are_pruned(student: Any) -> None:
    """Check that `prune_weights` sets exactly the smallest weights of each layer to 0, even among equal magnitudes.

    The other weights, the biases, the ReLUs and the original network must not change.
    """
    rng = draw()
    truths = _network(rng, (7, 6, 5, 4))
    network = _given(student, truths)
    for sparsity in (0.0, 0.33, 0.5, 0.9, 0.999):
        pruned = _taken(student.prune_weights(network, sparsity), 3, f"prune_weights at sparsity {sparsity}")
        for i, (layer, old) in enumerate(zip(pruned, truths, strict=True)):
            count, what = round(sparsity * old.W.size), f"layer {i} at sparsity {sparsity}"
            threshold = np.sort(np.abs(old.W), axis=None)[count] if count < old.W.size else math.inf
            truth = {"W": np.where(np.abs(old.W) < threshold, 0, old.W), "b": old.b, "relu": old.relu}
            cause = f"{count} of {old.W.size} weights become 0, the smallest by magnitude; all else stays as it is"
            holds(layer, truth, what, cause, rel=0)
    _unchanged(network, truths)
    signs = rng.choice([-1.0, 1.0], (20, 15))
    what = "300 weights of equal magnitude at sparsity 0.7"
    (got,) = _taken(student.prune_weights([student.Layer(np.array(signs), np.zeros(15), False)], 0.7), 1, what)
    same(np.sum(got.W == 0), 210, f"the zeros of {what}")
    same(got.W, np.where(got.W == 0, 0, signs), what, "what stays is as it was", rel=0)
    refuses(student.prune_weights, *((network, sparsity) for sparsity in (1.0, -0.1, math.nan)))


@judges("prune_units")
def units_are_removed(student: Any) -> None:
    """Check that `prune_units` removes the right units.

    The outputs must equal those of the dense network with these units silenced. The importance of a unit must be the
    product of the norms of its incoming and its outgoing weights.
    """
    rng = draw()
    X = rng.normal(size=(30, 9))
    for sizes in ((9, 12, 8, 4), (9, 10, 3), (9, 7, 6, 5, 4)):
        for fraction in (0.0, 0.3, 0.5, 0.75, 0.99):
            truths = _network(rng, sizes)
            silenced, widths = list(truths), list[int]()
            for i, (layer, following) in enumerate(pairwise(truths)):
                both = np.linalg.norm(layer.W, axis=0) * np.linalg.norm(following.W, axis=1)
                widths.append(max(1, both.size - round(fraction * both.size)))
                after = np.array(following.W)
                after[np.argsort(-both)[widths[-1] :]] = 0
                silenced[i + 1] = Layer(after, following.b, following.relu)
            network = _given(student, truths)
            what = f"{'-'.join(map(str, sizes))} at fraction {fraction}"
            pruned = _taken(student.prune_units(network, fraction), len(truths), what)
            shapes = [layer.W.shape for layer in pruned]
            same(shapes, list(pairwise([sizes[0], *widths, sizes[-1]])), f"the shapes of the weights of {what}")
            cause = "importance is the product of the norms of incoming and outgoing weights, as given"
            _answers_alike(pruned, silenced, X, what, cause)
            _unchanged(network, truths)
    first = student.Layer(np.array([[1.0, 9.0, 3.0]]), np.array([0.1, 0.2, 0.3]))
    network = [first, student.Layer(np.array([[9.0], [4.0], [1.0]]), np.zeros(1), False)]
    what, cause = "what is left of importances 9, 36 and 3", "the first two stay, in their order"
    holds(_taken(student.prune_units(network, 0.34), 2, what)[0], {"W": [[1, 9]], "b": [0.1, 0.2]}, what, cause, rel=0)
    refuses(student.prune_units, (network, 1.0), (network, -0.1))


def answer_units(student: Any) -> None:
    """Check that the remaining fraction of multiplications is right.

    Only the middle matrix shrinks in both dimensions.
    """
    truth = (784 * 256 + 256 * 128 + 128 * 10) / (784 * 512 + 512 * 256 + 256 * 10)
    cause = "784 · 256 + 256 · 128 + 128 · 10 over 784 · 512 + 512 · 256 + 256 · 10"
    same(student.share_of_multiplications(), truth, "the share", cause, rel=2e-3)


@judges("factorise")
def factors_are_best(student: Any) -> None:
    """Check that `factorise` has the smallest possible error (Eckart and Young) and returns balanced factors."""
    rng = draw()
    for shape, rank, relu in product(((14, 9), (9, 14), (10, 10)), (1, 4, 9), (True, False)):
        layer = Layer(rng.normal(size=shape), rng.normal(size=shape[1]), relu)
        sizes, what = np.linalg.svd(layer.W, compute_uv=False), f"{shape} at rank {rank}"
        first, second = _taken(student.factorise(*_given(student, [layer]), rank), 2, what)
        A, B = first.W, second.W
        same((A.shape, B.shape), ((shape[0], rank), (rank, shape[1])), f"the shapes of the factors of {what}")
        error, best = np.linalg.norm(layer.W - A @ B), math.sqrt(float(np.sum(sizes[rank:] ** 2)))
        same(error, best, f"error, {what}", "keep the largest singular values with their vectors", rel=1e-6, abs=1e-8)
        for name, factor in (("first", A), ("second", B)):
            found = np.linalg.svd(factor, compute_uv=False)
            cause = "the square root of the singular values goes to both"
            same(found, np.sqrt(sizes[:rank]), f"singular values of the {name} layer, {what}", cause, rel=1e-6)
        holds(first, {"relu": False, "b": [0] * rank}, f"the first layer, {what}", "neither biases nor ReLU", rel=0)
        cause = "ReLU and biases are those of the layer it stands for"
        holds(second, {"relu": relu, "b": layer.b}, f"the second layer, {what}", cause, rel=0)
    refuses(student.factorise, *((student.Layer(np.ones((5, 4)), np.zeros(4)), rank) for rank in (0, 5)))


def _softmax(scores: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    return np.asarray(special.softmax(scores / temperature, axis=1))


def _log_softmax(scores: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    return np.asarray(special.log_softmax(scores / temperature, axis=1))


@judges("log_softmax")
def logarithms_are_stable(student: Any) -> None:
    """Check that `log_softmax` agrees with SciPy at any temperature and size, and that its input does not change."""
    rng = draw()
    for shape in ((6, 4), (1, 9), (3, 3)):
        scores = rng.normal(0, 3, shape)
        before, cause = scores.copy(), "divide by the temperature, then subtract ln Σ e^z of each row"
        agrees(student.log_softmax, _log_softmax, [(scores, 0.5), (scores, 1.0), (scores, 4.0), (scores,)], cause)
        expect(np.array_equal(scores, before), "log_softmax has changed the scores that it was given")
    big = np.array([[2000.0, 1999.0], [-3000.0, -3001.0], [0.0, -5000.0]])
    agrees(student.log_softmax, _log_softmax, [(big,)], "subtract each row's largest score, and take no logarithm of 0")
    refuses(student.log_softmax, (big, 0.0), what="temperature 0")


def _loss(scores: Any, labels: Any, teacher: Any, temperature: float, share: float) -> float:
    """Return the distillation loss by its formula, with SciPy's log-softmax."""
    hard = -float(_log_softmax(scores)[np.arange(len(labels)), labels].mean())
    if teacher is None:
        return hard
    soft = -_softmax(teacher, temperature) * _log_softmax(scores, temperature)
    return (1 - share) * hard + share * temperature**2 * float(soft.sum(axis=1).mean())


def _slope(scores: np.ndarray, *rest: Any) -> np.ndarray:
    """Return the gradient of `_loss` by finite differences."""
    steps = 1e-5 * np.eye(scores.size).reshape(-1, *scores.shape)
    slopes = [(_loss(scores + step, *rest) - _loss(scores - step, *rest)) / 2e-5 for step in steps]
    return np.reshape(slopes, scores.shape)


@judges("distillation_loss", "distillation_gradient")
def teaching_has_the_right_slope(student: Any) -> None:
    """Check that `distillation_loss` agrees with its closed form.

    `distillation_gradient` must agree with finite differences of this form, not of the student's loss.
    """
    rng = draw()
    for n, classes in ((5, 4), (3, 6)):
        scores, teacher = rng.normal(0, 2, (n, classes)), rng.normal(0, 2, (n, classes))
        labels = rng.integers(0, classes, n)
        cases: list[tuple[Any, ...]] = [(scores, labels, None, 4.0, 0.9)]
        cases += [(scores, labels, teacher, *how) for how in ((1.0, 0.5), (4.0, 0.9), (2.5, 1.0), (3.0, 0.0))]
        cause = "means over the rows; the teacher's part times T²"
        agrees(student.distillation_loss, _loss, cases, cause, rel=1e-6)
        cause = "p − [c = y] for labels, T · (p − q) for the teacher, divided by the number of rows"
        agrees(student.distillation_gradient, _slope, cases, cause, rel=1e-4, abs=1e-7)
    cause = "without a teacher, temperature and share must not matter"
    far = 500 * scores
    cases = [(far, labels, None, 1.0, 0.0), (far, labels, teacher, 1.0, 0.5)]
    reason = "use log_softmax, not the logarithm of softmax"
    agrees(student.distillation_loss, _loss, cases, reason, rel=1e-6)
    rest = (scores, labels, None)
    same(student.distillation_loss(*rest, 9.0, 0.1), _loss(*rest, 1, 0), "distillation_loss", cause, rel=1e-6)
    slope = student.distillation_gradient(*rest, 9.0, 0.1)
    same(slope, _slope(*rest, 1, 0), "distillation_gradient", cause, rel=1e-4, abs=1e-7)


def _measured(student: Any, name: str, against: str, *, clear: bool = True) -> Any:
    intervals = ((0.01, 0.03), (0.02, 0.04)) if clear else ((0.01, 0.03), (-0.02, 0.02))
    return student.AccuracyChange(name, against, (0.02, 0.03), intervals)


def _raced(student: Any, name: str, against: str, verdict: str, measured: bool = True) -> Any:
    return student.Comparison(
        name_a=name, name_b=against, counts=(20, 20), paired=True, method="sign test", ratio=0.8, ratio_ci=(0.7, 0.9),
        difference=-1e-3, difference_ci=(-2e-3, -1e-4), p_value=1e-4, effect_size=-2.0, verdict=verdict, margin=0.05,
        metric="latency", unit="s", measured=measured,
    )  # fmt: skip


@judges("Journal.record")
def journals_hold_their_rules(student: Any) -> None:
    """Check that `Journal.record` refuses entries that break a rule, and says why.

    Only an entry with the verdict "keep" may replace the baseline.
    """
    rng = draw()
    base, a, b, c, d, other = words(rng, 6)
    large, small, few, fewer = (f"{share} %" for share in rng.permutation(90)[:4].tolist())
    settings = {"network": large, "zeros": "none", "precision": "FP32"}
    pruned = {**settings, "network": small}
    clear, unclear = _measured(student, b, base), _measured(student, b, base, clear=False)
    tried: list[tuple[str, Any, list[Any], str, str | None]] = [  # last: words of the refusal, None if recorded
        ("one change and a decided measurement", pruned, [clear], "keep", None),
        ("the same, rejected", pruned, [unclear, clear], "reject", None),
        ("one change, undecided", pruned, [unclear], "undecided", None),
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
    for what, after, measurements, verdict, mention in [tried[i] for i in rng.permutation(len(tried))]:
        journal = student.Journal(base, dict(settings))
        case, what = (b, "faster", after, measurements, verdict), f"an entry with {what}"
        if mention is None:
            holds(journal.record(*case), {"name": b, "verdict": verdict}, what)
            items(journal.entries, f"the entries after {what}", 1)
            continue
        refuses(journal.record, case, mentions=mention, what=what)
        same(journal.entries, [], f"the entries after {what} was refused")
        holds(journal, {"baseline": base, "settings": settings}, f"the journal after {what} was refused")

    journal = student.Journal(base, dict(settings))
    raced = _raced(student, a, base, "undecided: needs about 40 more rounds")
    entry = journal.record(a, "zeros help", {**settings, "zeros": few}, [raced], "undecided")
    facts = {"name": a, "against": base, "hypothesis": "zeros help", "change": f"zeros: none → {few}"}
    holds(entry, {**facts, "verdict": "undecided"}, "the entry")
    journal.record(c, "…", {**settings, "zeros": fewer}, [_raced(student, c, base, "equivalent")], "reject")
    kept = {"baseline": base, "settings": settings}
    holds(journal, kept, "the journal", "undecided and rejected entries leave the baseline as it is")

    handed = dict(pruned)
    entry = journal.record(b, "smaller is faster", handed, [unclear, _raced(student, b, base, "faster")], "keep")
    handed["precision"] = "changed later"
    holds(journal, {"baseline": b, "settings": pruned}, "the journal", "what is kept, with its settings")
    told = [str(_measured(compress, b, base, clear=False)), str(_raced(compress, b, base, "faster"))]
    holds(entry, {"measurements": told, "verdict": "keep"}, "the entry", "all measurements, as sentences, in order")
    on_top = (d, "on top", {**pruned, "precision": "INT8"})
    cause = "what was measured against the former baseline does not count"
    refuses(journal.record, (*on_top, [_measured(student, d, base)], "keep"), what="the old baseline", cause=cause)
    entry = journal.record(*on_top, [_measured(student, d, b)], "keep")
    same(entry.against, b, "what the next entry is against", "the kept baseline")
    same([each.name for each in items(journal.entries, "the entries")], [a, c, b, d], "the names of the entries")


def answer_understanding(student: Any) -> None:
    """Check that the answers are 0.2, "undecided" because two seeds disagree, and the softmax of the scores 2 and 0."""
    same(student.share_at_rank_100(), 0.2, "question 1", "100 · (1000 + 1000) of 1000 · 1000")
    said = text(student.what_two_seeds_say(), "question 2")
    expect(said.startswith("undecided"), "question 2: the interval of seed 1 holds 0, so the seeds do not agree")
    same(student.probability_at_four(), 1 / (1 + math.exp(-2)), "question 3", "scores 2 and 0", rel=1e-3)
