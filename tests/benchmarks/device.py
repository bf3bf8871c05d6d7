"""What is latency on a GPU, and what do its clock, its transfers, its number types and its energy counter do?

It takes a machine with an NVIDIA GPU, PyTorch and nvidia-ml-py. The network has 784 inputs, layers of 512 and 256 units
and 10 classes; the products of matrices are square. A call is "launched" when it returns: with a GPU that is
idle before each call, or in calls without a pause. "Waited" is the time until the GPU has finished, and "events" is what
the GPU's own clock says. A graph launches all kernels of a call at once. First calls come in fresh processes. All numbers are measured
by the commands of this package on PyTorch callables.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.formats import grouped, interval, lines, ranged, table
from tests.benchmarks.harness import Benchmark, Part, Record, Records, Trial
from tests.benchmarks.processes import in_child
from tinybench.energy import measure_energy
from tinybench.latency import measure_latency
from tinybench.support.comparisons.two_samples import median_interval
from tinybench.tools.gpu.events import gpu_latency
from tinybench.tools.gpu.nvml import NvmlMeter, read_gpus

RUNS = 200
WAYS = ("launched, GPU idle", "launched without pause", "waited", "events", "as one graph, waited")
TYPES = {"float32": False, "TF32": True, "float16": False, "bfloat16": False}


def network(batch: int) -> tuple[Any, Any]:
    """Return a network on the GPU, and a batch of rows in the GPU's memory."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    return inferring(layers.cuda().eval()), torch.rand(batch, 784, device="cuda")


def inferring(model: Any) -> Any:
    """Return the model as a function that records no gradients."""
    import torch

    @torch.inference_mode()
    def call(x: Any) -> Any:
        return model(x)

    return call


def product(dtype: str, size: int) -> tuple[Any, Any]:
    """Return the product with a square matrix of a number type, and such a matrix."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = TYPES[dtype]
    kind = getattr(torch, "float32" if dtype == "TF32" else dtype)
    weights = torch.randn(size, size, device="cuda", dtype=kind)
    return inferring(lambda x: x @ weights), torch.randn(size, size, device="cuda", dtype=kind)


def middle(values: Any) -> Record:
    """Return the median of values with its 95 % interval by order statistics."""
    return dict(zip(("median", "low", "high"), (median(values), *median_interval(values)), strict=True))


def measured_ways(trial: Trial) -> Records:
    """Measure a batch in several ways."""
    import torch

    model, x = network(*trial.case)

    def once_idle(x: Any) -> Any:
        torch.cuda.synchronize()
        return x

    ways = [
        measure_latency(model, x, measurement_runs=RUNS, setup=once_idle),
        measure_latency(model, x, measurement_runs=RUNS),
        measure_latency(model, x, measurement_runs=RUNS, sync=torch.cuda.synchronize),
        gpu_latency(model, x, measurement_runs=RUNS),
    ]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    ways.append(measure_latency(lambda _: graph.replay(), x, measurement_runs=RUNS, sync=torch.cuda.synchronize))
    return [{"way": way, **middle(found.values)} for way, found in zip(WAYS, ways, strict=True)]


def first_calls() -> Record:
    """Time what a fresh process waits for, in s."""
    seconds, began = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal began
        seconds[name] = time.perf_counter() - began
        began = time.perf_counter()

    import torch

    lap("import torch")
    torch.empty(1, device="cuda")
    torch.cuda.synchronize()
    lap("first memory on the GPU")
    model, x = network(1)
    torch.cuda.synchronize()
    lap("the network to the GPU")
    for name in ("first call", "second call", "third call"):
        model(x)
        torch.cuda.synchronize()
        lap(name)
    return seconds


def measured_first(trial: Trial) -> Records:
    return [{"what": what, "seconds": seconds} for what, seconds in in_child(first_calls).items()]


def measured_transfers(trial: Trial) -> Records:
    """Copy bytes to the GPU from pageable and from pinned memory, and back."""
    import torch

    [size] = trial.case
    there = torch.empty(size, dtype=torch.uint8, device="cuda")
    pageable = torch.zeros(size, dtype=torch.uint8)
    pinned = pageable.pin_memory()
    ways = {
        "pageable to GPU": lambda _: there.copy_(pageable),
        "pinned to GPU": lambda _: there.copy_(pinned, non_blocking=True),
        "GPU to pinned": lambda _: pinned.copy_(there, non_blocking=True),
    }
    found = []
    for way, copy in ways.items():
        values = measure_latency(copy, [[0.0]], measurement_runs=30, sync=torch.cuda.synchronize).values
        found.append({"way": way, **middle(values), "rate": size / median(values)})
    return found


def measured_clock(trial: Trial) -> Records:
    """Multiply matrices without rest, after a rest of some seconds, and read the clock's rate beside the times."""
    import torch

    call, x = product("bfloat16", 8192)
    call(x)
    torch.cuda.synchronize()
    time.sleep(5)
    found, began = [], time.perf_counter()
    for until in (0.02, 0.1, 0.5, 1, 2, 5, 10):
        times = []
        while time.perf_counter() < began + until:
            before = time.perf_counter()
            call(x)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - before)
        [gpu, *_] = read_gpus()
        about = {"until": until, "calls": len(times), "milliseconds": 1e3 * median(times) if times else None}
        found.append({**about, **asdict(gpu), "slowed_by": " and ".join(gpu.slowed_by) or "–"})
    return found


def measured_types(trial: Trial) -> Record:
    """Multiply matrices of a number type: rate, joules, and the kernel that ran."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    dtype, size = trial.case
    call, x = product(dtype, size)
    values = gpu_latency(call, x, measurement_runs=50).values
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU], acc_events=True) as seen:
        call(x)
        torch.cuda.synchronize()
    kernel = max(seen.events(), key=lambda event: event.device_time if "CUDA" in str(event.device_type) else 0).name
    meter = NvmlMeter(sync=torch.cuda.synchronize)
    energy = measure_energy(call, x, meter, measurement_runs=8, min_reading=1.0)
    operations = 2 * size**3
    joules = {"joules": energy.mean, "joules_low": energy.ci_lower, "joules_high": energy.ci_upper}
    rates = {"rate": operations / median(values), "per_joule": operations / energy.mean}
    return {**middle(values), **rates, **joules, "idle": energy.metadata["idle_watts"], "kernel": kernel.split("(")[0]}


def measured_counter(trial: Trial) -> Record:
    """Compare the energy counter with the integral of the power readings, at a steady load, and see how often it changes."""
    import torch

    call, x = product("bfloat16", 8192)
    until = time.perf_counter() + 5  # the power readings are means of the last second
    while time.perf_counter() < until:
        call(x)
        torch.cuda.synchronize()
    meter, began, last = NvmlMeter(), time.perf_counter(), None
    joules, watts, changes = 0.0, [], []
    while (now := time.perf_counter()) < began + 10:
        call(x)
        torch.cuda.synchronize()
        if (joules := meter.read()) != last:
            changes.append(now)
            last = joules
        watts.append((now, read_gpus()[0].watts))
    power = np.array(watts)
    return {
        "joules": joules,
        "by_power": float(np.trapezoid(power[:, 1], power[:, 0])),
        "seconds": watts[-1][0] - began,
        "between": [1e3 * step for step in np.quantile(np.diff(changes), (0.1, 0.5, 0.9))],
    }


def ways_page(found: Records) -> list[str]:
    rows = [
        {"batch": str(batch)} | {each["way"]: in_unit(each) for each in these}
        for (batch,), these in grouped(found, "batch").items()
    ]
    return [table(rows)]


def in_unit(each: Record) -> str:
    return interval(*(1e6 * each[name] for name in ("median", "low", "high")), "{:.1f}") + " µs"


def first_page(found: Records) -> list[str]:
    rows = {what: [1e3 * each["seconds"] for each in these] for (what,), these in grouped(found, "what").items()}
    return [table({"what": what, "ms, median (range)": ranged(values, "{:.2f}")} for what, values in rows.items())]


def transfers_page(found: Records) -> list[str]:
    rows = [
        {"bytes": f"{size:,}"} | {each["way"]: f"{in_unit(each)}, {each['rate'] / 1e9:.2f} GB/s" for each in these}
        for (size,), these in grouped(found, "size").items()
    ]
    return [table(rows)]


def counter_page(found: Record) -> list[str]:
    low, middle, high = found["between"]
    return [
        f"In {found['seconds']:.1f} s the counter rose by {found['joules']:.0f} J; the power readings add up to "
        f"{found['by_power']:.0f} J. The counter changed every {middle:.0f} ms (a tenth of the steps below {low:.0f} ms, "
        f"a tenth above {high:.0f} ms)."
    ]


CLOCK_HEAD = "s of work | calls | ms a call | clock, MHz | W | °C | slowed by"
CLOCK = "{until:g} | {calls} | {milliseconds:.3f} | {clock_hz:1e-6×.0f} | {watts:.0f} | {celsius:.0f} | {slowed_by}"
TYPES_HEAD = "numbers | size | 10¹² operations/s | ms | mJ, without idle power | 10⁹ operations/J | idle W | kernel"
TYPES_ROW = (
    "{dtype} | {size} | {rate:1e-12×.1f} | {median:1e3×.3f} | {joules:1e3×.1f} ({joules_low:1e3×.1f} to "
    "{joules_high:1e3×.1f}) | {per_joule:1e-9×.0f} | {idle:.0f} | `{kernel}`"
)
BENCHMARK = Benchmark(
    "A GPU: latency, first calls, transfers, clocks, number types and energy",
    {
        "ways": Part(
            "Launched, waited for, or seen by events", measured_ways, ways_page,
            cases=[(1,), (64,), (1024,), (16384,)], fields=["batch"],
        ),
        "first": Part("A fresh process", measured_first, first_page, cases=[(n,) for n in range(5)]),
        "transfers": Part(
            "Transfers", measured_transfers, transfers_page, cases=[(2**n,) for n in (10, 16, 20, 24, 28)], fields=["size"]
        ),
        "clock": Part("The clock after a rest", measured_clock, lambda found: [lines(found, CLOCK_HEAD, CLOCK)], cases=[(0,)]),
        "types": Part(
            "Products of matrices by number type", measured_types, lambda found: [lines(found, TYPES_HEAD, TYPES_ROW)],
            cases=[(dtype, 8192) for dtype in TYPES], fields=["dtype", "size"],
        ),
        "counter": Part("The counter of energy", measured_counter, counter_page),
    },
    algebra="no BLAS kernel: cuBLAS computes on the GPU",
)  # fmt: skip
