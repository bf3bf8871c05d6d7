"""A copy under other names is on top; work of one's own is not, however alike all solutions must be."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.course.notebook import read_notebook
from autograder.grading.similarity import Report, most_alike
from tests.tiny_course import HALVE, SETUP, Write, code, hand_in

NAME = "01_words"
COUNT = '''def count(text: str) -> dict[str, int]:
    """Return how often each word of a text occurs, whatever its case and punctuation."""
    ### BEGIN SOLUTION
    counts = {}
    for word in text.lower().split():
        word = word.strip(".,;:!?")
        counts[word] = counts.get(word, 0) + 1
    return counts
    ### END SOLUTION'''
CHECK = "assert True\n### BEGIN HIDDEN TESTS\nassert count('a A b') == {'a': 2, 'b': 1}\n### END HIDDEN TESTS"
OWN = {
    "ada": """from collections import Counter
    return dict(Counter(re.findall(r"[a-z]+", text.lower())))""",
    "ben": """result = defaultdict(int)
    for raw in re.split(r"\\W+", text):
        if raw:
            result[raw.casefold()] += 1
    return dict(result)""",
    "cleo": """words = [w.strip(string.punctuation).lower() for w in text.split()]
    return {w: words.count(w) for w in set(words) if w}""",
    "dan": """table = str.maketrans("", "", string.punctuation)
    found = {}
    for piece in sorted(text.translate(table).lower().split()):
        if piece not in found:
            found[piece] = 0
        found[piece] += 1
    return found""",
    "eve": """current, seen = "", {}
    for letter in text + " ":
        if letter.isalpha():
            current += letter.lower()
        elif current:
            seen[current] = 1 + seen.get(current, 0)
            current = ""
    return seen""",
}
# dan's, with other names, comments, quotes and layout
COPY = """    # remove punctuation first
    tt = str.maketrans('', '', string.punctuation)
    my_result = {}  # the result

    for the_word in sorted( text.translate(tt).lower().split() ):
        # a new one
        if the_word not in my_result:
            my_result[the_word]=0
        my_result[the_word]+=1
    return my_result"""


@pytest.fixture
def words(course: Path, module: Write) -> Path:
    """A course in which five students wrote on their own, and the sixth copied."""
    cells = [
        code(SETUP, "setup", locked=True),
        code(HALVE, "halve", "export", solution=True),
        code(COUNT, "count", "export", solution=True),
        code(CHECK, "check", grade=True, locked=True, points=1),
    ]
    source = read_notebook(module(*cells, name=NAME))
    for student, body in {**OWN, "zoe": COPY.strip()}.items():
        for cell in source.cells:
            if cell.id == "count":
                cell.source = f"{COUNT.partition('    ### BEGIN')[0]}    {body}"
            elif cell.id == "halve":
                cell.source = HALVE.partition("    ### BEGIN")[0] + "    return x / 2"
        hand_in(course, student, nbformat.writes(source).encode(), NAME)
    return course


def of(report: Report) -> dict[tuple[str, str], float]:
    return {(pair.one, pair.other): pair.alike for pair in report.pairs}


def test_the_copy_is_on_top(words: Path) -> None:
    report = most_alike(words, NAME, top=100)
    assert report.compared == 6
    first, *others = report.pairs
    assert (first.one, first.other, first.cells) == ("dan", "zoe", ("count",))
    assert first.alike > 0.9
    assert max(pair.alike for pair in others) < 0.5, of(report)
    assert not any("halve" in pair.cells for pair in report.pairs), "all write this one alike"


def test_more_copies_do_not_hide_each_other(words: Path) -> None:
    for student in ("kim", "lea"):
        content = (words / "course" / "submitted" / "zoe" / NAME / f"{NAME}.ipynb").read_bytes()
        hand_in(words, student, content.replace(b"my_result", student.encode()), NAME)
    alike = {pair for pair, value in of(most_alike(words, NAME, top=100)).items() if value > 0.9}
    ring = ("dan", "kim", "lea", "zoe")
    assert alike == {(a, b) for a in ring for b in ring if a < b}


def test_unfinished_and_unreadable_work(words: Path) -> None:
    untouched = read_notebook(words / "modules" / NAME / f"{NAME}.ipynb")
    for cell in untouched.cells:
        if cell.id in ("halve", "count"):
            given = cell.source.partition("    ### BEGIN")[0]
            cell.source = f'{given}    raise NotImplementedError("write {cell.id}")'
    for student in ("kim", "lea"):
        hand_in(words, student, nbformat.writes(untouched).encode(), NAME)
    hand_in(words, "max", b"no notebook", NAME)
    report = most_alike(words, NAME, top=100)
    assert report.unread == ("max",)
    assert of(report)["kim", "lea"] == 0, "nobody is suspected for having written nothing"
    assert (report.pairs[0].one, report.pairs[0].other) == ("dan", "zoe")


def test_the_command_in_its_three_forms(words: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--root", str(words), "similarity", NAME, "--top", "2"]
    assert main(command) == 0
    table = capsys.readouterr().out
    assert "dan, zoe" in table.splitlines()[1]
    assert "never a mark" in table
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["other"] == "zoe"
    assert main([*command, "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 2
    assert (rows[0]["student"], rows[0]["other"], rows[0]["cells"]) == ("dan", "zoe", "count")
    assert main(["--root", str(words), "similarity", "09_none"]) == 1
