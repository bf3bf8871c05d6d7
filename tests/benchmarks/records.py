"""The records of a benchmark's runs, kept as JSON lines while the runs go on.

A line with a command begins a run. The lines of its records follow, each with its part, condition, round, case and
`found`. The machine stands in the line that begins a part. The last line says that the run ended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Run:
    """One run: its command, what ran beside it, the machine when each part began, and its records."""

    command: str
    note: str = ""
    machines: dict[str, str] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False
    file: Path | None = None

    def keep(self, record: dict[str, Any]) -> None:
        """Append a record to the run and to its file."""
        self._write(record)
        self.records.append(json.loads(json.dumps(record)))

    def keep_machine(self, part: str, machine: str) -> None:
        """Note the machine that a part begins on. A run that goes on keeps its first one."""
        if part not in self.machines:
            self.machines[part] = machine
            self._write({"begins": part, "machine": machine})

    def end(self) -> None:
        """Note that the run has all its records."""
        self.ended = True
        self._write({"ended": True})

    def _write(self, line: dict[str, Any]) -> None:
        if self.file:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """Return the run as lines of a file."""
        begun = [{"begins": part, "machine": machine} for part, machine in self.machines.items()]
        ended = [{"ended": True}] if self.ended else []
        return [{"command": self.command, "note": self.note}, *begun, *self.records, *ended]


def read(file: Path) -> list[Run]:
    """Return the runs that a file holds."""
    runs: list[Run] = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        line = json.loads(text)
        if "command" in line:
            runs.append(Run(**line))
        elif "begins" in line:
            runs[-1].machines[line["begins"]] = line["machine"]
        elif "part" in line:
            runs[-1].records.append(line)
        else:
            runs[-1].ended = True
    return runs


def begin(file: Path, new: Run, parts: Sequence[str], add: bool) -> Run:
    """Return the last run if it was interrupted and has the same command, or else a new one in the file.

    Unless the new run is to be added, earlier runs lose their records of its parts.
    """
    runs = read(file)
    goes_on = runs and not runs[-1].ended and runs[-1].command == new.command
    run = runs.pop() if goes_on else new
    for each in runs if not (add or goes_on) else []:
        each.machines = {part: machine for part, machine in each.machines.items() if part not in parts}
        each.records = [record for record in each.records if record["part"] not in parts]
    runs = [each for each in runs if each.records]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for each in [*runs, run] for line in each.lines())
    file.write_text(text, encoding="utf-8")
    run.file = file
    return run
