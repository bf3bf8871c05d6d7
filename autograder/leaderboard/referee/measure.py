"""The program that the referee runs inside the sandbox. It reads one question as bytes and writes one answer as JSON.

The program receives models and digits, but no labels. The referee compares the answers with the labels outside the
sandbox. The sandbox contains this file and `tinybench`.
"""

from __future__ import annotations

import ctypes
import io
import itertools
import json
import mmap
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.onnx import session_options
from tinybench.support.basics.numbers import number_of
from tinybench.support.engines.sessions import new_session

Model = Callable[[np.ndarray], np.ndarray]
BLOCK = 1e-3  # s; far longer than a step of most clocks
OPTIONS = session_options()
OPTIONS.log_severity_level = 4  # only fatal errors


class Unfit(Exception):
    """The entry cannot be measured. The message is shown to its author."""


def load(content: bytes) -> Model:
    """Load an ONNX model. Return a function that maps digits to scores and runs on one thread."""
    # The list of allowed operators has no custom operators, so the session gets none either.
    session = new_session(content, OPTIONS)
    feed, scores = session.get_inputs()[0].name, session.get_outputs()[-1].name
    return lambda rows: session.run([scores], {feed: rows})[0]


def batches(rows: np.ndarray, size: int) -> list[np.ndarray]:
    """Split rows into contiguous batches of equal size. Rows that do not fill the last batch are left out."""
    return [np.ascontiguousarray(rows[start : start + size]) for start in range(0, len(rows) - size + 1, size)]


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Have the kernel kill this process after `seconds` of CPU time, because Python cannot interrupt ONNX Runtime."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def answers(packed: Any, batch: int, start_seconds: float, call_seconds: float, **_: Any) -> dict[str, Any]:
    """Classify all digits three times: twice in the same batches, and once in other batches.

    Return the labels, and the fraction of labels that stays the same in the other batches.
    """
    rows = packed["rows"]
    with cpu_limit(start_seconds):
        # The first call may do work that later calls do not have to repeat.
        run = load(packed["entry"].tobytes())
        run(rows[:batch])

    def read(order: np.ndarray, size: int) -> np.ndarray:
        parts = []
        for start in range(0, len(order), size):
            part = order[start : start + size]
            began = time.thread_time()
            scores = run(rows[part])
            took = time.thread_time() - began
            if took > call_seconds:
                raise Unfit(
                    f"one call with {number_of(size, 'digit')} took {took:.2f} s; at most "
                    f"{call_seconds:.3g} s are allowed"
                )
            if scores.shape != (len(part), 10) or not np.isfinite(scores).all():
                raise Unfit(
                    f"for {number_of(len(part), 'digit')} it gave {scores.shape} scores, or some are not numbers"
                )
            parts.append(scores)
        done = np.empty((len(rows), 10), np.float32)
        done[order] = np.concatenate(parts)
        return done

    order = np.arange(len(rows))
    first, second = read(order, batch), read(order, batch)
    if not np.array_equal(first, second):
        raise Unfit("it answers the same digits differently when asked again")
    # Dynamic quantisation uses one scale for a whole batch, so a few answers may depend on the other digits, not many.
    mixed = read(np.random.default_rng().permutation(len(rows)), batch // 2 + 1)
    agree = float((mixed.argmax(1) == first.argmax(1)).mean())
    if agree < 0.97:
        raise Unfit(f"its answers depend on the other digits of the batch: only {agree:.1%} stay when these change")
    return {"labels": first.argmax(1).tolist(), "agreement": agree}


def latency(packed: Any, batch: int, rounds: int, **_: Any) -> dict[str, Any]:
    """Time the entry and the baseline in rounds. Return the seconds that each takes in each round.

    The order of the models is shuffled in each round, and the digits change from call to call.
    """
    from tinybench.latency import measure_latencies

    stock = batches(packed["rows"], batch)
    # The clock counts this thread's CPU time. On an idle machine it agrees with the wall clock. On a busy machine it
    # stays right, whereas by the wall clock, preemption made a model appear 2.6 times as fast as itself.
    how: Any = {"measurement_runs": rounds, "mode": "hot", "clock": time.thread_time}
    measured = measure_latencies(opponents(packed, stock), stock[0], **how)
    return compared({name: result.values for name, result in measured.items()})


def opponents(packed: Any, stock: list[np.ndarray]) -> dict[str, Callable[[object], object]]:
    """Return the models to time: entry and baseline on the next digits in turn, and the entry on the same ones.

    What is passed to them is ignored.
    """

    def turning(run: Model, own: Iterable[np.ndarray]) -> Callable[[object], object]:
        turn = itertools.cycle(own)
        return lambda _: run(next(turn))

    entry, baseline = load(packed["entry"].tobytes()), load(packed["baseline"].tobytes())
    return {
        "entry": turning(entry, stock), "baseline": turning(baseline, stock), "repeated": turning(entry, stock[:1]),
    }  # fmt: skip


def compared(values: dict[str, list[float]]) -> dict[str, Any]:
    """Return the seconds of entry and baseline in each round. Raise Unfit if the entry remembers its answers."""
    again = statistics.median(a / b for a, b in zip(values["repeated"], values["entry"], strict=True))
    # The processor's caches make repeated digits slightly faster. A cache of answers would make them far faster.
    if again < 0.2:
        raise Unfit(f"repeated digits take it only {again:.0%} of the time of fresh ones: it remembers answers")
    return {"entry": values["entry"], "baseline": values["baseline"], "repeated": again}


def briefly(packed: Any, batch: int, rounds: int, max_seconds: float, **how: Any) -> dict[str, Any]:
    """Classify all digits, then time the entry and the baseline on the same digits, in a single process.

    This is enough for a grade. `latency` also looks at the machine, which takes longer than these few calls.
    """
    read = answers(packed, batch, **how)
    models = opponents(packed, batches(packed["rows"], batch))
    for run in models.values():
        run(None)  # the first call is slower
    values: dict[str, list[float]] = {name: [] for name in models}
    until = time.thread_time() + max_seconds
    while not values["entry"] or (len(values["entry"]) < rounds and time.thread_time() < until):
        for name in random.sample([*models], len(models)):
            values[name].append(one_call(models[name]))
    return read | compared(values)


def one_call(run: Callable[[object], object]) -> float:
    """Return the CPU time of a call in s, the mean of as many calls as take a millisecond."""
    began, calls, took = time.thread_time(), 0, 0.0
    while took < BLOCK:
        run(None)
        calls, took = calls + 1, time.thread_time() - began
    return took / calls


def touch_libraries() -> None:
    """Read a byte of each page of all mapped libraries.

    Otherwise the number of pages that the kernel maps depends on the host's cache, which changed the measured memory of
    a small model by a tenth.
    """
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, rights, *_, name = line.split(maxsplit=5)
        if ".so" in name and rights.startswith("r"):
            first, end = (int(address, 16) for address in span.split("-"))
            for address in range(first, end, mmap.PAGESIZE):
                ctypes.string_at(address, 1)


def memory(packed: Any, batch: int, **_: Any) -> dict[str, Any]:
    """Return the bytes by which the peak of each stage exceeds the memory in use before the first stage.

    The stages are loading the entry, the first call, the second call, and a steady state of twenty calls.
    """
    from tinybench.support.footprint.high_water_mark import read_status, reset_peak

    stock = batches(packed["rows"], batch)
    entry = packed["entry"].tobytes()
    load(packed["tiny"].tobytes())(stock[0])  # the runtime's own memory does not count for a model
    touch_libraries()
    # Freed memory that stays with the process would be reused without being counted: as much as a whole small model.
    ctypes.CDLL(None).malloc_trim(0)
    before = read_status()["VmRSS"]
    stages: dict[str, int] = {}

    def stage(name: str, work: Callable[[], object]) -> Any:
        reset_peak()
        made = work()
        stages[name] = max(0, read_status()["VmHWM"] - before)
        return made

    run = stage("load", lambda: load(entry))
    stage("first call", lambda: run(stock[0]))
    stage("second call", lambda: run(stock[1 % len(stock)]))
    # `any` does not keep the answers. Twenty answers would take more memory than a small model.
    stage("steady", lambda: any(run(rows) is None for rows in random.choices(stock, k=20)))
    return stages


def answered(content: bytes) -> str:
    """Run the function that a packed question names as its `stage`, and return the answer as JSON."""
    packed = dict(np.load(io.BytesIO(content), allow_pickle=False))
    packed["rows"] = packed["rows"].astype(np.float32)  # half of it may have been sent
    question = json.loads(packed["question"].tobytes())
    stages: dict[str, Callable[..., dict[str, Any]]] = {
        "answers": answers, "latency": latency, "briefly": briefly, "memory": memory,
    }  # fmt: skip
    try:
        answer = stages[question.pop("stage")](packed, **question)
    except Unfit as unfit:
        answer = {"unfit": str(unfit)}
    except MemoryError:
        answer = {"unfit": "it needs more memory than there is for an entry"}
    except Exception as error:  # ONNX Runtime's exceptions have no common class
        answer = {"unfit": f"it cannot be run: {' '.join(str(error).split())[:300]}"}
    return json.dumps(answer)


if __name__ == "__main__":
    sys.stdout.write(answered(sys.stdin.buffer.read()))
