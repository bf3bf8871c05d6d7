"""Facts about a machine and this process: the cores, limits on their use, and disturbances such as other load."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tinybench.support.conditions.control_groups import tightest_quota, times_stopped
from tinybench.support.conditions.library_kernels import listed_flags
from tinybench.support.conditions.process_conditions import Here, facts_by_asking, here
from tinybench.support.conditions.system_files import read_text

CPU = "sys/devices/system/cpu"
SUPPLIES = "sys/class/power_supply"
CONTAINERS = {"docker": "docker", "kubepods": "kubernetes", "libpod": "podman", "lxc": "lxc", "machine.slice": "nspawn"}
# drivers whose own governor powersave follows the load; see docs.kernel.org, admin-guide/pm/intel_pstate
AUTONOMOUS = {"intel_pstate", "amd-pstate-epp"}
WINDOW = 0.5  # s between two readings of the counters if there is no earlier reading
SHORTEST = 0.2  # s; readings closer together are useless because the kernel counts in ticks of 10 ms


def number(text: str) -> float | None:
    """Return the number in a text from the kernel, or None if the text is not a number."""
    return float(text) if re.fullmatch(r"-?\d{1,20}(\.\d{1,9})?", text) else None


def numbers(text: str) -> list[int]:
    """Return the core numbers in a list such as ``0-3,8``. For any other text, return an empty list."""
    found: list[int] = []
    for part in text.split(",") if re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text) else []:
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def fields(text: str) -> dict[str, float]:
    """Return the numbers by name from a text with lines such as ``name 12`` or ``name: 12 kB``."""
    words = (line.replace(":", " ").split() for line in text.splitlines())
    return {row[0]: value for row in words if len(row) > 1 and (value := number(row[1])) is not None}


def waiting(text: str) -> float | None:
    """Return the fraction of the last 10 s in which some task waited, from the text of a file in ``/proc/pressure``."""
    found = re.search(r"^some avg10=(\d{1,3}\.\d+)", text)
    return float(found[1]) / 100 if found else None


def look(root: Path | str = "/", of: Here | None = None) -> dict[str, Any]:
    """Read counters that only grow, such as CPU time. The difference of two readings shows the activity in between."""
    root, of = Path(root), of or here()
    stat = re.match(r"cpu +\d+( +\d+){7,}$", read_text(root / "proc/stat").partition("\n")[0])
    pages = fields(read_text(root / "proc/vmstat"))
    hot = [number(read_text(path)) for path in (root / CPU).glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    return {
        "stat": stat[0] if stat else None,
        "stopped": times_stopped(root),
        "swapped": pages["pswpin"] + pages["pswpout"] if {"pswpin", "pswpout"} <= pages.keys() else None,
        "hot": sum(count or 0 for count in hot) if hot else None,
        "seconds": of.clock(),
        "own": of.busy(),
        "spent": None if of.system == "Linux" else of.spent(),
    }


def read_facts(root: Path | str = "/", before: dict[str, Any] | None = None, of: Here | None = None) -> dict[str, Any]:
    """Return the facts about a machine and this process by name. An unknown fact is None.

    Parameters
    ----------
    root
        The folder that contains Linux's ``proc`` and ``sys``. A missing, unreadable or malformed file makes its facts
        unknown.
    before
        An earlier result of `look`. If it is None, `look` is called twice, half a second apart.
    of
        The sources of facts that are not in files of the kernel; see `Here`.

    Returns
    -------
    dict
        The facts by name. Examples: ``cores`` is the number of cores that this process may use, out of
        ``cores_online``. ``cpu_max`` is the tightest CPU time limit of its control groups, in the format of the file
        ``cpu.max``. ``stat`` holds the first line of ``/proc/stat`` at each of the two readings. ``load`` is the
        fraction of all cores that other processes kept busy between the readings.
    """
    root, of = Path(root), of or here()
    if before is None:
        before = look(root, of)
        of.pause(WINDOW)
    now = look(root, of)
    online = numbers(read_text(root / CPU / "online"))
    usable = sorted(set(of.cores or online)) or [0]
    found = {
        "system": of.system,
        "cores": len(usable),
        "cores_online": len(online) or len(usable),
        **of.process,
        **_kinds_of_cores(root, usable),
        **_pace(root, usable),
        **_grown(before, now),
        "flags": listed_flags(root) or of.process.get("flags", set()),
        "cpu_max": tightest_quota(root),
        "battery": _on_battery(root),
        "waited": waiting(read_text(root / "proc/pressure/cpu")),
        "memory_waited": waiting(read_text(root / "proc/pressure/memory")),
        "memory_left": _memory_left(root),
        "clock_source": read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource") or None,
        "clock_sources": read_text(root / "sys/devices/system/clocksource/clocksource0/available_clocksource").split(),
        "wsl": "microsoft" in (read_text(root / "proc/sys/kernel/osrelease") or of.release).lower(),
        "container": _container(root),
        "hypervisor": _hypervisor(root),
    }
    return found if of.system == "Linux" else found | facts_by_asking(of)


def _grown(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that follow from the difference of two readings of `look`."""
    seconds = max(now["seconds"] - before["seconds"], 1e-3)

    def grew(name: str) -> float | None:
        return None if before[name] is None or now[name] is None else max(0.0, now[name] - before[name])

    stat = before["stat"] and now["stat"] and seconds >= SHORTEST and (before["stat"], now["stat"])
    load = _others(*stat, now["own"] - before["own"]) if stat else None
    if before["spent"] and now["spent"] and seconds >= SHORTEST:
        busy, idle = (b - a for a, b in zip(before["spent"], now["spent"], strict=True))
        load = max(0.0, busy - now["own"] + before["own"]) / (busy + idle) if busy + idle > 0 else None
    swapped, periods = grew("swapped"), None
    if before["stopped"] is not None and now["stopped"] is not None:
        of_all, stopped = (max(0, b - a) for a, b in zip(before["stopped"], now["stopped"], strict=True))
        periods = min(1.0, stopped / of_all) if of_all else 0.0
    return {
        "stat": stat or None,
        "load": load,
        "stopped": periods,
        "swapped": None if swapped is None else swapped / seconds,
        "hot": grew("hot"),
    }


def _others(before: str, now: str, own: float) -> float | None:
    """Return the fraction of all cores used by other processes, from two ``/proc/stat`` lines and our own CPU time."""
    spent = [int(b) - int(a) for a, b in zip(before.split()[1:9], now.split()[1:9], strict=True)]
    total, idle = sum(spent), spent[3] + spent[4] + spent[7]  # other virtual machines used the stolen time
    if total <= 0 or min(spent) < 0:
        return None
    return max(0.0, (total - idle) / total - own / (total / 100))  # /proc/stat counts in units of 10 ms


def _kinds_of_cores(root: Path, usable: Sequence[int]) -> dict[str, Any]:
    """Return facts about the usable cores: SMT siblings beyond one per physical core, kinds of core, NUMA nodes."""
    cores = set(usable)
    pairs = _of_cores(root, usable, "topology/thread_siblings_list").values()
    known = [group for text in pairs if (group := numbers(text))]
    firsts = sorted({min(cores & set(group)) for group in known if cores & set(group)})
    parts = {name: numbers(read_text(root / f"sys/devices/cpu_{name}/cpus")) for name in ("atom", "core")}
    if not all(parts.values()):
        capacity = _of_cores(root, usable, "cpu_capacity")
        ranks = sorted({rank for text in capacity.values() if (rank := number(text)) is not None})
        parts = {f"{rank}": [core for core, text in capacity.items() if number(text) == rank] for rank in ranks}
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = {folder.name[4:]: numbers(read_text(folder / "cpulist")) for folder in folders}
    nodes = {name: sorted(cores & set(own)) for name, own in nodes.items() if cores & set(own)}
    kinds = [sorted(cores & set(part)) for part in parts.values() if cores & set(part)]  # the slowest first
    return {
        "siblings": len(cores) - len(firsts) if len(known) == len(cores) else None,
        "one_each": firsts,
        "kinds": kinds or ([sorted(cores)] if known else None),
        "nodes": nodes or None,
    }


def _of_cores(root: Path, usable: Sequence[int], name: str) -> dict[int, str]:
    """Read one sysfs file for every core. If the first core lacks this file, return {} without trying other cores."""
    if not (root / CPU / f"cpu{usable[0]}" / name).exists():
        return {}
    return {core: read_text(root / CPU / f"cpu{core}" / name) for core in usable}


def _pace(root: Path, usable: Sequence[int]) -> dict[str, Any]:
    """Return the facts that determine the clock rate: governor, driver, preference, turbo and throttling."""

    def each(name: str) -> set[str]:
        return set(filter(None, _of_cores(root, usable, f"cpufreq/{name}").values()))

    driver = read_text(root / CPU / f"cpu{usable[0]}/cpufreq/scaling_driver")  # all cores share one driver
    return {
        "governor": ", ".join(sorted(each("scaling_governor"))) or None,
        "driver": driver or None,
        "preference": ", ".join(sorted(each("energy_performance_preference"))) or None,
        "autonomous": driver in AUTONOMOUS,
        "turbo": turbo(root),
        "turbo_file": "intel_pstate/no_turbo" if (root / CPU / "intel_pstate/no_turbo").exists() else "cpufreq/boost",
        "capped": _capped(root),
    }


def turbo(root: Path) -> bool | None:
    """Return whether the processor may exceed its nominal clock rate, or None if Linux does not report it."""
    folder = root / CPU
    for file, off in (("intel_pstate/no_turbo", "1"), ("cpufreq/boost", "0")):
        if said := read_text(folder / file):
            return said != off
    return None


def _capped(root: Path) -> bool | None:
    """Return whether the processor is throttled by heat or, on a Raspberry Pi, by low voltage. None means unknown."""
    found = None
    for device in (root / "sys/class/thermal").glob("cooling_device*"):
        if re.search(r"cpu|processor", read_text(device / "type").lower()):
            found = (number(read_text(device / "cur_state")) or 0) > 0 or bool(found)
    for file in (root / "sys/devices/platform/soc").glob("*firmware/get_throttled"):
        if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", text := read_text(file)):
            found = int(text, 16) & 0b1111 > 0 or bool(found)
    return found


def _on_battery(root: Path) -> bool | None:
    """Return whether this machine runs on its battery. Without a battery, return False. If unknown, return None.

    The battery of a device such as a mouse does not count.
    """
    folder = root / SUPPLIES
    supplies = [path for path in folder.glob("*") if read_text(path / "scope") != "Device"]
    mains = [read_text(path / "online") for path in supplies if read_text(path / "type") in ("Mains", "USB")]
    if "1" in mains:
        return False
    if any(read_text(path / "status") == "Discharging" for path in supplies):
        return True
    return False if folder.is_dir() else None


def _memory_left(root: Path) -> float | None:
    """Return the fraction of the memory that is still available to programs, or None if unknown."""
    memory = fields(read_text(root / "proc/meminfo"))
    return memory.get("MemAvailable", 0) / memory["MemTotal"] if memory.get("MemTotal") else None


def _container(root: Path) -> str | None:
    """Return the kind of container, an empty string outside of containers, or None if unknown."""
    signs: dict[str, Callable[[], bool]] = {
        "docker": (root / ".dockerenv").exists,
        "podman": (root / "run/.containerenv").exists,
    }
    if named := read_text(root / "run/systemd/container"):
        return named
    groups = read_text(root / "proc/self/cgroup")
    for sign, name in CONTAINERS.items():
        if sign in groups:
            return name
    return next((name for name, there in signs.items() if there()), "" if groups else None)


def _hypervisor(root: Path) -> str | None:
    """Return the hypervisor of this machine, an empty string without one, or None if unknown."""
    if named := read_text(root / "sys/hypervisor/type"):
        return named
    text = read_text(root / "proc/cpuinfo")
    if re.search(r"^flags\s*:.* hypervisor\b", text, re.MULTILINE):
        return read_text(root / "sys/class/dmi/id/sys_vendor") or "yes"
    return "" if text else None
