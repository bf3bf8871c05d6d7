"""Honest students of any module: right, wrong and missing solutions, each written and handed in in a style of its own."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook import cells_of, without_solution_markers
from tests.attacks.notebooks import released, solved
from tests.mutants import Mutant, mutants

# what students write into cells of their own
OWN = [
    "print('so far so good')",
    "import sys\nprint('just looking', file=sys.stderr)",
    "import warnings\nwarnings.warn('a warning of a cell of my own')",
    "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2, 3])\nplt.show()",
    "%matplotlib inline",
    "%timeit -n 1 -r 1 sum(range(10))",
    "%%time\nsum(range(1000))",
    "%load_ext autoreload\n%autoreload 2",
    "!echo hello",
    "1 / 0",
    "not_defined_yet",
    "this is not Python",
    "for i in range(3):\n    print(i)\ni",
    "values, data, x, n, i = [1.0, 2.0], 3, 4, 5, 6",
    "mean, std, result, low, high = 1, 2, 3, 4, 5",
    "from IPython.display import Markdown, display\ndisplay(Markdown('**done**'))",
    "import numpy as np\nnp.random.seed(0)\nnp.random.rand(3)",
    "from tqdm import tqdm\nfor _ in tqdm(range(3)):\n    pass",
    "import os\nos.makedirs('figures', exist_ok=True)\nwith open('figures/notes.txt', 'w') as file:\n    file.write('x')",
    "import asyncio\nawait asyncio.sleep(0.01)",
    "help(sum)",
    "len?",
    "",
]
WRITTEN = [
    "It mixes up the standard deviation and a percentile; p95 < mean + s is a coincidence.",
    "I do not know.",
    "",
]


@dataclass
class Submission:
    """A generated submission: the notebook with released checks, and the seed of its hidden checks."""

    name: str
    notebook: NotebookNode
    seed: int
    demos_changed: bool = False

    def has_twins(self) -> bool:
        """Whether two cells carry the same nbgrader marks."""
        names = [cell.id for cell in cells_of(self.notebook) if cell.marks.get("grade_id")]
        return len(set(names)) < len(names)


def generate(path: Path, number: int, seed: int = 0) -> Iterator[Submission]:
    """Yield honest submissions of a module, the same for the same seed."""
    wrong = mutants(path.stem)
    for index in range(number):
        rng = random.Random(f"{path.stem} {seed} {index}")
        yield _student(path, rng, wrong, f"{path.stem[:2]}_student_{index:03}")


def _student(path: Path, rng: random.Random, mutants: list[Mutant], name: str) -> Submission:
    notebook, stubs = solved(path), {cell.id: cell.source for cell in released(path).cells}
    submission = Submission(name, notebook, rng.randrange(2**31))
    skill = rng.choice([1.0, 0.9, 0.8, 0.5])
    cells: list[NotebookNode] = []
    for index, read in enumerate(cells_of(notebook)):
        cell = read.node
        if read.is_solution:
            wrong = [each for each in mutants if each.cell == read.id] if rng.random() < 0.7 else []
            cells += _solution(cell, stubs[cell.id], wrong, skill, rng)
            continue
        if read.is_written:
            cell.source = rng.choice(WRITTEN)
        elif read.is_code and not read.marks and not read.is_export and rng.random() < 0.01:
            submission.demos_changed = True
            if rng.random() < 0.5:
                continue  # deleted
            cell.source += "\n# tried with other numbers too"
        cells.append(cell)
        if index > 1 and rng.random() < 0.08:
            cells.append(nbformat.v4.new_code_cell(rng.choice(OWN)))
        if rng.random() < 0.03:
            cells.append(nbformat.v4.new_markdown_cell("Note to self: **ask** about this."))
    notebook.cells = cells
    _save_as_jupyter_does(notebook, rng)
    return submission


def _solution(
    cell: NotebookNode, stub: str, wrong: list[Mutant], skill: float, rng: random.Random
) -> list[NotebookNode]:
    """Return what a student makes of a solution cell: right, wrong or nothing, in one cell or in several."""
    right, before = without_solution_markers(cell.source), list[NotebookNode]()
    if rng.random() < skill:
        cell.source, before = _in_their_style(right, rng)
    elif wrong:
        mutant = rng.choice(wrong)
        mistake = without_solution_markers(cell.source.replace(mutant.old, mutant.new))
        cell.source, before = _in_their_style(mistake, rng)
    else:
        cell.source = stub
    return [*before, *_arranged(cell, stub, rng)]


def _arranged(cell: NotebookNode, stub: str, rng: random.Random) -> list[NotebookNode]:
    """Return the cells in which a solution stands, mostly one; a copied or split cell keeps nbgrader's marks."""
    lot, parts = rng.random(), ast.parse(cell.source).body
    if lot < 0.003:
        return [_twin(cell, stub), cell]  # a first attempt
    if lot < 0.013 and len(parts) > 1:
        texts = [ast.unparse(part) for part in parts]
        cell.source = "\n\n\n".join(texts[1:])
        return [_twin(cell, texts[0]), cell]
    if lot > 0.99:
        return [nbformat.v4.new_code_cell(cell.source)]  # the cell is gone, its code stands in another
    return [cell]


def _twin(cell: NotebookNode, source: str) -> NotebookNode:
    return nbformat.v4.new_code_cell(source, metadata=copy.deepcopy(cell.metadata))


def _in_their_style(source: str, rng: random.Random) -> tuple[str, list[NotebookNode]]:
    """Return a right or wrong solution written differently, and cells that come before it."""
    tree, before = ast.parse(source), list[NotebookNode]()
    if rng.random() < 0.4:
        tree = _Renamed().visit(tree)
    if rng.random() < 0.15:
        _first_statement(tree, "print('called')")
    if rng.random() < 0.03:
        _first_statement(tree, "import warnings; warnings.warn('slow')")
    changed = ast.unparse(ast.fix_missing_locations(tree))
    if changed == ast.unparse(ast.parse(source)):
        changed = f"# my solution\n{source}\n"
    if rng.random() < 0.15 and (split := _helper(changed)):
        changed, helper = split
        before = [nbformat.v4.new_code_cell(helper)]
    return changed, before


class _Renamed(ast.NodeTransformer):
    """Gives a function's own variables other names."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        inside = list(ast.walk(node))
        taken = {
            a.arg for n in inside if isinstance(n, ast.arguments) for a in [*n.posonlyargs, *n.args, *n.kwonlyargs]
        }
        taken |= {a.arg for n in inside if isinstance(n, ast.arguments) for a in (n.vararg, n.kwarg) if a}
        taken |= {name for n in inside if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
        taken |= {n.name for n in inside if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - taken
        for name in inside:
            if isinstance(name, ast.Name) and name.id in own:
                name.id = f"my_{name.id}"
        return node


def _first_statement(tree: ast.Module, code: str) -> None:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            after = 1 if ast.get_docstring(node) else 0
            node.body[after:after] = ast.parse(code).body


def _helper(source: str) -> tuple[str, str] | None:
    """Return a function that calls a helper, and the helper, where a cell is one plain function."""
    [*others, function] = ast.parse(source).body
    if others or not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    args = function.args
    words = [a.arg for a in [*args.posonlyargs, *args.args]]
    words += [f"*{args.vararg.arg}"] if args.vararg else []
    words += [f"{a.arg}={a.arg}" for a in args.kwonlyargs]
    words += [f"**{args.kwarg.arg}"] if args.kwarg else []
    call = f"return helper_of_{function.name}({', '.join(words)})"
    outer = copy.deepcopy(function)
    outer.body = ast.parse(call).body
    function.name = f"helper_of_{function.name}"
    return ast.unparse(outer), ast.unparse(function)


def _save_as_jupyter_does(notebook: NotebookNode, rng: random.Random) -> None:
    notebook.metadata["kernelspec"] = {"display_name": "base", "language": "python", "name": "python3"}
    notebook.metadata["toc"] = {"base_numbering": 1}
    for count, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code" and rng.random() < 0.8:
            cell.execution_count = count
            cell.outputs = [nbformat.v4.new_output("stream", name=rng.choice(["stdout", "stderr"]), text="as it was\n")]
        if rng.random() < 0.1:
            cell.metadata["scrolled"] = True
