"""The four callables for pytest-benchmark; not collected by itself, `peers` names the file."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.subjects import CALLS


@pytest.mark.parametrize("name", CALLS)
def test_subject(benchmark: Any, name: str) -> None:
    benchmark(CALLS[name])
