"""A function that raises the limit on the open files of this process. Each connection counts as an open file."""

from __future__ import annotations

from contextlib import suppress


def allow_files(number: int) -> int:
    """Allow this process to open `number` files, or fewer if the system limits them. Return the number allowed."""
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
