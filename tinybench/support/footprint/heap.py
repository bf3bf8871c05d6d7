"""What hides memory from a measurement: freed pages that stay, and the arena of ONNX Runtime."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tinybench.support.rounds.calls import refuse_later_answer


def free_heap() -> bool:
    """Collect garbage, and return the C heap's free pages to the system; whether the C library could (glibc can)."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return False
    return True


@contextmanager
def young_heap() -> Iterator[None]:
    """Set aside what is there already, so that collecting garbage within the block costs almost nothing."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class WithoutArenas:
    """A call whose ONNX Runtime sessions run as twins without an arena.

    It does not matter what holds the sessions: an attribute, a closure, a registry.

    A twin is built when its session first runs; ``late`` holds the numbers of the calls in which that happened.
    ``arena`` says what was done: ``"none"`` ran, ``"off in a twin session"``, or ``"on, and hides memory"`` where a
    session cannot be built again.
    """

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self.call, self.arena, self.late = call, "none", list[int]()
        self._number, self._twins, self._new = -1, dict[int, tuple[Any, Any]](), set[int]()

    def __call__(self, x: Any) -> Any:
        """Call with sessions looked up here: their class gets this object in the place of the attribute `_sess`."""
        answer = self._answer(x)
        refuse_later_answer(answer, self.call)
        return answer

    def _answer(self, x: Any) -> Any:
        self._number, self._new = self._number + 1, set()
        kind = getattr(sys.modules.get("onnxruntime"), "InferenceSession", None)
        if kind is None or self.arena == ARENA_ON:
            return self.call(x)
        before = vars(kind).get("_sess")
        kind._sess = self
        try:
            return self.call(x)
        except Exception:  # such as an I/O binding, which takes no other session than its own
            if not self._twins:
                raise
            self.arena = ARENA_ON
        finally:
            if before is None:
                del kind._sess
            else:
                kind._sess = before
        return self.call(x)

    def __get__(self, session: Any, kind: Any = None) -> Any:
        own = session.__dict__.get("_sess")
        if id(own) in self._new or self.arena == ARENA_ON or not _has_arena(session):
            return own
        if id(own) not in self._twins:
            try:
                self._twins[id(own)] = session, _arena_free_twin(session)
            except Exception:  # its source is gone, or it has custom operators
                self.arena = ARENA_ON
                return own
            self.arena = "off in a twin session"
            self.late.append(self._number)
        return self._twins[id(own)][1].__dict__["_sess"]

    def __set__(self, session: Any, own: Any) -> None:
        session.__dict__["_sess"] = own
        self._new.add(id(own))  # a session of this very call: nothing in its arena yet

    def renew(self) -> None:
        """Build each twin again, so that its next call is its first."""
        self._twins = {key: (session, _arena_free_twin(session)) for key, (session, _) in self._twins.items()}


ARENA_ON = "on, and hides memory"


def _has_arena(session: Any) -> bool:
    return bool(getattr(session.get_session_options(), "enable_cpu_mem_arena", False))


def _arena_free_twin(session: Any) -> Any:
    kind, options = sys.modules["onnxruntime"].InferenceSession, session.get_session_options()
    options.enable_cpu_mem_arena = False  # the session's own object, so it is put back as it was
    try:
        return kind(session._model_path or session._model_bytes, options, providers=session.get_providers())
    finally:
        options.enable_cpu_mem_arena = True
