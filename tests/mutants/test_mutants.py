"""The checks of every module pass the reference, catch the seeded wrong solutions, and blame nothing else."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from autograder.course.build import run_checks
from autograder.course.notebook import cells_of, course_notebooks, module_name, read_notebook
from tests.mutants import mutants

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}
LISTS = [module for module in NOTEBOOKS if mutants(module)]
KILL_RATE = 0.95


@pytest.mark.parametrize("module", LISTS)
def test_checks_kill_mutants(module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = NOTEBOOKS[module]
    monkeypatch.chdir(path.parent)
    reference = read_notebook(path)
    assert not any(run_checks(reference, path).values()), "the reference must pass its own checks"
    wrong = mutants(module)
    assert len(wrong) >= 15
    survivors, blamed, cells = [], [], set()
    for mutant in wrong:
        notebook = copy.deepcopy(reference)
        check = mutant.apply(notebook)
        if mutant.cell in cells:  # who else is blamed depends on the cell: once for each is enough
            notebook.cells = [c.node for c in cells_of(notebook) if not c.is_check or c.id == check]
        cells.add(mutant.cell)
        failed = [name for name, why in run_checks(notebook, path).items() if why]
        if check not in failed:
            survivors.append(mutant.name)
        blamed += [f"{mutant.name}: {name}" for name in failed if name != check]
    rate = 1 - len(survivors) / len(wrong)
    with capsys.disabled():
        print(
            f"\n{module}: {len(wrong) - len(survivors)} of {len(wrong)} mutants killed; survivors: {survivors or 'none'}"
        )
    assert rate >= KILL_RATE, f"survivors: {survivors}"
    assert not blamed, f"a wrong solution costs points elsewhere: {blamed}"


def test_every_module_with_exports_has_mutants() -> None:
    exported = {name for name, path in NOTEBOOKS.items() if (ROOT / "tinybench" / f"{module_name(path)}.py").is_file()}
    assert exported <= set(LISTS), f"no mutants for {sorted(exported - set(LISTS))}"
