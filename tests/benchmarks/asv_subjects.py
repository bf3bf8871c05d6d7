"""The four callables for asv, which finds benchmarks by their names."""

from __future__ import annotations

from tests.benchmarks.subjects import CALLS


def time_subject(name: str) -> None:
    CALLS[name]()


time_subject.params = list(CALLS)  # type: ignore[attr-defined]
