"""Put this folder on PYTHONPATH, and the project's own code finds what it would find on Windows.

Modules and functions that only Unix has are gone, and so are /proc and /sys. Other people's packages, which know their
system by name, still find it.
"""

import builtins
import os
import platform
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

OWN = {"tinybench", "autograder", "__main__", "factory"}
MODULES = {"resource", "fcntl", "pwd", "grp", "termios"}
FUNCTIONS = {"fork", "forkpty", "sched_getaffinity", "sched_setaffinity", "getloadavg", "geteuid", "getuid", "getgid"}
HELPERS = {"importlib", "pathlib", "io", "codecs"}


def asked_by_us() -> bool:
    """Whether the code that asks is ours, perhaps by way of a helper of the standard library."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in HELPERS:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OWN


class Elsewhere(ModuleType):
    """The module `os`, without what other systems lack."""

    def __getattribute__(self, name: str) -> Any:
        if name in FUNCTIONS and asked_by_us():
            raise AttributeError(f"module 'os' has no attribute {name!r}")
        return super().__getattribute__(name)


def find(name: str, *args: Any, known: Any = builtins.__import__, **named: Any) -> Any:
    """Import what Windows has too, psutil as it is there."""
    if name in MODULES and asked_by_us():
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    found = known(name, *args, **named)
    if name == "psutil" and not hasattr(found, "elsewhere"):
        found.elsewhere = found.Process.memory_info
        found.Process.memory_info = lambda process: with_peak(found.elsewhere(process))
    return found


def with_peak(memory: Any) -> SimpleNamespace:
    """Add the peak that Windows keeps of this process."""
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    return SimpleNamespace(rss=memory.rss, peak_wset=peak)


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Hide the files of Linux's kernel."""
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")) and asked_by_us():
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


def system(known: str = platform.system()) -> str:
    """Return the name of another system to us."""
    return "Windows" if asked_by_us() else known


def access(path: Any, mode: int, known: Any = os.access) -> bool:
    """Say whether a file may be opened, which one of the kernel's may not."""
    return not (str(path).startswith(("/proc/", "/sys/")) and asked_by_us()) and known(path, mode)


platform.system = system
os.access = access  # type: ignore[assignment]
os.__class__ = Elsewhere
builtins.__import__ = find
sys.addaudithook(watch)
