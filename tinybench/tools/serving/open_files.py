"""The limit on the open files of a process, where each connection counts as a file."""

from __future__ import annotations

from contextlib import suppress


def allow_files(number: int) -> int:
    """Let this process open `number` files, or as many as the system allows. Return how many of them it may open."""
    try:
        import resource
    except ImportError:  # Windows
        return number
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return number
    most = number if hard == resource.RLIM_INFINITY else min(number, hard)
    with suppress(ValueError, OSError):  # macOS allows fewer than its limit says
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
