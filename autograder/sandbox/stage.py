"""A program that builds the root file system of a sandbox, and then replaces itself with bubblewrap.

The root is built in a new mount namespace, so the host does not see its mounts. `autograder.sandbox.root` describes
what the root contains, and why. A sandbox can read the list of its mounts. So that this list contains no path of the
host, folders are mounted through overlays of `/proc/self/fd`, and files are copied. Because bubblewrap replaces this
program, bubblewrap is a child of the process that started the program, and dies with that process.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import cgroup  # type: ignore[import-not-found]  # both lie next to this program
from guest import linux  # type: ignore[import-not-found]

NEW = "/run/new"  # the new root, as in `autograder.sandbox.root`
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
READ_ONLY = linux.READ_ONLY | linux.NOSUID | linux.NODEV


def main(plan: dict[str, Any], argv: list[str]) -> None:  # noqa: C901 - steps whose order matters, one after another
    """Build the root from a plan made by `root.plan`, and then run bubblewrap."""
    if plan["group"]:
        with suppress(OSError):  # without a group, `linux.tree_memory` still limits memory
            cgroup.join(Path(plan["group"]), plan["limits"])
    os.umask(0o022)
    root = os.geteuid() == 0 and _is_mapped(linux.NOBODY)
    if root:
        linux.unshare(linux.NEW_MOUNTS)
    else:
        user, group = os.geteuid(), os.getegid()
        linux.unshare(linux.NEW_USERS | linux.NEW_MOUNTS)
        linux.map_user(0, user, group)
    # opened and read now, because later steps may hide these paths
    folders = [os.open(shown["source"], os.O_PATH) for shown in plan["folders"]]
    copies = {place: Path(source).read_bytes() for place, source in plan["files"].items()}
    programs = {place: (os.open(os.path.dirname(path), os.O_PATH), path) for place, path in plan["programs"].items()}
    written = {place: os.open(path, os.O_PATH) for place, path in plan["writable"].items()}
    linux.mount("none", "/", "", linux.PRIVATE | linux.RECURSIVE)
    linux.mount("tmpfs", "/run", "tmpfs", linux.NOSUID, "mode=755")
    for place in [*plan["empty"], *plan["programs"], *plan["files"]]:
        os.makedirs(NEW + (place if place in plan["empty"] else os.path.dirname(place)), exist_ok=True)
    for place, content in copies.items():
        Path(NEW + place).write_bytes(content)
    for place, to in plan["links"].items():
        os.symlink(to, NEW + place)
    places = [shown["place"] for shown in plan["folders"]]
    for number, (shown, source) in enumerate(zip(plan["folders"], folders, strict=True)):
        layer = f"/run/layer/{number}"
        os.makedirs(layer)
        _fill_layer(Path(layer), Path(f"/proc/self/fd/{source}"), shown, places)
        _overlay(layer, source, NEW + shown["place"])
    for number, (place, (folder, path)) in enumerate(programs.items()):
        if not os.path.lexists(NEW + place):  # a mounted folder may contain it already
            os.makedirs(f"/run/layer/p{number}")
            _overlay(f"/run/layer/p{number}", folder, f"/run/programs/{number}")
            Path(NEW + place).touch()
            linux.mount(f"/run/programs/{number}/{os.path.basename(path)}", NEW + place, "", linux.BIND)
    for place, source in written.items():
        os.makedirs(place)
        linux.mount(f"/proc/self/fd/{source}", place, "", linux.BIND | linux.RECURSIVE)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(plan["niceness"], os.getpriority(os.PRIO_PROCESS, 0)))
        Path("/proc/self/oom_score_adj").write_text(
            "500", encoding="utf-8"
        )  # if memory runs out, the kernel kills the sandbox before the grader
    if root:
        _own_devices()
        os.setgroups([])
        os.setresgid(linux.NOBODY, linux.NOBODY, linux.NOBODY)  # root is exempt from process limits
        os.setresuid(linux.NOBODY, linux.NOBODY, linux.NOBODY)
    os.execve(argv[0], argv, {})


def _is_mapped(user: int) -> bool:
    """Return whether a user ID is mapped in this user namespace.

    In an ordinary user's container, root may be the only user that is mapped.
    """
    ranges = (map(int, line.split()) for line in Path("/proc/self/uid_map").read_text(encoding="utf-8").splitlines())
    return any(first <= user < first + count for first, _, count in ranges)


def _fill_layer(layer: Path, source: Path, shown: dict[str, Any], places: list[str]) -> None:
    """Write the layer that an overlay puts on top of the folder `source`, to change how the sandbox sees the folder.

    The layer contains new or changed files, new links, and an overlay marker (a device 0/0) for each name to hide.
    """
    inner = [os.path.relpath(place, shown["place"]) for place in places if place.startswith(f"{shown['place']}/")]
    for name in inner:
        (layer / name).mkdir(parents=True, exist_ok=True)
    kept = {name.partition("/")[0] for name in inner}
    hidden = list(shown["hidden"])
    if shown["only"]:
        hidden += [name for name in os.listdir(source) if not re.search(shown["only"], name) and name not in kept]
    for name in sorted(hidden):  # a folder comes before its content
        if os.path.lexists(source / name) and not os.path.lexists(layer / name):
            try:
                (layer / name).parent.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue  # a parent folder is hidden
            os.mknod(layer / name, stat.S_IFCHR, 0)
    texts = dict(shown["texts"])
    for name, (old, new) in shown["altered"].items():
        texts[name] = (source / name).read_text(encoding="utf-8").replace(old, new)
    for name, text in texts.items():
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        (layer / name).unlink(missing_ok=True)
        (layer / name).write_text(text, encoding="utf-8")
    for name, to in shown["links"].items():
        (layer / name).unlink(missing_ok=True)
        (layer / name).symlink_to(to)


def _overlay(layer: str, source: int, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    linux.mount("overlay", target, "overlay", READ_ONLY, f"lowerdir={layer}:/proc/self/fd/{source}")


def _own_devices() -> None:
    """Create new devices and mount them over those in /dev, if this process may create devices.

    Bubblewrap then gives the sandbox these devices, which it does not share with any other sandbox.
    """
    for name, (major, minor) in DEVICES.items():
        try:
            os.mknod(f"/run/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
            os.chmod(f"/run/{name}", 0o666)
            linux.mount(f"/run/{name}", f"/dev/{name}", "", linux.BIND)
        except OSError:
            return  # a container that may not create devices


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]), sys.argv[2:])
    except OSError as error:
        sys.exit(f"the root of the sandbox cannot be laid out: {error}")
