"""No object of the library floods a notebook: its repr is one short line, however much it holds."""

from __future__ import annotations

import inspect
import pkgutil
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tinybench
from tinybench.result import BenchmarkResult
from tinybench.support.basics.short_reprs import MOST

# By the words of a field's type: a value of that kind, as large as a real one may be.
LARGE = (
    (("tuple[float, float]", "tuple[int, int]"), (0.123456789012, 9.87654321)),
    (("ndarray",), np.linspace(0, 1, 1000)),
    (("dict", "Mapping"), {f"name {index}": [0.1] * 50 for index in range(50)}),
    (("list", "Sequence", "tuple", "set"), [0.123456789] * 500),
    (("str",), "a text of some length, as names and reasons have it"),
    (("float", "int", "bool"), 0.123456789012),
)


# The objects of commands, servers and lessons stay within their processes: nobody has one in a notebook's list.
WITHIN = ("tinybench.shell.", "tinybench.tools.serving.", "tinybench.course.")


@cache
def dataclasses() -> tuple[type, ...]:
    """Return every dataclass of the library that a caller may hold."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(tinybench.__path__, "tinybench."):
        if module.name.endswith("__main__") or module.name.startswith(WITHIN):
            continue
        for name, kind in vars(import_module(module.name)).items():
            if inspect.isclass(kind) and is_dataclass(kind) and kind.__module__ == module.name:
                found[f"{module.name}.{name}"] = kind
    return tuple(found.values())


def filled(kind: type) -> Any:
    """Return an object of a dataclass whose fields hold large values; its own checks do not run."""
    subject: Any = object.__new__(kind)
    for field in fields(kind):
        words = str(field.type)
        value = next((value for names, value in LARGE if any(name in words for name in names)), [0.1] * 500)
        object.__setattr__(subject, field.name, value)
    return subject


@pytest.mark.parametrize("kind", dataclasses(), ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_a_repr_is_one_short_line(kind: type) -> None:
    text = repr(filled(kind))
    assert len(text) <= MOST
    assert "\n" not in text
    assert kind.__name__ in text


def results() -> dict[str, BenchmarkResult]:
    rng = np.random.default_rng(0)
    names = ("fp32", "int8")
    return {name: BenchmarkResult("latency", rng.lognormal(-7, 0.1, 1000).tolist(), unit="s") for name in names}


def test_containers_of_results_show_a_sentence_each() -> None:
    from IPython.lib.pretty import pretty

    for container in (results(), list(results().values()), {"latency": results()}):
        text = pretty(container)
        assert text.count("latency: median") == 2
        assert max(map(len, text.splitlines())) <= MOST + 20


def test_a_class_without_a_working_sentence_shows_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwritten(self: BenchmarkResult) -> str:
        raise NotImplementedError

    result = results()["fp32"]
    monkeypatch.setattr(BenchmarkResult, "__str__", unwritten)
    assert "values=list of 1000" in repr(result)
    monkeypatch.setattr(BenchmarkResult, "__str__", object.__str__)
    assert "values=list of 1000" in repr(result)
