"""A Jupyter kernel in the sandbox: open what a stranger handed in and run it, without lending it your rights.

The entry point ``jupyter_client.kernel_provisioners`` names the provisioner, the kernel specification in
`autograder/course/kernels` ("Python 3 (sandbox)") asks for it, and `autograder course` shows that to JupyterLab.
Grading has no kernel: see `autograder.sandbox.zygote_client`, which costs a tenth.
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
LIMITS = Limits(address_space=4 * 2**30, cpu_seconds=3600)  # for as long as a person works on a notebook
WORK = "/course/work"
CONNECTION, SOCKETS = "/inside/connection.json", "/inside/sockets"
# libzmq asks for the names of interfaces, of which there are none but the loopback
FAMILIES = (*syscalls.UNIX_INET_INET6, socket.AF_NETLINK)


class ConfinedProvisioner(LocalProvisioner):
    """Starts a kernel under bubblewrap, and speaks to it over sockets in a private folder.

    It begins in an empty folder of bounded size. If its working directory has the name of an assignment, that one's
    data files are there. Interrupts go by message: a signal would stop at bubblewrap.
    """

    @property
    def _manager(self) -> Any:
        return self.parent

    @property
    def _sockets(self) -> Path:
        return Path(self._manager.ip).parent

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Lay out the folder of the sockets, unless the kernel only restarts and its clients know them already."""
        available()
        manager = self._manager
        if manager.transport != "ipc":
            # the kernel can write among its sockets, so nothing else lies there: a link to it would be followed with
            # the rights of whoever restarts the kernel
            sockets = Path(tempfile.mkdtemp(prefix="kernel-"), "sockets")
            sockets.mkdir()
            manager.transport, manager.ip, manager.cache_ports = "ipc", f"{sockets}/s", False
            manager.connection_file = str(sockets.with_name("connection.json"))
        self.kernel_spec.interrupt_mode = "message"
        prepared: dict[str, Any] = await super().pre_launch(**kwargs)
        if os.geteuid() == 0:  # the sandbox is another user
            os.chown(self._sockets, linux.NOBODY, linux.NOBODY)
        return prepared

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the kernel."""
        connection = Path(self._manager.connection_file)
        inside = connection.with_name("inside.json")  # the same sockets, by their place inside
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
        """Tell whether it has ended, and end it if it takes too much memory or fills the folder of its sockets."""
        process: Any = self.process
        running = process is not None and process.poll() is None
        if running and (
            _size(self._sockets) > MAX_SOCKET_FOLDER or linux.tree_memory(process.pid, LIMITS.memory) > LIMITS.memory
        ):
            await self.kill()
        ended: int | None = await super().poll()
        return ended

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the sockets."""
        await super().cleanup(restart)
        if not restart:
            shutil.rmtree(self._sockets.parent, ignore_errors=True)


def _takes_too_much(pid: int) -> bool:
    return linux.tree_memory(pid, LIMITS.memory) > LIMITS.memory


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it is gone already
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _data(folder: Path) -> dict[str, Path]:
    """Return the data files of the assignment that a folder is named after, by their paths in the sandbox."""
    try:
        source = project_root(folder) / MODULES / folder.name
    except FileNotFoundError:
        return {}
    return {f"{WORK}/{path.relative_to(source)}": path for path in data_files(source)}
