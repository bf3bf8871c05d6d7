"""A measurement of memory in a new Python process, for each stage: import, load, first call, second call and so on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tinybench.support.rounds.fresh_processes import fresh_process

PEAK_METHOD = "VmHWM after a reset through clear_refs"
STAGES = ("import", "load", "first_call", "second_call", "steady")
_CHILD = """
stages = {}

def status():
    global source
    try:
        with open(task["proc"] + "/self/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        source = "VmHWM"
        return [int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")]
    except (OSError, KeyError):
        memory = plain_import("psutil").Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        source = "the peak working set (psutil)"
        return [memory.rss, memory.peak_wset]
    resource = plain_import("resource")
    source = "the maximum resident size (getrusage)"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [memory.rss, peak if sys.platform == "darwin" else peak * 1024]

def reset():
    try:
        with open(task["proc"] + "/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True

status()
resettable = reset()

def begin(stage):
    global current, base, start
    current = stages.setdefault(stage, {"peak": 0, "retained": 0, "resident": 0})
    reset()
    base, start = status()

def end():
    resident, peak = status()
    # a mark that cannot be reset and did not rise was set by an earlier stage
    rise = peak - base if resettable or peak > start else resident - base
    current["peak"] = max(current["peak"], current["retained"] + rise)
    current["retained"] += resident - base
    current["resident"] = resident

def staged_import(*args, **kwargs):
    global depth
    depth += 1
    if depth == 1:
        end()
        begin("import")
    try:
        return plain_import(*args, **kwargs)
    finally:
        depth -= 1
        if depth == 0:
            end()
            begin("load")

def run():
    begin("import")
    end()
    begin("load")
    builtins.__import__ = staged_import
    factory = load_factory()
    model = factory(*loads(task["args"]))
    builtins.__import__ = plain_import
    end()
    from tinybench.latency import as_callable
    call, x = as_callable(model), loads(task["inputs"])
    for stage, calls in (("first_call", 1), ("second_call", 1), ("steady", task["steady_calls"])):
        begin(stage)
        for _ in range(calls):
            call(x)
        end()
    try:
        from tinybench.support.footprint.memory_visibility import touched_memory
    except ModuleNotFoundError:  # in the notebook that builds it, nobody knows
        touched_memory = lambda *_: (None, 1)
    method = task["method"] if resettable else "growth of " + source
    return {"stages": stages, "method": method, "touched": touched_memory(call, x, task["proc"])}
"""


def run_fresh_stages(task: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task made by `fresh_task` in a new process and return the memory that this process used.

    The keys of the result are ``stages``, with ``peak``, ``retained`` and ``resident`` in bytes for each stage;
    ``method``, the way of measuring the peak; and ``touched``, the result of `touched_memory`.
    """
    # a process inherits the ru_maxrss of its parent, so a small intermediate process starts the measured process
    small = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    return fresh_process(_CHILD, {"proc": "/proc", "method": PEAK_METHOD, **task}, sys.executable, "-c", small)
