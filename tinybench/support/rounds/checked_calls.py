"""Calls of a model: several arguments, checks that inputs stay unchanged, and checks that a call does all its work."""

from __future__ import annotations

import ctypes.util
import inspect
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from copy import deepcopy
from functools import partial
from types import NoneType
from typing import Any

import numpy as np

Call = Callable[[Any], Any]
Clock = Callable[[], float]
ONNX_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(string)": "str",
}


def fed_by_name(session: Any) -> Call:
    """Return a function that runs an ONNX Runtime session. The function takes a dictionary of arrays by input name."""
    dtypes = {node.name: np.dtype(ONNX_DTYPES[node.type]) for node in session.get_inputs()}
    outputs = [node.name for node in session.get_outputs()]

    def call(feed: Any = None, *more: Any, **named: Any) -> Any:
        if more or named:  # the input was an `arguments` object
            feed = named if feed is None else (feed, *more)
        if not isinstance(feed, dict) or feed.keys() != dtypes.keys():
            given = ", ".join(map(str, feed)) if isinstance(feed, dict) else f"a {type(feed).__name__}"
            raise ValueError(f"the session takes a dictionary of arrays by name ({', '.join(dtypes)}), not {given}")
        return session.run(outputs, {name: np.asarray(feed[name], dtype) for name, dtype in dtypes.items()})[-1]

    return call


class arguments:
    """The input of a model that takes several arguments: ``arguments(queries, keys, causal=True)``.

    Parameters
    ----------
    *args, **kwargs
        The positional and the keyword arguments of the model.
    """

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        """Return the expression that creates this object."""
        return f"arguments({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


def plain_call(call: Call, x: Any, setup: Call | None, sync: Callable[[], Any] | None) -> tuple[Call, Any]:
    """Return a function of one argument, and the argument. The function unpacks `arguments`, and calls `sync` last."""
    refuse_later(call)
    sample = x if setup is None else setup(x)
    if isinstance(sample, arguments):
        if setup is None and sample.args:  # a partial adds the least overhead to the timed call
            *first, x = sample.args
            call = partial(call, *first, **sample.kwargs) if first or sample.kwargs else call
        else:
            call = _unpacking(call)
    return (call if sync is None else _synced(call, sync)), x


def _unpacking(call: Callable[..., Any]) -> Call:
    return lambda x: call(*x.args, **x.kwargs)


def _synced(call: Call, sync: Callable[[], Any]) -> Call:
    def synced(x: Any) -> Any:
        answer = call(x)
        sync()
        return answer

    return synced


def refuse_later(call: Any) -> None:
    """Raise TypeError if a call would only begin the work, as with a coroutine function or generator function."""
    inner = call
    while isinstance(inner, partial):
        inner = inner.func
    for function in (inner, getattr(type(inner), "__call__", None)):  # noqa: B004 the method itself, not whether
        if inspect.iscoroutinefunction(function):
            raise _later("a coroutine", call)
        if inspect.isasyncgenfunction(function):
            raise _later("an async generator", call)
        if inspect.isgeneratorfunction(function):
            raise _later("a generator", call)


def refuse_later_answer(answer: Any, call: Any) -> None:
    """Raise TypeError if a model's answer is a generator, future or coroutine, because its work is not done yet."""
    if inspect.isasyncgen(answer):
        raise _later("an async generator", call)
    kind = type(answer)
    if kind.__module__ == "multiprocessing.pool" and hasattr(answer, "get"):
        raise _later("a pool's result", call)
    if isinstance(answer, Iterator) and kind.__module__ in ("builtins", "itertools", "multiprocessing.pool"):
        raise _later(f"a {kind.__name__}", call)
    if isinstance(answer, Future):
        raise _later("a future", call)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()  # otherwise Python warns that the coroutine was never awaited
        raise _later("a coroutine" if inspect.iscoroutine(answer) else "an awaitable", call)


def _later(what: str, call: Any) -> TypeError:
    cures = {
        "an async generator": "asyncio.run(collect(model(x))), where collect is async and goes through it",
        "a coroutine": "asyncio.run(model(x))",
        "an awaitable": "asyncio.run(model(x)), where model is async and awaits it",
        "a future": "model(x).result()",
        "a pool's result": "model(x).get()",
    }
    cure = cures.get(what, "list(model(x))")
    return TypeError(
        f"{name_of(call)} gives {what}: its call returns before the work is done; measure lambda x: {cure}"
    )


def check_helper(role: str, function: Any) -> None:
    """Raise TypeError if a helper function, `setup` or `sync`, is not callable or is asynchronous."""
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"{role} is {function!r}; it must be a function")
    try:
        refuse_later(function)
    except TypeError:
        raise TypeError(
            f"{role} is asynchronous, and nobody awaits it; pass a function that does all its work"
        ) from None


def cuda_sync(runtime: Any = None) -> Callable[[], None]:
    """Return a function for ``sync=`` that calls cudaDeviceSynchronize, which waits until the GPU is done.

    `runtime` is a libcudart loaded by ctypes. By default, the function searches for libcudart. Raise RuntimeError if
    there is no CUDA runtime, or if the runtime finds no device.
    """
    if runtime is None:
        found = ctypes.util.find_library("cudart")
        names = [found] if found else ["libcudart.so", "libcudart.so.12", "libcudart.so.11.0", "cudart64_12.dll"]
        for name in names:
            with suppress(OSError):
                runtime = ctypes.CDLL(name)
                break
        else:
            raise RuntimeError(
                f"there is no CUDA runtime here (looked for {', '.join(names)}); install it, or pass the framework's "
                "own function, such as sync=torch.cuda.synchronize"
            )

    def sync() -> None:
        if code := runtime.cudaDeviceSynchronize():
            raise RuntimeError(f"cudaDeviceSynchronize failed with CUDA error {code}; is there a GPU with its driver?")

    sync()
    return sync


_COPIED = (np.ndarray, array, list, tuple, deque, dict, set, bytearray, arguments)
_ATOMS = (int, float, complex, str, bytes, NoneType, np.generic)
_MOST_BYTES, _MOST_ITEMS = 2**26, 100_000


def untouched_copy(x: Any) -> Any:
    """Return a deep copy of an input made of arrays, containers and plain values, for a later comparison.

    If the input is larger than 64 MiB or 100,000 items, or holds any other object, return the input itself. In this
    case, a copy could take too long, or could share objects with the original.
    """
    items, size, rest = 0, 0, [x]
    while rest:
        value = rest.pop()
        items, size = items + 1, size + int(getattr(value, "nbytes", 0))
        size += len(value) * value.itemsize if isinstance(value, array) else 0
        match value:
            case arguments():
                inner: Any = [*value.args, *value.kwargs.values()]
            case dict():
                inner = [*value.keys(), *value.values()]
            case list() | tuple() | deque() | set():
                inner = value
            case np.ndarray() if value.dtype.hasobject:
                return x
            case _ if isinstance(value, _COPIED + _ATOMS):
                inner = ()
            case _:
                return x
        if items + len(inner) > _MOST_ITEMS or size > _MOST_BYTES:
            return x
        rest += inner
    return deepcopy(x)


def same_content(a: Any, b: Any) -> bool:
    """Return whether an input still equals its copy. For a type that cannot be compared, return True."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    match a:
        case np.ndarray():
            return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())
        case arguments():
            return same_content([*a.args, a.kwargs], [*b.args, b.kwargs])
        case dict():
            return list(a) == list(b) and all(map(same_content, a.values(), b.values()))
        case list() | tuple() | deque():
            return len(a) == len(b) and all(map(same_content, a, b))
        case array():
            return bool(a.tobytes() == b.tobytes())  # NaN equals itself here
        case set() | bytearray() | int() | float() | complex() | str() | bytes():
            return bool(a == b)
    return True


def used_up(x: Any) -> bool:
    """Return whether an iterator, or an iterator in `arguments`, is exhausted. If it is not, consume one item."""
    each = [*x.args, *x.kwargs.values()] if isinstance(x, arguments) else [x]
    return any(isinstance(it, Iterator) and not hasattr(it, "seek") and next(it, each) is each for it in each)


def name_of(function: Any) -> str:
    """Return the name of a function for messages. If the function has no name, return the name of its type."""
    return str(getattr(function, "__name__", type(function).__name__))
