"""Helpers for module 15: a simulation of a container's CPU limit, and fake machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any


def throttled(starts: Sequence[float], work: float, quota: float, period: float) -> list[float]:
    """Simulate the CPU limit of a control group, and return the end time of each call.

    The calls run one after the other, and each needs `work`. In each period, the calls may run for at most `quota` in
    total. At the start of each period, the quota is renewed. All times have the same, arbitrary unit.
    """
    done, now, left, last = [], 0.0, quota, 0
    for start in starts:
        now, rest = max(now, start), work
        while rest > 1e-9:
            if (number := math.floor(now / period + 1e-9)) > last:
                left, last = quota, number
            runs = min(rest, left, (last + 1) * period - now)
            now, rest, left = now + runs, rest - runs, left - runs
            if rest > 1e-9:
                now = (last + 1) * period
        done.append(now)
    return done


def made_up_machines(folder: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yield the name of each of three fake machines, the root folder of its files, and arguments for `read_facts`."""
    from tinybench.support.conditions.process_conditions import Here

    pace = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_{}"
    quiet, busy = "cpu  900 0 100 9000 0 0 0 {} 0 0\n", "cpu  910 0 100 9150 0 0 0 {} 0 0\n"
    machines: dict[str, tuple[dict[str, str], dict[str, str]]] = {
        "a container with half a core of four": (
            {
                "proc/self/cgroup": "0::/",
                "sys/fs/cgroup/cpu.max": "50000 100000",
                "sys/fs/cgroup/cpu.stat": "nr_periods 100\nnr_throttled 40",
                "proc/stat": quiet.format(0),
            },
            {"sys/fs/cgroup/cpu.stat": "nr_periods 105\nnr_throttled 44", "proc/stat": busy.format(0)},
        ),
        "a rented server with a neighbour": ({"proc/stat": quiet.format(7)}, {"proc/stat": busy.format(47)}),
        "a notebook on battery": (
            {
                "proc/stat": quiet.format(0),
                "sys/class/power_supply/BAT0/type": "Battery",
                "sys/class/power_supply/BAT0/status": "Discharging",
                "sys/class/power_supply/AC/type": "Mains",
                "sys/class/power_supply/AC/online": "0",
                **{pace.format(number, "governor"): "powersave" for number in range(4)},
                **{pace.format(number, "driver"): "acpi-cpufreq" for number in range(4)},
            },
            {"proc/stat": busy.format(0)},
        ),
    }
    for number, (name, (before, after)) in enumerate(machines.items()):
        root = folder / str(number)

        def write(files: Mapping[str, str], root: Path = root) -> None:
            for place, text in ({"sys/devices/system/cpu/online": "0-3"} | dict(files)).items():
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).write_text(text)

        def pause(_: float, files: Mapping[str, str] = after, write: Callable[..., None] = write) -> None:
            write(files)

        write(before)
        process = {"threads": 1, "spinning": [], "priority": "", "python": [], "clock_step": 1e-7, "superuser": False}
        clock = partial(next, iter((0.0, 0.5)))
        yield name, root, {"of": Here(cores=range(4), process=process, clock=clock, busy=float, pause=pause)}
