"""How high are this machine's roofs, where do operators stand, and does the picture explain what INT8 gains?

The network has 784 inputs, layers of 512 and 256 units and 10 classes, with random weights. Its INT8 form has the same
weights in 8 bits, and activations that become uint8 in every call.

What INT8 gains is measured with all the processor's instructions, and again with some hidden from the libraries: they
then take their kernels for older processors. A small library (`hide_instructions.c`, compiled with ``cc``) makes CPUID
fault and leaves the instructions out of its answer. So these are real times of real kernels on this processor; another
processor that lacks the instructions has other clocks and caches. Each set runs in a process of its own.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from tests.benchmarks.formats import bullets, table
from tests.benchmarks.harness import Benchmark, Part, Record, Records, Trial
from tests.benchmarks.processes import in_child, printed
from tinybench.onnx import OnnxModel
from tinybench.quantize import quantize_dynamic_int8, quantize_static_int8
from tinybench.support.basics.layer_networks import initial_layers, save_layers
from tinybench.support.conditions.cores import usable_cores
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.tools.roofline.batch_sizes import BATCHES, BatchPoint, Gain, batch_walk, gains_table, int8_gains
from tinybench.tools.roofline.operator_bottlenecks import place_operators
from tinybench.tools.roofline.operator_work import count_work
from tinybench.tools.roofline.roofs import Roofs, measure_roofs, median_with_interval

HIDDEN = {"nothing": "", "AMX": "amx", "AMX, VNNI": "amx vnni", "AMX, VNNI, AVX-512": "amx vnni avx512"}
SIZES = (784, 512, 256, 10)
TYPES = ["float32", "uint8 × int8"]
Walks = dict[str, list[BatchPoint]]


def models(folder: Path) -> dict[str, OnnxModel]:
    fp32 = save_layers(initial_layers(SIZES, 0), folder / "fp32.onnx")
    paths = {"FP32": fp32, "INT8 dynamic": quantize_dynamic_int8(fp32, folder / "dynamic.onnx", reduce_range=False)}
    paths["INT8 static"] = quantize_static_int8(fp32, rows_of(256), folder / "static.onnx", reduce_range=False)
    return {name: OnnxModel(path) for name, path in paths.items()}


def rows_of(batch: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(size=(batch, SIZES[0])).astype(np.float32)


def measured_roofs(trial: Trial) -> list[str]:
    seconds, batches = (1.0, (1, 16, 64)) if trial.short else (30.0, BATCHES)
    roofs, cores = measure_roofs(seconds=seconds), usable_cores()
    pieces = []
    for each in [roofs, *([measure_roofs(TYPES, seconds / 2, cores)] if cores > 1 else [])]:
        pieces += [f"## {table.caption}\n\n{table.markdown()}" for table in each.tables()]
        pieces.append(bullets(each.sentences))
    loaded = models(trial.folder)
    for title, model in loaded.items():
        found = place_operators(model, rows_of(64), roofs)
        checked = sum(each.checked for each in count_work(model, rows_of(64)))
        same = f"shapes of {checked} of {len(found.places) + len(found.left_out)} operators: ONNX infers the same"
        pieces += [f"## {title}, batch 64", found.table().markdown(), bullets([*found.sentences, same])]
    walks, gains = walk(loaded, batches, seconds, roofs)
    return [
        *pieces,
        "## From the smallest to the largest batch",
        table(walk_rows(walks)),
        gains_table(gains).markdown(),
    ]


def walk(
    loaded: dict[str, OnnxModel], batches: Sequence[int], seconds: float, roofs: Roofs
) -> tuple[Walks, list[Gain]]:
    pair = {name: loaded[name] for name in ("FP32", "INT8 dynamic")}
    walks = batch_walk(pair, rows_of(max(batches)), batches, seconds, rounds=15)
    return walks, int8_gains(walks, pair, rows_of(max(batches)), roofs)


def walk_rows(walks: Walks) -> list[dict[str, str]]:
    rows = [{"batch": str(step.batch)} for step in next(iter(walks.values()))]
    for name, steps in walks.items():
        for row, step in zip(rows, steps, strict=True):
            row[f"{name}: per byte"] = f"{step.intensity:.3g}"
            row[f"{name}: 10⁹ operations/s"] = median_with_interval(step.rate)
            row[f"{name}, µs"] = f"{1e6 * median(step.seconds):.3g}"
    return rows


@cache
def hiding_library(folder: Path) -> Path | None:
    """Compile what hides instructions; None where that cannot be."""
    flags = Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""
    if not (shutil.which("cc") and platform.machine() == "x86_64" and " cpuid_fault" in flags):
        return None
    library = folder / "hide_instructions.so"
    printed("cc", "-O2", "-shared", "-fPIC", "-o", library, Path(__file__).with_name("hide_instructions.c"))
    return library


def gains_here(seconds: float, batches: Sequence[int]) -> Record:
    """Measure roofs and gains of INT8 in this process, with the kernels that the libraries choose in it."""
    roofs = measure_roofs(TYPES, seconds, kinds=["read"])
    with tempfile.TemporaryDirectory() as folder:
        _, gains = walk(models(Path(folder)), batches, seconds, roofs)
    return {
        "peaks": [roofs.peaks[dtype].median for dtype in TYPES],
        "products": integer_products()["uint8 × int8"],
        "gains": [asdict(gain) for gain in gains],
    }


def measured_kernels(trial: Trial) -> Records:
    """Measure what INT8 gains in a process from which instructions are hidden, if they can be."""
    [hidden] = trial.case
    library = hiding_library(trial.folder)
    if HIDDEN[hidden] and not library:
        return []
    environ = {"LD_PRELOAD": str(library), "HIDE": HIDDEN[hidden]} if HIDDEN[hidden] else {}
    return [in_child(gains_here, *((0.5, (1, 16)) if trial.short else (15.0, (1, 16, 256))), **environ)]


def kernel_goals(found: Records) -> dict[str, bool]:
    """Return whether the picture explains the gains: no call beats its roofs, and gains are in the order of theirs."""
    beyond = [
        f"; {each['hidden']} hidden, batch {gain['batch']}"
        for each in found
        for gain in each["gains"]
        if max(gain["shares"]) > 1.1
    ]
    goals = {f"no call is more than a tenth faster than its roofs allow{''.join(beyond)}": not beyond}
    if len(found) > 1:
        largest = sorted((each["gains"][-1] for each in found), key=lambda gain: gain["predicted"])
        gains = [gain["measured"] for gain in largest]
        goals[f"at batch {largest[0]['batch']} kernels gain in the order that their roofs say"] = gains == sorted(gains)
    return goals


def kernel_page(found: Records) -> list[str]:
    rows = []
    for each in found:
        fp32, int8 = each["peaks"]
        row = {"hidden": each["hidden"], "uint8 × int8": each["products"]}
        row |= {"FP32 roof, 10⁹/s": f"{fp32:,.0f}", "INT8 roof, 10⁹/s": f"{int8:,.0f}", "ratio": f"{int8 / fp32:.2f}"}
        rows += [row | gain for gain in gains_table([Gain(**gain) for gain in each["gains"]]).rows]
    if len(found) < len(HIDDEN):
        return [
            table(rows),
            "Nothing could be hidden here: it takes Linux on x86-64, cpuid_fault among the flags, and cc.",
        ]
    return [table(rows)]


KERNELS = "What INT8 gains with the kernels of older processors, at this one's speed"
CASES = [(hidden,) for hidden in HIDDEN]
BENCHMARK = Benchmark(
    "Roofs, operators under them, and what INT8 gains",
    {
        "roofs": Part("", measured_roofs, lambda found: found),
        "kernels": Part(KERNELS, measured_kernels, kernel_page, kernel_goals, CASES, fields=["hidden"]),
    },
)
