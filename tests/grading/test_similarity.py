"""A copy in disguise is on top; work of one's own is not, however alike all solutions must be."""

from __future__ import annotations

import csv
import json
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder import time_limits
from autograder.cli import main
from autograder.course.notebook import Cell, NotebookError, cells_of, read_notebook, without_solution_markers
from autograder.course.release import stub_solutions
from autograder.grading.similar import similarity
from autograder.grading.similar.similarity import REFERENCE, TELLING, Report, most_alike, report_lines
from autograder.grading.similar.similarity_prints import MAX_CODE, Given, fingerprints
from autograder.grading.similar.syntax import parsed, tree_grams
from tests.grading.disguises import DISGUISES, Disguise
from tests.grading.own_ways import WAYS
from tests.tiny_course import HALVE, ROOT, SETUP, Write, code, hand_in, new_course

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


def without_processes(
    function: Callable[..., Any], tasks: Iterable[tuple[str, tuple[Any, ...]]], **limits: object
) -> Iterator[tuple[str, Any]]:
    """Stand in for `killable.each`: processes take a second to start."""
    for key, arguments in tasks:
        try:
            yield key, function(*arguments)
        except Exception as error:
            yield key, error


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything runs in this process."""
    monkeypatch.setattr(similarity, "each", without_processes)


def of(report: Report) -> dict[tuple[str, str], float]:
    return {(pair.one, pair.other): pair.alike for pair in report.pairs}


@pytest.mark.usefixtures("here")
def test_the_copy_is_on_top(words: Path) -> None:
    report = most_alike(words, NAME, top=100)
    assert report.compared == 6
    first, *others = report.pairs
    assert (first.one, first.other, first.cells) == ("dan", "zoe", ("count",))
    assert first.alike > 0.9
    assert max(pair.alike for pair in others) < 0.5, of(report)
    assert not any("halve" in pair.cells for pair in report.pairs), "all write this one alike"


@pytest.mark.usefixtures("here")
def test_more_copies_do_not_hide_each_other(words: Path) -> None:
    for student in ("kim", "lea"):
        content = (words / "course" / "submitted" / "zoe" / NAME / f"{NAME}.ipynb").read_bytes()
        hand_in(words, student, content.replace(b"my_result", student.encode()), NAME)
    alike = {pair for pair, value in of(most_alike(words, NAME, top=100)).items() if value > 0.9}
    ring = ("dan", "kim", "lea", "zoe")
    assert alike == {(a, b) for a in ring for b in ring if a < b}


@pytest.mark.usefixtures("here")
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
    assert list(report.unread) == ["max"]
    assert of(report)["kim", "lea"] == 0, "nobody is suspected for having written nothing"
    assert (report.pairs[0].one, report.pairs[0].other) == ("dan", "zoe")


def test_the_command_in_its_three_forms(words: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--root", str(words), "similarity", NAME, "--top", "2"]
    assert main(command) == 0
    table = capsys.readouterr().out
    assert "dan, zoe" in table.splitlines()[1]
    assert "never a mark" in table
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["pairs"][0]["other"] == "zoe"
    assert [base["cell"] for base in report["cells"]] == ["halve", "count"]
    assert main([*command, "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 2
    assert (rows[0]["student"], rows[0]["other"], rows[0]["cells"]) == ("dan", "zoe", "count")
    assert rows[0]["usual"] == str(report["whole"]["usual"])
    assert main(["--root", str(words), "similarity", "09_none"]) == 1


REAL = "01_result"


def result_course(folder: Path, work: Mapping[str, Disguise | int]) -> Path:
    """A course of module 01: students write it in a way of their own, by number, or disguise the reference."""
    course = new_course(folder)
    shutil.copytree(ROOT / "modules" / REAL, course / "modules" / REAL)
    for student, how in work.items():
        hand_in(course, student, as_written(how), REAL)
    return course


def as_written(how: Disguise | int) -> bytes:
    """Return a submission of module 01; what `WAYS` does not hold is handed in as the reference has it."""
    notebook = read_notebook(ROOT / "modules" / REAL / f"{REAL}.ipynb")
    own = []
    for cell in cells_of(notebook):
        if not cell.is_solution:
            continue
        cell.node.source = without_solution_markers(cell.source)
        if not isinstance(how, int):
            cell.node.source, helper = how(cell.node.source)
            own += [nbformat.v4.new_code_cell(helper)] if helper else []
        elif cell.id in WAYS:
            cell.node.source = f"{cell.source.partition('    ### BEGIN')[0]}    {WAYS[cell.id][how].strip()}"
    notebook.cells[2:2] = own
    return nbformat.writes(notebook).encode()


HONEST = {f"honest_{way}": way for way in range(5)}


@pytest.fixture(scope="module")
def whole_class(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report on a class in which ten of fifteen took the reference, and disguised it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(similarity, "each", without_processes)
        return most_alike(result_course(tmp_path_factory.mktemp("class"), HONEST | DISGUISES), REAL, top=1000)


@pytest.mark.parametrize("disguise", DISGUISES)
def test_the_reference_is_found_behind(disguise: str, whole_class: Report) -> None:
    alike = of(whole_class)
    assert alike[REFERENCE, disguise] > (0.99 if disguise in ("byte_for_byte", "renamed", "commented") else 0.7)
    assert max(value for pair, value in alike.items() if any(name in HONEST for name in pair)) < TELLING


def test_it_says_what_is_usual_however_many_copied(whole_class: Report) -> None:
    assert whole_class.ways == 5
    bases = {base.cell: base for base in whole_class.cells}
    for cell in WAYS:
        assert bases[cell].usual < 0.6
        assert (bases[cell].to_reference or 0) < 0.65
        assert not bases[cell].assumed
    assert bases["method_cv"].usual == 1, "here all wrote this one as the reference does"
    assert bases["method_cv"].weight == 0
    assert 0.4 < whole_class.whole.usual < 0.8, "a part of the work was the reference's in everybody's"
    assert whole_class.telling == sum(pair.alike >= TELLING for pair in whole_class.pairs)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("work", "found"),
    [
        ({"a": DISGUISES["renamed"]}, {(REFERENCE, "a")}),
        ({"a": DISGUISES["renamed"], "b": DISGUISES["moved"]}, {(REFERENCE, "a"), (REFERENCE, "b"), ("a", "b")}),
        ({"a": 0, "b": DISGUISES["padded"]}, {(REFERENCE, "b")}),
        ({"a": 1, "b": 1, "c": 2}, {("a", "b")}),
        ({"a": 0}, set()),
        ({"a": 0, "b": 4}, set()),
        ({"a": 1, "b": 2, "c": 3}, set()),
    ],
)
def test_small_classes(work: Mapping[str, Disguise | int], found: set[tuple[str, str]], tmp_path: Path) -> None:
    report = most_alike(result_course(tmp_path, work), REAL)
    assert {pair for pair, value in of(report).items() if value >= TELLING} == found


@pytest.mark.usefixtures("here")
def test_earlier_years(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handed_in = words / "course" / "submitted"
    years = {"course": "2023/course/submitted/{}/01_words", "students": "2024/{}/01_words", "notebooks": "2025"}
    for student, (kind, place) in zip(("zoe", "ada", "dan"), years.items(), strict=True):
        name = student if kind == "notebooks" else NAME
        target = tmp_path / "years" / place.format(student) / f"{name}.ipynb"
        target.parent.mkdir(parents=True)
        shutil.copy(handed_in / student / NAME / f"{NAME}.ipynb", target)
    shutil.rmtree(handed_in / "zoe")
    folders = [tmp_path / "years" / year for year in ("2023", "2024", "2025")]
    report = most_alike(words, NAME, top=100, earlier=folders)
    alike = of(report)
    copies = {("dan", f"{folders[0]}/zoe"), ("ada", f"{folders[1]}/ada"), ("dan", f"{folders[2]}/dan")}
    assert {pair for pair, value in alike.items() if value > 0.9} == copies
    assert (report.compared, report.earlier) == (5, 3)
    assert all(one in (REFERENCE, *OWN) for one, _ in alike), "earlier years are not compared with each other"
    assert len(alike) == 6 * 5 // 2 + 5 * 3, "nor with the reference"
    command = ["--root", str(words), "similarity", NAME]
    assert main([*command, *(f"--with={folder}" for folder in folders)]) == 0
    assert "3 of earlier years" in capsys.readouterr().out
    for empty in (tmp_path / "years", tmp_path / "none", words):
        with pytest.raises(NotebookError, match=r"--with .* holds no earlier submission; name a course"):
            most_alike(words, NAME, earlier=[empty])


@pytest.mark.usefixtures("here")
def test_only_correct_solutions_say_what_is_usual(words: Path) -> None:
    verdicts = words / "course" / "verdicts" / NAME
    verdicts.mkdir(parents=True)
    before = most_alike(words, NAME)
    for student in (*OWN, "zoe"):
        wrong = "" if student in ("ben", "dan") else "wrong"
        verdict = {"failure": "", "verdicts": {"check": wrong}}
        (verdicts / f"{student}.json").write_text(json.dumps(verdict))
    after = most_alike(words, NAME)
    assert (before.ways, after.ways) == (5, 2)
    assert before.cells[1].usual != after.cells[1].usual


@pytest.mark.usefixtures("here")
def test_what_does_not_parse_is_compared_by_its_tokens(words: Path) -> None:
    content = (words / "course" / "submitted" / "zoe" / NAME / f"{NAME}.ipynb").read_bytes()
    hand_in(words, "kim", content.replace(b"return my_result", b"return my_result)"), NAME)
    hand_in(words, "lea", content.replace(b"return my_result", b"%time 1\\n    return my_result"), NAME)
    hand_in(words, "max", content.replace(b"return my_result", b"return " + b"-" * 5000 + b"my_result"), NAME)
    report = most_alike(words, NAME, top=100)
    alike = of(report)
    assert not report.unread
    assert min(alike["dan", "lea"], alike["lea", "zoe"]) == 1
    assert min(alike[pair] for pair in [("dan", "kim"), ("kim", "zoe"), ("dan", "max")]) > TELLING
    assert max(value for pair, value in alike.items() if pair[0] in ("ada", "ben", "cleo", "eve")) < TELLING


def test_whatever_is_handed_in_the_others_are_compared(words: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = (words / "course" / "submitted" / "zoe" / NAME / f"{NAME}.ipynb").read_bytes()
    work = {
        "huge": "x = 1; " * MAX_CODE,
        "deep": "(" * 50_000,
        "nul": "\0",
        "half": "\ud800",
        "long": "a" + ".a" * 90_000,
    }
    for student, text in work.items():
        written = json.dumps(text).encode()[1:-1]
        hand_in(words, student, content.replace(b"return my_result", b"return my_result\\n    " + written), NAME)
    hand_in(words, "control", b"[" * 100_000, NAME)
    report = most_alike(words, NAME, top=100)
    assert of(report)["dan", "zoe"] == 1
    assert {"control", "huge"} <= set(report.unread) <= {*work, "control"}
    assert main(["--root", str(words), "similarity", NAME]) == 0
    assert "huge (the notebook has more than 500,000 characters of code)" in capsys.readouterr().out


def test_a_class_that_wrote_nothing(words: Path) -> None:
    shutil.rmtree(words / "course" / "submitted")
    hand_in(words, "kim", b"no notebook", NAME)
    report = most_alike(words, NAME)
    assert (report.compared, report.pairs, list(report.unread)) == (0, (), ["kim"])
    assert "0 submissions" in "\n".join(report_lines(report))


@pytest.mark.usefixtures("here")
def test_a_module_without_solutions(course: Path, module: Write) -> None:
    content = module(code(SETUP, "setup", locked=True), name=NAME).read_bytes()
    for student in ("kim", "lea"):
        hand_in(course, student, content, NAME)
    assert {pair.alike for pair in most_alike(course, NAME).pairs} == {0}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x += 1", "x = x + 1"),
        ("x: int = 1\ny: str", "y = 1"),
        ("if not a: f()\nelse: g()", "if a: g()\nelse: f()"),
        ("y = a if x != 1 else b", "y = b if x == 1 else a"),
        ("def f(x):\n  if x: return 1\n  else: return 2", "def g(z: int) -> int:\n  'doc'\n  return 1 if z else 2"),
        ("f(a=1, b=2)", "f(b=2, a=1)"),
        ("a < b", "b > a"),
        ("a + b * c", "c * b + a"),
        ("a and b.c", "b.c and a"),
        ("x = f'{a} of {b}'", "x = '{}, {}'.format(a, b)"),
        ("x = '%s, %s' % (a, b)", "y = f'{a}{b}'"),
        ("m, n = 1, f(2)", "q = 1\nr = f(2)"),
        ("g = lambda x: x + 1", "def h(y):\n  return y + 1"),
        ("import numpy as np\nnp.random.default_rng(1)", "from numpy.random import default_rng as d\nd(1)"),
        ("sum([x for x in y])", "sum(z for z in y)"),
        ("def f(self): self.total = 1; return self.total", "def g(me): me.all = 1; return me.all"),
        ("def f(a): return not a in b", "def f(c): return c not in b"),
        ("pass\n'text'\nglobal x\nf()", "f()"),
    ],
)
def test_two_ways_to_write_the_same(one: str, other: str) -> None:
    first, second = (tree_grams(parsed(text) or [], {}) for text in (one, other))
    assert first == second
    assert first


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a - b", "b - a"),
        ("x = f(1)", "x = f(2)"),
        ("x = sum(y)", "x = max(y)"),
        ("y.pop()", "y.sort()"),
        ("a < b", "a <= b"),
    ],
)
def test_what_is_not_the_same(one: str, other: str) -> None:
    assert tree_grams(parsed(one) or [], {}) != tree_grams(parsed(other) or [], {})


def test_a_solution_may_stand_in_any_cell() -> None:
    given = Given({"count": stub_solutions(COUNT, "count")}, frozenset({"check"}))
    [here] = fingerprints([Cell("code", without_solution_markers(COUNT), "count")], given).values()
    [elsewhere] = fingerprints([Cell("code", without_solution_markers(COUNT), "")], given).values()
    assert here.tree
    assert here.tree == elsewhere.tree
    [untouched] = fingerprints([Cell("code", given.stubs["count"], "count")], given).values()
    assert untouched.tree == frozenset()


@pytest.mark.slow
def test_a_class_of_sixty_takes_seconds(tmp_path: Path) -> None:
    rng = random.Random(1)
    work = {f"student_{number:02}": rng.choice([*HONEST.values(), *DISGUISES.values()]) for number in range(60)}
    course = result_course(tmp_path, work)
    started = time.monotonic()
    assert most_alike(course, REAL).compared == 60
    assert time.monotonic() - started < time_limits.wall(20)
