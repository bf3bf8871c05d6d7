"""Are steps in a history of 300 commits found, and how often is one told where there is none?

Histories without a step: how many ever raise an alarm, looking after every commit. Histories with four steps of 2 % or
1 %: how soon they are found, and how well placed. Peers look at the first of the same histories.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import binom, binomtest

from tests.benchmarks import history_data as data
from tests.benchmarks.formats import grouped, lines, pooled, table
from tests.benchmarks.harness import Benchmark, Case, Part, Record, Records, Trial
from tests.benchmarks.history_data import CORRELATED, INDEPENDENT, OUTLIERS, PLACED, UNITS
from tinybench.tools.history.steps import StepDetector, find_steps

LEVEL = 0.01
HISTORIES, BLOCK = 1000, 40  # of each independent scatter; of a case, and of correlated scatter and some peers
PEERS = 3  # histories for peers that take long
WAYS = ("StepDetector", "neighbours", "PELT, once", "PELT", "E-divisive")
ASKED = ("normal", *OUTLIERS)  # with 100 histories each, and a goal; others have 25
STEPS = [(0.02, kind) for kind in (*ASKED, "t, 3 df", "t, 2 df", "autocorrelation 0.3")]
STEPS += [(0.01, "normal"), (0.01, "t, 3 df")]
NEAR = 10  # a step told up to so many commits off is this one; others are false
SOON = (3, 4, 5, 6, 8, 15, 20)

INTRO = (
    "Simulated: each history is of 300 commits whose ratio to a baseline, measured in the same rounds, scatters by 0.5 % "
    "(Student's t: has the scale 0.5 %). Outliers lie 5 to 20 % off. The same histories in ms are those of a machine that "
    "wanders by 0.2 % a commit and three times becomes 2 to 5 % slower or faster for good; the ratio does not see it. "
    "What is drawn stands in [history_data.py](../history_data.py).\n\n"
    "`StepDetector` and PELT look after every commit (or PELT once, when the history ends, where it says so); "
    "neighbours are compared with a tolerance of 2 %. PELT: `ruptures`, "
    "least squares, 3 ln n σ² for each change, σ by neighbours' differences. E-divisive: "
    "Apache Otava's, as it comes (t tests, level 0.001), asked "
    "once, when the history ends: it has only one chance of a false alarm where the others have 300.\n\n"
    "What the detector cannot do: where each value takes after the one before (autocorrelation), it tries to take that "
    "away, but its rate of false alarms holds no longer; the page shows by how much. It cannot tell a machine that "
    "drifts from code that became slower, so it needs ratios. A change that lasts fewer than three commits is hardly "
    "told from chance at this rate of alarms, and with fewer than about 20 values on the old level a step takes longer "
    "to find. Where two of the first five values on the new level are outliers, it takes longer. With heavy tails "
    "(Student's t) some of the five lie far from either level, and a step of 1 % is only twice the scatter: both take "
    "more than 5 commits. The size of a step is biased upwards "
    "at its alarm (it was found because it looked large); `find_steps` estimates it again by all later values."
)


def alarms(values: Any) -> bool:
    """Return whether the detector ever raises an alarm; looking ends with the first."""
    detector = StepDetector(LEVEL)
    return any(detector.add(value) for value in values)


def cases(options: Namespace) -> list[Case]:
    """Return each kind of scatter with the first seed of a block."""
    if options.short:
        return [("t, 2 df", 0)]
    return [*product(INDEPENDENT, range(0, HISTORIES, BLOCK)), *((kind, 0) for kind in CORRELATED)]


def measured(trial: Trial) -> Records:
    """Return, by unit and way, in how many of how many histories there was an alarm."""
    kind, first = trial.case
    number, peers = (2, 1) if trial.short else (BLOCK, PEERS)
    histories = [data.drawn(kind, 0.0, seed) for seed in range(first, first + number)]
    found: dict[tuple[str, str], Iterable[Any]] = {("ratios", "StepDetector"): [alarms(h.ratios) for h in histories]}
    for unit in UNITS if first == 0 else ():
        series = [getattr(history, unit) for history in histories]
        found |= {
            (unit, "neighbours"): map(data.neighbours, series),
            (unit, "PELT, once"): map(data.pelt, series),
            (unit, "E-divisive"): [] if trial.short else data.e_divisive(series[:peers]),  # it is downloaded
        }
    if first == 0:
        found["ratios", "PELT"] = [data.pelt_online(history.ratios) for history in histories[:peers]]
        found["milliseconds", "StepDetector"] = [alarms(history.milliseconds) for history in histories[:peers]]
    rows = []
    for (unit, way), answers in found.items():
        rang = list(map(bool, answers))
        rows.append({"scatter": kind, "unit": unit, "way": way, "rang": sum(rang), "of": len(rang)})
    return rows


def goals(found: Records) -> dict[str, bool]:
    """Return whether the alarms could be those of a rate of 1 %: in each scatter, and taken together below it."""
    kinds = list(pooled(detector(found), "scatter").values())
    seen, n = np.sum(kinds, axis=0)
    return {
        "independent scatter: at most 1 % of the histories of all kinds together have an alarm": seen <= LEVEL * n,
        "independent scatter: no kind has more alarms than a rate of 1 % gives with a probability of 1 %": all(
            binom.sf(rang - 1, of, LEVEL) > 0.01 for rang, of in kinds
        ),
    }


def detector(found: Records) -> Records:
    """Return the records of the detector on ratios with independent scatter."""
    return [
        each for each in found if each["unit"] == "ratios" and each["way"] == WAYS[0] and each["scatter"] in INDEPENDENT
    ]


def page(found: Records) -> list[str]:
    [(seen, n)] = pooled(detector(found), "way").values()
    ci = binomtest(seen, n).proportion_ci(method="exact")
    cells, tables = pooled(found, "unit", "scatter", "way"), []
    for unit in UNITS:
        rows: dict[str, dict[str, str]] = {}
        for at, kind, way in sorted(cells, key=lambda key: WAYS.index(key[2])):
            if at == unit:
                rows.setdefault(kind, {"scatter": kind})[way] = "{} of {}".format(*cells[at, kind, way])
        tables += [f"Histories with any alarm, of {unit}:", table(rows.values())]
    return [
        f"`StepDetector` is asked for a level of 1 % for each history. Independent scatter, all kinds: {seen} of {n} histories "
        f"({seen / n:.1%}; 95 % interval {ci.low:.1%} to {ci.high:.1%}). How much evidence an alarm needs was set by "
        "simulation, on other random numbers than these, so that about so many histories have one.",
        *tables,
    ]


def matched(steps: list[int], told: Iterable[tuple[int, int]]) -> Record:
    """Return, for steps and what is told as (index, found): delays (1: at the first value), distances, how many are false."""
    delays, off, told = [], [], list(told)
    for at in steps:
        near = [(abs(index - at), found - at + 1) for index, found in told if abs(index - at) <= NEAR and found >= at]
        delays.append(min((delay for _, delay in near), default=999))
        off.append(min(near)[0] if near else 999)
    false = sum(all(abs(index - at) > NEAR for at in steps) for index, _ in told)
    return {"delays": delays, "off": off, "false": false}


def step_cases(options: Namespace) -> list[Case]:
    """Return sizes and scatters of steps with the first seed of a block of 25."""
    if options.short:
        return [(*STEPS[0], 0)]
    return [(*each, first) for each in STEPS for first in range(0, 100 if each in STEPS[: len(ASKED)] else 25, 25)]


def step_measured(trial: Trial) -> Records:
    """Return, for each history, what the detector told, and of the first ones what peers did."""
    step, kind, first = trial.case
    histories = [data.drawn(kind, step, seed) for seed in range(first, first + (1 if trial.short else 25))]
    about, rows = {"step": step, "scatter": kind}, []
    for history in histories:
        steps, hold = find_steps(history.ratios), []
        for found in steps:
            at = min(history.steps, key=lambda at: abs(at - found.index))
            if abs(at - found.index) <= NEAR:
                truth = step if found.change > 0 else 1 / (1 + step) - 1
                size = found.change_ci[0] <= truth <= found.change_ci[1]
                hold.append([bool(found.low <= at <= found.high), bool(size)])
        told = matched(history.steps, [(found.index, found.found) for found in steps])
        rows.append({**about, "way": "StepDetector", "hold": hold, **told})
    few = histories[: 2 if first == 0 else 0]
    for unit, ending in UNITS.items() if few else ():
        series = [getattr(history, unit) for history in few]
        ways = {
            "neighbours": [[(at, at) for at in data.neighbours(values)] for values in series],
            "PELT": [[(at, at) for at in data.pelt(values)] for values in series]
            if ending
            else map(data.pelt_online, series),
            "E-divisive": [[(at, at) for at in each] for each in ([] if trial.short else data.e_divisive(series))],
        }
        for way, answers in ways.items():
            pairs = zip(few, answers, strict=False)
            rows += [{**about, "way": way + ending, **matched(history.steps, each)} for history, each in pairs]
    return rows


def within(records: Records, what: str, most: int) -> float:
    """Return the share of steps whose delay, or distance, is at most so many commits."""
    return float(np.mean([value <= most for record in records for value in record[what]]))


def step_goals(found: Records) -> dict[str, bool]:
    """Return whether steps of 2 % are found and placed as asked for, where the scatter of most values is 0.5 %."""
    met = {}
    for kind in ASKED:
        if records := grouped(found, "step", "scatter", "way").get((0.02, kind, "StepDetector")):
            met[f"{kind}: 95 % of the steps of 2 % are found within 5 commits"] = within(records, "delays", 5) >= 0.95
            met[f"{kind}: 80 % of the steps of 2 % are placed within 1 commit"] = within(records, "off", 1) >= 0.8
    return met


def step_page(found: Records) -> list[str]:
    rows = []
    for (step, kind, way), records in grouped(found, "step", "scatter", "way").items():
        hold = [each for record in records for each in record.get("hold", ())]
        place, size = np.mean(hold, axis=0) if hold else (None, None)
        false, late = sum(record["false"] for record in records), not way.startswith("E-divisive") and way != "PELT, ms"
        soon = {f"soon{most}": within(records, "delays", most) for most in SOON}
        row = {"step": step, "scatter": kind, "way": way, "off": within(records, "off", 1), "false": false, **soon}
        row |= {"steps": len(PLACED) * len(records), "place": place, "size": size, "each": false / len(records)}
        rows.append({**row, "late": soon["soon5"] if late else None})
    detector = [row for row in rows if row["way"] == "StepDetector"]
    more = [f"{row['step']:.0%} with {row['scatter']}" for row in detector if round(100 * row["soon5"]) < 95]
    heads, cells = (
        " | ".join(each.format(most) for most in SOON) for each in ("found within {}, %", "{{soon{}:100×.0f}}")
    )
    return [
        f"5 commits are not enough for 95 % of the steps here: {'; '.join(more) or 'none'}.",
        "`StepDetector`; found within 5: the alarm came with the fifth value on the new level or before. A step that was "
        "not found counts as not placed. The last columns say how often the 95 % intervals of those found hold the truth.",
        lines(
            detector,
            f"step | scatter | steps | {heads} | placed ± 1, % | false | place in its interval, % | size, %",
            f"{{step:.0%}} | {{scatter}} | {{steps}} | {cells} | {{off:100×.0f}} | {{false}} | {{place:100×.0f}} | "
            "{size:100×.0f}",
        ),
        "All ways, the others on the first 2 of the same histories. In ratios PELT is asked after every commit, and its "
        "place is any that it told, its best; what it told and took back counts as false if it was more than 10 commits off.",
        lines(
            rows,
            "step | scatter | way | found within 5, % | placed ± 1, % | false per history",
            "{step:.0%} | {scatter} | {way} | {late:100×.0f} | {off:100×.0f} | {each:.2f}",
        ),
    ]


BENCHMARK = Benchmark(
    "Steps in a history",
    {
        "alarms": Part("Histories without a step", measured, page, goals, cases, "processes"),
        "found": Part("Histories with steps", step_measured, step_page, step_goals, step_cases, "processes"),
    },
    INTRO,
)
