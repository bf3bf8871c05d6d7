"""Module 16, written otherwise."""

VARIANTS = {
    "burn_rate": [("float, and an early end", '''    return bad / error_budget(objective, total) if total else 0.0''', '''    if total == 0:
        return 0
    return float(np.divide(bad, total) / (1.0 - objective))''')],
    "answer_budget": [("rounded", '''    return 30 * 24 / (0.05 / 0.001)''', '''    return 14.4'''),
                      ("two digits", '''    return 100 * 50 / 720''', '''    return 6.9''')],
    "increase": [("a loop", '''    return float(sum(b - a if b >= a else b for a, b in pairwise(counter)))''', '''    grown = 0
    for i in range(1, len(counter)):
        grown += counter[i] - counter[i - 1]
        if counter[i] < counter[i - 1]:
            grown += counter[i - 1]
    return grown'''),
                 ("NumPy", '''    return float(sum(b - a if b >= a else b for a, b in pairwise(counter)))''', '''    if len(counter) < 2:
        return 0.0
    steps = np.diff(np.asarray(counter, dtype=float))
    return np.where(steps < 0, np.asarray(counter)[1:], steps).sum()''')],
    "burning": [("two windows by name", '''    return all(
        burn_rate(increase(bad[-window - 1 :]), increase(total[-window - 1 :]), objective) >= factor
        for window in (long, short)
    )''', '''    def rate(window):
        first = max(0, len(total) - 1 - window)
        return burn_rate(increase(bad[first:]), increase(total[first:]), objective)

    return min(rate(long), rate(short)) >= factor''')],
    "histogram_quantile": [("np.searchsorted and np.interp", '''    rank = q * counts[-1]
    i = next(i for i, count in enumerate(counts) if count >= rank and count > 0)
    if math.isinf(bounds[i]):
        return float(bounds[i - 1])
    low, below = (bounds[i - 1], counts[i - 1]) if i else (0.0, 0.0)
    return float(low + (bounds[i] - low) * (rank - below) / (counts[i] - below))''', '''    rank = q * counts[-1]
    i = max(int(np.searchsorted(counts, rank)), int(np.searchsorted(counts, 0, side="right")))
    if i == len(bounds) - 1:
        return bounds[-2]
    ends, shares = [0, *bounds], [0, *counts]
    return np.interp(rank, shares[i : i + 2], ends[i : i + 2])''')],
    "answer_quantile": [("whole", '''    return 100 + 150 * 40 / 50''', '''    return 220''')],
    "watched": [("no finally", '''        try:
            answer = call(rows)
        except BaseException:
            metrics.requests.labels("error").inc()
            raise
        finally:
            metrics.in_flight.dec()
        metrics.seconds.observe(clock() - started)
        metrics.requests.labels("ok").inc()
        return answer''', '''        try:
            answer = call(rows)
        except Exception:
            metrics.in_flight.dec()
            metrics.requests.labels(outcome="error").inc()
            raise
        metrics.seconds.observe(clock() - started)
        metrics.in_flight.dec()
        metrics.requests.labels("ok").inc()
        return answer'''),
                ("an outcome", '''        try:
            answer = call(rows)
        except BaseException:
            metrics.requests.labels("error").inc()
            raise
        finally:
            metrics.in_flight.dec()
        metrics.seconds.observe(clock() - started)
        metrics.requests.labels("ok").inc()
        return answer''', '''        outcome = "error"
        try:
            answer = call(rows)
            seconds = clock() - started
            outcome = "ok"
            metrics.seconds.observe(seconds)
            return answer
        finally:
            metrics.in_flight.dec(1)
            metrics.requests.labels(outcome).inc(1)''')],
    "psi": [("SciPy's entropies", '''    p, q = (np.asarray(counts, dtype=float) + 0.5 for counts in (reference, window))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((p - q) * np.log(p / q)))''', '''    from scipy.stats import entropy

    p, q = np.array(reference) + 0.5, np.array(window) + 0.5
    return entropy(p, q) + entropy(q, p)'''),
            ("loops", '''    p, q = (np.asarray(counts, dtype=float) + 0.5 for counts in (reference, window))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum((p - q) * np.log(p / q)))''', '''    m, n = (sum(counts) + len(counts) / 2 for counts in (reference, window))
    shares = [((a + 0.5) / m, (b + 0.5) / n) for a, b in zip(reference, window)]
    return sum((p - q) * (math.log(p) - math.log(q)) for p, q in shares)'''),
            ("SciPy's KS", '''    a, b = np.sort(reference), np.sort(window)
    x = np.concatenate([a, b])
    shares = (np.searchsorted(values, x, side="right") / len(values) for values in (a, b))
    return float(np.max(np.abs(np.subtract(*shares))))''', '''    from scipy.stats import ks_2samp

    return ks_2samp(reference, window).statistic'''),
            ("shares below x", '''    x = np.concatenate([a, b])
    shares = (np.searchsorted(values, x, side="right") / len(values) for values in (a, b))
    return float(np.max(np.abs(np.subtract(*shares))))''', '''    x = np.unique(np.concatenate([a, b]))
    return max(abs(np.mean(a <= one) - np.mean(b <= one)) for one in x)''')],
    "permutation_p": [("a list, and shuffle", '''    for _ in range(permutations):
        shuffled = rng.permutation(pooled)
        as_much += statistic(shuffled[:m], shuffled[m:]) >= observed
    return as_much / (permutations + 1)''', '''    shuffled, found = pooled.copy(), [observed]
    while len(found) <= permutations:
        rng.shuffle(shuffled)
        found.append(statistic(shuffled[:m], shuffled[m:]))
    return np.mean(np.array(found) >= observed)''')],
    "answer_equal": [("a search", '''    return math.ceil(1 / (0.1 / 9 - 1 / 10_000))''', '''    return next(n for n in range(1, 1000) if 9 * (1 / n + 1 / 10_000) < 0.1)''')],
    "alarm_update": [("NumPy", '''    kept = 1 / (1 + math.log(self.n + 1))
    new, self.kept = self.kept - kept, kept
    self.stakes = [
        (stake + new / len(factors)) * factor for stake, factor in zip(self.stakes, factors, strict=True)
    ]''', '''    before, self.kept = self.kept, 1 / (1 + np.log(1 + self.n))
    new = before - self.kept
    self.stakes = ((np.array(self.stakes) + new / 4) * factors).tolist()'''),
                     ("in place", '''    kept = 1 / (1 + math.log(self.n + 1))
    new, self.kept = self.kept - kept, kept
    self.stakes = [
        (stake + new / len(factors)) * factor for stake, factor in zip(self.stakes, factors, strict=True)
    ]''', '''    each = (self.kept - 1 / (1 + math.log1p(self.n))) / len(self.stakes)
    for i, factor in enumerate(factors):
        self.kept -= each
        self.stakes[i] = factor * (self.stakes[i] + each)''')],
    "answer_alarms": [("a number", '''    return 0.01 / 40''', '''    return 2.5e-4''')],
    "answer_production": [("written down", "return 11 * 16 + 1", "return 177.0")],
}  # fmt: skip
