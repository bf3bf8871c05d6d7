# Written by "autograder export" from modules/13_compress/13_compress.ipynb: edit the notebook, not this file.

"""Smaller networks by pruning, low rank and distillation, and a journal that records one change at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinybench.support.basics.layer_networks import Layer, check_layers
from tinybench.support.basics.short_reprs import short_repr
from tinybench.support.comparisons.verdict import Comparison
from tinybench.support.compression.journal_pages import Entry, JournalPages, changes, decided
from tinybench.support.compression.seeds import AccuracyChange
from tinybench.support.compression.training import train_network
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


def log_softmax(scores: Any, temperature: float = 1.0) -> np.ndarray:
    """Return the logarithms of the softmax probabilities, of the same shape as the scores, (n, classes).

    Raise ValueError if the temperature is not above 0, or if a score is not finite.
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0")
    if not np.isfinite(scores).all():
        raise ValueError("a score is NaN or infinite: training went wrong; use a lower learning rate")
    z = np.asarray(scores) / temperature
    z = z - z.max(axis=1, keepdims=True)
    logs: np.ndarray = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return logs


def softmax(scores: Any, temperature: float = 1.0) -> np.ndarray:
    """Return probabilities of the same shape as the scores, (n, classes); each row sums to 1.

    The higher the temperature, the closer the probabilities are to each other. Raise ValueError if the temperature is
    not above 0, or if a score is not finite.
    """
    probabilities: np.ndarray = np.exp(log_softmax(scores, temperature))
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
    hard = -log_softmax(scores)[rows, labels].mean()
    if teacher is None:
        return float(hard)
    soft = -(softmax(teacher, temperature) * log_softmax(scores, temperature)).sum(axis=1).mean()
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


def train(layers: Sequence[Layer], X: Any, y: Any, epochs: int, **options: Any) -> list[Layer]:
    """Train a network further by `distillation_gradient`. Return the result. See `train_network` for the options."""
    return train_network(distillation_gradient, layers, X, y, epochs, **options)


Measured = Comparison | AccuracyChange


@dataclass
class Journal(JournalPages):
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
            Comparisons of `name` with the baseline, in this order; each has `name_a` and `name_b`.

        Raises
        ------
        ValueError
            If a rule of the journal is broken. In this case, nothing is recorded.
        """
        self.check_words(name, hypothesis, verdict)
        changed = changes(self.settings, settings)  # such as ["units: 512 → 256"]
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
        entry = Entry(name, self.baseline, hypothesis, changed[0], tuple(map(str, measurements)), verdict)
        return self.add(entry, settings)
