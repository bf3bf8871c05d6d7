"""Prerequisites of a check: which pieces of a notebook a cell may run."""

from __future__ import annotations

import pytest

from tinybench.course.unpassed_pieces import pieces_used

NOTEBOOK = """
def mean(values): return sum(values) / len(values)
def spread(values): return max(values) - mean(values)
class Suite:
    def run_latency(self): return mean([1.0])
    def run_memory(self): return spread([1.0])
    def label(self): return "run_latency"
    def compare(self, metric): return getattr(self, f"run_{metric}", None)()
    def slowest(self, which): return getattr(self, "run_lat" + which)()
    def biggest(self): return getattr(self, "run_memory")()
    def by_name(self, name): return getattr(self, name)("label")
    def only_said(self, metric): raise ValueError(f"no run_{metric}")
"""


@pytest.mark.parametrize(
    ("cell", "used"),
    [
        ("mean([1, 2])", {"mean"}),
        ("spread([1, 2])", {"spread", "mean"}),
        ("graft(names).spread([1])", {"spread", "mean"}),
        ("Suite().label()", {"Suite", "Suite.label"}),
        ("Suite().biggest()", {"Suite", "Suite.biggest", "Suite.run_memory", "spread", "mean"}),
        ("Suite().slowest('ency')", {"Suite", "Suite.slowest", "Suite.run_latency", "mean"}),
        ("Suite().by_name('x')", {"Suite", "Suite.by_name"}),
        ("Suite().only_said('x')", {"Suite", "Suite.only_said"}),
        (
            "Suite().compare('latency')",
            {"Suite", "Suite.compare", "Suite.run_latency", "Suite.run_memory", "spread", "mean"},
        ),
        ("this is no Python", set()),
    ],
)
def test_what_a_cell_may_run(cell: str, used: set[str]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    exec(NOTEBOOK, names)
    assert {name for name in pieces_used(cell, names) if not name.endswith("__")} == used
