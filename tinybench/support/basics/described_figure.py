"""A figure together with its alternative text, caption and data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawn(NamedTuple):
    """A figure with its alternative text, caption and data. `tinybench.course.show_figure` takes the same names."""

    figure: Figure
    alt: str
    caption: str
    data: dict[str, list[Any]]

    def save(self, path: str | Path, dpi: int = 100) -> None:
        """Write the figure to a file, in the format of its suffix. PNG and SVG files also hold the alternative text."""
        told = {"Description": self.alt} if Path(path).suffix in (".png", ".svg") else None
        self.figure.savefig(path, dpi=dpi, metadata=told)
