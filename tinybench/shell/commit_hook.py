"""A hook for pre-commit: check whether the code to be committed or pushed has become slower.

Its command is ``python -m tinybench.shell.commit_hook --call app:predict``, and it accepts all options of ``tinybench
gate --run``. Before a commit, the hook compares the working tree with the last commit. Before a push, it compares the
pushed commit with the commit on the remote.
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
    """Return the old and the new revision: for a push those that pre-commit sets, else HEAD and the working tree."""
    return environment.get("PRE_COMMIT_FROM_REF") or "HEAD", environment.get("PRE_COMMIT_TO_REF") or "."


def has_commit() -> bool:
    """Return whether the repository has a commit to compare with."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, env=plain_environment(), check=False).returncode == 0


def run_hook(arguments: Sequence[str]) -> int:
    """Run the gate. An undecided result is reported but does not block the commit or push."""
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
