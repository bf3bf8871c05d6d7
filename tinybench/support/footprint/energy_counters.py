"""The energy counters of processor packages, as the kernel shows them on Intel and AMD processors (RAPL)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

POWERCAP = "/sys/class/powercap"
MOST_WATTS = 1000.0  # more than any processor package draws; the largest of 2026 are built for 500 W


def package_domains(root: str | Path = POWERCAP, dram: bool = False) -> list[Path]:
    """Return the folders of the processor packages' energy counters below `root`, each package once, ordered by number.

    With `dram`, each package is followed by its ``dram`` domains. Their energy is not included in that of the package.
    Raises FileNotFoundError if there is no package. The message names `root` and the likely reasons: not Linux, a
    virtual machine, a processor without RAPL, a kernel module not loaded. Linux kernel documentation, "Power Capping
    Framework".
    """
    zones = [zone for zone in Path(root).glob("intel-rapl:*") if re.fullmatch(r"intel-rapl:\d+", zone.name)]
    found = []
    for zone in sorted(zones, key=lambda zone: int(zone.name.partition(":")[2])):
        if (zone / "name").read_text(encoding="ascii").startswith("package"):
            found.append(zone)
            parts = sorted(Path(root).glob(f"{zone.name}:*")) if dram else []
            found += [part for part in parts if (part / "name").read_text().strip() == "dram"]
    if not found:
        raise FileNotFoundError(
            f"no RAPL package below {root}: not Linux, a virtual machine or container, a processor without RAPL, "
            "or the kernel module intel_rapl_msr is not loaded"
        )
    return found


def read_counter(path: Path) -> int:
    """Return the whole number in a sysfs file, such as a count of microjoules, with ``path.read_text()``.

    Raises PermissionError if only root may read the file. The message names the file, the reason and the remedy. Raises
    OSError if the file contains anything but digits; the message names the file.
    """
    try:
        text = path.read_text(encoding="ascii").strip()
    except PermissionError:
        raise PermissionError(
            f"{path} is for root only, because energy readings can leak keys (CVE-2020-8694): on a machine of "
            f"your own `sudo chmod a+r {path}` opens it until the next boot; else use CpuTimeMeter"
        ) from None
    if not text.isdecimal():
        raise OSError(f"{path} holds {text!r}, which is no count; use CpuTimeMeter")
    return int(text)


class RaplCounters:
    """The energy counters of all processor packages below `root`, which `RaplMeter` adds up.

    With `dram`, the counters of the main memory are included, which some processors count separately. ``details`` names
    the domains. No reading may last longer than ``longest_reading`` seconds, or show more than ``most_watts``; see
    `check_reading`. Raises FileNotFoundError if there is no package, PermissionError if only root may read the
    counters, and OSError if the range of a counter is unknown.
    """

    unit = "J"
    measured = True

    def __init__(self, root: str | Path = POWERCAP, dram: bool = False) -> None:
        self.domains = package_domains(root, dram)
        self.details: dict[str, Any] = {
            "meter": "RAPL",
            "domains": [(zone / "name").read_text(encoding="ascii").strip() for zone in self.domains],
        }
        self._largest = [self._range(zone / "max_energy_range_uj") for zone in self.domains]
        self._root, self._zones = root, self._found(root)
        self.most_watts = MOST_WATTS * len(self.domains)
        # a counter that goes back a little looks like a wrap, and within this time exceeds `most_watts`
        self.longest_reading = min(self._largest) / 1e6 / self.most_watts
        self._last = self.counters()
        self._microjoules = 0

    @staticmethod
    def _range(path: Path) -> int:
        largest = read_counter(path)
        if not largest:
            raise OSError(f"{path} holds 0: without its range, a counter that starts again cannot be followed")
        return largest

    @staticmethod
    def _found(root: str | Path) -> list[str]:
        return sorted(name for name in os.listdir(root) if "-rapl:" in name)

    def counters(self) -> list[int]:
        """Return the count of each domain, in µJ. Raise RuntimeError if domains have appeared or disappeared."""
        found = self._found(self._root)
        if found != self._zones:
            changed = ", ".join(sorted({*found} ^ {*self._zones}))
            raise RuntimeError(f"{changed} came or went below {self._root} while energy was read; make a new meter")
        return [read_counter(zone / "energy_uj") for zone in self.domains]
