"""What a made-up machine is, and the files of a quiet server, from which all others differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from tinybench.support.conditions.library_kernels import Blas
from tinybench.support.conditions.process_conditions import Here

CPU, FREQUENCY = "sys/devices/system/cpu", "sys/devices/system/cpu/cpu{}/cpufreq/"
CLOCKS = "sys/devices/system/clocksource/clocksource0/"
GROUPS, SUPPLY = "sys/fs/cgroup/", "sys/class/power_supply/"
PROCESS: dict[str, Any] = {
    "threads": 1,
    "spinning": [],
    "priority": "",
    "python": [],
    "clock_step": 5e-8,
    "superuser": False,
    "blas": [Blas("numpy", "openblas 0.3.31", "Haswell", 1)],
    "settings": {},
    "limits": [],
}
Files = Mapping[str, str | None]


@dataclass(frozen=True)
class Machine:
    """A machine of so many cores: the files it adds to those of a quiet server (None takes one away), the files that
    change between two looks, what its process and its commands say, and the names of all warnings.
    """

    warns: set[str] = field(default_factory=set)
    cores: int = 4
    usable: tuple[int, ...] = ()
    files: Files = field(default_factory=dict)
    later: Files = field(default_factory=dict)
    process: Mapping[str, Any] = field(default_factory=dict)
    system: str = "Linux"
    release: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    busy: float = 0.01  # s that others kept a core busy between two looks, where there is no /proc/stat
    says: tuple[str, ...] = ()

    def built(self, root: Path) -> Here:
        """Write the files below a folder, and return what looks at the machine."""
        write(root, (quiet_server(self.cores) if self.system == "Linux" else {}) | dict(self.files))
        ticking, spent = chain((0.0,), repeat(0.5)), iter((0.0, self.busy))
        return Here(
            self.system,
            self.release,
            self.usable or tuple(range(self.cores)),
            {**PROCESS, **self.process},
            ask=lambda *command: self.answers.get(" ".join(command), ""),
            clock=lambda: next(ticking),
            pause=lambda _: write(root, self.later),
            busy=lambda: 0.0,
            spent=lambda: (took := next(spent), 0.5 * self.cores * (took > 0) - took),
        )


def write(root: Path, files: Files) -> None:
    """Write files below a folder, and take away those that are None."""
    for place, text in files.items():
        path = root / place
        if text is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")


def ticks(user: int, idle: int, steal: int = 0) -> str:
    """Return a ``/proc/stat``."""
    return f"cpu  {user} 0 {user // 10} {idle} 3 0 1 {steal} 0 0\ncpu0 1 2 3\nintr 12345"


def each(cores: int, place: str, text: str) -> dict[str, str]:
    """Return a file for each core."""
    return {place.format(core): text.format(core) for core in range(cores)}


def governed(cores: int, governor: str, driver: str, **more: str) -> dict[str, str]:
    """Return the files of a governor."""
    said = {"scaling_governor": governor, "scaling_driver": driver, **more}
    return {FREQUENCY.format(core) + name: text for core in range(cores) for name, text in said.items()}


def quiet_server(cores: int) -> dict[str, str]:
    """Return the files of a server that was made ready to measure on."""
    return {
        f"{CPU}/online": f"0-{cores - 1}",
        f"{CPU}/intel_pstate/no_turbo": "1",
        **governed(cores, "performance", "intel_pstate", energy_performance_preference="performance"),
        **each(cores, CPU + "/cpu{}/topology/thread_siblings_list", "{}"),
        **each(cores, CPU + "/cpu{}/thermal_throttle/core_throttle_count", "12"),
        "sys/devices/system/node/node0/cpulist": f"0-{cores - 1}",
        CLOCKS + "current_clocksource": "tsc",
        CLOCKS + "available_clocksource": "tsc hpet acpi_pm",
        SUPPLY + "AC/type": "Mains",
        SUPPLY + "AC/online": "1",
        "sys/class/thermal/cooling_device0/type": "Processor",
        "sys/class/thermal/cooling_device0/cur_state": "0",
        GROUPS + "cpu.stat": "usage_usec 5",
        "proc/self/cgroup": "0::/user.slice/session-1.scope",
        "proc/self/mountinfo": "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate",
        "proc/stat": ticks(1000, 90_000),
        "proc/loadavg": "0.02 0.01 0.00 1/200 1234",
        "proc/pressure/cpu": "some avg10=0.30 avg60=0.10 avg300=0.00 total=1",
        "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1",
        "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 2000000 kB\nSwapFree: 1500000 kB",
        "proc/vmstat": "pgfault 12\npswpin 100\npswpout 200",
        "proc/cpuinfo": "processor : 0\nmodel name : Some CPU\nflags : fpu tsc avx2",
        "proc/sys/kernel/osrelease": "6.8.0-45-generic",
    }
