"""A lookup in tables of named objects that other packages can extend through entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TypeVar

__all__ = ["find_entry"]

T = TypeVar("T")


def find_entry(group: str, own: Mapping[str, T], name: str) -> T:
    """Return the entry of a table that has the given name.

    Parameters
    ----------
    group
        The group of entry points with which other packages extend the table, such as ``"tinybench.scenarios"``.
    own
        The entries of this package, by name. They take precedence over entries of other packages.
    name
        The name of the entry to return.

    Raises
    ------
    ValueError
        If no entry has this name, or if the package that provides the entry cannot be imported.
    """
    if name in own:
        return own[name]
    others = {point.name: point for point in entry_points(group=group)}
    if name not in others:
        kind = group.rpartition(".")[2].removesuffix("s")
        raise ValueError(f"there is no {kind} {name!r}; choose from {', '.join([*own, *sorted(others)])}")
    try:
        entry: T = others[name].load()
    except Exception as error:  # whatever the other package raises
        raise ValueError(f"{name!r} ({others[name].value}) cannot be loaded: {type(error).__name__}: {error}") from None
    return entry
