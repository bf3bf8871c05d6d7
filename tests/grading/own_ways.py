"""The functions of module 01, each written by five people on their own; the fifth thinks as the reference does."""

CHECK_VALUES = [
    """
    result = [float(v) if isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) else None for v in (data := list(values))]
    for i, (v, f) in enumerate(zip(data, result)):
        if f is None or math.isnan(f) or math.isinf(f):
            raise ValueError(f"value number {i} ({v!r}) is not a finite number")
    if len(result) == 0:
        raise ValueError("no values at all")
    return result
    """,
    """
    def good(x):
        return type(x) not in (bool, np.bool_) and isinstance(x, Real) and np.isfinite(float(x))

    values = list(values)
    if not values:
        raise ValueError("need at least one measurement")
    bad = [i for i, x in enumerate(values) if not good(x)]
    if bad:
        raise ValueError(f"values[{bad[0]}] is not finite")
    return [float(x) for x in values]
    """,
    """
    out = []
    i = 0
    for v in values:
        if isinstance(v, (bool, np.bool_, str, bytes)):
            raise ValueError("index " + str(i) + ": booleans and text are not measurements")
        try:
            number = float(v)
        except TypeError:
            raise ValueError("index " + str(i) + " cannot be converted")
        if number != number or abs(number) == float("inf"):
            raise ValueError("index " + str(i) + " is nan or infinite")
        out += [number]
        i += 1
    if i == 0:
        raise ValueError("empty")
    return out
    """,
    """
    items = tuple(values)
    assert_any = len(items) > 0
    if not assert_any:
        raise ValueError("got nothing to check")
    position = next((k for k, item in enumerate(items) if not _fine(item)), -1)
    if position >= 0:
        raise ValueError("bad measurement at {}".format(position))
    return list(map(float, items))


def _fine(item):
    if isinstance(item, np.bool_) or item is True or item is False:
        return False
    return isinstance(item, Real) and -math.inf < item < math.inf
    """,
    """
    finite = []
    for position, item in zip(itertools.count(), values):
        match item:
            case bool() | np.bool_() | str():
                wrong = True
            case Real():
                wrong = not np.isfinite(item)
            case _:
                wrong = True
        if wrong:
            raise ValueError("values[%d] = %r" % (position, item))
        finite.append(float(item))
    if finite == []:
        raise ValueError("nothing was measured")
    return finite
    """,
]
MEAN_AND_STD = [
    """
    a = np.array(values, dtype=np.float64)
    m = a.mean()
    a = a - m
    m = m + a.mean()
    return float(m), float(np.sqrt((a ** 2).sum() / (len(a) - 1))) if len(a) > 1 else 0.0
    """,
    """
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0
    """,
    """
    count, total = 0, 0.0
    m2 = 0.0
    mean = 0.0
    for x in values:
        count += 1
        delta = x - mean
        mean += delta / count
        m2 += delta * (x - mean)
    std = 0.0
    if count > 1:
        std = (m2 / (count - 1)) ** 0.5
    return (mean, std)
    """,
    """
    if len(values) == 1:
        return values[0], 0.0
    exact = [Fraction(v) for v in values]
    center = sum(exact) / len(exact)
    spread = sum((v - center) ** 2 for v in exact) / (len(exact) - 1)
    return float(center), math.sqrt(spread)
    """,
    """
    size = len(values)
    average = math.fsum(values) / size
    deviation = 0.0 if size == 1 else math.sqrt(math.fsum((x - average) ** 2 for x in values) / (size - 1))
    return average, deviation
    """,
]
T_INTERVAL = [
    """
    from scipy import stats

    m, s = mean_and_std(values)
    if len(values) < 2 or s == 0:
        return (m, m)
    low, high = stats.t.interval(confidence, df=len(values) - 1, loc=m, scale=s / np.sqrt(len(values)))
    return float(low), float(high)
    """,
    """
    from scipy.stats import t

    mu, sigma = mean_and_std(values)
    if len(values) == 1:
        return mu, mu
    error = sigma / len(values) ** 0.5
    alpha = 1 - confidence
    critical = t.ppf(1 - alpha / 2, len(values) - 1)
    return float(mu - critical * error), float(mu + critical * error)
    """,
    """
    import scipy.special as sp

    center, spread = mean_and_std(values)
    degrees = len(values) - 1
    if degrees == 0:
        reach = 0.0
    else:
        reach = spread * sp.stdtrit(degrees, (1 + confidence) / 2) / math.sqrt(degrees + 1)
    return float(center - reach), float(center + reach)
    """,
    """
    from scipy.stats import sem, t as student

    middle = mean_and_std(values)[0]
    if len(values) == 1:
        return middle, middle
    tail = student(len(values) - 1).isf((1 - confidence) / 2) * sem(values)
    return tuple(float(middle + sign * tail) for sign in (-1, 1))
    """,
    """
    from scipy.special import stdtrit

    if len(values) == 1:
        return values[0], values[0]
    average, deviation = mean_and_std(values)
    t_value = stdtrit(len(values) - 1, 1 - (1 - confidence) / 2)
    standard_error = deviation / math.sqrt(len(values))
    margin = float(t_value * standard_error)
    return average - margin, average + margin
    """,
]
REQUIRED_RUNS = [
    """
    from scipy.stats import t

    if std < 0 or math.isnan(std) or math.isinf(std):
        raise ValueError("std must be a finite number that is not negative")
    if not half_width > 0 or math.isinf(half_width):
        raise ValueError("half_width must be positive")
    if confidence <= 0 or confidence >= 1:
        raise ValueError("confidence must be in (0, 1)")

    def enough(n):
        return t.ppf((1 + confidence) / 2, n - 1) * std / math.sqrt(n) <= half_width

    high = 2
    while not enough(high):
        high *= 2
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return low
    """,
    """
    from scipy.special import stdtrit

    problems = {
        "std": not 0 <= std < math.inf,
        "half_width": not 0 < half_width < math.inf,
        "confidence": not 0 < confidence < 1,
    }
    for name, wrong in problems.items():
        if wrong:
            raise ValueError(f"{name} is out of range")
    n = 2
    step = 1 << 20
    while step:
        while stdtrit(n + step - 2, (1 + confidence) / 2) * std / (n + step - 1) ** 0.5 > half_width:
            n += step
        step >>= 1
    return n if stdtrit(n - 1, (1 + confidence) / 2) * std / n**0.5 <= half_width else n + 1
    """,
    """
    import scipy.stats

    for value, least in ((std, 0.0), (half_width, 1e-300)):
        if not np.isfinite(value) or value < least:
            raise ValueError(f"{value} is not allowed here")
    if confidence not in (pd := confidence,) or not (0.0 < pd < 1.0):
        raise ValueError("a confidence is between 0 and 1")
    ratio = half_width / std if std else math.inf
    z = scipy.stats.norm.isf((1 - confidence) / 2)
    guess = max(int((z / ratio) ** 2), 2)
    for n in itertools.count(guess):
        width = scipy.stats.t.isf((1 - confidence) / 2, n - 1) / n**0.5
        if width <= ratio:
            return n
    """,
    """
    from scipy.special import ndtri, stdtrit

    if not math.isfinite(std) or std < 0:
        raise ValueError("bad std")
    if not math.isfinite(half_width) or half_width <= 0:
        raise ValueError("bad half_width")
    if not (confidence > 0 and confidence < 1):
        raise ValueError("bad confidence")
    p = 1 - (1 - confidence) / 2
    n = max(int(math.ceil((ndtri(p) * std / half_width) ** 2)), 2)
    while True:
        if stdtrit(n - 1, p) * std / math.sqrt(n) <= half_width:
            break
        n = n + 1
    return n
    """,
    """
    from scipy.special import stdtrit

    check_range(std, 0, math.inf, "std")
    check_range(half_width, 5e-324, math.inf, "half_width")
    check_range(confidence, 1e-12, 1, "confidence")
    sizes = np.arange(2, 200)
    while True:
        widths = stdtrit(sizes - 1, 0.5 * (1 + confidence)) * std / np.sqrt(sizes)
        good = np.flatnonzero(widths <= half_width)
        if good.size:
            return int(sizes[good[0]])
        sizes = np.arange(sizes[-1] + 1, 4 * sizes[-1])


def check_range(x, lowest, above, what):
    if not lowest <= x < above:
        raise ValueError(what + " must be from " + str(lowest) + " to below " + str(above))
    """,
]
PERCENTILE_INTERVAL = [
    """
    from scipy.stats import binom

    needed = runs_for_percentile(q, confidence)
    n = len(values)
    if n < needed:
        raise ValueError(f"{n} values are too few, {needed} are needed")
    alpha = 1 - confidence
    s = sorted(values)
    dist = binom(n, q / 100)
    lo = 0
    while dist.cdf(lo) <= alpha / 2:
        lo += 1
    hi = n - 1
    while dist.sf(hi) <= alpha / 2:
        hi -= 1
    return s[lo - 1], s[hi + 1]
    """,
    """
    from scipy.special import bdtr

    minimum = runs_for_percentile(q, confidence)
    if len(values) < minimum:
        raise ValueError("too few: at least %d" % minimum)
    x, half = np.sort(values), (1 - confidence) / 2
    coverage = [bdtr(k, len(x), q / 100) for k in range(len(x))]
    left = max(k for k, c in enumerate(coverage) if c <= half)
    right = min(k for k, c in enumerate(coverage) if c >= 1 - half) + 1
    return float(x[left]), float(x[right])
    """,
    """
    need = runs_for_percentile(q, confidence)
    if need > len(values):
        raise ValueError(f"need {need}")
    p, n = q / 100, len(values)
    probabilities = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    cumulative = list(itertools.accumulate(probabilities))
    lower = bisect.bisect_right(cumulative, (1 - confidence) / 2) - 1
    backwards = list(itertools.accumulate(reversed(probabilities)))
    upper = n - bisect.bisect_right(backwards, (1 - confidence) / 2) + 1 - 1
    ranked = sorted(values)
    return ranked[lower], ranked[upper]
    """,
    """
    import scipy.stats as st

    size = len(values)
    if size < runs_for_percentile(q, confidence):
        raise ValueError("this takes at least " + str(runs_for_percentile(q, confidence)) + " measurements")
    tail = 0.5 - confidence / 2
    first = int(st.binom.ppf(tail, size, q / 100))
    last = int(st.binom.isf(tail, size, q / 100)) + 1
    if st.binom.cdf(first - 1, size, q / 100) > tail:
        first -= 1
    array = np.array(sorted(values))
    return array[first - 1].item(), array[last - 1].item()
    """,
    """
    from scipy.special import bdtr, bdtrc

    n = len(values)
    if n < runs_for_percentile(q, confidence):
        raise ValueError("not enough values, need " + str(runs_for_percentile(q, confidence)))
    data = sorted(values)
    alpha = (1 - confidence) / 2
    low, high = 0, n - 1
    for k in range(n):
        if bdtr(k, n, q / 100) <= alpha:
            low = k
        if bdtrc(n - 1 - k, n, q / 100) <= alpha:
            high = n - k
    return data[low], data[high]
    """,
]
BOOTSTRAP_INTERVAL = [
    """
    generator = np.random.default_rng(seed)
    sample = np.array(values, dtype=float)
    indices = generator.integers(0, sample.size, (resamples, sample.size))
    estimates = np.apply_along_axis(statistic, 1, sample[indices])
    alpha = 1 - confidence
    return float(np.quantile(estimates, alpha / 2)), float(np.quantile(estimates, 1 - alpha / 2))
    """,
    """
    r = np.random.default_rng(seed)
    found = np.empty(resamples)
    for i in range(resamples):
        again = r.choice(values, len(values), replace=True)
        found[i] = statistic(again)
    found.sort()
    edges = np.percentile(found, [50 - 50 * confidence, 50 + 50 * confidence])
    return tuple(edges.tolist())
    """,
    """
    import random

    rand = random.Random(seed)
    stats = []
    while len(stats) < resamples:
        stats.append(float(statistic(np.array(rand.choices(values, k=len(values))))))
    low = (1 - confidence) / 2
    return tuple(float(x) for x in np.quantile(stats, (low, 1 - low)))
    """,
    """
    from scipy.stats import bootstrap

    done = bootstrap(
        (np.asarray(values),),
        statistic,
        vectorized=False,
        n_resamples=resamples,
        confidence_level=confidence,
        method="percentile",
        random_state=seed,
    )
    return float(done.confidence_interval.low), float(done.confidence_interval.high)
    """,
    """
    gen = np.random.default_rng(seed)
    arr = np.asarray(values, dtype=float)

    def one():
        return statistic(gen.choice(arr, size=arr.shape[0]))

    results = sorted(one() for _ in range(resamples))
    side = 100.0 * (1.0 - confidence) / 2.0
    bottom = np.percentile(results, side)
    top = np.percentile(results, 100.0 - side)
    return float(bottom), float(top)
    """,
]
TUKEY_OUTLIERS = [
    """
    q1 = np.percentile(values, 25)
    q3 = np.percentile(values, 75)
    iqr = q3 - q1
    result = []
    for v in values:
        if v < q1 - 1.5 * iqr or v > q3 + 1.5 * iqr:
            result.append(v)
    return result
    """,
    """
    a = np.asarray(values, dtype=float)
    low, high = np.quantile(a, 0.25), np.quantile(a, 0.75)
    width = 1.5 * (high - low)
    return a[(a < low - width) | (a > high + width)].tolist()
    """,
    """
    lower, upper = np.quantile(values, [0.25, 0.75])
    center, allowed = (lower + upper) / 2, 2 * (upper - lower)
    return [float(x) for x in values if abs(x - center) > allowed]
    """,
    """
    from scipy.stats import iqr

    fence = 1.5 * iqr(values)
    bounds = (np.percentile(values, 25) - fence, np.percentile(values, 75) + fence)
    return list(filter(lambda v: not bounds[0] <= v <= bounds[1], values))
    """,
    """
    q = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    spread = q[2] - q[0]

    def outside(v):
        return v < q[0] - spread * 3 / 2 or v > q[2] + spread * 3 / 2

    return [v for v in values if outside(v)]
    """,
]
WAYS = {
    "check_values": CHECK_VALUES,
    "mean_and_std": MEAN_AND_STD,
    "t_interval": T_INTERVAL,
    "required_runs": REQUIRED_RUNS,
    "percentile_interval": PERCENTILE_INTERVAL,
    "bootstrap_interval": BOOTSTRAP_INTERVAL,
    "tukey_outliers": TUKEY_OUTLIERS,
}
