"""What a student sees below a cell that failed: why, and not the source of the check."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tinybench.course import set_up_notebook
from tinybench.course.notebook_setup import MISSING_ADVICE, TYPE_ADVICE

Run = Callable[[str], str]
HALVE = "def halve(x):\n    {body}"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a cell in IPython, and return what it shows of an error."""
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shown: list[str] = []
    monkeypatch.setattr(shell, "_showtraceback", lambda kind, error, lines: shown.append("\n".join(lines)))
    set_up_notebook()

    def cell(source: str) -> str:
        shown.clear()
        shell.run_cell(source)
        return "".join(shown)

    return cell


def test_a_check_says_its_message(run: Run) -> None:
    run(HALVE.format(body="return x"))
    said = run('# Check: half of a number\nassert halve(4) == 2, f"half of 4 is 2, not {halve(4)}"')
    assert said == "AssertionError: half of 4 is 2, not 4\n\nline 2 of the check:  assert halve(4) == 2"


def test_what_is_not_written_is_named(run: Run) -> None:
    run(HALVE.format(body='raise NotImplementedError("write halve")'))
    for cell in ("# Check: half of a number\nassert halve(4) == 2", "print(halve(4))"):
        assert run(cell) == "NotImplementedError: write halve"


def test_a_check_that_breaks_speaks_of_types(run: Run) -> None:
    run(HALVE.format(body="x / 2"))
    said = run("# Check: half of a number\nassert halve(4) < 3")
    assert "NoneType" in said
    assert TYPE_ADVICE.split(".")[0][:40] in said


def test_the_students_own_error_is_shown_as_it_is(run: Run) -> None:
    run(HALVE.format(body='return x / "2"'))
    said = run("# Check: half of a number\nassert halve(4) == 2")
    assert 'return x / "2"' in said.replace("\x1b", "").replace("[39m", "") or "unsupported operand" in said
    assert TYPE_ADVICE[:40] not in said


@pytest.mark.parametrize("cell", ["print(measured)", "# Figure: what was measured\ntable = {}\ntable['a']"])
def test_what_a_cell_above_did_not_make(cell: str, run: Run) -> None:
    assert MISSING_ADVICE in run(cell)


def test_a_check_gives_back_the_names_it_uses(run: Run) -> None:
    run(HALVE.format(body="return x / 2") + "\nrows = [1, 2, 3]")
    assert not run("# Check: half of a number\nrows = [halve(4)]\nmade = rows\nassert rows == [2]")
    assert not run("assert rows == [1, 2, 3] and made == [2]")
    assert not run("rows = 4")
    assert not run("assert rows == 4")


def test_a_slip_in_the_students_own_code_is_no_missing_cell(run: Run) -> None:
    run(HALVE.format(body="return y / 2"))
    said = run("# Check: half of a number\nassert halve(4) == 2")
    assert "name 'y' is not defined" in said
    assert MISSING_ADVICE not in said
