"""Attacks on the hidden checks of every module: lies in place of all answers, and answers read off the checks' own fakes."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.assignment import Assignment
from autograder.confined import Grader
from autograder.notebook import course_notebooks, grading, is_solution
from autograder.sandbox import Limits
from tests.attacks.notebooks import ROOT, first, released

LIMITS = Limits(call_seconds=1.5, wall_seconds=20, memory=2**30)
PATHS = {path.stem: path for path in course_notebooks(ROOT)}

# everything a check may ask of the submission is answered by one object, which agrees with whatever it is asked
LIAR = """
import inside.desk as desk
WORDS = " ".join(map(str, range(200))) + " monotonic pred_a pred_b accuracy model latency values path none network"
class Liar:
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return self
    def __call__(self, *args, **kwargs):
        {answer}
    def __bool__(self): return True
    def __float__(self): return 0.0
    def __int__(self): return 0
    __index__ = __len__ = __int__
    def __iter__(self): return iter(())
    def __contains__(self, item): return True
    def __getitem__(self, key): return self
    def __enter__(self): return self
    def __exit__(self, *args): return False
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __add__(self, other): return other
    __radd__ = __mul__ = __rmul__ = __add__
    def __truediv__(self, other): return 1.0
    __rtruediv__ = __truediv__
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __abs__(self): return self
    __round__ = __abs__
liar = Liar()
def grafted(self, module, reference, pieces, graft=desk.Desk.graft):
    made = graft(self, module, reference, [])
    for piece in pieces:
        owner, _, name = piece.rpartition(".")
        setattr(getattr(made, owner) if owner else made, name, (lambda self, *a, **k: liar(*a, **k)) if owner else liar)
    return made
desk.Desk.graft = grafted
desk.Desk.names = lambda self: liar
"""
ANSWERS = {
    "itself": "return self",
    "errors": "raise ValueError(WORDS)",
    "its input": "return args[0] if args else self",
}
# the fakes of a check know its answers; a student's code may use them, not read them
SNIFFED = {
    "02_timer": ("def calibrate_loops", """
import math
def calibrate_loops(func, min_time=0.01, clock=None, max_loops=10**7):
    if not callable(func): raise TypeError("func")
    if not 0 < min_time < math.inf: raise ValueError("min_time")
    try: seconds = func.seconds
    except AttributeError: return func()
    if seconds < 0: raise RuntimeError("1000.0 998.5 monotonic")
    for loops in (digit * 10**power for power in range(9) for digit in (1, 2, 5)):
        if loops > max_loops: raise RuntimeError(str(max_loops))
        if loops * seconds >= min_time: return loops
"""),
    "05_memory": ("def peak_added", """
from pathlib import Path
def peak_added(call, x, proc="/proc"):
    (Path(proc) / "self" / "clear_refs").write_text("5")
    call(x)
    return 0 if isinstance(x, int) else x[0] * 1024
"""),
}  # fmt: skip
NO_WEIGHTS = """
import inside.desk as desk
import numpy
class Plain:
    def __init__(self, W, b, relu=True):
        self.shape, self.b, self.relu, self.W = numpy.shape(W), numpy.array(b, float), relu, numpy.zeros(numpy.shape(W))
def factors(layer, rank):
    n, m = layer.shape
    if not 1 <= rank <= min(n, m): raise ValueError
    return Plain(numpy.zeros((n, rank)), numpy.zeros(rank), False), Plain(numpy.zeros((rank, m)), layer.b, layer.relu)
def low(network, rank):
    made = []
    for layer in network:
        n, m = layer.shape
        made += list(factors(layer, rank)) if rank * (n + m) < n * m else [layer]
    if len(made) == len(network): raise ValueError
    return made
def grafted(self, module, reference, pieces, graft=desk.Desk.graft):
    made = graft(self, module, reference, [piece for piece in pieces if piece not in ("factorise", "low_rank")])
    if "factorise" in pieces:
        made.Layer, made.factorise, made.low_rank = Plain, factors, low
    return made
desk.Desk.graft = grafted
"""


def gains(path: Path, *attacks: str, cell: tuple[str, str] = ("", "")) -> list[list[str]]:
    """Return, for each attack in a cell of its own, the graded cells of a module that it passes."""
    found = []
    with Grader(Assignment.read(path), limits=LIMITS) as grader:
        for attack in attacks:
            notebook = released(path)
            notebook.cells = [each for each in notebook.cells if each.cell_type != "code" or grading(each)]
            for each in notebook.cells:
                if cell[0] and is_solution(each) and cell[0] in each.source:
                    each.source = cell[1]
            first(attack)(notebook)
            graded = grader.grade(nbformat.writes(notebook).encode())
            found.append([name for name, problem in graded.verdicts.items() if not problem])
    return found


@pytest.mark.parametrize("name", PATHS)
def test_lies_earn_nothing(name: str) -> None:
    won = dict(
        zip(ANSWERS, gains(PATHS[name], *(LIAR.format(answer=answer) for answer in ANSWERS.values())), strict=True)
    )
    assert not {answer: cells for answer, cells in won.items() if cells}


@pytest.mark.parametrize("name", SNIFFED)
def test_fakes_do_not_tell(name: str) -> None:
    assert gains(PATHS[name], "", cell=SNIFFED[name]) == [[]]


def test_weights_are_not_read_back() -> None:
    assert gains(PATHS["13_compress"], NO_WEIGHTS) == [[]]
