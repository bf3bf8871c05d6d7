"""How high are this machine's roofs, where do operators stand, and does the picture explain what INT8 gains?

Run ``python -m tests.benchmarks.roofline`` (about four minutes; ``--short`` for seconds). Prints Markdown tables;
``--publish`` writes them to ``results/roofline.md``.

The network has 784 inputs, layers of 512 and 256 units and 10 classes, with random weights. Its INT8 form has the same
weights in 8 bits, and activations that become uint8 in every call.

What INT8 gains is measured with all the processor's instructions, and again with some hidden from the libraries: they
then take their kernels for older processors. A small library (`hide_instructions.c`, compiled with ``cc``) makes CPUID
fault and leaves the instructions out of its answer. So these are real times of real kernels on this processor; another
processor that lacks the instructions has other clocks and caches. Each set runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.report import RESULTS, command_line, on_this_machine, write_json
from tinybench.cores import usable_cores
from tinybench.layers import initial_layers, save_layers
from tinybench.onnx import OnnxModel, integer_products
from tinybench.quantize import quantize_dynamic_int8, quantize_static_int8
from tinybench.result import BenchmarkResult
from tinybench.roofline.batches import BATCHES, Gain, Step, batch_walk, gains_table, int8_gains
from tinybench.roofline.operator_work import count_work
from tinybench.roofline.pictures import roof_picture
from tinybench.roofline.places import place_operators
from tinybench.roofline.roofs import measure_roofs, with_interval
from tinybench.table import Table

HIDDEN = {"nothing": "", "AMX": "amx", "AMX, VNNI": "amx vnni", "AMX, VNNI, AVX-512": "amx vnni avx512"}
SIZES = (784, 512, 256, 10)


def models(folder: Path) -> dict[str, OnnxModel]:
    """Write the network in its forms, and load them."""
    rows = np.random.default_rng(0).uniform(size=(256, SIZES[0])).astype(np.float32)
    fp32 = save_layers(initial_layers(SIZES, 0), folder / "fp32.onnx")
    paths = {"FP32": fp32, "INT8 dynamic": quantize_dynamic_int8(fp32, folder / "dynamic.onnx", reduce_range=False)}
    paths["INT8 static"] = quantize_static_int8(fp32, rows, folder / "static.onnx", reduce_range=False)
    return {name: OnnxModel(path) for name, path in paths.items()}


def rows_of(batch: int) -> np.ndarray:
    """Return random rows."""
    return np.random.default_rng(1).uniform(size=(batch, SIZES[0])).astype(np.float32)


def gains_here(seconds: float, batches: Sequence[int]) -> dict[str, Any]:
    """Measure roofs and gains of INT8 in this process, with the kernels that the libraries choose in it."""
    roofs = measure_roofs(["float32", "uint8 × int8"], seconds, kinds=["read"])
    with tempfile.TemporaryDirectory() as folder:
        loaded = models(Path(folder))
        pair = {name: loaded[name] for name in ("FP32", "INT8 dynamic")}
        walks = batch_walk(pair, rows_of(max(batches)), batches, seconds, rounds=15)
        gains = int8_gains(walks, pair, rows_of(max(batches)), roofs)
    return {
        "peaks": {dtype: [result.median, *result.median_ci()] for dtype, result in roofs.peaks.items()},
        "products": integer_products()["uint8 × int8"],
        "gains": [asdict(gain) for gain in gains],
    }


def hiding_library(folder: Path) -> Path | None:
    """Compile what hides instructions; None where that cannot be."""
    cc = shutil.which("cc")
    told = Path("/proc/cpuinfo")
    if not (cc and platform.machine() == "x86_64" and told.exists() and " cpuid_fault" in told.read_text()):
        return None
    library = folder / "hide_instructions.so"
    source = Path(__file__).with_name("hide_instructions.c")
    subprocess.run([cc, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def gains_without(hidden: str, library: Path, seconds: float, batches: Sequence[int]) -> dict[str, Any]:
    """Measure the same in a process from which instructions are hidden."""
    script = f"import json; from tests.benchmarks.roofline import gains_here; print(json.dumps(gains_here({seconds}, {list(batches)})))"
    environment = {**os.environ, "LD_PRELOAD": str(library), "HIDE": hidden} if hidden else dict(os.environ)
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"hiding {hidden!r} failed: {run.stderr[-500:]}")
    return json.loads(run.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def kernels_table(found: dict[str, dict[str, Any]]) -> Table:
    """Return a row for each set of instructions and batch size."""
    rows = []
    for hidden, each in found.items():
        (fp32, *_), (int8, *_) = each["peaks"]["float32"], each["peaks"]["uint8 × int8"]
        common = {"hidden": hidden, "uint8 × int8": each["products"]}
        common |= {
            "FP32 roof, 10⁹/s": f"{fp32:,.0f}",
            "INT8 roof, 10⁹/s": f"{int8:,.0f}",
            "ratio": f"{int8 / fp32:.2f}",
        }
        rows += [common | row for row in gains_table([Gain(**gain) for gain in each["gains"]]).rows]
    return Table(rows)


def verdicts(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return what the picture explains: no call beats its roofs, kernels gain in the order of theirs, and how much."""
    every = [(hidden, Gain(**gain)) for hidden, each in found.items() for gain in each["gains"]]
    beyond = [f"{hidden} hidden, batch {gain.batch}" for hidden, gain in every if max(gain.shares) > 1.1]
    verb = "NOT met" if beyond else "met"
    lines = [
        f"- {verb}: no call is more than a tenth faster than its roofs allow{''.join(f'; {each}' for each in beyond)}"
    ]
    largest = max(gain.batch for _, gain in every)
    at = {hidden: gain for hidden, gain in every if gain.batch == largest}
    if len(at) > 1:
        by_roofs = sorted(at, key=lambda hidden: at[hidden].predicted)
        verb = "met" if by_roofs == sorted(at, key=lambda hidden: at[hidden].measured) else "NOT met"
        lines.append(f"- {verb}: at batch {largest} kernels gain in the order that their roofs say")
    lines += [
        f"- with {hidden} hidden, INT8 gains {gain.measured:.2f} at batch {largest}, where the roofs say {gain.predicted:.2f}: "
        f"FP32 reaches {gain.shares[0]:.0%} of its roofs, INT8 {gain.shares[1]:.0%}"
        for hidden, gain in at.items()
    ]
    return lines


def walk_table(walks: dict[str, list[Step]]) -> Table:
    """Return a row for each batch."""
    rows = []
    for steps in zip(*walks.values(), strict=True):
        row = {"batch": str(steps[0].batch)}
        for name, step in zip(walks, steps, strict=True):
            latency = BenchmarkResult("latency", [1e6 * seconds for seconds in step.seconds])
            row |= {
                f"{name}: per byte": f"{step.intensity:.3g}",
                f"{name}: 10⁹ operations/s": with_interval(step.rate),
                f"{name}, µs": f"{latency.median:.3g}",
            }
        rows.append(row)
    return Table(rows)


def page(seconds: float, batches: Sequence[int], command: str) -> tuple[str, dict[str, Any]]:
    """Measure everything, and return the page and its numbers."""
    roofs, cores = measure_roofs(seconds=seconds), usable_cores()
    parts = [
        "# Roofs, operators under them, and what INT8 gains", "",
        f"`{command}`, {on_this_machine()}. How stands at the head of [roofline.py](../roofline.py).", "",
    ]  # fmt: skip
    every = [roofs, *([measure_roofs(["float32", "uint8 × int8"], seconds / 2, cores)] if cores > 1 else [])]
    for each in every:
        for table in each.tables():
            parts += [f"## {table.caption}", "", table.markdown(), ""]
        parts += [*(f"- {sentence}" for sentence in each.sentences), *([""] if each.sentences else [])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loaded = models(folder)
        for title, model in loaded.items():
            found = place_operators(model, rows_of(64), roofs)
            checked = sum(each.checked for each in count_work(model, rows_of(64)))
            parts += [f"## {title}, batch 64", "", found.table().markdown(), ""]
            parts += [*(f"- {sentence}" for sentence in found.sentences)]
            parts += [
                f"- shapes of {checked} of {len(found.places) + len(found.left_out)} operators: ONNX infers the same",
                "",
            ]
        pair = {title: loaded[title] for title in ("FP32", "INT8 dynamic")}
        walks = batch_walk(pair, rows_of(max(batches)), batches, seconds, rounds=15)
        gains = int8_gains(walks, pair, rows_of(max(batches)), roofs)
        parts += ["## From the smallest to the largest batch", "", roof_picture(roofs, walks=walks).alt, ""]
        parts += [walk_table(walks).markdown(), "", gains_table(gains).markdown(), ""]
        library, some = hiding_library(folder), [batch for batch in (1, 16, 256) if batch <= max(batches)]
        hidden = HIDDEN if library else {"nothing": ""}
        kernels = {title: gains_without(hide, library or folder, seconds / 2, some) for title, hide in hidden.items()}
    parts += ["## What INT8 gains with the kernels of older processors, at this one's speed", ""]
    parts += [kernels_table(kernels).markdown(), "", *verdicts(kernels)]
    if not library:
        parts.append("- nothing could be hidden here: it takes Linux on x86-64, cpuid_fault among the flags, and cc")
    return "\n".join([*parts, ""]), {
        "kernels": kernels,
        "roofs": [r.to_dict() for r in roofs.products + roofs.bandwidths],
    }


def main() -> None:
    parser = command_line("roofline", __doc__)
    parser.add_argument("--short", action="store_true", help="a few seconds, three batch sizes")
    parser.add_argument("--publish", action="store_true", help="write results/roofline.md")
    options = parser.parse_args()
    command = " ".join(["python -m tests.benchmarks.roofline", *sys.argv[1:]])
    text, numbers = page(1.0 if options.short else 30.0, (1, 16, 64) if options.short else BATCHES, command)
    print(text)
    write_json(Path("bench") / "roofline.json", numbers)
    if options.publish:
        (RESULTS / "roofline.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
