"""Module 06, written otherwise."""

VARIANTS = {
    "counter_difference": [("a lambda", "", "counter_difference = lambda before, after, largest: (after - before) % largest"),
                           ("one more, NumPy", "", '''
def counter_difference(before, after, largest):
    step = np.int64(after) - np.int64(before)
    if step < 0:
        step += largest + 1
    return step
''')],
    "rapl_meter": [("sum of a comprehension", "for before, after, largest in zip(self._last, now, self._largest, strict=True):\n        self._microjoules += counter_difference(before, after, largest)",
                    "steps = map(counter_difference, self._last, now, self._largest)\n    self._microjoules = self._microjoules + sum(steps)"),
                   ("NumPy, with attributes of its own", '''    for before, after, largest in zip(self._last, now, self._largest, strict=True):
        self._microjoules += counter_difference(before, after, largest)
    self._last = now
    return self._microjoules / 1e6''', '''    last, new = np.array(self._last, dtype=np.int64), np.array(now, dtype=np.int64)
    step = np.where(new >= last, new - last, new - last + np.array(self._largest))
    self._last, self.joules = now, getattr(self, "joules", np.float64(0)) + step.sum() * 1e-6
    return self.joules''')],
    "cpu_meter": [("or", "seconds if self.watts_per_core is None else seconds * self.watts_per_core",
                   "np.float64(seconds) * (self.watts_per_core or 1)"),
                  ("early return", "return seconds if self.watts_per_core is None else seconds * self.watts_per_core",
                   'if self.unit == "s":\n        return seconds\n    return self.watts_per_core * seconds')],
    "best_meter": [("a loop over what may work", "", '''
def best_meter(root=POWERCAP, watts_per_core=None, source="given by the caller"):
    why = None
    for make in (lambda: RaplMeter(root=root), lambda: CpuTimeMeter(watts_per_core, source=source, reason=why)):
        try:
            return make()
        except (OSError, PermissionError) as error:
            why = f"{error}"
''')],
    "reading_functions": [("other names, keyword, while", '''    for _ in range(loops):
        call(inputs)
    energy, seconds = meter.read() - energy, clock() - start''', '''    left = loops
    while left:
        call(inputs)
        left -= 1
    stop = clock()
    energy, seconds = np.float64(meter.read() - energy), np.float64(stop - start)'''),
                          ("before and after", '''    energy, start = meter.read(), clock()
    sleep(seconds)
    watts = float((meter.read() - energy) / (clock() - start))''', '''    before = {"t": clock(), "e": meter.read()}
    sleep(seconds)
    after = {"t": clock(), "e": meter.read()}
    watts = (after["e"] - before["e"]) / (after["t"] - before["t"])''')],
    "measure_energy": [("lists that are arrays, two loops", '''    for _ in range(measurement_runs):
        idle.append(idle_power(meter, min_reading, clock, sleep) if meter.measured else 0.0)
        energy, seconds = energy_reading(call, x, loops, meter, clock)
        if meter.measured and not energy:
            raise RuntimeError("the energy counter did not move in a reading: it is a dummy; use CpuTimeMeter")
        values.append((energy - idle[-1] * seconds) / loops)
''', '''    idle, busy, long = np.zeros(measurement_runs), np.zeros(measurement_runs), np.zeros(measurement_runs)
    for run in range(measurement_runs):
        if meter.measured:
            idle[run] = idle_power(meter, min_reading, clock, sleep)
        busy[run], long[run] = energy_reading(call, x, loops, meter, clock)
    if meter.measured and not busy.all():
        raise RuntimeError("this counter stands still")
    values = ((busy - idle * long) / loops).tolist()
'''),
                       ("error by equality, in another place", '''        if meter.measured and not energy:
            raise RuntimeError("the energy counter did not move in a reading: it is a dummy; use CpuTimeMeter")
        values.append((energy - idle[-1] * seconds) / loops)
''', '''        values.append((energy - idle[-1] * seconds) / loops)
        if energy == 0 and meter.measured:
            raise RuntimeError(f"reading {len(values)}: this counter stands still")
''')],
    "cpu_utilisation": [("a helper", "        busy, seconds = energy_reading(call, x, loops, meter, clock)\n        values.append(busy / seconds)",
                         "        values.append(np.divide(*energy_reading(call, x, loops, meter=meter, clock=clock)))"),
                        ("without the meter", '''        busy, seconds = energy_reading(call, x, loops, meter, clock)
        values.append(busy / seconds)''', '''        wall, processor = clock(), cpu_clock()
        [call(x) for _ in range(loops)]
        values += [(cpu_clock() - processor) / (clock() - wall)]''')],
    "answer_understanding": [("rounded, a text of its own", "", '''
def seconds_to_wrap(): return 234
def more_processor_time(): return np.str_("B")
def processor_and_memory(): return np.array(10.0)
''')],
}  # fmt: skip
