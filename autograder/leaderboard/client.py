"""The student's end of the leaderboard: enter a model, and follow what becomes of it."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from autograder.leaderboard.formatting import interval_of, percent, times

FINAL = ("measured", "refused")


def enter(server: str, token: str, event: str, name: str, data: bytes) -> dict[str, Any]:
    """Enter a model.

    Parameters
    ----------
    server
        Address of the leaderboard.
    token
        The student's.
    event
        Id of the event.
    name
        What the student calls the entry.
    data
        The file.

    Returns
    -------
    dict
        The entry as the server describes it.

    Raises
    ------
    ValueError
        If no leaderboard answers, or it does not take the entry; the message says why.
    """
    _check(server, token)
    address = f"/api/events/{urllib.parse.quote(event, safe='')}/entries?name={urllib.parse.quote(name)}"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    entry: dict[str, Any] = _call(server, address, data, headers)
    return entry


def page(server: str, entry: dict[str, Any]) -> str:
    """Return the address of an entry's page; its own path starts with the prefix that the server may sit behind."""
    parts = urllib.parse.urlsplit(server)
    return f"{parts.scheme}://{parts.netloc}{entry['url']}"


def follow(server: str, entry: dict[str, Any], report: Callable[[str], object], pause: float = 1.0) -> dict[str, Any]:
    """Wait until an entry has been measured or refused.

    Parameters
    ----------
    server, entry
        See `enter`.
    report
        Is told each new step, in a few words.
    pause
        Seconds between two questions.

    Returns
    -------
    dict
        The entry, see `enter`.
    """
    said = ""
    while entry["state"] not in FINAL:
        step = entry["progress"] or entry["state"]
        if step != said:
            report(step)
            said = step
        time.sleep(pause)
        entry = _call(server, f"/api/entries/{entry['id']}")
    return entry


def standings(server: str, event: str) -> list[dict[str, Any]]:
    """Return the places of an event, best first."""
    places: list[dict[str, Any]] = _call(server, f"/api/events/{urllib.parse.quote(event, safe='')}")
    return places


def in_words(measured: dict[str, Any]) -> str:
    """Return what was measured of an entry as a line."""
    latency, memory, accuracy = (measured[name] for name in ("latency", "memory", "accuracy"))
    return (
        f"latency {times(latency['value'])} ({interval_of(latency, times)}), "
        f"memory {times(memory['value'])} ({interval_of(memory, times)}), "
        f"accuracy {percent(accuracy['value'])}, {measured['size']} bytes"
    )


def _check(server: str, token: str) -> None:
    if not server.startswith(("http://", "https://")):
        raise ValueError(f"{server!r} is no address of a leaderboard; write http://host:port")
    if not re.fullmatch(r"[\w-]*", token, re.ASCII):
        raise ValueError("this is no token: it has characters that none has; copy it again")


def _call(server: str, path: str, data: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
    request = urllib.request.Request(server.rstrip("/") + path, data=data, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        raise ValueError(_detail(error)) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ValueError(
            f"no leaderboard answers at {server} ({reason}); name its address with --url, or start it with "
            "`autograder leaderboard serve`"
        ) from None
    try:
        return json.loads(content)
    except ValueError:
        raise ValueError(f"what answers at {server} is no leaderboard") from None


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError):
        return f"{error.code} {error.reason}"
