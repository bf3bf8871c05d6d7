"""Runs the steps of a composite action as a runner of GitHub does: with bash, files for outputs, and no network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ACTION = Path(__file__).parents[2] / "action.yml"
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
# answers what the action asks of `gh`, from a file of comments
GH = """#!{python}
import json, sys
from pathlib import Path
store = Path({store!r})
comments = json.loads(store.read_text()) if store.exists() else []
words = sys.argv[1:]
assert words[0] == "api", words
if Path({store!r} + ".denied").exists():
    sys.exit("HTTP 403: Resource not accessible by integration")
if "--jq" in words:
    assert "user.type" in words[words.index("--jq") + 1], words
    print("\\n".join(str(n) for n, comment in enumerate(comments) if comment["body"].startswith("<!-- tinybench -->")))
else:
    method, path = words[words.index("--method") + 1], words[words.index("--method") + 2]
    body = Path(words[words.index("-F") + 1].removeprefix("body=@")).read_text()
    if method == "POST":
        comments.append({{"path": path, "body": body, "edits": 0}})
    else:
        comment = comments[int(path.rpartition("/")[2])]
        comment.update(body=body, edits=comment["edits"] + 1)
    store.write_text(json.dumps(comments))
"""


class Ran(NamedTuple):
    """How a job ended: its exit code, the step that ended it, outputs by step, what it printed, and its summary."""

    code: int
    step: str
    outputs: dict[str, dict[str, str]]
    printed: str
    summary: str


class Runner:
    """A runner with a checked-out repository, and programs that stand in for `gh` and `sleep`."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self.checkout, self.home, self.action = checkout, home, yaml.safe_load(ACTION.read_text(encoding="utf-8"))
        self.comments_file = home / "comments.json"
        self.bin = home / "bin"
        self.bin.mkdir(parents=True)
        self.program("gh", GH.format(python=sys.executable, store=str(self.comments_file)))
        self.program("sleep", "#!/bin/sh\n")

    def program(self, name: str, text: str) -> None:
        """Put a program before all others on the path."""
        (self.bin / name).write_text(text, encoding="utf-8")
        (self.bin / name).chmod(0o755)

    @property
    def comments(self) -> list[dict[str, Any]]:
        return json.loads(self.comments_file.read_text()) if self.comments_file.exists() else []

    def run(
        self,
        event: str,
        payload: Mapping[str, Any],
        before: Mapping[str, Callable[[], Any]] | None = None,
        only: tuple[str, ...] = (),
        outputs: Mapping[str, dict[str, str]] | None = None,
        **given: str,
    ) -> Ran:
        """Run all steps, or `only` some with the `outputs` of earlier ones; `before` a step, do something."""
        defined = self.action["inputs"]
        inputs = {name: str(about.get("default", "")) for name, about in defined.items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        assert set(inputs) == set(defined), "an input that the action has not"
        known: dict[str, Any] = {
            "inputs": {name: "the token" if "${{" in value else value for name, value in inputs.items()},
            "github": {"event_name": event, "event": payload},
            "steps": {name: {"outputs": found} for name, found in (outputs or {}).items()},
        }
        temporary = self.home / "temp"
        temporary.mkdir(exist_ok=True)
        printed, summary = "", self.home / "summary.md"
        summary.write_text("")
        for step in self.action["runs"]["steps"]:
            if only and step["name"] not in only:
                continue
            (before or {}).get(step["name"], lambda: None)()
            out, script = self.home / "output", self.home / "step.sh"
            out.write_text("")
            script.write_text(step["run"], encoding="utf-8")
            variables = {name: evaluated(text, known) for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                [*BASH, str(script)], cwd=self.checkout, env=self.environment(out, summary, temporary) | variables,
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            printed += f"== {step['name']}\n{done.stdout}"
            said = dict(line.split("=", 1) for line in out.read_text().splitlines())
            known["steps"][step.get("id", step["name"])] = {"outputs": said}
            found = {name: about["outputs"] for name, about in known["steps"].items()}
            if done.returncode:
                return Ran(done.returncode, step["name"], found, printed, summary.read_text())
        return Ran(0, "", found, printed, summary.read_text())

    def environment(self, out: Path, summary: Path, temporary: Path) -> dict[str, str]:
        """Return the variables of a runner."""
        path = os.pathsep.join([str(self.bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        found = {
            "PATH": path,
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ACTION.parent),
            "CI": "true",
        }
        found |= {"GITHUB_OUTPUT": str(out), "GITHUB_STEP_SUMMARY": str(summary), "RUNNER_TEMP": str(temporary)}
        return found | {"GITHUB_ACTION_PATH": str(ACTION.parent), "GITHUB_REPOSITORY": "someone/something"}


def evaluated(text: str, known: Mapping[str, Any]) -> str:
    """Return a value with its expressions, names joined by ||, replaced; anything else in them is an error."""

    def value(found: re.Match[str]) -> str:
        for name in found[1].split("||"):
            at: Any = known
            assert re.fullmatch(r"\s*[\w.-]+\s*", name), f"the test knows no expression like {name!r}"
            for part in name.strip().split("."):
                at = (at or {}).get(part)
            if at not in (None, ""):
                return str(at)
        return ""

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)
