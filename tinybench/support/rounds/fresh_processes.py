"""Measurements in a fresh Python process: the transfer of a model to the process, and the time of a cold start."""

from __future__ import annotations

import base64
import builtins
import dis
import inspect
import json
import pickle
import subprocess
import sys
import tempfile
import textwrap
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BEGINNING = """
import base64, builtins, json, pickle, sys, time
task = json.load(open(sys.argv[1]))
sys.path[:] = task["path"]
plain_import, depth = builtins.__import__, 0

def loads(text):
    return pickle.loads(base64.b64decode(text))

def load_factory():
    if not task["source"]:
        return loads(task["factory"])
    space = {"__name__": "factory"}
    exec(task["source"], space)
    return space[task["name"]]
"""
_END = """
try:
    answer = run()
except Exception as error:
    answer = {"error": f"{type(error).__name__}: {error}"}
json.dump(answer, open(sys.argv[2], "w"))
"""
_CHILD = """
clock, importing = time.perf_counter, 0.0

def timed_import(*args, **kwargs):
    global depth, importing
    depth, start = depth + 1, clock()
    try:
        return plain_import(*args, **kwargs)
    finally:
        depth -= 1
        if depth == 0:
            importing += clock() - start

def run():
    builtins.__import__ = timed_import
    start = clock()
    factory = load_factory()
    model = factory(*loads(task["args"]))
    end = clock()
    builtins.__import__ = plain_import
    from statistics import median
    x = loads(task["inputs"])
    try:
        from tinybench.latency import as_callable
        from tinybench.support.rounds.checked_calls import plain_call
        call, x = plain_call(as_callable(model), x, None, None)
    except ModuleNotFoundError:  # in the notebook that builds them: its example is a session
        call = lambda x: model.run(None, {model.get_inputs()[0].name: x})
    times = []
    for _ in range(1 + task["steady_calls"]):
        began = clock()
        call(x)
        times.append(clock() - began)
    first, *steady = times
    return {"import": importing, "load": end - start - importing, "first_call": first, "steady": median(steady)}
"""


def portable_factory(factory: Any) -> dict[str, str]:
    """Return a factory, a function that loads a model, as texts from which a fresh process can rebuild the function.

    The texts are ``source`` and ``name``, or ``factory`` (pickled). A function from a notebook or script is sent as its
    source, so it must import everything that it needs. If the factory cannot be sent, raise TypeError with the remedy.
    """
    if isinstance(factory, str):
        module, colon, name = factory.partition(":")
        if not (colon and all(part.isidentifier() for part in [*module.split("."), *name.split(".")])):
            raise TypeError(f"factory is {factory!r}; as text it must be 'module:function'")
        return {
            "source": f"def make(*args):\n    import {module}\n    return {module}.{name}(*args)\n",
            "name": "make",
            "factory": "",
        }
    if not callable(factory):
        raise TypeError(
            f"factory is a {type(factory).__name__}; pass a function that loads the model, or 'module:function'"
        )
    local = isinstance(factory, types.FunctionType) and (
        factory.__module__ == "__main__" or "<" in factory.__qualname__
    )
    if not local:
        try:
            return {"source": "", "name": "", "factory": base64.b64encode(pickle.dumps(factory)).decode()}
        except Exception as error:
            raise TypeError(
                f"factory cannot travel to a fresh process ({error}); pass a function or 'module:function'"
            ) from None
    return {"source": _self_contained_source(factory), "name": factory.__name__, "factory": ""}


def _self_contained_source(function: types.FunctionType) -> str:
    """Return the source of a function. If the function uses names that are defined outside of it, raise TypeError."""
    used = {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}
    outside = sorted(used - set(dir(builtins)) - {function.__name__}) + list(function.__code__.co_freevars)
    if function.__name__ == "<lambda>":
        raise TypeError("factory is a lambda; write it as a def, which can travel to a fresh process")
    if outside:
        raise TypeError(
            f"{function.__name__} uses {', '.join(outside)} from outside, which a fresh process does not have; "
            "import within the function, and pass values by args=(…,)"
        )
    try:
        # annotations may use names that a fresh process lacks; this import prevents their evaluation
        return "from __future__ import annotations\n" + textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise TypeError(
            f"the source of {function.__name__} is not to be found; put it in a file and pass 'module:function'"
        ) from None


def fresh_task(factory: Any, x: Any, args: Sequence[Any], steady_calls: int) -> dict[str, Any]:
    """Return the data with which a fresh process loads and calls a model: its factory, pickled arguments and input."""
    packed = {
        name: base64.b64encode(pickle.dumps(value)).decode()
        for name, value in {"args": tuple(args), "inputs": x}.items()
    }
    return {**portable_factory(factory), **packed, "steady_calls": steady_calls}


def fresh_process(script: str, task: Mapping[str, Any], *launcher: str) -> dict[str, Any]:
    """Run a script's function `run` in a fresh Python process and return its result.

    The script can use `task`, `loads` and `load_factory`. `launcher` is an optional command that starts the process. If
    the process dies or reports an ``error``, raise RuntimeError with the reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "task.json"), Path(folder, "answer.json")
        question.write_text(json.dumps({**task, "path": sys.path}), encoding="utf-8")
        command = [*launcher, sys.executable, "-c", BEGINNING + script + _END, str(question), str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if not answer.is_file() or not answer.stat().st_size:
            raise RuntimeError(f"the fresh process ended with code {done.returncode}: {done.stderr.strip()[-500:]}")
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in found:
        raise RuntimeError(f"the model failed in a fresh process: {found['error']}")
    return found


def run_fresh(task: Mapping[str, Any]) -> dict[str, float]:
    """Run a task of `fresh_task` once in a fresh process, and return the duration of each stage in seconds."""
    return fresh_process(_CHILD, task)
