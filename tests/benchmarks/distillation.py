"""Does a teacher help? Students with and without one, in the same number of steps, over several seeds.

Networks of 64 and of 16 units learn the enlarged digits of module 13. Either all 10,000 rows have labels, or 1,000; then
the teacher labels the rest by its scores. It has 512 and 256 units, and was trained on all labels or only on these 1,000.
A round trains every case from a seed of its own; networks that were trained before come from the cache.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.formats import grouped, interval, lines
from tests.benchmarks.harness import Benchmark, Part, Records, Trial
from tinybench.compress import train
from tinybench.course import cached, case_study
from tinybench.result import BenchmarkResult
from tinybench.support.basics.layer_networks import activations, initial_layers

BATCH, LABELLED = 100, 1000
TEMPERATURES, SHARES = (1.0, 2.0, 4.0, 8.0), (0.5, 0.9, 1.0)
STUDENTS = (64, 16)
CASES = {  # labelled rows of the student and of its teacher; the last one trains least
    "all 10,000 rows have labels": (10_000, 10_000),
    "1,000 rows have labels, the teacher saw 10,000": (LABELLED, 10_000),
    "1,000 rows have labels, the teacher saw these": (LABELLED, LABELLED),
}


def learn(
    steps: int, hidden: tuple[int, ...], X: Any, y: Any, seed: int, teacher: Any, temperature: float, share: float
) -> Any:
    """Return a network after all steps, however many rows there are."""
    start, epochs = initial_layers((X.shape[1], *hidden, 10), seed), steps * BATCH // len(X)
    return train(start, X, y, epochs, seed=seed, teacher=teacher, temperature=temperature, share=share, batch=BATCH)


def measured(trial: Trial) -> Records:
    """Return the accuracy of each student, by units and by the way to teach it, and that of the teacher."""
    digits, [case], seed, steps = case_study("wide"), trial.case, trial.round, trial.options.steps
    X, y = digits.X_train, digits.y_train
    of_student, of_teacher = CASES[case]

    def accuracy(net: Any) -> float:
        return float(np.mean(activations(net, digits.X)[-1].argmax(1) == digits.y))

    trained = partial(cached, learn, steps)
    teacher, rows = trained((512, 256), X[:of_teacher], y[:of_teacher], seed, None, 1.0, 0.0), Records()
    for units in STUDENTS:
        nets = {"labels": trained((units,), X[:of_student], y[:of_student], seed, None, 1.0, 0.0)}
        for temperature in TEMPERATURES[: 1 if trial.short else None]:
            for share in SHARES if of_student == len(X) else (1.0,):  # rows without labels: the teacher's alone
                lesson = activations(teacher, X)[-1], temperature, share
                nets[f"T = {temperature:g}, λ = {share:g}"] = trained((units,), X, y, seed, *lesson)
        about = {"units": units, "steps": steps, "teacher": accuracy(teacher)}
        rows += [{**about, "taught": how, "accuracy": accuracy(net)} for how, net in nets.items()]
    return rows


def page(found: Records) -> list[str]:
    rows, groups = [], grouped(found, "case", "units", "taught")
    for (case, units, how), each in groups.items():
        pairs = zip(each, groups[case, units, "labels"], strict=True)
        gain = BenchmarkResult("gain", [100 * (taught["accuracy"] - alone["accuracy"]) for taught, alone in pairs])
        told = interval(gain.mean, gain.ci_lower, gain.ci_upper, "{:+.1f}").replace("-", "−")
        row = {"labels": case[0], "units": units, "taught": how, "gain": None if how == "labels" else told}
        rows.append(row | {key: np.mean([student[key] for student in each]) for key in ("accuracy", "teacher")})
    seeds = len({record["round"] for record in found})
    return [
        f"Means over {seeds} seeds; gains against the same network trained on labels alone, in as many steps "
        f"({found[0]['steps']} of {BATCH} rows), with the t interval over the seeds. All are judged by the same 2,160 rows, "
        "copies of 360 originals, and no correction is made for the number of ways tried.",
        lines(
            rows,
            "labels | units | taught | accuracy (%) | gain (points) | teacher (%)",
            "{labels} | {units} | {taught} | {accuracy:100×.1f} | {gain} | {teacher:100×.1f}",
        ),
    ]


BENCHMARK = Benchmark(
    "Does a teacher help?",
    {
        "students": Part(
            "", measured, page, cases=lambda options: [(case,) for case in CASES][-1 if options.short else 0 :]
        )
    },
    rounds=5,
    options={"--steps": {"type": int, "default": 1800, "help": "of each network (%(default)s)"}},
    short={"steps": 200},
)
