"""Standard output and error that can print every character, whatever the encoding of the locale."""

from __future__ import annotations

import codecs
import io
import sys


def escape_unprintable() -> None:
    r"""Make standard streams escape the characters that they cannot encode: ``\u2212`` for a minus sign in ASCII."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="backslashreplace")
