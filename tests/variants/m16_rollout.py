"""The optional notebook 16_rollout, written otherwise."""

VARIANTS = {
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
    "answer_rollout": [("written down", "return 2000 * (0.05 + 0.2) * 0.1", "return 50")],
}  # fmt: skip
