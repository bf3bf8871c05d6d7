"""Helpers against two things that hide memory use: freed pages that stay allocated, and ONNX Runtime's memory arena."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tinybench.support.rounds.checked_calls import refuse_later_answer


def free_heap() -> bool:
    """Collect garbage and give free heap pages back to the system. Without glibc's `malloc_trim`, return False."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return False
    return True


@contextmanager
def young_heap() -> Iterator[None]:
    """Exclude existing objects from garbage collection within the block, so that a collection costs almost nothing."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class WithoutArenas:
    """A wrapper of a function `call`. While the function runs, copies without a memory arena replace its ONNX sessions.

    Such a copy is called a twin. A session of ONNX Runtime is found wherever it is stored: in an attribute, a closure
    or a registry.

    A twin is built when its session first runs. ``late`` holds the indices of the calls of this wrapper in which a twin
    was built.
    ``arena`` is ``"none"`` if no session with an arena ran, ``"off in a twin session"`` if a twin ran, or
    ``"on, and hides memory"`` if a session could not be built again.
    """

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self.call, self.arena, self.late = call, "none", list[int]()
        self._number, self._twins, self._new = -1, dict[int, tuple[Any, Any]](), set[int]()

    def __call__(self, x: Any) -> Any:
        """Run the function while this object replaces the attribute `_sess` of sessions, so that their twins run."""
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
        except Exception:  # for example, an I/O binding accepts only its own session
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
            except Exception:  # the model file is gone, or the session has custom operators
                self.arena = ARENA_ON
                return own
            self.arena = "off in a twin session"
            self.late.append(self._number)
        return self._twins[id(own)][1].__dict__["_sess"]

    def __set__(self, session: Any, own: Any) -> None:
        session.__dict__["_sess"] = own
        self._new.add(id(own))  # a session created during this call, so its arena is still empty

    def renew(self) -> None:
        """Rebuild every twin, so that the next call is again the first call of each twin."""
        self._twins = {key: (session, _arena_free_twin(session)) for key, (session, _) in self._twins.items()}


ARENA_ON = "on, and hides memory"


def _has_arena(session: Any) -> bool:
    return bool(getattr(session.get_session_options(), "enable_cpu_mem_arena", False))


def _arena_free_twin(session: Any) -> Any:
    kind, options = sys.modules["onnxruntime"].InferenceSession, session.get_session_options()
    options.enable_cpu_mem_arena = False  # these are the session's own options, which are restored below
    try:
        return kind(session._model_path or session._model_bytes, options, providers=session.get_providers())
    finally:
        options.enable_cpu_mem_arena = True
