"""Drift monitoring of a server. The server records requests and answers; a separate process looks for drift in both."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.support.basics.numbers import number_of
from tinybench.tools.drifting import NewRows, Reference
from tinybench.tools.drifting.detectors import DETECTORS, make_detector
from tinybench.tools.drifting.reference import labels_of
from tinybench.tools.serving.model_worker import Facts, end_with
from tinybench.tools.serving.worker_pool import Job, Pool

DETECTOR = next(iter(DETECTORS))
LEVEL = 0.01  # probability of a false alarm in a run of the server, for inputs and for predictions each
WINDOW = 1000  # number of recent compared rows whose distance from the reference is given by the PSI (see Found)
BACKLOG = 10_000  # rows that may wait; beyond that, the oldest rows are only counted, not compared
AT_ONCE = 64 * 4096  # maximum rows × features in one analysis, which takes about 0.1 s in the separate process
LABELS = 100  # number of labels that /metrics lists by name; all others count as "other"


@dataclass
class Found:
    """The drift results so far.

    `labels` counts the answers by label, `rows` is the number of rows read, and `compared` the number of those that
    were compared with the reference, because they are nearly independent. `evidence`, `psi` (the population stability
    index) and `alarm` each have one entry for ``"inputs"`` and one for ``"predictions"``. `features` holds the evidence
    of the features that moved most.
    """

    labels: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    compared: int = 0
    evidence: dict[str, float] = field(default_factory=dict)
    psi: dict[str, float] = field(default_factory=dict)
    alarm: dict[str, bool] = field(default_factory=dict)
    features: dict[str, float] = field(default_factory=dict)


class Looker:
    """A drift analysis, run in the separate process, that keeps its state between calls."""

    def __init__(self, reference: Reference, detector: str = DETECTOR) -> None:
        self.reference, self.detector, self.found = reference, make_detector(detector, reference, LEVEL), Found()
        self.new_rows, watched = NewRows(reference), ["inputs", "predictions"] if reference.labels else ["inputs"]
        self.recent = {what: deque[np.ndarray](maxlen=WINDOW) for what in watched}

    def look(self, rows: np.ndarray | None, bodies: list[bytes], users: Sequence[str | None] = ()) -> Found:
        """Add rows, the bodies of their answers and the user of each row to the analysis. Return the results so far.

        Answers without rows, such as all answers if `rows` is None, are only counted by label.
        """
        found, outputs = self.found, [output for body in bodies for output in json.loads(body)["outputs"]]
        labels = _labels(outputs)
        for label in labels:
            name = label if label in found.labels or len(found.labels) < LABELS else "other"
            found.labels[name] = found.labels.get(name, 0) + 1
        if rows is None:
            return found
        batch = self.new_rows.batch(rows, labels[: len(rows)], users or None)
        found.rows, found.compared = found.rows + len(rows), found.compared + len(batch.rows)
        self.detector.compare(batch)
        found.alarm, found.evidence = dict(self.detector.alarms), dict(self.detector.evidence)
        found.features = dict(self.detector.features)
        bins = {"inputs": batch.bins, "predictions": batch.places}
        for what, recent in self.recent.items():
            recent.extend(bins[what])
            if recent:
                found.psi[what] = self._psi(what)
        return found

    def _psi(self, what: str) -> float:
        """Return the PSI of the recent predictions, or the largest PSI among the columns of the recent inputs."""
        from tinybench.production import psi  # imported here, as only a server with a reference needs module 16

        recent, reference = np.array(self.recent[what]), self.reference
        if what == "predictions":
            counts = list(reference.labels.values())
            return psi(counts, np.bincount(recent[:, 0], minlength=len(counts)).tolist())
        columns = zip(reference.inputs, recent.T, strict=True)
        return max(
            psi(f.grouped(f.counts).tolist(), f.grouped(np.bincount(column, minlength=len(f.counts))).tolist())
            for f, column in columns
        )


def _labels(outputs: list[Any]) -> list[str]:
    """Return the label of each output. If the outputs differ in shape, process each output separately."""
    try:
        return labels_of(outputs) if outputs else []
    except ValueError:
        return [labels_of([output])[0] for output in outputs]


_looker: Looker


def _begin(reference: Reference, detector: str, parent: int) -> None:
    global _looker
    for name in ("SIGINT", "SIGTERM"):  # both may reach every process of a terminal; the server ends this process
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(10)  # requests have priority
    threading.Thread(target=end_with, args=[parent], daemon=True).start()
    _looker = Looker(reference, detector)


def _look(rows: np.ndarray | None, bodies: list[bytes], users: list[str | None]) -> Found:
    return _looker.look(rows, bodies, users)


class Drift:
    """A drift monitor that passes requests and answers to a separate process and shows the results on /metrics.

    Recording a request only appends it to a queue. Passing data to the separate process wakes threads that compete for
    the interpreter lock of this process, so data are passed only once a second and when /metrics is read.
    """

    def __init__(self, reference: Reference, detector: str = DETECTOR) -> None:
        self.reference, self.found, self.skipped = reference, Found(), 0
        self.noted: deque[tuple[np.ndarray, bytes, str | None]] = deque()
        self.waiting = 0
        self.looking: Future[Found] | None = None
        spawn = multiprocessing.get_context("spawn")  # a fork would lose the threads of this process
        start = (reference, detector, os.getpid())
        self.process: ProcessPoolExecutor | None = ProcessPoolExecutor(1, spawn, initializer=_begin, initargs=start)

    def note(self, rows: np.ndarray, body: bytes, user: str | None = None) -> None:
        """Record a request's rows, the body of its answer and, if known, its user for the next analysis."""
        if self.process is None:
            return
        self.noted.append((rows, body, user))
        self.waiting += len(rows)

    def tick(self) -> None:
        """If no analysis is running, fetch the result of the last one and submit the requests recorded since then."""
        if self.looking is not None and not self.looking.done():
            return
        looking, self.looking = self.looking, None
        try:
            if looking is not None:
                self.found = looking.result()
            if self.noted and self.process is not None:
                self.looking = self.process.submit(_look, *self._batch())
        except Exception as error:  # the process was killed, or could not read an answer
            print(f"tinybench: drift is not watched any more: {error}", file=sys.stderr)
            self.close()

    def _batch(self) -> tuple[np.ndarray | None, list[bytes], list[str | None]]:
        most, rows = max(1, AT_ONCE // len(self.reference.inputs)), list[np.ndarray]()
        bodies, users = list[bytes](), list[str | None]()
        if self.waiting > BACKLOG:  # skips rows by arrival, so the choice does not depend on their content
            while self.waiting > BACKLOG // 2:
                asked, body, _ = self.noted.popleft()
                self.waiting, self.skipped = self.waiting - len(asked), self.skipped + len(asked)
                bodies.append(body)
            return None, bodies, users
        while self.noted and most > 0:
            asked, body, user = self.noted.popleft()
            self.waiting, most = self.waiting - len(asked), most - len(asked)
            rows.append(asked.reshape(len(asked), -1))
            bodies.append(body)
            users += [user] * len(asked)
        return np.concatenate(rows), bodies, users

    def close(self) -> None:
        """End the separate process and discard the recorded requests."""
        process, self.process = self.process, None
        self.noted.clear()
        if process is not None:
            process.shutdown(wait=True, cancel_futures=True)

    def collect(self) -> Iterator[Any]:
        """Yield the drift metrics for /metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        self.tick()
        found = self.found
        predictions = CounterMetricFamily(
            "tinybench_predictions", "Rows by the label that the model gave", labels=["label"]
        )
        for label, count in found.labels.items():
            predictions.add_metric([label], count)
        yield predictions
        for name, about, values in (
            ("evidence", "E value of a change against the reference; 1 / level is an alarm", found.evidence),
            ("psi", f"Largest PSI of the last {WINDOW} compared rows; says little without its threshold", found.psi),
            ("alarm", f"1 once the evidence has reached {1 / LEVEL:g}", found.alarm),
        ):
            family = GaugeMetricFamily(f"tinybench_drift_{name}", about, labels=["what"])
            for what, value in values.items():
                family.add_metric([what], float(value))
            yield family
        moved = GaugeMetricFamily(
            "tinybench_drift_feature", "E value of the features that moved most", labels=["feature"]
        )
        for name, evidence in found.features.items():
            moved.add_metric([name], float(evidence))
        yield moved
        yield CounterMetricFamily("tinybench_drift_rows", "Rows read to look for drift", found.rows)
        yield CounterMetricFamily(
            "tinybench_drift_compared", "Rows compared with the reference: nearly independent ones", found.compared
        )
        yield GaugeMetricFamily(
            "tinybench_drift_spacing", "Least distance between two compared rows", float(self.reference.spacing)
        )
        yield CounterMetricFamily("tinybench_drift_skipped", "Rows that came too fast to be read", self.skipped)
        yield GaugeMetricFamily(
            "tinybench_drift_watching", "Whether somebody looks at drift: 1, or 0", float(self.process is not None)
        )


async def reference_for(path: Path, pool: Pool, facts: Facts) -> Reference:
    """Load a drift reference. If it is an .npz file without outputs, compute the outputs with the served model.

    If the rows of the reference and of the model differ in length, raise ValueError.
    """
    if path.suffix != ".npz":
        reference = Reference.load(path)
    else:
        from tinybench.support.basics.array_files import load_arrays

        arrays = load_arrays(path)
        outputs = arrays.get("outputs")
        if outputs is None:
            outputs = np.array(await _answers(path, arrays["X"].astype(facts.dtype), pool))
        reference = Reference.of(arrays["X"], outputs, users=arrays.get("users"))
    row = [size for size in facts.row if size is not None]
    if len(row) == len(facts.row) and int(np.prod(row)) != len(reference.inputs):
        raise ValueError(
            f"{path} has {number_of(len(reference.inputs), 'number')} a row, and the model takes {int(np.prod(row))}"
        )
    return reference


async def _answers(path: Path, rows: np.ndarray, pool: Pool) -> list[Any]:
    outputs = []
    for begin in range(0, len(rows), 64):
        [(code, body)] = await pool.run([Job(rows[begin : begin + 64])])
        said = json.loads(body)
        if code != 200:
            raise ValueError(f"the model cannot answer the rows of {path}: {said['detail']}")
        outputs += said["outputs"]
    return outputs
