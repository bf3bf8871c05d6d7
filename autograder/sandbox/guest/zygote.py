"""The zygote: a process that loads libraries once, and forks into new namespaces for each submission.

The zygote runs inside an outer bubblewrap sandbox, where it keeps capabilities to create inner sandboxes. It never runs
or reads a student's code or data. It only passes sockets on to its children.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from . import linux, stand_ins
from .runner import answer_grader, make_shell

WATCH_SECONDS = 0.05


def main(options: dict[str, Any]) -> None:
    """Preload modules, report readiness, then fork for each pair of sockets that arrives."""
    control = socket.socket(fileno=options["control"])
    stand_ins.install()
    for name in options["preload"]:
        try:
            importlib.import_module(name)
        except Exception as error:  # the notebook that imports the module shows the error more clearly
            print(f"zygote: {name}: {error}", file=sys.stderr)
    shell = make_shell()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.sendall(b"r")
    while True:
        message, files, _, _ = socket.recv_fds(control, 1, 2)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            _supervise(shell, options, *files)
        for file in files:
            os.close(file)


def _supervise(shell: Any, options: dict[str, Any], life: int, rpc: int) -> None:
    """Run a submission in its own namespaces until it ends, reaches a limit, or the grader closes its socket."""
    reason = "the sandbox could not be set up"
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        user, group = os.getuid(), os.getgid()
        linux.unshare(linux.NEW_NAMESPACES)
        linux.map_user(linux.NOBODY, user, group)
        linux.die_with_parent()  # after the change of user, which resets this setting
        first = os.fork()
        if first == 0:
            os.close(life)
            _run_submission(shell, options, rpc)
        os.close(rpc)
        reason = _watch(first, life, options)
        os.kill(first, signal.SIGKILL)  # when the first process of a PID namespace dies, all others die too
        os.waitpid(first, 0)
    finally:
        try:
            os.write(life, reason.encode())
        finally:
            os._exit(0)


def _watch(first: int, life: int, options: dict[str, Any]) -> str:
    """Wait until a submission ends or exceeds a limit, and return why. Return "" if the grader closed its socket."""
    deadline = time.monotonic() + options["wall_seconds"]
    ended = os.pidfd_open(first)
    while True:
        ready, _, _ = select.select([life, ended], [], [], WATCH_SECONDS)
        if life in ready:
            return ""
        if ended in ready:
            return "the process ended"
        if linux.tree_memory(first, options["memory"]) > options["memory"]:
            return f"it used more than {options['memory'] / 2**20:.0f} MB of memory"
        if time.monotonic() > deadline:
            return f"it ran longer than {options['wall_seconds']:.0f} s in all"


def _run_submission(shell: Any, options: dict[str, Any], rpc: int) -> None:
    """Set up namespaces, mounts and limits in the sandbox's first process, and run the submission there."""
    try:
        linux.die_with_parent()
        linux.unshare(linux.NEW_MOUNTS)
        size = f"size={options['tmp_bytes']},nr_inodes=4096,mode=1777"
        folder = Path(options["folder"])
        for target in ("/tmp", "/dev/shm", str(folder)):
            linux.mount("tmpfs", target, "tmpfs", linux.NOSUID | linux.NODEV, size)
        linux.mount("devpts", "/dev/pts", "devpts", linux.NOSUID, "newinstance,ptmxmode=0666,mode=600,max=16")
        linux.mount("proc", "/proc", "proc", linux.NOSUID | linux.NODEV)
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="utf-8")
        for name, is_folder in linux.uncovered():
            linux.mount(linux.EMPTY if is_folder else linux.NOTHING, f"/proc/{name}", "", linux.BIND)
        for name in linux.PROC_STILL:
            linux.mount(f"/inside/proc/{name}", f"/proc/{name}", "", linux.BIND)
        for data in options["data"]:
            (folder / Path(data).name).symlink_to(data)
        os.chdir(folder)
        os.setsid()
        Path("/proc/self/oom_score_adj").write_text(
            "1000", encoding="utf-8"
        )  # if memory runs out, the kernel kills the submission before the zygote
        linux.part_with_parent(rpc)
        linux.set_limits(options["limits"])
        linux.drop_privileges()
        answer_grader(shell, socket.socket(fileno=rpc), options["call_seconds"])
    except BaseException as error:
        print(f"zygote: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)
