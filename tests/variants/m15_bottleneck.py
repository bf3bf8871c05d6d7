"""Module 15, written otherwise."""

VARIANTS = {
    "granted_cores": [("split and float", '''    quota, _, period = cpu_max.strip().partition(" ")
    if quota in ("", "max"):
        return float(cores)
    return min(float(cores), int(quota) / int(period))''', '''    numbers = cpu_max.split()
    if not numbers or not numbers[0].isdigit():
        return cores
    return np.minimum(float(numbers[0]) / float(numbers[1]), cores)''')],
    "stolen_share": [("NumPy", '''    spent = [int(b) - int(a) for a, b in zip(before.split()[1:9], after.split()[1:9], strict=True)]
    return spent[7] / sum(spent) if sum(spent) else 0.0''', '''    first, second = (np.array(line.split()[1:9], dtype=float) for line in (before, after))
    spent = second - first
    return spent[7] / max(spent.sum(), 1e-300)''')],
    "judge": [("three lists", '''    findings = []
    for rule in rules:
        value = facts.get(rule.fact)
        if value is None:
            findings.append(Finding(rule.name, "unknown", "not known here"))
        elif rule.fine(value):
            findings.append(Finding(rule.name, "ok", rule.show(value)))
        else:
            findings.append(Finding(rule.name, "warn", rule.show(value), rule.why, rule.do))
    return sorted(findings, key=lambda finding: ("warn", "unknown", "ok").index(finding.level))''', '''    warn, unknown, ok = [], [], []
    for rule in rules:
        if rule.fact not in facts or facts[rule.fact] is None:
            unknown.append(Finding(name=rule.name, level="unknown", seen="not known here"))
            continue
        seen = rule.show(facts[rule.fact])
        if rule.fine(facts[rule.fact]):
            ok.append(Finding(rule.name, "ok", seen))
        else:
            warn.append(Finding(rule.name, "warn", seen, rule.why, rule.do))
    return tuple(warn + unknown + ok)''')],
    "stack_of": [("recursion", '''    names = []
    while frame is not None:
        names.append(f"{frame.f_code.co_qualname} ({os.path.basename(frame.f_code.co_filename)})")
        frame = frame.f_back
    return tuple(reversed(names))''', '''    if frame is None:
        return ()
    code = frame.f_code
    return (*stack_of(frame.f_back), f"{code.co_qualname} ({Path(code.co_filename).name})")'''),
                 ("a list, from the front", '''    names = []
    while frame is not None:
        names.append(f"{frame.f_code.co_qualname} ({os.path.basename(frame.f_code.co_filename)})")
        frame = frame.f_back
    return tuple(reversed(names))''', '''    names = []
    while frame:
        code, frame = frame.f_code, frame.f_back
        names.insert(0, "%s (%s)" % (code.co_qualname, code.co_filename.split("/")[-1]))
    return names''')],
    "take": [("the end first", '''    now = self.clock()
    self.samples.append(Sample(self.last, stack_of(frame), now - self.last))
    self.last = now''', '''    start, self.last = self.last, self.clock()
    self.samples = [*self.samples, Sample(seconds=self.last - start, stack=stack_of(frame), start=start)]'''),
             ("the stack first", "    now = self.clock()\n    self.samples.append(Sample(self.last, stack_of(frame), now - self.last))", "    stack = stack_of(frame)\n    now = self.clock()\n    self.samples += [Sample(self.last, stack, now - self.last)]")],
    "shares": [("Counter", "", '''
from collections import Counter


def self_shares(samples):
    times = Counter()
    for _, stack, seconds in samples:
        times[stack[-1]] += seconds
    return {name: each / sum(times.values()) for name, each in times.most_common()}


def total_shares(samples):
    names = {name for sample in samples for name in sample.stack}
    whole = sum(sample[2] for sample in samples)
    shares = [(sum(s.seconds for s in samples if name in s.stack) / whole, name) for name in names]
    return {name: np.float64(share) for share, name in sorted(shares, reverse=True)}
''')],
    "answer_samples": [("rounded", "100 * 1.96 * math.sqrt(0.15 * 0.85 / 2000)", "1.6")],
    "repeat_counts": [("all ratios tried", '''    if not 1.1 <= speedup < math.inf:
        raise ValueError(f"speedup is {speedup}; 2 is twice as fast, and it must be at least 1.1")
    return Fraction(speedup).limit_denominator(10).as_integer_ratio()''', '''    if math.isnan(speedup) or math.isinf(speedup) or speedup < 1.1:
        raise ValueError("give a speed-up of 1.1 or more")
    less = min(range(1, 11), key=lambda q: (round(abs(round(speedup * q) / q - speedup), 12), q))
    return [round(speedup * less), less]''')],
    "slowed_stages": [("a loop over a copy", "return {name: Repeated(stage, less if name == spared else times) for name, stage in stages.items()}", '''slowed = dict(stages)
    for name in slowed:
        slowed[name] = Repeated(stages[name], times)
    if spared is not None:
        slowed[spared] = Repeated(stages[spared], less)
    return slowed''')],
    "virtual_gain": [("statistics", '''    saved = np.median(np.subtract(slowed, spared)) / times
    return float(saved / np.median(plain))''', '''    import statistics

    differences = [a - b for a, b in zip(slowed, spared)]
    return statistics.median(differences) / (times * statistics.median(plain))'''),
                     ("quantiles, NumPy's numbers", '''    return float(np.median(slowed) / (times * np.median(plain)) - 1)''', '''    expected = times * np.quantile(plain, 0.5)
    return (np.quantile(slowed, 0.5) - expected) / expected''')],
    "answer_amdahl": [("written down", "1 / 0.75\n", "1.33\n")],
    # ---- roofline
    "gemm_work": [("whole numbers, NumPy's product", "return Work(2.0 * m * k * n, float(m * k * a_bytes + k * n * b_bytes + m * n * c_bytes))",
                   "sizes = np.array([m * k, k * n, m * n])\n    return Work(flop=2 * m * n * k, bytes=np.dot(sizes, [a_bytes, b_bytes, c_bytes]))")],
    "answer_batch": [("rounded, tried out", "return math.ceil(32 / (1 - 32 / 512))", "return next(n for n in range(1, 99) if 2 * n * 1024**2 / 4 / (2 * n * 1024 + 1024**2) >= 16)"),
                     ("two digits", "return 2 * 1024**2 / (4 * (1024**2 + 2 * 1024))", "return 0.5")],
    "attainable": [("by the ridge", '''    if work.flop / seconds < near * attainable(work.intensity, peak, bandwidth):
        return "overhead"
    return "compute" if work.intensity * bandwidth >= peak else "memory"''', '''    ridge = peak / bandwidth
    reached = work.flop / seconds / attainable(work.intensity, peak, bandwidth)
    return "overhead" if reached < near else "memory" if work.intensity < ridge else "compute"'''),
                   ("by times", '''    if work.flop / seconds < near * attainable(work.intensity, peak, bandwidth):
        return "overhead"
    return "compute" if work.intensity * bandwidth >= peak else "memory"''', '''    least = {"compute": work.flop / peak, "memory": work.bytes / bandwidth}
    slowest = max(least, key=least.get)
    return np.str_(slowest if least[slowest] >= near * seconds else "overhead")'''),
                   ("NumPy's minimum", "return min(peak, intensity * bandwidth)", "return np.minimum(peak, bandwidth * intensity)")],
    "speedups": [("a loop, a function of its own", '''    return {n: gain / n for n, gain in speedup(seconds).items()}''', '''    found = {}
    for n in sorted(seconds):
        found[n] = np.float64(seconds[1]) / (n * seconds[n])
    return found'''),
                 ("an error of dict, told anew", '''    if 1 not in seconds:
        raise ValueError(f"seconds has {', '.join(map(str, seconds))} workers; a speed-up needs the time of 1, too")
    return {n: seconds[1] / took for n, took in seconds.items()}''', '''    try:
        one = seconds[1]
    except KeyError:
        raise ValueError("no time of one worker") from None
    return dict(zip(seconds, one / np.array(list(seconds.values()))))''')],
    "laws": [("multiplied out", "return 1 / (serial + (1 - serial) / n)", "return n / (1 + serial * (n - 1))"),
             ("by its other form", "return n - serial * (n - 1)", "return serial + (1 - serial) * n"),
             ("factored", "return n / (1 + contention * (n - 1) + crosstalk * n * (n - 1))", "return n / (1 + (n - 1) * (contention + n * crosstalk))")],
    "answer_serial": [("floats", "return round(1 + 1 / 0.05)", "return 21.0")],
    "fit_usl": [("bounds of lsq_linear", '''    contention, crosstalk = nnls(np.stack([n - 1, n * (n - 1)], axis=1), lost)[0]
    return float(contention), float(crosstalk)''', '''    from scipy.optimize import lsq_linear

    return tuple(lsq_linear(np.column_stack([n - 1, n**2 - n]), lost, (0, np.inf), tol=1e-14, method="bvls").x)'''),
                ("without one worker's row", '''    n = np.array([float(workers) for workers in speedups])
    lost = n / np.array(list(speedups.values())) - 1''', '''    workers = sorted(k for k in speedups if k > 1)
    n = np.asarray(workers, dtype=float)
    lost = np.array([k / speedups[k] for k in workers]) - 1'''),
                ("infinity last", '''    if contention >= 1:
        return 1.0
    return max(1.0, math.sqrt((1 - contention) / crosstalk)) if crosstalk else math.inf''', '''    left = max(0.0, 1 - contention)
    if not crosstalk:
        return math.inf if left else 1
    return np.sqrt(max(left, crosstalk) / crosstalk)''')],
    "types_that_ran": [("a Counter, two loops", '''    times: dict[str, float] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and event["args"]["op_name"] in PRODUCTS:
            kind = PRODUCTS[event["args"]["op_name"]] or next(iter(event["args"]["input_type_shape"][0]))
            times[kind] = times.get(kind, 0.0) + event["dur"]
    total = sum(times.values()) or 1.0  # a trace rounds short times to 0 µs
    return {kind: spent / total for kind, spent in sorted(times.items(), key=lambda item: -item[1])}''', '''    from collections import Counter

    times = Counter()
    for event in events:
        if event["cat"] != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        operator = event["args"]["op_name"]
        if operator in PRODUCTS:
            (first, _), *_ = event["args"]["input_type_shape"][0].items()
            times[PRODUCTS[operator] or first] += event["dur"]
    whole = sum(times.values())
    return {kind: np.float64(spent) / whole for kind, spent in times.most_common()}''')],
    "answer_understanding": [("two digits", "return 2 * 64 * 512 * 512 / 1e-3 / 200e9", "return 0.17"),
                             ("rounded", "return 10 / (1 + 0.05 * 9 + 0.0095 * 10 * 9)", "return 4.3")],
}  # fmt: skip
