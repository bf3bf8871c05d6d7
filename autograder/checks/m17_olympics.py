"""Hidden checks of module 17: entries are bytes, judged by the leaderboard's own entry check and referee.

A student's file is never loaded in the process that judges: the entry check reads it, and the referee runs it in its
sandbox. Speed is a ratio to the baseline by the clock of the thread's own work, with a margin of several times.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from functools import cache
from typing import Any

import numpy as np

from autograder.checks import CheckFailed, all_close, close, draw, expect, number, raises
from autograder.leaderboard import digits
from autograder.leaderboard.entry import validate
from autograder.leaderboard.referee import referee
from autograder.leaderboard.settings import Effort, load
from autograder.sandbox.bubblewrap import SandboxUnavailable, available

SIZE, TIME, LOSS = 0.25, 0.5, 0.05  # what the notebook demands of an entry, against the baseline
TRAINING, FRESH = 2500, 2048


def _fitted(model: Any, images: np.ndarray, labels: np.ndarray) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with warnings.catch_warnings(), threadpool_limits(1):  # more threads would fight with the other workers' for cores
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(images, labels)


@cache
def _baseline(seed: int) -> tuple[Any, bytes, digits.Split, digits.Split]:
    """Return a baseline, its file, the digits it learnt, and fresh ones of other originals."""
    from sklearn.neural_network import MLPClassifier

    learnt = digits.distorted(np.arange(digits.TRAINING_ORIGINALS), TRAINING, seed)
    fresh = digits.distorted(np.arange(digits.TRAINING_ORIGINALS, 1797), FRESH, seed + 1)
    model = _fitted(MLPClassifier((256, 128), batch_size=100, max_iter=12, random_state=seed), *learnt)
    del model._optimizer  # as large as the network three times over, and of no use to anybody
    return model, digits.to_onnx_bytes(model), learnt, fresh


def _given() -> tuple[Any, bytes, digits.Split, digits.Split]:
    return _baseline(int(draw().integers(2**31)))


def _referee(baseline: bytes) -> referee.Referee:
    try:
        available()
        run = referee.confined
    except SandboxUnavailable:  # then the student's cells have run on this machine unconfined as well
        run = referee.unconfined
    rules = load()
    olympics = dataclasses.replace(
        rules, task=dataclasses.replace(rules.task, public_rows=FRESH), referee=Effort(processes=1, rounds=12)
    )
    return referee.Referee(olympics, baseline, None, run)


def _facts(data: Any, what: str) -> validate.Facts:
    """Return what the entry check says of a file."""
    expect(isinstance(data, bytes), f"{what} should return bytes, not {type(data).__name__}")
    try:
        return validate.check(data)
    except validate.EntryRefused as refused:
        raise CheckFailed(f"{what}: the entry check refuses the file: {refused}") from None


def _read(data: bytes, rows: np.ndarray, what: str) -> np.ndarray:
    """Return an entry's answers to digits."""
    try:
        return _referee(b"").answers(data, rows)[0]
    except validate.EntryRefused as refused:
        raise CheckFailed(f"{what}: the referee cannot use the file: {refused}") from None


def entries_have_the_signature(student: Any) -> None:
    """The entry check takes the file, which answers as the model does; other models are refused."""
    from sklearn.linear_model import LogisticRegression

    model, _, learnt, fresh = _given()
    data = student.as_entry(model)
    _facts(data, "as_entry")
    rows = fresh[0][:512]
    agree = float(np.mean(_read(data, rows, "as_entry") == model.predict(rows)))
    expect(agree > 0.99, f"as_entry: only {agree:.1%} of the answers are those of the model")
    images, labels = learnt[0][:300], learnt[1][:300]
    straight = _fitted(LogisticRegression(max_iter=3), images, labels)
    _facts(student.as_entry(straight), "as_entry of a logistic regression")
    narrow = _fitted(LogisticRegression(max_iter=3), images[:, :64], labels)
    raises(ValueError, lambda: student.as_entry(narrow), "as_entry of a model for 64 pixels", mentions=["64"])
    wrong = {"the digits 1 to 10": labels + 1, "the digits 0 to 8 only": np.minimum(labels, 8)}
    for what, others in wrong.items():
        other = _fitted(LogisticRegression(max_iter=3), images, others)
        raises(ValueError, lambda m=other: student.as_entry(m), f"as_entry of a model that knows {what}")


def eight_bits_are_real(student: Any) -> None:
    """Integer products, a quarter of the size, nearly the same answers; what cannot gain comes back as it was."""
    from sklearn.linear_model import LogisticRegression

    model, content, learnt, fresh = _given()
    data = student.in_eight_bits(content)
    facts = _facts(data, "in_eight_bits")
    integer = sum(facts.operators.get(name, 0) for name in ("MatMulInteger", "DynamicQuantizeMatMul", "QGemm"))
    expect(integer == 3, f"in_eight_bits: the network has 3 products, {integer} of them are integer in your file")
    expect(
        facts.size <= 0.35 * len(content),
        f"in_eight_bits: the file has {facts.size / len(content):.0%} of its size; weights of 8 bits take about 26 %",
    )
    rows = fresh[0][:1024]
    agree = float(np.mean(_read(data, rows, "in_eight_bits") == model.predict(rows)))
    expect(agree >= 0.95, f"in_eight_bits: only {agree:.1%} of the answers are as before; a sound file keeps 98 %")
    straight = digits.to_onnx_bytes(_fitted(LogisticRegression(max_iter=3), learnt[0][:300], learnt[1][:300]))
    same = student.in_eight_bits(straight)
    expect(same == straight, "in_eight_bits: a model without matrix products should come back byte for byte")


def _chance(correct: int, total: int, bar: float, rows: int) -> float:
    """Return the chance by the sum of the beta-binomial's terms."""
    from scipy.special import betaln, gammaln

    a, b = correct + 0.5, total - correct + 0.5
    passing = np.array([k for k in range(rows + 1) if k + 1e-9 >= bar * rows])
    ways = gammaln(rows + 1) - gammaln(passing + 1) - gammaln(rows - passing + 1)
    return float(np.exp(ways + betaln(passing + a, rows - passing + b) - betaln(a, b)).sum())


def chances_are_predictive(student: Any) -> None:
    """The beta-binomial, summed term by term; bars that are whole numbers of digits; counts that cannot be."""
    rng = draw()
    cases = [(3990, 4320, 0.92, 4320), (55, 60, 0.9, 50), (0, 20, 0.1, 30), (20, 20, 0.95, 40), (7, 10, 0.55, 100)]
    for _ in range(6):
        total, rows = int(rng.integers(20, 900)), int(rng.integers(20, 900))
        cases.append((int(rng.integers(int(0.8 * total), total)), total, float(rng.uniform(0.75, 0.95)), rows))
    for correct, total, bar, rows in cases:
        what = f"chance_of_passing({correct}, {total}, bar={bar:.3g}, private_total={rows})"
        cause = "P(K ≥ k) is sf(k − 1); k is the smallest count with k / m ≥ bar; a = c + ½, b = n − c + ½"
        got = number(student.chance_of_passing(correct, total, bar=bar, private_total=rows), what)
        close(got, _chance(correct, total, bar, rows), what, cause=cause, rel=1e-6, abs=1e-9)
    got = number(student.chance_of_passing(3990, 4320), "chance_of_passing(3990, 4320)")
    close(got, _chance(3990, 4320, 0.92, 4320), "chance_of_passing with its defaults", rel=1e-6)
    for correct, total in ((-1, 10), (11, 10)):
        raises(ValueError, lambda c=correct, n=total: student.chance_of_passing(c, n), f"{correct} of {total} digits")


def answer_chance(student: Any) -> None:
    """A coin toss, and eight of them."""
    once = _chance(3975, 4320, 0.92, 4320)
    close(student.chance_at_the_bar(), once, "(a)", cause="chance_of_passing(3975, 4320)", rel=0.02)
    cause = "one minus the chance that all eight fail"
    close(student.chance_of_one_in_eight(), 1 - (1 - once) ** 8, "(b)", cause=cause, rel=2e-3)


def _best(candidates: list[dict[str, Any]], least: float) -> str:
    """Return the candidate to enter, by going through all of them."""
    likely = [each for each in candidates if not each["chance"] < least]
    leader = sorted(likely, key=lambda each: float(each["latency"]))[0]
    best = leader
    for each in likely:
        if each["lower"] > leader["upper"]:
            continue
        if (each["chance"], best["latency"]) > (best["chance"], each["latency"]):
            best = each
    return str(best["name"])


def the_safest_of_the_fastest(student: Any) -> None:
    """Every rule alone, then fields drawn at random."""
    rng = draw()

    def candidate(name: str, latency: float, half: float, chance: float) -> dict[str, Any]:
        return {"name": name, "latency": latency, "lower": latency - half, "upper": latency + half, "chance": chance}

    fields: list[tuple[list[dict[str, Any]], float, str]] = [
        (
            [candidate("A", 0.3, 0.01, 0.95), candidate("B", 0.2, 0.01, 0.9499)],
            0.95,
            "exactly the least chance is enough",
        ),
        ([candidate("A", 0.3, 0.01, 0.96), candidate("B", 0.2, 0.01, 0.97)], 0.95, "intervals that do not touch"),
        ([candidate("A", 0.21, 0.02, 0.97), candidate("B", 0.2, 0.001, 0.97)], 0.95, "equal chances: the faster one"),
        (
            [candidate("A", 0.2, 0.02, 0.96), candidate("B", 0.23, 0.02, 0.97), candidate("C", 0.26, 0.02, 0.99)],
            0.95,
            "C overlaps B, but not the fastest",
        ),
        (
            [candidate("A", 0.1, 0.2, 0.1), candidate("B", 0.2, 0.01, 0.96), candidate("C", 0.25, 0.01, 0.99)],
            0.95,
            "the interval of one that may not enter shares nothing",
        ),
    ]
    for _ in range(40):
        field = [
            candidate(
                f"N{i}", float(rng.uniform(0.1, 0.4)), float(rng.uniform(0.001, 0.05)), float(rng.uniform(0.8, 1))
            )
            for i in range(int(rng.integers(2, 8)))
        ]
        least = float(rng.uniform(0.7, max(each["chance"] for each in field)))
        fields.append((field, least, "the safest of those that share the place of the fastest likely one"))
    for field, least, why in fields:
        truth, before = _best(field, least), [dict(each) for each in field]
        got = str(student.choose(field, least_chance=least))
        lines = "; ".join("{name} {lower:.3f} to {upper:.3f}, chance {chance:.3f}".format(**each) for each in field)
        expect(got == truth, f"choose of {lines} (least chance {least:.3f}): {truth} expected, got {got}: {why}")
        expect(field == before, "choose has changed the candidates")
    field = [candidate("A", 0.3, 0.01, 0.95), candidate("B", 0.2, 0.01, 0.9)]
    expect(str(student.choose(field)) == "A", "the least chance is 0.95 where none is named")
    unlikely = [candidate("slow", 0.9, 0.1, 0.2), candidate("middle", 0.5, 0.1, 0.6), candidate("fast", 0.1, 0.1, 0.4)]
    raises(ValueError, lambda: student.choose(unlikely), "choose of three unlikely ones", mentions=["middle"])


def verdicts_follow_the_rule(student: Any) -> None:
    """Every combination of latency and chances on either side of the limits."""
    latencies = ("faster", "slower", "equivalent", "undecided: needs about 40 more rounds", "undecided")
    for latency in latencies:
        for least in (0.95, 0.8):
            for chance in (least - 0.2, least, least + 0.04):
                for kept in (least - 0.1, least, least + 0.02, least + 0.05):
                    better = latency == "faster" or (latency == "equivalent" and chance > kept)
                    truth = "keep" if chance >= least and better else "reject"
                    truth = "undecided" if latency.startswith("undecided") else truth
                    got = str(student.verdict_of(latency, chance, kept, least))
                    what = f"verdict_of({latency!r}, {chance:.2f}, {kept:.2f}, {least})"
                    expect(got == truth, f"{what}: {truth!r} expected, got {got!r}")
    expect(str(student.verdict_of("faster", 0.94, 1.0)) == "reject", "the least chance is 0.95 where none is named")


def the_entry_is_better(student: Any) -> None:
    """The door, the size, fresh digits, and the clock, as the notebook says."""
    model, content, learnt, (images, labels) = _given()
    data = student.build_entry(model, *learnt)
    facts = _facts(data, "build_entry")
    size = facts.size / len(content)
    expect(
        size <= SIZE, f"build_entry: the entry has {size:.0%} of the baseline's size; at most {SIZE:.0%} are allowed"
    )
    answers = _read(data, images, "build_entry")
    read, reference = float(np.mean(answers == labels)), float(np.mean(model.predict(images) == labels))
    expect(
        read >= reference - LOSS,
        f"build_entry: your entry reads {read:.1%} of {len(labels)} fresh digits, the baseline {reference:.1%}; at "
        f"most {100 * LOSS:.0f} points may be lost: more epochs, a teacher, or a few more units",
    )
    ratio = referee.median_ratio(_referee(content).measure_latency(data))
    expect(ratio <= TIME, f"build_entry: it takes {ratio:.2f} of the baseline's time; at most {TIME} are allowed")


def answer_understanding(student: Any) -> None:
    """Shared places, multiplications counted, areas summed."""
    cause = "Q overlaps P, the leader of the first place; R does not, and two stand above it"
    all_close(student.places(), [1, 1, 3], "question 1", cause=cause)
    wide, narrow = 784 * 512 + 512 * 256 + 256 * 10, 784 * 32 + 32 * 10
    close(student.times_fewer(), wide / narrow, "question 2", cause="inputs × units, layer by layer", rel=5e-3)
    area = math.fsum((1 - cost) * (0.97 - 0.85) for cost in (0.2, 0.5, 0.1)) / 3 / 0.15
    close(
        student.all_around(), area, "question 3", cause="(1 − cost) · (accuracy − 0.85), their mean over 0.15", rel=5e-3
    )
