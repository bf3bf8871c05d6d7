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
SOFTMAX = """    z = np.asarray(scores) / temperature
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    probabilities: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return probabilities
"""
LOSS = """    hard = -np.log(softmax(scores)[rows, labels]).mean()
    if teacher is None:
        return float(hard)
    soft = -(softmax(teacher, temperature) * np.log(softmax(scores, temperature))).sum(axis=1).mean()
    return float((1 - share) * hard + share * temperature**2 * soft)
"""
SLOPE = """    slope = softmax(scores)
    slope[rows, labels] -= 1
    if teacher is not None:
        soft = softmax(scores, temperature) - softmax(teacher, temperature)
        slope = (1 - share) * slope + share * temperature * soft
    return slope / len(rows)
"""
VERDICT = """    if margin > 0 and lows.min() >= -margin and highs.max() <= margin:
        return "equivalent"
    if lows.min() > 0:
        return "higher"
    if highs.max() < 0:
        return "lower"
    return f"undecided: not established over {len(ends)} seeds"
"""
CHANGES = """    names = sorted(before.keys() | after.keys())
    pairs = {name: (before.get(name, "none"), after.get(name, "none")) for name in names}
    return [f"{name}: {old} → {new}" for name, (old, new) in pairs.items() if old != new]
"""
RECORD = """    for each in measurements:
        if (each.name_a, each.name_b) != (name, self.baseline):
            wanted = f"this entry is about {name} against the kept baseline {self.baseline}"
            raise ValueError(f"measured was {each.name_a} against {each.name_b}; {wanted}")
    if verdict != "undecided" and not any(decided(each) for each in measurements):
        raise ValueError(f"{verdict!r} needs a significant measurement; measure longer, or record it as 'undecided'")
    entry = Entry(name, self.baseline, hypothesis, changed[0], tuple(str(each) for each in measurements), verdict)
    self.entries.append(entry)
    if verdict == "keep":
        self.baseline, self.settings = name, dict(settings)
    return entry
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
    "answer_sparse": [
        ("sparse_numpy", "return 4 / (0.1 * 8)", "return np.float32(40) / np.float32(8)"),
        ("break_even_fraction", "return 0.5", "from fractions import Fraction\n\n    return Fraction(1, 2)"),
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
    "low_rank": [
        ("rank_by_branches", "        made += factorise(layer, rank) if rank * sum(layer.W.shape) < layer.W.size else [layer]\n",
         """        n, m = layer.W.shape
        if rank * (n + m) >= n * m:
            made.append(layer)
            continue
        first, second = factorise(layer, rank)
        made.extend((first, second))
"""),
    ],
    "answer_rank": [
        ("rank_searched", "return (784 * 512 - 1) // (784 + 512)", "return max(r for r in range(1, 512) if r * (784 + 512) < 784 * 512)"),
        ("rank_floor", "return (784 * 512 - 1) // (784 + 512)", "return math.floor(784 * 512 / 1296)"),
    ],
    "softmax": [
        ("softmax_scipy", SOFTMAX, "    from scipy import special\n\n    return special.softmax(np.divide(scores, temperature), axis=-1)\n"),
        ("softmax_rows", SOFTMAX, """    result = np.empty(np.shape(scores))
    for i, row in enumerate(np.array(scores, dtype=float)):
        row = (row - max(row)) / temperature
        result[i] = np.exp(row) / math.fsum(np.exp(row))
    return result
"""),
        ("softmax_logs", SOFTMAX, """    from scipy.special import logsumexp

    z = np.true_divide(scores, temperature)
    return np.exp(z - logsumexp(z, axis=1)[:, np.newaxis])
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
        ("loss_picked", "hard = -np.log(softmax(scores)[rows, labels]).mean()",
         "picked = np.take_along_axis(softmax(scores), np.reshape(labels, (-1, 1)), axis=1)\n    hard = np.log(1 / picked).sum() / len(labels)"),
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
    "seed_verdict": [
        ("verdict_all", VERDICT, """    if margin and all(-margin <= low and high <= margin for low, high in ends):
        return "equivalent"
    for said, holds in (("higher", all(low > 0 for low in lows)), ("lower", all(high < 0 for high in highs))):
        if holds:
            return said
    return "undecided: not established over " + str(len(lows)) + " seeds"
"""),
        ("verdict_numpy", VERDICT, """    verdict = "undecided: not established over %d seeds" % ends.shape[0]
    verdict = np.where((lows > 0).all(), "higher", np.where((highs < 0).all(), "lower", verdict))
    if margin > 0 and np.abs(ends).max() <= margin:
        verdict = "equivalent"
    return str(verdict)
"""),
    ],
    "changes": [
        ("changes_loop", CHANGES, """    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name, "none"), after.get(name, "none")
        if old == new:
            continue
        found.append("{}: {} → {}".format(name, old, new))
    return found
"""),
        ("changes_tuple", CHANGES, """    def said(name):
        return f"{name}: " + " → ".join(str(each[name]) if name in each else "none" for each in (before, after))

    differ = [name for name in set(before) | set(after) if before.get(name, "none") != after.get(name, "none")]
    return tuple(said(name) for name in sorted(differ))
"""),
    ],
    "record": [
        ("record_listed", RECORD, """    strangers = [each for each in measurements if each.name_a != name or each.name_b != self.baseline]
    if strangers:
        raise ValueError("not of this entry: " + ", ".join(f"{each.name_a} vs. {each.name_b}" for each in strangers))
    if verdict in ("keep", "reject") and True not in [decided(each) for each in measurements]:
        raise ValueError("no measurement is decided")
    new = Entry(
        name=name, against=self.baseline, hypothesis=hypothesis, change="".join(changed),
        measurements=[f"{each}" for each in measurements], verdict=verdict,
    )
    self.entries = [*self.entries, new]
    if new.verdict == "keep":
        self.baseline = name
        self.settings = {**settings}
    return new
"""),
    ],
    "answer_understanding": [
        ("understanding_longer", 'return "undecided"', 'return "undecided: not established over 2 seeds"'),
        ("understanding_softmax", "return 1 / (1 + math.exp(-8 / 4))", "return softmax([[8, 0]], 4)[0, 0]"),
        ("understanding_rounded", "return 1 / (1 + math.exp(-8 / 4))", "return round(1 / (1 + math.exp(-2)), 3)"),
    ],
}  # fmt: skip
