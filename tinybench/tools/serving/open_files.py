"""How many files a process may have open: each connection is one."""

from __future__ import annotations

from contextlib import suppress


def allow_files(number: int) -> int:
    """Let this process open so many files, if the system does; return how many of them it may."""
    try:
        import resource
    except ImportError:  # Windows
        return number
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return number
    most = number if hard == resource.RLIM_INFINITY else min(number, hard)
    with suppress(ValueError, OSError):  # macOS allows fewer than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
