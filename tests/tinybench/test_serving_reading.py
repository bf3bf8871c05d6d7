"""What `tinybench serve` takes for rows of a model, and the sentence for everything else."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybench.tools.serving.model_worker import Facts
from tinybench.tools.serving.request_body import MOST_ROWS, Reader, Refused

ROW = [0.5] * 64
MODELS = {
    "64 numbers": Facts("<f4", (64,), ""),
    "3 integers": Facts("<i8", (3,), ""),
    "bytes": Facts("|u1", (2,), ""),
    "switches": Facts("|b1", (2,), ""),
    "one": Facts("<f8", (), ""),
    "half": Facts("<f2", (2,), ""),
    "words": Facts("<i8", (None,), ""),
    "image": Facts("<f4", (2, 3), ""),
    "film": Facts("<f4", (None, 2), ""),
}


def read(model: str, body: Any) -> np.ndarray:
    return Reader(MODELS[model]).read(body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("64 numbers", [ROW, [1] * 64]),
        ("64 numbers", [[1e38] * 64] * MOST_ROWS),
        ("3 integers", [[1, 2, 3]]),
        ("3 integers", [[1.0, 2, -3]]),
        ("3 integers", [[2**53, -(2**63), 2**63 - 1]]),
        ("bytes", [[0, 255]]),
        ("switches", [[True, False]]),
        ("one", [1, 2.5]),
        ("half", [[65504, -1]]),
        ("words", [[1, 2, 3, 4]]),
        ("image", [[[1, 2, 3], [4, 5, 6]]]),
        ("film", [[[1, 2]] * 5, [[3, 4]] * 5]),
    ],
)
def test_rows_arrive_as_they_were_sent(model: str, rows: Any) -> None:
    array = read(model, {"inputs": rows})
    assert array.dtype == np.dtype(MODELS[model].dtype)
    assert array.tolist() == np.array(rows, array.dtype).tolist()


FORM = 'send {"inputs": [row, …]}'


@pytest.mark.parametrize(
    ("model", "body", "sentence"),
    [
        ("64 numbers", [ROW] * 3 + [ROW[1:]], "inputs[3] has 63 numbers, the model takes 64"),
        ("64 numbers", [[]], "inputs[0] is empty, the model takes a list of 64 numbers"),
        ("64 numbers", [ROW, None], "inputs[1] is null, the model takes a list of 64 numbers"),
        ("64 numbers", ROW, "inputs[0] is 0.5, the model takes a list of 64 numbers"),
        ("64 numbers", [[*ROW[1:], "1.5"]], 'inputs[0][63] is "1.5", the model takes numbers'),
        ("64 numbers", [["x" * 99] * 64], 'inputs[0][0] is "xxxxxxxxxxxxx'),
        ("64 numbers", [[*ROW[1:], True]], "inputs[0][63] is true, the model takes numbers"),
        ("64 numbers", [[*ROW[1:], None]], "inputs[0][63] is null, the model takes numbers"),
        ("64 numbers", [[*ROW[1:], [1]]], "inputs[0][63] is [1], the model takes numbers"),
        ("64 numbers", [[[v] for v in ROW]], "inputs[0][0] is [0.5], the model takes numbers"),
        ("64 numbers", [[*ROW[1:], {}]], "inputs[0][63] is {}, the model takes numbers"),
        ("64 numbers", [[*ROW[1:], 1e39]], "inputs[0][63] is 1e+39, too large for the model's float32"),
        ("64 numbers", [[*ROW[1:], 10**400]], "too large for the model's float32"),
        ("64 numbers", [], "inputs is 0 rows; it must be a list of 1 to 256 rows"),
        ("64 numbers", [ROW] * 257, "inputs is 257 rows; it must be a list of 1 to 256 rows"),
        ("64 numbers", {"a": 1}, 'inputs is {"a": 1}; it must be a list'),
        ("3 integers", [[1, 2.5, 3]], "inputs[0][1] is 2.5, the model takes integers"),
        ("3 integers", [[1, 2, 2**63]], "the model's int64 goes from"),
        ("3 integers", [[1, 2, -(2**70)]], "the model's int64 goes from"),
        ("3 integers", [[1, 2, 1e30]], "the model's int64 goes from"),
        ("3 integers", [[1, True, 3]], "inputs[0][1] is true, the model takes integers"),
        ("bytes", [[0, 256]], "inputs[0][1] is 256, the model's uint8 goes from 0 to 255"),
        ("bytes", [[0, -1]], "inputs[0][1] is -1, the model's uint8 goes from 0 to 255"),
        ("switches", [[True, 1]], "inputs[0][1] is 1, the model takes true or false"),
        ("switches", [[True]], "inputs[0] has 1 value, the model takes 2"),
        ("one", [[1]], "inputs[0] is [1], the model takes numbers"),
        ("half", [[1, 70000]], "inputs[0][1] is 70000, too large for the model's float16"),
        ("words", [[1, 2], [1, 2, 3]], "inputs[1] has 3 integers, the model takes 2 as in the first one"),
        ("image", [[[1, 2, 3]]], "inputs[0] has 1 list, the model takes 2"),
        ("image", [[[1, 2, 3], [4, 5]]], "inputs[0][1] has 2 numbers, the model takes 3"),
        ("film", [[[1, 2]], []], "inputs[1] is empty, the model takes a list of any number of × 2 numbers"),
    ],
)
def test_a_wrong_row_is_named(model: str, body: Any, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        read(model, {"inputs": body})
    assert refused.value.code == 422
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b'{"inputs": [[1]]} and more', "the body is not JSON: Extra data"),
        (b"\xef\xbb\xbf{}", "the body is not JSON"),
        (b"\xff\xfe", "the body is not UTF-8"),
        (b"[[1]]", "the body has no inputs; " + FORM),
        (b"{}", "the body has no inputs"),
        (b'"inputs"', "the body has no inputs"),
        (b'{"input": [[1]]}', "the body has no inputs"),
        (b'{"inputs": [[1]], "inputs": [[2]]}', 'the body has the key "inputs" twice'),
        (b'{"inputs": [[1]], "model": "b"}', 'the body has the unknown key "model"'),
        (b'{"inputs": [[NaN]]}', "the body has NaN; the model takes finite numbers"),
        (b'{"inputs": [[-Infinity]]}', "the body has -Infinity"),
        (b'{"inputs": [[' + b"9" * 5000 + b"]]}", "thousands of digits"),
        (b'{"inputs": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deep"),
        (b'{"inputs": ' + b"[" * 60 + b"]" * 60 + b"}", "the model takes"),
        (b'{"inputs": [[' + b"1e999," * 63 + b"0]]}", "inputs[0][0] is Infinity, too large"),
    ],
)
def test_what_is_no_body_is_named(body: bytes, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        read("64 numbers", body)
    assert refused.value.code == 422
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("depth", [30, 33, 64, 100, 500, *range(900, 1010, 7), 3000, 100_000])
def test_no_depth_is_too_much(depth: int) -> None:
    with pytest.raises(Refused):
        read("image", b'{"inputs": ' + b"[" * depth + b"]" * depth + b"}")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=12,
)


@given(st.sampled_from(sorted(MODELS)), ANYTHING)
def test_anything_is_rows_or_a_sentence(model: str, inputs: Any) -> None:
    with suppress(Refused):
        array = read(model, {"inputs": inputs})
        assert np.isfinite(array.astype(float)).all()
        assert array.astype(float).tolist() == np.array(inputs, array.dtype).astype(float).tolist()
