"""Helpers for module 06: energy counters that follow a stated power model, and a simulated processor.

`ModelledCounters` runs this file as a script, in a separate process that updates the counter. On Linux, the script
imports only the standard library.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

RANGE = 262_143_328_850  # µJ, a usual range on laptops
MODEL = "a model, not a measurement"


def powercap(zones: Mapping[str, tuple[str, object, object]]) -> Path:
    """Create a temporary folder that is laid out like /sys/class/powercap, and return its path.

    `zones` maps the name of each subfolder to the contents of its files name, energy_uj and max_energy_range_uj.
    """
    root = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for folder, content in zones.items():
        (root / folder).mkdir()
        for file, text in zip(("name", "energy_uj", "max_energy_range_uj"), content, strict=True):
            (root / folder / file).write_text(f"{text}\n")
    return root


def processor_time(process: int) -> float:
    """Return the processor time in seconds that all threads of a process have used. `process` is the process's id."""
    if sys.platform == "linux":
        return time.clock_gettime(~process << 3 | 2)  # see clock_getcpuclockid(3); psutil counts in steps of 10 ms
    import psutil

    times = psutil.Process(process).cpu_times()
    return float(times.user + times.system)


class ModelledCounters:
    """A fake powercap folder at `root`, with an energy counter that follows a power model of this process.

    In the model, the processor draws `idle` W at all times, and `per_core` W more for each core that this process keeps
    busy. A separate process updates the counter every `update` seconds, as hardware updates a real counter. After the
    first 3 J, the counter overflows and starts again from 0. The counter's name and `label` state that the energy is
    modelled. Use the object in a ``with`` block, or call `close` at the end.
    """

    def __init__(self, idle: float = 5.0, per_core: float = 6.0, update: float = 1e-3) -> None:
        self.idle, self.per_core = idle, per_core
        self.label = f"{MODEL}: {idle:g} W idle, {per_core:g} W more for each core that this process keeps busy"
        from tinybench.support.basics.child_process import ChildProcess  # the script imports the standard library only

        first = RANGE - 3_000_000
        self.root = powercap({"intel-rapl:0": (f"package-0 ({MODEL})", first, RANGE)})
        self._start, self._used = time.perf_counter(), time.process_time()
        numbers = (os.getpid(), self._start, self._used, idle, per_core, update, first)
        file = self.root / "intel-rapl:0" / "energy_uj"
        # -P: no file in this folder may shadow a module of the standard library
        command = [sys.executable, "-P", __file__, str(file), *map(repr, numbers)]
        self._mover = ChildProcess(command, "the process that moves the modelled counter", patience=0)
        atexit.register(self.close)
        while int(file.read_text()) == first:
            if self._mover.process.poll() is not None:
                raise self._mover.ended()
            time.sleep(0.001)

    def __enter__(self) -> ModelledCounters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the process that updates the counter."""
        atexit.unregister(self.close)
        self._mover.close()

    def truth(self) -> float:
        """Return the energy since the start in joules, computed from the power model and not read from the counter."""
        used = time.process_time() - self._used
        return self.idle * (time.perf_counter() - self._start) + self.per_core * used

    def watch(self, model: Any) -> CpuTimed:
        """Return a function that calls the model and records the processor time of each call.

        The true energy of the calls is computed from these times.
        """
        from tinybench.latency import as_callable

        return CpuTimed(as_callable(model), self.per_core)

    def result_of(self, measure: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call `measure`, and return its result. Mark the result as modelled, not measured, in its metadata.

        If a busy machine updates the counter too late for a reading, `measure` raises RuntimeError. In this case,
        repeat the measurement with longer readings.
        """
        for min_reading in (0.1, 0.2, 0.4, 0.8, 1.6):
            try:
                result = measure(*args, min_reading=min_reading, **options)
                break
            except RuntimeError:
                if min_reading > 1:
                    raise
        result.metadata |= {"measured": False, "modelled": self.label}
        return result


class CpuTimed:
    """A function that records the processor time of each of its calls."""

    def __init__(self, call: Callable[[Any], Any], per_core: float) -> None:
        self.call, self.per_core, self.seconds = call, per_core, list[float]()

    def __call__(self, x: Any) -> Any:
        """Call the function, and append its processor time in seconds to `seconds`."""
        start = time.process_time()
        answer = self.call(x)
        self.seconds.append(time.process_time() - start)
        return answer

    def true_energy(self, result: Any) -> float:
        """Return the true joules per inference, without idle power, for the calls from which `result` was measured."""
        calls = result.count * result.metadata["inferences_per_reading"]
        return float(self.per_core * sum(self.seconds[-calls:]) / calls)


class BesideTruth:
    """A wrapper around an energy meter. Each reading also records the true energy according to the power model."""

    def __init__(self, meter: Any, counters: ModelledCounters) -> None:
        self.meter, self.counters = meter, counters
        self.pairs = list[tuple[float, float]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.meter, name)

    def read(self) -> float:
        """Return a reading of the meter, and record it together with the true energy."""
        self.pairs.append((self.meter.read(), self.counters.truth()))
        return float(self.pairs[-1][0])

    def error(self) -> float:
        """Return the relative error of the energy between the first and the last reading. Then delete all readings."""
        (first, true_first), (last, true_last) = self.pairs[0], self.pairs[-1]
        self.pairs.clear()
        return (last - first) / (true_last - true_first) - 1


class Toy:
    """A simulated processor with an energy meter. A call takes 2 ms and uses 50 mJ in addition to the idle energy.

    The idle power is 10 W, and it rises by `warming` W each second. A reading of the meter takes `reading` seconds. A
    sleep lasts 20 % longer than requested.
    """

    unit, measured = "J", True

    def __init__(self, warming: float = 0.0, measured: bool = True, stuck: Sequence[int] = ()) -> None:
        self.warming, self.measured, self.details = warming, measured, {"meter": "toy"}
        self.idle, self.now, self.joules, self.shown = 10.0, 0.0, 7.0, 7.0
        self.inputs, self.slept, self.stuck, self.reading = list[Any](), list[float](), stuck, 0.0

    def read(self) -> float:
        """Return the meter's value in joules. While the number of sleeps so far is in `stuck`, it does not change."""
        if len(self.slept) not in self.stuck:
            self.shown = self.joules
        self._pass(self.reading)
        return self.shown

    def clock(self) -> float:
        """Return the simulated seconds since the toy was created."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the simulated time by 1.2 times `seconds`, because a busy system sleeps too long."""
        self.slept.append(seconds)
        self._pass(1.2 * seconds)

    def call(self, x: Any) -> None:
        """Simulate a call of a model: record the input, and advance the simulated time and energy."""
        self.inputs.append(x)
        self._pass(0.002, 0.05)

    def _pass(self, seconds: float, joules: float = 0.0) -> None:
        watts = self.idle + self.warming * (self.now + seconds / 2)
        self.now += seconds
        # an estimate contains the energy of calls only
        self.joules += joules + (watts * seconds if self.measured else 0.02 * bool(joules))


def digits_and_network() -> tuple[Any, bytes]:
    """Return images of digits (float32, 64 columns), and the bytes of an ONNX network that classifies these images.

    The network has two hidden layers.
    """
    import numpy as np
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    classifier = MLPClassifier((256, 256), tol=1, n_iter_no_change=3, random_state=0).fit(images, digits.target)
    return images, to_onnx(classifier, images[:1], options={"zipmap": False}).SerializeToString()


def session_with_threads(network: bytes, threads: int) -> Any:
    """Return an ONNX Runtime session that runs on `threads` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])


def thread_times(
    network: bytes, x: Any, rounds: int = 10, calls: int = 100
) -> dict[int, tuple[list[float], list[float]]]:
    """Return the wall times and the processor times of a call, in seconds, with one thread and with two.

    Each round measures both sessions, so that other programs disturb both alike. A rest before each measurement lets
    threads of ONNX Runtime and BLAS come to an end of their spinning, which would count as processor time.
    """
    sessions = {threads: session_with_threads(network, threads) for threads in (1, 2)}
    times: dict[int, tuple[list[float], list[float]]] = {threads: ([], []) for threads in sessions}
    for _ in range(rounds):
        for threads, session in sessions.items():
            time.sleep(0.05)
            for _ in range(20):
                session.run(None, {"X": x})
            wall, processor = time.perf_counter(), time.process_time()
            for _ in range(calls):
                session.run(None, {"X": x})
            processor, wall = time.process_time() - processor, time.perf_counter() - wall
            times[threads][0].append(wall / calls)
            times[threads][1].append(processor / calls)
    return times


def _move(file: str, *numbers: str) -> None:
    parent, start, used, idle, per_core, update, first = map(float, numbers)
    target = os.open(file, os.O_WRONLY)
    following = time.perf_counter()
    while os.getppid() == parent:
        joules = idle * (time.perf_counter() - start) + per_core * (processor_time(int(parent)) - used)
        # always of the same width, so that a reader finds a complete number
        os.pwrite(target, f"{(int(first) + int(1e6 * joules)) % RANGE:012d}\n".encode(), 0)
        following += update
        time.sleep(max(0.0, following - time.perf_counter()))


if __name__ == "__main__":
    _move(*sys.argv[1:])
