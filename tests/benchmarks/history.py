"""Are steps in a history of 300 commits found, and how often is one told where there is none?

Histories without a step: how many ever raise an alarm. Histories with four steps: how soon they are found, how well placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.stats import binom, binomtest

from tests.benchmarks.formats import grouped, lines, pooled, table
from tests.benchmarks.harness import Benchmark, Part, Record, Records, Trial
from tests.benchmarks.processes import in_environment
from tinybench.tools.history.steps import StepDetector, find_steps

COMMITS, SCATTER = 300, 0.005
OUTLIERS = tuple(f"outliers, 1 in {n}" for n in ("50, both sides", "20, both sides", "20, slow"))
INDEPENDENT = ("normal", "t, 3 df", "t, 2 df", *OUTLIERS)
CORRELATED = {f"autocorrelation {rho}": rho for rho in (0.1, 0.2, 0.3, 0.5)}
UNITS = {"ratios": "", "milliseconds": ", ms"}  # and how their ways are called
PLACED = tuple(range(60, 300, 60))  # where steps are, up to 15 commits earlier or later

LEVEL = 0.01
HISTORIES, BLOCK = 1000, 40  # of each independent scatter; of a case, and of correlated scatter and some peers
PEERS = 3  # histories for peers that take long
WAYS = ("StepDetector", "neighbours", "PELT, once", "PELT", "E-divisive")
ASKED = ("normal", *OUTLIERS)  # with 100 histories each, and a goal; others have 25
STEPS = [(0.02, kind) for kind in (*ASKED, "t, 3 df", "t, 2 df", "autocorrelation 0.3")]
STEPS += [(0.01, "normal"), (0.01, "t, 3 df")]
CASES = [*product(INDEPENDENT, range(0, HISTORIES, BLOCK)), *((kind, 0) for kind in CORRELATED)]
STEP_CASES = [(*each, first) for each in STEPS for first in range(0, 100 if each in STEPS[:4] else 25, 25)]
NEAR = 10  # a step told up to so many commits off is this one; others are false
SOON = (3, 4, 5, 6, 8, 15, 20)

INTRO = (
    "Simulated: each history is of 300 commits whose ratio to a baseline, measured in the same rounds, scatters by 0.5 % "
    "(Student's t: has the scale 0.5 %). Outliers lie 5 to 20 % off. The same histories in ms are those of a machine that "
    "wanders by 0.2 % a commit and three times becomes 2 to 5 % slower or faster for good; the ratio does not see it.\n\n"
    "`StepDetector` and PELT look after every commit (or PELT once, when the history ends, where it says so); "
    "neighbours are compared with a tolerance of 2 %. PELT: `ruptures`, "
    "least squares, 3 ln n σ² for each change, σ by neighbours' differences. E-divisive: "
    "Apache Otava's, as it comes (t tests, level 0.001), asked "
    "once, when the history ends: it has only one chance of a false alarm where the others have 300.\n\n"
    "What the detector cannot do: a change that lasts fewer than three commits is hardly told from chance at this rate of "
    "alarms, and with fewer than about 20 values on the old level a step takes longer to find."
)


class History(NamedTuple):
    """Ratios to a baseline measured in the same rounds, the times in ms on a machine that drifts, where steps are."""

    ratios: np.ndarray
    milliseconds: np.ndarray
    steps: list[int]


def scatter(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return deviations with the standard deviation 1 (Student's t: with the scale 1)."""
    if kind in CORRELATED:
        rho = CORRELATED[kind]
        steps = rng.normal(size=n) * np.where(np.arange(n), (1 - rho**2) ** 0.5, 1)
        return np.asarray(lfilter([1], [1, -rho], steps))
    if kind.startswith("t,"):
        return rng.standard_t(int(kind[3]), size=n)
    values = rng.normal(size=n)
    if kind.startswith("outliers"):
        often = float(kind.split()[3].rstrip(","))
        far = rng.uniform(10, 40, n) * (rng.random(n) < 1 / often)
        values += far if kind.endswith("slow") else far * rng.choice([-1, 1], n)
    return values


def drawn(kind: str, step: float, seed: int) -> History:
    """Return a history with four steps up or down by a share `step`, or without any (0).

    The machine wanders by 0.2 % from commit to commit and, three times, becomes 2 to 5 % slower or faster for good.
    """
    rng = np.random.default_rng([seed, round(1e6 * step), *kind.encode()])
    deviations = SCATTER * scatter(kind, COMMITS, rng)
    machine = np.cumsum(0.002 * rng.normal(size=COMMITS))
    for at in rng.integers(20, COMMITS - 20, 3):
        machine[at:] += rng.choice([-1, 1]) * rng.uniform(0.02, 0.05)
    steps = [int(at + rng.integers(-15, 16)) for at in PLACED] if step else []
    level = np.zeros(COMMITS)
    for at in steps:
        level[at:] += rng.choice([-1, 1]) * np.log1p(step)
    ratios = np.exp(level) * np.maximum(0.05, 1 + deviations)
    return History(ratios, 10 * ratios * np.exp(machine), steps)


def neighbours(values: np.ndarray) -> list[int]:
    return [int(i) + 1 for i in np.flatnonzero(np.abs(np.diff(values) / values[:-1]) > 0.02)]


def pelt(values: np.ndarray) -> list[int]:
    """Return the change points of PELT: least squares, 3 ln n σ² for each, σ by the differences of neighbours."""
    import ruptures  # type: ignore[import-untyped]

    sigma = 1.4826 * np.median(np.abs(np.diff(values))) / 2**0.5
    found = ruptures.KernelCPD("linear", min_size=2).fit(values).predict(pen=3 * np.log(len(values)) * sigma**2)
    return [int(i) for i in found[:-1]]


def pelt_online(values: np.ndarray) -> list[tuple[int, int]]:
    """Return, for each change point that PELT tells when asked after every commit, after which it first did so."""
    first: dict[int, int] = {}
    for n in range(10, len(values) + 1):
        for at in pelt(values[:n]):
            first.setdefault(at, n - 1)
    return list(first.items())


def e_divisive(series: Sequence[np.ndarray]) -> list[list[int]]:
    """Return the change points of E-divisive with t tests, as Apache Otava does by default, asked once at the end."""
    script = Path(__file__).with_name("history_edivisive.py")
    return in_environment("apache-otava==0.8.0", script, [each.tolist() for each in series])  # type: ignore[no-any-return]


def alarm(values: np.ndarray) -> bool:
    return any(map(StepDetector(LEVEL).add, values))


def measured(trial: Trial) -> Records:
    """Return, by unit and way, in how many of how many histories there was an alarm."""
    kind, first = trial.case
    number, peers = (2, 1) if trial.short else (BLOCK, PEERS)
    histories = [drawn(kind, 0.0, seed) for seed in range(first, first + number)]
    found: list[tuple[str, str, Iterable[Any]]] = [("ratios", WAYS[0], [alarm(h.ratios) for h in histories])]
    for unit in UNITS if first == 0 else ():
        series = [getattr(history, unit) for history in histories]
        slow = ("PELT", map(pelt_online, series[:peers])) if unit == "ratios" else (WAYS[0], map(alarm, series[:peers]))
        found += [
            (unit, "neighbours", map(neighbours, series)),
            (unit, "PELT, once", map(pelt, series)),
            (unit, "E-divisive", [] if trial.short else e_divisive(series[:peers])),  # it is downloaded
            (unit, *slow),
        ]
    answers = [(unit, way, list(map(bool, told))) for unit, way, told in found]
    return [{"unit": unit, "way": way, "rang": sum(told), "of": len(told)} for unit, way, told in answers]


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
    ours = grouped(found, "unit", "way")["ratios", WAYS[0]]
    return [each for each in ours if each["scatter"] in INDEPENDENT]


def page(found: Records) -> list[str]:
    [(seen, n)] = pooled(detector(found), "way").values()
    ci = binomtest(seen, n).proportion_ci(method="exact")
    tables = []
    for (unit,), records in grouped(found, "unit").items():
        rows: dict[str, dict[str, str]] = {}
        for way in WAYS:
            for (kind,), of in pooled((each for each in records if each["way"] == way), "scatter").items():
                rows.setdefault(kind, {"scatter": kind})[way] = "{} of {}".format(*of)
        tables += [f"Histories with any alarm, of {unit}:", table(rows.values())]
    return [
        f"`StepDetector` is asked for a level of 1 % for each history. Independent scatter, all kinds: {seen} of {n} histories "
        f"({seen / n:.1%}; 95 % interval {ci.low:.1%} to {ci.high:.1%}). How much evidence an alarm needs was set by "
        "simulation, on other random numbers than these, so that about so many histories have one.",
        *tables,
    ]


def matched(steps: list[int], told: Sequence[tuple[int, int]]) -> Record:
    """Return, for steps and what is told as (index, found): delays (1: at the first value), distances, how many are false."""
    delays, off = [], []
    for at in steps:
        near = [(abs(index - at), found - at + 1) for index, found in told if abs(index - at) <= NEAR and found >= at]
        delays.append(min((delay for _, delay in near), default=999))
        off.append(min(near)[0] if near else 999)
    false = sum(all(abs(index - at) > NEAR for at in steps) for index, _ in told)
    return {"delays": delays, "off": off, "false": false}


def held(steps: list[int], size: float, found: Sequence[Any]) -> list[list[bool]]:
    """Return, for each change that is found near a step, whether its intervals hold the true place and size."""
    hold = []
    for each in found:
        at = min(steps, key=lambda at: abs(at - each.index))
        truth = size if each.change > 0 else 1 / (1 + size) - 1
        if abs(at - each.index) <= NEAR:
            hold.append([bool(each.low <= at <= each.high), bool(each.change_ci[0] <= truth <= each.change_ci[1])])
    return hold


def step_measured(trial: Trial) -> Records:
    """Return, for each history, what the detector told, and of the first ones what peers did."""
    step, kind, first = trial.case
    histories = [drawn(kind, step, seed) for seed in range(first, first + (1 if trial.short else 25))]
    rows = []
    for history in histories:
        found = find_steps(history.ratios)
        told = matched(history.steps, [(each.index, each.found) for each in found])
        rows.append({"way": WAYS[0], "hold": held(history.steps, step, found), **told})
    few = histories[: 2 if first == 0 else 0]
    for unit, ending in UNITS.items() if few else ():
        series = [getattr(history, unit) for history in few]
        once = {
            "neighbours": map(neighbours, series),
            "PELT": map(pelt, series),
            "E-divisive": [] if trial.short else e_divisive(series),
        }
        ways = {way: [[(at, at) for at in each] for each in answers] for way, answers in once.items()}
        if unit == "ratios":
            ways["PELT"] = list(map(pelt_online, series))
        for way, answers in ways.items():
            pairs = zip(few, answers, strict=False)
            rows += [{"way": way + ending, **matched(history.steps, each)} for history, each in pairs]
    return rows


def within(records: Records, what: str, most: int) -> float:
    """Return the share of steps whose delay, or distance, is at most so many commits."""
    return float(np.mean([value <= most for record in records for value in record[what]]))


def step_goals(found: Records) -> dict[str, bool]:
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
    heads, cells = (
        " | ".join(each.format(most) for most in SOON) for each in ("found within {}, %", "{{soon{}:100×.0f}}")
    )
    return [
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
        "alarms": Part(
            "Histories without a step", measured, page, goals, CASES, "processes", [("t, 2 df", 0)], ["scatter"]
        ),
        "found": Part(
            "Histories with steps",
            *(step_measured, step_page, step_goals, STEP_CASES, "processes"),
            short=STEP_CASES[:1],
            fields=["step", "scatter"],
        ),
    },
    INTRO,
)
