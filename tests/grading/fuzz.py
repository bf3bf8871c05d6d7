"""What may come from a stranger, made up: on the wire, as a notebook, as markup, as a name. Longer than in the tests:

``python -m tests.grading.fuzz --minutes 10``
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import struct
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
from bleach._vendor import html5lib  # type: ignore[import-untyped]
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from nbconvert.filters.markdown import markdown2html
from nbgrader.coursedir import CourseDirectory

from autograder.course.notebook import cells_of, read_notebook
from autograder.grading.collect import Collect
from autograder.grading.killable import limited_memory
from autograder.grading.names import why_no_student
from autograder.grading.sanitize import ATTRIBUTES, TAGS, safe_line, safe_markdown, safe_outputs
from autograder.grading.session import may_lend
from autograder.grading.submission import UnusableSubmission, parse_submission, prepare
from autograder.sandbox.rpc.codec import Channel, ChannelError, ProtocolViolation, decode, encode
from autograder.sandbox.rpc.endpoint import Endpoint
from tests.tiny_course import NAME, ROOT

SECONDS, MEMORY = 5, 2**30  # of one case
SOURCE = read_notebook(ROOT / "modules" / NAME / f"{NAME}.ipynb")

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


class Declared(Exception):
    """What the guest said went wrong."""


def wire(sent: bytes) -> None:
    """The grader's end gets a value, an error that the guest declared, or a `ChannelError`; nothing else, and soon."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        channel = Channel(ours, max_received=2**20, total=2**22)
        channel.set_deadline(SECONDS)
        endpoint = Endpoint(channel, may_lend)
        error, own = endpoint._error, list[BaseException]()

        def declared(*args: Any) -> BaseException:
            own.append(error(*args))
            return own[-1]

        endpoint._error = declared  # type: ignore[method-assign]
        try:
            endpoint.ask("get", endpoint.root(), "cell")
        except ChannelError:
            pass
        except Exception as raised:
            if not any(raised is each for each in own):
                raise


class References:
    """Stands for the endpoint where the codec is alone."""

    def decode_reference(self, kind: str, content: Any) -> Any:
        raise ProtocolViolation(kind[:10])

    def known_array(self, array: Any, number: int) -> Any:
        return array

    def array_number(self, array: Any) -> None:
        return None


def codec(data: Any) -> None:
    """What can be decoded can be encoded, and is the same again; the rest is a `ProtocolViolation`."""
    refs: Any = References()
    try:
        value = decode(data, refs)
    except ProtocolViolation:
        return
    again = encode(value, refs)
    assert json.dumps(encode(decode(json.loads(json.dumps(again)), refs), refs)) == json.dumps(again)


# A notebook.


def _changed(changes: list[tuple[int, Any]]) -> bytes:
    """Return a notebook in which values at some places are others."""
    notebook: Any = json.loads(nbformat.writes(SOURCE))
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
    whole = nbformat.writes(SOURCE).encode()
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


def notebook(content: bytes) -> None:
    """It is refused with a reason, or becomes a valid notebook with the instructor's cells in order."""
    why = ""
    try:
        prepared = prepare(parse_submission(content), SOURCE)
    except UnusableSubmission as error:
        why = str(error)
        prepared = prepare([], SOURCE)
    assert len(why) < 300
    nbformat.validate(nbformat.reads(nbformat.writes(prepared.notebook), as_version=4))
    known = [(cell.id, dict(cell.marks)) for cell in cells_of(SOURCE) if cell.marks.get("grade_id")]
    assert [(cell.id, dict(cell.marks)) for cell in cells_of(prepared.notebook) if cell.marks] == known


# Markup.

MARKUP = r"""< > </ /> " ' = & ; <!-- --> <![CDATA[ ]]> <? \href{ } $ javascript: data:text/html, data:image/png;base64, //evil.example/x
http://evil.example &#106; &colon; onerror onload style href src srcset action xlink:href class title id background url( expression( a img svg
math mtext table p b style script title noscript template iframe form details textarea xmp select annotation-xml <td>1</td> <script>f()</script>
<img/src=x/onerror=f()> <svg><style><img/src=x/onerror=f()> <math><mtext><table><mglyph><style> <b/title="<script>f()</script>">""".split()
MARKDOWN = r"""[ ] ( ) [a] [a]: ]( ! javascript:f() http://a.example #x < > \ ` ``` ~~~ - 1. &#106; avascript: $ $$ \href{ * _ | |- : [^1]
attachment:x data:text/html,x x""".split()
spaces = st.sampled_from([" ", "\n", "\n\n", "\t", "    ", "\x00"])
markup = st.lists(st.sampled_from(MARKUP) | spaces | st.text(max_size=5), max_size=25).map("".join)
markdown = st.lists(st.sampled_from(MARKDOWN) | spaces | markup | st.text(max_size=4), max_size=15).map("".join)


def _has_no_effect(name: str, attributes: list[tuple[str, str]], *, ours: bool) -> None:
    assert name in TAGS or not ours, name
    assert name not in (
        "script",
        "iframe",
        "form",
        "object",
        "embed",
        "style",
        "link",
        "meta",
        "base",
        "svg",
        "math",
    ), name
    for attribute, value in attributes:
        assert not attribute.startswith("on"), attribute
        if attribute in ("src", "srcset", "action", "background", "data", "poster"):
            assert value.startswith("data:image/png;base64,"), value
        if attribute == "href":
            assert value.startswith(("http://", "https://", "#")), value
        if attribute == "style":
            assert "(" not in value, value
        if ours:
            assert attribute in {*ATTRIBUTES["*"], *ATTRIBUTES.get(name, ()), "src", "alt"}, attribute


class Reader(HTMLParser):
    """Looks at every tag as Python's parser sees it."""

    def __init__(self, ours: bool) -> None:
        super().__init__()
        self.ours = ours

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        _has_no_effect(tag, [(name, value or "") for name, value in attrs], ours=self.ours)


def _inert(page: str, *, ours: bool = True) -> None:
    """Nothing in a page runs, loads or leads to a program."""
    Reader(ours).feed(page)
    tree = html5lib.parseFragment(page, treebuilder="etree", namespaceHTMLElements=False)
    for element in list(tree.iter())[1:]:
        if isinstance(element.tag, str):  # no comment
            _has_no_effect(element.tag, [(str(name), str(value)) for name, value in element.attrib.items()], ours=ours)


def cleaner(page: str) -> None:
    """What is left of markup does nothing, and cleaning it again changes nothing."""
    for output in safe_outputs([{"data": {"text/html": page}}]):
        _inert(output["data"]["text/html"])


def prose(text: str) -> None:
    """Markdown, drawn as nbconvert draws it, does nothing."""
    _inert(markdown2html(safe_markdown(text)), ours=False)


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


def name(given: str) -> None:
    """One that a student can have makes a file's name, one line, and no other's."""
    collect = Collect(coursedir=CourseDirectory(assignment_id=NAME))
    collect.log.disabled = True
    assert safe_line(given).isprintable()
    if "/" not in given and "\0" not in given and given:
        with suppress(FileNotFoundError):  # it asks when the folder was made
            collect._path_to_record(f"/{given}")
    if not why_no_student(given):
        assert safe_line(given, 300) == given == unicodedata.normalize("NFC", given)
        assert Path("verdicts", f"{given}.entered").parent == Path("verdicts")
        assert len(f".{given}.entered.12345678".encode()) <= 255


PROPERTIES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    "wire": (frames, wire),
    "codec": (coded, codec),
    "notebook": (notebooks, notebook),
    "cleaner": (markup, cleaner),
    "prose": (markdown, prose),
    "name": (names, name),
}


def check(which: str, case: Any) -> None:
    """Check one case, in limited time and memory."""
    started = time.process_time()
    with limited_memory(MEMORY):
        PROPERTIES[which][1](case)
    assert time.process_time() - started < SECONDS


def main() -> None:
    """Go on with other cases until the time is over; a case that fails is made small and shown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--only", choices=PROPERTIES)
    options = parser.parse_args()
    until, cases, number = (
        time.monotonic() + 60 * options.minutes,
        Counter[str](),
        random.SystemRandom().randrange(2**31),
    )
    while time.monotonic() < until:
        for which in [options.only] if options.only else PROPERTIES:
            number += 1

            def once(case: Any, which: str = which) -> None:
                cases[which] += 1
                check(which, case)

            run = settings(max_examples=200, database=None, phases=[Phase.generate, Phase.shrink], deadline=None)
            seed(number)(run(given(PROPERTIES[which][0])(once)))()
    print(", ".join(f"{which} {count}" for which, count in cases.items()), "cases, all held")


if __name__ == "__main__":
    main()
