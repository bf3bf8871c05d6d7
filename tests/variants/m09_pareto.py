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
    "refuse_mixing": [("sets", '''    for name, result in results.items():
        first, other = next(iter(results.items()))
        if result.measured != other.measured:
            guess, fact = (first, name) if result.measured else (name, first)
            raise ValueError(
                f"{metric} of {guess!r} is an estimate, of {fact!r} a measurement; an estimate never ranks against "
                "a measurement: measure all, or estimate all the same way"
            )
        if result.unit != other.unit:
            raise ValueError(
                f"{metric} of {first!r} is in {other.unit!r}, of {name!r} in {result.unit!r}; give one unit"
            )''', '''    for trait in ("measured", "unit"):
        kinds = {}
        for name in results:
            kinds.setdefault(getattr(results[name], trait), []).append(name)
        if len(kinds) > 1:
            raise ValueError(f"{metric}: {trait} differs (an estimate, or another unit): {kinds}")''')],
    "frontier_mask": [("lists, all pairs in blocks", "", '''
def frontier_2d(costs):
    rows = sorted(range(len(costs)), key=lambda i: tuple(costs[i]))
    kept, best, last = [False] * len(costs), math.inf, None
    for i in rows:
        x, y = map(float, costs[i])
        if y < best or (x, y) == last:
            kept[i], best, last = True, min(best, y), (x, y)
    return kept


def frontier_nd(costs):
    costs = np.asarray(costs)
    return [not any((other <= own).all() and (other < own).any() for other in costs) for own in costs]
'''),
                      ("broadcasting", '''    unique, where = np.unique(costs, axis=0, return_inverse=True)
    front, kept, size = np.empty_like(unique), np.zeros(len(unique), dtype=bool), 0
    for index, cost in enumerate(unique):  # only what sorts before a point can dominate it
        if not np.all(front[:size] <= cost, axis=1).any():
            front[size], kept[index], size = cost, True, size + 1
    return np.asarray(kept[where.reshape(-1)])''', '''    a, b = costs[:, None], costs[None]
    beaten = (a <= b).all(axis=-1) & (a < b).any(axis=-1)
    return ~beaten.any(axis=0)'''),
                      ("a tuple of NumPy truths", "    return np.asarray(kept[where.reshape(-1)])\n    ### END SOLUTION\n\n\ndef frontier_nd",
                       "    return tuple(kept[where.reshape(-1)])\n    ### END SOLUTION\n\n\ndef frontier_nd")],
    "pareto_frontier": [("compress, a tuple", "return [point for point, keep in zip(points, kept, strict=True) if keep]",
                         "return tuple(itertools.compress(points, kept))"),
                        ("indices", "return [point for point, keep in zip(points, kept, strict=True) if keep]",
                         "return [points[i] for i in np.flatnonzero(kept)]")],
    "staircase": [("an array", "    return corners\n", "    return np.array(corners)\n"),
                  ("recursion over pairs", '''    corners = [ordered[0]]
    for x, y in ordered[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return corners''', '''    return [ordered[0], *(c for (_, y), (u, v) in itertools.pairwise(ordered) for c in ([u, y], [u, v]))]''')],
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
    "composite_score": [("row by row, an array", '''    scores = np.zeros(len(values))
    for column, (metric, weight) in zip(values.T, weights.items(), strict=True):
        if scale_free:
            if not (column > 0).all():
                raise ValueError(f"a {metric} is {column.min():g}; ratios need positive values")
            ratio = column.min() / column if DIRECTIONS[metric] == "min" else column / column.max()
            scores += weight * np.log(ratio)
        elif metric == "accuracy":
            scores += weight * column
        else:
            scores += weight / (1 + column / _SCORE_UNITS[metric][1])
    return [float(score) for score in (np.exp(scores) if scale_free else scores)]''', '''    if scale_free and values.min() <= 0:
        raise ValueError("all values must be positive for ratios")
    units = {"latency": 1e-3, "memory": 1e6, "energy": 1e-3}

    def term(metric, value, column):
        if scale_free:
            return value / column.max() if DIRECTIONS[metric] == "max" else column.min() / value
        return value if metric == "accuracy" else 1 / (1 + value / units[metric])

    scores = []
    for row in values:
        terms = [term(m, v, column) for m, v, column in zip(weights, row, values.T)]
        if scale_free:
            scores.append(math.prod(t**w for t, w in zip(terms, weights.values())))
        else:
            scores.append(math.fsum(t * w for t, w in zip(terms, weights.values())))
    return np.array(scores)''')],
    "from_yaml": [("difflib, a set", '''    valid = [spec.name for spec in fields(cls)]
    for name in data:
        if name not in valid:
            raise ValueError(f"there is no requirement {str(name)!r}; did you mean {nearest(str(name), valid)!r}?")
    return cls(**data)''', '''    valid = set(cls.__dataclass_fields__)
    unknown = set(data) - valid
    if unknown:
        raise ValueError("; ".join(f"{u}: perhaps {nearest(str(u), sorted(valid))}" for u in unknown))
    limits = cls(**dict(data))
    return limits'''),
                  ("isinstance of a Mapping", "    if not isinstance(data, dict):\n        raise ValueError(f\"requirements are lines such as 'accuracy_min: 0.95', not {text.strip()!r}\")\n    return cls.from_dict(data)",
                   "    if isinstance(data, Mapping):\n        return cls.from_dict(data=data)\n    raise ValueError('no limits in there')")],
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
