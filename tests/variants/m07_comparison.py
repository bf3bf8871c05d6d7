"""Module 07, written otherwise."""

VARIANTS = {
    "check_comparable": [("early exits", "", '''
def check_comparable(a, b, allow=()):
    """Compare conditions."""
    mine, theirs = measurement_conditions(a), measurement_conditions(b)
    for name in allow:
        if name not in mine:
            raise ValueError("unknown condition " + name)
    bad = [n for n in mine if n not in allow and None not in (mine[n], theirs[n]) and mine[n] != theirs[n]]
    if bad:
        raise ValueError("not alike in " + " and ".join(bad))
''')],
    "median_ratio": [("NumPy, a list", "", '''
def median_ratio(a, b, confidence=0.95):
    x, y = np.asarray(a, float), np.asarray(b, float)
    if x.size != y.size:
        raise ValueError(f"lengths {x.size} and {y.size}")
    if not (np.all(x > 0) and np.all(y > 0)):
        raise ValueError("positive values, please")
    logs = np.log(x) - np.log(y)
    ends = median_interval(list(logs), confidence)
    return [np.exp(np.median(logs)), *np.exp(ends)]
'''),
                     ("an array", "return math.exp(float(np.median(logs))), math.exp(low), math.exp(high)",
                      "import statistics\n    return np.array([math.exp(statistics.median(logs)), math.exp(low), math.exp(high)])")],
    "sign_test": [("scipy.stats", "", '''
def sign_test(a, b):
    above = sum(1 for x, y in zip(a, b) if x > y)
    below = sum(1 for x, y in zip(a, b) if x < y)
    most = max(above, below)
    return min(1, 2 * stats.binom.sf(most - 1, len(a), 0.5))


def wilcoxon_test(differences):
    d = np.array([x for x in differences if x])
    return stats.wilcoxon(d, method="asymptotic").pvalue if d.size else 1
'''),
                  ("by hand", "", '''
from math import comb


def sign_test(a, b):
    n = len(a)
    more = max(sum(x > y for x, y in zip(a, b)), sum(y > x for x, y in zip(a, b)))
    p = 2 * sum(comb(n, k) for k in range(more, n + 1)) / 2**n
    return 1.0 if p > 1 else p


def wilcoxon_test(differences):
    kept = [float(d) for d in differences if d != 0]
    if not kept:
        return 1.0
    ranks = stats.rankdata(np.abs(kept))
    up = sum(r for r, d in zip(ranks, kept) if d > 0)
    mean = ranks.sum() / 2
    return np.float64(2 * stats.norm.sf(abs(up - mean) / np.sqrt((ranks**2).sum() / 4)))
''')],
    "answer_sign": [("computed", "return 0.057", "return stats.binomtest(60, 100).pvalue"),
                    ("a NumPy truth", "return True", "return np.bool_(True).item() and np.log10(1e9) > 6")],
    "welch_test": [("scipy.stats", "", '''
def welch_test(a, b):
    if len(a) < 2 or len(b) < 2:
        raise ValueError("too few")
    if len(set(a)) == 1 and len(set(b)) == 1:
        return [0.0, 1.0, 1.0] if a[0] == b[0] else [math.inf, 1.0, 0.0]
    found = stats.ttest_ind(a, b, equal_var=False)
    return [found.statistic, found.df, found.pvalue]
'''),
                   ("an array", "return t, df, 2 * float(stdtr(df, -abs(t)))", "return np.array([t, df, 2 * stdtr(df, -abs(t))])")],
    "answer_welch": [("percent as a quotient", "return 0.26", "return np.float32(26) / 100")],
    "welch_intervals": [("scipy.stats, lists", "", '''
def welch_intervals(a, b, confidence=0.95):
    def interval(x, y):
        return list(stats.ttest_ind(x, y, equal_var=False).confidence_interval(confidence))

    if any(v <= 0 for v in [*a, *b]):
        return [interval(a, b), [math.nan] * 2]
    return [interval(a, b), [bounded_exp(end) for end in interval(np.log(a), np.log(b))]]
'''),
                        ("arrays", "return difference, (bounded_exp(low), bounded_exp(high))", "return np.array([difference, np.exp([low, high])])")],
    "permutation_test": [("all at once", "", '''
def permutation_test(a, b, paired=False, resamples=2000, seed=0):
    rng = np.random.default_rng(seed)
    x, y = np.array(a), np.array(b)
    if paired:
        signs = rng.integers(0, 2, (resamples, len(x))) * 2 - 1
        drawn, seen = (signs * (x - y)).mean(axis=1), (x - y).mean()
    else:
        pools = rng.permuted(np.tile(np.r_[x, y], (resamples, 1)), axis=1)
        drawn, seen = pools[:, : len(x)].mean(axis=1) - pools[:, len(x) :].mean(axis=1), x.mean() - y.mean()
    return (np.count_nonzero(np.abs(drawn) >= abs(seen) - 1e-12) + 1) / (resamples + 1)
'''),
                         ("the random module", "", '''
def permutation_test(a, b, paired=False, resamples=2000, seed=0):
    coin, n, count = random.Random(seed), len(a), 1
    pool = list(a) + list(b)
    observed = abs(math.fsum(a) / n - math.fsum(b) / len(b))
    for _ in range(resamples):
        if paired:
            found = abs(math.fsum(coin.choice((1, -1)) * (x - y) for x, y in zip(a, b)) / n)
        else:
            coin.shuffle(pool)
            found = abs(math.fsum(pool[:n]) / n - math.fsum(pool[n:]) / len(b))
        count += found > observed or math.isclose(found, observed, rel_tol=1e-9)
    return count / (1 + resamples)
''')],
    "effect_sizes": [("NumPy", "", '''
def cohens_d(a, b):
    a, b = np.asarray(a), np.asarray(b)
    squares = ((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()
    return in_deviations(a.mean() - b.mean(), np.sqrt(squares / max(1, a.size + b.size - 2)))


def cohens_d_paired(a, b):
    import statistics

    d = [x - y for x, y in zip(a, b)]
    return in_deviations(statistics.fmean(d), statistics.stdev(d))


def vargha_delaney_a12(a, b):
    return stats.mannwhitneyu(a, b).statistic / len(a) / len(b)
'''),
                     ("counted pairs", "    ranks, _ = average_ranks([*a, *b])\n    return float((ranks[: len(a)].sum() / len(a) - (len(a) + 1) / 2) / len(b))",
                      "    from fractions import Fraction\n    wins = sum(1 if x > y else Fraction(1, 2) if x == y else 0 for x in a for y in b)\n    return Fraction(wins, len(a) * len(b))")],
    "friedman": [("scipy.stats, arrays", '''    for times in zip(*(group.values for group in groups), strict=True):
        ranks, sizes = average_ranks(times)
        sums += ranks
        tied += int(np.sum(sizes**3 - sizes))
''', '''    table = stats.rankdata(np.array([group.values for group in groups]), axis=0)
    sums = table.sum(axis=1)
    for column in table.T:
        tied += sum(int(c) ** 3 - int(c) for c in np.unique(column, return_counts=True)[1])
'''),
                 ("Holm by NumPy", '''    m, adjusted, largest = len(p_values), [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted''', '''    p = np.array(p_values, dtype=float)
    order = p.argsort(kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return adjusted''')],
    "runs_to_decide": [("scipy.stats, NumPy's ceiling", '''    widening = 1 + float(ndtri(power)) / float(ndtri(0.5 + confidence / 2))
    if distance <= 0 or half_width / distance * widening > math.sqrt(many / n):
        return many
    return max(6, math.ceil(n * (half_width / distance * widening) ** 2))''', '''    if distance <= 0:
        return many
    z = stats.norm.ppf([power, 0.5 + confidence / 2])
    return np.clip(np.ceil(n * (half_width * (1 + z[0] / z[1]) / distance) ** 2), 6, many).astype(int)'''),
                       ("match", '''    if high < 0:
        return "faster"
    if low > 0:
        return "slower"
''', '''    match (high < 0, low > 0):
        case (True, _):
            return "faster"
        case (_, True):
            return "slower"
''')],
    "comparison": [("a helper and format", "        interval = \"no finite interval\"\n        if math.isfinite(ends[1] - ends[0]):\n            interval = f\"{100 * self.confidence:.3g} % CI {span(ends, unit)}\"\n",
                    "        finite = not any(map(math.isinf, ends))\n        interval = \"{:.3g} % CI {}\".format(100 * self.confidence, span(ends, unit)) if finite else \"no finite interval\"\n")],
    "compare": [("other order", "        p, effect = sign_test(x, y), cohens_d_paired(x, y)\n",
                 "        effect = cohens_d_paired(a=x, b=y)\n        p = np.float64(sign_test(a=x, b=y))\n"),
                ("NumPy scalars, tuples as lists", "            ratio, ratio_ci = math.exp(float(np.mean(u) - np.mean(v))), logs_ci\n",
                 "            ratio, ratio_ci = stats.gmean(x) / stats.gmean(y), list(logs_ci)\n")],
    "compare_all": [("itertools and a tuple", "    return corrected\n", "    return tuple(corrected)\n"),
                    ("a generator", "    return corrected\n", "    return iter(corrected)\n")],
    "regression_gate": [("from the sides", '''    if interval[1] <= max_slowdown:
        verdict = "passes"
    elif interval[0] > max_slowdown:
        verdict = "fails"
    else:
''', '''    low, high = interval
    interval = [np.float64(low), np.float64(high)]
    verdict = "passes" if high <= max_slowdown else "fails" if low > max_slowdown else ""
    if not verdict:
''')],
    "e_values": [("log-gamma, a list", "", '''
def sign_e_value(more, rounds):
    less = rounds - more
    log = rounds * np.log(2) + math.lgamma(more + 1) + math.lgamma(less + 1) - math.lgamma(rounds + 2)
    return np.exp(min(log, 700))


def anytime_interval(values, stop_at=20.0):
    v = sorted(values)
    refused = [k for k in range(len(v) // 2) if sign_e_value(k, len(v)) >= stop_at]
    if not refused:
        return [-np.inf, np.inf]
    return [v[refused[-1]], v[-1 - refused[-1]]]
'''),
                 ("exact integers", "    from scipy.special import betaln\n\n    return math.exp(min(700.0, rounds * math.log(2) + float(betaln(more + 1, rounds - more + 1))))",
                  "    from fractions import Fraction\n\n    exact = Fraction(2**rounds, (rounds + 1) * math.comb(rounds, more))\n    return float(exact) if exact < 10**304 else 1e304")],
    "answer_live": [("computed", "return 8", "return next(n for n in range(99) if 2**n / (n + 1) >= 20)")],
    "compare_live": [("a flag, shuffle", "            for name in rng.sample(names, 2):\n                record.add(name, subjects[name].measure())\n",
                      "            order = list(names)\n            rng.shuffle(order)\n            for name in order:\n                record.add(name, subjects[name].measure())\n"),
                     ("NumPy's coin, counts afresh", '''            a, b, n = times[0][-1], times[1][-1], len(times[0])
            more, less = more + (a > b), less + (a < b)
''', '''            a, b = (own[-1] for own in times)
            n = len(times[0])
            more = sum(s > t for s, t in zip(*times))
            less = sum(s < t for s, t in zip(*times))
''')],
    "answer_understanding": [("other types", "", '''
def percent_of_at_least_one(): return 100 * (1 - 0.95 ** 20)
def percent_faster(): return np.int64(75)
def significant_after(): return [3, 1]
def verdict_inside_the_margin(): return "equi" + "valent"
''')],
}  # fmt: skip
