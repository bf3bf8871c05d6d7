"""A check of whether a folder's name can be a student's name.

Anyone who may submit can create folders of any name.
"""

from __future__ import annotations

import unicodedata

MAX_CHARACTERS = 128  # the width of the gradebook's column
MAX_BYTES = 200  # a file name holds at most 255 bytes, and a verdict's file name adds a suffix
SPECIAL = frozenset("<>&\"'`*?[]{}|\\/")  # characters with a special meaning in pages, patterns or paths


def why_no_student(name: str) -> str:
    """Return the reason why a folder's name cannot be a student's name, or "" if it can."""
    if not name or name.startswith(".") or name != " ".join(name.split()):
        return "it is empty, begins with a dot, or holds a space where none is seen"
    if not name.isprintable() or unicodedata.normalize("NFC", name) != name:
        return "it holds characters that are not seen as they are"
    if not SPECIAL.isdisjoint(name):
        return f"it holds one of {''.join(sorted(SPECIAL))}"
    if len(name) > MAX_CHARACTERS or len(name.encode()) > MAX_BYTES:
        return f"it is longer than {MAX_CHARACTERS} characters or {MAX_BYTES} bytes"
    return ""
