"""The networks of module 13's recipes, which are trained once and then read from a cache.

A recipe states the hidden layers of a network, a change such as pruning, and whether a teacher's scores are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tinybench.course.cache import cached
from tinybench.support.basics.numbers import number_of

BATCH = 200  # half as many steps as with batches of 100; the steps take most of the time
Network = Callable[[str, int], Any]  # a function of a recipe's name and a seed


def recipe_networks(
    recipes: Mapping[str, tuple[tuple[int, ...], Callable[[Any], Any], bool]],
    X: Any,
    y: Any,
    train: Callable[..., Any],
    initial_layers: Callable[..., Any],
    activations: Callable[..., Any],
) -> tuple[Network, Network]:
    """Return two functions, each of which takes a recipe's name and a seed and returns the recipe's trained network.

    The first function returns the network after 12 epochs of training. The second returns the network after the
    recipe's change and 6 more epochs. `train`, `initial_layers` and `activations` are functions that the student
    writes. They are passed as arguments because the student's package may not contain them yet.
    """

    def train_phase(label: str, network: Any, epochs: int, seed: int, scores: Any) -> Any:
        print(
            f"training {label}, seed {seed}, {number_of(epochs, 'epoch')}: once, then it is read from the cache",
            flush=True,
        )
        return train(network, X, y, epochs, seed=seed, teacher=scores, batch=BATCH)

    def teacher_scores(seed: int) -> Any:
        return activations(after_change("base", seed), X)[-1]

    @cache
    def of_shape(hidden: tuple[int, ...], taught: bool, seed: int) -> Any:
        label, start = "-".join(map(str, hidden)) + " taught" * taught, initial_layers((X.shape[1], *hidden, 10), seed)
        return cached(train_phase, label, start, 12, seed, teacher_scores(seed) if taught else None)

    def early(name: str, seed: int) -> Any:
        hidden, _, taught = recipes[name]
        return of_shape(hidden, taught, seed)

    @cache
    def after_change(name: str, seed: int) -> Any:
        _, change, taught = recipes[name]
        network = change(early(name, seed))
        return cached(train_phase, name, network, 6, seed, teacher_scores(seed) if taught else None)

    return early, after_change
