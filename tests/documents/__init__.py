"""The command lines of the documents that people follow, wherever they stand: in blocks, in tables, in a sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from autograder.course import handout_texts
from tinybench.shell.options import EXAMPLES

ROOT = Path(__file__).parents[2]
FILES = ("README.md", "CONTRIBUTING.md", "autograder/INSTRUCTOR.md", "autograder/leaderboard/README.md")
PUBLISHED, HELP = "the published README", "tinybench --help"
PROGRAMS = (
    r"autograder|tinybench|nbgrader|make|python3?|pip|uv|conda|jupyter|git|pytest|source|ruff|mypy|taskset|wrk|hey|"
    r"mv|cp|rm|head|cut|grep|find|kill|docker|apt-get|cd|%%?bench|%load_ext|\.venv\S*"
)
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.M | re.S)
SPAN = re.compile(r"(`+)(.+?)\1")


class Found(NamedTuple):
    """A command line and the document that it stands in."""

    document: str
    command: str


def documents() -> dict[str, str]:
    """Return the text of each document."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in FILES}
    published = handout_texts.README.format(title="", badges="", modules="")
    examples = EXAMPLES.partition("examples:\n")[2].partition("\n\n")[0]
    return {**texts, PUBLISHED: published, HELP: f"```bash\n{examples}\n```"}


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [body for _, found, body in FENCE.findall(text) if found == language]


def commands(text: str) -> list[str]:
    """Return the command lines of a text, each once, without the comments behind them."""
    lines: list[str] = []
    for _, language, body in FENCE.findall(text):
        body_lines = [line.strip() for line in body.splitlines()]
        if language == "console":
            lines += [line[2:] for line in body_lines if line.startswith("$ ")]
        elif language == "bash":
            lines += body_lines
        elif not language:  # a picture of folders, a file of another program, or commands
            lines += [line for line in body_lines if is_command(line)]
    prose = FENCE.sub("", text)
    lines += [span.strip() for _, span in SPAN.findall(prose) if is_command(span.strip())]
    bare = (re.sub(r"\s+# .*$", "", line) for line in lines if not line.startswith("#"))
    return [line for line in dict.fromkeys(bare) if line]


def is_command(text: str) -> bool:
    """Return whether a text begins with the name of a program that the documents call."""
    return re.match(rf"(?:{PROGRAMS})(?:\s|$)", text) is not None


def all_commands() -> list[Found]:
    """Return every command line of every document."""
    return [Found(name, line) for name, text in documents().items() for line in commands(text)]
