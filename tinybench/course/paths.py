"""Paths through the course, for those who have two evenings, a week or a semester."""

from __future__ import annotations

from dataclasses import dataclass

from tinybench.course.progress import Module
from tinybench.support.basics.numbers import number_of


@dataclass(frozen=True)
class LearningPath:
    """A choice of modules.

    Attributes
    ----------
    name
        The word that `autograder release --path` takes.
    modules
        The names of the modules; if empty, all that are not optional.
    borrowed
        The names of the modules that these need and the student does not build.
    end
        What one can do at the end, in a sentence.
    """

    name: str
    title: str
    modules: tuple[str, ...]
    borrowed: tuple[str, ...]
    end: str

    def length(self, modules: list[Module]) -> str:
        """Return the number of modules and their hours as text."""
        hours = sum(module.minutes for module in modules) / 60
        return f"{number_of(len(modules), 'module')}, about {number_of(f'{hours:.0f}', 'hour')}"


PATHS = (
    LearningPath(
        "evenings",
        "Two evenings",
        ("01_result", "03_latency", "07_comparison"),
        ("02_timer",),
        "At the end, you can say which of two models is faster, by how much, and how sure that is.",
    ),
    LearningPath(
        "week",
        "A week",
        ("01_result", "03_latency", "04_accuracy", "07_comparison", "09_pareto", "11_onnx", "12_quantize"),
        ("02_timer", "05_memory", "06_energy", "08_benchmark", "10_suite"),
        "At the end, you can choose between a model and its smaller forms by latency, accuracy and size.",
    ),
    LearningPath(
        "semester",
        "A semester",
        (),
        (),
        "Do two modules a fortnight, and look at 17 in the third week: there, your own models race.",
    ),
)


def fitting_paths(modules: list[Module]) -> list[LearningPath]:
    """Return the paths whose modules are all among those given. The semester needs modules that no other path has."""
    names = {module.name for module in modules if not module.optional}
    shorter = [path for path in PATHS if path.modules and names.issuperset(path.modules)]
    return shorter + [path for path in PATHS if not path.modules and names > {*PATHS[1].modules}]


def modules_of(path: LearningPath, modules: list[Module]) -> list[Module]:
    """Return the modules of a path, in order."""
    return [module for module in modules if (module.name in path.modules if path.modules else not module.optional)]
