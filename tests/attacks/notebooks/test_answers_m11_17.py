"""Attacks on the checks of modules 11 to 17 that once won: they know what a check asks, and in which order."""

from __future__ import annotations

import nbformat
import pytest

from autograder.course.assignment import Assignment
from autograder.grading.submission_grader import Grader
from tests.attacks.notebooks import VISIBLE_PASSES, cell_of, solved, without_demonstrations
from tests.attacks.notebooks.test_other_modules import LIMITS, PATHS

pytestmark = pytest.mark.needs("sandbox")

ATTACKS = {
    "rows all named": ("11_onnx", "check_parity_works", """
def check_parity(model, onnx_model, X, tolerance=1e-4):
    a = np.asarray(model(X), float)
    gap = np.abs(a - np.reshape(onnx_model(X), a.shape)).max()
    if gap > tolerance: raise ValueError(", ".join(f"row {row}" for row in range(len(X))))
    return SimpleNamespace(max_difference=gap, rows=len(X))
"""),
    "times known": ("11_onnx", "check_breakdown", """
def time_breakdown(pipeline, X, runs=50, warmup_runs=5, clock=None):
    for _ in range(runs):
        rows = X
        for stage in pipeline.values(): rows = stage(rows)
    seconds = {"first": 0.25, "second": 1.0, "third": 0.5, "fourth": 2.0, "last": 0.0, "total": 3.75}
    return {name: SimpleNamespace(values=[s * run for run in range(1, runs + 1)]) for name, s in seconds.items()}
"""),
    "times read off the stages": ("11_onnx", "check_breakdown", """
def time_breakdown(pipeline, X, runs=50, warmup_runs=5, clock=None):
    for _ in range(runs):
        rows = X
        for stage in pipeline.values(): rows = stage(rows)
    seconds = dict(zip([*pipeline, "total"], [*rows, sum(rows)]))
    return {name: SimpleNamespace(values=[s * run for run in range(1, runs + 1)]) for name, s in seconds.items()}
"""),
    "operators counted without the graph": ("12_quantize", "check_fakes", """
def integer_operators(source):
    kinds = [node.op_type for node in load_graph(source).graph.node]
    if "MatMulInteger" in kinds: return {"MatMulInteger": kinds.count("MatMulInteger")}
    real = "QuantizeLinear" in kinds and kinds.count("DequantizeLinear") == 2
    return {kind: 1 for kind in ("MatMul", "Gemm") if real and kind in kinds}
"""),
    "calls counted": ("13_compress", "check_journal", """
CALLS = []
def record(self, name, hypothesis, settings, measurements, verdict):
    CALLS.append(name)
    if len(CALLS) <= 13 or len(CALLS) == 17: raise ValueError(f"{list(settings)} {[str(each) for each in measurements]}")
    told = tuple(str(each) for each in measurements)
    self.entries.append(Entry(name, self.baseline, hypothesis, changes(self.settings, settings)[0], told, verdict))
    if verdict == "keep": self.baseline, self.settings = name, dict(settings)
    return self.entries[-1]
Journal.record = record
"""),
}  # fmt: skip


@pytest.mark.parametrize("module", sorted({module for module, _, _ in ATTACKS.values()}))
def test_what_is_known_beforehand_earns_nothing(module: str) -> None:
    attacks = {name: attack for name, (where, *attack) in ATTACKS.items() if where == module}
    won = []
    with Grader(Assignment.read(PATHS[module]), limits=LIMITS) as grader:
        for name, (cell, code) in attacks.items():
            notebook = solved(PATHS[module])
            without_demonstrations(notebook)
            place = notebook.cells.index(cell_of(notebook, cell))
            notebook.cells.insert(place, nbformat.v4.new_code_cell(VISIBLE_PASSES + code))
            found = grader.grade(nbformat.writes(notebook).encode()).verdicts[cell]
            won += [f"{name}: {found}"] * (not found.startswith("CheckFailed"))
    assert not won
