"""The optional toolbox of module 07, written otherwise."""

VARIANTS = {
    "welch_test": [("by the formula", '''    found = stats.ttest_ind(a, b, equal_var=False)
    return float(found.statistic), float(found.df), float(found.pvalue)
''', '''    (mean_a, std_a), (mean_b, std_b) = mean_and_std(list(a)), mean_and_std(list(b))
    v, w = std_a**2 / len(a), std_b**2 / len(b)
    t, df = (mean_a - mean_b) / math.sqrt(v + w), (v + w) ** 2 / (v**2 / (len(a) - 1) + w**2 / (len(b) - 1))
    return [t, df, 2 * stats.t.sf(abs(t), df)]
'''),
                   ("an array", "return float(found.statistic), float(found.df), float(found.pvalue)", "return np.array([found.statistic, found.df, found.pvalue])")],
    "welch_intervals": [("a helper, lists", "", '''
def welch_intervals(a, b, confidence=0.95):
    def interval(x, y):
        return list(stats.ttest_ind(x, y, equal_var=False).confidence_interval(confidence))

    if any(v <= 0 for v in [*a, *b]):
        return [interval(a, b), [math.nan] * 2]
    return [interval(a, b), [bounded_exp(end) for end in interval(np.log(a), np.log(b))]]
''')],
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


def wilcoxon_test(differences):
    d = np.array([x for x in differences if x])
    return stats.wilcoxon(d, method="asymptotic").pvalue if d.size else 1
'''),
                         ("Wilcoxon in one line", '''    n = int(np.count_nonzero(differences))
    if n == 0:
        return 1.0
    least = 2.0 ** (1 - n)  # all signs alike, by chance
    return max(least, float(stats.wilcoxon(differences, method="asymptotic").pvalue))
''', '    return float(stats.wilcoxon(differences, method="asymptotic").pvalue) if np.any(differences) else 1.0\n'),
                         ("Wilcoxon by hand", '''    n = int(np.count_nonzero(differences))
    if n == 0:
        return 1.0
    least = 2.0 ** (1 - n)  # all signs alike, by chance
    return max(least, float(stats.wilcoxon(differences, method="asymptotic").pvalue))
''', '''    kept = [float(d) for d in differences if d != 0]
    if not kept:
        return 1.0
    ranks = stats.rankdata(np.abs(kept))
    up = sum(r for r, d in zip(ranks, kept) if d > 0)
    return np.float64(2 * stats.norm.sf(abs(up - ranks.sum() / 2) / np.sqrt((ranks**2).sum() / 4)))
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
                     ("counted pairs", "    from scipy.stats import rankdata\n\n    ranks = rankdata([*a, *b])\n    return float((ranks[: len(a)].sum() / len(a) - (len(a) + 1) / 2) / len(b))",
                      "    from fractions import Fraction\n\n    wins = sum(1 if x > y else Fraction(1, 2) if x == y else 0 for x in a for y in b)\n    return Fraction(wins, len(a) * len(b))")],
    "friedman": [("NumPy scalars", '''    chi2 = float(found.statistic)
    least = math.factorial(k) ** (1 - n)  # the probability that n rounds agree by chance
    return {"chi2": chi2, "p_value": max(float(found.pvalue), least), ''', '    chi2 = found.statistic\n    return {"chi2": chi2, "p_value": stats.chi2.sf(chi2, k - 1), ')],
    "holm": [("NumPy", '''    m, adjusted, largest = len(p_values), [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted''', '''    p = np.array(p_values, dtype=float)
    order = p.argsort(kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return adjusted''')],
    "compare_all": [("a tuple", "    return corrected\n", "    return tuple(corrected)\n"),
                    ("a generator", "    return corrected\n", "    return iter(corrected)\n")],
    "answer_understanding": [("other types", "", '''
def percent_of_at_least_one(): return 100 * (1 - 0.95 ** 20)
def significant_after(): return [3, 1]
def faster_one(): return "B".lower()
''')],
}  # fmt: skip
