"""A module on a slow machine: stopped three quarters of the time, beside busy processes.

``python -m tests.notebooks.slow [--speed 0.25] [--busy 4] NN_name ...`` runs each notebook with its solutions.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil

from tests.course.perfect_student import ROOT

SLICE = 0.04  # seconds: runs for a part of each, is stopped for the rest


def _spin() -> None:
    while True:
        pass


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep some processes busy meanwhile."""
    spinning = [multiprocessing.get_context("spawn").Process(target=_spin, daemon=True) for _ in range(count)]
    for each in spinning:
        each.start()
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.join()


def throttle(tree: psutil.Process, speed: float, over: threading.Event) -> None:
    """Let a process and its children run for a part of the time only."""
    while not over.is_set():
        with contextlib.suppress(psutil.NoSuchProcess):
            theirs = tree.children(recursive=True)
            _signal(theirs, signal.SIGSTOP)
            time.sleep(SLICE * (1 - speed))
            _signal(theirs, signal.SIGCONT)
        time.sleep(SLICE * speed)


def _signal(processes: list[psutil.Process], what: int) -> None:
    for each in processes:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(each.pid, what)


def main() -> int:
    """Run the notebooks, and print how each went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", metavar="NN_name")
    parser.add_argument("--speed", type=float, default=0.25)
    parser.add_argument("--busy", type=int, default=4)
    options = parser.parse_args()
    wrong = 0
    for name in options.modules:
        source = next((ROOT / "modules").glob(f"{name}*/*.ipynb"))
        started, over = time.monotonic(), threading.Event()
        with busy(options.busy):
            run = subprocess.Popen([sys.executable, "-m", __spec__.name.rpartition(".")[0] + ".once", source])
            slower = threading.Thread(target=throttle, args=(psutil.Process(run.pid), options.speed, over))
            slower.start()
            code = run.wait()
            over.set()
            slower.join()
        wrong += bool(code)
        print(f"{source.stem:<16} {'FAILS' if code else 'ok'}  {time.monotonic() - started:.0f} s", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
