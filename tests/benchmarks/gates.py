"""How often is a gate right?

Each trial is one `tinybench gate` as a release would run it, with a limit of 5 % and 60 s: `--run` on functions of
about 0.2 ms and 5 ms and on a command, which do real work in exact proportion, and on stored files of ten sessions
each, measured one after the other. The order of all trials is shuffled. Counted is what passes, fails and is not decided.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from statistics import median

import numpy as np

from tests.benchmarks.formats import grouped, lines, share
from tests.benchmarks.harness import NO_BLAS, ROOT, Benchmark, Case, Part, Record, Records, Trial

LIMIT = 5
SUBJECTS = "tests.benchmarks.subjects"
WORDS = f'{sys.executable} -c "from {SUBJECTS} import work; work(200_000)"'
RUN, FILES = "--run", "files of 10 sessions"
VERDICTS = ("passes", "fails", "cannot tell")  # by exit code
TRIALS = {  # by gate, subject and true slowdown in percent
    **{(RUN, length, percent): n for length in ("short", "long") for percent, n in {0: 40, 2: 30, 6: 30, 10: 40}.items()},
    (RUN, "command", 0): 40,
    **{(FILES, "short", percent): 20 for percent in (0, 2, 6, 10)},
}  # fmt: skip
NAMES = {"short": "function, 0.2 ms", "long": "function, 5 ms", "command": "command, 35 ms"}


def cases(options: Namespace) -> list[Case]:
    chosen = {case: n for case, n in TRIALS.items() if options.case in "{} {} {} %".format(*case)}
    return [case for case, n in chosen.items() for _ in range(options.trials or n)]


def tinybench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    words = [sys.executable, "-m", "tinybench", *arguments]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in range(len(VERDICTS)):
        raise RuntimeError(f"{arguments}: {done.stderr}")
    return done


def measured(trial: Trial) -> Record:
    (gate, subject, percent), seconds, start = trial.case, trial.options.seconds, time.perf_counter()
    sides = (f"{subject}_0", f"{subject}_{percent}")
    with tempfile.TemporaryDirectory() as folder:
        if gate == FILES:  # a third of the time for both files
            judged = [f"{folder}/{number}.json" for number in range(2)]
            np.save(f"{folder}/rows.npy", np.zeros((1, 1)))
            how = ("--data", f"{folder}/rows.npy", "--sessions", "10", "--seconds", str(seconds / 6), "--save")
            for side, file in zip(sides, judged, strict=True):
                tinybench("measure", f"{SUBJECTS}:model_{side}", *how, file).check_returncode()
        else:
            words = [WORDS] * 2 if subject == "command" else [f"{SUBJECTS}:{side}" for side in sides]
            judged = ["--run", *words, "--seconds", str(seconds)]
        done = tinybench("gate", *judged, "--max-slowdown", f"{LIMIT}%", "--format", "json")
    answer, wall = json.loads(done.stdout.splitlines()[-1]), time.perf_counter() - start
    verdict, wrong = VERDICTS[done.returncode], "fails" if percent <= LIMIT else "passes"
    return {"gate": gate, "verdict": verdict, "wrong": verdict == wrong, "wall": wall, "answer": answer}


def page(found: Records) -> list[str]:
    rows = []
    for ((gate, subject, percent),), trials in grouped(found, "case").items():
        counts, walls = Counter(each["verdict"] for each in trials), [each["wall"] for each in trials]
        row = {"gate": gate, "measured": NAMES[subject], "percent": percent, "trials": len(trials)}
        row |= {verdict: share(counts[verdict], len(trials)) for verdict in VERDICTS}
        wrong = sum(each["wrong"] for each in trials)
        rows.append(row | {"wrong": wrong, "wall": median(walls), "longest": max(walls)})
    wrongs = {gate: [each["wrong"] for each in trials] for (gate,), trials in grouped(found, "gate").items()}
    return [
        f"`tinybench gate` with a limit of {LIMIT} %. Every trial is a fresh command on work in exactly this proportion; "
        "shares with their 95 % Wilson intervals. `--run` measures both sides in turn and stops once it knows; files are "
        "measured one after the other, and the machine changes in between.",
        lines(
            rows,
            f"gate | measured | true slowdown | trials | {' | '.join(VERDICTS)} | wrong | wall time, median (longest)",
            "{gate} | {measured} | {percent} % | {trials} | {passes} | {fails} | {cannot tell} | {wrong} | {wall:.0f} s ({longest:.0f} s)",
        ),
        *(f"`{gate}`: {sum(w)} of {len(w)} verdicts wrong, {share(sum(w), len(w))}." for gate, w in wrongs.items()),
    ]


BENCHMARK = Benchmark(
    "How often is a gate right?",
    {"gates": Part("", measured, page, cases=cases, parallel="threads")},
    algebra=NO_BLAS,
    options={
        "--trials": {"type": int, "help": "of each row, instead of 20 to 40"},
        "--case": {"default": "", "help": "rows whose name holds this, such as 'short' or '10 %%'"},
        "--seconds": {"type": float, "default": 60.0, "help": "of each gate (%(default)s)"},
        "--jobs": {"type": int, "default": 1, "help": "trials at a time; two share the machine with each other"},
    },
    short={"case": "0 %", "trials": 1, "seconds": 2.0},
)
