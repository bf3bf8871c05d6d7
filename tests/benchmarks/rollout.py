"""Is a faulty version rolled back at the right stage, and an equal one promoted?

Run ``python -m tests.benchmarks.rollout`` (about half an hour; ``--short`` for one trial of each). Each trial is a whole
rollout: two real `tinybench serve` processes, a real Prometheus that reads both (the own reader where it is not
installed), 200 requests a second of 20,000 users, 5 → 20 → 50 → 100 %. The old and the new version are the same
classifier; the new one's server gets a fault by order. Every trial is kept in ``--keep`` as it ends; a run that was
stopped goes on where it was. Trials come in rounds of one of each, in an order shuffled anew each time.

What is right was written down before the first trial, from what is injected. The settings (requests a second, how much
each stage must see, how fast the drift grows) were chosen on earlier trials, which are not counted:

equal
    Nothing is injected. Promoted.
slow
    Every answer takes 20 ms more; users are promised 50 ms. Harmful from the first answer on: back at 5 %.
wrong
    A random tenth of the answers names another class. Back at 5 %.
crash
    The worker dies of 5 % of the rows, and of the second try at them. Back at 5 %.
drift
    The share of wrong answers grows with the square of the answers given, all are wrong after 2000. The stage of 5 %
    ends when the labels of its 250 pairs have come. Two or three of these pairs had a wrong answer, and labels stop a
    version at a dozen. The stage of 20 % would end with some 50 wrong pairs more. Back at 20 %.

Labels come half a second after the answers, and decide. The goal is 95 % of the trials of each. The share of users who met the fault: those who got no answer, or one that came
later than the old version's by more than 10 ms, or that differs from the old version's to the same row. An equal
version has no fault: what stands there are answers that a busy machine delayed, as it does the old version's.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import binomtest

from tests.benchmarks.report import ONNX_RUNTIME, RESULTS, command_line, on_this_machine
from tinybench.rollout.engine import roll_out
from tinybench.rollout.plan import Plan
from tinybench.table import Table

FAULTS = {"equal": "", "slow": "slow:20ms", "wrong": "wrong:10%", "crash": "crash:5%", "drift": "drift:2000"}
RIGHT = {
    "equal": ("promoted", 3),
    "slow": ("rolled back", 0),
    "wrong": ("rolled back", 0),
    "crash": ("rolled back", 0),
    "drift": ("rolled back", 1),
}
GOAL, TRIALS = 0.95, 40
SHARES = ("5 %", "20 %", "50 %", "100 %")
Trial = dict[str, Any]


def subject(folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Write a classifier of digits as ONNX; return it with rows it has not seen, and their labels."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    from tinybench.onnx import to_onnx

    rows, labels = load_digits(return_X_y=True)
    rows = (rows / 16).astype(np.float32)
    fitted = LogisticRegression(max_iter=1000).fit(rows[:1200], labels[:1200])
    return to_onnx(fitted, rows[:1], folder / "digits.onnx"), rows[1200:], labels[1200:]


def one_trial(
    kind: str, number: int, model: Path, rows: np.ndarray, labels: np.ndarray, prometheus: bool | None = None
) -> Trial:
    """Roll out once; what fails is a trial that was not right."""
    begun = time.perf_counter()
    seed = 1000 * number + list(FAULTS).index(kind)
    trial: Trial = {
        "kind": kind,
        "number": number,
        "load": os.getloadavg()[0],
        "time": time.strftime("%FT%TZ", time.gmtime()),
    }
    fault = FAULTS[kind] and f"{FAULTS[kind]}:{seed}"
    try:
        report = roll_out(
            model, model, rows, labels, Plan(fault=fault, seed=seed, label_delay=0.5, prometheus=prometheus)
        )
    except Exception as error:
        trial |= {"status": "failed", "stage": 0, "why": f"{type(error).__name__}: {error}"}
    else:
        state = report.state
        trial |= {"status": state.status, "stage": state.stage, "why": state.why, "watched_by": report.watched_by}
        trial |= {name: getattr(report, name) for name in ("users", "exposed", "met", "seconds")}
        trial["problems"] = sum(not look.fresh for look in report.looks)
        trial["evidence"] = report.looks[-1].evidence
    return trial | {
        "right": (trial["status"], trial["stage"]) == RIGHT[kind],
        "all_seconds": time.perf_counter() - begun,
    }


def measure(keep: Path, numbers: Sequence[int]) -> list[Trial]:
    """Run the trials that `keep` does not hold yet."""
    found = [json.loads(line) for line in keep.read_text().splitlines()] if keep.exists() else []
    done = {(trial["kind"], trial["number"]) for trial in found}
    keep.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, keep.open("a") as file:
        model, rows, labels = subject(Path(folder))
        for number in numbers:
            for kind in random.Random(number).sample(list(FAULTS), len(FAULTS)):
                if (kind, number) not in done:
                    found.append(one_trial(kind, number, model, rows, labels))
                    file.write(json.dumps(found[-1]) + "\n")
                    file.flush()
                    print({k: v for k, v in found[-1].items() if k != "evidence"}, file=sys.stderr)
    return found


def interval(right: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of a share by Clopper and Pearson."""
    found = binomtest(right, trials).proportion_ci(method="exact")
    return float(found.low), float(found.high)


def middle(values: Sequence[float], form: str = "{:.1f}") -> str:
    """Return median and range."""
    return (
        " ".join([form.format(median(values)), f"({form.format(min(values))} to {form.format(max(values))})"])
        if values
        else "–"
    )


def table(found: Sequence[Trial]) -> Table:
    """Return a row for each kind of version."""
    rows = []
    for kind, (status, stage) in RIGHT.items():
        these = [trial for trial in found if trial["kind"] == kind]
        if not these:
            continue
        right, whole = sum(trial["right"] for trial in these), [trial for trial in these if trial["status"] != "failed"]
        low, high = interval(right, len(these))
        rows.append({
            "version": f"{kind} ({FAULTS[kind]})" if FAULTS[kind] else kind,
            "right is": f"{status} at {SHARES[stage]}",
            "right": f"{right} of {len(these)} ({100 * low:.0f} to {100 * high:.0f} %)",
            "decided after, s": middle([trial["seconds"] for trial in whole]),
            "users who had it": middle([100 * trial["exposed"] / trial["users"] for trial in whole], "{:.1f} %"),
            "users who got a failed, late or differing answer": middle([100 * trial["met"] / trial["users"] for trial in whole], "{:.1f} %"),
        })  # fmt: skip
    return Table(rows)


def goals(found: Sequence[Trial]) -> dict[str, bool]:
    """Return whether what this is for was reached."""
    told = {}
    for kind, (status, stage) in RIGHT.items():
        these = [trial["right"] for trial in found if trial["kind"] == kind]
        told[f"{kind}: {status} at {SHARES[stage]} in ≥ {GOAL:.0%} of {len(these)} trials"] = bool(these) and sum(
            these
        ) >= GOAL * len(these)
    return told


def others(found: Sequence[Trial]) -> list[str]:
    """Return a line for each trial that did not end as is right."""
    lines = []
    for trial in found:
        if not trial["right"]:
            why = f", {trial['why']}" if trial["why"] else ""
            lines.append(
                f"- {trial['kind']}, trial {trial['number']}: {trial['status']} at {SHARES[trial['stage']]}{why}"
            )
    return lines


def report(found: Sequence[Trial], command: str, beside: str) -> str:
    """Return the page."""
    reasons: dict[str, dict[str, int]] = {}
    for trial in found:
        kind = reasons.setdefault(trial["kind"], {})
        kind[trial["why"] or trial["status"]] = kind.get(trial["why"] or trial["status"], 0) + 1
    loads = middle([trial["load"] for trial in found])
    watched = " and ".join(sorted({trial.get("watched_by", "nobody") for trial in found}))
    total, blind = sum(trial["all_seconds"] for trial in found), sum(trial.get("problems", 0) for trial in found)
    told = [f"- {'met' if met else 'MISSED'}: {goal}" for goal, met in goals(found).items()]
    why = [
        f"- {kind}: {', '.join(f'{name} {n}' for name, n in sorted(reasons[kind].items()))}"
        for kind in RIGHT
        if kind in reasons
    ]
    wrong = others(found)
    return "\n".join([
        "# Rollouts: the right stage, and who met the fault", "",
        f"`{command}`, {on_this_machine(ONNX_RUNTIME)}. What is right, and how it was measured, stands at the head of [rollout.py](../rollout.py).", "",
        f"Beside it {beside}: load average at the start of a trial {loads}. Servers were read by {watched}; {blind} looks of all "
        f"rollouts had no new reading. {len(found)} trials took {total / 60:.0f} minutes, servers' start and end among them. "
        "Median, and range; shares of right ones with their 95 % interval.", "",
        table(found).markdown(), "", *told, "",
        "What ended them:", "", *why, "",
        *(["Those that did not end as is right:", "", *wrong, ""] if wrong else []),
    ])  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command_line("rollout", __doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial; two runs share the work by it")
    parser.add_argument("--short", action="store_true", help="one trial of each")
    parser.add_argument("--keep", type=Path, default=Path("bench") / "rollout.jsonl", help="where trials are kept")
    parser.add_argument("--beside", default="ran nothing else that is known", help="what else ran on the machine")
    parser.add_argument("--publish", action="store_true", help="write results/rollout.md")
    options = parser.parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    numbers = range(options.first, options.first + (1 if options.short else options.trials))
    found = measure(options.keep, numbers)
    page = report(found, shlex.join(["python", "-m", "tests.benchmarks.rollout", *given]), options.beside)
    print(page)
    if options.publish:
        (RESULTS / "rollout.md").write_text(page, encoding="utf-8")
    return int(not all(goals(found).values()))


if __name__ == "__main__":
    sys.exit(main())
