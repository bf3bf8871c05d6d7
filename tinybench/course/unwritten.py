"""What importing a module says that the student has not built yet; only a student's package asks for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


class Unwritten(MetaPathFinder, Loader):
    """Finds the course's modules in the student's package alone; importing one not there says how to go on.

    It is asked first: the finder of a library installed to be edited knows its modules whatever package is in use.

    Parameters
    ----------
    notebooks
        For each module of the package the notebook that it is built in.
    """

    def __init__(self, notebooks: Mapping[str, str]) -> None:
        self.notebooks = notebooks

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module of the course is, without an origin if it is not there; none for any other module."""
        package, _, module = fullname.partition(".")
        if package != "tinybench" or module not in self.notebooks:
            return None
        return PathFinder.find_spec(fullname, path, target) or ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> None:
        """Refuse, and say what to do."""
        raise ModuleNotFoundError(self.advice(spec.name), name=spec.name)

    def exec_module(self, module: Any) -> None:
        """Never called."""

    def advice(self, fullname: str) -> str:
        """Return what to do about a missing module."""
        notebook = self.notebooks[fullname.partition(".")[2]]
        return (
            f"{fullname} is what you build in module {notebook}, and it is not built yet: finish {notebook} and run "
            f"its last cell, or ask for the reference: autograder borrow {notebook}"
        )


def install(notebooks: Mapping[str, str]) -> None:
    """Have missing modules of the package say which of these notebooks they are built in."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != Unwritten.__name__]
    sys.meta_path.insert(0, Unwritten(notebooks))
