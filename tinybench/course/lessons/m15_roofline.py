"""Helpers for the rooflines of module 15: networks, rows, the time of a call, and what INT8 can bring."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tinybench.tools.roofline.roofs import Roofs


def write_networks(folder: Path, sizes: Sequence[int], seed: int = 0) -> dict[str, Path]:
    """Write a network as a float32 file and as an INT8 file, and return their paths by type.

    The weights are random, which does not affect the speed.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from tinybench.quantize import quantize_static_int8

    rng, nodes, weights = np.random.default_rng(seed), [], []
    for layer, (k, n) in enumerate(pairwise(sizes)):
        drawn = rng.normal(0, (2 / k) ** 0.5, (k, n)).astype(np.float32)
        weights += [
            numpy_helper.from_array(drawn, f"w{layer}"),
            numpy_helper.from_array(np.zeros(n, np.float32), f"b{layer}"),
        ]
        last = layer == len(sizes) - 2
        source, target = "x" if layer == 0 else f"h{layer}", "y" if last else f"h{layer + 1}"
        product = target if last else f"p{layer}"
        nodes.append(helper.make_node("Gemm", [source, f"w{layer}", f"b{layer}"], [product]))
        if not last:
            nodes.append(helper.make_node("Relu", [product], [target]))
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])
        for name, width in (("x", sizes[0]), ("y", sizes[-1]))
    )
    graph = helper.make_graph(nodes, "network", [x], [y], weights)
    files = {"FP32": folder / "network.onnx", "INT8": folder / "network_int8.onnx"}
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), files["FP32"])
    quantize_static_int8(files["FP32"], rows(sizes[0], 64), files["INT8"], overwrite=True)
    return files


def rows(width: int, number: int, seed: int = 1) -> np.ndarray:
    """Return `number` rows of `width` random inputs."""
    return np.random.default_rng(seed).normal(size=(number, width)).astype(np.float32)


def why_int8(roofs: Roofs, products: Mapping[str, str]) -> str:
    """Explain how much faster INT8 can be on this machine, and why.

    `roofs` are the measured peaks. `products` states the kind of arithmetic that multiplies the integers, such as
    saturating.
    """
    kind = products.get("uint8 × int8", "unsupported")
    if kind == "unsupported" or "uint8 × int8" not in roofs.peaks:
        return (
            "This build of the runtime has no product of uint8 and int8, so INT8 can bring nothing but a smaller file."
        )
    times = roofs.peak("int8") / roofs.peak("float32")
    if kind == "saturating":
        how = "it saturates: pairs are added in 16 bits, as x86 processors with AVX2 and without VNNI do it"
    else:
        how = "it is exact: VNNI, AMX and ARM's dot products are, and so are slower ways"
    return (
        f"The product of uint8 and int8 has {times:.2g} times the peak of float32 here; {how}. So at the compute wall "
        f"INT8 can bring {times:.2g} times the speed; at the memory wall 4 times, more if it fits into a nearer cache."
    )


def seconds_of(call: Callable[[], Any], rounds: int = 7) -> float:
    """Return the median seconds of a call, after one warm-up call."""
    call()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return median(times)


def of_its_roof(share: float) -> str:
    """Return a share of a roof as text. A share above 1 means that the roof was measured too low."""
    return f"{share:.0%} of its roof" if share <= 1 else "its roof, within the error of the two measurements"
