"""Other honest solutions of module 13."""

SMALLEST = """        W = layer.W.copy()
        smallest = np.argsort(np.abs(W), axis=None, kind="stable")[: round(sparsity * W.size)]
        W.flat[smallest] = 0
        pruned.append(Layer(W, layer.b, layer.relu))
"""
UNITS = """        importance = np.linalg.norm(layers[i].W, axis=0) * np.linalg.norm(layers[i + 1].W, axis=1)
        stay = max(1, importance.size - round(fraction * importance.size))
        kept = np.sort(np.argsort(-importance, kind="stable")[:stay])
        here, after = pruned[i], pruned[i + 1]
        pruned[i] = Layer(here.W[:, kept], here.b[kept], here.relu)
        pruned[i + 1] = Layer(after.W[kept], after.b, after.relu)
"""
FACTORS = """    U, sizes, V = np.linalg.svd(layer.W, full_matrices=False)
    root = np.sqrt(sizes[:rank])
    first = Layer(U[:, :rank] * root, np.zeros(rank, layer.W.dtype), relu=False)
    return [first, Layer(root[:, None] * V[:rank], layer.b, layer.relu)]
"""
LOG_SOFTMAX = """    z = np.asarray(scores) / temperature
    z = z - z.max(axis=1, keepdims=True)
    logs: np.ndarray = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return logs
"""
LOSS = """    hard = -log_softmax(scores)[rows, labels].mean()
    if teacher is None:
        return float(hard)
    soft = -(softmax(teacher, temperature) * log_softmax(scores, temperature)).sum(axis=1).mean()
    return float((1 - share) * hard + share * temperature**2 * soft)
"""
SLOPE = """    slope = softmax(scores)
    slope[rows, labels] -= 1
    if teacher is not None:
        soft = softmax(scores, temperature) - softmax(teacher, temperature)
        slope = (1 - share) * slope + share * temperature * soft
    return slope / len(rows)
"""
RECORD = """    for each in measurements:
        if (each.name_a, each.name_b) != (name, self.baseline):
            wanted = f"this entry is about {name} against the kept baseline {self.baseline}"
            raise ValueError(f"measured was {each.name_a} against {each.name_b}; {wanted}")
    if verdict != "undecided" and not any(decided(each) for each in measurements):
        raise ValueError(f"{verdict!r} needs a significant measurement; measure longer, or record it as 'undecided'")
"""
VARIANTS = {
    "prune_weights": [
        ("prune_mask", SMALLEST, """        flat = np.ravel(layer.W)
        keep = np.ones(flat.shape, dtype=bool)
        keep[np.abs(flat).argsort()[: int(round(sparsity * flat.size))]] = False
        pruned += [layer._replace(W=np.where(keep, flat, 0).reshape(layer.W.shape))]
"""),
        ("prune_heap", SMALLEST, """        import heapq

        rows, columns = layer.W.shape
        places = [(i, j) for i in range(rows) for j in range(columns)]
        new = np.array(layer.W)
        for i, j in heapq.nsmallest(round(sparsity * rows * columns), places, key=lambda at: abs(layer.W[at])):
            new[i, j] = 0.0
        pruned.append(Layer(W=new, b=layer.b.copy(), relu=layer.relu))
"""),
        ("prune_partition", "np.argsort(np.abs(W), axis=None, kind=\"stable\")[: round(sparsity * W.size)]",
         "np.argpartition(np.abs(W).ravel(), min(round(sparsity * W.size), W.size - 1))[: round(sparsity * W.size)]"),
        ("prune_lists", "Layer(W, layer.b, layer.relu)", "Layer(W.tolist(), list(layer.b), bool(layer.relu))"),
        ("prune_pairs", "pruned.append(Layer(W, layer.b, layer.relu))", "pruned.append((W, layer.b, layer.relu))",
         "no attribute 'W'"),
    ],
    "prune_units": [
        ("units_sorted", UNITS, """        def importance(unit):
            return math.hypot(*layers[i].W[:, unit]) * math.hypot(*layers[i + 1].W[unit])

        units = layers[i].W.shape[1]
        ranked = sorted(range(units), key=importance, reverse=True)
        kept = sorted(ranked[: max(units - round(fraction * units), 1)])
        W, b, relu = pruned[i]
        pruned[i] = Layer(W[:, kept], b[kept], relu)
        pruned[i + 1] = pruned[i + 1]._replace(W=pruned[i + 1].W[kept, :])
"""),
        ("units_deleted", UNITS, """        squares = (layers[i].W ** 2).sum(0) * np.einsum("uv,uv->u", layers[i + 1].W, layers[i + 1].W)
        gone = np.argsort(squares)[: min(round(fraction * squares.size), squares.size - 1)]
        pruned[i] = Layer(np.delete(pruned[i].W, gone, axis=1), np.delete(pruned[i].b, gone), pruned[i].relu)
        pruned[i + 1] = Layer(np.delete(pruned[i + 1].W, gone, 0), pruned[i + 1].b, pruned[i + 1].relu)
"""),
        ("units_lists", "Layer(here.W[:, kept], here.b[kept], here.relu)",
         "Layer(here.W[:, kept].tolist(), here.b[kept].tolist(), here.relu)"),
        ("units_in_a_loop", "np.linalg.norm(layers[i].W, axis=0) * np.linalg.norm(layers[i + 1].W, axis=1)",
         "np.array([np.sqrt(sum(layers[i].W[:, u] ** 2) * sum(layers[i + 1].W[u] ** 2)) for u in range(layers[i].b.size)])"),
    ],
    "answer_units": [
        ("units_by_layer", "return (784 * 256 + 256 * 128 + 128 * 10) / (784 * 512 + 512 * 256 + 256 * 10)",
         "def work(*n):\n        return sum(map(math.prod, zip(n, n[1:])))\n\n    return work(784, 256, 128, 10) / work(784, 512, 256, 10)"),
        ("units_rounded", "return (784 * 256 + 256 * 128 + 128 * 10) / (784 * 512 + 512 * 256 + 256 * 10)", "return 0.439"),
    ],
    "factorise": [
        ("factors_scipy", FACTORS, """    from scipy import linalg

    U, s, Vt = linalg.svd(layer.W, full_matrices=False)
    D = np.diag(s[:rank] ** 0.5)
    return Layer(U[:, :rank] @ D, np.zeros(rank), False), Layer(D @ Vt[:rank, :], layer.b, layer.relu)
"""),
        ("factors_other_signs", "U, sizes, V = np.linalg.svd(layer.W, full_matrices=False)",
         "U, sizes, V = np.linalg.svd(layer.W)\n    U, V = -U, -V"),
    ],
    "log_softmax": [
        ("softmax_scipy", LOG_SOFTMAX, "    from scipy import special\n\n    return special.log_softmax(np.divide(scores, temperature), axis=-1)\n"),
        ("softmax_rows", LOG_SOFTMAX, """    result = np.empty(np.shape(scores))
    for i, row in enumerate(np.array(scores, dtype=float)):
        row = (row - max(row)) / temperature
        result[i] = row - math.log(math.fsum(np.exp(row)))
    return result
"""),
        ("softmax_logs", LOG_SOFTMAX, """    from scipy.special import logsumexp

    z = np.true_divide(scores, temperature)
    return z - logsumexp(z, axis=1)[:, np.newaxis]
"""),
    ],
    "distillation": [
        ("loss_logs", LOSS, """    from scipy.special import log_softmax, softmax as soft_max

    hard = np.mean([-row[label] for row, label in zip(log_softmax(scores, axis=1), labels)])
    if teacher is not None:
        told, guessed = soft_max(np.asarray(teacher) / temperature, axis=1), log_softmax(np.asarray(scores) / temperature, axis=1)
        return share * temperature * temperature * np.mean(np.sum(-told * guessed, 1)) + hard * (1 - share)
    return hard
"""),
        ("loss_picked", "hard = -log_softmax(scores)[rows, labels].mean()",
         "picked = np.take_along_axis(log_softmax(scores), np.reshape(labels, (-1, 1)), axis=1)\n    hard = picked.sum() / -len(labels)"),
    ],
    "distillation_gradient": [
        ("slope_one_hot", SLOPE, """    p = softmax(scores)
    hard = p - np.eye(p.shape[1])[np.asarray(labels)]
    if teacher is None:
        return hard / len(p)
    return ((1 - share) * hard - share * temperature * (softmax(teacher, temperature) - softmax(scores, temperature))) / len(p)
"""),
        ("slope_listed", "return slope / len(rows)", "return [[each / len(rows) for each in row] for row in slope]"),
    ],
    "record": [
        ("record_listed", RECORD, """    strangers = [each for each in measurements if each.name_a != name or each.name_b != self.baseline]
    if strangers:
        raise ValueError("not of this entry: " + ", ".join(f"{each.name_a} vs. {each.name_b}" for each in strangers))
    if verdict in ("keep", "reject") and True not in [decided(each) for each in measurements]:
        raise ValueError("no measurement is decided")
"""),
    ],
    "answer_understanding": [
        ("understanding_longer", 'return "undecided"', 'return "undecided: not established over 2 seeds"'),
        ("understanding_softmax", "return 1 / (1 + math.exp(-8 / 4))", "return softmax([[8, 0]], 4)[0, 0]"),
        ("understanding_rounded", "return 1 / (1 + math.exp(-8 / 4))", "return round(1 / (1 + math.exp(-2)), 3)"),
    ],
}  # fmt: skip
