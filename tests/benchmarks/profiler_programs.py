"""Programs of known shares, for the benchmark of profilers. As a script it takes a name and how many seconds to run.

Each is a round of pieces, which are timed on the way: their shares are the truth. It prints them as JSON. With a number
of ms behind, the program looks at itself, and prints what it saw as well.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from itertools import chain, islice, permutations
from pathlib import Path
from typing import Any

import numpy as np

Piece = Callable[[], Any]
rng = np.random.default_rng(0)


def named(**pieces: Piece) -> list[Piece]:
    """Return functions under their names, by which a profiler shows them."""
    for name, piece in pieces.items():
        piece.__name__ = name
        piece.__code__ = piece.__code__.replace(co_name=name, co_qualname=name)
    return list(pieces.values())


class Point:
    """Small methods."""

    def __init__(self, x: float, y: float) -> None:
        self.x, self.y = x, y

    def moved(self, by: float) -> Point:
        return Point(self.x + by, self.y - by)

    def weight(self) -> float:
        return square(self.x) + square(self.y)


def square(x: float) -> float:
    return x * x


def digit(letter: str) -> int:
    return ord(letter) - 48


def small() -> list[Piece]:
    """Functions of less than 1 µs, in pieces of half a millisecond between calls that release the interpreter's lock."""
    packed = rng.bytes(1_000_000)
    pieces = named(
        moving=lambda: sum(Point(k, 1.0).moved(2.0).weight() for k in range(500)),
        reading=lambda: sum(digit(letter) for letter in "0123456789" * 300),
        counting=lambda: sum(square(k) > 7 for k in range(4000)),
    )
    [digesting] = named(digesting=lambda: zlib.crc32(packed))
    return [each for piece in pieces for each in (piece, digesting)]


def numpy() -> list[Piece]:
    """Native code from 20 µs to 20 ms a call, much longer than the interval between two looks."""
    a, b, v = rng.normal(size=(600, 600)), rng.normal(size=(600, 600)), rng.normal(size=100_000)
    kept: dict[str, Any] = {}  # so that what is freed is freed in the piece
    return named(
        multiplying=lambda: kept.update(product=a @ b),
        sorting=lambda: kept.update(sorted=np.sort(v)),
        elementwise=lambda: np.tanh(np.exp(-(v[:20_000] ** 2))).sum(),
        indexing=lambda: sum(float(v[k]) for k in range(2000)),
    )


def onnx() -> list[Piece]:
    """A request: JSON to rows, a model of ONNX Runtime, and its answer as JSON."""
    from tinybench.onnx import OnnxModel
    from tinybench.support.basics.layer_networks import initial_layers, save_layers

    with tempfile.TemporaryDirectory() as folder:
        model = OnnxModel(save_layers(initial_layers((64, 512, 512, 10), 0), Path(folder, "network.onnx")))
    body = json.dumps({"inputs": rng.normal(size=(32, 64)).round(4).tolist()})
    kept: dict[str, Any] = {}
    return named(
        parsing=lambda: kept.update(rows=json.loads(body)["inputs"]),
        converting=lambda: kept.update(X=np.array(kept["rows"], dtype=np.float32)),
        inferring=lambda: kept.update(y=model.session.run(None, {"X": kept["X"]})[0]),
        answering=lambda: json.dumps({"outputs": [[round(v, 4) for v in row] for row in kept["y"].tolist()]}),
    )


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def depth(tree: Any) -> int:
    return 1 + max(map(depth, tree), default=0)


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1), nested(levels - 1)] if levels else []


def down(n: int) -> int:
    return 0 if n == 0 else 1 + down(n - 1)


def recursion() -> list[Piece]:
    """Functions that call themselves, wide and deep."""
    tree = nested(8)
    return named(
        branching=lambda: fibonacci(15),
        walking=lambda: depth(tree),
        sinking=lambda: sum(down(60) for _ in range(60)),  # py-spy stops the program for ms for a stack of hundreds
    )


def numbers(n: int) -> Any:
    for k in range(n):
        yield k * 3 % 7


def generators() -> list[Piece]:
    """Generators and comprehensions, which are frames of their own in some versions of Python."""
    return named(
        pulling=lambda: sum(islice(chain(numbers(3000), numbers(3000)), 5000)),
        listing=lambda: len([k for k in [j + 1 for j in range(4000)] if k % 3]),
        grouping=lambda: len({k % 50: {k} for k in range(5000)}),
        ordering=lambda: len(sorted(permutations("abcdef", 5), key=lambda word: word[::-1])),
    )


def waiting() -> list[Piece]:
    """Work between waits: shares of the time on the clock, not of a processor's."""
    return named(
        sleeping=lambda: time.sleep(0.003),
        working=lambda: sum(k * k for k in range(40_000)),
        napping=lambda: deque(map(time.sleep, [0.0002] * 5)),
    )


PROGRAMS: dict[str, Callable[[], list[Piece]]] = {
    made.__name__: made for made in (small, numpy, onnx, recursion, generators, waiting)
}


def take_turns(name: str, seconds: float, interval: float = 0.0) -> dict[str, Any]:
    """Run a program for some seconds; return the time of each piece, and the samples if it looks at itself."""
    from tinybench.sampler import Sampler
    from tinybench.support.profiling.stacks import Ticks, ticking

    pieces = PROGRAMS[name]()
    spent = dict.fromkeys((piece.__name__ for piece in pieces), 0.0)
    ticks = Ticks(interval or 1.0)
    sampler = Sampler(ticks.clock)
    with ticking(sampler.take, ticks) if interval else nullcontext():
        before = time.perf_counter()
        end = before + seconds
        while before < end:
            for piece in pieces:
                piece()
                now = time.perf_counter()
                spent[piece.__name__] += now - before
                before = now
    seen = [[[name.split(" (")[0] for name in sample.stack], sample.seconds] for sample in sampler.samples]
    return {"truth": spent, "seen": seen}


if __name__ == "__main__":
    program, seconds, *every = sys.argv[1:]
    print(json.dumps(take_turns(program, float(seconds), *(float(ms) / 1e3 for ms in every))))
