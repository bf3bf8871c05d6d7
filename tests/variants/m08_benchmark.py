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
    return {"flags": tuple(TELLING_FLAGS[f] for f in TELLING_FLAGS if f in there), "model": first("model name", "cpu part") or "unknown"}
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
    for flag, name in TELLING_FLAGS.items():
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
                    ("a match", "    if isinstance(models, Mapping):\n        pairs = list(models.items())\n    else:\n        pairs = [(name_attribute(model) or f\"model_{index}\", model) for index, model in enumerate(models)]\n",
                     "    match models:\n        case Mapping():\n            pairs = [*models.items()]\n        case _:\n            pairs = [(name_attribute(m) or f\"model_{i}\", m) for i, m in zip(range(len(models)), models)]\n")],
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
    "method_compare": [("compared first, a tuple of rows", '''    compared = [row for row in rows if row["p_value"] is not None]
    for row, p in zip(compared, corrected([row["p_value"] for row in compared]), strict=True):
        row["p_value"] = p
    return rows''', '''    compared = [i for i, row in enumerate(rows) if row["p_value"] is not None]
    adjusted = corrected([rows[i]["p_value"] for i in compared])
    for place, i in enumerate(compared):
        rows[i].update(p_value=np.float64(adjusted[place]))
    return tuple(rows)'''),
                       ("the first name, a list of the others", '''    baseline = next(iter(results.values()))
    rows = []
    for name, result in results.items():
''', '''    rows, baseline = [], results[list(results)[0]]
    for name in results:
        result = results[name]
''')],
    "answer_understanding": [("computed, a list", "", '''
def throughput_gain(): return (64 / 8e-3) / (1 / 2e-3)
def lower_end_of_speedup(): return 1 / 0.84
def comparable_if_differs(): return [True, False]
''')],
}  # fmt: skip
