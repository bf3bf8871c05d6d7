"""The referee: measures an entry beside the baseline, inside the sandbox, and believes no other number."""

from __future__ import annotations

import fcntl
import io
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import tinybench
from autograder import sandbox
from autograder.leaderboard import task
from autograder.leaderboard.entry import Refused
from autograder.leaderboard.events import Olympics

PROGRAM = Path(__file__).with_name("measure.py")
PLACE = "/referee"
# memory comes in whole pages and arenas: of a small model's, a few are more than a hundredth
MEMORY_FLOOR, MEMORY_GRAIN = 0.01, 4 * 4096
LOCK = Path(tempfile.gettempdir()) / "tinybench-referee.lock"

Progress = Callable[[str], object]
Run = Callable[[bytes, sandbox.Limits], sandbox.Finished]


def confined(stdin: bytes, limits: sandbox.Limits) -> sandbox.Finished:
    """Run the measuring program in the sandbox: no network, an empty folder, nobody else's files."""
    shown = {f"{PLACE}/measure.py": PROGRAM, f"{PLACE}/tinybench": Path(tinybench.__file__).parent}
    argv = [sys.executable, "-sB", f"{PLACE}/measure.py"]
    return sandbox.run(argv, stdin, room=sandbox.Room(shown), limits=limits)


def unconfined(stdin: bytes, limits: sandbox.Limits) -> sandbox.Finished:
    """Run the measuring program as it is, for a student who rehearses an own model without bubblewrap."""
    folder = str(Path(tinybench.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], input=stdin, capture_output=True, env=environment, check=False
    )
    return sandbox.Finished(done.returncode, done.stdout, done.stderr)


@contextmanager
def host_lock(path: Path = LOCK) -> Iterator[None]:
    """Hold this host's lock: one measurement at a time, however many workers and leaderboards there are."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except PermissionError:  # another user's file in a sticky folder must be opened without O_CREAT
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
        self.public = task.public_split(olympics.task.public_rows)
        self.private = None if seed is None else task.private_split(olympics.task.private_rows, seed)

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
        effort = self.olympics.referee
        processes = effort.processes
        progress("waiting for the machine")
        with host_lock():
            progress("reading digits")
            accuracy, agreement = self._read(data)
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
            "accuracy": accuracy,
        }
        return scores, {"latency": timed, "memory": peaks, "agreement": agreement}

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
        order = np.random.default_rng().permutation(len(rows))
        answer = self._ask("answers", data, rows=rows[order], call_seconds=self.olympics.limits.call_seconds)
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
        return self._ask("latency", data, rounds=self.olympics.referee.rounds)

    def _read(self, data: bytes) -> tuple[dict[str, tuple[int, int]], float]:
        """Count correct answers on both splits."""
        splits = {"public": self.public} | ({"private": self.private} if self.private else {})
        labels, agreement = self.answers(data, np.concatenate([images for images, _ in splits.values()]))
        counted, start = {}, 0
        for name, (images, truth) in splits.items():
            right = int((labels[start : start + len(images)] == truth).sum())
            counted[name] = (right, len(images))
            start += len(images)
        return counted, agreement

    def _weigh_both(self, data: bytes) -> dict[str, dict[str, int]]:
        """Measure the memory of entry and baseline, each in a process of its own, in random order."""
        models = [("entry", data), ("baseline", self.baseline)]
        random.shuffle(models)
        return {name: self._ask("memory", content, tiny=task.tiny_model()) for name, content in models}

    def _ask(self, stage: str, data: bytes, rows: Any = None, tiny: bytes = b"", **more: Any) -> dict[str, Any]:
        """Put one question to the measuring program."""
        limits = self.olympics.limits
        batch = self.olympics.task.batch
        if rows is None:
            chosen = np.random.default_rng().integers(len(self.public[0]), size=8 * batch)
            rows = self.public[0][chosen]
        question = json.dumps({"stage": stage, "batch": batch, **more}).encode()
        contents = {"entry": data, "baseline": self.baseline, "tiny": tiny, "question": question}
        arrays: dict[str, Any] = {name: np.frombuffer(content, np.uint8) for name, content in contents.items()}
        packed = io.BytesIO()
        np.savez(packed, rows=rows, **arrays)
        allowed = int(limits.memory_mb * 2**20)
        finished = self.run(
            packed.getvalue(),
            sandbox.Limits(
                memory=allowed,
                address_space=allowed + 4 * 2**30,  # libraries and reserved ranges; what is used, `memory` limits
                cpu_seconds=math.ceil(limits.seconds),
                wall_seconds=2 * limits.seconds,  # on a busy machine waiting costs no entry its place
            ),
        )
        return _answer(finished, allowed)


def _answer(finished: sandbox.Finished, allowed: int) -> dict[str, Any]:
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
    if b"bad_alloc" in finished.errors or b"MemoryError" in finished.errors:
        raise Refused(f"it needs more memory than the {allowed / 2**20:.0f} MB there are for an entry")
    raise Refused(f"the runtime broke down on it (exit code {finished.code})")


def median_ratio(race: Mapping[str, Sequence[float]]) -> float:
    """Return the median over the rounds of a `Referee.race` of entry to baseline."""
    return statistics.median(a / b for a, b in zip(race["entry"], race["baseline"], strict=True))
