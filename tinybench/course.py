"""What the notebooks need around the library: staged class building, figures, and whose code is running."""

from __future__ import annotations

import base64
import html
import importlib
import importlib.util
import io
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["add_to_class", "announce", "graft", "show_figure", "use_figure_style"]

OKABE_ITO = [
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
]  # yellow is too pale on white
BUILT_BY_STUDENT = "# Built by the student from "


def add_to_class(cls: type) -> Callable[[Any], Any]:
    """Make the decorated function, property or class method one of `cls`, so that a class can grow one cell at a time.

    The export writes such a function into the body of its class.

    References
    ----------
    Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section 3.2.1 (the same idea).
    """

    def register(member: Any) -> Any:
        function: Any = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        function.__qualname__ = f"{cls.__name__}.{function.__name__}"
        setattr(cls, function.__name__, member)
        return member

    return register


def announce(*names: str) -> None:
    """Print for each module of the package whether the student's own file or the reference is in use."""
    for name in names:
        spec = importlib.util.find_spec(f"tinybench.{name}")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"there is no tinybench.{name}: check the spelling")
        with open(spec.origin, encoding="utf-8") as file:
            first_line = file.readline()
        whose = "your own code" if first_line.startswith(BUILT_BY_STUDENT) else "the reference"
        print(f"tinybench.{name}: {whose} ({Path(spec.origin).parent.name}/{Path(spec.origin).name})")


@cache
def _compiled(origin: str) -> types.CodeType:
    return compile(Path(origin).read_text(encoding="utf-8"), origin, "exec")


def graft(module: str, names: Mapping[str, Any], *pieces: str) -> types.SimpleNamespace:
    """Return a fresh copy of a module in which only the named pieces are yours.

    A check that uses the copy judges these pieces alone: a mistake in an earlier cell cannot cost points here.

    Parameters
    ----------
    module
        The module to copy, for example ``"tinybench.result"``.
    names
        Where your pieces are: ``globals()`` in a notebook.
    pieces
        ``"t_interval"`` for a function or class, ``"BenchmarkResult.cv"`` for one method.

    Raises
    ------
    NotImplementedError
        If a piece has not been written yet.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"there is no module {module}")
    copy = types.ModuleType(module)
    copy.__file__ = spec.origin
    # dataclasses and typing look their module up by name while the body runs
    original = sys.modules.get(module)
    sys.modules[module] = copy
    try:
        exec(_compiled(spec.origin), copy.__dict__)
    finally:
        if original is None:
            del sys.modules[module]
        else:
            sys.modules[module] = original
    for name, value in names.items():  # helpers the student added stay within reach
        copy.__dict__.setdefault(name, value)
    for piece in pieces:
        owner_name, _, method = piece.rpartition(".")
        owner = names if not owner_name else vars(names.get(owner_name, object))
        if (method or piece) not in owner:
            raise NotImplementedError(f"write {piece}: there is nothing of that name in your notebook")
        mine = _rebound(owner[method or piece], names, copy.__dict__)
        if owner_name:
            setattr(copy.__dict__[owner_name], method, mine)
        else:
            copy.__dict__[piece] = mine
    return types.SimpleNamespace(**copy.__dict__)


def _rebound(value: Any, old: Mapping[str, Any], new: dict[str, Any]) -> Any:
    """Return a function of the notebook that looks its globals up in `new`; anything else as it is."""
    if isinstance(value, property) and value.fget is not None:
        return property(_rebound(value.fget, old, new), doc=value.__doc__)
    if isinstance(value, staticmethod | classmethod):
        return type(value)(_rebound(value.__func__, old, new))
    if not isinstance(value, types.FunctionType) or value.__globals__ is not old:
        return value
    twin = types.FunctionType(value.__code__, new, value.__name__, value.__defaults__, value.__closure__)
    twin.__kwdefaults__ = value.__kwdefaults__
    twin.__doc__, twin.__annotations__, twin.__qualname__ = (
        value.__doc__,
        value.__annotations__,
        value.__qualname__,
    )
    return twin


class _Markup:
    """Rich output with a plain text alternative."""

    def __init__(self, markup: str, text: str) -> None:
        self.markup, self.text = markup, text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}


def use_figure_style() -> None:
    """Set Matplotlib up for the course's figures: a light grid, colours that colour-blind readers tell apart.

    References
    ----------
    Okabe, Ito, "Color Universal Design" (2008): the palette.
    """
    import matplotlib.pyplot as plt
    from cycler import cycler

    plt.style.use("seaborn-v0_8-whitegrid")
    plt.rcParams.update({"axes.prop_cycle": cycler(color=OKABE_ITO), "legend.frameon": True, "font.size": 11})


def show_figure(figure: Figure, *, alt: str, caption: str, data: Mapping[str, Sequence[Any]] | None = None) -> None:
    """Display a Matplotlib figure so that a screen reader has it too, and close it.

    Parameters
    ----------
    figure
        The figure; its axes carry names and units.
    alt
        What the picture shows, in a sentence, for those who do not see it.
    caption
        What to notice.
    data
        Columns of the table behind the figure, all of one length; shown folded.
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
    display(_Markup(markup, f"[figure: {alt}] {caption}"))


def _data_table(data: Mapping[str, Sequence[Any]]) -> str:
    def shown(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in data)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(shown(value))}</td>" for value in row) + "</tr>"
        for row in zip(*data.values(), strict=True)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<details><summary>The data as a table</summary>{table}</details>"
