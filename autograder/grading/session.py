"""The session in which one submission is run and judged.

The submission's cells run in the sandbox. Hidden checks run in the grader's process, and use objects of the sandbox
through proxies. A piece is a function, class or method that the student has to write.
"""

from __future__ import annotations

import ast
import functools
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autograder import time_limits
from autograder.checks import judge, pieces_of
from autograder.checks.plain_answers import CheckFailed
from autograder.course.notebook import BEGIN_HIDDEN, Cell, cells_of
from autograder.grading.reference import compiled_without
from autograder.grading.sanitize import safe_text
from autograder.sandbox.rpc.codec import MAX_CLAIM, MAX_CLAIMS, Channel, ChannelError, ProtocolViolation
from autograder.sandbox.rpc.endpoint import Endpoint
from autograder.sandbox.rpc.proxy import Proxy
from autograder.sandbox.zygote_client import Zygote

if TYPE_CHECKING:
    from nbformat import NotebookNode

GRACE_SECONDS = 2.0
CELL_WALL, CHECK_WALL = 3, 6  # wall clock time, in multiples of the CPU time `call_seconds`
FORGED = "the process answered for the grader's own code"
OWN = ("autograder.", "tests.")
BOUND = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
LENT = (list, dict, set, Iterator)  # the sandbox may call methods of these, such as the append of a check's list


def hidden_checks(source: str) -> list[str]:
    """Return the names of the hidden checks that the source of a graded cell contains."""
    hidden = source[source.index(BEGIN_HIDDEN) :] if BEGIN_HIDDEN in source else ""
    return [
        node.args[0].value
        for node in ast.walk(ast.parse(hidden))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "run"
        and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    ]  # fmt: skip


@dataclass(frozen=True)
class HiddenCheck:
    """A hidden check, the pieces that it judges, and the pieces that the reference lacks while the check runs."""

    name: str
    pieces: tuple[str, ...]
    absent: tuple[str, ...]


def may_lend(value: Any) -> bool:
    """Return whether the sandbox gets a reference to an object (the object is lent) instead of a copy.

    Fakes and functions that belong to the checks are lent.
    """
    if isinstance(value, BOUND) and not isinstance(value.__self__, types.ModuleType):
        return isinstance(value.__self__, LENT) or may_lend(value.__self__)
    if isinstance(value, functools.partial):
        return may_lend(value.func)
    kind = value if isinstance(value, type | types.FunctionType) else type(value)
    return isinstance(value, types.FunctionType | types.GeneratorType) or f"{kind.__module__}.".startswith(OWN)


def plan_checks(source: NotebookNode) -> dict[str, list[HiddenCheck]]:
    """Return the hidden checks of each graded cell.

    The sandbox contains a reference module, which a student's code could read and copy. So while a check runs, this
    module lacks all pieces that this check or a later check judges. It may contain a piece that only earlier checks
    judge, because copying this piece no longer earns points.
    """
    checks = [
        (cell.id, name)
        for cell in cells_of(source) if cell.is_check for name in hidden_checks(cell.source)
    ]  # fmt: skip
    plan: dict[str, list[HiddenCheck]] = {}
    left: set[str] = set()
    for cell, name in reversed(checks):
        left.update(pieces_of(name))
        plan.setdefault(cell, []).insert(0, HiddenCheck(name, pieces_of(name), tuple(sorted(left))))
    return plan


class SessionEnded(Exception):
    """The session is over. The message gives the reason. `violation` is True if the sandbox violated the protocol."""

    def __init__(self, why: ChannelError) -> None:
        super().__init__(str(why))
        self.violation = isinstance(why, ProtocolViolation)


class Session:
    """The sandbox of one submission, in which cells are run and judged until the monotonic time `until`.

    `modules` are the names of the modules that the notebook exports, and `reference` is the source of their reference
    solutions, joined into one module. In the sandbox, this module has the last name in `modules`. If the notebook
    exports no modules, `modules` holds a single name, and `reference` defines nothing.
    """

    def __init__(self, zygote: Zygote, modules: list[str], reference: str, until: float) -> None:
        self.modules, self.reference, self.until = modules, reference, until
        self.seconds = zygote.limits.call_seconds
        self.sandbox = zygote.fork()
        self.channel = Channel(self.sandbox.rpc, max_received=MAX_CLAIM, total=MAX_CLAIMS)
        self.guest: Any = Endpoint(self.channel, may_lend).root()

    def run_cell(self, source: str) -> tuple[str, Any]:
        """Run a student's cell.

        Return the problem, or "" if there is none, and the outputs. The sandbox could forge both.
        """
        return self._ask("cell", source)

    def check(self, cell: Cell, checks: list[HiddenCheck], passed: set[str]) -> tuple[str, Any]:
        """Judge a graded cell. Return the problem, or "" if there is none, and the outputs of the cell's visible part.

        Checks in `passed` are not run again. The names of checks that pass are added to `passed`.
        """
        if not checks:
            return "CheckFailed: this cell has no hidden check; tell your instructor", []
        problem, outputs = self.run_visible(cell, checks)
        for hidden in checks:
            # a visible assert can only take points away, because the student's code could fake that it passed
            if not problem and hidden.name not in passed and not (problem := self._judge(hidden)):
                passed.add(hidden.name)
        return problem, outputs

    def run_visible(self, cell: Cell, checks: list[HiddenCheck]) -> tuple[str, Any]:
        """Run the visible part of a graded cell. Return the problem, or "" if there is none, and the outputs."""
        reference = self._reference_for(checks[0])
        return self._ask("visible", cell.visible, self.modules, reference, list(checks[0].pieces))

    def _judge(self, hidden: HiddenCheck) -> str:
        """Run a hidden check. Return the problem that the check finds, or "" if there is none."""

        def namespace(pieces: tuple[str, ...]) -> Any:
            if not pieces:
                return self.guest.names()
            return self.guest.graft(self.modules[-1], self._reference_for(hidden), list(pieces))

        self._set_deadline(CHECK_WALL)
        try:
            judge(hidden.name, namespace)
        except CheckFailed as failure:
            if self.channel.broken:
                raise SessionEnded(self.channel.broken) from None
            return f"CheckFailed: {failure}"
        return ""

    def _ask(self, what: str, *args: Any) -> tuple[str, Any]:
        """Call a method of the sandbox that runs a cell.

        Return the problem that the sandbox reports, and the outputs.
        """
        self._set_deadline(CELL_WALL)
        try:
            method = getattr(self.guest, what)
            claimed = method(*args) if isinstance(method, Proxy) and callable(method) else None
        except ChannelError as error:
            raise SessionEnded(error) from None
        except Exception as error:  # for example, the time limit was reached between two steps
            return f"{type(error).__name__}: {error}", []
        if not isinstance(claimed, tuple) or len(claimed) != 2:
            raise SessionEnded(ProtocolViolation(FORGED))
        outputs, problem = claimed
        if problem is None:
            return "", outputs
        if type(problem) is not list or [type(part) for part in problem] != [str, str]:
            raise SessionEnded(ProtocolViolation(FORGED))
        # the guest reported an error, so the returned text must not be empty, whatever the guest wrote
        parts = [safe_text(part).strip() for part in problem]
        return ": ".join(part for part in parts if part) or "Error", outputs

    def _set_deadline(self, multiple: int) -> None:
        left = self.until - time.monotonic()
        self.channel.set_deadline(min(time_limits.wall(multiple * self.seconds + GRACE_SECONDS), max(left, 0.001)))

    def _reference_for(self, hidden: HiddenCheck) -> bytes:
        return compiled_without(self.reference, self.modules[-1], hidden.absent)

    def end(self) -> str:
        """End the sandbox. If it had ended already, return the reason. Otherwise, return an empty text."""
        return self.sandbox.end()
