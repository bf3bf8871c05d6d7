"""The checks of every module pass the reference, catch the seeded wrong solutions, and blame nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.course import explained
from autograder.course.build import run_checks
from autograder.course.notebook import course_notebooks, module_name, read_notebook
from tests.mutants import mutants
from tests.mutants.playing import SPEECHLESS, played, verdicts
from tinybench.course.marks import SEALED

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}
LISTS = [module for module in NOTEBOOKS if mutants(module)]
KILL_RATE = 0.95
MOST_HIDDEN = 0.2


@pytest.mark.parametrize("module", LISTS)
def test_checks_kill_mutants(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = NOTEBOOKS[module]
    monkeypatch.chdir(path.parent)
    reference = read_notebook(path)
    assert not any(run_checks(reference, path).values()), "the reference must pass its own checks"
    wrong = mutants(module)
    assert len(wrong) >= 15
    (tmp_path / SEALED).write_text(json.dumps(explained.seal(path, explained.record(path))))
    monkeypatch.chdir(tmp_path)  # where answers are checked as in a student's folder
    survivors, blamed, unseen, seen, speechless = [], [], [], [], []
    cells = set[str]()
    for mutant in wrong:
        check, notebook = played(reference, mutant, cells)
        visibly, failed = verdicts(notebook)
        if check not in failed:
            survivors.append(mutant.name)
        if visibly.get(check, "").startswith(SPEECHLESS):
            speechless.append(f"{mutant.name}: {visibly[check]}")
        if bool(visibly.get(check)) == bool(mutant.hidden):
            (seen if mutant.hidden else unseen).append(mutant.name)
        blamed += [f"{mutant.name}: {name}" for name in failed if name != check]
    rate = 1 - len(survivors) / len(wrong)
    with capsys.disabled():
        print(
            f"\n{module}: {len(wrong) - len(survivors)} of {len(wrong)} mutants killed; survivors: {survivors or 'none'}"
        )
        print(f"{module}: {sum(not m.hidden for m in wrong)} of them seen by the student; unseen: {unseen or 'none'}")
    assert not unseen, f"pass visibly: mend the check, or say in HIDDEN why: {unseen}"
    assert not speechless, f"the check breaks instead of saying what is wrong: {speechless}"
    assert not seen, f"in HIDDEN, and yet seen: {seen}"
    assert sum(bool(m.hidden) for m in wrong) <= MOST_HIDDEN * len(wrong), "too many are hidden from students"
    assert rate >= KILL_RATE, f"survivors: {survivors}"
    assert not blamed, f"a wrong solution costs points elsewhere: {blamed}"


def test_every_module_with_exports_has_mutants() -> None:
    exported = {name for name, path in NOTEBOOKS.items() if (ROOT / "tinybench" / f"{module_name(path)}.py").is_file()}
    assert exported <= set(LISTS), f"no mutants for {sorted(exported - set(LISTS))}"
