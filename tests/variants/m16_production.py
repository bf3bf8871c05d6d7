"""Module 16, written otherwise."""

VARIANTS = {
    "error_budget": [("shares first", '''    return (1 - objective) * requests''', '''    return requests - objective * requests'''),
                     ("float, and an early end", '''    return bad / error_budget(objective, total) if total else 0.0''', '''    if total == 0:
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
    "decide": [("a function for one finding", '''    for name, limit in requirements.limits().items():
        low, high = interval_of(name, results[name]) if name in results else (-math.inf, math.inf)
        met, missed = (low >= limit, high < limit) if "_min" in name else (high <= limit, low > limit)
        findings[name] = "met" if met else "missed" if missed else "cannot tell"''', '''    def found(name, limit):
        if name not in results:
            return "cannot tell"
        low, high = interval_of(name, results[name])
        if name.find("_min") >= 0:
            low, high, limit = -high, -low, -limit
        if high <= limit:
            return "met"
        return "missed" if low > limit else "cannot tell"

    findings = {name: found(name, limit) for name, limit in requirements.limits().items()}''')],
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
    # ---- A/B tests
    "users_needed": [("SciPy and NumPy", '''    p, q = share, share + change
    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    return math.ceil(z**2 * (p * (1 - p) + q * (1 - q)) / change**2)''', '''    from scipy.stats import norm

    shares = np.array([share, share + change])
    together = norm.isf(level / 2) + norm.ppf(power)
    return np.ceil(np.square(together / change) * np.sum(shares * (1 - shares)))'''),
                     ("tried out", "return math.ceil(z**2 * (p * (1 - p) + q * (1 - q)) / change**2)",
                      "n = z * z * (p - p * p + q - q * q) / (change * change)\n    return int(-(-n // 1))")],
    "share_e_value": [("lgamma", '''    old = both - new
    log = float(betaln(new + 1, old + 1)) - new * math.log(share) - old * math.log1p(-share)
    return math.exp(min(700.0, log))''', '''    old = both - new
    log = math.lgamma(new + 1) + math.lgamma(old + 1) - math.lgamma(both + 2)
    log -= new * math.log(share) + old * math.log(1 - share)
    return math.exp(log) if log < 700 else math.exp(700)'''),
                      ("NumPy", "return math.exp(min(700.0, log))", "return np.exp(np.minimum(log, 700))")],
    "answer_failures": [("written down", "return next(k for k in range(1, 99) if 2**k / (k + 1) >= 100)", "return 11.0")],
    "answer_unit": [("by erfc", "return 2 * (1 - NormalDist().cdf(1.96 / 4))", "return math.erfc(0.49 / math.sqrt(2))"),
                    ("two digits", "return 2 * (1 - NormalDist().cdf(1.96 / 4))", "return 0.62")],
    "in_canary": [("by hexadecimal digits", '''    number = int.from_bytes(hashlib.sha256((salt + user).encode()).digest()[:8], "big")
    return number / 2**64 < share''', '''    digits = hashlib.sha256(f"{salt}{user}".encode("utf-8")).hexdigest()
    return int(digits[:16], 16) < share * 2**64'''),
                  ("struct and NumPy", '''    number = int.from_bytes(hashlib.sha256((salt + user).encode()).digest()[:8], "big")
    return number / 2**64 < share''', '''    import struct

    (number,) = struct.unpack(">Q", hashlib.sha256(salt.encode() + user.encode()).digest()[:8])
    return np.bool_(number / 18446744073709551616 < share)''')],
    "advance": [("one return each, built anew", '''    if not seen.fresh:
        blind = state.blind + 1
        if blind >= patience:
            return replace(state, status="rolled back", blind=blind, why="blind")
        return replace(state, blind=blind)
    state = replace(state, blind=0)
    worst = max(seen.evidence, key=lambda name: seen.evidence[name], default="")
    if worst and seen.evidence[worst] >= stop_at:
        return replace(state, status="rolled back", why=worst)
    if not seen.enough:
        return state
    if state.stage == len(STAGES) - 1:
        return replace(state, status="promoted")
    return replace(state, stage=state.stage + 1)''', '''    stage = state.stage
    if not seen.fresh:
        blind = 1 + state.blind
        over = blind >= patience
        return RolloutState(stage, "rolled back" if over else "running", blind, "blind" * over)
    harmful = sorted((-e, name) for name, e in seen.evidence.items() if e >= stop_at)
    if harmful:
        return RolloutState(stage, "rolled back", why=harmful[0][1])
    if seen.enough and stage + 1 == len(STAGES):
        return RolloutState(stage, "promoted")
    return RolloutState(stage + int(seen.enough))''')],
    # ---- history
    "best_split": [("a loop", '''    sums = np.cumsum(rankdata(values))[:-1]
    scores = np.abs(sums - k * (n + 1) / 2) / np.sqrt(k * (n - k) * (n + 1) / 12)
    return int(np.argmax(scores)) + 1, float(scores.max())''', '''    ranks = rankdata(values)
    best, total = (0, -1.0), 0.0
    for k in range(1, n):
        total += ranks[k - 1]
        score = abs(total - k * (n + 1) / 2) / math.sqrt(k * (n - k) * (n + 1) / 12)
        if score > best[1] + 1e-12:
            best = (k, score)
    return best'''),
                   ("centred ranks", '''    sums = np.cumsum(rankdata(values))[:-1]
    scores = np.abs(sums - k * (n + 1) / 2) / np.sqrt(k * (n - k) * (n + 1) / 12)''', '''    sums = np.cumsum(rankdata(values) - (n + 1) / 2)[:-1]
    scores = np.sqrt(12 * sums**2 / (k * (n - k) * (n + 1)))''')],
    "change_points": [("shuffled ranks, early end", '''    as_good = 1 + sum(best_split(rng.permutation(values).tolist())[1] >= score for _ in range(permutations))
    if as_good / (permutations + 1) > level:
        return []''', '''    as_good, shuffled = 1, np.array(values, dtype=float)
    for _ in range(permutations):
        rng.shuffle(shuffled)
        as_good += best_split(shuffled)[1] >= score
        if as_good > level * (permutations + 1) + 1e-9:
            return []'''),
                      ("sorted union", '''    before, after = (change_points(part, level / 2, fewest, permutations) for part in (values[:k], values[k:]))
    return [*before, k, *(k + i for i in after)]''', '''    found = {k}
    found.update(change_points(values[:k], level / 2, fewest, permutations))
    found.update(k + i for i in change_points(values[k:], level=level / 2, fewest=fewest, permutations=permutations))
    return np.array(sorted(found))''')],
    "answer_production": [("written down", "return 2000 * (0.05 + 0.2) * 0.1", "return 50")],
}  # fmt: skip
