"""Verdicts from outside: hidden checks run here, in the trusted process, on objects that stay in the sandbox."""

from __future__ import annotations

import ast
import functools
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from autograder import pace
from autograder.checks import CheckFailed, judge
from autograder.course.notebook import BEGIN_HIDDEN, is_check, label, without_hidden
from autograder.grading.reference import compiled_without
from autograder.grading.sanitize import safe_text
from autograder.sandbox.rpc.codec import MAX_CLAIM, MAX_CLAIMS, Foul, Wire, WireError
from autograder.sandbox.rpc.endpoint import Peer
from autograder.sandbox.rpc.proxy import Remote
from autograder.sandbox.zygote import Submission, Warm

if TYPE_CHECKING:
    from nbformat import NotebookNode

GRACE_SECONDS = 2.0
# a cell and each call of a check have `call_seconds` of computing; these are the multiples of it on the wall clock
WALL_OF_A_CELL, WALL_OF_A_CHECK = 3, 6
OWN = ("autograder.", "tests.")
BOUND = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
LENT = (list, dict, set, Iterator)  # their methods, such as a list's append, work on what the check holds


def hidden_checks(source: str) -> list[str]:
    """Return the names of the hidden checks that a graded cell runs."""
    hidden = source[source.index(BEGIN_HIDDEN) :] if BEGIN_HIDDEN in source else ""
    return [
        node.args[0].value
        for node in ast.walk(ast.parse(hidden))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "run"
        and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    ]  # fmt: skip


@dataclass(frozen=True)
class Hidden:
    """A hidden check, the pieces it is about, and the pieces whose reference it must do without."""

    name: str
    pieces: tuple[str, ...]
    absent: tuple[str, ...]


def pieces_of(name: str) -> tuple[str, ...]:
    """Return the pieces of the student's work that a hidden check is about."""
    file, _, function = name.partition(".")
    return tuple(getattr(getattr(import_module(f"autograder.checks.{file}"), function), "pieces", ()))


def stays_here(value: Any) -> bool:
    """Whether an object that a check hands out is lent instead of copied: the checks' own fakes and functions."""
    if isinstance(value, BOUND) and not isinstance(value.__self__, types.ModuleType):
        return isinstance(value.__self__, LENT) or stays_here(value.__self__)
    if isinstance(value, functools.partial):
        return stays_here(value.func)
    kind = value if isinstance(value, type | types.FunctionType) else type(value)
    return isinstance(value, types.FunctionType | types.GeneratorType) or f"{kind.__module__}.".startswith(OWN)


def schedule(source: NotebookNode) -> dict[str, list[Hidden]]:
    """Return the hidden checks of each graded cell, and for each what the reference must not hold while it runs.

    That is what is judged by it or later: a submission that keeps the reference of a piece is too late to gain by it.
    """
    checks = [
        (label(cell, index), name)
        for index, cell in enumerate(source.cells) if is_check(cell) for name in hidden_checks(cell.source)
    ]  # fmt: skip
    plan: dict[str, list[Hidden]] = {}
    judged: set[str] = set()
    for number, (cell, name) in enumerate(checks):
        later = {piece for _, other in checks[number:] for piece in pieces_of(other)} - judged
        own = pieces_of(name)
        plan.setdefault(cell, []).append(Hidden(name, own, tuple(sorted(later | set(own)))))
        judged |= set(own)
    return plan


class Ended(Exception):
    """The conversation with a submission is over: why, and whether by foul play."""

    def __init__(self, why: WireError) -> None:
        super().__init__(str(why))
        self.foul = isinstance(why, Foul)


class Bench:
    """One submission on the bench: its cells run in a sandbox, its checks are judged here.

    Parameters
    ----------
    warm
        The warm parent of its assignment.
    module
        The module under judgement, such as ``"tinybench.result"``.
    reference
        Its source, empty where the assignment has none.
    until
        When its time is over, by `time.monotonic`.
    """

    def __init__(self, warm: Warm, module: str, reference: str, until: float) -> None:
        self.module, self.reference, self.until = module, reference, until
        self.seconds = warm.limits.call_seconds
        self.submission: Submission = warm.submission()
        self.peer = Peer(Wire(self.submission.talk, takes=MAX_CLAIM, in_all=MAX_CLAIMS), guard=stays_here)
        self.desk: Any = self.peer.root()

    def run(self, source: str) -> tuple[str, Any]:
        """Run a student's cell; return what went wrong, and its outputs, both as the sandbox claims them."""
        return self._ask("run", source)

    def check(self, source: str, checks: list[Hidden]) -> tuple[str, Any]:
        """Judge a graded cell; return what is wrong, empty if nothing is, and the outputs of its visible part."""
        if not checks:
            return "CheckFailed: this cell has no hidden check; tell your instructor", []
        problem, outputs = self.show(source, checks)
        for hidden in checks:
            # a visible assert can only take points away: that it passed is the student's word
            problem = problem or self._judge(hidden)
        return problem, outputs

    def show(self, source: str, checks: list[Hidden]) -> tuple[str, Any]:
        """Run the visible part of a graded cell."""
        rest = self._rest(checks[0])
        return self._ask("visible", without_hidden(source), self.module, rest, list(checks[0].pieces))

    def _judge(self, hidden: Hidden) -> str:
        def namespace(module: str, pieces: tuple[str, ...]) -> Any:
            return self.desk.graft(module, self._rest(hidden), list(pieces)) if pieces else self.desk.names()

        self._allow(WALL_OF_A_CHECK)
        try:
            judge(hidden.name, namespace)
        except CheckFailed as failure:
            if self.peer.wire.broken:
                raise Ended(self.peer.wire.broken) from None
            return f"CheckFailed: {failure}"
        return ""

    def _ask(self, what: str, *args: Any) -> tuple[str, Any]:
        """Have a cell run, and return what is said of it."""
        self._allow(WALL_OF_A_CELL)
        try:
            method = getattr(self.desk, what)
            shown = method(*args) if isinstance(method, Remote) and callable(method) else None
        except WireError as error:
            raise Ended(error) from None
        except Exception as error:  # such as a time limit that struck between two steps
            return f"{type(error).__name__}: {error}", []
        if not isinstance(shown, tuple) or len(shown) != 2:
            raise Ended(Foul("the process answered for the grader's own code"))
        outputs, claim = shown
        if claim is None:
            return "", outputs
        if type(claim) is not list or [type(part) for part in claim] != [str, str]:
            raise Ended(Foul("the process answered for the grader's own code"))
        # whatever it claims, something went wrong: no claim may read as none
        parts = [safe_text(part).strip() for part in claim]
        return ": ".join(part for part in parts if part) or "Error", outputs

    def _allow(self, multiple: int) -> None:
        left = self.until - time.monotonic()
        self.peer.wire.allow(min(pace.wall(multiple * self.seconds + GRACE_SECONDS), max(left, 0.001)))

    def _rest(self, hidden: Hidden) -> bytes:
        return compiled_without(self.reference, self.module, hidden.absent)

    def end(self) -> str:
        """End the submission; return why it had ended before, if it had."""
        return self.submission.end()
