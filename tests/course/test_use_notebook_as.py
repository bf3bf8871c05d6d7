"""The library on what a notebook holds: before the build, after a change, and with the checks still at work."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import pytest

from tinybench import scaling
from tinybench.course import graft, use_notebook_as
from tinybench.support.profiling.scaling_laws import usl

LAWS = "tinybench.tools.scaling.fitted_laws"
SECONDS = {n: [1 / usl(n, 0.1, 0.02) * (1 + k / 100) for k in range(6)] for n in (1, 2, 4)}


@pytest.fixture(autouse=True)
def _loaded_modules_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tinybench.scaling", LAWS):
        monkeypatch.setitem(sys.modules, module, import_module(module))


def best(notebook: dict[str, Any]) -> float:
    use_notebook_as("tinybench.scaling", notebook, within=LAWS)
    from tinybench.tools.scaling.fitted_laws import fit_laws

    return fit_laws(SECONDS, draws=20).best.value


def test_the_library_runs_on_the_notebook_and_on_what_it_became() -> None:
    notebook = {**vars(scaling), "best_workers": lambda contention, crosstalk: 42.0}
    assert best(notebook) == 42
    notebook["best_workers"] = lambda contention, crosstalk: 43.0
    assert best(notebook) == 43


def test_what_is_not_written_yet_is_named() -> None:
    notebook = {name: value for name, value in vars(scaling).items() if name != "fit_usl"}
    with pytest.raises(ImportError, match="fit_usl"):
        best(notebook)


def test_checks_still_find_the_reference() -> None:
    use_notebook_as("tinybench.scaling", {"best_workers": lambda *_: 0.0}, within=LAWS)
    mine = graft("tinybench.scaling", {"speedup": lambda seconds: {}}, "speedup")
    assert mine.best_workers(0.19, 0.01) == pytest.approx(9)
