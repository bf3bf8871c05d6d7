"""The public face of the package: some fifty names, each with its documentation, and nothing else in the way."""

from __future__ import annotations

import inspect
import pkgutil
import re
from typing import Any

import pytest

import tinybench
from tinybench.latency import warm_up

MOST = 60  # as many as one reads through


def visible() -> set[str]:
    return {name for name in dir(tinybench) if not name.startswith("__")}


def described(text: str, *sections: str) -> set[str]:
    """Return the names that these sections of a numpydoc docstring describe."""
    found: set[str] = set()
    for section in sections:
        match = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", text, re.M | re.S)
        for line in re.findall(r"^\S.*$", match.group(1), re.M) if match else []:
            found |= {name.strip(" *") for name in line.partition(" : ")[0].split(",")}
    return found


def test_the_face_is_small_and_all_there_is_to_see() -> None:
    assert visible() == set(tinybench.__all__)
    assert len(visible()) <= MOST
    space: dict[str, Any] = {}
    exec("from tinybench import *", space)
    assert set(tinybench.__all__) <= space.keys()


def test_no_name_is_that_of_a_module() -> None:
    assert not visible() & {module.name for module in pkgutil.iter_modules(tinybench.__path__)}


@pytest.mark.parametrize("name", tinybench.__all__)
def test_every_name_says_what_it_takes_and_gives(name: str) -> None:
    subject = getattr(tinybench, name)
    text = inspect.getdoc(subject) or ""
    assert text.split("\n", 1)[0].endswith((".", "?")), "the first line is a sentence"
    takes = set(inspect.signature(subject).parameters) - {"self"}
    described_ones = described(text, "Parameters", "Attributes")
    assert takes <= described_ones, f"{name} does not describe {sorted(takes - described_ones)}"
    if inspect.isfunction(subject) and inspect.signature(subject).return_annotation not in ("None", None):
        assert text.startswith("Return ") or "Returns\n-------\n" in text


def test_helpers_are_in_their_own_file_only() -> None:
    assert callable(warm_up)
    assert not hasattr(tinybench, "warm_up")
    with pytest.raises(ImportError, match="warm_up"):
        exec("from tinybench import warm_up")
