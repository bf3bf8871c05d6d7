"""What may come from a stranger, made up: messages, notebooks, markup, names; drawn by Hypothesis."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import nbformat
from hypothesis import strategies as st

from autograder.course.notebook import read_notebook
from tests.tiny_course import NAME, ROOT

SOURCE = read_notebook(ROOT / "modules" / NAME / f"{NAME}.ipynb")
WHOLE = nbformat.writes(SOURCE)

words = st.one_of(
    st.text(max_size=20), st.sampled_from(["", "0", "__class__", "ValueError", "SystemExit", "<f8", "O", "|S3", "AAAA"])
)
numbers = st.one_of(st.integers(-3, 70), st.integers(), st.sampled_from([2**31, 2**63, 10**400, -1]), st.floats())
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, words),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(words, inner, max_size=3),
    max_leaves=15,
)


# The wire.

KINDS = ("dict", "tuple", "set", "frozenset", "bytes", "complex", "range", "slice", "objects", "array", "yours", "mine", "error", "error type", "named", "pickle")  # fmt: skip
shapes = st.none() | st.lists(st.integers(-2, 9) | numbers, max_size=4)
arrays = st.tuples(
    st.sampled_from(["<f8", "|b1", "<U5", "<M8[s]", "V8", "O", ">i2", "f8,i4", "U0", ""]),
    shapes,
    words,
    st.none() | numbers,
)
coded = st.recursive(
    st.one_of(st.none(), numbers, words, st.fixed_dictionaries({"array": arrays})),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(KINDS), st.lists(inner, max_size=4) | inner, min_size=1, max_size=1),
        st.fixed_dictionaries({"dict": st.lists(st.tuples(inner, inner), max_size=3)}),
        st.fixed_dictionaries({"mine": st.tuples(numbers, words, st.lists(words, max_size=3))}),
        st.fixed_dictionaries({"objects": st.tuples(shapes, st.lists(inner, max_size=4))}),
    ),
    max_leaves=12,
)
messages = st.one_of(
    st.tuples(st.just("value"), coded),
    st.tuples(st.just("ask"), st.sampled_from(["get", "set", "special", "repr", "format", "isinstance", "x"]), st.lists(coded, max_size=3), st.none() | coded),
    st.tuples(st.just("error"), coded | st.lists(words, max_size=3), words, numbers | coded, numbers | coded),
    st.lists(coded, max_size=5),
    anything,
)  # fmt: skip


def framed(content: bytes) -> bytes:
    return struct.pack("!I", len(content)) + content


frames = st.lists(
    st.one_of(
        messages.map(lambda message: framed(json.dumps(message).encode())),
        st.binary(max_size=40).map(framed),
        st.binary(max_size=40),
        st.integers(0, 2**32 - 1).map(lambda size: struct.pack("!I", size) + b"[]"),
        st.integers(1, 3000).map(lambda depth: framed(b"[" * depth + b"]" * depth)),
        st.integers(1, 3000).map(lambda depth: framed(b'["value", ' + b'{"tuple": [' * depth + b"]}" * depth + b"]")),
        st.integers(4000, 9000).map(lambda digits: framed(b'["value", ' + b"1" * digits + b"]")),
    ),
    max_size=6,
).map(b"".join)


# A notebook.


def _changed(changes: list[tuple[int, Any]]) -> bytes:
    """Return a notebook in which values at some places are others."""
    notebook: Any = json.loads(WHOLE)
    for place, value in changes:
        rng, here = random.Random(place), notebook
        while True:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            key = rng.choice(keys)
            if not isinstance(here[key], dict | list) or not here[key] or rng.random() < 0.2:
                here[key] = value
                break
            here = here[key]
        if not isinstance(notebook, dict) or not notebook:
            break
    return json.dumps(notebook).encode("utf-8", "replace")


def _cut(at: int, put: bytes) -> bytes:
    whole = WHOLE.encode()
    return whole[: at % len(whole)] + put + whole[at % len(whole) + len(put) :]


fields = {"cell_type": st.sampled_from(["code", "markdown", "raw"]) | anything, "source": words | anything, "metadata": st.fixed_dictionaries({"nbgrader": st.fixed_dictionaries({"grade_id": words | anything}) | anything}) | anything}  # fmt: skip
notebooks = st.one_of(
    st.lists(st.tuples(st.integers(), anything), max_size=6).map(_changed),
    st.builds(_cut, st.integers(0), st.binary(max_size=8)),
    st.lists(st.fixed_dictionaries(fields), max_size=6).map(
        lambda cells: json.dumps({"nbformat": 4, "cells": cells}).encode()
    ),
    anything.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
)


# Markup.

MARKUP = r"""< > </ /> " ' = & ; <!-- --> <![CDATA[ ]]> <? \href{ } $ javascript: data:text/html, data:image/png;base64, //evil.example/x
http://evil.example &#106; &colon; onerror onload style href src srcset action xlink:href class title id background url( expression( a img svg
math mtext table p b style script title noscript template iframe form details textarea xmp select annotation-xml <td>1</td> <script>f()</script>
<img/src=x/onerror=f()> <svg><style><img/src=x/onerror=f()> <math><mtext><table><mglyph><style> <b/title="<script>f()</script>">""".split()  # noqa: SIM905
MARKDOWN = r"""[ ] ( ) [a] [a]: ]( ! javascript:f() http://a.example #x < > \ ` ``` ~~~ - 1. &#106; avascript: $ $$ \href{ * _ | |- : [^1]
attachment:x data:text/html,x x""".split()  # noqa: SIM905
spaces = st.sampled_from([" ", "\n", "\n\n", "\t", "    ", "\x00"])
markup = st.lists(st.sampled_from(MARKUP) | spaces | st.text(max_size=5), max_size=25).map("".join)
markdown = st.lists(st.sampled_from(MARKDOWN) | spaces | markup | st.text(max_size=4), max_size=15).map("".join)


# A name.

names = st.one_of(
    st.text(max_size=260),
    st.text(st.sampled_from("abé\u202e\n\x1b./+*[<'\udc80 "), max_size=140),
    st.builds(
        lambda who, when: f"{who}+{NAME}+{when}+x",
        words,
        words | st.sampled_from(["9999-12-31 23:59:59 UTC", "1 a.d."]),
    ),
)
