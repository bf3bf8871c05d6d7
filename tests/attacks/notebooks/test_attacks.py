"""No attack earns a mark, learns a secret, or outlives its limits; honest work keeps its marks and is not flagged."""

from __future__ import annotations

import operator
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder import time_limits
from autograder.course.assignment import Assignment
from autograder.course.notebook import cells_of
from autograder.grading.session import HiddenCheck, Session
from autograder.grading.submission import UnusableSubmission, read_submission
from autograder.grading.submission_grader import Grader
from autograder.grading.verdict import Graded
from autograder.sandbox.bubblewrap import Limits
from autograder.sandbox.guest import runner
from autograder.sandbox.rpc import endpoint
from autograder.sandbox.zygote_client import Sandbox, Zygote
from tests.attacks.notebooks import SOURCE, Attack, before_checks, cell_of, evidence, first, released, solved
from tests.attacks.notebooks.folder import ATTACKS as FOLDER
from tests.attacks.notebooks.inside import ATTACKS as INSIDE
from tests.attacks.notebooks.inside import SMUGGLE
from tests.attacks.notebooks.outside import ATTACKS as OUTSIDE
from tests.attacks.page import part

pytestmark = pytest.mark.needs("sandbox")

# Of each family: reading, the checks' tools, the interpreter, the judge, the process, outputs, marks, and the file itself.
FIRST = {
    "read_environment", "equal_to_everything", "import_the_reference", "ast_transformer", "endpoint_patched",
    "os_exit", "memory_bomb", "script_displayed", "all_checks_edited", "points_changed", "truncated",
}  # fmt: skip
LIMITS = Limits(call_seconds=1.5, wall_seconds=12, memory=2**30)
MOST_SECONDS = 30.0  # with two restarts
CANARY = secrets.token_hex(16)
SECRETS = [CANARY, "LEAK ", *evidence.SECRETS]  # the second: what an attack prints that succeeded


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    os.environ["TINYBENCH_CANARY"] = CANARY
    secret = Path("/tmp") / f"gradebook-{CANARY}.db"
    secret.write_text(CANARY)
    with Grader(Assignment.read(SOURCE), limits=LIMITS) as grader:
        yield grader
    secret.unlink()
    del os.environ["TINYBENCH_CANARY"]


def shown(graded: Graded) -> str:
    """Return all that a submission made appear: outputs, and cells that are not the instructor's."""
    notebook = nbformat.reads(graded.notebook.decode(), as_version=4)
    return "\n".join(str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code")


def once_a_family(attack: Attack) -> Any:
    """Leave an attack to the audit unless it stands for its family."""
    return pytest.param(attack, id=attack.name, marks=[] if attack.name in FIRST else [pytest.mark.audit])


@pytest.mark.parametrize("attack", map(once_a_family, [*INSIDE, *OUTSIDE]))
def test_attack(attack: Attack, grader: Grader) -> None:
    started, most = time.monotonic(), time_limits.wall(MOST_SECONDS)
    graded = grader.grade(attack.content())
    assert time.monotonic() - started < max(
        most, time_limits.wall(MOST_SECONDS)
    )  # others may have come or gone meanwhile
    assert graded.verdicts, "every graded cell has a verdict"
    gained = [name for name, failure in graded.verdicts.items() if not failure]
    assert not gained, f"marks for nothing: {gained}"
    text = shown(graded)
    assert not [secret for secret in SECRETS if secret in text]
    assert len(graded.notebook) < 20 * 2**20
    assert not re.search(r"<script|\bonerror|\bonload|\bonclick|javascript:|<iframe", text, re.I)
    if attack.flagged:
        assert graded.evidence, "the instructor should be told"
    if attack.reason:
        assert re.search(attack.reason, graded.failure + text), graded.failure or text[-2000:]
    assert grader.zygote.process.poll() is None, "the zygote must outlive every submission"


def test_attacks_name_what_is_in_the_sandbox() -> None:
    """An attack on a name that is not there would prove nothing."""
    text = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("*.py"))
    for module, names in (
        (runner, {"visible", "graft", "names", "run_cell", "_install"}),
        (endpoint, {"_send", "_do"}),
    ):
        found = re.findall(rf"{module.__name__.rpartition('.')[2]}\.((?:[A-Z]\w+\.)?[a-z_]+)\b", text)
        assert {name.rpartition(".")[2] for name in found} >= names
        for name in found:
            assert operator.attrgetter(name)(module)
    assert '"GuestEndpoint"' in text
    assert issubclass(runner.GuestEndpoint, endpoint.Endpoint)


@pytest.mark.parametrize("attack", FOLDER, ids=lambda attack: attack.name)
def test_attack_by_the_folder(attack: Attack, grader: Grader, tmp_path: Path) -> None:
    source = tmp_path / "source" / "01_result" / SOURCE.name
    source.parent.mkdir(parents=True)
    shutil.copy(SOURCE, source)
    submitted = tmp_path / "submitted"
    attack.hand_in(submitted / "eve" / "01_result", source)
    usable = nullcontext() if not attack.reason else pytest.raises(UnusableSubmission, match=attack.reason)
    with usable:
        read = read_submission(submitted / "eve" / "01_result" / SOURCE.name, submitted)
        assert all(grader.grade(read).verdicts.values())


def test_the_table_has_every_attack() -> None:
    assert {attack.name for attack in [*INSIDE, *OUTSIDE]} > FIRST
    names = [attack.name for attack in [*INSIDE, *OUTSIDE, *FOLDER]]
    assert len(set(names)) == len(names) >= 40
    rows = [line.split(" | ")[0].removeprefix("| ") for line in part("versus_stock").splitlines()]
    missing = [name for name in names if name.replace("_", " ") not in rows]
    assert not missing, "run `python -m tests.attacks.notebooks.versus_stock`"


def test_untouched_earns_nothing_and_is_not_flagged(grader: Grader) -> None:
    graded = grader.grade(nbformat.writes(released(SOURCE)).encode())
    assert all(graded.verdicts.values())
    assert not graded.evidence
    assert not graded.failure


def test_what_the_schedule_is_for(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the reference of later pieces there from the start, a submission could keep it and hand it in."""
    notebook = released(SOURCE)
    before_checks(SMUGGLE)(notebook)
    plan = grader.plan.items()
    careless = {cell: [replace(hidden, absent=hidden.pieces) for hidden in checks] for cell, checks in plan}
    monkeypatch.setattr(grader, "plan", careless)
    graded = grader.grade(nbformat.writes(notebook).encode())
    assert not all(graded.verdicts.values()), "the attack does not work, so it shows nothing"


def test_what_was_judged_is_not_judged_again(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A last cell that ends the process would else give a guess at each question three tries; and it takes nothing away."""
    judged: list[str] = []
    judge = Session._judge
    monkeypatch.setattr(Session, "_judge", lambda session, hidden: judged.append(hidden.name) or judge(session, hidden))
    notebook = solved(SOURCE)
    notebook.cells += [nbformat.v4.new_code_cell("import os; os._exit(1)") for _ in "12"]
    graded = grader.grade(nbformat.writes(notebook).encode())
    assert not any(graded.verdicts.values())
    assert len(judged) == len(set(judged))
    assert "ended" in graded.failure


def test_a_name_of_a_demonstration_is_no_mistake() -> None:
    """Those run only where they are needed, and then all is judged anew; honest work has the time it really has."""
    notebook = solved(SOURCE)
    at = notebook.cells.index(cell_of(notebook, "check_values"))
    before = [cell for cell in cells_of(notebook)[:at] if cell.is_code and not cell.marks]
    name = next(match[1] for cell in before if (match := re.search(r"^(\w+) = ", cell.source, re.M)))
    cell_of(notebook, "check_values").source = f"assert {name} is not None\n" + cell_of(notebook, "check_values").source
    with Grader(Assignment.read(SOURCE)) as grader:
        graded = grader.grade(nbformat.writes(notebook).encode())
    assert not any(graded.verdicts.values())


@pytest.mark.parametrize("trick", ["raise NameError('later')", "import os; os._exit(1)"])
def test_one_sandbox_lives_at_a_time(trick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what has seen the reference of a piece is not judged on it again: neither after a death nor after a name."""
    alive, most, passed = 0, 0, []
    fork, end, judge = Zygote.fork, Sandbox.end, Session._judge

    def forked(zygote: Zygote) -> Sandbox:
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        return fork(zygote)

    def ended(sandbox: Sandbox) -> str:
        nonlocal alive
        alive -= sandbox.rpc.fileno() >= 0  # ending twice is one end
        return end(sandbox)

    def judged(session: Session, hidden: HiddenCheck) -> str:
        problem = judge(session, hidden)
        if not problem:
            passed.append(hidden.name)
        return problem

    monkeypatch.setattr(Zygote, "fork", forked)
    monkeypatch.setattr(Sandbox, "end", ended)
    monkeypatch.setattr(Session, "_judge", judged)
    notebook = solved(SOURCE)
    last = [cell for cell in cells_of(notebook) if cell.is_check][-1]
    notebook.cells.insert(notebook.cells.index(last.node), nbformat.v4.new_code_cell(trick))
    with Grader(Assignment.read(SOURCE)) as grader:
        verdicts = grader.grade(nbformat.writes(notebook).encode()).verdicts
    assert (alive, most) == (0, 1)
    assert len(passed) == len(set(passed)) >= len(verdicts)


def test_executed_notebook_has_the_instructors_checks(grader: Grader) -> None:
    attack = next(attack for attack in OUTSIDE if attack.name == "all_checks_edited")
    notebook = nbformat.reads(grader.grade(attack.content()).notebook.decode(), as_version=4)
    checks = [cell.source for cell in cells_of(notebook) if cell.is_check]
    assert checks == [cell.source for cell in cells_of(grader.source) if cell.is_check]
    assert not any("tags" in cell.metadata for cell in notebook.cells)


def test_nothing_passes_between_submissions(grader: Grader) -> None:
    leave = (
        "import os, socket, numpy, builtins\nfor place in ('/tmp', '/dev/shm', '.', '..', '/course', '/dev', '/var/tmp', '/'):\n"
        "    try: open(os.path.join(place, 'left'), 'w').write('x')\n    except OSError: pass\n"
        "numpy.left = builtins.left = True\nos.environ['LEFT'] = '1'\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen()"
    )
    find = (
        "import os, socket, numpy, builtins\n"
        "found = [f for f in ('/tmp', '/dev/shm', '.', '..', '/course', '/dev', '/var/tmp', '/') if os.path.exists(os.path.join(f, 'left'))]\n"
        "found += [m for m in (numpy, builtins) if hasattr(m, 'left')] + [k for k in os.environ if k == 'LEFT']\n"
        "try: socket.socket(socket.AF_UNIX).connect('\\0left'); found.append('socket')\nexcept OSError: pass\n"
        "found += [p for p in os.listdir('/proc') if p.isdigit() and p != '1']\n"
        "print('FOUND', found)"
    )
    outputs = []
    for code in (leave, find):
        notebook = released(SOURCE)
        first(code)(notebook)
        outputs.append(shown(grader.grade(nbformat.writes(notebook).encode())))
    assert "FOUND []" in outputs[1], outputs[1][:500]


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    """Return where a submission should lie, two folders below what was handed in."""
    (tmp_path / "secret.ipynb").write_bytes(b"{}")
    path = tmp_path / "submitted" / "eve" / "01_result" / "01_result.ipynb"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.symlink_to(path.parents[3] / "secret.ipynb"), "symbolic link"),
        (lambda path: os.link(path.parents[3] / "secret.ipynb", path), "hard link"),
        (os.mkfifo, "plain file"),
        (Path.mkdir, "plain file|cannot be read|symbolic"),
        (lambda path: None, "missing"),
        (lambda path: path.touch() or os.truncate(path, 300 * 2**20), "MB"),
    ],
)
def test_files_that_are_not_files(make: Callable[[Path], object], words: str, handed_in: Path) -> None:
    make(handed_in)
    with pytest.raises(UnusableSubmission, match=words):
        read_submission(handed_in, handed_in.parents[2])


def test_files_by_another_way(handed_in: Path) -> None:
    submitted = handed_in.parents[2]
    (submitted / "mallory").symlink_to(submitted / "eve")
    with pytest.raises(UnusableSubmission, match="folder"):
        read_submission(submitted / "mallory" / "01_result" / "01_result.ipynb", submitted)
    with pytest.raises(UnusableSubmission, match="outside"):
        read_submission(submitted / "eve" / ".." / ".." / "secret.ipynb", submitted)
