"""A drawn figure with all that is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawn(NamedTuple):
    """A figure, and what `tinybench.course.show_figure` takes beside it, under the same names."""

    figure: Figure
    alt: str
    caption: str
    data: dict[str, list[Any]]

    def save(self, path: str | Path, dpi: int = 100) -> None:
        """Write the figure in the format of the file's ending; ``.png`` and ``.svg`` also hold the alternative text."""
        told = {"Description": self.alt} if Path(path).suffix in (".png", ".svg") else None
        self.figure.savefig(path, dpi=dpi, metadata=told)
