"""The scenarios of MLPerf other than the server's."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tinybench.load import LoadResult, closed_loop
from tinybench.support.basics.arguments import check_positive


def single_stream(send: Callable[[int], Any], seconds: float = 10.0, **clocks: Any) -> LoadResult:
    """Send one request after another. MLPerf Inference judges this scenario by the p90.

    Reddi and others, "MLPerf Inference Benchmark", ISCA 2020. `send`, `clock` and `sleep` are as in `closed_loop`.
    """
    result = closed_loop(send, 1, 0.0, seconds, **clocks)
    result.metadata |= {"scenario": "single_stream", "q": 90}
    return result


def multi_stream(send: Callable[[int], Any], seconds: float = 10.0, samples: int = 8, **clocks: Any) -> LoadResult:
    """Send queries in turn, each of `samples` requests at once, timed up to its last answer. MLPerf judges the p99."""
    with ThreadPoolExecutor(samples) as pool:

        def query(i: int) -> bool:
            return all(ok is not False for ok in pool.map(send, range(i * samples, (i + 1) * samples)))

        result = closed_loop(query, 1, 0.0, seconds, **clocks)
    result.metadata |= {"scenario": "multi_stream", "q": 99, "samples": samples}
    return result


def offline(run: Callable[[range], Any], samples: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the throughput, in samples per second, if all samples arrive at once. `run` receives their indices."""
    check_positive(samples=samples)
    begin = clock()
    run(range(samples))
    seconds = clock() - begin
    check_positive(**{"the time by this clock": seconds})
    return samples / seconds
