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
    "best_by_dimension": [("a comprehension, the worse of two gaps", '''        lower, upper = interval(competing[winner])
        verdicts, tied = verdicts_against(winner, metric, pairs), []
        for name, result in competing.items():
            low, high = interval(result)
            untested = "apart" if low > upper or high < lower else "undecided"  # NaN cannot separate models
            if name != winner and verdicts.get(name, untested) == "undecided":
                tied.append(name)
''', '''        tested = verdicts_against(winner, metric, pairs)

        def alike(name):
            if name in tested:
                return tested[name] == "undecided"
            (a, b), (c, d) = interval(competing[name]), interval(competing[winner])
            return not max(a - d, c - b) > 0

        tied = tuple(sorted(name for name in competing if name != winner and alike(name)))
'''),
                          ("a sorted list, without the helpers", '''        verdicts, tied = verdicts_against(winner, metric, pairs), []
        for name, result in competing.items():
            low, high = interval(result)
            untested = "apart" if low > upper or high < lower else "undecided"  # NaN cannot separate models
            if name != winner and verdicts.get(name, untested) == "undecided":
                tied.append(name)
        best[metric] = best_row(winner, competing[winner], tied)
''', '''        tied, champion = [], competing[winner]
        for name in sorted(set(competing) - {winner}):
            said = [r["verdict"] for r in pairs if r["metric"] == metric and {name, winner} == {r["model_a"], r["model_b"]}]
            low, high = interval(competing[name])
            if said == ["undecided"] or (not said and not (low > upper or lower > high)):
                tied += [name]
        best[metric] = {
            "model": winner, "value": central(champion), "lower": lower, "upper": upper,
            "unit": champion.unit, "measured": champion.measured, "tied": tied,
        }
''')],
    "method_run": [("pieces in a loop of its own", '''    for piece in self._each([piece for piece in self.pieces() if not self._file(piece).is_file()]):
        measured = {name: result.to_dict() for name, result in self._measure(piece).items()}
        write_text(self._file(piece), json.dumps(measured))
''', '''    for piece in self.pieces():
        target = self.output_dir.joinpath("measurements", piece + ".json")
        if target.exists():
            continue
        measured = self._measure(piece)
        write_text(target, json.dumps({name: measured[name].to_dict() for name in measured}, indent=2))
'''),
                   ("the plan is read first, and written last before measuring", '''    if resume and self._file("plan").is_file():
        self._check_same_study(json.loads(self._file("plan").read_text(encoding="utf-8")))
    else:
        self._set_aside()
    write_text(self._file("plan"), json.dumps(self.plan(), indent=1))
    write_text(self.output_dir / "system.json", json.dumps(system_info(), indent=1))
''', '''    try:
        earlier = json.loads(self._file("plan").read_bytes())
    except FileNotFoundError:
        earlier = None
    if earlier is None or not resume:
        self._set_aside()
    else:
        self._check_same_study(earlier)
    write_text(self.output_dir / "system.json", json.dumps(system_info()))
    write_text(self._file("plan"), json.dumps(self.plan()))
'''),
                   ("sets of items", '''    mine = self.plan()
    differing = [key for key in {**earlier, **mine} if mine.get(key) != earlier.get(key)]
    if differing:
        listed = "; ".join(f"{key} was {earlier.get(key)}, is {mine.get(key)}" for key in differing)
        raise ValueError(f"{self.output_dir} holds another study ({listed}); choose another output_dir, or resume=False")''', '''    mine, unlike = json.loads(json.dumps(self.plan())), set()
    for key in set(mine) | set(earlier):
        if key not in mine or key not in earlier or mine[key] != earlier[key]:
            unlike.add(key)
    if unlike:
        raise ValueError("not the same: " + ", ".join(sorted(unlike)))'''),
                   ("load by metric", '''    parts: dict[str, dict[str, list[BenchmarkResult]]] = {metric: {} for metric in METRICS}
    saved = [piece for piece in self.pieces() if self._file(piece).is_file()]
    for piece in saved:
        for name, data in json.loads(self._file(piece).read_text(encoding="utf-8")).items():
            parts[piece.partition("-")[0]].setdefault(name, []).append(BenchmarkResult.from_dict(data))
    merged = {m: {name: merge_results(each) for name, each in by_model.items()} for m, by_model in parts.items()}
    return {metric: by_model for metric, by_model in merged.items() if by_model}''', '''    found = {}
    for metric in ("latency", "throughput", "accuracy", "memory", "energy"):
        files = [self._file(p) for p in self.pieces() if p.split("-")[0] == metric]
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
