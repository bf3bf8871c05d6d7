"""Helpers for module 11: networks of two other families as ONNX graphs, and pipelines timed by stage in rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult

TOKENS, WIDTH, HEADS = 64, 128, 4  # of the transformer block


def convolutional_network(seed: int = 0) -> Any:
    """Return an untrained convolutional network as an ONNX graph, from images (n, 1, 28, 28) to 10 probabilities.

    The weights are random, which does not affect the speed.
    """
    shapes = {"K1": (16, 1, 3, 3), "c1": (16,), "K2": (32, 16, 3, 3), "c2": (32,), "W": (32 * 7 * 7, 10), "b": (10,)}
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    halve = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        ("Conv", "x K1 c1", "a", same),
        ("Relu", "a", "b1", {}),
        ("MaxPool", "b1", "c", halve),
        ("Conv", "c K2 c2", "d", same),
        ("Relu", "d", "e", {}),
        ("MaxPool", "e", "f", halve),
        ("Flatten", "f", "g", {}),
        ("Gemm", "g W b", "h", {}),
        ("Softmax", "h", "y", {}),
    ]
    return _graph(nodes, _random(shapes, seed), [1, 28, 28], [10])


def transformer_block(seed: int = 0) -> Any:
    """Return one untrained encoder block of a transformer as an ONNX graph, from and to arrays (n, 64, 128).

    It has four attention heads and a feed-forward part of 512 units (Vaswani and others, NeurIPS 2017). The weights are
    random, which does not affect the speed.
    """
    shapes = dict.fromkeys(("Q", "K", "V", "O"), (WIDTH, WIDTH)) | {"W1": (WIDTH, 4 * WIDTH), "W2": (4 * WIDTH, WIDTH)}
    tensors = _random(shapes, seed) | {
        "one": np.ones(WIDTH, np.float32),
        "shift": np.zeros(WIDTH, np.float32),
        "scale": np.float32((WIDTH // HEADS) ** -0.5),
        "heads": np.array([0, TOKENS, HEADS, WIDTH // HEADS]),
        "joined": np.array([0, TOKENS, WIDTH]),
    }
    nodes: list[tuple[str, str, str, dict[str, Any]]] = [("LayerNormalization", "x one shift", "n", {})]
    for name, order in (("Q", [0, 2, 1, 3]), ("K", [0, 2, 3, 1]), ("V", [0, 2, 1, 3])):
        nodes += [
            ("MatMul", f"n {name}", f"{name}1", {}),
            ("Reshape", f"{name}1 heads", f"{name}2", {}),
            ("Transpose", f"{name}2", f"{name}3", {"perm": order}),
        ]
    nodes += [
        ("MatMul", "Q3 K3", "s1", {}),
        ("Mul", "s1 scale", "s2", {}),
        ("Softmax", "s2", "s3", {}),
        ("MatMul", "s3 V3", "t1", {}),
        ("Transpose", "t1", "t2", {"perm": [0, 2, 1, 3]}),
        ("Reshape", "t2 joined", "t3", {}),
        ("MatMul", "t3 O", "t4", {}),
        ("Add", "x t4", "u", {}),
        ("LayerNormalization", "u one shift", "v", {}),
        ("MatMul", "v W1", "w1", {}),
        ("Relu", "w1", "w2", {}),
        ("MatMul", "w2 W2", "w3", {}),
        ("Add", "u w3", "y", {}),
    ]
    return _graph(nodes, tensors, [TOKENS, WIDTH], [TOKENS, WIDTH])


def _random(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, Any]:
    """Return normal numbers in float32, of a size that keeps sums of products near 1."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(0, np.prod(s[-2:] if name.isupper() else s) ** -0.5, s).astype(np.float32)
        for name, s in shapes.items()
    }


def _graph(nodes: Any, tensors: Mapping[str, Any], inputs: list[int], outputs: list[int]) -> Any:
    """Return an ONNX graph from x to y. Both have the batch as their first dimension."""
    from onnx import TensorProto, helper, numpy_helper

    made = [
        helper.make_node(operator, source.split(), [target], **options) for operator, source, target, options in nodes
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", *s]) for n, s in (("x", inputs), ("y", outputs))]
    stored = [numpy_helper.from_array(np.asarray(values), name) for name, values in tensors.items()]
    graph = helper.make_graph(made, "network", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def breakdown_rounds(
    time_breakdown: Callable[..., Mapping[str, BenchmarkResult]],
    versions: Mapping[str, Any],
    X: Any,
    rounds: int = 15,
    seed: int = 0,
) -> dict[str, dict[str, BenchmarkResult]]:
    """Return the time of each stage of each version of a pipeline, with one value for each round.

    Every round times all versions in an order shuffled again, so the values of a round form pairs. `time_breakdown` is
    the function that the student writes. A value is the median of 7 calls, which follow a warm-up before the rounds.
    """
    for version in versions.values():
        time_breakdown(version, X, runs=1)
    rng, names = np.random.default_rng(seed), list(versions)
    found: dict[str, list[Mapping[str, BenchmarkResult]]] = {name: [] for name in names}
    for _ in range(rounds):
        for index in rng.permutation(len(names)):
            found[names[index]].append(time_breakdown(versions[names[index]], X, runs=7, warmup_runs=0))
    return {
        name: {
            stage: BenchmarkResult("latency", [median(part[stage].values) for part in parts], unit="s")
            for stage in parts[0]
        }
        for name, parts in found.items()
    }
