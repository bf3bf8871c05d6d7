"""Hidden checks for the optional part of module 15, with drawn times, laws of known parameters and made-up traces."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from autograder.checks import judges
from autograder.checks.check_helpers import *
from tinybench.support.profiling.matrix_operators import PRODUCTS


@judges("speedup")
def speedups_of_drawn_times(student: Any) -> None:
    """Check that `speedup` is right for random times.

    If the time of one worker is missing, `speedup` must raise an error.
    """
    rng = draw()
    for _ in range(10):
        counts = [1, *(2 + rng.choice(60, 4, False)).tolist()]
        times = {n: float(rng.uniform(0.1, 9)) for n in rng.permutation(counts).tolist()}
        gains = {n: times[1] / took for n, took in times.items()}
        agrees(student.speedup, gains, [(times,)], "the time of one over the time of n")
        del times[1]
        refuses(student.speedup, (times,), cause="the time of one worker is missing")


def answer_serial(student: Any) -> None:
    """Check that the speed-up limit is 1/s, and that the efficiency is 50 % at the n for which 1 + s (n − 1) is 2.

    s is the serial fraction, 5 %.
    """
    same(student.most_speedup(), 20, "the speed-up that is never exceeded", "the 5 % alone remain")
    same(student.workers_at_half(), 21, "the workers at half the efficiency", "1 + s (n − 1) = 2")


def least_squares(counts: np.ndarray, lost: np.ndarray) -> list[float]:
    """Return the least-squares fit of contention and crosstalk, both at least 0.

    Four fits are tried: both parameters free, either one fixed at 0, or both fixed at 0. The normal equations give the
    free parameters. The best fit without a negative parameter is returned.
    """
    columns = np.stack([counts - 1, counts * (counts - 1)], axis=1)
    tried = []
    for free in ([0, 1], [0], [1], []):
        found = np.zeros(2)
        if free:
            part = columns[:, free]
            found[free] = np.linalg.solve(part.T @ part, part.T @ lost)
        if (found >= 0).all():
            tried.append((float(np.sum((columns @ found - lost) ** 2)), found.tolist()))
    return list(min(tried)[1])


@judges("fit_usl", "best_workers")
def usl_is_found_again(student: Any) -> None:
    """Check that `fit_usl` recovers random parameters from speed-ups, with and without noise.

    With noise, `least_squares` supplies the expected parameters. `best_workers` must agree with the largest value found
    by a search on the law's curve.
    """
    rng = draw()
    for trial in range(24):
        counts = np.array([1.0, *np.sort(2 + rng.choice(40, 5, False))])
        contention, crosstalk = float(rng.uniform(0.01, 0.5)), float(rng.uniform(0.0005, 0.02))
        contention, crosstalk = ((contention, crosstalk), (contention, 0.0), (0.0, crosstalk), (-0.01, 0.0))[trial % 4]
        gains = counts / (1 + contention * (counts - 1) + crosstalk * counts * (counts - 1))
        if noisy := trial >= 8:
            gains[1:] *= rng.normal(1, 0.05, 5)
        told = {int(n): float(gain) for n, gain in zip(counts, gains, strict=True)}
        truth = least_squares(counts, counts / gains - 1) if noisy else [max(0.0, contention), crosstalk]
        what = f"fit_usl of speed-ups {'with noise' if noisy else 'by the law'}"
        cause = "the least squares of n / speed-up − 1, neither below 0"
        same(student.fit_usl(told), truth, what, cause, rel=1e-5, abs=1e-7)
    for _ in range(12):
        contention, crosstalk = float(rng.uniform(0, 0.95)), float(10 ** rng.uniform(-4, 0.3))
        workers = np.geomspace(1, 200, 100_001)
        law = workers / (1 + contention * (workers - 1) + crosstalk * workers * (workers - 1))
        top = float(workers[law.argmax()])
        agrees(student.best_workers, top, [(contention, crosstalk)], "where the law is largest, 1 or more", rel=1e-3)
        agrees(student.best_workers, math.inf, [(contention, 0.0)], "without crosstalk the law always rises")
        agrees(student.best_workers, 1, [(1 + contention, 0.0), (1 + contention, crosstalk)], "the law never rises")


@judges("types_that_ran", module="precision")
def types_by_time(student: Any) -> None:
    """Check that `types_that_ran` returns each data type's share of the kernel time of matrix multiplications.

    The traces are random.
    """
    rng = draw()
    products, others = sorted(PRODUCTS), ["Cast", "Relu", "QuantizeLinear", "DynamicQuantizeLinear", "Softmax"]
    kinds = ["float", "float16", "bfloat16", "uint8", "int8"]
    for size in (0, 3, 40):
        events: list[dict[str, Any]] = [{"cat": "Session", "name": "model_run", "dur": 10**6, "ts": 0}]
        times: dict[str, int] = {}
        for place in range(size):
            op = str(rng.choice(products if rng.random() < 0.6 else others))
            ending, took = str(rng.choice(["_kernel_time", "_kernel_time", "_fence_before"])), int(rng.integers(1, 999))
            inputs = [{kind: [4, 4]} for kind in rng.choice(kinds, 3).tolist()]
            told = {"op_name": op, "input_type_shape": inputs}
            events.append({"cat": "Node", "name": f"node{place}{ending}", "dur": took, "ts": place, "args": told})
            if op in PRODUCTS and ending == "_kernel_time":
                kind = PRODUCTS[op] or next(iter(inputs[0]))
                times[kind] = times.get(kind, 0) + took
        found, what = student.types_that_ran(events), f"types_that_ran of {len(events)} events"
        truth = {kind: float(Fraction(took, sum(times.values()))) for kind, took in times.items()}
        same(found, truth, what, "kernel times of products, by type")
        order = [float(number(share, "a share")) for share in entries(found, what).values()]
        expect(order == sorted(order, reverse=True), f"{what}: expected the largest share first")


def answer_understanding(student: Any) -> None:
    """Check that the answer is the largest speed-up that the scaling law allows."""
    same(student.speedup_at_the_top(), 10 / 2.305, "the speed-up at the top", "the law at n = 10", rel=0.02)
