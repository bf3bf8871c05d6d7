"""The referee: measures an entry beside the baseline, inside the sandbox, and believes no other number."""

from __future__ import annotations

import io
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tinybench
from autograder import pace
from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import Refused
from autograder.leaderboard.referee.host_lock import Progress, host_lock
from autograder.leaderboard.settings import EntryLimits, Olympics
from autograder.sandbox import bubblewrap

PROGRAM = Path(__file__).with_name("measure.py")
PLACE = "/referee"
# memory comes in whole pages and arenas: of a small model's, a few are more than a hundredth
MEMORY_FLOOR, MEMORY_GRAIN = 0.01, 4 * 4096
MEASUREMENTS = 2  # of an entry that varies too much, before it is refused
OVERTIME = (-signal.SIGPROF, 128 + signal.SIGPROF)  # exit codes, without and within the sandbox
PRIVATE = (
    "it reads the public digits, but not all of the private ones: there it fails, is too slow, or changes its answers. "
    "What exactly stays secret, as these digits do, and the entry counts against the quota; try it on digits distorted "
    "afresh (autograder.leaderboard.digits.fresh_digits)"
)

Run = Callable[[bytes, bubblewrap.Limits], bubblewrap.Finished]


class RefusedOnPrivate(Refused):
    """This entry fails on private digits: it counts, or their secret could be asked for again and again."""


def confined(stdin: bytes, limits: bubblewrap.Limits) -> bubblewrap.Finished:
    """Run the measuring program in the sandbox: no network, an empty folder, nobody else's files."""
    shown = {f"{PLACE}/measure.py": PROGRAM, f"{PLACE}/tinybench": Path(tinybench.__file__).parent}
    argv = [sys.executable, "-sB", f"{PLACE}/measure.py"]
    return bubblewrap.run_program(argv, stdin, mounts=bubblewrap.Mounts(shown), limits=limits)


def unconfined(stdin: bytes, limits: bubblewrap.Limits) -> bubblewrap.Finished:
    """Run the measuring program as it is, for a student who rehearses an own model without bubblewrap."""
    folder = str(Path(tinybench.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], input=stdin, capture_output=True, env=environment, check=False
    )
    return bubblewrap.Finished(done.returncode, done.stdout, done.stderr)


def rerun_interval(ratios: Sequence[float], floor: float, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the ratio of a measurement made in several processes, and where another such measurement would land.

    Parameters
    ----------
    ratios
        One ratio for each process, at least two.
    floor
        The interval reaches at least so far to both sides, as a fraction: what a host's load changes from one
        measurement to the next, the processes of one measurement do not show.
    confidence
        How often a second, independent measurement falls within the interval.

    Returns
    -------
    tuple of float
        Ratio (the geometric mean), lower and upper end.

    Notes
    -----
    Both measurements err, so the t interval of the mean is widened by √2. Rounds of one process share its memory
    layout: the interval comes from processes, not from rounds.

    References
    ----------
    Kalibera, Jones, "Rigorous benchmarking in reasonable time", ISMM (2013): processes as the unit of repetition.
    """
    from scipy.special import stdtrit

    logs = [math.log(ratio) for ratio in ratios]
    middle, count = statistics.fmean(logs), len(logs)
    half = float(stdtrit(count - 1, 0.5 + confidence / 2)) * statistics.stdev(logs) * math.sqrt(2 / count)
    half = max(half, math.log1p(floor))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


class Referee:
    """Measures entries of one Olympics.

    Parameters
    ----------
    olympics
        Events, limits and effort.
    baseline
        The model beside which entries are measured.
    seed
        Seed of the private digits; None to rehearse without them.
    run
        Runs the measuring program: `confined` always, but for rehearsals.
    """

    def __init__(self, olympics: Olympics, baseline: bytes, seed: int | None, run: Run = confined) -> None:
        self.olympics, self.baseline, self.run = olympics, baseline, run
        self.public = digits.public_split(olympics.task.public_rows)
        self.private = None if seed is None else digits.private_split(olympics.task.private_rows, seed)

    def measure(self, data: bytes, progress: Progress = lambda text: None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Measure an entry that `entry.check` has passed.

        Parameters
        ----------
        data
            Its bytes.
        progress
            Is told what happens, in a few words.

        Returns
        -------
        scores : dict
            Latency and memory as ratios to the baseline with intervals, size, and correct answers of how many.
        evidence : dict
            Every single measurement.

        Raises
        ------
        Refused
            If it cannot be measured; the message is for its author.
        """
        progress("waiting for the machine")
        with host_lock(progress):
            progress("reading digits")
            accuracy, agreement = self._read(data)
            for _ in range(MEASUREMENTS):
                scores, evidence = self._race_and_weigh(data, progress)
                varies = self._varies(scores)
                if not varies:
                    return {**scores, "accuracy": accuracy}, {**evidence, "agreement": agreement}
        raise Refused(varies)

    def _race_and_weigh(self, data: bytes, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
        """Measure latency, memory and size; return scores and evidence as `measure` does."""
        effort = self.olympics.referee
        processes = effort.processes
        timed, peaks = [], []
        for number in range(1, processes + 1):
            # Weighing in between spreads the timing over more of what else happens on this machine.
            progress(f"timing, process {number} of {processes}")
            timed.append(self.race(data))
            progress(f"weighing, process {number} of {processes}")
            peaks.append(self._weigh_both(data))
        speeds = [median_ratio(each) for each in timed]
        heights = [{name: max(stages.values()) for name, stages in pair.items()} for pair in peaks]
        weights = [pair["entry"] / max(1, pair["baseline"]) for pair in heights]
        middle = {name: statistics.median(pair[name] for pair in heights) for name in ("entry", "baseline")}
        scores = {
            "latency": {
                "ratio": rerun_interval(speeds, effort.floor),
                "seconds": statistics.median(statistics.median(each["entry"]) for each in timed),
                "baseline_seconds": statistics.median(statistics.median(each["baseline"]) for each in timed),
                "repeated": statistics.median(each["repeated"] for each in timed),
            },
            "memory": {
                "ratio": rerun_interval(
                    [max(weight, 1e-6) for weight in weights],
                    max(MEMORY_FLOOR, MEMORY_GRAIN / max(1, min(middle.values()))),
                ),
                "bytes": middle["entry"],
                "baseline_bytes": middle["baseline"],
                "stages": {
                    stage: statistics.median(pair["entry"][stage] for pair in peaks) for stage in peaks[0]["entry"]
                },
            },
            "size": {"bytes": len(data), "ratio": len(data) / len(self.baseline)},
        }
        return scores, {"latency": timed, "memory": peaks}

    def _varies(self, scores: Mapping[str, Any]) -> str:
        """Return why a measurement says too little, empty if it does not: a wide interval would share any place."""
        for name in ("latency", "memory"):
            value, lower, upper = scores[name]["ratio"]
            if upper / value > 1 + self.olympics.referee.widest:
                return (
                    f"its {name} varies too much from process to process to be ranked: {lower:.3g} to {upper:.3g} × "
                    f"the baseline's, measured {MEASUREMENTS} times. Does its work depend on what the digits show? If "
                    "not, the machine was very busy: enter it again"
                )
        return ""

    def answers(self, data: bytes, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """Let an entry read digits, which the sandbox sees in mixed order and without labels.

        Parameters
        ----------
        data
            Its bytes, which `entry.check` has passed.
        rows
            Digits of shape ``(n, 784)``, float32.

        Returns
        -------
        labels : ndarray
            Its answers, of shape ``(n,)``.
        agreement : float
            The fraction of answers that stay when the digits come in other company.

        Raises
        ------
        Refused
            If it cannot be run, or its answers change or are none; the message is for its author.
        """
        order, limits = np.random.default_rng().permutation(len(rows)), self.olympics.limits
        seconds: dict[str, Any] = {
            "start_seconds": pace.cpu(limits.start_seconds),
            "call_seconds": pace.cpu(limits.call_seconds),
        }
        answer = self._ask("answers", data, rows[order], **seconds)
        given = np.asarray(answer["labels"])
        if given.shape != order.shape:
            raise Refused("the measuring program gave no sound answer; tell your instructor")
        labels = np.empty(len(rows), np.int64)
        labels[order] = given
        return labels, float(answer["agreement"])

    def race(self, data: bytes) -> dict[str, Any]:
        """Time an entry and the baseline in shuffled rounds of one fresh process.

        Returns
        -------
        dict
            Seconds of each round of ``"entry"`` and ``"baseline"``, and what fraction of its time the entry took on
            ``"repeated"`` digits.
        """
        return self._ask("latency", data, self._fresh(), rounds=self.olympics.referee.rounds)

    def _read(self, data: bytes) -> tuple[dict[str, tuple[int, int]], float]:
        """Count correct answers on both splits; what happens on the private one is told to nobody."""
        images, truth = self.public
        labels, agreement = self.answers(data, images)
        counted = {"public": (int((labels == truth).sum()), len(truth))}
        if self.private:
            images, truth = self.private
            try:
                labels, again = self.answers(data, images)
            except Refused:
                raise RefusedOnPrivate(PRIVATE) from None
            counted["private"], agreement = (int((labels == truth).sum()), len(truth)), min(agreement, again)
        return counted, agreement

    def _fresh(self) -> np.ndarray:
        """Return digits to time and weigh with: no entry can know them, or tell them from those that decide."""
        return digits.fresh_digits(8 * self.olympics.task.batch)[0]

    def _weigh_both(self, data: bytes) -> dict[str, dict[str, int]]:
        """Measure the memory of entry and baseline, each in a process of its own, in random order."""
        models = [("entry", data), ("baseline", self.baseline)]
        random.shuffle(models)
        rows, tiny = self._fresh(), digits.tiny_model()
        return {name: self._ask("memory", content, rows, tiny) for name, content in models}

    def _ask(self, stage: str, data: bytes, rows: np.ndarray, tiny: bytes = b"", **more: Any) -> dict[str, Any]:
        """Put one question to the measuring program."""
        limits = self.olympics.limits
        question = json.dumps({"stage": stage, "batch": self.olympics.task.batch, **more}).encode()
        contents = {"entry": data, "baseline": self.baseline, "tiny": tiny, "question": question}
        arrays: dict[str, Any] = {name: np.frombuffer(content, np.uint8) for name, content in contents.items()}
        packed = io.BytesIO()
        np.savez(packed, rows=rows, **arrays)
        allowed = int(limits.memory_mb * 2**20)
        finished = self.run(
            packed.getvalue(),
            bubblewrap.Limits(
                memory=allowed,
                address_space=allowed + 4 * 2**30,  # libraries and reserved ranges; what is used, `memory` limits
                cpu_seconds=math.ceil(limits.seconds),
                wall_seconds=2 * limits.seconds,
            ),
        )
        return _answer(finished, limits)


def _answer(finished: bubblewrap.Finished, limits: EntryLimits) -> dict[str, Any]:
    if finished.limit:
        raise Refused(f"measuring it was stopped: {finished.limit}")
    if finished.code == 0:
        try:
            answer = json.loads(finished.output)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            if "unfit" in answer:
                raise Refused(str(answer["unfit"]))
            return answer
    if finished.code in OVERTIME:
        raise Refused(f"it works longer than {pace.cpu(limits.start_seconds):.3g} s to be loaded and to answer once")
    if b"bad_alloc" in finished.errors or b"MemoryError" in finished.errors:
        raise Refused(f"it needs more memory than the {limits.memory_mb:g} MB there are for an entry")
    raise Refused(f"the runtime broke down on it (exit code {finished.code})")


def median_ratio(race: Mapping[str, Sequence[float]]) -> float:
    """Return the median over the rounds of a `Referee.race` of entry to baseline."""
    return statistics.median(a / b for a, b in zip(race["entry"], race["baseline"], strict=True))
