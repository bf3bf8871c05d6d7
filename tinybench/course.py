"""What the notebooks need around the library: staged class building, figures, whose code is running, case studies."""

from __future__ import annotations

import base64
import html
import importlib
import importlib.util
import io
import os
import platform
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Case",
    "add_to_class",
    "announce",
    "cached",
    "cached_fit",
    "case_study",
    "graft",
    "show_figure",
    "use_figure_style",
]

OKABE_ITO = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]  # yellow is too pale on white
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
    twin.__doc__, twin.__annotations__, twin.__qualname__ = (value.__doc__, value.__annotations__, value.__qualname__)
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


def cached(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, from a file if exactly the same was computed before.

    The file's name is a digest of all that the value depends on: the code of the function and of the functions and
    values it uses, the arguments, and the versions of Python and the libraries. Change one, and it is computed anew.
    Files are in ``$TINYBENCH_CACHE``, by default ``~/.cache/tinybench``; where nothing can be written, nothing is kept.

    Parameters
    ----------
    function
        Deterministic; a function of your own, not a method.
    args
        Arrays, estimators, plain data.
    """
    import joblib  # type: ignore[import-untyped]

    versions = {name: _version(name) for name in ("numpy", "scipy", "sklearn")}
    digest = joblib.hash([_depends_on(function, {}), args, platform.python_version(), versions])
    folder = Path(os.environ.get("TINYBENCH_CACHE") or Path.home() / ".cache" / "tinybench")
    file = folder / f"{function.__name__.strip('_')}-{digest}.joblib"
    if file.is_file():
        try:
            return joblib.load(file)
        except Exception:
            print(f"{file} cannot be read; computing it anew")
    value = function(*args)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as stream:
            joblib.dump(value, stream)
        os.replace(temporary, file)
    except OSError as error:
        print(f"not kept for next time: {error}")
    return value


def cached_fit(model: Any, X: Any, y: Any) -> Any:
    """Return a scikit-learn model fitted on data, see `cached`; silent where it has not converged yet."""
    return cached(_fitted, model, X, y)


def _fitted(model: Any, X: Any, y: Any) -> Any:
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    print(f"fitting {model} on {len(X)} rows: once, then it is read from the cache", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(X, y)


def _version(module: str) -> str:
    return str(getattr(importlib.import_module(module.partition(".")[0]), "__version__", ""))


def _depends_on(value: Any, seen: dict[int, str]) -> Any:
    """Return what a function, class or value consists of, as plain data that can be hashed."""
    if id(value) in seen:
        return seen[id(value)]
    module = getattr(value, "__module__", None) or ""
    name = f"{module}.{getattr(value, '__qualname__', '')}"
    if isinstance(value, types.ModuleType):
        return value.__name__, _version(value.__name__)
    if isinstance(value, types.FunctionType | type):
        seen[id(value)] = name
        if module.partition(".")[0] not in ("__main__", "tinybench", "builtins"):
            return name, _version(module)
    if isinstance(value, types.FunctionType):
        used = [value.__globals__[n] for n in sorted(_names(value.__code__)) if n in value.__globals__]
        enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [*used, *enclosed, value.__defaults__, value.__kwdefaults__]
        return _code(value.__code__), [_depends_on(part, seen) for part in parts]
    if isinstance(value, type) and module != "builtins":
        return name, [_depends_on(part, seen) for part in vars(value).values() if isinstance(part, types.FunctionType)]
    return name if callable(value) and hasattr(value, "__qualname__") else value


def _names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*(_names(c) for c in inner))


def _code(code: types.CodeType) -> Any:
    constants = [_code(c) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    return code.co_code, code.co_names, constants


class Case(NamedTuple):
    """A case study: a fitted model, the rows it was fitted on, and other rows to judge it by."""

    model: Any
    X_train: Any
    y_train: Any
    X: Any
    y: Any


def case_study(name: str) -> Case:
    """Return one of the case studies of modules 11 to 15: a network on handwritten digits, in 32 bits.

    Parameters
    ----------
    name
        ``"small"``: 256 and 128 hidden units on 8 × 8 pixels. ``"narrow"`` (64) and ``"wide"`` (512 and 256 units)
        work on 28 × 28 pixels: the same digits enlarged, turned, shifted, with noise. The wide one may take a minute
        to fit, once (see `cached`).

    Raises
    ------
    ValueError
        If there is no such case.
    """
    from sklearn.neural_network import MLPClassifier

    cases = {
        "small": ((256, 128), 60, _digits),
        "narrow": ((64,), 20, _large_digits),
        "wide": ((512, 256), 15, _large_digits),
    }
    if name not in cases:
        raise ValueError(f"no case study {name!r}; there are {', '.join(cases)}")
    layers, iterations, load = cases[name]
    X_train, y_train, X, y = cached(load)
    network = MLPClassifier(layers, batch_size=200, max_iter=iterations, random_state=0)
    return Case(cached_fit(network, X_train, y_train), X_train, y_train, X, y)


def _digits() -> tuple[Any, ...]:
    """Return training rows and labels, other rows and their labels: 8 × 8 pixels from 0 to 1."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    pixels = (X / 16).astype(np.float32)
    X_train, X_test, y_train, y_test = train_test_split(pixels, y, test_size=540, random_state=0, stratify=y)
    return X_train, y_train, X_test, y_test


def _large_digits() -> tuple[Any, ...]:
    """Return the digits in 28 × 28 pixels; no original has copies among both the training and the other rows."""
    import numpy as np
    from scipy.ndimage import affine_transform
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)

    def enlarged(originals: Any, copies: int) -> tuple[Any, Any]:
        rows = rng.permutation(np.resize(originals, copies))
        pictures = np.empty((copies, 28, 28), np.float32)
        for picture, row in zip(pictures, rows, strict=True):
            angle, zoom, shift = rng.normal(0, 0.12), rng.uniform(0.9, 1.1), rng.normal(0, 0.3, 2)
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * 8 / 28 / zoom
            picture[:] = affine_transform(
                X[row].reshape(8, 8) / 16, turn, 3.5 - turn @ [13.5, 13.5] + shift, (28, 28), order=1
            )
        pictures += rng.normal(0, 0.1, pictures.shape).astype(np.float32)
        return pictures.clip(0, 1).reshape(copies, 784), y[rows]

    train, test = train_test_split(np.arange(len(X)), test_size=360, random_state=0, stratify=y)
    return *enlarged(train, 10_000), *enlarged(test, 2160)
