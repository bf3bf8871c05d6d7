"""Module 08, written otherwise."""

VARIANTS = {
    "cpu_info": [("a pattern, a tuple", "", '''
def cpu_info(text):
    def first(*names):
        for name in names:
            if found := re.search(rf"^{name}[ \\t]*:(.*)$", text, re.MULTILINE | re.IGNORECASE):
                return found[1].strip()
        return ""

    import re

    there = first("flags", "features").split()
    return {"flags": tuple(_TELLING_FLAGS[f] for f in _TELLING_FLAGS if f in there), "model": first("model name", "cpu part") or "unknown"}
'''),
                 ("only the first core, another mapping", "", '''
import collections


def cpu_info(text):
    first_core = text.split("\\n\\n")[0]
    fields = collections.defaultdict(str)
    for line in first_core.split("\\n"):
        if ":" in line:
            name, value = line.split(":", maxsplit=1)
            if name.strip() not in fields:
                fields[name.strip()] = value.strip()
    flags = fields["flags"].split() + fields["Features"].split()
    info = collections.OrderedDict(model=fields["model name"] or "unknown", flags=[])
    for flag, name in _TELLING_FLAGS.items():
        if flag in flags:
            info["flags"].append(name)
    return info
''')],
    "name_models": [("Counter", "", '''
from collections import Counter


def name_models(models):
    if not len(models):
        raise ValueError("I need a model")
    try:
        named = [(name, models[name]) for name in models.keys()]
    except AttributeError:
        named = []
        for i in range(len(models)):
            own = getattr(models[i], "name", "")
            named.append((own if isinstance(own, str) and own != "" else "model_" + str(i), models[i]))
    (name, times), = Counter(name for name, _ in named).most_common(1)
    if times > 1:
        raise ValueError(f"{times} models have the name {name}")
    return dict(named)
'''),
                    ("a match", "    if isinstance(models, Mapping):\n        pairs = list(models.items())\n    else:\n        pairs = [(_name_of(model) or f\"model_{index}\", model) for index, model in enumerate(models)]\n",
                     "    match models:\n        case Mapping():\n            pairs = [*models.items()]\n        case _:\n            pairs = [(_name_of(m) or f\"model_{i}\", m) for i, m in zip(range(len(models)), models)]\n")],
    "best_throughput": [("statistics and arrays", "", '''
import statistics


def best_throughput(latencies):
    """Written with the statistics module."""
    sizes = list(latencies)
    if sizes == [] or any(type(size) is not int or size <= 0 for size in sizes):
        raise ValueError(f"not batch sizes: {sizes}")
    rates = {s: (s / np.array(latencies[s].values)).tolist() for s in sizes}
    typical = [statistics.median(rates[s]) for s in sizes]
    best = sizes[int(np.argmax(typical))]
    notes = latencies[best].metadata.copy()
    notes["batch_size"] = best
    notes["by_batch"] = {
        f"{s}": dict(latency=statistics.median(latencies[s].values), throughput=rate) for s, rate in zip(sizes, typical)
    }
    return BenchmarkResult(
        metric_name="throughput", values=rates[best], unit="rows/s", metadata=notes,
        confidence=confidence_of_choice(rates, best),
    )
''')],
    "method_latency": [("options, ** and positional", '''    measured = measure_latencies(
        self.models,
        self._inputs(input_shape, inputs),
        warmup_runs=self.warmup_runs,
        measurement_runs=self.measurement_runs,
        clock=self.clock,
        seed=self.seed,
        progress=lambda rounds: self._each(rounds, "latency"),
    )
    return self._keep("latency", measured)''', '''    options = {name: getattr(self, name) for name in ("warmup_runs", "measurement_runs", "clock", "seed")}
    if inputs is None:
        inputs = self._inputs(input_shape, None)
    return self._keep("latency", dict(measure_latencies(self.models, inputs, **options)))'''),
                       ("rows repeated by itertools", "batch = np.resize(rows, (size, *np.shape(rows)[1:]))",
                        "from itertools import cycle, islice\n\n            batch = np.array(list(islice(cycle(rows), size)))"),
                       ("rows by take", "batch = np.resize(rows, (size, *np.shape(rows)[1:]))",
                        'batch = np.take(rows, range(size), axis=0, mode="wrap")')],
    "method_others": [("loops, dict()", '''    return self._keep(
        "accuracy", {name: measure_accuracy(self.models[name], self.datasets, **options) for name in names}
    )''', '''    found = {}
    for name in names:
        print(name)
        found[name] = measure_accuracy(self.models[name], self.datasets, **options)
    self._keep(metric="accuracy", results=found)
    return self.results["accuracy"]'''),
                      ("a merged mapping of options", '''    options.setdefault("measurement_runs", self.measurement_runs)
    names = self._each(self.models, "memory")
    return self._keep("memory", {name: measure_memory(self.models[name], x, **options) for name in names})''', '''    options = dict(measurement_runs=self.measurement_runs) | options
    found = [(name, measure_memory(model, inputs=x, **options)) for name, model in self.models.items()]
    return self._keep("memory", dict(found))''')],
    "method_compare": [("compared first, a tuple of rows", '''    compared = [row for row in rows if row["p_value"] is not None]
    for row, p in zip(compared, corrected([row["p_value"] for row in compared]), strict=True):
        row["p_value"] = p
    return rows''', '''    compared = [i for i, row in enumerate(rows) if row["p_value"] is not None]
    adjusted = corrected([rows[i]["p_value"] for i in compared])
    for place, i in enumerate(compared):
        rows[i].update(p_value=np.float64(adjusted[place]))
    return tuple(rows)'''),
                       ("a list of known metrics", '''    runner = getattr(self, f"run_{metric}_benchmark", None)
    if runner is None:
        raise ValueError(f"metric is {metric!r}; known are latency, throughput, accuracy, memory and energy")
    results = self.results.get(metric) or runner()
''', '''    known = ["latency", "throughput", "accuracy", "memory", "energy"]
    if metric not in known:
        raise ValueError(f"{metric} is none of {known}")
    if metric not in self.results:
        {name: getattr(self, f"run_{name}_benchmark") for name in known}[metric]()
    results = self.results[metric]
''')],
    "answer_understanding": [("computed, a list", "", '''
def throughput_gain(): return (64 / 8e-3) / (1 / 2e-3)
def lower_end_of_speedup(): return 1 / 0.84
def comparable_if_differs(): return [True, False]
''')],
}  # fmt: skip
