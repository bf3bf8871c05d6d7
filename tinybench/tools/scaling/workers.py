"""Ways of running n workers: threads, processes, and the threads inside ONNX Runtime or a BLAS library.

A way (`Way`) is a function that takes the worker counts and returns a context manager. The context manager starts all
workers before any time is measured, and yields a second function. The second function takes a worker count, the length
of a time window in s and the cores to which the workers are pinned (None: no pinning). It returns the number of calls
that all workers together finished in the window. The last call of each worker counts as the fraction of its duration
that lies in the window.
"""

from __future__ import annotations

import json
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.latency import session_call
from tinybench.onnx import OnnxModel, session_options
from tinybench.support.basics.child_process import ChildProcess
from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.onnx_files import save_graph
from tinybench.support.engines.sessions import load_session
from tinybench.support.rounds.fresh_processes import BEGINNING, fresh_task
from tinybench.tools.scaling.pinned_worker import calls_in, pinned

Measure = Callable[[int, float, "list[int] | None"], float]
Way = Callable[[Sequence[int]], AbstractContextManager[Measure]]

_CHILD = """
def run():
    import os
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the work prints is no answer
    from tinybench.tools.scaling.pinned_worker import calls_in, pinned
    call = load_factory()(*loads(task["args"]))
    call()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        start, end, cores = json.loads(line)
        with pinned(cores):
            done = calls_in(call, start, end)
        print(json.dumps(done), file=answers, flush=True)
"""


def _work(call: Callable[[], Any], orders: queue.SimpleQueue[Any], answers: queue.SimpleQueue[Any]) -> None:
    """Count the calls in each time window from `orders`, and put the number into `answers`.

    Stop when an order is None. If a call raises an exception, put the exception into `answers`.
    """
    while (order := orders.get()) is not None:
        try:
            answers.put(calls_in(call, *order))
        except BaseException as error:  # raised again where the answer is read
            answers.put(error)


def threads(call: Callable[[], Any]) -> Way:
    """Return a way of scaling (`Way`) with n Python threads, each of which repeatedly calls the given function."""

    @contextmanager
    def way(workers: Sequence[int]) -> Iterator[Measure]:
        orders: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(max(workers))]
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def measure(n: int, window: float, cores: list[int] | None) -> float:
            with pinned(cores):
                start = time.perf_counter() + 1e-3
                for todo in orders[:n]:
                    todo.put((start, start + window))
                done = [answers.get() for _ in range(n)]
            for each in done:
                if isinstance(each, BaseException):
                    raise each
            return float(sum(done))

        for todo in orders:
            threading.Thread(target=_work, args=(call, todo, answers), daemon=True).start()
        try:
            call()
            yield measure
        finally:
            for todo in orders:
                todo.put(None)

    return way


def processes(factory: Callable[..., Any] | str, *args: Any) -> Way:
    """Return a way of scaling (`Way`) with n processes, each of which repeatedly calls a function.

    In each process, ``factory(*args)`` creates the function to call. The factory is passed as in `measure_cold_start`:
    a function that imports what it needs, or ``"module:function"``. All processes start and make one call before the
    first measurement. Raise RuntimeError if a process dies.
    """
    task = fresh_task(factory, None, args, 0)

    @contextmanager
    def way(workers: Sequence[int]) -> Iterator[Measure]:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            question = Path(folder, "task.json")
            question.write_text(json.dumps({**task, "path": sys.path}), encoding="utf-8")
            command = [sys.executable, "-c", BEGINNING + _CHILD + "\nrun()\n", str(question)]
            team = [
                stack.enter_context(ChildProcess(command, f"worker process {number}", patience=0))
                for number in range(1, max(workers) + 1)
            ]
            for each in team:
                each.receive()

            def measure(n: int, window: float, cores: list[int] | None) -> float:
                start = time.perf_counter() + 2e-3
                for each in team[:n]:
                    each.send((start, start + window, cores))
                return sum(float(each.receive()) for each in team[:n])

            yield measure

    return way


def _of_setting(make: Callable[[int], tuple[Callable[[], Any], AbstractContextManager[Any]]]) -> Way:
    """Return a way of scaling (`Way`) with a single caller, whose calls use n threads internally.

    For each n, `make` returns the function to call and the context manager in which it is called.
    """

    @contextmanager
    def way(workers: Sequence[int]) -> Iterator[Measure]:
        calls = {n: make(n) for n in workers}

        def measure(n: int, window: float, cores: list[int] | None) -> float:
            call, setting = calls[n]
            with pinned(cores), setting:
                call()
                start = time.perf_counter()
                return calls_in(call, start, start + window)

        yield measure

    return way


def save_branches(path: str | Path, branches: int = 4, width: int = 256, depth: int = 4, seed: int = 0) -> Path:
    """Write an ``.onnx`` file with `branches` independent chains of matrix multiplications, whose results are added."""
    from onnx import TensorProto, helper, numpy_helper

    rng, nodes, stored, ends = np.random.default_rng(seed), [], [], []
    for branch in range(branches):
        x = "X"
        for step in range(depth):
            name = f"{branch}_{step}"
            weight = rng.normal(0, width**-0.5, (width, width)).astype(np.float32)
            stored.append(numpy_helper.from_array(weight, f"W{name}"))
            nodes.append(helper.make_node("MatMul", [x, f"W{name}"], [x := f"product{name}"]))
        ends.append(x)
    nodes.append(helper.make_node("Sum", ends, ["Y"]))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width]) for name in "XY")
    graph = helper.make_graph(nodes, "branches", [x], [y], stored)
    save_graph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), Path(path))
    return Path(path)


def intra_op(path: str | Path, X: Any) -> Way:
    """Return a way of scaling (`Way`) with n threads inside each operator of an ``.onnx`` file.

    Each call predicts all rows of X.
    """

    def make(n: int) -> tuple[Callable[[], Any], AbstractContextManager[Any]]:
        return partial(OnnxModel(path, threads=n).forward, X), nullcontext()

    return _of_setting(make)


def inter_op(path: str | Path, X: Any) -> Way:
    """Return a way of scaling (`Way`) in which ONNX Runtime distributes independent operators over n threads.

    Only a graph with branches has independent operators. Each operator runs in one thread.
    """
    import onnxruntime

    def make(n: int) -> tuple[Callable[[], Any], AbstractContextManager[Any]]:
        options = session_options()
        options.inter_op_num_threads = n
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        return partial(session_call(load_session(Path(path), options)), X), nullcontext()

    return _of_setting(make)


class _BlasThreads:
    """A context manager that limits the BLAS library to a number of threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        self.limits = threadpool_limits(self.threads, "blas")

    def __exit__(self, *_: object) -> None:
        self.limits.restore_original_limits()


def blas(call: Callable[[], Any]) -> Way:
    """Return a way of scaling (`Way`) with n threads inside the BLAS library that NumPy calls.

    When the way starts, it raises ValueError if the number of threads cannot be set, or if the library cannot use n
    threads.
    """
    from threadpoolctl import threadpool_info

    def make(n: int) -> tuple[Callable[[], Any], AbstractContextManager[Any]]:
        setting = _BlasThreads(n)
        with setting:
            had = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
        if not had:
            raise ValueError("there is no BLAS library whose threads can be set; Apple's Accelerate, for one, has none")
        if max(had) < n:
            raise ValueError(
                f"the BLAS library has {number_of(max(had), 'thread')} at most, not {n}; measure up to that"
            )
        return call, setting

    return _of_setting(make)
