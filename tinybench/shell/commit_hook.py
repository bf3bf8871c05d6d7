"""The hook for pre-commit: has what is about to be committed, or pushed, become slower.

``python -m tinybench.shell.commit_hook --call app:predict`` also takes the options of ``tinybench gate --run``. Before
a commit it measures the working tree against the last commit, and before a push, what is pushed against what is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tinybench.shell.cli import OK, UNDECIDED, main
from tinybench.shell.gate_targets import plain_environment

__all__ = ["run_hook", "sides"]


def sides(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return what to compare: of a push pre-commit says it, else the last commit and the working tree."""
    return environment.get("PRE_COMMIT_FROM_REF") or "HEAD", environment.get("PRE_COMMIT_TO_REF") or "."


def has_commit() -> bool:
    """Whether there is a commit to compare with."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, env=plain_environment(), check=False).returncode == 0


def run_hook(arguments: Sequence[str]) -> int:
    """Run the gate; what it cannot tell is said, and stops nobody."""
    if not has_commit():
        print("tinybench: the first commit has nothing to be compared with")
        return OK
    code = main(["gate", "--run", *sides(os.environ), *arguments])
    if code == UNDECIDED:
        print("tinybench: not stopped, since it cannot tell; more --seconds would")
        return OK
    return code


if __name__ == "__main__":
    sys.exit(run_hook(sys.argv[1:]))
