# Written by "autograder export" from modules/13_compress/13_compress.ipynb: edit the notebook, not this file.

"""Smaller networks by pruning, low rank and distillation, and a journal that records one change at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinybench.accuracy import mcnemar
from tinybench.support.basics.layer_networks import Layer, activations, check_layers
from tinybench.support.basics.numbers import number_of, with_ends
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.basics.table import Table
from tinybench.support.comparisons.verdict import Comparison
from tinybench.support.rounds.input_notes import check_runs


def prune_weights(layers: Sequence[Layer], sparsity: float) -> list[Layer]:
    """Return a network in which the smallest weights of each layer are set to 0 (Han and others, NeurIPS 2015).

    Parameters
    ----------
    layers
        The network, which is not changed.
    sparsity
        Fraction of the weights of each layer to set to 0, from 0 up to, but not including, 1; else ValueError. Biases
        are not changed.

    Returns
    -------
    list of Layer
        Layers of the same shapes. Exactly ``round(sparsity * W.size)`` weights of each layer were set to 0.
    """
    layers = check_layers(layers)
    if not 0 <= sparsity < 1:
        raise ValueError(f"sparsity is {sparsity}; it is a share from 0 up to, not including, 1")
    pruned = []
    for layer in layers:
        W = layer.W.copy()
        smallest = np.argsort(np.abs(W), axis=None, kind="stable")[: round(sparsity * W.size)]
        W.flat[smallest] = 0
        pruned.append(Layer(W, layer.b, layer.relu))
    return pruned


def prune_units(layers: Sequence[Layer], fraction: float) -> list[Layer]:
    """Return a network without the least important units of each hidden layer (similar to Li and others, ICLR 2017).

    Parameters
    ----------
    layers
        The network, which is not changed.
    fraction
        Fraction of the units of each hidden layer to remove, from 0 up to, but not including, 1; else ValueError. At
        least one unit is kept.

    Returns
    -------
    list of Layer
        Layers with smaller matrices. They return what the given network would return if the removed units always
        returned 0.
    """
    layers = check_layers(layers)
    if not 0 <= fraction < 1:
        raise ValueError(f"fraction is {fraction}; it is a share from 0 up to, not including, 1")
    pruned = list(layers)
    for i in range(len(layers) - 1):
        importance = np.linalg.norm(layers[i].W, axis=0) * np.linalg.norm(layers[i + 1].W, axis=1)
        stay = max(1, importance.size - round(fraction * importance.size))
        kept = np.sort(np.argsort(-importance, kind="stable")[:stay])
        here, after = pruned[i], pruned[i + 1]
        pruned[i] = Layer(here.W[:, kept], here.b[kept], here.relu)
        pruned[i + 1] = Layer(after.W[kept], after.b, after.relu)
    return pruned


def factorise(layer: Layer, rank: int) -> list[Layer]:
    """Return two layers that together replace one layer: the best approximation of its weights with the given rank.

    The first layer has shape (inputs, rank), biases 0 and no ReLU. The second has shape (rank, units), and the biases
    and the ReLU of the given layer. The weights of both have the same singular values. Raises ValueError if the rank is
    below 1, or above the smaller of inputs and units.
    """
    check_layers([layer])
    check_runs("rank", rank, 1)
    if rank > min(layer.W.shape):
        raise ValueError(f"rank is {rank}, but weights of shape {layer.W.shape} have rank {min(layer.W.shape)} at most")
    U, sizes, V = np.linalg.svd(layer.W, full_matrices=False)
    root = np.sqrt(sizes[:rank])
    first = Layer(U[:, :rank] * root, np.zeros(rank, layer.W.dtype), relu=False)
    return [first, Layer(root[:, None] * V[:rank], layer.b, layer.relu)]


def low_rank(layers: Sequence[Layer], rank: int) -> list[Layer]:
    """Return a network in which each layer is factorised, if this makes the layer smaller.

    Parameters
    ----------
    layers
        The network, which is not changed.
    rank
        Rank of the factorised layers. A layer of shape (n, m) is factorised if ``rank * (n + m) < n * m``. Raises
        ValueError if there is no such layer.
    """
    layers = check_layers(layers)
    check_runs("rank", rank, 1)
    made: list[Layer] = []
    for layer in layers:
        made += factorise(layer, rank) if rank * sum(layer.W.shape) < layer.W.size else [layer]
    if len(made) == len(layers):
        raise ValueError(f"rank {rank} makes none of the layers {[layer.W.shape for layer in layers]} smaller")
    return made


def softmax(scores: Any, temperature: float = 1.0) -> np.ndarray:
    """Return probabilities of the same shape as the scores, (n, classes); each row sums to 1.

    The higher the temperature, the closer the probabilities are to each other. Raise ValueError if the temperature is
    not above 0, or if a score is not finite.
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0")
    if not np.isfinite(scores).all():
        raise ValueError(
            "a score is NaN or infinite, so it has no probability: training went wrong; use a lower learning rate"
        )
    z = np.asarray(scores) / temperature
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    probabilities: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def distillation_loss(
    scores: Any, labels: Any, teacher: Any = None, temperature: float = 4.0, share: float = 0.9
) -> float:
    """Return the loss of a student network in distillation, as the mean over rows.

    Parameters
    ----------
    scores, teacher
        Scores of the student and of the teacher, before any softmax, of shape (n, classes). Without a teacher, only the
        labels count.
    labels
        Column numbers of the true classes, shape (n,).
    temperature
        Temperature for the scores of both networks in the teacher's part of the loss.
    share
        Weight of the teacher's part of the loss, from 0 to 1.
    """
    rows = np.arange(len(labels))
    hard = -np.log(softmax(scores)[rows, labels]).mean()
    if teacher is None:
        return float(hard)
    soft = -(softmax(teacher, temperature) * np.log(softmax(scores, temperature))).sum(axis=1).mean()
    return float((1 - share) * hard + share * temperature**2 * soft)


def distillation_gradient(
    scores: Any, labels: Any, teacher: Any = None, temperature: float = 4.0, share: float = 0.9
) -> np.ndarray:
    """Return the gradient of `distillation_loss` with respect to the student's scores, shape (n, classes)."""
    rows = np.arange(len(labels))
    slope = softmax(scores)
    slope[rows, labels] -= 1
    if teacher is not None:
        soft = softmax(scores, temperature) - softmax(teacher, temperature)
        slope = (1 - share) * slope + share * temperature * soft
    return slope / len(rows)


def adam_step(part: np.ndarray, slope: np.ndarray, mean: np.ndarray, square: np.ndarray, rate: float) -> None:
    """Change the weights `part` in place by one step of Adam (Kingma, Ba, 2015) against the gradient `slope`.

    The running means `mean` and `square` are updated, too.
    """
    mean += 0.1 * (slope - mean)
    square += 0.001 * (slope * slope - square)
    part -= rate * mean / (np.sqrt(square) + 1e-8)


def train(
    layers: Sequence[Layer],
    X: Any,
    y: Any,
    epochs: int,
    *,
    seed: int,
    teacher: Any = None,
    temperature: float = 4.0,
    share: float = 0.9,
    keep_zeros: bool = True,
    rate: float = 2e-3,
    batch: int = 100,
) -> list[Layer]:
    """Train a network further, in float32, by Adam with a learning rate that falls linearly to 0. Return the result.

    Parameters
    ----------
    layers
        The network to start from, which is not changed.
    X, y
        Rows of shape (n, inputs), and their labels, from 0 to outputs − 1; else ValueError.
    epochs, batch
        Number of times that each row is used, and number of rows in a step.
    seed
        Seed of the order of the rows.
    teacher, temperature, share
        The teacher's scores, of shape (n, outputs), to learn from; None to learn from labels alone. See
        `distillation_loss`.
    keep_zeros
        Whether weights that are exactly 0 stay 0, so that pruned weights do not grow back.
    rate
        Learning rate of the first step.
    """
    net = [Layer(W.astype(np.float32), b.astype(np.float32), relu) for W, b, relu in check_layers(layers)]
    X, y = np.asarray(X, np.float32), np.asarray(y)
    shape = (len(X), len(net[-1].b))
    check_runs("epochs", epochs, 1)
    check_runs("batch", batch, 1)
    if X.ndim != 2 or not len(X) or X.shape[1] != len(net[0].W) or not np.isfinite(X).all():
        raise ValueError(
            f"X has shape {X.shape}, or holds NaN; rows of {number_of(len(net[0].W), 'finite number')} are expected"
        )
    if y.shape != shape[:1] or not np.isin(y, np.arange(shape[1])).all():
        raise ValueError(f"y needs a label from 0 to {shape[1] - 1} for each of {number_of(len(X), 'row')}")
    if teacher is not None and np.shape(teacher) != shape:
        raise ValueError(f"the teacher's scores have shape {np.shape(teacher)}; {shape} is expected")
    masks = [layer.W != 0 for layer in net]
    moments = [[np.zeros((2, *part.shape), np.float32) for part in (layer.W, layer.b)] for layer in net]
    rng, steps, step = np.random.default_rng(seed), epochs * math.ceil(len(X) / batch), 0
    for _ in range(epochs):
        order = rng.permutation(len(X))
        for start in range(0, len(X), batch):
            rows = order[start : start + batch]
            pace = rate * (1 - step / steps)
            step += 1
            pace *= math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            values = activations(net, X[rows])
            taught = None if teacher is None else np.asarray(teacher)[rows]
            slope = distillation_gradient(values[-1], y[rows], taught, temperature, share).astype(np.float32)
            for i in reversed(range(len(net))):
                W, b, _ = net[i]
                slopes = values[i].T @ slope, slope.sum(axis=0)
                if i:
                    slope = slope @ W.T * (values[i] > 0 if net[i - 1].relu else np.float32(1))
                for part, its_slope, (mean, square) in zip((W, b), slopes, moments[i], strict=True):
                    adam_step(part, its_slope, mean, square, pace)
                if keep_zeros:
                    np.multiply(W, masks[i], out=W)
    return check_layers(net)


def seed_verdict(intervals: Sequence[tuple[float, float]], margin: float = 0.0) -> str:
    """Return the verdict on a difference between two networks, from the intervals of all training seeds together.

    The verdict is ``"equivalent"``, ``"higher"``, ``"lower"``, or ``"undecided: not established over 2 seeds"`` with
    the number of seeds.

    Parameters
    ----------
    intervals
        One ``(lower, upper)`` for each seed. Raises ValueError if there are fewer than two intervals, or if one
        contains NaN.
    margin
        A difference between −margin and margin does not matter. With 0, every difference matters.
    """
    ends = np.asarray(intervals, float).reshape(-1, 2)
    if len(ends) < 2 or np.isnan(ends).any():
        had = number_of(len(ends), "interval")
        raise ValueError(f"{had}, or some are NaN; one seed says nothing about scatter: train with two or more")
    lows, highs = ends[:, 0], ends[:, 1]
    if margin > 0 and lows.min() >= -margin and highs.max() <= margin:
        return "equivalent"
    if lows.min() > 0:
        return "higher"
    if highs.max() < 0:
        return "lower"
    return f"undecided: not established over {len(ends)} seeds"


@dataclass(frozen=True)
class AccuracyChange:
    """The differences in accuracy between two training recipes, a and b: one for each seed, with 95 % intervals.

    ``str`` gives a sentence.
    """

    name_a: str
    name_b: str
    differences: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    margin: float = 0.0

    __repr__ = short_repr

    @property
    def verdict(self) -> str:
        """The verdict from all seeds together."""
        return seed_verdict(self.intervals, self.margin)

    def __str__(self) -> str:
        """Return the names, the change of each seed in points, and the verdict."""
        each = [
            f"{'+' if d > 0 else ''}{with_ends(100 * d, (100 * low, 100 * high))}"
            for d, (low, high) in zip(self.differences, self.intervals, strict=True)
        ]
        return f"{self.name_a} against {self.name_b}: accuracy {', '.join(each)} points; {self.verdict}"


def accuracy_change(
    y: Any,
    labels_a: Sequence[Any],
    labels_b: Sequence[Any],
    names: tuple[str, str],
    margin: float = 0.0,
    groups: Any = None,
) -> AccuracyChange:
    """Compare two training recipes by the labels that their networks predict for the same rows.

    Each recipe has one network, and so one sequence of labels, for each seed. `groups` names the group of each row if
    rows depend on each other; the intervals are then by groups.
    """
    if len(labels_a) != len(labels_b) or len(labels_a) < 2:
        raise ValueError(f"{len(labels_a)} and {len(labels_b)} seeds; train each recipe with the same two or more")
    found = [mcnemar(y, a, b, groups) for a, b in zip(labels_a, labels_b, strict=True)]
    intervals = tuple(each.difference_ci for each in found)
    return AccuracyChange(*names, tuple(each.difference for each in found), intervals, margin)


VERDICTS = ("keep", "reject", "undecided")
Measured = Comparison | AccuracyChange


@dataclass(frozen=True)
class Entry:
    """One entry of a journal: the attempt, its baseline, and what was expected, changed, measured and decided."""

    name: str
    against: str
    hypothesis: str
    change: str
    measurements: tuple[str, ...]
    verdict: str

    __repr__ = short_repr


@dataclass
class Journal:
    """A journal of optimisations. Each entry makes one change to the current baseline; see `Journal.record`.

    Parameters
    ----------
    baseline
        Name of the first model; later, name of the model that was kept last.
    settings
        Settings of the baseline, such as ``{"hidden": "512-256", "precision": "FP32"}``.
    entries
        The recorded entries.
    """

    baseline: str
    settings: dict[str, Any]
    entries: list[Entry] = field(default_factory=list)

    __repr__ = short_repr

    def check_words(self, name: str, hypothesis: str, verdict: str) -> None:
        """Raise ValueError if an entry has no hypothesis, an unknown verdict, or a name that is already taken."""
        if not hypothesis.strip():
            raise ValueError(f"{name}: write down first what you expect, and why")
        if verdict not in VERDICTS:
            raise ValueError(f"verdict is {verdict!r}; it must be one of {', '.join(VERDICTS)}")
        if name == self.baseline or name in [entry.name for entry in self.entries]:
            raise ValueError(f"{name!r} is in the journal already; give the new attempt a name of its own")

    def __str__(self) -> str:
        """Return the entries as lines of text."""
        lines = []
        for number, entry in enumerate(self.entries, start=1):
            lines.append(f"{number}. {entry.name} ({entry.change}), against {entry.against}: {entry.verdict.upper()}")
            lines += [f"   expected: {entry.hypothesis}", *(f"   measured: {text}" for text in entry.measurements)]
        return "\n".join([*lines, f"kept: {self.baseline}"])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        rows = (
            {
                "tried": entry.name,
                "against": entry.against,
                "change": entry.change,
                "expected": entry.hypothesis,
                "measured": "\n".join(entry.measurements),
                "verdict": entry.verdict,
            }
            for entry in self.entries
        )
        return {"text/plain": str(self), "text/html": Table(rows, f"kept: {self.baseline}").html()}

    def record(
        self, name: str, hypothesis: str, settings: Mapping[str, Any], measurements: Sequence[Measured], verdict: str
    ) -> Entry:
        """Add an entry. If its verdict is ``"keep"``, it becomes the baseline.

        Parameters
        ----------
        name, hypothesis, verdict
            What was tried, what was expected and why, and ``"keep"``, ``"reject"`` or ``"undecided"``.
        settings
            All settings of the attempt. Exactly one differs from those of the baseline.
        measurements
            Comparisons of `name` with the current baseline, in this order; see `compare` and `accuracy_change`.

        Raises
        ------
        ValueError
            If a rule of the journal is broken. In this case, nothing is recorded.
        """
        self.check_words(name, hypothesis, verdict)
        changed = changes(self.settings, settings)
        if len(changed) != 1:
            raise ValueError(f"{len(changed)} changes at once ({'; '.join(changed)}); an entry has exactly one")
        for each in measurements:
            if (each.name_a, each.name_b) != (name, self.baseline):
                wanted = f"this entry is about {name} against the kept baseline {self.baseline}"
                raise ValueError(f"measured was {each.name_a} against {each.name_b}; {wanted}")
        if verdict != "undecided" and not any(decided(each) for each in measurements):
            raise ValueError(
                f"{verdict!r} needs a significant measurement; measure longer, or record it as 'undecided'"
            )
        entry = Entry(name, self.baseline, hypothesis, changed[0], tuple(str(each) for each in measurements), verdict)
        self.entries.append(entry)
        if verdict == "keep":
            self.baseline, self.settings = name, dict(settings)
        return entry


def decided(measurement: Measured) -> bool:
    """Return whether a measurement is decided: significant or equivalent, and not an estimate."""
    return getattr(measurement, "measured", True) and not measurement.verdict.startswith("undecided")


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the differences between two settings, such as ``"precision: FP32 → INT8"``, sorted by name.

    If a name is missing on one side, its value there is ``none``.
    """
    names = sorted(before.keys() | after.keys())
    pairs = {name: (before.get(name, "none"), after.get(name, "none")) for name in names}
    return [f"{name}: {old} → {new}" for name, (old, new) in pairs.items() if old != new]
