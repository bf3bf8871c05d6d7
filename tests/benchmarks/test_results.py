"""Each published page says on which machine its numbers were measured, and which kernel linear algebra ran there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarks.report import RESULTS, on_this_machine
from tinybench.conditions.kernels import loaded_blas

PAGES = sorted(RESULTS.glob("*.md"))
MACHINE = re.compile(r"\bon \d+ (?:virtual )?cores of ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_states_the_kernel_wherever_it_states_the_machine(page: Path) -> None:
    _, *machines = MACHINE.split(page.read_text(encoding="utf-8"))
    assert machines, "a page is about a machine: tests.benchmarks.report.on_this_machine describes it"
    for machine in machines:
        head = machine.partition("\n\n")[0]
        assert "BLAS kernel" in head, head
        assert "not recorded" not in head, head


def test_the_machine_is_described_with_its_kernel_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")  # too late for what is loaded, which is why the kernel is asked
    kernel = next((blas.kernel for blas in loaded_blas() or () if blas.kernel), "not reported")
    assert f", BLAS kernel {kernel}, " in on_this_machine()
    assert ", OPENBLAS_CORETYPE=Nehalem, " in on_this_machine()
    assert MACHINE.search(on_this_machine())
