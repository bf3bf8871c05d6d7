"""Module 09, written otherwise."""

VARIANTS = {
    "dominates": [("NumPy", '''    gains = [x - y if larger else y - x for x, y, larger in zip(a, b, directions, strict=True) if x != y]
    return bool(gains) and all(gain > 0 for gain in gains)''', '''    sign = np.where(directions, -1, 1)
    p, q = np.multiply(a, sign), np.multiply(b, sign)
    return np.all(p <= q) and np.any(p < q)'''),
                  ("a loop with an early return", '''    gains = [x - y if larger else y - x for x, y, larger in zip(a, b, directions, strict=True) if x != y]
    return bool(gains) and all(gain > 0 for gain in gains)''', '''    better = False
    for x, y, larger in zip(a, b, directions):
        if larger:
            x, y = -x, -y
        if x > y:
            return False
        better |= x < y
    return better''')],
    "answer_dominance": [("NumPy integers", "### BEGIN SOLUTION\n    return 1", "### BEGIN SOLUTION\n    return np.int64(1)")],
    "frontier_mask": [("lists", "", '''
def frontier_2d(costs):
    rows = sorted(range(len(costs)), key=lambda i: tuple(costs[i]))
    kept, best, last = [False] * len(costs), math.inf, None
    for i in rows:
        x, y = map(float, costs[i])
        if y < best or (x, y) == last:
            kept[i], best, last = True, min(best, y), (x, y)
    return kept
'''),
                      ("a tuple of NumPy truths", "return np.asarray(kept[where.reshape(-1)])", "return tuple(kept[where.reshape(-1)])")],
    "pareto_frontier": [("compress, a tuple", "return [point for point, keep in zip(points, kept, strict=True) if keep]",
                         "import itertools\n\n    return tuple(itertools.compress(points, kept))"),
                        ("indices", "return [point for point, keep in zip(points, kept, strict=True) if keep]",
                         "return [points[i] for i in np.flatnonzero(kept)]")],
    "hypervolume_2d": [("a sum over the corners", '''    area, level = 0.0, worst[1]
    for x, y in sorted(map(tuple, costs[(costs < worst).all(axis=1)])):
        if y < level:  # each frontier point adds the strip below the one before, as wide as its lead over the reference
            area, level = area + (worst[0] - x) * (level - y), y
    return float(area)''', '''    inside = costs[np.all(costs < worst, axis=1)]
    if not len(inside):
        return 0
    inside = inside[np.argsort(inside[:, 0])]
    widths = np.diff(np.append(inside[:, 0], worst[0]))
    return np.dot(widths, worst[1] - np.minimum.accumulate(inside[:, 1]))''')],
    "composite_score": [("logarithms, an array", '''    scores = np.ones(len(values))
    for column, (metric, weight) in zip(values.T, weights.items(), strict=True):
        if not (column > 0).all():
            raise ValueError(f"a {metric} is {column.min():g}; ratios need positive values")
        ratio = column.min() / column if DIRECTIONS[metric] == "min" else column / column.max()
        scores *= ratio**weight
    return [float(score) for score in scores]''', '''    if np.any(values <= 0):
        raise ValueError("all values must be positive for ratios")
    signs = np.array([1 if DIRECTIONS[metric] == "max" else -1 for metric in weights])
    logs = np.log(values) * signs
    return np.exp((logs - logs.max(axis=0)) @ np.array(list(weights.values())))'''),
                        ("row by row", '''    scores = np.ones(len(values))
    for column, (metric, weight) in zip(values.T, weights.items(), strict=True):
        if not (column > 0).all():
            raise ValueError(f"a {metric} is {column.min():g}; ratios need positive values")
        ratio = column.min() / column if DIRECTIONS[metric] == "min" else column / column.max()
        scores *= ratio**weight
    return [float(score) for score in scores]''', '''    if values.min() <= 0:
        raise ValueError("no ratio to 0")

    def part(metric, value, column):
        return value / max(column) if DIRECTIONS[metric] == "max" else min(column) / value

    return tuple(
        math.prod(part(m, v, column) ** w for (m, w), v, column in zip(weights.items(), row, values.T)) for row in values
    )''')],
    "method_filter": [("operator, tuples", '''    for name, limit in self.limits().items():
        got = observed(row, name, row_name(row, 0))
        least = "_min" in name
        if (got < limit) if least else (got > limit):
            broken.append(f"{name} is {limit:g}, the model has {got:.4g}")
''', '''    import operator

    for name, limit in self.limits().items():
        value, too = observed(row, name, row_name(row, 0)), operator.lt if "min" in name.split("_") else operator.gt
        if too(value, limit):
            broken = (*broken, "{}: {} against {}".format(name, value, limit))
'''),
                      ("sorted with a key", '''    values = objective_values(left, {by: DIRECTIONS[by]})[:, 0]
    order = np.argsort(values if DIRECTIONS[by] == "min" else -values, kind="stable")
    return [left[index] for index in order]''', '''    values = objective_values(left, {by: DIRECTIONS[by]}).ravel().tolist()
    sign = {"min": 1, "max": -1}[DIRECTIONS[by]]
    return tuple(left[i] for i in sorted(range(len(left)), key=lambda i: sign * values[i]))''')],
    "replicate": [("lists", '''        return rng.beta(correct + 0.5, total - correct + 0.5, (resamples, 1))
    rounds = draw_rounds(values, resamples, rng)
    return np.stack([np.median(np.array(value.values)[rounds], axis=1) for value in values], axis=1)''', '''        return [[p] for p in rng.beta(correct + 0.5, total - correct + 0.5, resamples)]
    import statistics

    rounds = draw_rounds(values, resamples, rng)
    return [[statistics.median([value.values[r] for r in picked]) for value in values] for picked in rounds]'''),
                  ("column_stack", "return np.stack([np.median(np.array(value.values)[rounds], axis=1) for value in values], axis=1)",
                   "return np.column_stack([np.median(np.take(v.values, rounds), axis=1) for v in values])")],
    "membership_probability": [("an array, counted", '''    on_frontier = [frontier_nd(sample) for sample in costs]
    return [float(share) for share in np.mean(on_frontier, axis=0)]''', '''    counts = sum(np.asarray(frontier_nd(costs[k])).astype(int) for k in range(resamples))
    return counts / resamples'''),
                               ("by pareto_frontier's own signs", "costs[:, places, column] = drawn if direction == \"min\" else -drawn",
                                "costs[:, places, column] = np.array(drawn) * (1 if direction == \"min\" else -1)")],
    "answer_understanding": [("other types", "", '''
from decimal import Decimal
def hypervolume_with_d(): return np.float32(140)
def frontier_size_with_d(): return 2.0
def accuracy_factor(): return Decimal(4)
''')],
}  # fmt: skip
