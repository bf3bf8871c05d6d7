"""The checks of every module pass the reference, catch the seeded wrong solutions, and blame nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from autograder.course import sealed_solutions
from autograder.course.module_build import run_checks
from autograder.course.notebook import course_notebooks, module_name, read_notebook
from tests.mutants import Mutant, mutants
from tests.mutants.playing import SPEECHLESS, played, verdicts
from tinybench.course.passed_checks import SEALED

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}
LISTS = [module for module in NOTEBOOKS if mutants(module)]
KILL_RATE = 0.95
MOST_HIDDEN = 0.2


@dataclass
class Play:
    """What came of playing some wrong solutions of a module, by their names."""

    survivors: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # by the student, though not in HIDDEN
    seen: list[str] = field(default_factory=list)  # by the student, though in HIDDEN
    speechless: list[str] = field(default_factory=list)
    blamed: list[str] = field(default_factory=list)  # checks of other pieces that fail


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, Sequence[Mutant]], Play]:
    """A function that plays wrong solutions of a module, in a student's folder."""

    def play(module: str, wrong: Sequence[Mutant]) -> Play:
        path = NOTEBOOKS[module]
        monkeypatch.chdir(path.parent)
        reference = read_notebook(path)
        assert not any(run_checks(reference, path).values()), "the reference must pass its own checks"
        (tmp_path / SEALED).write_text(json.dumps(sealed_solutions.seal(path, sealed_solutions.record(path))))
        monkeypatch.chdir(tmp_path)
        came, cells = Play(), set[str]()
        for mutant in wrong:
            check, notebook = played(reference, mutant, cells)
            visibly, failed = verdicts(notebook)
            if check not in failed:
                came.survivors.append(mutant.name)
            if visibly.get(check, "").startswith(SPEECHLESS):
                came.speechless.append(f"{mutant.name}: {visibly[check]}")
            if bool(visibly.get(check)) == bool(mutant.hidden):
                (came.seen if mutant.hidden else came.unseen).append(mutant.name)
            came.blamed += [f"{mutant.name}: {name}" for name in failed if name != check]
        assert not came.unseen, f"pass visibly: mend the check, or say in HIDDEN why: {came.unseen}"
        assert not came.speechless, f"the check breaks instead of saying what is wrong: {came.speechless}"
        assert not came.seen, f"in HIDDEN, and yet seen: {came.seen}"
        assert not came.blamed, f"a wrong solution costs points elsewhere: {came.blamed}"
        return came

    return play


@pytest.mark.parametrize("module", LISTS)
def test_a_wrong_solution_of_each_cell_fails(module: str, play: Callable[[str, Sequence[Mutant]], Play]) -> None:
    survivors = play(module, list({mutant.cell: mutant for mutant in reversed(mutants(module))}.values())).survivors
    assert not survivors, f"survivors: {survivors}"


@pytest.mark.audit
@pytest.mark.parametrize("module", LISTS)
def test_checks_kill_mutants(
    module: str, play: Callable[[str, Sequence[Mutant]], Play], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = mutants(module)
    assert len(wrong) >= 15
    survivors = play(module, wrong).survivors
    rate, visible = 1 - len(survivors) / len(wrong), sum(not mutant.hidden for mutant in wrong)
    with capsys.disabled():
        killed = f"{len(wrong) - len(survivors)} of {len(wrong)} mutants killed, {visible} of them seen by the student"
        print(f"\n{module}: {killed}; survivors: {survivors or 'none'}")
    assert len(wrong) - visible <= MOST_HIDDEN * len(wrong), "too many are hidden from students"
    assert rate >= KILL_RATE, f"survivors: {survivors}"


def test_every_module_with_exports_has_mutants() -> None:
    exported = {name for name, path in NOTEBOOKS.items() if (ROOT / "tinybench" / f"{module_name(path)}.py").is_file()}
    assert exported <= set(LISTS), f"no mutants for {sorted(exported - set(LISTS))}"
