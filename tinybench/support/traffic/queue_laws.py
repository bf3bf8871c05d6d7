"""Laws of queues that need no more than averages: Little's law, the utilisation, and Kingman's bound."""

from __future__ import annotations

from tinybench.support.basics.arguments import check_least, check_positive
from tinybench.support.traffic.load_checks import check_load


def littles_law(rate: float, seconds: float) -> float:
    """Return the mean number of requests in a system if they arrive at `rate` and stay for `seconds` on average.

    Little, Operations Research 9 (1961). The law holds for any order, any distributions and any number of servers.
    """
    check_least(rate=rate, seconds=seconds)
    return rate * seconds


def utilisation(rate: float, service: float, servers: int = 1) -> float:
    """Return the fraction of time servers are busy, if requests arrive at `rate` and take `service` seconds each."""
    check_least(rate=rate, service=service)
    check_positive(servers=servers)
    return rate * service / servers


def kingman(rate: float, service: float, cv2_gaps: float, cv2: float) -> float:
    """Return an upper bound of the mean wait in s, for one server and independent gaps with any distribution.

    `cv2_gaps` and `cv2` are the variances of gaps and service times, each divided by the squared mean. Raises
    ValueError if the utilisation is 1 or more. Kingman, Biometrika 49 (1962): the sum of both variances × rate /
    (2 (1 − ρ)).
    """
    check_least(cv2_gaps=cv2_gaps, cv2=cv2)
    rho = check_load(rate, service)
    return rate * (cv2_gaps / rate**2 + cv2 * service**2) / (2 * (1 - rho))
