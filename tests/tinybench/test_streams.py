"""Commands print their results whatever the locale: what its encoding lacks is printed as an escape."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LOCALES = {
    "C without coercion": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "POSIX": {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
    "a pipe of Windows": {"PYTHONIOENCODING": "cp1252"},
    "Turkish": {"PYTHONIOENCODING": "iso8859-9", "LANG": "tr_TR.ISO-8859-9"},
    "ASCII": {"PYTHONIOENCODING": "ascii"},
}
COMMANDS = {
    "tinybench machine": (["-m", "tinybench", "machine"], "kernel"),
    "autograder --help": (["-m", "autograder", "--help"], "Usage"),
    "autograder export --check": (["-m", "autograder", "export", "--check"], "changed"),
}


def run(words: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *words], env=os.environ | variables, capture_output=True)


@pytest.mark.parametrize("name", LOCALES)
def test_what_an_encoding_lacks_is_printed_as_an_escape(name: str) -> None:
    code = "from tinybench.shell.streams import escape_unprintable; escape_unprintable(); print('\\u2212 5 %, \\u2713')"
    done = run(["-c", code], LOCALES[name])
    assert done.returncode == 0, done.stderr
    told = done.stdout.decode("utf-8", errors="strict").strip()
    assert told in ("\u2212 5 %, \u2713", "\\u2212 5 %, \\u2713")


@pytest.mark.parametrize("locale", ["C without coercion", "a pipe of Windows"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_print_in_any_locale(command: str, locale: str) -> None:
    words, expected = COMMANDS[command]
    done = run(words, LOCALES[locale])
    assert b"codec" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
    assert expected.encode() in done.stdout
