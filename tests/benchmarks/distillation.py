"""Does a teacher help? Students with and without one, in the same number of steps, over several seeds.

Networks of 64 and of 16 units learn the enlarged digits of module 13. Either all 10,000 rows have labels, or 1,000; then
the teacher labels the rest by its scores. It has 512 and 256 units, and was trained on all labels or only on these 1,000.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.report import RESULTS, command_line, on_this_machine
from tinybench.compress import train
from tinybench.course import cached, case_study
from tinybench.layers import activations, initial_layers
from tinybench.result import BenchmarkResult
from tinybench.table import Table

STEPS, BATCH, LABELLED = 1800, 100, 1000
TEMPERATURES, SHARES = (1.0, 2.0, 4.0, 8.0), (0.5, 0.9, 1.0)
STUDENTS = (64, 16)
CASES = {  # labelled rows of the student and of its teacher
    "all 10,000 rows have labels": (10_000, 10_000),
    "1,000 rows have labels, the teacher saw 10,000": (LABELLED, 10_000),
    "1,000 rows have labels, the teacher saw these": (LABELLED, LABELLED),
}


def learn(hidden: tuple[int, ...], X: Any, y: Any, seed: int, teacher: Any, temperature: float, share: float) -> Any:
    """Return a network after all steps, however many rows there are."""
    start, epochs = initial_layers((X.shape[1], *hidden, 10), seed), STEPS * BATCH // len(X)
    return train(start, X, y, epochs, seed=seed, teacher=teacher, temperature=temperature, share=share, batch=BATCH)


def accuracies(seeds: int) -> dict[tuple[str, int, str], list[float]]:
    """Return the accuracy of every case, student and way to teach it, for each seed."""
    digits, found = case_study("wide"), dict[tuple[str, int, str], list[float]]()
    X, y = digits.X_train, digits.y_train

    def note(case: str, units: int, how: str, net: Any) -> None:
        share = float(np.mean(activations(net, digits.X)[-1].argmax(1) == digits.y))
        found.setdefault((case, units, how), []).append(share)
        print(f"{case}, {units} units, {how}: {share:.4f}", file=sys.stderr, flush=True)

    for seed in range(seeds):
        for case, (of_student, of_teacher) in CASES.items():
            teacher = cached(learn, (512, 256), X[:of_teacher], y[:of_teacher], seed, None, 1.0, 0.0)
            note(case, 0, "teacher", teacher)
            scores = activations(teacher, X)[-1]
            for units in STUDENTS:
                run = partial(cached, learn, (units,))
                note(case, units, "labels", run(X[:of_student], y[:of_student], seed, None, 1.0, 0.0))
                for temperature in TEMPERATURES:
                    for share in SHARES if of_student == len(X) else (1.0,):  # rows without labels: the teacher's alone
                        net = run(X, y, seed, scores, temperature, share)
                        note(case, units, f"T = {temperature:g}, λ = {share:g}", net)
    return found


def page(found: dict[tuple[str, int, str], list[float]], seeds: int) -> str:
    """Return the results as Markdown."""
    rows = []
    for (case, units, how), shares in found.items():
        if not units:
            continue
        told = "–"
        if how != "labels":
            gain = BenchmarkResult(
                "gain", [100 * (a - b) for a, b in zip(shares, found[case, units, "labels"], strict=True)]
            )
            told = f"{gain.mean:+.1f} ({gain.ci_lower:+.1f} to {gain.ci_upper:+.1f})".replace("-", "−")
        teacher = float(np.mean(found[case, 0, "teacher"]))
        rows.append({"labels": case, "units": str(units), "taught": how, "accuracy (%)": f"{100 * np.mean(shares):.1f}",
                     "gain (points)": told, "teacher (%)": f"{100 * teacher:.1f}"})  # fmt: skip
    return (
        f"# Does a teacher help?\n\n`python -m tests.benchmarks.distillation --seeds {seeds} --publish`, {on_this_machine()}. "
        f"Means over {seeds} seeds; gains against the same network trained on labels alone, in as many steps ({STEPS} of "
        f"{BATCH} rows), with the t interval over the seeds. All are judged by the same 2,160 rows, copies of 360 originals, "
        "and no correction is made for the number of ways tried.\n\n" + Table(rows).markdown() + "\n"
    )


def main(arguments: list[str] | None = None) -> int:
    """Train what is not in the cache yet, and print the table."""
    parser = command_line("distillation", __doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--publish", action="store_true", help=f"also write {RESULTS.name}/distillation.md")
    options = parser.parse_args(arguments)
    told = page(accuracies(options.seeds), options.seeds)
    print(told)
    if options.publish:
        (RESULTS / "distillation.md").write_text(told, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
