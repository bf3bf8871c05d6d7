"""The optional module 14_scenarios, written otherwise."""

VARIANTS = {
    "server": [("arithmetic middles, a function", '''    ends = []
    for needed in (1, 0, -1):  # surely kept, rather kept, not surely broken
        kept, broken = low, high
        while broken > kept * (1 + tolerance):
            rate = math.sqrt(kept * broken)
            if judge(rate) >= needed:
                kept = rate
            else:
                broken = rate
        ends.append((kept, broken))
    return Rate(math.sqrt(ends[1][0] * ends[1][1]), ends[0][0], ends[2][1])''', '''    def search(needed):
        a, b = low, high
        while b / a > 1 + tolerance:
            middle = (a + b) / 2
            a, b = (middle, b) if judge(middle) >= needed else (a, middle)
        return a, b

    rather = search(0)
    return Rate(best=sum(rather) / 2, kept=search(1)[0], broken=search(-1)[1])'''),
               ("recursion", '''    ends = []
    for needed in (1, 0, -1):  # surely kept, rather kept, not surely broken
        kept, broken = low, high
        while broken > kept * (1 + tolerance):
            rate = math.sqrt(kept * broken)
            if judge(rate) >= needed:
                kept = rate
            else:
                broken = rate
        ends.append((kept, broken))
    return Rate(math.sqrt(ends[1][0] * ends[1][1]), ends[0][0], ends[2][1])''', '''    def between(a, b, enough):
        if b <= a * (1 + tolerance):
            return a, b
        rate = np.sqrt(a * b)
        return between(rate, b, enough) if enough(judge(rate)) else between(a, rate, enough)

    surely, broken = between(low, high, lambda sure: sure >= 1)[0], between(low, high, lambda sure: sure > -1)[1]
    return Rate(np.sqrt(np.prod(between(low, high, lambda sure: sure > 0))), surely, broken)''')],
    "answer_stopping": [("written down", '''    """The smallest whole number for p99."""
    ### BEGIN SOLUTION
    return math.ceil(math.log(0.01) / math.log(0.99))''', '''    """The smallest whole number for p99."""
    ### BEGIN SOLUTION
    return np.int64(459)''')],
    "simulate_batches": [
        (
            "counting one by one",
            """        full = times[i + max_batch - 1] if i + max_batch <= len(times) else math.inf
        start = max(free, min(full, times[i] + max_wait))
        end = bisect_right(times, start, i, min(i + max_batch, len(times)))""",
            """        start = times[i] + max_wait
        if i + max_batch - 1 < len(times) and times[i + max_batch - 1] < start:
            start = times[i + max_batch - 1]
        if start < free:
            start = free
        end = i
        while end < len(times) and end - i < max_batch and times[end] <= start:
            end += 1""",
        ),
        (
            "NumPy",
            "end = bisect_right(times, start, i, min(i + max_batch, len(times)))",
            'end = i + np.searchsorted(times[i : i + max_batch], start, side="right")',
        ),
    ],
    "gather": [
        (
            "what is there, then a timeout for each",
            """    batch = [await self.queue.get()]
    try:
        async with asyncio.timeout_at(batch[0].arrived + self.max_wait):
            while len(batch) < self.max_batch:
                batch.append(await self.queue.get())
    except TimeoutError:
        pass
    return batch""",
            """    first = await self.queue.get()
    batch, until = [first], first.arrived + self.max_wait
    while len(batch) < self.max_batch:
        if not self.queue.empty():
            batch.append(self.queue.get_nowait())
            continue
        try:
            async with asyncio.timeout_at(until):
                batch.append(await self.queue.get())
        except asyncio.TimeoutError:
            break
    return batch""",
        ),
        (
            "asyncio.wait on a task",
            """    batch = [await self.queue.get()]
    try:
        async with asyncio.timeout_at(batch[0].arrived + self.max_wait):
            while len(batch) < self.max_batch:
                batch.append(await self.queue.get())
    except TimeoutError:
        pass
    return batch""",
            """    loop = asyncio.get_running_loop()
    batch = [await self.queue.get()]
    while len(batch) < self.max_batch:
        while len(batch) < self.max_batch and self.queue.qsize():
            batch.append(self.queue.get_nowait())
        left = batch[0].arrived + self.max_wait - loop.time()
        if len(batch) == self.max_batch or left <= 0:
            break
        more = asyncio.ensure_future(self.queue.get())
        try:
            await asyncio.wait([more], timeout=left)
        finally:
            if not more.done():
                more.cancel()
        if more.done() and not more.cancelled():
            batch.append(more.result())
        else:
            break
    return tuple(batch)""",
        ),
    ],
    "best_setting": [
        (
            "a list that a key decides",
            """        work = sum(map(batch_seconds, sizes))
        if np.quantile(latencies, q / 100) <= bound and work < least:
            best, least = pair, work""",
            """        if np.percentile(latencies, q) > bound:
            continue
        if best is None or np.sum([batch_seconds(n) for n in sizes]) < least:
            best, least = list(pair), np.sum([batch_seconds(n) for n in sizes])""",
        )
    ],
    "answer_understanding": [("NumPy", "return 0.18 / (0.5 * 16 / 0.004 * 3600) * 1e6", "return np.float64(0.025)")],
}  # fmt: skip
