"""Helpers for module 05: a fake process, memory measurements that miss short peaks, and models that leak."""

from __future__ import annotations

import atexit
import mmap
import os
import random
import shutil
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

MiB = 2**20
HAS_MARK = os.access("/proc/self/clear_refs", os.W_OK)
LINUX_ONLY = "This cell needs the high-water mark of Linux, which this system does not have: go on to the next."


def new_folder() -> Path:
    """Create a temporary folder that is deleted when Python exits."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class FakeProcess:
    """A fake /proc tree of plain files below `root`, for checks on any system. A check sets the memory in KiB."""

    def __init__(self, rss: int = 50_000) -> None:
        self.root = new_folder()
        (self.root / "self").mkdir()
        self.status, self.orders = self.root / "self" / "status", self.root / "self" / "clear_refs"
        self.rss = self.peak = rss
        self.orders.write_text("")
        self.write()

    def write(self, without: str = "none") -> None:
        """Write the status file without the field named `without`. By default, write all fields."""
        fields = {"VmPeak": 9_999_999, "VmHWM": self.peak, "VmRSS": self.rss, "RssAnon": self.rss // 2}
        lines = [f"{name}:\t {kib:8d} kB" for name, kib in fields.items() if name != without]
        self.status.write_text("\n".join(["Name:\tpython", *lines, "Threads:\t1", ""]))

    def use(self, peak: int, kept: int = 0) -> None:
        """Simulate a process that allocates `peak` KiB and frees all but `kept` KiB.

        If the file clear_refs contains 5, first reset the peak, as Linux does.
        """
        if self.orders.read_text().strip() == "5":
            self.peak = self.rss
        self.orders.write_text("")
        self.peak = max(self.peak, self.rss + peak)
        self.rss += kept
        self.write()


class ArenaSession:
    """A stand-in for an ONNX Runtime session. Its `_sess` is "warm" if the memory arena is on, else "frugal"."""

    def __init__(self, source: str, options: Any, providers: Any = ()) -> None:
        self._model_path, self.options = source, options
        self._sess = "warm" if options.enable_cpu_mem_arena else "frugal"

    def get_session_options(self) -> Any:
        """Return the options with which the session was created."""
        return self.options

    def get_providers(self) -> list[str]:
        """Return the names of the execution providers."""
        return ["CPUExecutionProvider"]


def external_model(folder: Path, weights: int) -> Path:
    """Write an ONNX model with `weights` bytes of weights in a separate file, and return the model's path."""
    from onnx import TensorProto, helper

    weight = TensorProto(name="w", dims=[weights // 4], data_type=TensorProto.FLOAT)
    weight.data_location = TensorProto.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [weights // 4])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [value], [weight])
    (folder / "weights.bin").write_bytes(bytes(weights))
    (folder / "model.onnx").write_bytes(helper.make_model(graph, ir_version=10).SerializeToString())
    return folder / "model.onnx"


def digits_model() -> tuple[Any, Path, Any]:
    """Return a network with 512 hidden neurons, a folder with the network in two files, and images of digits.

    The files are ``digits.onnx`` and ``digits.pickle``.
    """
    import pickle
    import warnings

    import numpy as np
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a little training is enough here
        network = MLPClassifier((512,), max_iter=2, random_state=0).fit(X[:300], y[:300])
    folder = new_folder()
    (folder / "digits.onnx").write_bytes(to_onnx(network, X[:1], options={"zipmap": False}).SerializeToString())
    (folder / "digits.pickle").write_bytes(pickle.dumps(network))
    return network, folder, X


def open_session(path: Any, arena: bool = True) -> Any:
    """Return an ONNX Runtime session that uses one thread. `arena` turns its memory arena on or off."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena, options.intra_op_num_threads = arena, 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def open_pickle(path: str) -> Any:
    """Load a model from a pickle file."""
    import pickle

    with open(path, "rb") as file:
        return pickle.load(file)


def resident_now() -> int:
    """Return the resident memory of this process in bytes, on any system."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def before_and_after(call: Callable[[Any], Any], x: Any = None) -> int:
    """Return by how many bytes the resident memory has grown after a call. If the memory has shrunk, return 0."""
    start = resident_now()
    call(x)
    return max(0, resident_now() - start)


def traced(call: Callable[[Any], Any], x: Any = None) -> int:
    """Return the peak memory of one call in bytes, as measured by tracemalloc."""
    tracemalloc.start()
    call(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def peak_seen_by_thread(call: Callable[[Any], Any], x: Any = None, every: float = 0.010) -> int:
    """Return the largest growth of resident memory, in bytes, that a second thread sees during a call.

    The second thread samples the memory every `every` seconds, so it can miss a short peak.
    """
    start, largest, done = resident_now(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(every):
            largest[0] = max(largest[0], resident_now() - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    time.sleep(random.uniform(0, every))  # the call starts at a random time between two samples
    call(x)
    done.set()
    watcher.join()
    return largest[0]


def watched_closely(call: Callable[[Any], Any], x: Any = None) -> int:
    """Return the peak growth in bytes as `peak_seen_by_thread` does, with a sample every millisecond."""
    return peak_seen_by_thread(call, x, 0.001)


def touched(size: int) -> None:
    """Allocate `size` bytes from the kernel, write to each memory page, and free the memory."""
    with mmap.mmap(-1, size) as block:
        block[:: mmap.PAGESIZE] = b"\1" * -(-size // mmap.PAGESIZE)


def c_transient(_: Any = None) -> None:
    """Allocate 64 MiB in C, write to every byte, hold the memory for a millisecond, and free it."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.aligned_alloc.restype, libc.aligned_alloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * 2
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.memset.argtypes, libc.free.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t], [ctypes.c_void_p]
    block = libc.aligned_alloc(2 * MiB, 64 * MiB)
    libc.madvise(block, 64 * MiB, 14)  # pages of 2 MiB if the system has them, for faster writing
    libc.memset(block, 1, 64 * MiB)
    libc.usleep(1000)
    libc.free(block)


class Hoarder:
    """A leaking model, which keeps a copy of each input."""

    def __init__(self) -> None:
        self.cache = list[Any]()

    def predict(self, x: Any) -> Any:
        """Return the sum of the input, and keep a copy of the input."""
        self.cache.append(x.copy())
        return x.sum()


class LateTable:
    """A model that allocates a table of 2 MB once, in its 100th call."""

    def __init__(self) -> None:
        self.calls, self.table = 0, b""

    def predict(self, x: Any) -> Any:
        """Return the sum of the input. In the 100th call, allocate the table."""
        self.calls += 1
        if self.calls == 100:
            self.table = b"1" * 2_000_000
        return x.sum()


def numpy_transient(mebibytes: int) -> float:
    """Allocate a NumPy array of `mebibytes` MiB, and return the sum of its values. The array is then freed."""
    import numpy as np

    return float(np.ones(mebibytes * MiB // 8).sum())
