"""A worker process with one ONNX Runtime session. It reads batches from standard input and answers on standard output.

The worker exchanges frames with the front process, which accepts the HTTP requests. A frame is a length, followed by
that number of bytes. The worker's first frame describes the model's input or, if the model cannot be loaded, the error.
After that, each frame from the front process holds a batch, and the worker returns one frame with the answers: the
seconds that the model took and, for each request, a status and the body of the answer. The worker exits when its
standard input closes, and therefore also when the front process is killed.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinybench.support.basics.numbers import number_of

LENGTH = struct.Struct("<I")
COUNTS = struct.Struct("<HH")
SECONDS = struct.Struct("<dH")
ANSWER = struct.Struct("<HI")

Answer = tuple[int, bytes]


class Facts(NamedTuple):
    """A description of a model's input.

    `dtype` is the input's dtype, and `row` is the shape of one row, with None for a free size. If a call takes only one
    row, `alone` is the reason, otherwise an empty string.
    """

    dtype: str
    row: tuple[int | None, ...]
    alone: str


def packed(rows: Sequence[int], shape: Sequence[int], data: bytes) -> bytes:
    """Encode a batch as a frame: the number of rows in each request, the shape of a row, and the data of all rows."""
    head = COUNTS.pack(len(rows), len(shape)) + struct.pack(f"<{len(rows) + len(shape)}I", *rows, *shape)
    return LENGTH.pack(len(head) + len(data)) + head + data


def unpacked(frame: bytes) -> tuple[list[int], tuple[int, ...], int]:
    """Decode a batch: the number of rows in each request, the shape of a row, and the offset of the first data byte."""
    requests, dimensions = COUNTS.unpack_from(frame)
    numbers = struct.unpack_from(f"<{requests + dimensions}I", frame, COUNTS.size)
    return list(numbers[:requests]), numbers[requests:], COUNTS.size + 4 * len(numbers)


def packed_answers(seconds: float, answers: Sequence[Answer]) -> bytes:
    """Encode the answers to a batch, and the seconds that the model took, as a frame."""
    pieces = [SECONDS.pack(seconds, len(answers)), *(ANSWER.pack(code, len(body)) for code, body in answers)]
    frame = b"".join([*pieces, *(body for _, body in answers)])
    return LENGTH.pack(len(frame)) + frame


def unpacked_answers(frame: bytes) -> tuple[float, list[Answer]]:
    """Decode a frame of answers: the seconds that the model took, and the answer to each request."""
    seconds, count = SECONDS.unpack_from(frame)
    begin, answers = SECONDS.size + count * ANSWER.size, []
    for number in range(count):
        code, length = ANSWER.unpack_from(frame, SECONDS.size + number * ANSWER.size)
        answers.append((code, frame[begin : begin + length]))
        begin += length
    return seconds, answers


def error_body(text: str) -> bytes:
    """Return an error message as the JSON body of an answer."""
    return json.dumps({"detail": text}, ensure_ascii=False).encode(errors="replace")


class Model:
    """An ONNX Runtime session with a description of its input."""

    def __init__(self, path: str, threads: int) -> None:
        from tinybench.support.rounds.checked_calls import ONNX_DTYPES
        from tinybench.tools.serving.models import load_model

        self.session = load_model(path, threads)
        inputs = self.session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(node.name for node in inputs)
            raise ValueError(
                f"{path} has {number_of(len(inputs), 'input')} ({names}); serve takes models with one input"
            )
        self.input, kind, shape = inputs[0].name, inputs[0].type, inputs[0].shape
        if np.dtype(ONNX_DTYPES.get(kind, object)).kind not in "fiub":
            raise ValueError(f"{path} takes {kind}; serve feeds it numbers only")
        outputs = [node.name for node in self.session.get_outputs() if node.type.startswith("tensor(")]
        if not outputs:
            raise ValueError(f"{path} has no output that is a plain array; convert it without ZipMap")
        if not shape:
            raise ValueError(f"{path} takes a single number without a batch axis; serve takes rows")
        self.outputs, self.dtype, self.seconds = outputs[-1:], np.dtype(ONNX_DTYPES[kind]), 0.0
        row = tuple(size if isinstance(size, int) else None for size in shape[1:])
        self.facts = Facts(self.dtype.str, row, self._why_alone(shape[0], row))

    def _why_alone(self, first: Any, row: Sequence[int | None]) -> str:
        """Return the reason why a call takes only one row, or an empty string if a call may take several rows."""
        if isinstance(first, int):
            if first != 1:
                raise ValueError(
                    f"the model takes exactly {number_of(first, 'row')} a call; export it with a free batch axis"
                )
            return "fixed batch 1"
        if None in row:
            return ""  # with free sizes, no row is known to be valid, so none can be tried
        try:
            answer = self._run(np.zeros((2, *row), self.dtype))  # type: ignore[arg-type]
        except Exception as error:  # ONNX Runtime's errors have no common base class
            return f"the model cannot take 2 rows ({reason(error)})"
        return "" if answer.shape[:1] == (2,) else f"2 rows give an output of shape {list(answer.shape)}"

    def _run(self, rows: np.ndarray) -> np.ndarray:
        started = time.perf_counter()
        answer = np.asarray(self.session.run(self.outputs, {self.input: rows})[0])
        self.seconds += time.perf_counter() - started
        return answer

    def call(self, rows: np.ndarray) -> list[Any]:
        """Return the model's answer to each row, as a number or a nested list of numbers."""
        if not self.facts.alone:
            answers: list[Any] = self._run(rows).tolist()
            if len(answers) != len(rows):
                raise ValueError(
                    f"the model gave {number_of(len(answers), 'answer')} to "
                    f"{number_of(len(rows), 'row')}; serve the model with --max-batch 1"
                )
            return answers
        each = [self._run(rows[number : number + 1]) for number in range(len(rows))]
        return [answer.tolist()[0] if answer.shape[:1] == (1,) else answer.tolist() for answer in each]

    def answer(self, rows: np.ndarray, counts: Sequence[int]) -> list[Answer]:
        """Return the answer to each request. `counts` holds the number of rows of each request."""
        try:
            outputs = self.call(rows)
        except Exception as error:
            if len(counts) > 1:  # run each request separately to find the one that fails
                ends = np.cumsum(counts)[:-1]
                return [self.answer(each, [len(each)])[0] for each in np.split(rows, ends)]
            # the shape was checked, so an invalid argument is a bad value, such as an index out of range
            code = 422 if type(error).__name__ == "InvalidArgument" else 500
            return [(code, error_body(f"the model cannot answer this: {reason(error)}"))]
        answers, begin = [], 0
        for count in counts:
            answers.append(body(outputs[begin : begin + count]))
            begin += count
        return answers


def reason(error: Exception) -> str:
    """Return the end of an error message as one line. ONNX Runtime puts the reason there."""
    return " ".join(str(error).split())[-300:]


def body(outputs: Sequence[Any]) -> Answer:
    """Return the status and JSON body for a request's outputs. NaN and infinity, which JSON lacks, give status 500."""
    try:
        return 200, json.dumps({"outputs": outputs}, allow_nan=False).encode()
    except (ValueError, TypeError):
        return 500, error_body("the model answered with NaN or infinity, which JSON has no word for")


def end_with(parent: int) -> None:
    """Exit this process once its parent has ended, even during a long call. This does not work on Windows."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def answer_batches(make: Callable[[str, int], Model] = Model) -> None:
    """Answer batches until standard input closes. `make` creates the model from a file and a number of threads."""
    for name in ("SIGINT", "SIGTERM"):  # Ctrl-C reaches every process of a terminal; the front process ends this one
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=end_with, args=[os.getppid()], daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)  # text that a library prints must not mix with the frames
    source = os.fdopen(os.dup(0), "rb")
    try:
        model = make(sys.argv[1], int(sys.argv[2]))
        said: dict[str, Any] = {"facts": model.facts}
    except Exception as error:
        said = {"error": str(error)}
    first = json.dumps(said).encode()
    write(out, LENGTH.pack(len(first)) + first)
    if "error" in said:
        return
    while len(head := source.read(LENGTH.size)) == LENGTH.size:
        (length,) = LENGTH.unpack(head)
        if len(frame := source.read(length)) < length:
            return
        counts, shape, begin = unpacked(frame)
        rows = np.frombuffer(frame, model.dtype, offset=begin).reshape(sum(counts), *shape)
        model.seconds = 0.0
        answers = model.answer(rows, counts)
        write(out, packed_answers(model.seconds, answers))


def write(out: int, data: bytes) -> None:
    """Write all bytes to a file descriptor. If the reader has closed the pipe, exit this process without an error."""
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(out, view) :]
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    answer_batches()
