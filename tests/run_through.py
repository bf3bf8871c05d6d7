"""Count the files and functions of `tinybench` that a command runs in its own process; see `tests.house`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LOOK = """
import inspect, json, sys, threading
from pathlib import Path
out, *arguments = sys.argv[1:]
package, seen = str(Path(sys.path[0], "tinybench")), set()
def look(frame, event, _):
    code = frame.f_code
    is_function = code.co_flags & inspect.CO_OPTIMIZED and "<" not in code.co_name
    if event == "call" and is_function and code.co_filename.startswith(package):
        seen.add((code.co_filename, code.co_qualname))
sys.setprofile(look)
threading.setprofile(look)
from tinybench.shell.cli import main
status = main(arguments)
sys.setprofile(None)
Path(out).write_text(json.dumps([status, len({file for file, _ in seen}), len(seen)]))
"""
MODELS = """
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from tinybench import to_onnx
X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
np.savez("digits.npz", X=X[1000:], y=y[1000:])
for name, units in (("a", 16), ("b", 32)):
    to_onnx(MLPClassifier((units,), max_iter=20, random_state=0).fit(X[:1000], y[:1000]), X[:1], f"{name}.onnx")
"""
COMMANDS = (
    "compare a.onnx b.onnx --data digits.npz --seconds 1",
    "gate --run a.onnx b.onnx --data digits.npz --seconds 4",
    "rollout a.onnx b.onnx --data digits.npz --rate 200 --fault crash:100%",
)


def run_through(root: Path) -> dict[str, tuple[int, int]]:
    """Return for each command how many files and how many functions it runs through."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"cwd": folder, "capture_output": True}
        start = f"import sys; sys.path.insert(0, {str(root)!r})\n"
        subprocess.run([sys.executable, "-W", "ignore", "-c", start + MODELS], check=True, **environment)
        for command in COMMANDS:
            words = [sys.executable, "-c", start + LOOK, "seen.json", *command.split()]
            done = subprocess.run(words, **environment, timeout=300)
            file = Path(folder, "seen.json")
            assert file.exists(), done.stderr.decode()[-2000:]
            status, files, functions = json.loads(file.read_text(encoding="utf-8"))
            assert status in (0, 1, 2), done.stderr.decode()[-2000:]
            found[command] = files, functions
            file.unlink()
    return found
