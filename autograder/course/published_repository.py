"""The repository that `autograder publish` writes for students, Binder and other services."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import autograder
from autograder.course import handout_texts
from autograder.course.nbgrader_settings import PACKAGE, STUDENT
from autograder.course.notebook import course_notebooks
from autograder.course.student_guides import Site, papers, with_colab
from autograder.course.student_package import lay_out_package, references_for, written_by
from autograder.files import write_atomically
from tinybench import __version__
from tinybench.course.backup import MANIFEST

TITLE = "TinyBench"
# The modules of this package that students get, together with everything that these modules import
TOOLS = (
    "__main__ cli course.student_commands course.module_build leaderboard.entry_commands leaderboard.referee.measure"
)
# The dependencies of these modules and of the notebooks. The project's other dependencies are for instructors only
NEEDED = (
    "click cloudpickle fastapi filelock httptools httpx ipykernel jsonschema jupyterlab matplotlib numpy onnx "
    "onnxruntime prometheus_client psutil pydantic pyyaml ruff scikit-learn scipy skl2onnx threadpoolctl tqdm "
    "uvicorn"
)


def publish(
    root: Path, folder: Path, *, references: str | None = None, url: str | None = None, force: bool = False
) -> str:
    """Write or update a published folder, and return a message about its contents.

    Parameters
    ----------
    root
        The course's folder. Students get the notebooks in its ``course/release/``.
    folder
        A folder that is empty or was written by `publish` before. Files that `publish` did not write are kept.
    references
        The references to publish, see `autograder.course.student_package.references_for`. The default includes the
        references that `release` gave to students.
    url
        The address from which students clone the repository, for the links to Binder and Colab. By default, the
        folder's git remote, if it has one.
    force
        Whether to replace files that `publish` did not write or that were changed afterwards.
    """
    if folder == root or folder in root.parents:
        raise ValueError(f"{folder} is the course itself; name a folder for students")
    before = _manifest(folder)
    if before is None and any(path.name != ".git" for path in folder.glob("*")) and not force:
        raise ValueError(f"{folder} is neither empty nor published before; name another folder, or use --force")
    notebooks = _released(root)
    site = Site.of(url) if url else Site.of_remote(folder)
    given = references_for(root, [folder / PACKAGE, root / STUDENT / PACKAGE], references)
    with tempfile.TemporaryDirectory() as place:
        _lay_out(root, Path(place), notebooks, given, site)
        files = {path.relative_to(place).as_posix(): path.read_bytes() for path in _files(Path(place))}
    changed = [name for name, content in files.items() if _changed(folder / name, content, (before or {}).get(name))]
    if changed and not force:
        raise ValueError(
            f"{folder}: {', '.join(changed)} changed since it was published, or not written by `publish`; put "
            "the changes into the course, or replace them with --force"
        )
    for name in set(before or {}) - set(files):
        (folder / name).unlink(missing_ok=True)
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomically(path, content)
    (folder / "binder" / "postBuild").chmod(0o755)
    digests = {name: _digest(content) for name, content in sorted(files.items())}
    write_atomically(folder / MANIFEST, json.dumps(digests, indent=1) + "\n")
    shown = ", ".join(notebook.name for notebook in notebooks)
    return (
        f"{folder}: {shown}; references: {', '.join(given) or 'none'}\n"
        f"commit and push it where your students can clone it{f': {site.url}' if site else ''}"
    )


def _manifest(folder: Path) -> dict[str, str] | None:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{folder / MANIFEST} cannot be read ({error}); restore it, or publish elsewhere") from None
    names = found if isinstance(found, dict) else {}
    inside = folder.resolve()
    return {name: str(digest) for name, digest in names.items() if (inside / name).resolve().is_relative_to(inside)}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _changed(path: Path, content: bytes, before: str | None) -> bool:
    """Return whether a file differs from both the new content and the content that was published last."""
    if not path.is_file():
        return False
    there = path.read_bytes()
    return there != content and _digest(there) != before


def _released(root: Path) -> list[Path]:
    """Return the folders of the released notebooks. Raise ValueError if there are none, or if one is out of date."""
    sources = {path.stem: path for path in course_notebooks(root)}
    folders = [path.parent for path in sorted((root / "course" / "release").glob("*/*.ipynb")) if path.stem in sources]
    if not folders:
        raise ValueError("no notebook is released yet; run `autograder release`")
    old = [f.name for f in folders if (f / f"{f.name}.ipynb").stat().st_mtime < sources[f.name].stat().st_mtime]
    if old:
        raise ValueError(f"changed since their release: {', '.join(old)}; run `autograder release {' '.join(old)}`")
    return folders


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _lay_out(root: Path, place: Path, notebooks: list[Path], references: list[str], site: Site | None) -> None:
    wanted = requirements()
    for folder in notebooks:
        for path in _files(folder):
            _copy(path, place / folder.name / path.relative_to(folder))
        if site:
            path = place / folder.name / f"{folder.name}.ipynb"
            path.write_bytes(with_colab(path.read_bytes(), site, folder.name, path.name, wanted))
    for name, content in papers(site, wanted).items():
        write_atomically(place / name, content)
    lay_out_package(root, place / PACKAGE, references)
    for path in tools():
        _copy(path, place / "autograder" / path.relative_to(_home()))
    if (root / "LICENSE").is_file():
        _copy(root / "LICENSE", place / "LICENSE")
    names = [folder.name for folder in notebooks]
    built = "\n".join(f"/{PACKAGE}/{name}.py" for name in sorted(written_by(root / PACKAGE)))
    texts = {
        "README.md": handout_texts.README.format(
            title=TITLE, badges=site.badges if site else "", modules=", ".join(f"`{name}`" for name in names)
        ),
        ".gitignore": handout_texts.GITIGNORE.format(built=built),
        "pyproject.toml": handout_texts.PYPROJECT.format(
            version=__version__, dependencies="\n".join(f'    "{each}",' for each in wanted)
        ),
        "environment.yml": handout_texts.ENVIRONMENT.format(
            dependencies="\n".join(f"      - {each}" for each in wanted)
        ),
        "binder/postBuild": handout_texts.POST_BUILD,
    }
    texts["binder/environment.yml"] = texts["environment.yml"]
    for name, text in texts.items():
        write_atomically(place / name, text)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())


def requirements() -> list[str]:
    """Return the requirements that students install, with the project's version bounds."""
    listed = [*(requires("tinybench-ml") or ()), *(requires("tinybench-course") or ())]
    bounds = {re.split(r"[^\w-]", line.lower())[0]: line.partition(";")[0].strip() for line in listed}
    return [bounds[name] for name in NEEDED.split()]


def _home() -> Path:
    return Path(str(autograder.__file__)).parent


def tools() -> list[Path]:
    """Return the files that the students' commands need.

    These are the modules in `TOOLS`, all modules that they import, and the TOML files in the same folders.
    """
    home, found, left = _home(), dict[str, Path](), ["", *TOOLS.split()]
    while left:
        name = left.pop()
        path = home.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in found or not path.is_file():
            continue
        found[name] = path
        left += _imported(path, name if path.name == "__init__.py" else name.rpartition(".")[0])
        left += [name.rpartition(".")[0]]
    folders = {path.parent for path in found.values()} - {home}
    data = [path for folder in folders for path in folder.glob("*.toml")]
    return sorted([*found.values(), *data])


def _imported(path: Path, package: str) -> Iterator[str]:
    """Yield the modules of `autograder` that a file imports anywhere, except those for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing = {id(node) for block in tree.body if _is_for_types(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join(["autograder", *filter(None, parts)]) if node.level else ""
            base = ".".join(filter(None, [base, node.module]))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name.removeprefix("autograder.") for name in names if name.startswith("autograder."))


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
