"""A Jupyter kernel in the sandbox: open what a stranger handed in and run it, without lending it your rights.

The entry point ``jupyter_client.kernel_provisioners`` names the provisioner, the kernel specification in
`autograder/jupyter` ("Python 3 (sandbox)") asks for it, and `autograder course` shows that to JupyterLab. Grading has
no kernel: see `autograder.warm`, which costs a tenth.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

import autograder
import tinybench
from autograder.assignment import data_files
from autograder.inside import linux
from autograder.sandbox import NOBODY, PYTHON_HOMES, Limits, Room, available, command

LIMITS = Limits(address_space=4 * 2**30, cpu_seconds=3600)  # of somebody who looks at a notebook
WORK = "/course/work"
# libzmq asks for the names of interfaces, of which there are none but the loopback
FAMILIES = (*linux.UNIX_INET_INET6, socket.AF_NETLINK)


class ConfinedProvisioner(LocalProvisioner):
    """Starts a kernel under bubblewrap, and speaks to it over sockets in a private folder.

    It begins in an empty folder of bounded size that holds the data files of its working directory; notebooks
    and other files of that are not shown. Interrupts go by message: a signal would stop at bubblewrap.

    Raises
    ------
    SandboxUnavailable
        If this machine cannot confine untrusted code.
    """

    @property
    def _manager(self) -> Any:
        return self.parent

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Lay out the folder of the sockets, unless the kernel only restarts and its clients know them already."""
        available()
        manager = self._manager
        if manager.transport != "ipc":
            folder = tempfile.mkdtemp(prefix="kernel-")
            manager.transport, manager.ip, manager.cache_ports = "ipc", f"{folder}/socket", False
            manager.connection_file = f"{folder}/connection.json"
        self.kernel_spec.interrupt_mode = "message"
        prepared: dict[str, Any] = await super().pre_launch(**kwargs)
        if os.geteuid() == 0:  # whoever runs the kernel must be able to make its sockets
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        return prepared

    @property
    def _folder(self) -> Path:
        return Path(self._manager.ip).parent

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the kernel."""
        home = Path(str(autograder.__file__)).parent
        hidden = [str(home)] if any(home.is_relative_to(place) for place in PYTHON_HOMES) else []
        beside = Path(kwargs.get("cwd") or os.curdir)
        data = {f"{WORK}/{path.relative_to(beside)}": path for path in data_files(beside)}
        shown = {"/course/tinybench": Path(str(tinybench.__file__)).parent, **data}
        room = Room(shown, hidden, [WORK], WORK, {str(self._folder): self._folder})
        with tempfile.TemporaryFile() as rules:
            rules.write(linux.seccomp_filter(FAMILIES))
            rules.seek(0)
            confined = command(cmd, room, LIMITS, filter_fd=rules.fileno())
            return await super().launch_kernel(confined, pass_fds=[rules.fileno()], **kwargs)

    async def poll(self) -> int | None:
        """Tell whether it has ended, and end it where it takes too much memory."""
        process: Any = self.process
        if process is not None and process.poll() is None and linux.tree_memory(process.pid) > LIMITS.memory:
            await self.kill()
        ended: int | None = await super().poll()
        return ended

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the folder of the sockets."""
        await super().cleanup(restart)
        if not restart:
            shutil.rmtree(self._folder, ignore_errors=True)
