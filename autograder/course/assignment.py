"""An assignment as a grader needs it: its notebook and its data files, as bytes that can travel."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Assignment:
    """The instructor's notebook of an assignment, and name and content of each data file in its folder."""

    name: str
    notebook: bytes
    data: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def read(cls, notebook: Path) -> Assignment:
        """Return the assignment of this notebook, with the data files in its folder."""
        folder = notebook.parent
        data = ((path.relative_to(folder).as_posix(), path.read_bytes()) for path in data_files(folder))
        return cls(notebook.stem, notebook.read_bytes(), tuple(data))

    def digest(self) -> str:
        """Return a name for exactly these bytes."""
        found = hashlib.sha256(self.notebook)
        for name, content in self.data:
            found.update(f"\0{name}\0{len(content)}\0".encode() + content)
        return found.hexdigest()

    def lay_out(self, folder: Path) -> list[Path]:
        """Write the data files into a folder, readable for everybody, and return them."""
        paths = [folder / name for name, _ in self.data]
        for path, (_, content) in zip(paths, self.data, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o644)
        return paths


def data_files(folder: Path) -> list[Path]:
    """Return a folder's files but for notebooks, code, links, and what has a name that begins with . or _."""
    return [path for path in sorted(folder.rglob("*")) if _is_data(path, folder)]


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return not hidden and path.suffix not in (".ipynb", ".py", ".pyc") and path.is_file() and not path.is_symlink()
