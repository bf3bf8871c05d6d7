"""A server that behaves as the first part of a path says: what `tinybench load` may meet. Run with ``-m``."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter

HEALTH = {"status": "ok", "input": {"name": "x", "shape": [4], "dtype": "float32"}}
COUNTS: Counter[str] = Counter()  # of questions, by way


def answered(status: str, told: object, more: str = "") -> bytes:
    body = json.dumps(told).encode()
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body


async def answer(way: str, path: str, body: bytes) -> bytes | None:  # noqa: C901 - one branch a way to behave
    """Return what to send, or None to close the connection."""
    if way == "garbage":
        return b"220 welcome to this mail server\r\n"
    if way == "deaf":
        await asyncio.sleep(60)
    if path == "health":
        if way == "elsewhere":
            return answered("404 Not Found", "what?")
        if way == "draining":
            return answered("503 Service Unavailable", {"detail": "the server is stopping"})
        free = {"input": {"name": "x", "shape": [None, 4], "dtype": "float32"}}
        text = {"input": {"name": "x", "shape": [4], "dtype": "str"}}
        return answered("200 OK", {"free": free, "text": text, "page": "<html>"}.get(way, HEALTH))
    if path == "count":
        return answered("200 OK", COUNTS[way])
    rows = json.loads(body)["inputs"]
    if len(rows[0]) != 4:
        told = {"detail": f"inputs: the model takes rows of shape (4,), got ({len(rows[0])},)"}
        return answered("422 Unprocessable Content", told)
    fine, number = answered("200 OK", {"outputs": rows}), COUNTS[way]
    COUNTS[way] += 1
    if way == "once":
        return answered("200 OK", {}, "connection: close\r\n")
    if way == "slow":
        await asyncio.sleep(0.05)
    if way == "dies" and number == 400:
        os._exit(0)
    if way == "drops" and number % 10:
        return None
    if way == "refuses":
        return answered("503 Service Unavailable", {"detail": "1000 requests wait already"}) if number else fine
    return fine


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await reader.readline():
            _, way, path = ("/" + line.split()[1].decode()).rsplit("/", 2)
            length = 0
            while (header := await reader.readline()).strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            told = await answer(way.strip("/"), path, await reader.readexactly(length))
            if told is None:
                break
            writer.write(told)
            if b"connection: close" in told:
                break
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
