"""Does a teacher help? Students with and without one, in the same number of steps, over several seeds.

Networks of 64 and of 16 units learn the enlarged digits of module 13. Either all 10,000 rows have labels, or 1,000; then
the teacher labels the rest by its scores. It has 512 and 256 units, and was trained on all labels or only on these 1,000.
A round trains every case from a seed of its own; networks that were trained before come from the cache.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.formats import grouped, interval, table
from tests.benchmarks.harness import Benchmark, Part, Trial
from tinybench.compress import train
from tinybench.course import cached, case_study
from tinybench.result import BenchmarkResult
from tinybench.support.basics.layer_networks import activations, initial_layers

BATCH, LABELLED = 100, 1000
TEMPERATURES, SHARES = (1.0, 2.0, 4.0, 8.0), (0.5, 0.9, 1.0)
STUDENTS = (64, 16)
CASES = {  # labelled rows of the student and of its teacher
    "all 10,000 rows have labels": (10_000, 10_000),
    "1,000 rows have labels, the teacher saw 10,000": (LABELLED, 10_000),
    "1,000 rows have labels, the teacher saw these": (LABELLED, LABELLED),
}


def cases(options: Namespace) -> list[tuple[str]]:
    """Return the cases; the short form has the one that trains least."""
    return [(case,) for case in CASES][-1 if options.short else 0 :]


def learn(
    steps: int, hidden: tuple[int, ...], X: Any, y: Any, seed: int, teacher: Any, temperature: float, share: float
) -> Any:
    """Return a network after all steps, however many rows there are."""
    start, epochs = initial_layers((X.shape[1], *hidden, 10), seed), steps * BATCH // len(X)
    return train(start, X, y, epochs, seed=seed, teacher=teacher, temperature=temperature, share=share, batch=BATCH)


def measured(trial: Trial) -> dict[str, Any]:
    """Return the accuracies of the teacher and of each student, by units and by the way to teach it."""
    digits, [case], seed = case_study("wide"), trial.case, trial.round
    X, y = digits.X_train, digits.y_train
    of_student, of_teacher = CASES[case]

    def accuracy(net: Any) -> float:
        return float(np.mean(activations(net, digits.X)[-1].argmax(1) == digits.y))

    trained = partial(cached, learn, trial.options.steps)
    teacher = trained((512, 256), X[:of_teacher], y[:of_teacher], seed, None, 1.0, 0.0)
    scores, students = activations(teacher, X)[-1], []
    for units in STUDENTS:
        alone = accuracy(trained((units,), X[:of_student], y[:of_student], seed, None, 1.0, 0.0))
        students.append({"units": units, "taught": "labels", "accuracy": alone})
        for temperature in TEMPERATURES[: 1 if trial.short else None]:
            for share in SHARES if of_student == len(X) else (1.0,):  # rows without labels: the teacher's alone
                net = trained((units,), X, y, seed, scores, temperature, share)
                how = f"T = {temperature:g}, λ = {share:g}"
                students.append({"units": units, "taught": how, "accuracy": accuracy(net)})
    return {"labels": case, "steps": trial.options.steps, "teacher": accuracy(teacher), "students": students}


def page(found: list[dict[str, Any]]) -> list[str]:
    """Return the table: means over the seeds, gains over the same network trained on labels alone."""
    rows = []
    for (case,), runs in grouped(found, "labels").items():
        students = grouped((student for run in runs for student in run["students"]), "units", "taught")
        for (units, how), each in students.items():
            pairs = zip(each, students[units, "labels"], strict=True)
            gain = BenchmarkResult("gain", [100 * (a["accuracy"] - b["accuracy"]) for a, b in pairs])
            told = interval(gain.mean, gain.ci_lower, gain.ci_upper, "{:+.1f}").replace("-", "−")
            rows.append({
                "labels": case, "units": str(units), "taught": how,
                "accuracy (%)": f"{100 * np.mean([student['accuracy'] for student in each]):.1f}",
                "gain (points)": "–" if how == "labels" else told,
                "teacher (%)": f"{100 * np.mean([run['teacher'] for run in runs]):.1f}",
            })  # fmt: skip
    seeds = len({record["round"] for record in found})
    return [
        f"Means over {seeds} seeds; gains against the same network trained on labels alone, in as many steps "
        f"({found[0]['steps']} of {BATCH} rows), with the t interval over the seeds. All are judged by the same 2,160 rows, "
        "copies of 360 originals, and no correction is made for the number of ways tried.",
        table(rows),
    ]


BENCHMARK = Benchmark(
    "Does a teacher help?",
    {"students": Part("", measured, page, cases=cases)},
    rounds=5,
    options={"--steps": {"type": int, "default": 1800, "help": "of each network (%(default)s)"}},
    short={"steps": 200},
)
