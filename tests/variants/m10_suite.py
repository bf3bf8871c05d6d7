"""Module 10, written otherwise."""

VARIANTS = {
    "write_piece": [("tempfile", "", '''
import tempfile


def write_text(path, text):
    try:
        os.makedirs(path.parent, exist_ok=True)
        number, name = tempfile.mkstemp(dir=path.parent)
        with open(number, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file)
        os.rename(name, path)
    except OSError as why:
        raise OSError(f"{path}: {why}. Try another output_dir.")
'''),
                    ("bytes and Path.replace", '''        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
''', '''        with open(temporary, "wb", buffering=0) as stream:
            stream.write(bytes(text, "utf-8"))
            os.fdatasync(stream.fileno()) if hasattr(os, "fdatasync") else os.fsync(stream.fileno())
        temporary.replace(path)
'''),
                    ("functions of os by name, synced after the file is closed", "", '''
from os import fsync, replace


def write_text(path, text):
    path.parent.mkdir(parents=True, exist_ok=True) if path.parent.suffix != ".json" else None
    new = path.parent / f"{path.name}.new"
    try:
        new.write_text(text, encoding="utf-8")
        with new.open("r+b") as file:
            fsync(file)
        replace(src=new, dst=path)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error}; choose another output_dir") from error
''')],
    "merge_results": [("itertools and dicts", "", '''
from dataclasses import replace
from itertools import chain


def merge_results(parts):
    def key(part):
        return part.metric_name, part.unit, part.metadata.get("system", {}).get("cpu")

    if len(parts) == 0 or any(key(part) != key(parts[0]) for part in parts):
        raise ValueError("parts must be alike, and one at least")
    notes = {**parts[0].metadata}
    if notes.get("pairing"):
        notes["pairing"] = "+".join(part.metadata["pairing"] for part in parts)
    if "round_orders" in notes:
        notes["round_orders"] = sum((part.metadata["round_orders"] for part in parts), [])
    values = list(chain.from_iterable(part.values for part in parts))
    return BenchmarkResult(
        parts[0].metric_name, values, unit=parts[0].unit, confidence=parts[0].confidence, metadata=notes
    )
'''),
                      ("json and md5", "hashlib.sha256(together.encode()).hexdigest()[:32]", "hashlib.md5(json.dumps(together).encode()).hexdigest()")],
    "run_rows": [("generators and a helper", "", '''
def each(results):
    for metric in results:
        for model in results[metric]:
            yield metric, model, results[metric][model]


def run_rows(results):
    for metric, model, r in each(results):
        for run in range(r.count):
            yield dict(metric=metric, model=model, run=run, value=r.values[run], unit=r.unit, measured=r.measured)


def summary_rows(results):
    rows = ()
    for metric, model, r in each(results):
        row = {"model": model, "metric": metric}
        for name in "unit measured count mean std median min_val max_val".split():
            row[name] = getattr(r, name) if name not in r.undetermined else None
        row["value"] = np.float64(central(r))
        row["lower"], row["upper"] = interval(r)
        if "total" in r.metadata:
            row["interval"] = "Wilson"
        elif r.count == 1:
            row["interval"] = "none"
        elif r.count < 6:
            row["interval"] = "range"
        else:
            row["interval"] = "median"
        rows += (row,)
    return rows
'''),
                 ("loops, a tuple", "", '''
def run_rows(results):
    rows = []
    for metric, by_model in results.items():
        for model, result in by_model.items():
            common = {"metric": metric, "model": model, "unit": result.unit, "measured": bool(result.measured)}
            rows += [common | {"run": run, "value": value} for run, value in zip(range(result.count), result.values)]
    return tuple(rows)


def summary_rows(results):
    def row(metric, model, result):
        low, high = interval(result)
        kind = "Wilson" if result.metadata.get("total") else ("range", "median")[result.count > 5]
        if low != low:
            kind = "none"
        names = ["unit", "measured", "count", "mean", "std", "median", "min_val", "max_val"]
        return {
            **dict(zip(["metric", "model"], [metric, model])), **{name: getattr(result, name) for name in names},
            **dict.fromkeys({"std"} & set(result.undetermined)),
            "value": central(result), "lower": low, "upper": high, "interval": kind, "note": "mine",
        }

    return [row(metric, model, result) for metric in results for model, result in results[metric].items()]
''')],
    "comparison_rows": [("a helper and append", "", '''
def comparison_rows(results):
    def of(metric, by_model):
        names, found = list(by_model), []
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                row = compare_pair(metric, (a, b), by_model[a], by_model[b])
                if row:
                    found.append(dict(row))
        for row, p in zip(found, corrected([row["p"] for row in found])):
            row["p_corrected"] = np.float64(p)
            if p >= 0.05:
                row["verdict"] = "undecided"
        return found

    return tuple(row for metric in results for row in of(metric, results[metric]))
''')],
    "best_by_dimension": [("sorted, a set of ties", '''        tied = []
        for name, result in competing.items():
            low, high = interval(result)
            overlapping = "apart" if low > upper or high < lower else "undecided"  # NaN cannot separate models
            if name != winner and verdicts.get((metric, frozenset((winner, name))), overlapping) == "undecided":
                tied.append(name)
''', '''        tied = set()
        for name in set(competing) - {winner}:
            low, high = interval(competing[name])
            verdict = verdicts.get((metric, frozenset([name, winner])))
            if verdict == "undecided" or (verdict is None and not max(low, lower) > min(high, upper)):
                tied |= {name}
        tied = sorted(tied)
'''),
                          ("a tuple of ties", '"tied": tied}', '"tied": tuple(tied)}')],
    "method_run": [("pieces in a loop of its own", '''    for piece in self._each([piece for piece in self.pieces() if not (folder / f"{piece}.json").is_file()]):
        measured = {name: result.to_dict() for name, result in self._measure(piece).items()}
        write_text(folder / f"{piece}.json", json.dumps(measured))
''', '''    for piece in self.pieces():
        target = folder.joinpath(piece + ".json")
        if target.exists():
            continue
        measured = self._measure(piece)
        write_text(target, json.dumps({name: measured[name].to_dict() for name in measured}, indent=2))
'''),
                   ("shutil, itertools", '''        number = 1
        while (self.output_dir / f"measurements.{number}").exists():
            number += 1
        folder.rename(self.output_dir / f"measurements.{number}")
''', '''        import itertools, shutil

        places = (self.output_dir / f"measurements.{n}" for n in itertools.count(1))
        shutil.move(str(folder), str(next(place for place in places if not place.exists())))
'''),
                   ("load by the files", '''    parts: dict[str, dict[str, list[BenchmarkResult]]] = {metric: {} for metric in _METRICS}
    for piece in self.pieces():
        file = self.output_dir / "measurements" / f"{piece}.json"
        if file.is_file():
            for name, data in json.loads(file.read_text(encoding="utf-8")).items():
                parts[piece.partition("-")[0]].setdefault(name, []).append(BenchmarkResult.from_dict(data))
    return {
        metric: {name: merge_results(results) for name, results in by_model.items()}
        for metric, by_model in parts.items()
        if by_model
    }''', '''    found = {}
    for metric in ("latency", "throughput", "accuracy", "memory", "energy"):
        pieces = [p for p in self.pieces() if p.split("-")[0] == metric]
        files = [self.output_dir.joinpath("measurements", p + ".json") for p in pieces]
        contents = [json.loads(f.read_text()) for f in files if f.exists()]
        if contents:
            found[metric] = {}
            for name in contents[0]:
                found[metric][name] = merge_results([BenchmarkResult.from_dict(c[name]) for c in contents])
    return found''')],
    "answer_understanding": [("computed", "", '''
import math
def pairs_of_five(): return math.comb(5, 2)
def are_tied(): return not True
def pieces_to_measure(): return np.uint8(9 - 5)
''')],
}  # fmt: skip
