"""A worker: one process with one ONNX Runtime session, which answers the batches that come through its stdin.

A frame is its length and so many bytes. The first to come back says what the model takes, or why there is none. Then
each frame with a batch is answered by one with the seconds that the model took and, for each request, a status and the
body of its answer. The process ends when its stdin does, and so also when the front is killed.
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
    """What a model takes: its input's dtype and row, None where a size is free, and whether only one row a call."""

    dtype: str
    row: tuple[int | None, ...]
    alone: str


def packed(rows: Sequence[int], shape: Sequence[int], data: bytes) -> bytes:
    """Return the frame of a batch: the rows of each request, the shape of a row, and all numbers."""
    head = COUNTS.pack(len(rows), len(shape)) + struct.pack(f"<{len(rows) + len(shape)}I", *rows, *shape)
    return LENGTH.pack(len(head) + len(data)) + head + data


def unpacked(frame: bytes) -> tuple[list[int], tuple[int, ...], int]:
    """Return the rows of each request, the shape of a row, and where the numbers begin."""
    requests, dimensions = COUNTS.unpack_from(frame)
    numbers = struct.unpack_from(f"<{requests + dimensions}I", frame, COUNTS.size)
    return list(numbers[:requests]), numbers[requests:], COUNTS.size + 4 * len(numbers)


def packed_answers(seconds: float, answers: Sequence[Answer]) -> bytes:
    """Return the frame of a batch's answers."""
    pieces = [SECONDS.pack(seconds, len(answers)), *(ANSWER.pack(code, len(body)) for code, body in answers)]
    frame = b"".join([*pieces, *(body for _, body in answers)])
    return LENGTH.pack(len(frame)) + frame


def unpacked_answers(frame: bytes) -> tuple[float, list[Answer]]:
    """Return the seconds that the model took, and the answers."""
    seconds, count = SECONDS.unpack_from(frame)
    begin, answers = SECONDS.size + count * ANSWER.size, []
    for number in range(count):
        code, length = ANSWER.unpack_from(frame, SECONDS.size + number * ANSWER.size)
        answers.append((code, frame[begin : begin + length]))
        begin += length
    return seconds, answers


def error_body(text: str) -> bytes:
    """Return the body of an answer that says what was wrong."""
    return json.dumps({"detail": text}, ensure_ascii=False).encode(errors="replace")


class Model:
    """A session, and what it takes."""

    def __init__(self, path: str, threads: int) -> None:
        from tinybench.support.rounds.calls import ONNX_DTYPES
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
        """Return why each call takes one row only, nothing if it takes several."""
        if isinstance(first, int):
            if first != 1:
                raise ValueError(
                    f"the model takes exactly {number_of(first, 'row')} a call; export it with a free batch axis"
                )
            return "fixed batch 1"
        if None in row:
            return ""  # nobody knows which sizes it can take
        try:
            answer = self._run(np.zeros((2, *row), self.dtype))  # type: ignore[arg-type]
        except Exception as error:  # ONNX Runtime's errors share no base class of their own
            return f"the model cannot take 2 rows ({reason(error)})"
        return "" if answer.shape[:1] == (2,) else f"2 rows give an output of shape {list(answer.shape)}"

    def _run(self, rows: np.ndarray) -> np.ndarray:
        started = time.perf_counter()
        answer = np.asarray(self.session.run(self.outputs, {self.input: rows})[0])
        self.seconds += time.perf_counter() - started
        return answer

    def call(self, rows: np.ndarray) -> list[Any]:
        """Return the answer to each row, as lists of numbers."""
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
        """Return the answer to each of the requests, which have so many rows."""
        try:
            outputs = self.call(rows)
        except Exception as error:
            if len(counts) > 1:  # whose fault it is shows when each is alone
                ends = np.cumsum(counts)[:-1]
                return [self.answer(each, [len(each)])[0] for each in np.split(rows, ends)]
            # the shape is right, so a bad argument is a value, such as an index that there is not
            code = 422 if type(error).__name__ == "InvalidArgument" else 500
            return [(code, error_body(f"the model cannot answer this: {reason(error)}"))]
        answers, begin = [], 0
        for count in counts:
            answers.append(body(outputs[begin : begin + count]))
            begin += count
        return answers


def reason(error: Exception) -> str:
    """Return the end of what an error says, where ONNX Runtime puts the reason."""
    return " ".join(str(error).split())[-300:]


def body(outputs: Sequence[Any]) -> Answer:
    """Return a request's answer as JSON, which has no NaN."""
    try:
        return 200, json.dumps({"outputs": outputs}, allow_nan=False).encode()
    except (ValueError, TypeError):
        return 500, error_body("the model answered with NaN or infinity, which JSON has no word for")


def end_with(parent: int) -> None:
    """End this process when its parent has ended, also in the middle of a long call; Windows waits for its end."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def answer_batches(make: Callable[[str, int], Model] = Model) -> None:
    """Answer batches until stdin ends, by the model that `make` makes of a file and a number of threads."""
    for name in ("SIGINT", "SIGTERM"):  # Ctrl-C goes to all of a terminal's processes; the front finishes with us first
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=end_with, args=[os.getppid()], daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no frame
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
    """Write all of it; end quietly if nobody reads any more."""
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(out, view) :]
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    answer_batches()
