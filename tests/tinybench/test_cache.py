"""Training is kept by content: another argument, function or value means computing anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tinybench.course import cached, case_study

CALLS: list[int] = []


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TINYBENCH_CACHE", str(tmp_path / "cache"))
    CALLS.clear()
    return tmp_path / "cache"


def notebook_function(source: str) -> Callable[..., object]:
    """Return the function f of a notebook's cell."""
    space = {"__name__": "__main__", "calls": lambda: CALLS.append(1)}
    exec(source, space)
    return space["f"]  # type: ignore[return-value]


DOUBLE = "def g(x):\n    return {factor} * x\ndef f(x):\n    calls()\n    return g(x) + {offset}\n"


def test_the_same_is_computed_once(own_cache: Path) -> None:
    for _ in range(3):
        found = cached(notebook_function(DOUBLE.format(factor=2, offset=0)), np.arange(3))
        assert list(found) == [0, 2, 4]
    assert len(CALLS) == 1
    assert len(list(own_cache.iterdir())) == 1


@pytest.mark.parametrize(("factor", "offset", "x"), [(3, 0, [0, 1, 2]), (2, 1, [0, 1, 2]), (2, 0, [0, 1, 3])])
def test_a_change_is_computed_anew(factor: int, offset: int, x: list[int]) -> None:
    cached(notebook_function(DOUBLE.format(factor=2, offset=0)), np.arange(3))
    found = cached(notebook_function(DOUBLE.format(factor=factor, offset=offset)), np.array(x))
    assert list(found) == [factor * value + offset for value in x]
    assert len(CALLS) == 2


def test_values_the_function_uses_count() -> None:
    source = "limit = {limit}\ndef f():\n    calls()\n    return limit\n"
    assert [cached(notebook_function(source.format(limit=n))) for n in (1, 2, 1)] == [1, 2, 1]
    assert len(CALLS) == 2


def test_a_broken_file_is_replaced(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = notebook_function(DOUBLE.format(factor=2, offset=0))
    cached(function, 4)
    next(own_cache.iterdir()).write_bytes(b"half a fi")
    assert cached(function, 4) == 8
    assert "cannot be read" in capsys.readouterr().out
    cached(function, 4)
    assert len(CALLS) == 2


def test_no_place_to_write_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TINYBENCH_CACHE", str(tmp_path / "file" / "below"))
    assert cached(notebook_function(DOUBLE.format(factor=2, offset=0)), 1) == 2
    assert "not kept" in capsys.readouterr().out


def test_small_case() -> None:
    case = case_study("small")
    assert case.X.shape == (540, 64)
    assert case.X.dtype == case.model.coefs_[0].dtype == np.float32
    assert case.model.score(case.X, case.y) > 0.95
    with pytest.raises(ValueError, match="small, narrow, wide"):
        case_study("huge")
