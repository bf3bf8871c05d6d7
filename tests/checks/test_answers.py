"""No hidden check compares, iterates or tests an answer that it has not taken."""

from __future__ import annotations

import inspect
import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.checks import judge
from autograder.checks.plain_answers import CheckFailed
from autograder.course.notebook import course_notebooks, module_name, read_notebook
from autograder.grading.session import may_lend, plan_checks
from autograder.sandbox.rpc import proxy
from autograder.sandbox.rpc.codec import Channel
from autograder.sandbox.rpc.endpoint import Endpoint
from tests.checks.odd import Opaque, answering, odd
from tests.house import lesson

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {path.stem: path for path in course_notebooks(ROOT)}
CHECKS = [
    (stem, hidden.name, hidden.pieces)
    for stem, path in NOTEBOOKS.items()
    for checks in plan_checks(read_notebook(path)).values()
    for hidden in checks
]


def opaque(_: Any) -> Opaque:
    """Return an object instead of an answer."""
    return Opaque()


@pytest.mark.parametrize("change", [odd, opaque])
@pytest.mark.parametrize(("notebook", "name", "pieces"), CHECKS, ids=[check[1] for check in CHECKS])
def test_answers_are_taken(
    notebook: str, name: str, pieces: tuple[str, ...], change: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever the verdict on odd answers, no check asks one of them for it."""
    told: list[str] = []
    original = proxy.AnswerNotTaken.__init__

    def tell(self: proxy.AnswerNotTaken, *words: object) -> None:
        told.append(str(words[0]))
        original(self, *words)

    monkeypatch.setattr(proxy.AnswerNotTaken, "__init__", tell)
    monkeypatch.chdir(tmp_path)
    student = _student(module_name(Path(notebook)), pieces, change)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(60)
        grader, guest = Endpoint(Channel(ours), may_lend), Endpoint(Channel(theirs))
        guest.share(lambda: student)
        threading.Thread(target=guest.serve, daemon=True).start()
        with suppress(CheckFailed):
            judge(name, lambda *_: grader.root()())
    assert not told


class _Answers:
    """A student's answers to questions."""

    def __init__(self, change: Any) -> None:
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return self._change(0.5)


def _student(module: str, pieces: tuple[str, ...], change: Any) -> Any:
    """Return the reference with other answers of the judged pieces; without pieces, answers to questions."""
    if not pieces:
        return _Answers(change)
    names = vars(lesson(module))
    for piece in pieces:
        owner, _, method = piece.rpartition(".")
        if not owner:
            names[piece] = answering(names[piece], change)
        elif not method.startswith("__"):
            member = inspect.getattr_static(names[owner], method)
            if callable(member):
                names[owner] = type(owner, (names[owner],), {method: answering(member, change)})
    return SimpleNamespace(**names)
