"""Other honest solutions of module 17; few of each, for every check of an entry trains a network."""

VARIANTS = {
    "as_entry": [
        ("entry_by_arrays", """    if model.n_features_in_ != 784:
        raise ValueError(f"the model takes {model.n_features_in_} numbers; an entry takes 784 pixels")
    if list(model.classes_) != list(range(10)):
        raise ValueError(f"the model knows the classes {list(model.classes_)}; an entry knows the digits 0 to 9")
    return convert(model, np.zeros((1, 784), np.float32)).SerializeToString()
""", """    pixels, known = model.n_features_in_, model.classes_
    if pixels != 28 * 28 or not np.array_equal(known, np.arange(10)):
        raise ValueError("no entry: {} pixels, classes {}".format(pixels, [*known]))
    import io

    import onnx

    file = io.BytesIO()
    onnx.save(convert(model, np.ones([2, pixels])), file)
    return file.getvalue()
"""),
        ("entry_without_numbers", 'f"the model takes {model.n_features_in_} numbers; an entry takes 784 pixels"',
         '"the wrong number of pixels"', "should name the number"),
    ],
    "chance_of_passing": [
        ("chance_summed", "    least = math.ceil(bar * private_total - 1e-9)\n    return float(stats.betabinom.sf(least - 1, private_total, correct + 0.5, total - correct + 0.5))\n",
         """    from fractions import Fraction

    least = math.ceil(Fraction(str(bar)) * private_total)
    counts = np.arange(least, private_total + 1)
    return stats.betabinom(private_total, correct + 1 / 2, total - correct + 1 / 2).pmf(counts).sum()
"""),
        ("chance_below", "return float(stats.betabinom.sf(least - 1, private_total, correct + 0.5, total - correct + 0.5))",
         "return 1 - stats.betabinom.cdf(k=least - 1, n=private_total, a=correct + 0.5, b=total - correct + 0.5)"),
    ],
    "answer_chance": [
        ("chance_computed", "return 0.51", "return chance_of_passing(3975, 4320)"),
        ("chance_of_eight", "return 1 - (1 - 0.51) ** 8", "return np.float64(1 - np.prod([0.49] * 8))"),
    ],
    "choose": [
        ("choose_sorted", """    likely = [each for each in candidates if each["chance"] >= least_chance]
    if not likely:
        closest = max(candidates, key=lambda each: each["chance"])
        raise ValueError(f"none is likely enough to pass; {closest['name']} comes closest, with {closest['chance']:.0%}")
    fastest = min(likely, key=lambda each: each["latency"])
    sharing = [each for each in likely if each["lower"] <= fastest["upper"]]
    return max(sharing, key=lambda each: (each["chance"], -each["latency"]))["name"]
""", """    *_, safest = sorted(candidates, key=lambda c: c["chance"])
    if safest["chance"] < least_chance:
        raise ValueError("too risky, even " + safest["name"])
    ranked = sorted((c for c in candidates if c["chance"] >= least_chance), key=lambda c: c["latency"])
    best = ranked[0]
    for c in ranked[1:]:
        if c["lower"] <= ranked[0]["upper"] and c["chance"] > best["chance"]:
            best = c
    return best["name"]
"""),
        ("choose_whole", 'return max(sharing, key=lambda each: (each["chance"], -each["latency"]))["name"]',
         'return max(sharing, key=lambda each: (each["chance"], -each["latency"]))', "got {'name'"),
    ],
    "build_entry": [
        ("build_in_memory", """    with tempfile.TemporaryDirectory() as folder:
        return save_layers(network, Path(folder, "entry.onnx")).read_bytes()
""", """    path = save_layers(network, tempfile.mkdtemp() + "/mine.onnx", overwrite=True)
    print("entry of", path.stat().st_size, "bytes")
    with open(path, mode="rb") as file:
        return bytes(file.read())
"""),
        ("build_with_scikit_learn", """    rows, answers = shifted(images, labels)
    epochs = max(5, 12_000 // len(rows))
    network = train(initial_layers((784, 48, 10), 0), rows, answers, epochs, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        return save_layers(network, Path(folder, "entry.onnx")).read_bytes()
""", """    rows, answers = shifted(images, labels)
    return as_entry(quiet_fit(MLPClassifier((48,), max_iter=20, random_state=1), rows, answers))
"""),
    ],
    "answer_understanding": [
        ("understanding_types", "return [1, 1, 3]", "return np.array((1, 1, 3))"),
        ("understanding_sums", "return (0.8 + 0.5 + 0.9) / 3 * (0.97 - 0.85) / 0.15",
         "return np.mean([1 - cost for cost in (0.2, 0.5, 0.1)]) * 0.8"),
    ],
}  # fmt: skip
