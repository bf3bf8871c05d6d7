"""Wrong solutions of module 12."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("affine_256", "quantization_params", "(2**bits - 1)", "2**bits"),
    Mutant("symmetric_128", "quantization_params", "(2 ** (bits - 1) - 1)", "2 ** (bits - 1)"),
    Mutant(
        "range_without_zero_below", "quantization_params", "np.minimum(tensor.min(**reduce), 0)", "tensor.min(**reduce)"
    ),
    Mutant(
        "range_without_zero_above", "quantization_params", "np.maximum(tensor.max(**reduce), 0)", "tensor.max(**reduce)"
    ),
    Mutant("symmetric_by_max", "quantization_params", "np.abs(tensor).max(**reduce)", "tensor.max(**reduce)"),
    Mutant("per_tensor_always", "quantization_params", "np.abs(tensor).max(**reduce)", "np.abs(tensor).max()"),
    Mutant("zero_scale", "quantization_params", "np.where(scale > 0, scale, 1.0)", "scale + 1e-300"),
    Mutant("zero_point_truncated", "quantization_params", "np.rint(-low / scale)", "np.floor(-low / scale)"),
    Mutant("zero_point_sign", "quantization_params", "np.rint(-low / scale)", "np.rint(low / scale)"),
    Mutant(
        "bits_lost",
        "quantization_params",
        "QuantParams(scale, zero_point, bits, symmetric)",
        "QuantParams(scale, zero_point, 8, symmetric)",
    ),
    Mutant(
        "quantize_truncates",
        "quantize",
        "np.rint(np.asarray(x, np.float64) / params.scale)",
        "np.floor(np.asarray(x, np.float64) / params.scale)",
    ),
    Mutant(
        "quantize_half_up",
        "quantize",
        "np.rint(np.asarray(x, np.float64) / params.scale)",
        "np.floor(np.asarray(x, np.float64) / params.scale + 0.5)",
    ),
    Mutant(
        "quantize_wraps", "quantize", "np.clip(steps, low, high).astype(kind)", "steps.astype(np.int64).astype(kind)"
    ),
    Mutant("quantize_no_zero_point", "quantize", " + params.zero_point", ""),
    Mutant("quantize_always_uint8", "quantize", "np.int8 if params.signed else np.uint8", "np.uint8"),
    Mutant("quantize_narrow", "quantize", "np.int32 if params.bits > 8 else ", ""),
    Mutant(
        "dequantize_wraps",
        "quantize",
        "(np.asarray(q, np.int64) - params.zero_point)",
        "(np.asarray(q) - params.zero_point.astype(np.asarray(q).dtype))",
    ),
    Mutant(
        "dequantize_no_zero_point",
        "quantize",
        "(np.asarray(q, np.int64) - params.zero_point) * params.scale",
        "np.asarray(q, np.int64) * params.scale",
    ),
    Mutant("sqnr_amplitude", "sqnr", "10 * float(np.log10(", "20 * float(np.log10("),
    Mutant("sqnr_absolute", "sqnr", "params)) ** 2))", "params)).__abs__()))"),
    Mutant("sqnr_natural", "sqnr", "np.log10(", "np.log("),
    Mutant("sqnr_of_exact_is_zero", "sqnr", 'float("inf")', "0.0"),
    Mutant("answer_two_bits", "answer_bits", "38 - 3 * 6.02", "38 - 5 * 6.02"),
    Mutant("answer_four_times", "answer_bits", "4 * 784 * 512 / (784 * 512 + 4 * 512)", "4.0"),
    Mutant(
        "matmul_in_int8",
        "int8_matmul",
        "sums = left @ right",
        "sums = (left.astype(np.int8) @ right.astype(np.int8)).astype(np.int32)",
    ),
    Mutant(
        "matmul_in_int16", "int8_matmul", "sums = left @ right", "sums = left.astype(np.int16) @ right.astype(np.int16)"
    ),
    Mutant(
        "matmul_no_zero_point",
        "int8_matmul",
        "a.astype(np.int32) - a_params.zero_point.astype(np.int32)",
        "a.astype(np.int32)",
    ),
    Mutant(
        "matmul_no_weight_zero_point",
        "int8_matmul",
        "w.astype(np.int32) - w_params.zero_point.astype(np.int32)",
        "w.astype(np.int32)",
    ),
    Mutant("matmul_one_scale", "int8_matmul", "a_params.scale * w_params.scale", "w_params.scale"),
    Mutant(
        "matmul_subtracts_narrow",
        "int8_matmul",
        "a.astype(np.int32) - a_params.zero_point.astype(np.int32)",
        "(a - a_params.zero_point.astype(a.dtype)).astype(np.int32)",
    ),
    Mutant("operators_by_name_only", "integer_operators", "if node.op_type in _LINEAR_OPERATORS:", "if False:"),
    Mutant(
        "operators_weights_suffice",
        "integer_operators",
        'before is not None and before.op_type == "QuantizeLinear"',
        "any(n is not None for n in (first, second))",
    ),
    Mutant("operators_any_qdq", "integer_operators", "both = all(", "both = any("),
    Mutant(
        "operators_quantize_not_needed",
        "integer_operators",
        'real = before is not None and before.op_type == "QuantizeLinear"',
        "real = both",
    ),
    Mutant("operators_counted_once", "integer_operators", "counts.get(node.op_type, 0) + 1", "1"),
    Mutant(
        "verdict_by_size",
        "integer_operators",
        "all(np.array_equal(before[name], after[name]) for name in before)",
        "True",
    ),
    Mutant(
        "verdict_kinds",
        "integer_operators",
        "sum(integer_operators(quantized).values())",
        "len(integer_operators(quantized))",
    ),
    Mutant(
        "verdict_of_original",
        "integer_operators",
        "sum(integer_operators(quantized).values())",
        "sum(integer_operators(original).values())",
    ),
    Mutant(
        "dynamic_copy",
        "quantize_dynamic_int8",
        "quantize_dynamic(source, target, weight_type=QuantType.QInt8)",
        "target.write_bytes(source.read_bytes())",
    ),
    Mutant("dynamic_uint8", "quantize_dynamic_int8", "QuantType.QInt8", "QuantType.QUInt8"),
    Mutant(
        "dynamic_first_only",
        "quantize_dynamic_int8",
        "weight_type=QuantType.QInt8)",
        'weight_type=QuantType.QInt8, op_types_to_quantize=["Gemm"])',
    ),
    Mutant("clip_one_side", "clipped_share", "(tensor < low - params.scale / 2) | ", ""),
    Mutant("clip_no_half_step", "clipped_share", "tensor > high + params.scale / 2", "tensor > high"),
    Mutant("clip_count", "clipped_share", "float(np.mean((", "float(np.sum(("),
    Mutant("rows_repeat", "clipped_share", "self.start += self.batch", "self.start += self.batch - 1 or 1"),
    Mutant("rows_float64", "clipped_share", "np.asarray(rows, np.float32)", "np.asarray(rows, np.float64)"),
    Mutant("rows_drop_last", "clipped_share", "if len(rows) else None", "if len(rows) == self.batch else None"),
    Mutant("rows_fixed_name", "clipped_share", "{self.name: ", '{"x": '),
    Mutant("pays_by_best_end", "int8_pays", "ratio_ci[1] < 1 - min_gain", "ratio_ci[0] < 1 - min_gain"),
    Mutant("pays_without_accuracy", "int8_pays", "loss_ci[1] < max_loss and ", ""),
    Mutant("pays_never_undecided", "int8_pays", 'return "undecided"', 'return "does not pay"'),
    Mutant("pays_fixed_limit", "int8_pays", "ratio_ci[1] < 1 - min_gain", "ratio_ci[1] < 0.8"),
    Mutant(
        "claim_by_middle", "int8_pays", "low <= interval[0] and interval[1] <= high", "low <= sum(interval) / 2 <= high"
    ),
    Mutant(
        "claim_overlap",
        "int8_pays",
        "low <= interval[0] and interval[1] <= high",
        "low <= interval[1] and interval[0] <= high",
    ),
    Mutant("claim_swapped", "int8_pays", 'return "more than claimed"', 'return "less than claimed"'),
    Mutant("rate_per_call", "rates", "return batch_size / latency,", "return 1 / latency,"),
    Mutant(
        "bandwidth_weights_each_row",
        "rates",
        "weight_bytes + batch_size * row_bytes",
        "batch_size * (weight_bytes + row_bytes)",
    ),
    Mutant("bandwidth_one_row", "rates", "batch_size * row_bytes", "row_bytes"),
    Mutant("answer_gain", "answer_understanding", "return 0.0\n", "return 6.0\n"),
    Mutant("answer_pays", "answer_understanding", '"undecided"', '"pays"'),
    Mutant("answer_no_zero_point", "answer_understanding", "0.02 * (75 - 50)", "0.02 * 75"),
]
