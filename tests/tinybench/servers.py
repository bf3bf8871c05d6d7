"""`tinybench serve` in a child process, models to serve, and a plain HTTP client, for tests."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import numpy as np
import psutil

from autograder import time_limits

WIDTH = 4


@dataclass
class Served:
    """A server that runs: its URL, its process, and what its first line said."""

    url: str
    process: subprocess.Popen[str]
    line: str
    errors: IO[str]

    def complained(self) -> str:
        """Return what it has written to stderr so far."""
        return os.pread(self.errors.fileno(), 10**6, 0).decode()

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    def workers(self) -> list[psutil.Process]:
        """Return the processes with the model."""
        return psutil.Process(self.process.pid).children()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and body of an answer; a body that is not bytes is sent as JSON."""
        connection = HTTPConnection(*self.address, timeout=time_limits.wall(60))
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            if data is not None:
                names = {"Content-Type": "application/json", **names}
            connection.request(method, path, data, names)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, json.loads(text) if "json" in found.get("content-type", "") else text.decode()

    def predict(self, body: Any, **headers: str) -> tuple[int, Any]:
        """Return status and answer of a request to /predict; anything but bytes and whole bodies are inputs."""
        if not isinstance(body, bytes | dict):
            body = {"inputs": body}
        status, _, answer = self.ask("POST", "/predict", body, **headers)
        return status, answer["outputs"] if status == 200 else answer["detail"]

    def raw(self, data: bytes = b"") -> socket.socket:
        """Return a connection on which this has been sent."""
        connection = socket.create_connection(self.address, timeout=time_limits.wall(60))
        connection.sendall(data)
        return connection


def request(rows: Any, *more: str) -> bytes:
    """Return the bytes of a request to /predict."""
    body = json.dumps({"inputs": rows})
    head = ["POST /predict HTTP/1.1", "Host: here", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, *more, "", body]).encode()


@contextmanager
def served(model: Path, *options: str) -> Iterator[Served]:
    """Run `tinybench serve` on a free port for the time of the block."""
    command = [sys.executable, "-m", "tinybench", "serve", str(model), "--port", "0", *options]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            if found is None:
                process.wait()
                errors.seek(0)
                raise AssertionError(f"the server did not start: {errors.read()}")
            yield Served(found[0], process, line, errors)
        finally:
            process.terminate()
            try:
                process.wait(time_limits.wall(30))
            except subprocess.TimeoutExpired:
                process.kill()


def save_graph(
    path: Path, nodes: list[Any], row: list[Any], kind: str = "FLOAT", batch: Any = "N", **more: Any
) -> Path:
    """Write a model of input x, of such rows, and output y."""
    from onnx import TensorProto, helper, save

    element = getattr(TensorProto, kind)
    inputs = [helper.make_tensor_value_info(name, element, [batch, *row]) for name in more.pop("inputs", ["x"])]
    outputs = [helper.make_tensor_value_info("y", more.pop("out", element), more.pop("output", None))]
    graph = helper.make_graph(nodes, "g", inputs, outputs, more.pop("constants", []))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    save(model, path)
    return path


def double(path: Path, **how: Any) -> Path:
    """Write a model that doubles rows of four numbers: an answer tells which request it belongs to."""
    from onnx import helper

    return save_graph(path, [helper.make_node("Add", ["x", "x"], ["y"])], how.pop("row", [WIDTH]), **how)


def patient(path: Path) -> Path:
    """Write a model of rows of one number that takes as many steps as the largest says, and answers the rows."""
    from onnx import helper

    return repeating(path, [helper.make_node("Tanh", ["before"], ["after"])], begin=np.zeros(64))


def repeating(path: Path, step: list[Any], begin: np.ndarray, **stored: np.ndarray) -> Path:
    """Write a model of rows of one number that repeats a step as often as the largest says, and adds the sum to them.

    The step's operators make "after" of "before", which is `begin` at first, by arrays that are stored by name.
    """
    from onnx import TensorProto, helper, numpy_helper

    info = helper.make_tensor_value_info
    inputs = [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, [])]
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), *step],
        "step",
        [*inputs, info("before", TensorProto.FLOAT, begin.shape)],
        [info("on", TensorProto.BOOL, []), info("after", TensorProto.FLOAT, begin.shape)],
    )
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["steps"], to=TensorProto.INT64),
        helper.make_node("Loop", ["steps", "", "begin"], ["done"], body=body),
        helper.make_node("ReduceSum", ["done"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    arrays = {"begin": begin, **stored}
    constants = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    return save_graph(path, nodes, [1], constants=constants)
