"""The error for importing a module that the student has not built yet. It is used only in a student's package."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


class Unwritten(MetaPathFinder, Loader):
    """An import finder for the course's modules in the student's package. A missing module raises an error with advice.

    This finder must come before all others, because the finder of an editable installation of the library would find
    the library's modules even if the student's package is in use.

    Parameters
    ----------
    notebooks
        For each module of the package, the notebook in which it is built.
    needs
        For each notebook, the other notebooks whose modules its own modules import.
    """

    def __init__(self, notebooks: Mapping[str, str], needs: Mapping[str, Sequence[str]]) -> None:
        self.notebooks, self.needs = notebooks, needs

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a course module, or None for any other module.

        If the course module is missing, this finder is the loader in the spec, so that the import raises an error with
        advice.
        """
        package, _, module = fullname.partition(".")
        if package != "tinybench" or module not in self.notebooks:
            return None
        return PathFinder.find_spec(fullname, path, target) or ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> None:
        """Raise ModuleNotFoundError with advice on how to build the module."""
        raise ModuleNotFoundError(self.advice(spec.name), name=spec.name)

    def exec_module(self, module: Any) -> None:
        """Do nothing; this method is never called, because `create_module` raises."""

    def advice(self, *fullnames: str) -> str:
        """Return advice on how to get missing modules and any other missing modules that these import."""
        built_in = {name: self.notebooks[name.partition(".")[2]] for name in fullnames}
        notebooks = sorted(set(built_in.values()))
        further = sorted({each for name in notebooks for each in self.missing(self.needs.get(name, ()))} - {*notebooks})
        one = len(fullnames) == 1
        where = "; ".join(f"you build {name} in module {built_in[name]}" for name in fullnames)
        also = f", and {_listed(further)} before {'it' if one else 'them'}" if further else ""
        last = "its last cell" if len(notebooks + further) == 1 else "the last cell of each"
        reference = "the reference" if len(notebooks + further) == 1 else "the references"
        return (
            f"{where}, and {'it is' if one else 'they are'} not built yet: finish {_listed(notebooks)}{also} and run "
            f"{last}, or ask for {reference}: autograder borrow {' '.join(sorted(notebooks + further))}"
        )

    def missing(self, notebooks: Iterable[str]) -> list[str]:
        """Return the given notebooks that build at least one module missing from the package."""
        path = sys.modules["tinybench"].__path__
        absent = {
            notebook
            for module, notebook in self.notebooks.items()
            if notebook in notebooks and PathFinder.find_spec(f"tinybench.{module}", path) is None
        }
        return sorted(absent)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def install(notebooks: Mapping[str, str], needs: Mapping[str, Sequence[str]]) -> None:
    """Install an import finder whose error for a missing module names the notebooks to complete."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != Unwritten.__name__]
    sys.meta_path.insert(0, Unwritten(notebooks, needs))
