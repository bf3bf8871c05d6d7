# Written by "autograder export" from modules/13_compress/13_compress.ipynb: edit the notebook, not this file.

"""A smaller network: pruning, low rank, distillation with one training budget, and a journal of single changes."""

from __future__ import annotations

import html
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinybench.accuracy import difference_interval, mcnemar
from tinybench.comparison import Comparison
from tinybench.latency import check_runs
from tinybench.onnx import refuse_existing, save_graph


class Layer(NamedTuple):
    """One layer of a network: ``max(x W + b, 0)``, or ``x W + b`` without ReLU.

    Attributes
    ----------
    W : numpy.ndarray
        Weights of shape (inputs, units).
    b : numpy.ndarray
        Biases of shape (units,).
    relu : bool
        Whether a ReLU follows.
    """

    W: np.ndarray
    b: np.ndarray
    relu: bool = True


def check_layers(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers as a list, or raise ValueError where they make no network or hold NaN."""
    layers = list(layers)
    if not layers:
        raise ValueError("there are no layers; layers_of(model) returns those of a fitted network")
    for i, (W, b, _) in enumerate(layers):
        if np.ndim(W) != 2 or np.shape(b) != np.shape(W)[1:] or (i and len(W) != len(layers[i - 1].b)):
            raise ValueError(
                f"layer {i}: weights of shape {np.shape(W)} and biases of shape {np.shape(b)} do not fit together, "
                "or not to the layer before; W is (inputs, units), b is (units,)"
            )
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise ValueError(f"layer {i} holds NaN or infinite weights: the training went wrong")
    return layers


def layers_of(model: Any) -> list[Layer]:
    """Return the layers of a fitted ``MLPClassifier`` with ReLU units and three or more classes, in float32.

    Raises
    ------
    TypeError
        If it is another model, or not fitted.
    ValueError
        If a weight is NaN or infinite.
    """
    if not hasattr(model, "coefs_"):
        raise TypeError(f"{type(model).__name__} has no weights; pass a fitted MLPClassifier")
    if model.activation != "relu" or model.out_activation_ != "softmax":
        raise TypeError(f"{model.activation} and {model.out_activation_} are not supported; ReLU and softmax are")
    parts = zip(model.coefs_, model.intercepts_, strict=True)
    last = len(model.coefs_) - 1
    made = [Layer(np.asarray(W, np.float32), np.asarray(b, np.float32), i < last) for i, (W, b) in enumerate(parts)]
    return check_layers(made)


def initial_layers(sizes: Sequence[int], seed: int) -> list[Layer]:
    """Return an untrained network.

    Parameters
    ----------
    sizes
        Inputs, units of each hidden layer, outputs.
    seed
        Of the generator.

    References
    ----------
    He, Zhang, Ren, Sun, "Delving deep into rectifiers", ICCV 2015: the scale.
    """
    rng = np.random.default_rng(seed)
    shapes = list(pairwise(sizes))
    weights = [rng.normal(0, math.sqrt(2 / n), (n, m)).astype(np.float32) for n, m in shapes]
    return [Layer(W, np.zeros(W.shape[1], np.float32), i < len(shapes) - 1) for i, W in enumerate(weights)]


def activations(layers: Sequence[Layer], X: Any) -> list[np.ndarray]:
    """Return the rows and what each layer makes of them; the last are the scores, before any softmax."""
    values = [np.asarray(X, np.float32)]
    for W, b, relu in layers:
        a = values[-1] @ W + b
        values.append(np.maximum(a, 0) if relu else a)
    return values


def parameters(layers: Sequence[Layer]) -> int:
    """Return how many numbers a network stores, zeros included."""
    return sum(layer.W.size + layer.b.size for layer in layers)


def zipped_size(path: str | Path) -> int:
    """Return the size of a file in bytes after compression with zlib, as in a download."""
    return len(zlib.compress(Path(path).read_bytes()))


def save_layers(layers: Sequence[Layer], path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a network as an ``.onnx`` file from rows to probabilities.

    Raises
    ------
    FileExistsError
        If there is a file and `overwrite` is not set.
    ValueError
        See `check_layers`.
    """
    from onnx import TensorProto, helper, numpy_helper

    path = Path(path)
    refuse_existing(path, overwrite)
    layers = check_layers(layers)
    nodes, tensors, x = [], [], "X"
    for i, (W, b, relu) in enumerate(layers):
        tensors += [numpy_helper.from_array(np.asarray(v, np.float32), f"{k}{i}") for k, v in (("W", W), ("b", b))]
        nodes.append(helper.make_node("MatMul", [x, f"W{i}"], [f"product{i}"]))
        nodes.append(helper.make_node("Add", [f"product{i}", f"b{i}"], [x := f"sum{i}"]))
        if relu:
            nodes.append(helper.make_node("Relu", [x], [x := f"relu{i}"]))
    nodes.append(helper.make_node("Softmax", [x], ["probabilities"], axis=1))
    columns = {"X": len(layers[0].W), "probabilities": len(layers[-1].b)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n]) for name, n in columns.items()]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], tensors)
    save_graph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def prune_weights(layers: Sequence[Layer], sparsity: float) -> list[Layer]:
    """Return a network in which the smallest weights of each layer are 0.

    Parameters
    ----------
    layers
        The network; it stays as it is.
    sparsity
        Share of the weights of each layer to set to 0, from 0 up to, not including, 1. Biases stay.

    Returns
    -------
    list of Layer
        Of the same shapes; exactly ``round(sparsity * W.size)`` weights of each layer were set to 0.

    Raises
    ------
    ValueError
        If `sparsity` is out of range; see also `check_layers`.

    References
    ----------
    Han, Pool, Tran, Dally, "Learning both weights and connections for efficient neural networks", NeurIPS 2015.
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
    """Return a network without the least important units of each hidden layer.

    Parameters
    ----------
    layers
        The network; it stays as it is.
    fraction
        Share of the units of each hidden layer to remove, from 0 up to, not including, 1; at least one unit stays.

    Returns
    -------
    list of Layer
        With smaller matrices; it answers as the given network would if the removed units always returned 0.

    Raises
    ------
    ValueError
        If `fraction` is out of range; see also `check_layers`.

    References
    ----------
    Li, Kadav, Durdanovic, Samet, Graf, "Pruning filters for efficient ConvNets", ICLR 2017 (there: filters by norm).
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
    """Return two layers in place of one: the best approximation of its weights of this rank.

    Parameters
    ----------
    layer
        With weights of shape (inputs, units).
    rank
        From 1 to the smaller of both.

    Returns
    -------
    list of Layer
        The first of shape (inputs, rank), biases 0, without ReLU; the second of shape (rank, units), with the given
        biases and ReLU. Both have the same singular values.

    Raises
    ------
    ValueError
        If there is no such rank; see also `check_layers`.

    References
    ----------
    Eckart, Young, "The approximation of one matrix by another of lower rank", Psychometrika 1 (1936).
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
    """Return a network whose layers are factorised where that makes them smaller.

    Parameters
    ----------
    layers
        The network; it stays as it is.
    rank
        See `factorise`; a layer of shape (n, m) is split if ``rank * (n + m) < n * m``.

    Raises
    ------
    ValueError
        If no layer becomes smaller; see also `check_layers`.
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
    """Return probabilities.

    Parameters
    ----------
    scores
        Shape (n, classes).
    temperature
        Above 0; the higher, the more even are the probabilities.

    Returns
    -------
    numpy.ndarray
        Of the same shape; rows sum to 1.

    Raises
    ------
    ValueError
        If `temperature` is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0")
    z = np.asarray(scores) / temperature
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    probabilities: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def distillation_loss(
    scores: Any, labels: Any, teacher: Any = None, temperature: float = 4.0, share: float = 0.9
) -> float:
    """Return the mean loss of a student over rows.

    Parameters
    ----------
    scores
        The student's, before any softmax, shape (n, classes).
    labels
        Columns of the true classes, shape (n,).
    teacher
        The teacher's scores, as `scores`; None for training on labels alone.
    temperature
        Of both networks in the teacher's part.
    share
        How much the teacher's part counts, from 0 to 1.

    Returns
    -------
    float

    References
    ----------
    Hinton, Vinyals, Dean, "Distilling the knowledge in a neural network", arXiv 1503.02531 (2015).
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
    """Return the slope of `distillation_loss` by the student's scores, shape (n, classes)."""
    rows = np.arange(len(labels))
    slope = softmax(scores)
    slope[rows, labels] -= 1
    if teacher is not None:
        soft = softmax(scores, temperature) - softmax(teacher, temperature)
        slope = (1 - share) * slope + share * temperature * soft
    return slope / len(rows)


def adam_step(part: np.ndarray, slope: np.ndarray, mean: np.ndarray, square: np.ndarray, rate: float) -> None:
    """Move weights against their slope, in place.

    Parameters
    ----------
    part, slope
        The weights, and the slope of the loss by them.
    mean, square
        Running means of the slopes and of their squares, of the same shape; updated in place.
    rate
        Length of the step, with Adam's correction of the first steps in it.

    References
    ----------
    Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015; its usual 0.9, 0.999 and 1e-8.
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
    """Return a network trained further, by Adam with a rate that falls linearly to 0.

    Parameters
    ----------
    layers
        The network to start from; it stays as it is.
    X, y
        Rows of shape (n, inputs), and their labels, from 0 to outputs − 1.
    epochs
        How often each row is used.
    seed
        Of the order of the rows.
    teacher
        Scores of shape (n, outputs) to learn from; None for labels alone. See `distillation_loss`, also for
        `temperature` and `share`.
    keep_zeros
        Whether weights that are exactly 0 stay so: pruned ones do not grow back.
    rate
        Of the first step.
    batch
        Rows in a step.

    Returns
    -------
    list of Layer
        In float32.

    Raises
    ------
    ValueError
        If shapes or labels do not fit, a number of epochs or rows is below 1, or weights become NaN.
    """
    net = [Layer(W.astype(np.float32), b.astype(np.float32), relu) for W, b, relu in check_layers(layers)]
    X, y = np.asarray(X, np.float32), np.asarray(y)
    shape = (len(X), len(net[-1].b))
    check_runs("epochs", epochs, 1)
    check_runs("batch", batch, 1)
    if X.ndim != 2 or not len(X) or X.shape[1] != len(net[0].W) or not np.isfinite(X).all():
        raise ValueError(f"X has shape {X.shape}, or holds NaN; rows of {len(net[0].W)} finite numbers are expected")
    if y.shape != shape[:1] or not np.isin(y, np.arange(shape[1])).all():
        raise ValueError(f"y needs a label from 0 to {shape[1] - 1} for each of {len(X)} rows")
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
    """Return what the intervals of all seeds say together about a difference.

    Parameters
    ----------
    intervals
        One ``(lower, upper)`` for each seed, two or more.
    margin
        A difference between −margin and margin does not matter; 0 for none.

    Returns
    -------
    str
        ``"equivalent"``, ``"higher"``, ``"lower"``, or ``"undecided: not established over 2 seeds"`` with their number.

    Raises
    ------
    ValueError
        If there are fewer than two seeds, or a number is NaN.
    """
    ends = np.asarray(intervals, float).reshape(-1, 2)
    if len(ends) < 2 or np.isnan(ends).any():
        raise ValueError(
            f"{len(ends)} intervals, or NaN among them: one seed is one throw of the dice; train two or more"
        )
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
    """How the accuracy of one recipe differs from that of another, over seeds; ``str`` gives it as a sentence.

    Attributes
    ----------
    name_a, name_b : str
        The recipes.
    differences : tuple of float
        Accuracy of a minus that of b, for each seed.
    intervals : tuple of tuple
        Their 95 % intervals.
    margin : float
        See `seed_verdict`.
    """

    name_a: str
    name_b: str
    differences: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    margin: float = 0.0

    @property
    def verdict(self) -> str:
        """What all seeds say together."""
        return seed_verdict(self.intervals, self.margin)

    def __str__(self) -> str:
        """Return names, the change of each seed in points, and the verdict."""
        each = [
            f"{100 * d:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})".replace("-", "−")
            for d, (low, high) in zip(self.differences, self.intervals, strict=True)
        ]
        return f"{self.name_a} against {self.name_b}: accuracy {', '.join(each)} points; {self.verdict}"


def accuracy_change(
    y: Any, labels_a: Sequence[Any], labels_b: Sequence[Any], names: tuple[str, str], margin: float = 0.0
) -> AccuracyChange:
    """Compare two recipes by the labels their networks gave to the same rows.

    Parameters
    ----------
    y
        True labels.
    labels_a, labels_b
        Predicted labels, one array for each seed; those of one position are compared.
    names
        What to call the recipes.
    margin
        See `seed_verdict`.

    Raises
    ------
    ValueError
        If there are fewer than two seeds, their numbers differ, or labels do not fit to `y`.
    """
    if len(labels_a) != len(labels_b) or len(labels_a) < 2:
        raise ValueError(f"{len(labels_a)} and {len(labels_b)} seeds; train each recipe with the same two or more")
    found = [mcnemar(y, a, b) for a, b in zip(labels_a, labels_b, strict=True)]
    intervals = tuple(difference_interval(each.only_a, each.only_b, each.rows) for each in found)
    return AccuracyChange(*names, tuple(each.difference for each in found), intervals, margin)


VERDICTS = ("keep", "reject", "undecided")


@dataclass(frozen=True)
class Entry:
    """One entry of a journal.

    Attributes
    ----------
    name, against : str
        What was tried, and the baseline at that time.
    hypothesis, change : str
        What was expected, and what was changed.
    measurements : tuple of str
        What was measured, as sentences.
    verdict : str
        One of ``"keep"``, ``"reject"`` and ``"undecided"``.
    """

    name: str
    against: str
    hypothesis: str
    change: str
    measurements: tuple[str, ...]
    verdict: str


@dataclass
class Journal:
    """Optimisation one change at a time, against a kept baseline; see `Journal.record`.

    Parameters
    ----------
    baseline
        Name of the model to begin with; later of the one kept last.
    settings
        What describes it, such as ``{"hidden": "512-256", "precision": "FP32"}``.
    entries
        What was recorded.
    """

    baseline: str
    settings: dict[str, Any]
    entries: list[Entry] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the entries as lines."""
        lines = []
        for number, entry in enumerate(self.entries, start=1):
            lines.append(f"{number}. {entry.name} ({entry.change}), against {entry.against}: {entry.verdict.upper()}")
            lines += [f"   expected: {entry.hypothesis}", *(f"   measured: {text}" for text in entry.measurements)]
        return "\n".join([*lines, f"kept: {self.baseline}"])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the entries as an accessible table and as text."""
        columns = ("tried", "against", "change", "expected", "measured", "verdict")
        head = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in columns)
        rows = ""
        for e in self.entries:
            cells = [e.name, e.against, e.change, e.hypothesis, "\n".join(e.measurements), e.verdict]
            texts = [html.escape(cell).replace("\n", "<br>") for cell in cells]
            rows += "<tr>" + "".join(f'<td style="text-align:left">{text}</td>' for text in texts) + "</tr>"
        table = f"<table><caption>kept: {html.escape(self.baseline)}</caption><tr>{head}</tr>{rows}</table>"
        return {"text/plain": str(self), "text/html": table}

    def record(
        self,
        name: str,
        hypothesis: str,
        settings: Mapping[str, Any],
        measurements: Sequence[Comparison | AccuracyChange],
        verdict: str,
    ) -> Entry:
        """Add an entry; one that is kept becomes the baseline.

        Parameters
        ----------
        name
            Of what was tried.
        hypothesis
            What was expected, and why.
        settings
            All of its settings; exactly one differs from those of the baseline.
        measurements
            Of `name` against the kept baseline, in this order: see `compare` and `accuracy_change`.
        verdict
            ``"keep"``, ``"reject"`` or ``"undecided"``.

        Raises
        ------
        ValueError
            If there is no hypothesis, not one change, a measurement of something else, a verdict without a decided
            measurement, an unknown verdict, or a name twice. Nothing is recorded then.
        """
        if not hypothesis.strip():
            raise ValueError(f"{name}: write down first what you expect, and why")
        if verdict not in VERDICTS:
            raise ValueError(f"verdict is {verdict!r}; it must be one of {', '.join(VERDICTS)}")
        if name == self.baseline or name in [entry.name for entry in self.entries]:
            raise ValueError(f"{name!r} is in the journal already; give the new attempt a name of its own")
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


def decided(measurement: Comparison | AccuracyChange) -> bool:
    """Return whether a measurement has a verdict of its own: significant or equivalent, and no estimate."""
    return getattr(measurement, "measured", True) and not measurement.verdict.startswith("undecided")


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what differs between two settings.

    Parameters
    ----------
    before, after
        Values by name; a name may be missing in one of them.

    Returns
    -------
    list of str
        Such as ``"precision: FP32 → INT8"``, sorted by name, with ``none`` for what is missing.
    """
    names = sorted(before.keys() | after.keys())
    pairs = {name: (before.get(name, "none"), after.get(name, "none")) for name in names}
    return [f"{name}: {old} → {new}" for name, (old, new) in pairs.items() if old != new]
