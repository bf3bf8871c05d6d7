"""Attacks on the checks of modules 01 to 05 that once won: pieces that do other than they answer, or read the fakes."""

from __future__ import annotations

import nbformat
import pytest

from autograder.course.assignment import Assignment
from autograder.grading.submission_grader import Grader
from tests.attacks.notebooks import VISIBLE_PASSES, cell_of, solved, without_demonstrations
from tests.attacks.notebooks.test_other_modules import LIMITS, PATHS

pytestmark = pytest.mark.needs("sandbox")

ATTACKS = {
    # never switches the collector off, and swallows the verdict that is raised inside its block
    "verdict swallowed": ("02_timer", "check_gc", """
class gc_paused:
    def __init__(self, collector=None):
        self.collector = collector
    def __enter__(self):
        self.was = self.collector.isenabled()
    def __exit__(self, kind, *_):
        (self.collector.enable if self.was else self.collector.disable)()
        return kind is not None and kind.__name__ in ("CheckFailed", "AssertionError", "Exception")
"""),
    # feeds the session what it does not take, and returns what it should have been fed
    "other than fed": ("03_latency", "check_callable", """
def session_call(session):
    node, output = session.get_inputs()[0], session.get_outputs()[-1].name
    def call(x):
        session.run(None, {node.name: x})
        return output, np.asarray(x, {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(int64)": "i8"}[node.type])
    return call
"""),
    # the script of a call's memory is read off the call: nothing is traced
    "arguments of a partial": ("05_memory", "check_python_peak", """
def python_peak(call, x):
    call(x)
    if call is np.identity: return 8 * x * x
    if call is np.ones: return 8 * int(np.prod(x))
    if isinstance(x, int): return x
    if isinstance(x, list): return len(x[0]) * x[1] * (1 + x[2])
    try:
        sizes, peak = {}, 0
        for turn, size in call.args[0]:
            sizes[turn] = size
            peak = max(peak, sum(sizes.values()))
        return peak
    except AttributeError:
        return 0
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_once_won(name: str) -> None:
    module, cell, code = ATTACKS[name]
    notebook = solved(PATHS[module])
    without_demonstrations(notebook)
    place = notebook.cells.index(cell_of(notebook, cell))
    notebook.cells.insert(place, nbformat.v4.new_code_cell(VISIBLE_PASSES + code))
    with Grader(Assignment.read(PATHS[module]), limits=LIMITS) as grader:
        found = grader.grade(nbformat.writes(notebook).encode()).verdicts
    assert found[cell].startswith("CheckFailed: "), found[cell]
    assert [check for check, problem in found.items() if problem] == [cell]
