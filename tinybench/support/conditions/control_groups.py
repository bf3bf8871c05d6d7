"""CPU time limits of Linux control groups, versions 1 and 2, at every level of the hierarchy above this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tinybench.support.conditions.system_files import read_text

MOUNTS = {2: ("sys/fs/cgroup", "sys/fs/cgroup/unified"), 1: ("sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct")}


def own_groups(root: Path) -> Iterator[tuple[int, Path]]:
    """Yield the version and folder of each control group of this process, from the outermost visible group inwards."""
    for line in read_text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        version = 2 if number == "0" and not controllers else 1
        if version == 1 and "cpu" not in controllers.split(","):
            continue
        for mount, inside in _mounts(root, version):
            folder = mount
            yield version, folder
            own = PurePosixPath(path)
            # in a container, the own group may be mounted as the root although its path is the path on the host
            below = own.relative_to(inside).parts if own.is_relative_to(inside) else ()
            for part in below if ".." not in below else ():
                folder = folder / part
                yield version, folder


def _mounts(root: Path, version: int) -> list[tuple[Path, str]]:
    """Return the mount points of control groups of one version, each with the path of the group mounted there."""
    found = []
    for line in read_text(root / "proc/self/mountinfo").splitlines():
        before, dash, after = line.partition(" - ")
        words, kind = before.split(), after.split()
        if not dash or len(words) < 5 or len(kind) < 3:
            continue
        controls = version == 2 or "cpu" in kind[2].split(",")
        if kind[0] == ("cgroup2" if version == 2 else "cgroup") and controls:
            found.append((root / words[4].lstrip("/"), words[3]))
    return found or [(root / place, "/") for place in MOUNTS[version] if (root / place).is_dir()]


def tightest_quota(root: Path) -> str | None:
    """Return the smallest CPU time limit, in the format of ``cpu.max``. If a file has unexpected content, return None.

    ``"50000 100000"`` means half a core, and ``"max"`` means no limit.
    """
    limits: list[tuple[int, int]] = []
    for version, folder in own_groups(root):
        if version == 2:
            said = read_text(folder / "cpu.max")
        else:
            said = " ".join(filter(None, (read_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))))
        if found := re.fullmatch(r"(\d{1,15}) (\d{1,15})", said):
            if int(found[2]) == 0:
                return None
            limits.append((int(found[1]), int(found[2])))
        elif said and not re.fullmatch(r"(max|-1)( \d+)?", said):
            return None
    if not limits:
        return "max"
    quota, period = min(limits, key=lambda limit: limit[0] / limit[1])
    return f"{quota} {period}"


def times_stopped(root: Path) -> tuple[int, int] | None:
    """Return two counts of the control group of this process that was throttled most often.

    They are the number of scheduling periods since the group was created, and the number of these periods in which the
    group was throttled. Without any limit, return (0, 0). If there are limits but no group counts its periods, return
    None.
    """
    counts, groups = [], 0
    for _, folder in own_groups(root):
        groups += 1
        found = dict(
            re.findall(r"^(nr_periods|nr_throttled) (\d{1,18})$", read_text(folder / "cpu.stat"), re.MULTILINE)
        )
        if len(found) == 2:
            counts.append((int(found["nr_periods"]), int(found["nr_throttled"])))
    if not counts:
        return (0, 0) if not groups or tightest_quota(root) == "max" else None
    return max(counts, key=lambda count: count[1])
