"""How many files a process asks for, and how many it gets."""

from __future__ import annotations

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="only Unix has such limits")
ASKING = """
import resource, sys
from tinybench.tools.serving.open_files import allow_files

soft, hard, number = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(allow_files(number), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "number", "allowed", "then"),
    [(64, 200, 100, 100, 100), (64, 200, 300, 200, 200), (150, 200, 100, 100, 150)],
    ids=["as many", "as many as it may", "enough as it is"],
)
def test_gets_as_many_as_it_may(soft: int, hard: int, number: int, allowed: int, then: int) -> None:
    command = [sys.executable, "-c", ASKING, str(soft), str(hard), str(number)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(allowed), str(then)]
