"""The page beside this file: each command writes its own part of it, between two marks."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).with_name("README.md")


def part(name: str) -> str:
    """Return what stands between the marks of a part."""
    return PAGE.read_text(encoding="utf-8").split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]


def write_part(name: str, content: str) -> None:
    """Replace what stands between the marks of a part."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(f"<!-- {name} -->{part(name)}", f"<!-- {name} -->\n{content}\n"), encoding="utf-8")
