"""Multiplications of square matrices by NumPy and ONNX Runtime in each type, and the types in which they really run."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinybench.tools.roofline.operator_formulas import PLAIN

TYPES = ("float32", "float64", "float16", "bfloat16", "uint8 × int8", "int8 × int8", "uint8 × uint8")
SIZES = (256, 512, 1024, 2048)


class Product(NamedTuple):
    """A matrix multiplication: the function to call, its number of operations, and a description."""

    call: Callable[[], Any]
    operations: float
    about: dict[str, Any]


def product_model(dtype: str, n: int, rows: int | None = None) -> bytes:
    """Return an ONNX graph that multiplies a matrix by constant weights of shape (n, n).

    The matrix has n columns, and `rows` rows or, by default, n rows.
    """
    from onnx import TensorProto, helper

    left, _, right = dtype.partition(" × ")
    kinds = [
        getattr(TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(kind, kind.upper()))
        for kind in (left, right or left)
    ]
    ends = [
        helper.make_tensor_value_info("a", kinds[0], [rows or n, n]),
        helper.make_tensor_value_info("y", TensorProto.INT32 if right else kinds[0], [rows or n, n]),
    ]
    width = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}.get(left, 1)
    # all weights are 0, because neither the speed nor the sums should depend on their values
    weights = helper.make_tensor("w", kinds[1], [n, n], np.zeros(n * n * width, np.uint8).tobytes(), raw=True)
    node = helper.make_node("MatMulInteger" if right else "MatMul", ["a", "w"], ["y"])
    graph = helper.make_graph([node], "product", ends[:1], ends[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return bytes(model.SerializeToString())


def type_that_ran(dtype: str, threads: int) -> str:
    """Return the type in which ONNX Runtime really computes a matrix multiplication of type `dtype`.

    The type is read from a trace. If ONNX Runtime cannot compute the multiplication, raise ValueError.
    """
    from tinybench.onnx import session_options
    from tinybench.support.engines.sessions import new_session

    with tempfile.TemporaryDirectory() as folder:
        try:
            session = new_session(product_model(dtype, 64), session_options(threads, trace=Path(folder, "trace")))
            session.run(None, {"a": np.zeros((64, 64), dtype.partition(" × ")[0])})
        except Exception as error:  # the runtime's errors have no common class; NumPy has no bfloat16
            raise ValueError(f"ONNX Runtime has no product of {dtype} here") from error
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    ran = next(e for e in events if e.get("cat") == "Node" and e["args"].get("op_name", "").startswith("MatMul"))
    kind = next(iter(ran["args"]["input_type_shape"][0]))
    return dtype if " × " in dtype else PLAIN.get(kind, kind)


def _by_numpy(dtype: str, n: int) -> Callable[[], Any]:
    a, w, y = (np.ones((n, n), dtype) for _ in range(3))
    return partial(np.matmul, a, w, out=y)


def _by_runtime(dtype: str, n: int, threads: int) -> Callable[[], Any]:
    from tinybench.onnx import session_options
    from tinybench.support.engines.sessions import new_session

    session = new_session(product_model(dtype, n), session_options(threads))
    return partial(session.run, None, {"a": np.ones((n, n), dtype.partition(" × ")[0])})


def _fastest(make: Callable[[int], Callable[[], Any]], limit: float, clock: Callable[[], float]) -> tuple[int, Any]:
    """Return the matrix size with the most operations/s, and the function to call for this size.

    Sizes that would take more than `limit` s are skipped.
    """
    best: tuple[float, int, Any] = (0.0, 0, None)
    seconds = 0.0
    for n in SIZES:
        if best[1] and 8 * seconds > limit:
            break
        call = make(n)
        call()
        times = []
        for _ in range(3):
            begin = clock()
            call()
            times.append(clock() - begin)
        seconds = max(min(times), 1e-9)
        best = max(best, (2.0 * n**3 / seconds, n, call), key=lambda item: item[0])
    return best[1], best[2]


def find_products(
    dtypes: Iterable[str], threads: int = 1, limit: float = 0.06, clock: Callable[[], float] = time.perf_counter
) -> tuple[list[Product], list[str]]:
    """Return the matrix multiplications of each type that run here, each at its fastest size, and notes.

    The notes are sentences about types in which nothing runs here, and about types that are really computed in another
    type. Raise ValueError for a type that is not in `TYPES`.
    """
    found, notes = [], []
    for dtype in dtypes:
        if dtype not in TYPES:
            raise ValueError(f"{dtype!r} is no type of a product here; there are {', '.join(TYPES)}")
        ways: dict[str, tuple[str, Callable[[int], Any]]] = {}
        if dtype in ("float32", "float64") and (blas := _blas(threads)):
            ways[blas] = dtype, partial(_by_numpy, dtype)
        try:
            ways["ONNX Runtime"] = type_that_ran(dtype, threads), partial(_by_runtime, dtype, threads=threads)
        except ImportError:
            notes.append("ONNX Runtime is not installed: integers and halves were not measured.")
        except ValueError as error:
            notes.append(f"{error}: it has no roof.")
        for by, (ran, make) in ways.items():
            n, call = _fastest(make, limit, clock)
            about = {"dtype": dtype, "ran_in": ran, "by": by, "size": n, "threads": threads}
            found.append(Product(call, 2.0 * n**3, about))
            if ran != dtype:
                notes.append(f"{by} computes a product of {dtype} in {ran}: it has no roof of its own.")
    return found, list(dict.fromkeys(notes))


def _blas(threads: int) -> str:
    """Return the name of NumPy's BLAS library, or "" if the library does not use `threads` threads."""
    unknown = "NumPy (its threads are not known)" if threads == 1 else ""
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped]
    except ImportError:
        return unknown
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    pools.sort(key=lambda pool: "numpy" in pool["filepath"].replace("scipy_", "").lower())  # SciPy may load its own
    if not pools:
        return unknown
    kernel = pools[-1].get("architecture") or pools[-1]["internal_api"]
    return f"NumPy ({pools[-1]['internal_api']}, {kernel})" if pools[-1]["num_threads"] == threads else ""
