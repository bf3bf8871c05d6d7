"""Hidden checks for module 17. Entries are bytes, judged by the leaderboard's own entry check and referee.

The judging process never runs a student's file: the entry check parses it, and the referee runs it in a sandbox. Speed
is the CPU time of the thread relative to the baseline. The limit leaves a margin of several times.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from autograder.checks.check_helpers import *
from autograder.leaderboard import digits
from autograder.leaderboard.entry import validate
from autograder.leaderboard.referee import referee
from autograder.leaderboard.referee.forked import run_forked
from autograder.leaderboard.settings import Effort, load
from autograder.sandbox.bubblewrap import SandboxUnavailable, available
from tinybench.course.case_study_data import Split, distorted

SIZE, TIME, LOSS = 0.25, 0.5, 0.05  # the notebook's limits for an entry, relative to the baseline
TRAINING, FRESH = 400, 1080
UNITS = (256, 128)  # of a baseline
FEW_UNITS = (64, 32)  # of a network whose file is judged, but neither its size nor its speed
UNSEEN = np.arange(digits.TRAINING_ORIGINALS, 1797)  # originals that no network learns from
NETWORKS = 4  # each worker trains each of them once, on digits that reveal nothing about the fresh ones


def _fitted(model: Any, images: np.ndarray, labels: np.ndarray) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with warnings.catch_warnings(), threadpool_limits(1):  # more threads would compete for cores
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(images, labels)


@cache
def _network(units: tuple[int, ...], seed: int) -> tuple[Any, bytes, Split]:
    """Return a fitted model, its ONNX file as bytes, and the digits on which it was trained."""
    from sklearn.neural_network import MLPClassifier

    learnt = distorted(np.arange(digits.TRAINING_ORIGINALS), TRAINING, seed)
    model = _fitted(MLPClassifier(units, batch_size=50, max_iter=8, random_state=seed), *learnt)
    del model._optimizer, model._best_coefs  # several times as large as the network, and not needed
    return model, digits.to_onnx_bytes(model), learnt


@lru_cache(maxsize=1)  # a submission may be run again
def _fresh(seed: int) -> Split:
    """Return distorted digits that no network was trained on, half as long to send as others.

    Rounding changes them by less than a hundredth of their noise.
    """
    images, labels = distorted(UNSEEN, FRESH, seed)
    return images.astype(np.float16), labels


@lru_cache(maxsize=100)
def _agreement(data: bytes, network: int, what: str) -> float:
    """Return the share of fresh digits that a file reads as one of the small networks does.

    The referee reads them in its sandbox. A worker asks it once about equal files, because most right solutions return
    the same file for the same network.
    """
    rows = distorted(UNSEEN, FRESH, network)[0]
    with _usable(what):
        answers = _referee(b"").answers(data, rows)[0]
    return float(np.mean(answers == _network(FEW_UNITS, network)[0].predict(rows)))


def _referee(baseline: bytes) -> referee.Referee:
    try:
        available()
        run = run_forked
    except SandboxUnavailable:  # the student's cells ran unconfined, too
        run = referee.unconfined
    rules = load()
    rows = dataclasses.replace(rules.task, public_rows=10)  # unused by these checks
    olympics = dataclasses.replace(rules, task=rows, referee=Effort(processes=1, rounds=5))
    return referee.Referee(olympics, baseline, None, run)


def _facts(data: Any, what: str) -> validate.Facts:
    """Return the facts that the entry check finds in a file. If it refuses the file, raise CheckFailed."""
    expect(isinstance(data, bytes), f"{what} should return bytes, not {type(data).__name__}")
    try:
        return validate.check(data)
    except validate.EntryRefused as refused:
        raise CheckFailed(f"{what}: the entry check refuses the file: {refused}") from None


@contextmanager
def _usable(what: str) -> Iterator[None]:
    """Turn a refusal by the referee into CheckFailed."""
    try:
        yield
    except validate.EntryRefused as refused:
        raise CheckFailed(f"{what}: the referee cannot use the file: {refused}") from None


def _straight(rng: np.random.Generator, columns: int = 784, classes: Iterable[int] = range(10)) -> Any:
    """Return a logistic regression with random coefficients, as if fitted to digits of these classes."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.classes_, model.n_features_in_ = np.array([*classes]), columns
    model.coef_ = rng.normal(size=(len(model.classes_), columns)).astype(np.float32)
    model.intercept_, model.n_iter_ = np.zeros(len(model.classes_), np.float32), np.array([1])
    return model


def entries_have_the_signature(student: Any) -> None:
    """Check that the file from `as_entry` passes the entry check and predicts the same digits as the model.

    Models that do not fit the task must be refused.
    """
    rng = draw()
    network = int(rng.integers(NETWORKS))
    data = student.as_entry(_network(FEW_UNITS, network)[0])
    _facts(data, "as_entry")
    agree = _agreement(data, network, "as_entry")
    expect(agree > 0.99, f"as_entry: only {agree:.1%} of the answers are those of the model")
    few = int(rng.integers(200, 700))
    others: list[tuple[str, Any, str | None]] = [  # last: words of the refusal, None if accepted
        ("a logistic regression", _straight(rng), None),
        (f"a model for {few} pixels", _straight(rng, few), str(few)),
        ("a model that knows the digits 1 to 10", _straight(rng, classes=range(1, 11)), ""),
        ("a model that knows the digits 0 to 8 only", _straight(rng, classes=range(9)), ""),
    ]
    for what, other, mention in [others[i] for i in rng.permutation(len(others))]:
        if mention is None:
            _facts(student.as_entry(other), f"as_entry of {what}")
        else:
            refuses(student.as_entry, other, mentions=mention, what=f"as_entry of {what}")


def _chance(correct: int, total: int, bar: float, rows: int) -> float:
    """Return the chance of passing, as a sum of terms of the beta-binomial distribution."""
    from scipy.special import betaln, gammaln

    a, b = correct + 0.5, total - correct + 0.5
    passing = np.array([k for k in range(rows + 1) if k + 1e-9 >= bar * rows])
    ways = gammaln(rows + 1) - gammaln(passing + 1) - gammaln(rows - passing + 1)
    return float(np.exp(ways + betaln(passing + a, rows - passing + b) - betaln(a, b)).sum())


def chances_are_predictive(student: Any) -> None:
    """Check that `chance_of_passing` agrees with the beta-binomial distribution, added term by term.

    Some accuracy bars fall exactly on a whole number of digits. Impossible counts must be refused.
    """
    rng = draw()
    cases = [(3990, 4320, 0.92, 4320), (55, 60, 0.9, 50), (0, 20, 0.1, 30), (20, 20, 0.95, 40), (7, 10, 0.55, 100)]
    for _ in range(6):
        total, rows = int(rng.integers(20, 900)), int(rng.integers(20, 900))
        cases.append((int(rng.integers(int(0.8 * total), total)), total, float(rng.uniform(0.75, 0.95)), rows))
    cause = "P(K ≥ k) is sf(k − 1); k is the smallest count with k / m ≥ bar; a = c + ½, b = n − c + ½"
    for correct, total, bar, rows in cases:
        chance = partial(student.chance_of_passing, bar=bar, private_total=rows)
        agrees(chance, _chance(correct, total, bar, rows), [(correct, total)], cause, rel=1e-6, abs=1e-9)
    defaults = _chance(3990, 4320, 0.92, 4320)
    agrees(student.chance_of_passing, defaults, [(3990, 4320)], "with its defaults", rel=1e-6)
    refuses(student.chance_of_passing, (-1, 10), (11, 10))


def answer_chance(student: Any) -> None:
    """Check that the answers are the chance of an entry at the bar, and of at least one of eight such entries."""
    once = _chance(3975, 4320, 0.92, 4320)
    same(student.chance_at_the_bar(), once, "(a)", "chance_of_passing(3975, 4320)", rel=0.02)
    eight = 1 - (1 - once) ** 8
    same(student.chance_of_one_in_eight(), eight, "(b)", "one minus the chance that all eight fail", rel=2e-3)


def _best(candidates: list[dict[str, Any]], least: float) -> str:
    """Return the name of the candidate that should be entered, by comparing all candidates."""
    likely = [each for each in candidates if not each["chance"] < least]
    best = leader = sorted(likely, key=lambda each: float(each["latency"]))[0]
    for each in likely:
        safer = (each["chance"], best["latency"]) > (best["chance"], each["latency"])
        if safer and each["lower"] <= leader["upper"]:
            best = each
    return str(best["name"])


def _field(candidates: Iterable[tuple[str, float, float, float]]) -> list[dict[str, Any]]:
    """Return candidates from tuples of name, latency, half-width of the latency's interval, and chance of passing."""
    return [
        {"name": name, "latency": latency, "lower": latency - half, "upper": latency + half, "chance": chance}
        for name, latency, half, chance in candidates
    ]


def the_safest_of_the_fastest(student: Any) -> None:
    """Check that `choose` follows each rule on its own, and all rules together on random candidates."""
    rng = draw()
    fields = [
        ("exactly the least chance is enough", 0.95, _field([("A", 0.3, 0.01, 0.95), ("B", 0.2, 0.01, 0.9499)])),
        ("intervals that do not touch", 0.95, _field([("A", 0.3, 0.01, 0.96), ("B", 0.2, 0.01, 0.97)])),
        ("equal chances: the faster one", 0.95, _field([("A", 0.21, 0.02, 0.97), ("B", 0.2, 0.001, 0.97)])),
        ("C overlaps B, but not the fastest", 0.95,
         _field([("A", 0.2, 0.02, 0.96), ("B", 0.23, 0.02, 0.97), ("C", 0.26, 0.02, 0.99)])),
        ("the interval of one that may not enter shares nothing", 0.95,
         _field([("A", 0.1, 0.2, 0.1), ("B", 0.2, 0.01, 0.96), ("C", 0.25, 0.01, 0.99)])),
    ]  # fmt: skip
    for _ in range(40):
        drawn = rng.uniform((0.1, 0.001, 0.8), (0.4, 0.05, 1), (int(rng.integers(2, 8)), 3)).tolist()
        field = _field((f"N{i}", *numbers) for i, numbers in enumerate(drawn))
        least = float(rng.uniform(0.7, max(each["chance"] for each in field)))
        fields.append(("the safest of those that share the place of the fastest likely one", least, field))
    for why, least, field in fields:
        before = [dict(each) for each in field]
        lines = "; ".join("{name} {lower:.3f} to {upper:.3f}, chance {chance:.3f}".format(**each) for each in field)
        got = student.choose(field, least_chance=least)
        same(got, _best(field, least), f"choose of {lines} (least chance {least:.3f})", why)
        expect(field == before, "choose has changed the candidates")
    field = _field([("A", 0.3, 0.01, 0.95), ("B", 0.2, 0.01, 0.9)])
    same(student.choose(field), "A", "choose without a least chance", "it is 0.95 where none is named")
    slow, middle, fast = words(rng, 3)
    unlikely = _field([(slow, 0.9, 0.1, 0.2), (middle, 0.5, 0.1, 0.6), (fast, 0.1, 0.1, 0.4)])
    refuses(student.choose, unlikely, mentions=middle, what=f"choose of three, of which {middle} is likeliest")


def the_entry_is_better(student: Any) -> None:
    """Check that the file from `build_entry` is accepted and keeps the notebook's limits.

    The limits concern the file's size, its accuracy on fresh digits, and its time.
    """
    rng = draw()
    model, content, learnt = _network(UNITS, int(rng.integers(NETWORKS)))
    images, labels = _fresh(int(rng.integers(2**31)))
    data = student.build_entry(model, *learnt)
    facts = _facts(data, "build_entry")
    size = facts.size / len(content)
    expect(size <= SIZE, f"build_entry: the entry has {size:.0%} of the baseline's size; at most {SIZE:.0%} may be")
    with _usable("build_entry"):
        answers, seconds = _referee(content).briefly(data, images, max_seconds=0.15)
    known = model.predict(images.astype(np.float32))
    read, reference = float(np.mean(answers == labels)), float(np.mean(known == labels))
    told = f"your entry reads {read:.1%} of {len(labels)} fresh digits, the baseline {reference:.1%}; at most"
    better = f"{told} {100 * LOSS:.0f} points may be lost: more epochs, a teacher, or a few more units"
    expect(read >= reference - LOSS, f"build_entry: {better}")
    ratio = referee.median_ratio(seconds)
    expect(ratio <= TIME, f"build_entry: it takes {ratio:.2f} of the baseline's time; at most {TIME} are allowed")


def answer_understanding(student: Any) -> None:
    """Check that the answers on shared places and on the all-around score are right."""
    cause = "Q overlaps P, the leader of the first place; R does not, and two stand above it"
    same(student.places(), [1, 1, 3], "question 1", cause)
    area = math.fsum((1 - cost) * (0.97 - 0.85) for cost in (0.2, 0.5, 0.1)) / 3 / 0.15
    cause = "(1 − cost) · (accuracy − 0.85), their mean over 0.15"
    same(student.all_around(), area, "question 2", cause, rel=5e-3)
