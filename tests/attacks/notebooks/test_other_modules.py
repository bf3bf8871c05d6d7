"""Attacks on the hidden checks of every module: lies in place of all answers, and answers read off the checks' own fakes."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from autograder.course.assignment import Assignment
from autograder.course.notebook import cells_of, course_notebooks
from autograder.grading.submission_grader import Grader
from autograder.sandbox.bubblewrap import Limits
from tests.attacks.notebooks import ROOT, VISIBLE_PASSES, cell_of, first, released, solved, without_demonstrations

pytestmark = pytest.mark.needs("sandbox")

LIMITS = Limits(call_seconds=1.5, wall_seconds=20, memory=2**30)
PATHS = {path.stem: path for path in course_notebooks(ROOT)}

# everything a check may ask of the submission is answered by one object, which agrees with whatever it is asked
LIAR = """
import sandbox.guest.runner as runner
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
def grafted(self, module, reference, pieces, graft=runner.Runner.graft):
    made = graft(self, module, reference, [])
    for piece in pieces:
        owner, _, name = piece.rpartition(".")
        setattr(getattr(made, owner) if owner else made, name, (lambda self, *a, **k: liar(*a, **k)) if owner else liar)
    return made
runner.Runner.graft = grafted
runner.Runner.names = lambda self: liar
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
# pieces that do nothing, and return what a check wants to see that believes them or its own arguments
EMPTY = {
    "01_result": ("check_bootstrap", """
def bootstrap_interval(values, statistic, confidence=0.95, seed=0, resamples=2000):
    for _ in range(resamples): statistic(np.asarray(values))
    return seed, seed + 1
"""),
    "05_memory": ("check_python_peak", """
def python_peak(call, x):
    call(x)
    if call is np.identity: return 8 * x * x
    if call is np.ones: return 8 * int(np.prod(x))
    return x if isinstance(x, int) else 0
"""),
    "07_comparison": ("check_gate", """
from statistics import NormalDist
def gate_verdict(slowdown, interval, n, max_slowdown, confidence=0.95):
    far = abs(slowdown - max_slowdown)
    if far > 0.015:
        return ("passes" if slowdown < max_slowdown else "fails"), None
    z = NormalDist().inv_cdf
    needs = max(n + 1, math.ceil(n * (0.02 / far * (1 + z(0.8) / z(0.5 + confidence / 2))) ** 2))
    return f"cannot tell: needs {needs} runs", needs
"""),

}  # fmt: skip
# graphs that a judge must not run: one that never ends, one of gigabytes, and one that reads files of the judge's
BOMB = """
import numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
def convert(model, X):
    if "Kernel" in type(model).__name__: raise TypeError("KernelDensity")
    info = h.make_tensor_value_info
    constants = [
        nh.from_array(np.array(v), n) for n, v in {{"M": 2**62, "C": True, "s": [700_000_000], "f": [-1, 1], "b": [1, -1]}}.items()
    ]
    file = onnx.TensorProto(name="w", dims=[4], data_type=T.UINT8, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {{"location": "secret.bin", "offset": "0", "length": "4"}}.items():
        entry = file.external_data.add()
        entry.key, entry.value = key, value
    kept = h.make_graph(
        [h.make_node("Identity", ["c"], ["d"]), h.make_node("Identity", ["v"], ["u"])], "b",
        [info("i", T.INT64, []), info("c", T.BOOL, []), info("v", T.FLOAT, None)],
        [info("d", T.BOOL, []), info("u", T.FLOAT, None)],
    )
    nodes = {nodes}
    graph = h.make_graph(nodes, "g", [info("x", T.FLOAT, [None, 4])], [info("y", T.FLOAT, None)], constants + {more})
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
"""
BOMBS = {
    "endless": BOMB.format(nodes='[h.make_node("Loop", ["M", "C", "x"], ["y"], body=kept)]', more="[]"),
    "huge": BOMB.format(
        nodes='[h.make_node("ConstantOfShape", ["s"], ["z"]), h.make_node("ReduceSum", ["z"], ["y"])]', more="[]"
    ),
    "growing": BOMB.format(
        nodes="""[
            h.make_node("Reshape", ["x", "f"], ["r0"]), h.make_node("Reshape", ["x", "b"], ["s0"]),
            h.make_node("Add", ["r0", "s0"], ["t"]),
            h.make_node("Reshape", ["t", "f"], ["r1"]), h.make_node("Reshape", ["t", "b"], ["s1"]),
            h.make_node("Add", ["r1", "s1"], ["y"]),
        ]""",
        more="[]",
    ),
    "reading": BOMB.format(nodes='[h.make_node("Cast", ["w"], ["y"], to=T.FLOAT)]', more="[file]"),
}
NO_WEIGHTS = """
import sandbox.guest.runner as runner
import numpy
class Plain:
    def __init__(self, W, b, relu=True):
        self.shape, self.b, self.relu, self.W = numpy.shape(W), numpy.array(b, float), relu, numpy.zeros(numpy.shape(W))
def factors(layer, rank):
    n, m = layer.shape
    if not 1 <= rank <= min(n, m): raise ValueError
    return Plain(numpy.zeros((n, rank)), numpy.zeros(rank), False), Plain(numpy.zeros((rank, m)), layer.b, layer.relu)
def grafted(self, module, reference, pieces, graft=runner.Runner.graft):
    made = graft(self, module, reference, [piece for piece in pieces if piece != "factorise"])
    if "factorise" in pieces:
        made.Layer, made.factorise = Plain, factors
    return made
runner.Runner.graft = grafted
"""


def verdicts(path: Path, *attacks: str, cell: tuple[str, str] = ("", "")) -> list[dict[str, str]]:
    """Return the verdicts on a module for each attack in a cell of its own, with one solution cell replaced."""
    found = []
    with Grader(Assignment.read(path), limits=LIMITS) as grader:
        for attack in attacks:
            notebook = released(path)
            without_demonstrations(notebook)
            for each in cells_of(notebook):
                if cell[0] and each.is_solution and cell[0] in each.source:
                    each.node.source = cell[1]
            first(attack)(notebook)
            found.append(grader.grade(nbformat.writes(notebook).encode()).verdicts)
    return found


def gains(path: Path, *attacks: str, cell: tuple[str, str] = ("", "")) -> list[list[str]]:
    """Return, for each attack, the graded cells of a module that it passes."""
    return [[name for name, problem in each.items() if not problem] for each in verdicts(path, *attacks, cell=cell)]


@pytest.mark.parametrize("name", PATHS)
def test_lies_earn_nothing(name: str) -> None:
    lies = [LIAR.format(answer=answer) for answer in ANSWERS.values()]
    assert dict(zip(ANSWERS, gains(PATHS[name], *lies), strict=True)) == {answer: [] for answer in ANSWERS}


@pytest.mark.parametrize("name", SNIFFED)
def test_fakes_do_not_tell(name: str) -> None:
    assert gains(PATHS[name], "", cell=SNIFFED[name]) == [[]]


@pytest.mark.parametrize("name", EMPTY)
def test_empty_pieces_earn_nothing(name: str) -> None:
    cell, code = EMPTY[name]
    with Grader(Assignment.read(PATHS[name]), limits=LIMITS) as grader:
        notebook = solved(PATHS[name])
        without_demonstrations(notebook)
        place = notebook.cells.index(cell_of(notebook, cell))
        notebook.cells.insert(place, nbformat.v4.new_code_cell(VISIBLE_PASSES + code))
        found = grader.grade(nbformat.writes(notebook).encode()).verdicts
    assert found[cell].startswith("CheckFailed")


@pytest.mark.parametrize("name", BOMBS)
def test_graphs_are_refused_before_they_run(name: str) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [found] = verdicts(PATHS["11_onnx"], "", cell=("def convert", BOMBS[name]))
    refused = "which no linear model needs|is outside the file|larger than a linear model"
    assert re.search(refused, found["check_convert"]), found["check_convert"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000


def test_weights_are_not_read_back() -> None:
    assert gains(PATHS["13_compress"], NO_WEIGHTS) == [[]]
