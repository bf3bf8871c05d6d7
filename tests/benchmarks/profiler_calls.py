"""How much longer a program of small calls takes under cProfile, and what that says of its shares: prints JSON.

Run as a script, by any Python, which needs its standard library alone.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import time


def one_more(x: int) -> int:
    return x + 1


def calling() -> int:
    """Small calls."""
    x = 0
    for _ in range(4000):
        x = one_more(x)
    return x


def looping() -> int:
    """The same amount of work without calls."""
    x = 0
    for k in range(8000):
        x += k & 1
    return x


def timed(rounds: int) -> tuple[float, float]:
    """Return the seconds of both."""
    spent = [0.0, 0.0]
    for _ in range(rounds):
        for k, piece in enumerate((calling, looping)):
            began = time.perf_counter()
            piece()
            spent[k] += time.perf_counter() - began
    return spent[0], spent[1]


def compare(pairs: int, rounds: int = 40) -> dict[str, object]:
    """Return, for each pair of runs, the factor by which cProfile made it longer, the true share and the told one."""
    timed(rounds)
    factors, true, told = [], [], []
    for _ in range(pairs):
        plain = timed(rounds)
        profiler = cProfile.Profile()
        profiler.enable()
        slowed = timed(rounds)
        profiler.disable()
        times = {name: row[3] for (_, _, name), row in pstats.Stats(profiler).stats.items()}  # type: ignore[attr-defined]
        factors.append(sum(slowed) / sum(plain))
        true.append(plain[0] / sum(plain))
        told.append(times["calling"] / (times["calling"] + times["looping"]))
    return {"python": sys.version.split()[0], "factors": factors, "true": true, "told": told}


if __name__ == "__main__":
    print(json.dumps(compare(int(sys.argv[1]))))
