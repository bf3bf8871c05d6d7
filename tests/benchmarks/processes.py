"""Processes that benchmarks start: busy ones, and Python functions in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NEVER_RESTS = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n for _ in range(10**6): pass"


@contextmanager
def busy_cores(number: int) -> Iterator[None]:
    """Keep `number` processes busy for the time of the block. They end with this process, too."""
    burners = [subprocess.Popen([sys.executable, "-c", NEVER_RESTS]) for _ in range(number)]
    try:
        time.sleep(0.5 if number else 0)
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def output(*command: str, **environ: str) -> str:
    """Return the output of a process."""
    # pytest-benchmark measures nothing where it finds itself under pytest-xdist
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")} | environ
    run = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.stdout


child = partial(output, sys.executable)


def in_child(function: Callable[..., Any], *arguments: Any, **environ: str) -> Any:
    """Return the result of a module's function, called in a process of its own. All values go as JSON."""
    script = f"import json, sys; from {function.__module__} import {function.__name__} as f; print(json.dumps(f(*json.loads(sys.argv[1]))))"
    return json.loads(child("-c", script, json.dumps(arguments), **environ).splitlines()[-1])


def in_environment(requirement: str, script: Path, values: Any, *arguments: str) -> Any:
    """Return what a script makes of values, in an environment of its own with a package. All values go as JSON."""
    alone = ("-m", "uv", "run", "--no-project", "--isolated", "--with", requirement, "python", str(script))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "values.json")
        file.write_text(json.dumps(values), encoding="utf-8")
        return json.loads(child(*alone, str(file), *arguments).splitlines()[-1])
