"""Limits on a protobuf file, checked before protobuf parses it: the number of parts, and valid UTF-8 in texts.

Protobuf itself has no such limits. A file of 16 MB can hold eight million empty messages, for which the parser takes
1.2 GB. For text that is not UTF-8, the parser would return bytes where a string is expected.
"""

from __future__ import annotations

import re
from typing import Any

from onnx import ModelProto

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
# Matches, at the speed of C, long lists of numbers and the two words that a decision tree repeats thousands of times:
# fields 1 and 8 as integers, 7 as floats, 9 as short text. The quantifier is possessive, so no backtracking state is
# kept.
_RUN = re.compile(rb"(?:[\x08\x40]" + _VARINT + rb"|\x3d[\x00-\xff]{4}|\x4a\x0aBRANCH_LEQ|\x4a\x04LEAF){2,65536}+")
_PACKED_INTEGERS = {5, 7, 11}  # fields of a tensor: int32_data, int64_data, uint64_data


class Malformed(ValueError):
    """The bytes are not a protobuf message, have too many parts, or contain invalid text."""


def check_limits(  # noqa: C901 - one branch for each kind of a field, in one loop that must be fast
    data: bytes, *, parts: int = 60_000, numbers: int = 8_000_000
) -> None:
    """Walk through the fields of an ONNX file. If this is impossible or there are too many fields, raise Malformed.

    `parts` limits the number of messages and texts, each of which takes about 100 bytes of memory after parsing.
    `numbers` limits the count of numbers outside raw data, each of which takes 8 bytes.
    """
    waiting: list[tuple[int, int, Any]] = [(0, len(data), ModelProto.DESCRIPTOR)]
    seen = counted = 0
    while waiting:
        position, end, kind = waiting.pop()
        messages = {field.number: field.message_type for field in kind.fields if field.message_type}
        texts = {field.number for field in kind.fields if field.type == field.TYPE_STRING}
        while position < end:
            run = _RUN.match(data, position, end)
            if run:
                counted += (run.end() - position) // 2
                position = run.end()
            else:
                seen += 1
                tag, position = _varint(data, position, end)
                number, wire = tag >> 3, tag & 7
                if wire == 0:
                    _, position = _varint(data, position, end)
                elif wire in (1, 5):
                    position += 8 if wire == 1 else 4
                elif wire == 2:
                    length, position = _varint(data, position, end)
                    if length > end - position:
                        raise Malformed(f"a part of {length} bytes begins {end - position} bytes before its end")
                    if number in messages:
                        waiting.append((position, position + length, messages[number]))
                    elif number in texts:
                        _check_text(data[position : position + length])
                    elif kind.name == "TensorProto" and number in _PACKED_INTEGERS:
                        counted += length
                    position += length
                else:
                    raise Malformed(f"byte {position} begins nothing that protobuf knows")
                if position > end:
                    raise Malformed("it ends in the middle of a number")
            if seen > parts or len(waiting) > parts:
                raise Malformed(f"it has more than {parts} parts (nodes, attributes, names)")
            if counted > numbers:
                raise Malformed(f"it lists more than {numbers} numbers outside raw data")


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise Malformed("it ends in the middle of a number" if position >= end else "a number has more than 10 bytes")


def _check_text(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise Malformed(f"a name or text in it is not UTF-8: {text[:20]!r}") from None
