"""What holds whatever comes from a stranger: on the wire, as a notebook, as markup, as a name. Longer than in the tests:

``python -m tests.grading.fuzz --minutes 10``
"""

from __future__ import annotations

import argparse
import json
import random
import socket
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

from autograder.course.notebook import cells_of
from autograder.grading.collect import Collect
from autograder.grading.killable import limited_memory
from autograder.grading.names import why_no_student
from autograder.grading.sanitize import ATTRIBUTES, TAGS, safe_line, safe_markdown, safe_outputs
from autograder.grading.session import may_lend
from autograder.grading.submission import UnusableSubmission, parse_submission, prepare
from autograder.sandbox.rpc.codec import Channel, ChannelError, ProtocolViolation, decode, encode
from autograder.sandbox.rpc.endpoint import Endpoint
from tests.grading.made_up import SOURCE, coded, frames, markdown, markup, names, notebooks
from tests.tiny_course import NAME

SECONDS, MEMORY = 5, 2**30  # of one case


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
    """What can be decoded can be encoded and decoded again; the rest is a `ProtocolViolation`."""
    refs: Any = References()
    try:
        value = decode(data, refs)
    except ProtocolViolation:
        return
    again = encode(value, refs)
    assert type(decode(json.loads(json.dumps(again)), refs)) is type(value)


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


def name(given: str) -> None:
    """One that a student can have makes a file's name, one line, and no other's."""
    collect = Collect(coursedir=CourseDirectory(assignment_id=NAME))
    collect.log.disabled = True
    assert safe_line(given).isprintable()
    if "/" not in given and "\0" not in given and given:
        with suppress(OSError):  # it asks when the folder was made: there is none, or can be none of this length
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


def _round(which: str, number: int, cases: Counter[str]) -> None:
    @seed(number)
    @settings(max_examples=200, database=None, phases=[Phase.generate, Phase.shrink], deadline=None)
    @given(PROPERTIES[which][0])
    def once(case: Any) -> None:
        cases[which] += 1
        check(which, case)

    once()


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

            _round(which, number, cases)
    print(", ".join(f"{which} {count}" for which, count in cases.items()), "cases, all held")


if __name__ == "__main__":
    main()
