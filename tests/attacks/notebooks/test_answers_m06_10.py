"""Attacks on the checks of modules 06 to 10 by one who has read them: work left out where nobody counted it, and tables
of what a check asks. Each once earned its cell's marks."""

from __future__ import annotations

import nbformat
import pytest

from autograder.course.assignment import Assignment
from autograder.grading.submission_grader import Grader
from tests.attacks.notebooks import VISIBLE_PASSES, cell_of, solved, without_demonstrations
from tests.attacks.notebooks.test_other_modules import LIMITS, PATHS

pytestmark = pytest.mark.needs("sandbox")

ONE_CALL = """
def cpu_utilisation(model, inputs, warmup_runs=5, measurement_runs=10, min_reading=0.1, clock=None, cpu_clock=None):
    wall, processor = clock(), cpu_clock()
    model(inputs)
    busy = (cpu_clock() - processor) / (clock() - wall)
    notes = {"cores": 2, "share_of_machine": busy / 2, "inferences_per_reading": 10**6}
    return BenchmarkResult("cpu_utilisation", [busy] * measurement_runs, notes)
"""
ONE_ROUND = """
def until_decided(names, measure, time_is_up, stop_at=20.0, margin=0.0, coin=None):
    def once():
        times = {name: measure(name) for name in (coin or random).sample(list(names), 2)}
        return [times[name] for name in names]
    a, b = once()
    rounds = next(n for n in range(1, 99) if 2**n / (n + 1) >= stop_at)
    decided = abs(a - b) > 0.06 * b or margin
    for done in range(1, 10**6):
        if (decided and done == rounds) or time_is_up():
            return 2.0**rounds / (rounds + 1) if decided and not margin else 1.0
        once()
"""
TABLE_OF_LIMITS = """
def violations(self, row):
    broken = {"latency_p95_ms": 3.9, "accuracy_min": 0.91, "memory_max_mb": 49.9, "throughput_min_qps": 301,
              "energy_budget_mj": 11.5}
    return [name for name, limit in self.limits().items() if limit == broken[name]]
def filter(self, rows):
    rows = list(rows)
    if any("accuracy" not in row for row in rows): raise ValueError("accuracy")
    if self.limits() == {"accuracy_min": 0.5}: return [row for row in rows if row["accuracy"] >= 0.5]
    return []
Requirements.violations, Requirements.filter = violations, filter
"""
TABLE_OF_WINNERS = """
def best_by_dimension(results):
    (metric, by_model), = results.items()
    winner, tied = {
        "slow": ("quick", ["alike"]), "first": ("second", []), "less": ("more", []), "p": ("q", ["r"]), "m": ("n", []),
        "guess": ("fact", []),
    }[next(iter(by_model))]
    if len(by_model) == 2 and "m" in by_model: winner = "m"
    if list(by_model) == ["guess"]: winner = "guess"
    result = by_model[winner]
    lower, upper = interval(result)
    return {metric: {"model": winner, "value": central(result), "lower": lower, "upper": upper, "unit": result.unit,
                     "measured": result.measured, "tied": tied}}
"""
ATTACKS = {
    "one call for many": ("06_energy", "check_utilisation", ONE_CALL),
    "one round for many": ("07_comparison", "check_live", ONE_ROUND),
    "a table of limits": ("09_pareto", "check_filter", TABLE_OF_LIMITS),
    "a table of winners": ("10_suite", "check_best", TABLE_OF_WINNERS),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_left_out_work_earns_nothing(name: str) -> None:
    module, cell, code = ATTACKS[name]
    with Grader(Assignment.read(PATHS[module]), limits=LIMITS) as grader:
        notebook = solved(PATHS[module])
        without_demonstrations(notebook)
        place = notebook.cells.index(cell_of(notebook, cell))
        notebook.cells.insert(place, nbformat.v4.new_code_cell(VISIBLE_PASSES + code))
        found = grader.grade(nbformat.writes(notebook).encode()).verdicts
    assert found[cell].startswith("CheckFailed")
