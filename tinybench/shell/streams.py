"""Standard output and error that can print every character, whatever the encoding of the locale."""

from __future__ import annotations

import codecs
import io
import sys


def escape_unprintable() -> None:
    r"""Make standard output and error escape characters that they cannot encode, such as ``\u2212`` for a minus."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="backslashreplace")
