"""The notebook and the data files of an assignment as bytes, which a grader can pass to another process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Assignment:
    """An assignment: the instructor's notebook, and the name and content of each data file in its folder."""

    name: str
    notebook: bytes
    data: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def read(cls, notebook: Path) -> Assignment:
        """Read an assignment from its notebook and from the data files in the notebook's folder."""
        folder = notebook.parent
        data = ((path.relative_to(folder).as_posix(), path.read_bytes()) for path in data_files(folder))
        return cls(notebook.stem, notebook.read_bytes(), tuple(data))

    def digest(self) -> str:
        """Return a SHA-256 digest of the notebook and the data files."""
        found = hashlib.sha256(self.notebook)
        for name, content in self.data:
            found.update(f"\0{name}\0{len(content)}\0".encode() + content)
        return found.hexdigest()

    def lay_out(self, folder: Path) -> list[Path]:
        """Write the data files into a folder, readable by every user, and return their paths."""
        paths = [folder / name for name, _ in self.data]
        for path, (_, content) in zip(paths, self.data, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o644)
        return paths


def data_files(folder: Path) -> list[Path]:
    """Return the data files in a folder. Leave out notebooks, Python files, links and names that begin with . or _."""
    return [path for path in sorted(folder.rglob("*")) if _is_data(path, folder)]


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return not hidden and path.suffix not in (".ipynb", ".py", ".pyc") and path.is_file() and not path.is_symlink()
