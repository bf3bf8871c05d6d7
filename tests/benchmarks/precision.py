"""What do FP16, bfloat16, INT8 and 4-bit weights bring a large dense network, and a small one?

Both classify scikit-learn's handwritten digits: the large one has two hidden layers of 1024 units, the small one has 16
units. They are trained on three quarters of the digits; answers are compared on the rest, and static INT8 is calibrated
on 256 of those it was trained on. Every form comes in the same shuffled rounds; time is a ratio to FP32 of the same
round. What ran is read from ONNX Runtime's own trace. Behind "fell back" stands what a form was not computed in.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from tests.benchmarks.formats import table
from tests.benchmarks.harness import Benchmark, Part, Record, Trial
from tinybench.course import cached_fit
from tinybench.onnx import to_onnx
from tinybench.support.conditions.int8_probe import integer_products
from tinybench.tools.study.precision_comparison import FORMS, precision_study

NETWORKS = {"large": (1024, 1024), "small": (16,)}
BATCHES = (1, 32, 256)


def measured(trial: Trial) -> Record:
    digits = load_digits()
    X, order = (digits.data / 16).astype(np.float32), np.random.default_rng(0).permutation(len(digits.data))
    train, rest = np.split(order, [3 * len(order) // 4])
    studies, rounds = [], 6 if trial.short else 40
    for name, batch in [("small", 1)] if trial.short else product(NETWORKS, BATCHES):
        net = MLPClassifier(NETWORKS[name], max_iter=30, random_state=0)
        path = to_onnx(cached_fit(net, X[train], digits.target[train]), X, trial.folder / f"{name}.onnx")
        study = precision_study(path, X[rest], batch=batch, calibration=X[train[:256]], rounds=rounds, seed=0)
        about = {"network": name, "batch": batch, "rounds": rounds, "compared": len(rest)}
        studies.append({**about, "rows": study.rows, "table": study.table().markdown()})
    return {"integer_products": integer_products(), "studies": studies}


def goals(found: Record) -> dict[str, bool]:
    rows = [row for study in found["studies"] for row in study["rows"]]
    whole = all([row["form"] for row in study["rows"]] == list(FORMS) for study in found["studies"])
    told = all(row["types"] and row["ratio"] and row["size"] for row in rows if row["reason"] is None)
    kept = [row["agreement"] for row in rows if row["agreement"] is not None and row["form"] != "4-bit weights"]
    return {
        "every form of every network has a row, with size, time and what ran, or the reason": whole and told,
        f"16 bits and INT8 keep at least 97 % of the labels (lowest {min(kept):.1%})": min(kept) >= 0.97,
    }


def page(found: Record) -> list[str]:
    products = ", ".join(f"{types} {how}" for types, how in found["integer_products"].items())
    parts = [f"Products of integers on this machine: {products}."]
    for study in found["studies"]:
        parts += [
            f"### {study['network'].capitalize()} network, batch {study['batch']}",
            f"{study['rounds']} rounds; answers compared on {study['compared']} rows.",
            study["table"],
        ]
    names = {(row["form"], name) for study in found["studies"] for row in study["rows"] for name in row["ran"]}
    ran = [{"form": form, "operators": ", ".join(sorted(n for f, n in names if f == form))} for form in FORMS]
    return [*parts, "### Operators that ran", table(row for row in ran if row["operators"])]


BENCHMARK = Benchmark("What precision costs and brings", {"models": Part("", measured, page, goals)})
