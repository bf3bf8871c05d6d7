"""Is a faulty version rolled back at the right stage, and an equal one promoted?

Each trial is a whole rollout: two real `tinybench serve` processes, a real Prometheus that reads both (the own reader
where it is not installed), 200 requests a second of 20,000 users, 5 → 20 → 50 → 100 %. The old and the new version are
the same classifier; the new one's server gets a fault by order. Trials come in rounds of one of each, in an order
shuffled anew each time.

What is right was written down before the first trial, from what is injected. The settings (requests a second, how much
each stage must see, how fast the drift grows) were chosen on earlier trials, which are not counted. An equal version is
promoted. At 5 % those go back that are harmful from the first answer on: every answer takes 20 ms more (users are
promised 50 ms), a random tenth of the answers names another class, or the worker dies of 5 % of the rows, and of the
second try at them. A drift goes back at 20 %: the share of wrong answers grows with the square of the answers given, all
are wrong after 2000. The stage of 5 % ends when the labels of its 250 pairs have come. Two or three of these pairs had a
wrong answer, and labels stop a version at a dozen. The stage of 20 % would end with some 50 wrong pairs more.

Labels come half a second after the answers, and decide. Those met the fault who got no answer, or one that came later
than the old version's by more than 10 ms, or that differs from the old version's to the same row. An equal version has
no fault: what stands there are answers that a busy machine delayed, as it does the old version's.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from tests.benchmarks.formats import bullets, exact_share, grouped, ranged, table
from tests.benchmarks.harness import ONNX_RUNTIME, Benchmark, Part, Record, Records, Trial
from tinybench.tools.rollout.engine import roll_out
from tinybench.tools.rollout.plan import Plan

FAULTS = {"equal": "", "slow": "slow:20ms", "wrong": "wrong:10%", "crash": "crash:5%", "drift": "drift:2000"}
RIGHT = dict.fromkeys(FAULTS, ("rolled back", 0)) | {"equal": ("promoted", 3), "drift": ("rolled back", 1)}
GOAL = 0.95
SHARES = ("5 %", "20 %", "50 %", "100 %")


@cache
def subject(folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Write a classifier of digits as ONNX; return it with rows it has not seen, and their labels."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    from tinybench.onnx import to_onnx

    rows, labels = load_digits(return_X_y=True)
    rows = (rows / 16).astype(np.float32)
    fitted = LogisticRegression(max_iter=1000).fit(rows[:1200], labels[:1200])
    return to_onnx(fitted, rows[:1], folder / "digits.onnx"), rows[1200:], labels[1200:]


def measured(trial: Trial) -> Record:
    """Roll out once, and return how it ended; a rollout that fails was not right."""
    begun, [kind] = time.perf_counter(), trial.case
    seed = 1000 * trial.round + list(FAULTS).index(kind)
    record: Record = {"load": os.getloadavg()[0]}
    plan = Plan(fault=FAULTS[kind] and f"{FAULTS[kind]}:{seed}", seed=seed, label_delay=0.5)
    model, rows, labels = subject(trial.folder)
    try:
        report = roll_out(model, model, rows, labels, plan)
    except Exception as error:
        record |= {"status": "failed", "stage": 0, "why": f"{type(error).__name__}: {error}"}
    else:
        record |= {name: getattr(report.state, name) for name in ("status", "stage", "why")}
        record |= {name: getattr(report, name) for name in ("watched_by", "users", "exposed", "met", "seconds")}
        record["problems"] = sum(not look.fresh for look in report.looks)
    right = (record["status"], record["stage"]) == RIGHT[kind]
    return record | {"right": right, "all_seconds": time.perf_counter() - begun}


def ending(status: str, stage: int) -> str:
    return f"{status} at {SHARES[stage]}"


def goals(found: Records) -> dict[str, bool]:
    return {
        f"{kind}: {ending(*RIGHT[kind])} in ≥ {GOAL:.0%} of {len(records)} trials": (
            sum(record["right"] for record in records) >= GOAL * len(records)
        )
        for (kind,), records in grouped(found, "kind").items()
    }


def page(found: Records) -> list[str]:
    watched = " and ".join(sorted({record.get("watched_by", "nobody") for record in found}))
    total, blind = (sum(record.get(name, 0) for record in found) for name in ("all_seconds", "problems"))
    kinds = {kind: records for (kind,), records in grouped(found, "kind").items()}
    reasons = {kind: Counter(each["why"] or each["status"] for each in records) for kind, records in kinds.items()}
    rows = []
    for kind, records in kinds.items():
        whole = [record for record in records if record["status"] != "failed"]
        had, met = ([100 * record[name] / record["users"] for record in whole] for name in ("exposed", "met"))
        row = {"version": f"{kind} ({FAULTS[kind]})" if FAULTS[kind] else kind, "right is": ending(*RIGHT[kind])}
        row["right"] = exact_share(sum(record["right"] for record in records), len(records))
        row["decided after, s"] = ranged([record["seconds"] for record in whole])
        row["users who had it"] = ranged(had, "{:.1f} %")
        rows.append({**row, "users who got a failed, late or differing answer": ranged(met, "{:.1f} %")})
    wrong = [
        f"{record['kind']}, trial {record['round']}: "
        + ", ".join(filter(None, [ending(record["status"], record["stage"]), record["why"]]))
        for record in found
        if not record["right"]
    ]
    return [
        f"Load average at the start of a trial {ranged([record['load'] for record in found])}. Servers were read by "
        f"{watched}; {blind} looks of all rollouts had no new reading. {len(found)} trials took {total / 60:.0f} minutes, "
        "servers' start and end among them. Median, and range; shares of right ones with their 95 % interval.",
        table(rows),
        "What ended them:",
        bullets(f"{kind}: {', '.join(f'{why} {n}' for why, n in sorted(of.items()))}" for kind, of in reasons.items()),
        "Those that did not end as is right:" if wrong else "",
        bullets(wrong),
    ]


BENCHMARK = Benchmark(
    "Rollouts: the right stage, and who met the fault",
    {"rollouts": Part("", measured, page, goals, [(kind,) for kind in FAULTS], short=[("slow",)], fields=["kind"])},
    algebra=ONNX_RUNTIME,
    rounds=40,
)
