# Written by "autograder export" from modules/05_memory/05_memory.ipynb: edit the notebook, not this file.

"""What hides memory from a measurement: freed pages that stay, and the arena of ONNX Runtime."""

from __future__ import annotations

import copy
import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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


def without_arena(model: Any) -> tuple[Any, str]:
    """Return a model whose ONNX Runtime sessions keep no arena, by a twin where it or an attribute is one, and what was
    done.

    That is ``"none"``, ``"off in a twin session"``, or ``"on, and hides memory"`` where a session cannot be built
    again.
    """
    parts = {"": model, **getattr(model, "__dict__", {})}
    sessions = {name: part for name, part in parts.items() if _has_arena(part)}
    if not sessions:
        return model, "none"
    try:
        twins = {name: _arena_free_twin(part) for name, part in sessions.items()}
    except Exception:  # a session from a source that is gone, or with custom operators
        return model, "on, and hides memory"
    if "" in twins:
        return twins[""], "off in a twin session"
    twin = copy.copy(model)
    twin.__dict__.update(twins)
    return twin, "off in a twin session"


def _has_arena(part: Any) -> bool:
    options = getattr(part, "get_session_options", None)
    return callable(options) and bool(getattr(options(), "enable_cpu_mem_arena", False))


def _arena_free_twin(session: Any) -> Any:
    options = session.get_session_options()  # the session's own object, so it is put back as it was
    options.enable_cpu_mem_arena = False
    try:
        return type(session)(session._model_path or session._model_bytes, options, providers=session.get_providers())
    finally:
        options.enable_cpu_mem_arena = True
