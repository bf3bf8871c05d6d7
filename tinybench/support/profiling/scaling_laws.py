"""Three laws of scaling, and the efficiency: the speed-up that n workers reach, or could reach."""

from __future__ import annotations

from collections.abc import Mapping

from tinybench.support.basics.arguments import check_least, check_serial


def amdahl(n: float, serial: float) -> float:
    """Return the speed-up of a fixed task with n workers, if the fraction `serial` of the task runs on one worker."""
    check_serial(n, serial)
    return 1 / (serial + (1 - serial) / n)


def gustafson(n: float, serial: float) -> float:
    """Return the speed-up with n workers of a task that grows with n (Gustafson's law).

    The fraction `serial` of the time with n workers is spent on one worker alone.
    """
    check_serial(n, serial)
    return n - serial * (n - 1)


def usl(n: float, contention: float, crosstalk: float) -> float:
    """Return the speed-up of n workers according to the Universal Scalability Law.

    `contention` and `crosstalk` are the two parameters of the law.
    """
    check_least(1, n=n)
    check_least(contention=contention, crosstalk=crosstalk)
    return n / (1 + contention * (n - 1) + crosstalk * n * (n - 1))


def efficiency(speedups: Mapping[int, float]) -> dict[int, float]:
    """Return the speed-up divided by n, for each n. It is 1 if n workers are n times as fast as one."""
    check_least(1, **{f"n = {n}": n for n in speedups})
    check_least(**{f"the speed-up of {n}": gain for n, gain in speedups.items()})
    return {n: gain / n for n, gain in speedups.items()}
