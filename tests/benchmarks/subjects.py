"""What every tool measures: four callables whose true ratios are known. As a script, pyperf's benchmark of them."""

from __future__ import annotations

from functools import partial

ITERATIONS = {"A": 2500, "A again": 2500, "A + 2 %": 2550, "A + 5 %": 2625}


def work(iterations: int, seed: int = 1) -> int:
    """Real work in proportion to `iterations`: a linear congruential generator."""
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return seed


CALLS = {name: partial(work, iterations) for name, iterations in ITERATIONS.items()}

if __name__ == "__main__":
    import pyperf

    runner = pyperf.Runner()
    for name, call in CALLS.items():
        runner.bench_func(name, call)
