"""Does `what_if` tell beforehand what a faster stage really brings end to end?

Pipelines are drawn by a seed (`what_if_pipelines`): stages of known work in Python, in C that keeps or releases the
interpreter's lock, and stages that wait; in a chain, in threads, in two processes with a queue between, around a lock.
A process that never rests is on beside them (``--quiet``: none).

The truth: the work of the stage is really made smaller, 1.25, 2 and 5 times. These runs are in the same shuffled rounds
as those of `what_if`, which does not know what a stage does. Where the truth is not known to 1 point afterwards, it is
measured longer, together with the plain runs.

Beside it stands what a profile's share promises, by clocks in every stage: share × (1 − 1 / speed-up).
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from tests.benchmarks.formats import grouped, lines
from tests.benchmarks.harness import NO_BLAS, Benchmark, Part, Record, Records, Trial
from tests.benchmarks.what_if_pipelines import FAMILIES, draw
from tinybench.bottleneck import what_if
from tinybench.support.profiling.what_if_experiment import Stage, WhatIf, in_rounds

SPEEDUPS = (1.25, 2.0, 5.0)
TOLERANCE, SURE = 0.03, 0.01
GOAL = 0.9
ASKED = ("sequential", "threads", "two processes and a queue", "a lock")  # the families that must reach the goal


def half_width(found: WhatIf, arm: str) -> float:
    """Return how far the interval of a truth reaches to either side."""
    _, low, high = found.saved(arm)
    return (high - low) / 2


def measured(trial: Trial) -> Records:
    """Ask what a faster stage would bring, and make it faster in the same rounds; shares of the present time."""
    [family], max_seconds = trial.case, trial.options.seconds
    pipeline = draw(family, trial.round)
    real = {f"really {speedup:g}×": pipeline.faster(speedup) for speedup in SPEEDUPS}
    if family == "sequential":
        max_seconds *= 2.5  # a round of repeats is some four times as long as one of stand-ins
    found = what_if(pipeline.run, pipeline.stages, pipeline.name, SPEEDUPS, beside=real, max_seconds=max_seconds)
    seconds = {name: list(each) for name, each in found.seconds.items()}
    truth = WhatIf(found.name, found.rows, found.trial, found.method, seconds, found.metadata)
    for _ in range(3):
        if all(half_width(truth, arm) <= SURE for arm in real):
            break
        arms: dict[str, Mapping[str, Stage]] = {"plain": pipeline.stages, **real}
        for name, more in in_rounds(pipeline.run, arms, 1000, max_seconds=max_seconds / 3).items():
            seconds[name] += more
    return [
        {
            "family": family,
            "stages": f"{', '.join(pipeline.stages)}; {pipeline.told}; {pipeline.name} faster",
            "speedup": row.speedup,
            "foreseen": None if row.why else row.gain,
            "promised": row.promised,
            "truth": truth.saved(arm)[0],
            "unsure": half_width(truth, arm),
            "why": row.why,
        }
        for row, arm in zip(found.rows, real, strict=True)
    ]


def right(trial: Mapping[str, Any]) -> bool:
    """Return whether an answer was given and is within 3 points of the truth."""
    return trial["foreseen"] is not None and abs(trial["foreseen"] - trial["truth"]) <= TOLERANCE


def goals(found: Records) -> dict[str, bool]:
    """Return whether enough trials are answered and right."""
    asked = [trial for trial in found if trial["family"] in ASKED]
    hits = sum(map(right, asked))
    return {
        f"of the four families that are asked for ({', '.join(ASKED)}), at least {GOAL:.0%} of the trials are answered and "
        "within 3 points of what really making the stage faster brings; a refusal counts as not answered: "
        f"{hits} of {len(asked)}": hits >= GOAL * len(asked)
    }


def row_of(family: str, trials: Records) -> Record:
    """Return what the trials of a family have in common."""
    off = [abs(trial["foreseen"] - trial["truth"]) for trial in trials if trial["foreseen"] is not None]
    promised = [abs(trial["promised"] - trial["truth"]) for trial in trials]
    hits = sum(map(right, trials))
    row = {"family": family, "trials": len(trials), "answered": len(off), "right": hits, "share": hits / len(trials)}
    row |= {"median": median(off) if off else None, "worst": max(off, default=None)}
    return row | {"kept": sum(each <= TOLERANCE for each in promised), "broken": max(promised)}


def page(found: Records) -> list[str]:
    unsure = sum(trial["unsure"] > SURE for trial in found)
    families = {family: trials for (family,), trials in grouped(found, "family").items()}
    worst = [trial for family in sorted(families) for trial in families[family] if not right(trial)]
    return [
        f"Trials ran {', '.join(condition for (condition,) in grouped(found, 'condition'))}. Points are percent of the present time. "
        f"In {unsure} of all {len(found)} trials the truth itself is not known to 1 point.",
        lines(
            (row_of(family, trials) for family, trials in families.items()),
            "pipelines | trials | answered | within 3 points | of all % | median off | worst off | "
            "promise within 3 points | promise, worst off",
            "{family} | {trials} | {answered} | {right} | {share:100×.0f} | {median:100×.1f} | {worst:100×.1f} | "
            "{kept} | {broken:100×.1f}",
        ),
        "The promise is a profile's share × (1 − 1 / speed-up).",
        "## Not answered, or off by more than 3 points",
        lines(
            worst,
            "pipelines | stages | speed-up | truth % | foreseen % | promised % | why not",
            "{family} | {stages} | {speedup:g} | {truth:100×.1f} ± {unsure:100×.1f} | {foreseen:100×.1f} | "
            "{promised:100×.1f} | {why}",
        )
        if worst
        else "None.",
    ]


BENCHMARK = Benchmark(
    "What a faster stage would bring, told beforehand",
    {"pipelines": Part("", measured, page, goals, lambda options: [(family,) for family in FAMILIES])},
    algebra=NO_BLAS,
    rounds=8,
    options={
        "--quiet": {"action": "store_true", "help": "without a busy process beside"},
        "--seconds": {"type": float, "default": 8.0, "help": "at most for what_if on one pipeline (%(default)s)"},
    },
    short={"seconds": 0.5},
    conditions=lambda options: {"alone": 0} if options.quiet else {"beside a process that never rests": 1},
)
