"""Every attack by stock nbgrader and by `autograder grade`, as a table: ``python -m tests.attacks.notebooks.versus_stock``.

Stock nbgrader runs in an outer sandbox (`stock.py`): in small batches, each with an honest student's work at the end, so
that it is seen whether the batch went on, and one by one where it did not. `autograder grade` gets all attacks and the
honest student in one batch, as a course would. Everything is handed in through the exchange, and comes by `nbgrader collect`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook import cells_of, read_notebook
from autograder.course.release import release_all
from autograder.sandbox.bubblewrap import Limits
from tests.attacks.notebooks import ROOT, SOURCE, Attack, cell_of, solved
from tests.attacks.notebooks.evidence import leaks
from tests.attacks.notebooks.folder import ATTACKS as FOLDER
from tests.attacks.notebooks.inside import ATTACKS as INSIDE
from tests.attacks.notebooks.outside import ATTACKS as OUTSIDE
from tests.attacks.notebooks.stock import autograde_locked_up, copy_course, nbgrader, stock_course
from tests.attacks.page import write_part
from tinybench.support.basics.table import Table

NAME = SOURCE.stem
HONEST = "zoe"  # last in the order of nbgrader
GROUPS = {"By code in a cell": INSIDE, "By the file": OUTSIDE, "By the folder": FOLDER}
BATCH, PATIENCE = 12, 80.0
# by stock nbgrader these would spoil a batch, which would then have to run again
ALONE = {
    "own_extra_credit", "rival_overwritten", "write_gradebook", "system_exit", "os_exit", "os_exit_in_a_function",
    "kill_the_kernel", "kill_the_parent", "kill_everything", "thread_outlives", "daemon_outlives", "infinite_loop",
    "infinite_loop_in_a_function", "interrupt_ignored", "memory_bomb", "fork_bomb", "disk_filling", "file_descriptors",
    "endless_printing", "fifty_megabytes_in_a_line", "endless_generator", "enormous_answer", "cyclic_answer",
    "named_pipe", "folder_is_a_link", "three_hundred_megabytes", "deep_nesting", "a_hundred_thousand_cells",
    "no_cells", "atexit", "replies_from_a_thread",
}  # fmt: skip
UNTOUCHED = Attack("untouched", "Nothing: the released notebook, for comparison")


@dataclass(frozen=True)
class Row:
    """One attack by one grader."""

    points: float
    leaked: Sequence[str]
    trouble: str
    told: str
    seconds: float


class Secrets:
    """What nobody's code may see: marks in the environment, in a file, in the notebook and in another's work."""

    def __init__(self) -> None:
        places = ("the environment", "a file of the host", "the instructor's notebook", "another's work")
        self.canaries = {secrets.token_hex(12): place for place in places}
        self.environment, self.file, self.notebook, self.other = self.canaries


def instructors(marks: Secrets) -> NotebookNode:
    """Return the instructor's notebook with a secret mark."""
    notebook = read_notebook(SOURCE)
    notebook.cells[0].source += f"\n\n<!-- {marks.notebook} -->"
    return notebook


def honest(marks: Secrets) -> bytes:
    """Return the honest student's work, without the demonstrations, which take time."""
    notebook = solved(SOURCE)
    notebook.cells = [cell.node for cell in cells_of(notebook) if cell.marks]
    work = cell_of(notebook, "check_values")
    work.source = f"# {marks.other}\n{work.source}"
    return nbformat.writes(notebook).encode()


def by_stock(attacks: Sequence[Attack], marks: Secrets) -> dict[str, Row]:
    """Run the attacks by `nbgrader autograde`, locked up: in batches, and one by one where a batch came to harm."""
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "secret").write_text(marks.file)
        stock_course(folder / "template", [(NAME, instructors(marks))])
        hand_in_honest(folder / "template" / "submitted", marks)
        peaceful = [attack for attack in attacks if attack.name not in ALONE]
        waiting = [peaceful[i : i + BATCH] for i in range(0, len(peaceful), BATCH)]
        waiting += [[attack] for attack in attacks if attack.name in ALONE]
        while waiting:
            batch = waiting.pop(0)
            found = _batch_by_stock(batch, folder, marks)
            if len(batch) > 1 and any(row.trouble for row in found.values()):
                waiting += [[attack] for attack in batch]
                continue
            rows |= found
            for name, row in found.items():
                print(f"[{len(rows)}/{len(attacks)}] {name}: {row}", flush=True)
    return rows


def _batch_by_stock(batch: Sequence[Attack], folder: Path, marks: Secrets) -> dict[str, Row]:
    course = copy_course(folder / "template", folder / "course")
    source = course / "source" / NAME / SOURCE.name
    refused = hand_in(batch, course, course / "exchange" / "stock", source, demonstrations=False)
    shown = {f"/tmp/gradebook-{marks.file[:4]}.db": folder / "secret"}
    patience = PATIENCE + PATIENCE / 4 * len(batch)
    started = time.monotonic()
    run = autograde_locked_up(course, NAME, shown, marks.environment, patience)
    seconds = (time.monotonic() - started) / len(batch)
    shutil.rmtree(course)
    trouble = [found for found in (refused, run.ending) if found]
    if run.gradebook and run.score(HONEST, NAME) == 0:
        trouble.append("the next student got nothing")
    if run.left:
        trouble.append(f"{run.left} processes stayed")
    rows = {}
    for attack in batch:
        text = run.notebooks.get(attack.name, "")
        found = leaks(nbformat.reads(text, 4), marks.canaries) if text else []
        rows[attack.name] = Row(run.score(attack.name, NAME), found, ", ".join(trouble), "", seconds)
    return rows


def hand_in(
    attacks: Sequence[Attack], course: Path, exchange: Path, source: Path, *, demonstrations: bool = True
) -> str:
    """Hand attacks in through a course's exchange and collect them; return what went wrong with that."""
    for attack in attacks:
        folder = exchange / "inbound" / f"{attack.name}+{NAME}+2026-09-30 17:20:00 UTC+{secrets.token_hex(4)}"
        attack.hand_in(folder, source, demonstrations=demonstrations)
    # one user of the system plays all students
    options = [f"--Exchange.root={exchange.parent}", "--ExchangeCollect.check_owner=False"]
    done = nbgrader(course, "collect", NAME, *options, check=False)
    return "" if done.returncode == 0 else f"collecting ended: {done.stderr.strip().splitlines()[-1].partition(':')[0]}"


def hand_in_honest(submitted: Path, marks: Secrets) -> None:
    """Hand the honest student's work in."""
    folder = submitted / HONEST / NAME
    folder.mkdir(parents=True)
    (folder / SOURCE.name).write_bytes(honest(marks))


def by_autograder(attacks: Sequence[Attack], marks: Secrets) -> dict[str, Row]:
    """Run all attacks, and the honest student's work, by one `autograder grade`."""
    secret = Path(tempfile.gettempdir()) / f"gradebook-{marks.file[:4]}.db"
    with tempfile.TemporaryDirectory() as place:
        root, module = Path(place), Path(place) / "modules" / NAME
        module.mkdir(parents=True)
        nbformat.write(instructors(marks), module / SOURCE.name)
        shutil.copytree(ROOT / "tinybench", root / "tinybench", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "nbgrader_config.py", root)
        release_all(root, [NAME], verify=False)
        submitted = root / "course" / "submitted"
        hand_in_honest(submitted, marks)
        refused = hand_in(attacks, root, root / "course" / "exchange" / "tinybench", module / SOURCE.name)
        secret.write_text(marks.file)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "autograder", "--root", str(root), "grade", NAME, "--json"],
                env=os.environ | {"TINYBENCH_CANARY": marks.environment}, stdout=subprocess.PIPE, check=False,
            )  # fmt: skip
        finally:
            secret.unlink()
        rows = {}
        for outcome in json.loads(done.stdout):
            executed = root / "course" / "autograded" / outcome["student"] / NAME / SOURCE.name
            found = leaks(nbformat.read(executed, as_version=4), marks.canaries)
            rows[outcome["student"]] = _row(outcome, found, refused)
    return rows


def _row(outcome: dict[str, Any], found: Sequence[str], refused: str) -> Row:
    told = (outcome["evidence"][0] if outcome["evidence"] else outcome["note"]).removeprefix(": ")
    late = outcome["score"] is None or outcome["seconds"] > Limits().wall_seconds
    trouble = refused or ("no verdict in time" if late else "")
    return Row(outcome["score"] or 0, found, trouble, told, outcome["seconds"])


def table(stock: dict[str, Row], ours: dict[str, Row], most: float) -> str:
    """Return the page's part that this command writes."""
    attacks = [attack for group in GROUPS.values() for attack in group]
    slowest = max(ours[attack.name].seconds for attack in attacks)
    counted: dict[str, Callable[[Row], bool]] = {
        "gain marks": lambda row: row.points > 0,
        "gain all marks or more": lambda row: row.points >= most,
        "read or write what they must not, or run script in the instructor's browser": lambda row: bool(row.leaked),
        "stall the batch, end it, or spoil the next student's work": lambda row: bool(row.trouble),
    }
    counts = Table(
        {
            "how many": what,
            "stock nbgrader": str(sum(test(stock[attack.name]) for attack in attacks)),
            "`autograder grade`": str(sum(test(ours[attack.name]) for attack in attacks)),
        }
        for what, test in counted.items()
    )
    parts = [
        f"{len(attacks)} attacks on module {NAME}, where the machine gives {most:g} points.",
        counts.markdown(),
        f"For comparison: the same notebook untouched gets {stock[UNTOUCHED.name].points:g} by stock and "
        f"{ours[UNTOUCHED.name].points:g} here; the honest student of the batch gets {ours[HONEST].points:g}. The slowest "
        f"attack took {slowest:.0f} s here; a submission may take {Limits().wall_seconds:g} s.",
    ]
    for group, members in GROUPS.items():
        rows = [(attack, stock[attack.name], ours[attack.name]) for attack in members]
        shown = Table(
            {
                "attack": attack.name.replace("_", " "), "what it tries": attack.tries,
                "stock: marks": _marks(theirs), "stock: leaked, stalled": _cell([*theirs.leaked, theirs.trouble]),
                "ours: marks": _marks(own), "ours: the instructor is told": _cell([*own.leaked, own.trouble, own.told]),
                "ours: s": f"{own.seconds:.1f}",
            }
            for attack, theirs, own in rows
        )  # fmt: skip
        parts += [f"### {group}", shown.markdown()]
    return "\n\n".join(parts)


def _marks(row: Row) -> str:
    return f"**{row.points:g}**" if row.points else "0"


def _cell(parts: Sequence[str]) -> str:
    text = ", ".join(part for part in parts if part).replace("\n", " ")
    return text if len(text) <= 160 else f"{text[:160]}…"


def main() -> None:
    """Run all, or some, and write the table if it was all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("only", nargs="*", help="names of attacks; all otherwise, and the page is written")
    parser.add_argument("--skip-stock", action="store_true", help="only this grader")
    options = parser.parse_args()
    chosen = [a for group in GROUPS.values() for a in group if a.name in options.only or not options.only]
    marks = Secrets()
    chosen.append(UNTOUCHED)
    ours = by_autograder(chosen, marks)
    for name, row in ours.items():
        print(f"{name}: {row}", flush=True)
    if options.skip_stock:
        return
    stock = by_stock(chosen, marks)
    if not options.only:
        most = sum(cell.marks.get("points", 0) for cell in cells_of(read_notebook(SOURCE)) if cell.is_code)
        write_part("versus_stock", table(stock, ours, most))


if __name__ == "__main__":
    main()
