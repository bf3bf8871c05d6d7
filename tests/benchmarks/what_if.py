"""Does `what_if` tell beforehand what a faster stage really brings end to end?

Run ``python -m tests.benchmarks.what_if`` (about twelve minutes; ``--short`` for some seconds). Prints Markdown tables;
``--publish`` writes them to ``results/what_if.md``. Trials that are done are kept in ``--keep FILE``, so it can be stopped and started anew.

Pipelines are drawn by a seed (`what_if_pipelines`): stages of known work in Python, in C that keeps or releases the
interpreter's lock, and stages that wait; in a chain, in threads, in two processes with a queue between, around a lock.
A process that never rests is on beside them (``--quiet``: none).

The truth: the work of the stage is really made smaller, 1.25, 2 and 5 times. These runs are in the same shuffled rounds
as those of `what_if`, which does not know what a stage does. Where the truth is not known to 1 point afterwards, it is
measured longer, together with the plain runs.

Beside it stands what a profile's share promises, by clocks in every stage: share × (1 − 1 / speed-up).
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.report import NO_BLAS, RESULTS, command_line, on_this_machine
from tests.benchmarks.what_if_pipelines import FAMILIES, Pipeline, draw
from tinybench.bottleneck import what_if
from tinybench.causal.arms import Stage, WhatIf, in_rounds
from tinybench.table import Table

SPEEDUPS = (1.25, 2.0, 5.0)
TOLERANCE, SURE = 0.03, 0.01
GOAL = 0.9
ASKED = ("sequential", "threads", "two processes and a queue", "a lock")  # the families that must reach the goal


@dataclass(frozen=True)
class Tried:
    """One pipeline and one speed-up; shares of the present time."""

    family: str
    seed: int
    told: str
    speedup: float
    foreseen: float
    promised: float
    truth: float
    unsure: float
    error: float
    method: str
    rounds: int
    why: str

    @property
    def right(self) -> bool:
        """Whether an answer was given and is within 3 points of the truth."""
        return not self.why and abs(self.foreseen - self.truth) <= TOLERANCE


@contextmanager
def busy_process() -> Iterator[None]:
    """Keep a core busy."""
    process = multiprocessing.get_context("spawn").Process(target=_never_rests, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _never_rests() -> None:
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():  # a parent that was killed ends nobody
        pass


def half_width(found: WhatIf, arm: str) -> float:
    """Return how far the interval of a truth reaches to either side."""
    _, low, high = found.saved(arm)
    return (high - low) / 2


def tried(pipeline: Pipeline, seed: int, max_seconds: float) -> list[Tried]:
    """Ask what a faster stage would bring, and make it faster in the same rounds."""
    real = {f"really {speedup:g}×": pipeline.faster(speedup) for speedup in SPEEDUPS}
    if pipeline.family == "sequential":
        max_seconds *= 2.5  # a round of repeats is some four times as long as one of stand-ins
    found = what_if(pipeline.run, pipeline.stages, pipeline.name, SPEEDUPS, beside=real, max_seconds=max_seconds)
    seconds = {name: list(each) for name, each in found.seconds.items()}
    truth = WhatIf(found.name, found.rows, found.trial, found.method, seconds, found.metadata)
    for _ in range(3):
        unsure = [arm for arm in real if half_width(truth, arm) > SURE]
        if not unsure:
            break
        arms: dict[str, Mapping[str, Stage]] = {"plain": pipeline.stages, **real}
        for name, more in in_rounds(pipeline.run, arms, 1000, max_seconds=max_seconds / 3).items():
            seconds[name] += more
    stages = ", ".join(pipeline.stages)
    return [
        Tried(
            pipeline.family,
            seed,
            f"{stages}; {pipeline.told}; {pipeline.name} faster",
            row.speedup,
            row.gain,
            row.promised,
            truth.saved(arm)[0],
            half_width(truth, arm),
            row.error,
            found.method,
            len(found.seconds["plain"]),
            row.why,
        )
        for row, arm in zip(found.rows, real, strict=True)
    ]


def measure(pipelines: int, max_seconds: float, quiet: bool, keep: Path | None = None) -> list[Tried]:
    """Return all trials; those that `keep` has are read, and new ones are added to it."""
    done = [json.loads(line) for line in keep.read_text().splitlines()] if keep and keep.exists() else []
    trials = [Tried(**each) for each in done if each.pop("quiet") == quiet]
    known = {(each.family, each.seed) for each in trials}
    for seed in range(pipelines):
        for family in FAMILIES:
            if (family, seed) in known:
                continue
            if quiet:
                new = tried(draw(family, seed), seed, max_seconds)
            else:
                pipeline = draw(family, seed)
                with busy_process():
                    new = tried(pipeline, seed, max_seconds)
            trials += new
            if keep:
                with keep.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps({**asdict(each), "quiet": quiet}) + "\n" for each in new)
            print(
                family,
                seed,
                *(f"{100 * (t.foreseen - t.truth):+.1f}{' ' + t.why if t.why else ''}" for t in new),
                file=sys.stderr,
            )
    return trials


def points(values: list[float], which: Any) -> str:
    """Return a number of points, or a dash."""
    return f"{100 * which(values):.1f}" if values else "–"


def summary(trials: list[Tried]) -> list[dict[str, str]]:
    """Return a row for each family."""
    rows = []
    for family in FAMILIES:
        own = [each for each in trials if each.family == family]
        off = [abs(each.foreseen - each.truth) for each in own if not each.why]
        promised = [abs(each.promised - each.truth) for each in own]
        rows.append(
            {
                "pipelines": family,
                "trials": f"{len(own)}",
                "answered": f"{len(off)}",
                "within 3 points": f"{sum(each.right for each in own)}",
                "of all %": f"{100 * sum(each.right for each in own) / max(1, len(own)):.0f}",
                "median off": points(off, median),
                "worst off": points(off, max),
                "promise within 3 points": f"{sum(each <= TOLERANCE for each in promised)}",
                "promise, worst off": points(promised, max),
            }
        )
    return rows


def report(trials: list[Tried], command: str, quiet: bool) -> str:
    """Return the page."""
    asked = [each for each in trials if each.family in ASKED]
    right = sum(each.right for each in asked)
    met = right >= GOAL * len(asked)
    unsure = sum(each.unsure > SURE for each in trials)
    worst = sorted((each for each in trials if not each.right), key=lambda each: (each.family, each.seed, each.speedup))
    beside = "nothing else of ours running" if quiet else "with a process beside it that never rests"
    lines = [
        "# What a faster stage would bring, told beforehand",
        f"`{command}` {on_this_machine(NO_BLAS)}, {beside}.",
        f"Of the four families that are asked for ({', '.join(ASKED)}), {right} of {len(asked)} trials are answered and within "
        f"3 points of what really making the stage faster brings: the goal of {100 * GOAL:.0f} % is {'met' if met else 'NOT met'}. "
        "A refusal counts as not answered. Points are percent of the present time. "
        f"In {unsure} of all {len(trials)} trials the truth itself is not known to 1 point.",
        Table(summary(trials)).markdown(),
        "The promise is a profile's share × (1 − 1 / speed-up).",
        "## Not answered, or off by more than 3 points",
        Table(
            [
                {
                    "pipelines": each.family,
                    "stages": each.told,
                    "speed-up": f"{each.speedup:g}",
                    "truth %": f"{100 * each.truth:.1f} ± {100 * each.unsure:.1f}",
                    "foreseen %": "–" if each.why else f"{100 * each.foreseen:.1f}",
                    "promised %": f"{100 * each.promised:.1f}",
                    "why not": each.why,
                }
                for each in worst
            ]
        ).markdown()
        if worst
        else "None.",
    ]
    return "\n\n".join(lines) + "\n"


def main() -> None:
    """Measure, and print or publish."""
    parser = command_line("what_if", __doc__)
    parser.add_argument("--short", action="store_true", help="one pipeline of each family, for a second each")
    parser.add_argument("--quiet", action="store_true", help="without a busy process beside")
    parser.add_argument("--pipelines", type=int, default=8, help="of each family")
    parser.add_argument("--seconds", type=float, default=8.0, help="at most for what_if on one pipeline")
    parser.add_argument("--keep", type=Path, help="a file that keeps the trials that are done")
    parser.add_argument("--publish", action="store_true", help="write results/what_if.md")
    options = parser.parse_args()
    pipelines, seconds = (1, 1.0) if options.short else (options.pipelines, options.seconds)
    trials = measure(pipelines, seconds, options.quiet, options.keep)
    how = f"--pipelines {pipelines} --seconds {seconds:g}{' --quiet' * options.quiet}"
    page = report(trials, f"python -m tests.benchmarks.what_if {how}", options.quiet)
    print(page)
    if options.publish:
        (RESULTS / "what_if.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
