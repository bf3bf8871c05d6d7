"""Module 07, written otherwise."""

VARIANTS = {
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
'''),
                  ("by hand", "", '''
from math import comb


def sign_test(a, b):
    n = len(a)
    more = max(sum(x > y for x, y in zip(a, b)), sum(y > x for x, y in zip(a, b)))
    p = 2 * sum(comb(n, k) for k in range(more, n + 1)) / 2**n
    return 1.0 if p > 1 else p
''')],
    "answer_sign": [("computed", "return 0.057", "return stats.binomtest(60, 100).pvalue")],
    "runs_to_decide": [("scipy.stats, NumPy's ceiling", '''    widening = 1 + float(ndtri(power)) / float(ndtri(0.5 + confidence / 2))
    if distance <= 0 or half_width / distance * widening > math.sqrt(10**9 / n):
        return 10**9
    return max(6, math.ceil(n * (half_width / distance * widening) ** 2))''', '''    if distance <= 0:
        return 10**9
    z = stats.norm.ppf([power, 0.5 + confidence / 2])
    return np.clip(np.ceil(n * (half_width * (1 + z[0] / z[1]) / distance) ** 2), 6, 10**9).astype(int)''')],
    "decide": [("match", '''    if high < 0:
        return "faster"
    if low > 0:
        return "slower"
''', '''    match (high < 0, low > 0):
        case (True, _):
            return "faster"
        case (_, True):
            return "slower"
'''),
               ("an early return each", '''    return needs_more_rounds(runs_to_decide(n, (high - low) / 2, distance, confidence) - n)
''', '''    more = runs_to_decide(n, (high - low) / 2, distance, confidence) - n
    if more <= 1:
        return "undecided: needs about 1 more round"
    needed = "about {:,}".format(more) if more <= 1_000_000 else "over 1,000,000"
    return "undecided: needs " + needed + " more rounds"
''')],
    "answer_blog": [("computed", "return 69", "return runs_to_decide(10, 1.28, 0.7)"),
                    ("by SciPy", "return 0.26", "return stats.ttest_ind_from_stats(12.5, 1.2, 10, 11.8, 1.5, 10, equal_var=False).pvalue"),
                    ("of the data", "return 0.26", "return 0.2645")],
    "compare_rounds": [("step by step, lists", "", '''
def compare_rounds(x, y, confidence=0.95):
    gaps = [u - v for u, v in zip(x, y)]
    found = dict(difference=np.median(gaps), difference_ci=list(median_interval(gaps, confidence)), p_value=sign_test(a=x, b=y))
    found["ratio"], found["ratio_ci"] = math.nan, [math.nan, math.nan]
    if all(v > 0 for v in [*x, *y]):
        found["ratio"], *found["ratio_ci"] = median_ratio(a=x, b=y, confidence=confidence)
    return found
'''),
                       ("NumPy's NaN", "[math.nan] * 3", "np.full(3, np.nan)")],
    "answer_faster": [("computed", "return 100 / 3", "return 100 * (4 / 3 - 1)"),
                      ("rounded", "return 100 / 3", "return 33")],
    "gate_verdict": [("from the sides", '''    if high <= max_slowdown:
        return "passes", None
    if low > max_slowdown:
        return "fails", None
''', '''    verdict = "passes" if high <= max_slowdown else "fails" if low > max_slowdown else ""
    if verdict:
        return (verdict, None)
'''),
                     ("NumPy's numbers", "max(n + 1, runs_to_decide(n, (high - low) / 2, abs(slowdown - max_slowdown), confidence))",
                      "int(np.maximum(n + 1, runs_to_decide(n, np.ptp(interval) / 2, np.abs(max_slowdown - slowdown), confidence)))")],
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
                 ("exact integers", "    return math.exp(min(700.0, rounds * math.log(2) + float(betaln(more + 1, rounds - more + 1))))",
                  "    from fractions import Fraction\n\n    exact = Fraction(2**rounds, (rounds + 1) * math.comb(rounds, more))\n    return float(exact) if exact < 10**304 else 1e304")],
    "until_decided": [("shuffle", "        times = {name: measure(name) for name in coin.sample(names, 2)}\n        tally.add(*(times[name] for name in names))\n",
                       "        order, times = list(names), {}\n        coin.shuffle(order)\n        for name in order:\n            times[name] = measure(name)\n        tally.add(times[names[0]], times[names[1]])\n"),
                      ("a coin of its own, a flag", "        times = {name: measure(name) for name in coin.sample(names, 2)}\n        tally.add(*(times[name] for name in names))\n",
                       "        first, second = names\n        if coin.random() < 0.5:\n            a = measure(first)\n            b = measure(second)\n        else:\n            b = measure(second)\n            a = measure(first)\n        tally.add(a, b)\n"),
                      ("counts of its own", '''    highest = 1.0
    while True:
        times = {name: measure(name) for name in coin.sample(names, 2)}
        tally.add(*(times[name] for name in names))
        highest = max(highest, tally.for_a_winner())
        if highest >= stop_at or tally.for_equality() >= stop_at or time_is_up():
            return highest
''', '''    kept, highest = {name: [] for name in names}, 1.0
    while True:
        for name in coin.sample(list(names), k=2):
            kept[name].append(measure(name))
        pairs = list(zip(*kept.values()))
        more, less, n = sum(s > t for s, t in pairs), sum(s < t for s, t in pairs), len(pairs)
        if 2 * max(more, less) > n:
            highest = max(highest, sign_e_value(max(more, less), n))
        sides = sum(s > (1 - margin) * t for s, t in pairs), sum(s < (1 + margin) * t for s, t in pairs)
        alike = 2 * min(sides) > n and sign_e_value(min(sides), n) >= stop_at
        if alike or highest >= stop_at or time_is_up():
            return highest
''')],
    "answer_understanding": [("other types", "", '''
def rounds_to_twenty(): return np.int64(8)
def leaves_out_one(): return stats.binomtest(21, 30).pvalue < 0.05
def verdict_of_the_gate(): return "pass" + "es"
''')],
}  # fmt: skip
