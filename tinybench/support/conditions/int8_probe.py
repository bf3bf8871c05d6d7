"""A probe of 8-bit integer matrix multiplication in ONNX Runtime on this machine: exact, saturating or unsupported."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def integer_products() -> dict[str, str]:
    """Return how ONNX Runtime multiplies 8-bit integer matrices here, by pairs of types such as ``"uint8 × int8"``.

    A value is ``"exact"``, ``"saturating"`` or ``"unsupported"`` (this build of ONNX Runtime cannot multiply these
    types). x86 processors with AVX2 but without VNNI saturate because they add pairs of products in 16 bits. The probe
    multiplies matrices that are filled with the largest number of each type. The result is cached.
    """
    import onnxruntime
    from onnx import helper

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    found = {}
    for a_type in (np.uint8, np.int8):
        for w_type in (np.uint8, np.int8):
            a, w = np.full((2, 64), np.iinfo(a_type).max, a_type), np.full((64, 16), np.iinfo(w_type).max, w_type)
            ends = [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
                for name, dtype, shape in (("a", a_type, a.shape), ("w", w_type, w.shape), ("y", np.int32, (2, 16)))
            ]
            graph = helper.make_graph(
                [helper.make_node("MatMulInteger", ["a", "w"], ["y"])], "probe", ends[:2], ends[2:]
            )
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
            try:
                session = onnxruntime.InferenceSession(
                    model.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
                sums = session.run(None, {"a": a, "w": w})[0]
            except Exception:  # ONNX Runtime's errors have no common base class
                kind = "unsupported"
            else:
                kind = "exact" if np.array_equal(sums, a.astype(np.int64) @ w.astype(np.int64)) else "saturating"
            found[f"{np.dtype(a_type)} × {np.dtype(w_type)}"] = kind
    return found
