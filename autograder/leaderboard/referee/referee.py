"""The referee. It measures an entry alongside the baseline, inside the sandbox, and trusts no other measurements."""

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
from autograder import time_limits
from autograder.leaderboard import digits
from autograder.leaderboard.entry.validate import EntryRefused
from autograder.leaderboard.referee.host_lock import Progress, locked_host
from autograder.leaderboard.settings import EntryLimits, Olympics
from autograder.sandbox import bubblewrap
from autograder.sandbox.root import PROGRAM as PYTHON
from tinybench.accuracy import effective_rows

PROGRAM = Path(__file__).with_name("measure.py")
PLACE = "/referee"
# Memory is allocated in whole pages and arenas. For a small model, a few pages are more than a hundredth of its memory.
MEMORY_FLOOR, MEMORY_GRAIN = 0.01, 4 * 4096
MEASUREMENTS = 2  # the number of measurements before an entry that varies too much is refused
OVERTIME = (-signal.SIGPROF, 128 + signal.SIGPROF)  # exit codes without and with the sandbox
PRIVATE = (
    "it reads the public digits, but not all of the private ones: there it fails, is too slow, or changes its answers. "
    "What exactly stays secret, as these digits do, and the entry counts against the quota; try it on digits distorted "
    "afresh (autograder.leaderboard.digits.fresh_digits)"
)

RunProgram = Callable[[bytes, bubblewrap.Limits], bubblewrap.Finished]


def confined(stdin: bytes, limits: bubblewrap.Limits) -> bubblewrap.Finished:
    """Run the measuring program in the sandbox: without network, in an empty folder, without any user's files."""
    shown = {f"{PLACE}/measure.py": PROGRAM, f"{PLACE}/tinybench": Path(tinybench.__file__).parent}
    argv = [PYTHON, "-sB", f"{PLACE}/measure.py"]
    return bubblewrap.run_program(argv, stdin, mounts=bubblewrap.Mounts(shown), limits=limits)


def unconfined(stdin: bytes, limits: bubblewrap.Limits) -> bubblewrap.Finished:
    """Run the measuring program without bubblewrap, for students who rehearse a model of their own."""
    folder = str(Path(tinybench.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], input=stdin, capture_output=True, env=environment, check=False
    )
    return bubblewrap.Finished(done.returncode, done.stdout, done.stderr)


def rerun_interval(ratios: Sequence[float], floor: float, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the geometric mean of `ratios`, and the interval in which another measurement would find this mean.

    Each process contributes one ratio, because all rounds of a process share its memory layout and are therefore not
    independent (Kalibera, Jones, "Rigorous benchmarking in reasonable time", ISMM 2013). The interval is the t interval
    of the mean, widened by √2 because the other measurement has an error, too. It extends by at least the fraction
    `floor` to both sides, because a host's load may change between two measurements, which `ratios` do not show.
    """
    from scipy.special import stdtrit

    logs = [math.log(ratio) for ratio in ratios]
    middle, count = statistics.fmean(logs), len(logs)
    half = float(stdtrit(count - 1, 0.5 + confidence / 2)) * statistics.stdev(logs) * math.sqrt(2 / count)
    half = max(half, math.log1p(floor))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


class Referee:
    """A referee for the entries of one Olympics.

    The private digits are generated from `seed`. A rehearsal uses no private digits: pass ``seed=None``.
    """

    def __init__(self, olympics: Olympics, baseline: bytes, seed: int | None, run: RunProgram = confined) -> None:
        self.olympics, self.baseline, self.run = olympics, baseline, run
        public_rows, private_rows = olympics.task.public_rows, olympics.task.private_rows
        self.public = digits.public_split(public_rows)
        self.private = None if seed is None else digits.private_split(private_rows, seed)
        self.originals = {"public": digits.public_originals(public_rows)}
        if seed is not None:
            self.originals["private"] = digits.private_originals(private_rows, seed)

    def measure(self, data: bytes, progress: Progress = lambda text: None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Measure an entry that has passed `validate.check`. Return its scores, and all single measurements.

        The scores are latency and memory as ratios to the baseline with intervals, the size, and, for each split of the
        digits, the number of correct answers, the number of digits, and how many independent digits these are worth.
        """
        progress("waiting for the machine")
        with locked_host(progress):
            progress("reading digits")
            accuracy, agreement = self._measure_accuracy(data)
            for _ in range(MEASUREMENTS):
                scores, evidence = self._measure_costs(data, progress)
                varies = self._varies(scores)
                if not varies:
                    return {**scores, "accuracy": accuracy}, {**evidence, "agreement": agreement}
        raise EntryRefused(varies)

    def _measure_costs(self, data: bytes, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
        processes = self.olympics.referee.processes
        timed, peaks = [], []
        for number in range(1, processes + 1):
            # Timing and memory runs alternate, so that the timing covers more variation of the machine's other load.
            progress(f"timing, process {number} of {processes}")
            timed.append(self.measure_latency(data))
            progress(f"weighing, process {number} of {processes}")
            peaks.append(self.measure_memory(data))
        return self._scores(len(data), timed, peaks), {"latency": timed, "memory": peaks}

    def _scores(self, size: int, timed: list[dict[str, Any]], peaks: list[dict[str, dict[str, int]]]) -> dict[str, Any]:
        median, floor = statistics.median, self.olympics.referee.floor
        heights = [{name: max(stages.values()) for name, stages in pair.items()} for pair in peaks]
        weights = [max(1e-6, pair["entry"] / max(1, pair["baseline"])) for pair in heights]
        middle = {name: median(pair[name] for pair in heights) for name in ("entry", "baseline")}
        memory_floor = max(MEMORY_FLOOR, MEMORY_GRAIN / max(1, min(middle.values())))
        return {
            "latency": {
                "ratio": rerun_interval([median_ratio(each) for each in timed], floor),
                "seconds": median(median(each["entry"]) for each in timed),
                "baseline_seconds": median(median(each["baseline"]) for each in timed),
                "repeated": median(each["repeated"] for each in timed),
            },
            "memory": {
                "ratio": rerun_interval(weights, memory_floor),
                "bytes": middle["entry"],
                "baseline_bytes": middle["baseline"],
                "stages": {name: median(pair["entry"][name] for pair in peaks) for name in peaks[0]["entry"]},
            },
            "size": {"bytes": size, "ratio": size / len(self.baseline)},
        }

    def _varies(self, scores: Mapping[str, Any]) -> str:
        """Return why a measurement is too imprecise, or "" if it is not.

        Entries with overlapping intervals share a place, so an entry with a very wide interval could share any place.
        """
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
        """Return an entry's labels for digits, and the fraction of labels that stays the same in other batches.

        The sandbox gets the digits in random order and without their true labels.
        """
        answer, labels = self._read("answers", data, rows)
        return labels, float(answer["agreement"])

    def briefly(self, data: bytes, rows: np.ndarray, max_seconds: float) -> tuple[np.ndarray, dict[str, Any]]:
        """Return an entry's labels, as `answers` does, and its timing, in the form of `measure_latency`.

        Unlike these methods, use one process and the same digits for both. This suffices for a rough verdict. No round
        of the timing begins after `max_seconds` of the process's CPU time.
        """
        how = {"rounds": self.olympics.referee.rounds, "max_seconds": time_limits.cpu(max_seconds)}
        answer, labels = self._read("briefly", data, rows, **how)
        return labels, answer

    def _read(self, stage: str, data: bytes, rows: np.ndarray, **how: Any) -> tuple[dict[str, Any], np.ndarray]:
        """Send digits in random order. Return the program's answer, and the entry's labels in the order of `rows`."""
        order, limits = np.random.default_rng().permutation(len(rows)), self.olympics.limits
        start, call = time_limits.cpu(limits.start_seconds), time_limits.cpu(limits.call_seconds)
        answer = self._ask(stage, data, rows[order], start_seconds=start, call_seconds=call, **how)
        given = np.asarray(answer["labels"])
        if given.shape != order.shape:
            raise EntryRefused("the measuring program gave no sound answer; tell your instructor")
        labels = np.empty(len(rows), np.int64)
        labels[order] = given
        return answer, labels

    def measure_latency(self, data: bytes) -> dict[str, Any]:
        """Time the entry and the baseline in one new process. Return the seconds that each takes in each round."""
        return self._ask("latency", data, self._fresh(), rounds=self.olympics.referee.rounds)

    def _counted(self, split: str, right: np.ndarray) -> tuple[int, int, float]:
        """Return the number of correct answers, of digits, and of independent digits that these copies are worth."""
        return int(right.sum()), len(right), effective_rows(right, self.originals[split])

    def _measure_accuracy(self, data: bytes) -> tuple[dict[str, tuple[int, int, float]], float]:
        """Return the counts of each split (see `_counted`), and the agreement between batches.

        If an entry fails on the private split, the reason stays secret.
        """
        images, truth = self.public
        labels, agreement = self.answers(data, images)
        counted = {"public": self._counted("public", labels == truth)}
        if self.private:
            images, truth = self.private
            try:
                labels, again = self.answers(data, images)
            except EntryRefused:
                raise EntryRefused(PRIVATE) from None
            counted["private"], agreement = self._counted("private", labels == truth), min(agreement, again)
        return counted, agreement

    def _fresh(self) -> np.ndarray:
        """Return new digits for timing and memory.

        An entry cannot recognise them, or distinguish them from private digits.
        """
        return digits.fresh_digits(8 * self.olympics.task.batch)[0]

    def measure_memory(self, data: bytes) -> dict[str, dict[str, int]]:
        """Return the memory that each stage takes, for entry and baseline.

        The two models are measured in separate processes, in random order.
        """
        models = [("entry", data), ("baseline", self.baseline)]
        random.shuffle(models)
        rows, tiny = self._fresh(), digits.tiny_model()
        return {name: self._ask("memory", content, rows, tiny) for name, content in models}

    def _ask(self, stage: str, data: bytes, rows: np.ndarray, tiny: bytes = b"", **more: Any) -> dict[str, Any]:
        """Send one question to the measuring program and return its answer. If the entry fails, raise EntryRefused."""
        limits = self.olympics.limits
        question = json.dumps({"stage": stage, "batch": self.olympics.task.batch, **more}).encode()
        contents = {"entry": data, "baseline": self.baseline, "tiny": tiny, "question": question}
        arrays: dict[str, Any] = {name: np.frombuffer(content, np.uint8) for name, content in contents.items()}
        packed = io.BytesIO()
        np.savez(packed, rows=rows, **arrays)
        memory = int(limits.memory_mb * 2**20)
        confines = bubblewrap.Limits(
            memory=memory,
            address_space=memory + 4 * 2**30,  # space for libraries and reserved ranges; `memory` limits actual use
            cpu_seconds=math.ceil(limits.seconds),
            wall_seconds=2 * limits.seconds,
            niceness=0,  # normal priority, because the program is timed
        )
        return _answer(self.run(packed.getvalue(), confines), limits)


def _answer(finished: bubblewrap.Finished, limits: EntryLimits) -> dict[str, Any]:
    if finished.limit:
        raise EntryRefused(f"measuring it was stopped: {finished.limit}")
    if finished.code == 0:
        try:
            answer = json.loads(finished.output)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            if "unfit" in answer:
                raise EntryRefused(str(answer["unfit"]))
            return answer
    if finished.code in OVERTIME:
        most = time_limits.cpu(limits.start_seconds)
        raise EntryRefused(f"it works longer than {most:.3g} s to be loaded and to answer once")
    if b"bad_alloc" in finished.errors or b"MemoryError" in finished.errors:
        raise EntryRefused(f"it needs more memory than the {limits.memory_mb:g} MB there are for an entry")
    raise EntryRefused(f"the runtime broke down on it (exit code {finished.code})")


def median_ratio(seconds: Mapping[str, Sequence[float]]) -> float:
    """Return the median, over the rounds of `Referee.measure_latency`, of the ratio of entry to baseline."""
    return statistics.median(a / b for a, b in zip(seconds["entry"], seconds["baseline"], strict=True))
