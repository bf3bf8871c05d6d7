"""Module 15, written otherwise."""

VARIANTS = {
    "granted_cores": [("split and float", '''    quota, _, period = cpu_max.strip().partition(" ")
    if quota in ("", "max"):
        return float(cores)
    return min(float(cores), int(quota) / int(period))''', '''    numbers = cpu_max.split()
    if not numbers or not numbers[0].isdigit():
        return cores
    return np.minimum(float(numbers[0]) / float(numbers[1]), cores)''')],
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
    "answer_amdahl": [("by the time saved", "1 / (0.75 + 0.25 / 5)", "1 / (1 - 0.2)")],
    "gemm_work": [("whole numbers, NumPy's product", "return Work(2.0 * m * k * n, float(m * k * a_bytes + k * n * b_bytes + m * n * c_bytes))",
                   "sizes = np.array([m * k, k * n, m * n])\n    return Work(flop=2 * m * n * k, bytes=np.dot(sizes, [a_bytes, b_bytes, c_bytes]))")],
    "answer_batch": [("rounded, tried out", "return math.ceil(32 / (1 - 32 / 512))", "return next(n for n in range(1, 99) if 2 * n * 1024**2 / 4 / (2 * n * 1024 + 1024**2) >= 16)"),
                     ("two digits", "return 2 * 1024**2 / (4 * (1024**2 + 2 * 1024))", "return 0.5")],
    "wall": [("by the ridge", '''    if work.flop / seconds < near * attainable(work.intensity, peak, bandwidth):
        return "overhead"
    return "compute" if work.intensity * bandwidth >= peak else "memory"''', '''    ridge = peak / bandwidth
    reached = work.flop / seconds / attainable(work.intensity, peak, bandwidth)
    return "overhead" if reached < near else "memory" if work.intensity < ridge else "compute"'''),
             ("by times", '''    if work.flop / seconds < near * attainable(work.intensity, peak, bandwidth):
        return "overhead"
    return "compute" if work.intensity * bandwidth >= peak else "memory"''', '''    least = {"compute": work.flop / peak, "memory": work.bytes / bandwidth}
    slowest = max(least, key=least.get)
    return np.str_(slowest if least[slowest] >= near * seconds else "overhead")''')],
    "answer_understanding": [("two digits", "return 2 * 64 * 512 * 512 / 1e-3 / 200e9", "return 0.17")],
}  # fmt: skip
