"""Module 14, written otherwise."""

VARIANTS = {
    "arrivals": [("gaps, added up until the end", '''    if process == "constant":
        return np.arange(round(rate * seconds)) / rate
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))''', '''    if process == "poisson":
        rng, times, now = np.random.default_rng(seed), [], 0.0
        while (now := now + rng.exponential(1 / rate)) < seconds:
            times.append(now)
        return np.array(times)
    return np.linspace(0, seconds, round(rate * seconds), endpoint=False)'''),
                 ("many gaps, cut off", '''    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))''', '''    generator = np.random.Generator(np.random.Philox(seed))
    times = np.cumsum(generator.exponential(scale=1 / rate, size=int(rate * seconds * 2 + 100)))
    return times[times <= seconds]''')],
    "answer_arrivals": [("rounded", "return 1 - math.exp(-0.2)", "return 0.18")],
    "latencies": [("copies, filled", "return np.asarray(np.where(self.ok, self.finished - self.intended, math.inf))", '''waited = self.finished - self.intended
    waited[~self.ok] = np.inf
    return waited'''),
                  ("lists", "return np.asarray(np.where(self.ok, self.finished - self.intended, math.inf))",
                   "return np.array([f - i if o else float('inf') for i, f, o in zip(self.intended, self.finished, self.ok)])")],
    "answer_omission": [("rounded", "return 100 / (18 / 0.010)", "return 0.056")],
    "open_loop": [("asleep until the moment is there", '''        for i, intended in enumerate(times.tolist()):
            pause = record.begin + intended - clock()
            if pause > 0:
                sleep(pause)
            record.submit(pool, i)''', '''        for i in range(len(times)):
            while (left := record.begin + times[i] - clock()) > 0:
                sleep(left)
            record.submit(pool, i)'''),
                  ("max, and NumPy's numbers", '''            pause = record.begin + intended - clock()
            if pause > 0:
                sleep(pause)''', '''            due = np.float64(record.begin) + intended
            if clock() < due:
                sleep(max(0, due - clock()))''')],
    "tail_interval": [("SciPy's t, one end after the other", '''    error = max(math.sqrt(beyond * (1 - beyond) / len(ordered)), shares.std(ddof=1) / math.sqrt(batches))
    reach = stdtrit(batches - 1, 0.5 + confidence / 2) * error / beyond
    low, high = np.quantile(ordered, 1 - np.minimum(1, beyond * np.exp([reach, -reach])), method="inverted_cdf")
    return float(low), float(high)''', '''    from scipy import stats

    error = max(np.sqrt(beyond * (1 - beyond) / len(values)), stats.sem(shares))
    factor = math.exp(stats.t.ppf(1 - (1 - confidence) / 2, df=9) * error / beyond)
    low = np.quantile(ordered, max(0, 1 - beyond * factor), method="inverted_cdf")
    return low, np.quantile(ordered, 1 - beyond / factor, method="inverted_cdf")'''),
                      ("by rank", '''    low, high = np.quantile(ordered, 1 - np.minimum(1, beyond * np.exp([reach, -reach])), method="inverted_cdf")
    return float(low), float(high)''', '''    places = [math.ceil(len(ordered) * (1 - beyond * math.exp(x)) - 1e-9) - 1 for x in (reach, -reach)]
    return tuple(float(ordered[max(0, place)]) for place in places)''')],
    "answer_averages": [("floats", "return 1000\n", "return 1e3\n")],
    "mg1": [
        (
            "the other form",
            "return rho / (1 - rho) * (1 + cv2) / 2 * service",
            "second_moment = (cv2 + 1) * service**2\n    return rate * second_moment / 2 / (1 - rho)",
        ),
        (
            "NumPy",
            "return rho / (1 - rho) * (1 + cv2) / 2 * service",
            "return np.float64(rho * service) * (0.5 + cv2 / 2) / (1 - rho)",
        ),
    ],
    "mmc": [
        (
            "logarithms of the terms",
            """    blocked = 1.0  # Erlang B, by its recursion: powers and factorials would overflow
    for k in range(1, servers + 1):
        blocked = rate * service * blocked / (k + rate * service * blocked)
    waits = blocked / (1 - rho * (1 - blocked))  # Erlang C: the share of requests that wait
    return waits * service / (servers * (1 - rho))""",
            """    a = rate * service
    terms = [k * math.log(a) - math.lgamma(k + 1) for k in range(servers + 1)]
    last = math.exp(terms[-1] - max(terms)) / (1 - rho)
    others = sum(math.exp(term - max(terms)) for term in terms[:-1])
    return last / (last + others) / (servers / service - rate)""",
        ),
        (
            "the inverse of B",
            """    blocked = 1.0  # Erlang B, by its recursion: powers and factorials would overflow
    for k in range(1, servers + 1):
        blocked = rate * service * blocked / (k + rate * service * blocked)
    waits""",
            """    inverse, load = 1.0, rate * service
    for k in range(1, servers + 1):
        inverse = 1 + inverse * k / load
    blocked = 1 / inverse
    waits""",
        ),
    ],
    "simulate_queue": [
        (
            "a loop over requests, lists",
            "",
            """
def waits_of_one(times, work):
    waits = [0.0]
    for before, gap in zip(work[:-1], np.diff(times)):
        waits.append(max(0.0, waits[-1] + before - gap))
    return waits


def waits_of_several(times, work, servers):
    free, waits = np.zeros(servers) - 1e18, np.empty(len(times))
    for i in range(len(times)):
        k = int(np.argmin(free))
        start = max(free[k], times[i])
        waits[i], free[k] = start - times[i], start + work[i]
    return waits
""",
        ),
        (
            "ends instead of waits",
            """    ahead = np.concatenate([[0.0], np.cumsum(work[:-1] - np.diff(times))])
    return np.asarray(ahead - np.minimum.accumulate(ahead))""",
            """    done = np.cumsum(work)
    before = done - work
    begin = before + np.maximum.accumulate(times - before)
    return begin - times""",
        ),
    ],
    "instances_needed": [
        (
            "a while loop",
            """    for instances in range(math.floor(busy) + 1, most + 1):
        low, high = tail(instances)
        if low <= bound:
            return CapacityPlan(instances, high <= bound, low, high)""",
            """    instances = 1
    while instances <= most:
        if busy / instances < 1:
            ends = tail(instances)
            if not ends[0] > bound:
                return CapacityPlan(np.int64(instances), np.bool_(max(ends) <= bound), *ends)
        instances += 1""",
        ),
        (
            "gaps added up, and the start left out by the clock",
            """        times = arrivals(peak_qps, requests / peak_qps, seed=seed)
        work = redrawn(measured, len(times), seed)
        return np.asarray(simulate(times, work, instances) + work)[len(times) // 10 :]""",
            """        times = np.cumsum(np.random.default_rng(seed).exponential(1 / peak_qps, requests))
        work = redrawn(measured, requests, seed)
        return (work + simulate(times, work, instances))[times > times[-1] / 10]""",
        ),
    ],
    "answer_understanding": [("whole numbers", "return 0.9 / (1 - 0.9) / 2 * 10", "return 45")],
}  # fmt: skip
