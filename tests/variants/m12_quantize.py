"""Other honest solutions of module 12."""

VARIANTS = {
    "quantization_params": [
        ("grid_branches", """    if symmetric:
        scale = np.abs(tensor).max(**reduce) / (2 ** (bits - 1) - 1)
        low = np.zeros_like(scale)
    else:
        low = np.minimum(tensor.min(**reduce), 0)
        scale = (np.maximum(tensor.max(**reduce), 0) - low) / (2**bits - 1)
    scale = np.where(scale > 0, scale, 1.0)
    zero_point = np.rint(-low / scale).astype(np.int64)
    return QuantParams(scale, zero_point, bits, symmetric)
""", """    def safe(s):
        s = np.array(s)
        s[s == 0] = 1
        return s

    if symmetric is True:
        scale = safe(np.max(np.abs(tensor), **reduce) / float((1 << bits - 1) - 1))
        return QuantParams(scale=scale, zero_point=np.zeros(scale.shape, int), signed=True, bits=bits)
    smallest, largest = np.min(tensor, **reduce).clip(max=0), np.max(tensor, **reduce).clip(min=0)
    scale = safe((largest - smallest) / float((1 << bits) - 1))
    return QuantParams(scale, np.round(-smallest / scale).astype("int64"), bits)
"""),
        ("grid_plain_numbers", "    return QuantParams(scale, zero_point, bits, symmetric)\n",
         """    if axis is None:
        return QuantParams(scale=float(scale), zero_point=int(zero_point), bits=bits, signed=symmetric)
    return QuantParams(scale, zero_point, bits, symmetric)
"""),
        ("grid_squeezed", "    return QuantParams(scale, zero_point, bits, symmetric)\n",
         "    scale, zero_point = (np.ravel(a) if axis in (1, -1) else a for a in (scale, zero_point))\n"
         "    return QuantParams(scale, zero_point, bits, symmetric)\n"),
        ("grid_raveled_rows", "    return QuantParams(scale, zero_point, bits, symmetric)\n",
         "    scale, zero_point = (np.ravel(a) if axis is not None else a for a in (scale, zero_point))\n"
         "    return QuantParams(scale, zero_point, bits, symmetric)\n", "should not have the shape (30,)"),
    ],
    "quantize": [
        ("quantize_match", """    low, high = params.limits
    steps = np.rint(np.asarray(x, np.float64) / params.scale) + params.zero_point
    kind = np.int32 if params.bits > 8 else np.int8 if params.signed else np.uint8
    integers: np.ndarray = np.clip(steps, low, high).astype(kind)
    return integers
""", """    match params.bits > 8, params.signed:
        case True, _:
            kind = "int32"
        case _, True:
            kind = "int8"
        case _:
            kind = "uint8"
    q = np.round(np.array(x, dtype=float) / params.scale).astype(int) + params.zero_point
    return np.minimum(np.maximum(q, params.limits[0]), params.limits[1]).astype(kind)
"""),
        ("dequantize_int32", "    numbers: np.ndarray = (np.asarray(q, np.int64) - params.zero_point) * params.scale\n    return numbers\n",
         "    return np.multiply(np.subtract(np.array(q).astype(np.int32), params.zero_point), params.scale)\n"),
        ("quantize_out", "np.clip(steps, low, high).astype(kind)", "steps.clip(*params.limits, out=np.array(steps)).astype(dtype=kind)"),
        ("dequantize_floats", "(np.asarray(q, np.int64) - params.zero_point) * params.scale",
         "params.scale * np.asarray(q, float) - params.scale * params.zero_point"),
        ("quantize_listed", "    return integers\n", "    return integers.tolist()\n", "a NumPy array of uint8 expected, got list"),
    ],
    "sqnr": [
        ("sqnr_norms", """    tensor = check_tensor(x)
    noise = float(np.sum((tensor - dequantize(quantize_tensor(tensor, params), params)) ** 2))
    return 10 * float(np.log10(np.sum(tensor**2) / noise)) if noise else float("inf")
""", """    tensor = np.ravel(check_tensor(x))
    error = np.ravel(dequantize(quantize_tensor(x, params), params)) - tensor
    if not error.any():
        return math.inf
    return 20 * math.log10(np.linalg.norm(tensor) / np.linalg.norm(error))
"""),
        ("sqnr_infinite_numpy", """    noise = float(np.sum((tensor - dequantize(quantize_tensor(tensor, params), params)) ** 2))
    return 10 * float(np.log10(np.sum(tensor**2) / noise)) if noise else float("inf")
""", """    back = dequantize(quantize_tensor(tensor, params), params)
    signal, noise = np.mean(np.square(tensor)), np.mean(np.square(tensor - back))
    with np.errstate(divide="ignore"):
        return 10 * (np.log10(signal) - np.log10(noise))
"""),
    ],
    "answer_bits": [
        ("bits_rounded", "return 38 - 3 * 6.02", "return 20"),
    ],
    "int8_matmul": [
        ("matmul_einsum", """    left = a.astype(np.int32) - a_params.zero_point.astype(np.int32)
    right = w.astype(np.int32) - w_params.zero_point.astype(np.int32)
    sums = left @ right
    product: np.ndarray = sums * (a_params.scale * w_params.scale)
    return product
""", """    left = np.int32(a) - np.int32(a_params.zero_point)
    right = np.int32(w) - np.int32(w_params.zero_point)
    return np.einsum("nk,km->nm", left, right) * a_params.scale * w_params.scale
"""),
        ("matmul_corrected_afterwards", """    left = a.astype(np.int32) - a_params.zero_point.astype(np.int32)
    right = w.astype(np.int32) - w_params.zero_point.astype(np.int32)
    sums = left @ right
""", """    left, right = a.astype(int), w.astype(int)
    za, zw = a_params.zero_point, w_params.zero_point
    sums = left @ right - za * right.sum(axis=0) - left.sum(axis=1, keepdims=True) * zw + za * zw * left.shape[1]
"""),
        ("matmul_rows", "    sums = left @ right\n", "    sums = np.array([[np.dot(row, column) for column in right.T] for row in left])\n"),
        ("matmul_listed", "    return product\n", "    return [list(row) for row in product]\n"),
    ],
    "integer_operators": [
        ("operators_nested_ifs", """        real = node.op_type in INTEGER_OPERATORS
        if node.op_type in LINEAR_OPERATORS:
            (first, quantized), (second, _) = maker(node.input[0]), maker(node.input[1])
            before, _ = maker(quantized)
            real = (before, first, second) == ("QuantizeLinear", "DequantizeLinear", "DequantizeLinear")
        if real:
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
""", """        if node.op_type in INTEGER_OPERATORS:
            counts.setdefault(node.op_type, 0)
            counts[node.op_type] += 1
            continue
        if node.op_type not in LINEAR_OPERATORS:
            continue
        x, w = maker(node.input[0]), maker(node.input[1])
        if not x[0] == w[0] == "DequantizeLinear":
            continue
        if maker(x[1])[0] == "QuantizeLinear":
            counts.setdefault(node.op_type, 0)
            counts[node.op_type] += 1
"""),
        ("operators_by_nodes", "before, _ = maker(quantized)",
         'before = next((n.op_type for n in graph.node if quantized in n.output), "")'),
    ],
    "saturating_matmul": [
        ("saturating_padded", """    for k in range(0, a.shape[1], 2):
        sums += np.clip(left[:, k : k + 2] @ right[k : k + 2], -(2**15), 2**15 - 1)
""", """    odd = left.shape[1] % 2
    left, right = np.pad(left, ((0, 0), (0, odd))), np.pad(right, ((0, odd), (0, 0)))
    pairs = left[:, ::2, None] * right[::2] + left[:, 1::2, None] * right[1::2]
    info = np.iinfo(np.int16)
    sums[:] = pairs.clip(info.min, info.max).sum(axis=1)
"""),
        ("saturating_loops", "sums += np.clip(left[:, k : k + 2] @ right[k : k + 2], -(2**15), 2**15 - 1)",
         """for i, row in enumerate(left):
            for j, column in enumerate(right.T):
                pair = sum(int(x) * int(y) for x, y in zip(row[k : k + 2], column[k : k + 2]))
                sums[i, j] += max(-32768, min(pair, 32767))"""),
    ],
    "clipped_share": [
        ("clipped_by_range", """    low, high = (dequantize(np.array(limit), params) for limit in params.limits)
    tensor = check_tensor(x)
    return float(np.mean((tensor < low - params.scale / 2) | (tensor > high + params.scale / 2)))
""", """    low, high = params.limits
    steps = check_tensor(x) / params.scale + params.zero_point
    beyond = np.logical_or(steps < low - 0.5, steps > high + 0.5)
    return np.count_nonzero(beyond) / beyond.size
"""),
        ("clipped_counted", "float(np.mean((tensor < low - params.scale / 2) | (tensor > high + params.scale / 2)))",
         "1 - np.mean((tensor >= low - params.scale / 2) & (tensor <= high + params.scale / 2))"),
    ],
    "int8_pays": [
        ("pays_unpacked", """    if loss_ci[1] < max_loss and ratio_ci[1] < 1 - min_gain:
        return "pays"
    if loss_ci[0] >= max_loss or ratio_ci[0] >= 1 - min_gain:
        return "does not pay"
    return "undecided"
""", """    (least, most), (fast, slow) = loss_ci, ratio_ci
    limit = 1 - min_gain
    if least >= max_loss or fast >= limit:
        verdict = "does not pay"
    elif most < max_loss and slow < limit:
        verdict = "pays"
    else:
        verdict = "undecided"
    return verdict
"""),
    ],
    "answer_understanding": [
        ("understanding_numpy", "return 0.02 * (75 - 50)", "return np.float32(0.02) * (np.uint8(75) - np.uint8(50))"),
        ("understanding_int", "return 0.0\n", "return 0\n"),
    ],
}  # fmt: skip
