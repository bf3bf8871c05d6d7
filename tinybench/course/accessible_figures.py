"""Figures with a text alternative for screen readers."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tinybench.support.basics.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OKABE_ITO = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]  # yellow is too pale on white


class Markup:
    """Rich (HTML) output with a plain-text alternative."""

    def __init__(self, markup: str, text: str) -> None:
        self.markup, self.text = markup, text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}


def use_figure_style() -> None:
    """Set the style of the course's Matplotlib figures: a light grid, and colours that suit colour-blind readers.

    References
    ----------
    Okabe, Ito, "Color Universal Design" (2008): the palette.
    """
    import matplotlib.pyplot as plt
    from cycler import cycler

    plt.style.use("seaborn-v0_8-whitegrid")
    plt.rcParams.update({"axes.prop_cycle": cycler(color=OKABE_ITO), "legend.frameon": True, "font.size": 11})


def show_figure(figure: Figure, *, alt: str, caption: str, data: Mapping[str, Sequence[Any]] | None = None) -> None:
    """Display a Matplotlib figure with a text alternative for screen readers, and close it.

    Parameters
    ----------
    figure
        The figure. Its axes must have names and units.
    alt
        A sentence that describes the picture for readers who cannot see it.
    caption
        What the reader should notice.
    data
        Columns of the table behind the figure, all of the same length. The table is collapsed at first.
    """
    import matplotlib.pyplot as plt
    from IPython.display import display

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, bbox_inches="tight")
    plt.close(figure)
    encoded = base64.b64encode(picture.getvalue()).decode()
    markup = (
        f'<figure style="margin:0;max-width:720px"><img style="max-width:100%" alt="{html.escape(alt)}" '
        f'src="data:image/png;base64,{encoded}"><figcaption>{html.escape(caption)}</figcaption>'
        f"{_data_table(data) if data else ''}</figure>"
    )
    display(Markup(markup, f"[figure: {alt}] {caption}"))


def _data_table(data: Mapping[str, Sequence[Any]]) -> str:
    rows = zip(*data.values(), strict=True)
    table = Table(dict(zip(data, map(_shown, row), strict=True)) for row in rows)
    return f"<details><summary>The data as a table</summary>{table.html()}</details>"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
