"""Module 06, written otherwise."""

VARIANTS = {
    "package_domains": [("os.listdir, a helper, a tuple", "", '''
PACKAGE = re.compile("intel-rapl:([0-9]+)")


def named(zone):
    with open(os.path.join(zone, "name")) as file:
        return file.read().strip()


def package_domains(root=_POWERCAP, dram=False):
    import glob

    root, found = str(root), []
    names = os.listdir(root) if os.path.isdir(root) else []
    numbers = {name: int(match[1]) for name in names if (match := PACKAGE.fullmatch(name))}
    for name in sorted(numbers, key=numbers.get):
        if not named(f"{root}/{name}").startswith("package"):
            continue
        found.append(Path(root, name))
        if dram:
            found.extend(Path(p) for p in sorted(glob.glob(f"{root}/{name}:*")) if named(p) == "dram")
    if len(found) == 0:
        raise FileNotFoundError(2, "no processor package that counts energy", root)
    return tuple(found)
'''),
                        ("recursion", "", '''
def package_domains(root=_POWERCAP, dram=False):
    def kind(zone):
        return zone.joinpath("name").read_text().strip()

    def grow(left):
        match left:
            case []:
                return []
            case [zone, *rest]:
                parts = [part for part in sorted(zone.parent.iterdir()) if part.name.startswith(zone.name + ":")]
                return [zone, *(part for part in parts if dram and kind(part) == "dram"), *grow(rest)]

    root = Path(root)
    zones = [z for z in (root.iterdir() if root.exists() else []) if re.match(r"^[a-z]+-rapl:\\d+$", z.name)]
    tops = sorted((z for z in zones if kind(z)[:7] == "package"), key=lambda z: int(z.name.split(":")[-1]))
    if found := grow(tops):
        return found
    raise FileNotFoundError(f"{root} shows no package")
''')],
    "read_counter": [("early return, another text", "", '''
def read_counter(path):
    print("reading", path)
    try:
        text = path.read_text(encoding="ascii")
    except PermissionError as error:
        message = "Only root may read " + str(path) + ". Ask your administrator, or try sudo."
        raise PermissionError(message) from error
    if not re.fullmatch("[0-9]+", text.strip()):
        raise OSError(5, "no number", str(path))
    return np.int64(text.strip())
'''),
                     ("a Fraction, by what int says", """    if not text.isdecimal():
        raise OSError(f"{path} holds {text!r}, which is no count; use CpuTimeMeter")
    return int(text)
""", """    from fractions import Fraction

    try:
        if int(text) >= 0:
            return Fraction(int(text))
    except ValueError:
        pass
    raise OSError(f"{path}: no count")
""")],
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
def best_meter(root=_POWERCAP, watts_per_core=None, source="given by the caller"):
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
    "answer_reading": [("other types", "", '''
from fractions import Fraction
joules_added_by_one_inference = lambda: Fraction(5, 100)
def inferences_per_reading(): return 100e-3 / 40e-6
''')],
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
