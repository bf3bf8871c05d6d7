"""How does this machine scale: Python threads, processes, threads inside ONNX Runtime and BLAS, free and pinned?

All ways and all numbers of workers come in the same shuffled rounds. ``Python`` is a loop of plain Python, ``model`` a
network in ONNX Runtime on one thread in each call; ``intra-op`` and ``inter-op`` are one caller of a graph of four
branches with n threads inside, ``BLAS`` one product of NumPy's. Beyond the cores there are, workers take turns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.formats import table
from tests.benchmarks.harness import Part, Trial
from tinybench.onnx import OnnxModel
from tinybench.support.basics.layer_networks import initial_layers, save_layers
from tinybench.tools.scaling.fitted_laws import fit_laws
from tinybench.tools.scaling.measure import measure_scaling
from tinybench.tools.scaling.workers import blas, inter_op, intra_op, processes, save_branches, threads

LAWS = {
    "amdahl": "serial share (Amdahl)",
    "gustafson": "serial share (Gustafson)",
    "contention": "contention",
    "crosstalk": "crosstalk",
    "best": "best number (USL)",
    "best_measured": "best of those measured",
}


def counting(steps: int) -> Callable[[], int]:
    """Return a function that keeps Python busy."""

    def call() -> int:
        total = 0
        for step in range(steps):
            total += step
        return total

    return call


def measured(trial: Trial) -> dict[str, Any]:
    """Return what each way does by number of workers, and the laws fitted to it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows deletes no open file
        rng = np.random.default_rng(0)
        network = OnnxModel(save_layers(initial_layers([64, 256, 256, 10], 0), Path(folder, "network.onnx")))
        branches = save_branches(Path(folder, "branches.onnx"))
        X, rows = (rng.normal(size=shape).astype(np.float32) for shape in ((16, 64), (32, 256)))
        A = rng.normal(size=(384, 384)).astype(np.float32)
        ways = {
            "threads, Python": threads(counting(2000)),
            "threads, model": threads(lambda: network.forward(X)),
            "processes, Python": processes(counting, 2000),
            "intra-op": intra_op(branches, rows),
            "inter-op": inter_op(branches, rows),
            "BLAS": blas(lambda: A @ A),
        }
        if trial.short:
            ways = {way: ways[way] for way in ("threads, model", "intra-op")}
        pin = [] if trial.short else ["threads, model", "processes, Python", "intra-op"]
        how: dict[str, Any] = {"workers": [1, 2, 3], "rounds": 6, "window": 0.01} if trial.short else {"rounds": 16}
        found = measure_scaling(ways, pin=pin, seed=0, **how)
    laws = {way: fit_laws(found.seconds(way), draws=100 if trial.short else 1000).to_dict() for way in found.results}
    about = next(iter(found.results["intra-op"].values())).metadata
    kept = {name: about.get(name) for name in ("usable_cores", "granted", "machine", "window")}
    return {"rows": found.rows(), "notes": found.notes, "laws": laws, "about": kept}


def goals(found: dict[str, Any]) -> dict[str, bool]:
    """Return whether every way has a best number with its interval."""
    return {
        "every way has a best number of workers with its interval": all(
            law["best_measured"]["low"] <= law["best_measured"]["value"] <= law["best_measured"]["high"]
            for law in found["laws"].values()
        )
    }


def _told(estimate: dict[str, Any]) -> str:
    if estimate["high"] is None:
        return "no end" if estimate["low"] is None else f"at least {estimate['low']:.2g}"
    return f"{estimate['value']:.2g} ({estimate['low']:.2g}–{estimate['high']:.2g})"


def page(found: dict[str, Any]) -> list[str]:
    """Return the tables as Markdown."""
    by_way: dict[str, dict[str, str]] = {}
    for row in found["rows"]:
        low, high = row["speedup_ci"]
        line = by_way.setdefault(row["way"], {"way": row["way"], "calls/s, n = 1": f"{row['throughput']:.3g}"})
        if row["workers"] > 1:
            line[f"n = {row['workers']}"] = f"{row['speedup']:.2f} ({low:.2f}–{high:.2f})"
    laws = [
        {"way": way, **{title: _told(law[name]) for name, title in LAWS.items()}} for way, law in found["laws"].items()
    ]
    notes = [f"- {way}: {'; '.join(law['notes'])}" for way, law in found["laws"].items() if law["notes"]]
    about = found["about"]
    granted = {None: "nobody knows how many", about["usable_cores"]: "all"}.get(about["granted"], about["granted"])
    state = (about.get("machine") or {}).get("verdict", "not checked")
    return [
        f"{about['usable_cores']} usable cores, of which the control group grants {granted}; state of the machine: {state}.",
        "Speed-up over one worker, with 95 % intervals:",
        table(by_way.values()),
        "Laws fitted to it:",
        table(laws),
        "\n".join([*(f"- {note}" for note in found["notes"]), *notes]),
    ]


PART = Part("This machine", measured, page, goals)
