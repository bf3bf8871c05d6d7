"""Ruff on many modules at once, to find undefined names and to format the code."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STYLE = (
    "line-length = 120",
    "format.skip-magic-trailing-comma = true",
    "lint.isort.split-on-trailing-comma = false",
    'lint.isort.known-first-party = ["tinybench"]',
)


def _ruff(texts: Mapping[str, str], *steps: Sequence[str]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Run ruff on all texts at once, once for each step. Return the new texts and the findings of the last step."""
    # --isolated in a temporary folder: the result depends on neither the machine nor the current folder
    own = [option for line in STYLE for option in ("--config", line)]
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, "files", f"{name}.py") for name in texts}
        Path(folder, "files").mkdir()
        for name, file in files.items():
            file.write_text(texts[name], encoding="utf-8")
        for step in steps:
            command = [sys.executable, "-m", "ruff", *step, "--isolated", "--no-cache", *own, "files"]
            run = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False
            )
            if run.returncode and "json" not in step:
                raise RuntimeError(f"ruff {step[0]} failed: {run.stderr or run.stdout}")
        found = json.loads(run.stdout) if "json" in step else []
        return {name: file.read_text(encoding="utf-8") for name, file in files.items()}, found


def tidy_modules(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of modules, formatted and with sorted imports."""
    return _ruff(texts, ["check", "--select", "I,RUF022", "--fix"], ["format"])[0]


def undefined(texts: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the file, rule and message for each name that is undefined or defined twice."""
    _, found = _ruff(texts, ["check", "--select", "F821,F811", "--output-format", "json"])
    return [(Path(f["filename"]).stem, f["code"], f["message"]) for f in found]
