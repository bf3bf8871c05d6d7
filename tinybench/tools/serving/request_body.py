"""Validation of request bodies, with an error message for each kind of invalid body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from tinybench.support.basics.numbers import number_of
from tinybench.tools.serving.model_worker import Facts

MOST_ROWS = 256
SHOWN = 40  # maximum number of characters of a client's value in an error message


class Refused(Exception):
    """The error raised for a rejected request. `code` is the HTTP status; the message gives the reason."""

    def __init__(self, code: int, why: str, headers: Mapping[bytes, bytes] | None = None) -> None:
        super().__init__(why)
        self.code, self.headers = code, dict(headers or {})


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Refused(422, f"the body has the key {shown(twice)} twice")
    return found


def _not_finite(word: str) -> NoReturn:
    raise Refused(422, f"the body has {word}; the model takes finite numbers")


DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_not_finite)


def shown(value: Any) -> str:
    """Return a client's value as JSON, cut to `SHOWN` characters."""
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class Reader:
    """A reader that checks the bodies of requests for one model and returns their rows."""

    def __init__(self, facts: Facts) -> None:
        self.row, self.dtype = facts.row, np.dtype(facts.dtype)
        self.kind = "numbers" if self.dtype.kind == "f" else "true or false" if self.dtype.kind == "b" else "integers"
        self.wanted = self._taken(self.row)
        # dtype kinds as which NumPy reads valid rows; rows of any other kind are checked value by value
        self.kinds = {"b": "b", "f": "fiu"}.get(self.dtype.kind, "iu")

    def _taken(self, row: tuple[int | None, ...]) -> str:
        """Describe a row, or a part of one, for error messages. `row` is its shape."""
        if not row:
            return {"numbers": "a number", "integers": "an integer"}.get(self.kind, self.kind)
        sizes = " × ".join("any number of" if size is None else str(size) for size in row)
        return f"a list of {sizes} {self.kind}"

    def read(self, body: bytes) -> np.ndarray:
        """Return the rows of a body. If the body is invalid, raise `Refused` with status 422."""
        try:
            return self._read(body)
        except RecursionError:
            raise Refused(422, "the body is nested too deep") from None

    def _read(self, body: bytes) -> np.ndarray:
        try:
            data = DECODER.decode(body.decode())
        except UnicodeDecodeError:
            raise Refused(422, "the body is not UTF-8") from None
        except json.JSONDecodeError as error:
            raise Refused(422, f"the body is not JSON: {error}; {self._form()}") from None
        except ValueError:  # Python does not read an integer of more than 4300 digits
            raise Refused(422, f"the body has an integer of thousands of digits; {self._form()}") from None
        if type(data) is not dict or "inputs" not in data:
            raise Refused(422, f"the body has no inputs; {self._form()}")
        if len(data) > 1:
            other = next(key for key in data if key != "inputs")
            raise Refused(422, f"the body has the unknown key {shown(other)}; {self._form()}")
        rows = data["inputs"]
        if type(rows) is not list or not 1 <= len(rows) <= MOST_ROWS:
            got = number_of(len(rows), "row") if type(rows) is list else shown(rows)
            raise Refused(422, f"inputs is {got}; it must be a list of 1 to {MOST_ROWS} rows, each {self.wanted}")
        return self._array(rows, self.dtype.kind != "b" and (b"true" in body or b"false" in body))

    def _form(self) -> str:
        return f'send {{"inputs": [row, …]}}, each row {self.wanted}'

    def _array(self, rows: list[Any], mixed: bool) -> np.ndarray:
        """Return rows as an array of the model's dtype.

        If the body contains booleans (`mixed`), check every value first, because NumPy would read true as 1.
        """
        try:
            array = np.array(rows)
        except ValueError:  # rows of different lengths
            array = np.array(None)
        if mixed or array.dtype.kind not in self.kinds or not self._has_shape(array):
            self._examine(rows)
            array = np.array(rows, object)  # as objects, integers of any size keep their values
        with np.errstate(all="ignore"):
            cast = array.astype(self.dtype, copy=False)
        if self.dtype.kind == "f":
            if not np.isfinite(cast).all():
                self._examine(rows)
        elif array.dtype.kind != "O" and array.dtype != self.dtype and not (cast == array).all():
            self._examine(rows)
        return cast

    def _has_shape(self, array: np.ndarray) -> bool:
        shape = array.shape[1:]
        if shape == self.row:
            return True
        alike = len(shape) == len(self.row) and all(a in (None, b) for a, b in zip(self.row, shape, strict=True))
        return alike and array.size > 0

    def _examine(self, rows: list[Any]) -> None:
        """Find the first invalid value, and raise `Refused` with a message that gives its position."""
        sizes = list(self.row)
        for number, row in enumerate(rows):
            self._look(row, sizes, 0, f"inputs[{number}]")

    def _look(self, value: Any, sizes: list[int | None], depth: int, where: str) -> None:
        if depth == len(sizes):
            self._look_at_number(value, where)
            return
        wanted = self._taken(self.row[depth:])
        if type(value) is not list:
            raise Refused(422, f"{where} is {shown(value)}, the model takes {wanted}")
        if not value:
            raise Refused(422, f"{where} is empty, the model takes {wanted}")
        if sizes[depth] is None:  # the first list sets the length of all
            sizes[depth] = len(value)
        if len(value) != sizes[depth]:
            things = self.kind.replace("true or false", "values") if depth + 1 == len(sizes) else "lists"
            had = number_of(len(value), things.removesuffix("s"))
            raise Refused(422, f"{where} has {had}, the model takes {self._said(sizes, depth)}")
        for number, each in enumerate(value):
            self._look(each, sizes, depth + 1, f"{where}[{number}]")

    def _said(self, sizes: list[int | None], depth: int) -> str:
        free = " as in the first one: all rows of a request are alike" if self.row[depth] is None else ""
        return f"{sizes[depth]}{free}"

    def _look_at_number(self, value: Any, where: str) -> None:
        kind = self.dtype.kind
        if kind == "b":
            if type(value) is not bool:
                raise Refused(422, f"{where} is {shown(value)}, the model takes true or false")
            return
        if type(value) not in (int, float):
            raise Refused(422, f"{where} is {shown(value)}, the model takes {self.kind}")
        if kind == "f":
            if not abs(value) <= float(np.finfo(self.dtype).max):
                raise Refused(422, f"{where} is {shown(value)}, too large for the model's {self.dtype.name}")
            return
        if type(value) is float and not value.is_integer():
            raise Refused(422, f"{where} is {shown(value)}, the model takes integers")
        bounds = np.iinfo(self.dtype)
        if not bounds.min <= value <= bounds.max:
            why = f"the model's {self.dtype.name} goes from {bounds.min} to {bounds.max}"
            raise Refused(422, f"{where} is {shown(value)}, {why}")
