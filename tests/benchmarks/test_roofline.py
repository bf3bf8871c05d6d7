"""The benchmark of the roofline: its short form, its verdicts on made-up gains, and that hidden instructions are gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import roofline
from tinybench.roofline import products, roofs
from tinybench.roofline.batches import Gain

PROBE = "import json; from tinybench.onnx import integer_products; print(json.dumps(integer_products()))"


def found(gains: list[tuple[int, float, float, float]], int8: float = 200.0) -> dict[str, Any]:
    """Return gains of batch, predicted, measured, and INT8's share of its roofs."""
    return {
        "peaks": {"float32": [100.0, 99.0, 101.0], "uint8 × int8": [int8, 199.0, 201.0]},
        "products": "exact",
        "gains": [asdict(Gain(b, p, m, (m - 0.1, m + 0.1), (0.9, share))) for b, p, m, share in gains],
    }


def test_verdicts_of_known_gains() -> None:
    fine = {"nothing": found([(1, 4, 3, 0.6), (256, 8, 5, 0.5)]), "AMX": found([(1, 4, 3, 0.6), (256, 2, 1.9, 0.8)])}
    lines = roofline.verdicts(fine)
    assert [line[:6] for line in lines] == ["- met:", "- met:", "- with", "- with"]
    assert lines[2].endswith("where the roofs say 8.00: FP32 reaches 90% of its roofs, INT8 50%")
    other = {"nothing": found([(1, 4, 5, 1.2), (256, 8, 1.5, 0.1)]), "AMX": found([(256, 2, 1.9, 0.8)])}
    beyond, order, *_ = roofline.verdicts(other)
    assert beyond.startswith("- NOT met: no call")
    assert beyond.endswith("; nothing hidden, batch 1")
    assert order.startswith("- NOT met: at batch 256")
    assert len(roofline.verdicts({"nothing": found([(1, 4, 3, 0.6)])})) == 2
    assert roofline.kernels_table(fine).rows[0]["ratio"] == "2.00"


def test_hidden_instructions_are_not_found(tmp_path: Path) -> None:
    """Counted, not timed: products of the largest numbers saturate as on processors without VNNI."""
    library = roofline.hiding_library(tmp_path)
    if library is None:
        pytest.skip("needs Linux on x86-64, cpuid_fault among the flags, and cc")
    environment = {**os.environ, "LD_PRELOAD": str(library), "HIDE": roofline.HIDDEN["AMX, VNNI, AVX-512"]}
    run = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    kinds = json.loads(run.stdout)
    assert kinds["uint8 × int8"] == "saturating"
    assert kinds["uint8 × uint8"] == "exact"


def test_the_page_holds_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "SIZES", (16, 32, 8, 4))
    monkeypatch.setattr(roofline, "hiding_library", lambda folder: None)
    monkeypatch.setattr(products, "SIZES", (64,))
    monkeypatch.setattr(roofs, "largest_set", lambda caches, seconds, threads: 2**17)
    text, numbers = roofline.page(0.2, (1, 16), "python -m tests.benchmarks.roofline")
    for part in ("Products of matrices, 1 thread", "Bytes moved", "FP32, batch 64", "INT8 dynamic, batch 64",
                 "INT8 static, batch 64", "ONNX infers the same", "From the smallest", "by the roofs",
                 "nothing could be hidden here"):  # fmt: skip
        assert part in text
    assert [*numbers["kernels"]] == ["nothing"]
    assert len(json.dumps(numbers)) > 1000
