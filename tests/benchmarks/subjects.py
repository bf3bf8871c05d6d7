"""What every tool measures: callables whose true ratios are known.

The file is also asv's benchmark of them (`time_subject`), pytest-benchmark's (`test_subject`) and, as a script, pyperf's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

ITERATIONS = {"A": 2500, "A again": 2500, "A + 2 %": 2550, "A + 5 %": 2625}
GATED = {"short": 2500, "long": 65_000}  # about 0.2 ms and 5 ms
CHOICE = "TINYBENCH_SUBJECTS"  # the environment's word for the callables of one length, see `calls_of`


def work(iterations: int, seed: int = 1) -> int:
    """Real work in proportion to `iterations`: a linear congruential generator."""
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return seed


def nothing(_: Any = None) -> None:
    """Take about 50 ns, all of them for the call itself."""


# what makes A of a size, the sizes of A and of what is longer by 1 %, or by 0.5 % at 0.2 ms
LENGTHS: dict[str, tuple[Callable[[int], Callable[..., Any]], tuple[int, ...]]] = {
    "50 ns": (lambda _: nothing, (0,)),
    "1 µs": (lambda items: partial(sum, (1,) * items), (300, 303)),
    "20 µs": (lambda steps: partial(work, steps), (280, 283)),
    "0.2 ms": (lambda steps: partial(work, steps), (2800, 2814)),
    "20 ms": (lambda steps: partial(work, steps), (280_000, 282_800)),
}


def calls_of(length: str | None) -> dict[str, Callable[..., Any]]:
    """Return the callables of a length, the same object twice and a longer one; those of `ITERATIONS` for None."""
    if length is None:
        return {name: partial(work, iterations) for name, iterations in ITERATIONS.items()}
    make, (size, *more) = LENGTHS[length]
    same = make(size)
    return {"A": same, "A again": same} | ({"A + more": make(*more)} if more else {})


CALLS = calls_of(os.environ.get(CHOICE))


def __getattr__(name: str) -> Callable[..., Any]:
    """Return what `gates` judges: ``short_6`` is about 0.2 ms of work and 6 % more, ``model_short_6`` makes a model of it."""
    length, _, percent = name.removeprefix("model_").partition("_")
    if length not in GATED or not percent.isdigit():
        raise AttributeError(name)
    call = partial(work, GATED[length] * (100 + int(percent)) // 100)
    return (lambda: lambda _: call()) if name.startswith("model_") else call


def time_subject(name: str) -> None:
    CALLS[name]()


time_subject.params = list(CALLS)  # type: ignore[attr-defined]


def pytest_generate_tests(metafunc: Any) -> None:
    """Parametrise without pytest, which a command that only works would have to import."""
    metafunc.parametrize("name", CALLS)


def test_subject(benchmark: Any, name: str) -> None:
    benchmark(CALLS[name])


if __name__ == "__main__":
    import pyperf

    runner = pyperf.Runner()
    for name, call in CALLS.items():
        runner.bench_func(name, call)
