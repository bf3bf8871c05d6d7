"""A Jupyter kernel in the sandbox, which runs a submitted notebook without the permissions of the user who opens it.

`ConfinedProvisioner` starts the kernel. The entry point ``jupyter_client.kernel_provisioners`` registers this class.
The kernel specification "Python 3 (sandbox)" in `autograder/course/kernels` requests the class, and `autograder course`
makes JupyterLab find the specification. Grading does not use a kernel. Instead, it uses
`autograder.sandbox.zygote_client`, which costs a tenth as much.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

import tinybench
from autograder.course.assignment import data_files
from autograder.course.nbgrader_settings import MODULES, project_root
from autograder.sandbox.bubblewrap import Limits, Mounts, available, command, filter_file
from autograder.sandbox.guest import linux, syscalls
from autograder.sandbox.root import PROGRAM

MAX_SOCKET_FOLDER = 2**20  # bytes
LIMITS = Limits(address_space=4 * 2**30, cpu_seconds=3600)  # enough for a person's session with a notebook
WORK = "/course/work"
CONNECTION, SOCKETS = "/inside/connection.json", "/inside/sockets"
# libzmq requests the names of the network interfaces; the sandbox has only the loopback interface
FAMILIES = (*syscalls.UNIX_INET_INET6, socket.AF_NETLINK)


class ConfinedProvisioner(LocalProvisioner):
    """A provisioner that starts a kernel under bubblewrap and connects to it over sockets in a private folder.

    The kernel starts in a new folder of limited size. If the notebook's folder has the name of an assignment, the new
    folder contains the assignment's data files. Otherwise, the new folder is empty. Interrupts are sent as messages,
    because a signal would reach only bubblewrap.
    """

    @property
    def _manager(self) -> Any:
        return self.parent

    @property
    def _sockets(self) -> Path:
        return Path(self._manager.ip).parent

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Create the folder for the sockets. On a restart, keep it, because clients already use the sockets."""
        available()
        manager = self._manager
        if manager.transport != "ipc":
            # The kernel can write to the folder of its sockets, so this folder holds no other file: if the kernel
            # replaced a file with a link, a restart would follow the link with the permissions of the user.
            sockets = Path(tempfile.mkdtemp(prefix="kernel-"), "sockets")
            sockets.mkdir()
            manager.transport, manager.ip, manager.cache_ports = "ipc", f"{sockets}/s", False
            manager.connection_file = str(sockets.with_name("connection.json"))
        self.kernel_spec.interrupt_mode = "message"
        prepared: dict[str, Any] = await super().pre_launch(**kwargs)
        if os.geteuid() == 0:  # the sandbox runs as another user
            os.chown(self._sockets, linux.NOBODY, linux.NOBODY)
        return prepared

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the kernel in the sandbox."""
        connection = Path(self._manager.connection_file)
        inside = connection.with_name("inside.json")  # the same sockets, by their path in the sandbox
        known = json.loads(connection.read_text(encoding="utf-8"))
        inside.write_text(json.dumps(known | {"ip": f"{SOCKETS}/s"}), encoding="utf-8")
        mounts = Mounts(
            read_only={CONNECTION: inside, "/course/tinybench": Path(str(tinybench.__file__)).parent}
            | _data(Path(kwargs.get("cwd") or os.curdir)),
            tmpfs=[WORK],
            writable={SOCKETS: self._sockets},
            working_directory=WORK,
        )
        cmd = [PROGRAM, *(CONNECTION if word == str(connection) else word for word in cmd[1:])]
        with filter_file(FAMILIES) as rules:
            confined = command(cmd, mounts, LIMITS, filter_fd=rules)
            return await super().launch_kernel(confined, pass_fds=[rules], **kwargs)

    async def poll(self) -> int | None:
        """Return the kernel's exit status, or None while it runs.

        If the kernel's memory or its folder of sockets exceeds the limit, kill the kernel first.
        """
        process: Any = self.process
        running = process is not None and process.poll() is None
        if running and (
            _size(self._sockets) > MAX_SOCKET_FOLDER or linux.tree_memory(process.pid, LIMITS.memory) > LIMITS.memory
        ):
            await self.kill()
        ended: int | None = await super().poll()
        return ended

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the folder of the sockets, unless the kernel restarts."""
        await super().cleanup(restart)
        if not restart:
            shutil.rmtree(self._sockets.parent, ignore_errors=True)


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # the file is already gone
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _data(folder: Path) -> dict[str, Path]:
    """Return the data files of the assignment that has the folder's name, by their paths in the sandbox."""
    try:
        source = project_root(folder) / MODULES / folder.name
    except FileNotFoundError:
        return {}
    return {f"{WORK}/{path.relative_to(source)}": path for path in data_files(source)}
