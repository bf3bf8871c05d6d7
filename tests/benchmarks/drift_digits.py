"""All latency panels are green while shifted digits ruin the accuracy: who says so first?

A classifier of handwritten digits stands behind `tinybench serve --reference`. Requests come one after the other: 200 as
they should be, then 250 with the picture shifted by two pixels to the right. After every tenth request /metrics is read,
when all that was sent has been looked at. True labels come 200 requests late. Told are the requests after the change at
which ``tinybench_drift_alarm`` is seen, at which the first label of a shifted picture comes, and at which these labels
ring (`tinybench.drifting.Labels`, which is told that an accuracy of 90 % is all right). As many runs have no shift. Rows
are drawn anew for each run: fit, reference and traffic have none in common.

Whether a shifted picture takes longer is asked afterwards, of the same server on the same connection, where 250 pictures
are sent as they were and shifted, in turn, in an order that is drawn: a run gives the ratio of the two medians. Told is
the median of these ratios, with a 95 % interval by ranks.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from scipy import stats

from tests.benchmarks.drift_alarms import said
from tests.tinybench.servers import Served, served
from tinybench.drifting import Labels
from tinybench.table import Table

BEFORE, SHIFTED, LATE, EVERY = 200, 250, 200, 10
LEAST = 0.9
SLOWER = 0.05  # at most, of the median
KINDS = ("shifted", "as they were")


def split(seed: int, folder: Path) -> tuple[Path, Path, np.ndarray, np.ndarray]:
    """Write a model and a reference, and return them with rows and labels that neither has seen."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    from tinybench.onnx import to_onnx

    rows, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    rows, labels = rows[order].astype(np.float32) / 16, labels[order]
    model = to_onnx(LogisticRegression(max_iter=500).fit(rows[:700], labels[:700]), rows[:1], folder / "model.onnx")
    np.savez(folder / "reference.npz", X=rows[700:1300])
    return Path(model), folder / "reference.npz", rows[1300:], labels[1300:]


def shifted(rows: np.ndarray) -> np.ndarray:
    """Return pictures moved to the right by two pixels; what leaves them is gone."""
    pictures = rows.reshape(-1, 8, 8)
    return np.pad(pictures, ((0, 0), (0, 0), (2, 0)))[:, :, :8].reshape(len(rows), -1)


def gauges(server: Served, asked: int) -> dict[str, float]:
    """Return what /metrics says of drift, once it has looked at all requests."""
    while True:
        samples = [
            sample
            for family in text_string_to_metric_families(server.ask("GET", "/metrics")[2])
            for sample in family.samples
        ]
        found = {sample.name + sample.labels.get("what", ""): sample.value for sample in samples}
        if found["tinybench_drift_rows_total"] >= asked:
            return found
        if not found["tinybench_drift_watching"]:
            raise RuntimeError("nobody watches drift any more")
        time.sleep(0.02)


def asked(connection: HTTPConnection, row: np.ndarray) -> tuple[list[float], float]:
    """Return the answer to a picture, and how many seconds it took."""
    body = json.dumps({"inputs": [row.tolist()]})
    started = time.perf_counter()
    connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
    answer = connection.getresponse().read()
    seconds = time.perf_counter() - started
    return json.loads(answer)["outputs"][0], seconds


def of_run(kind: str, seed: int, before: int = BEFORE, after: int = SHIFTED, late: int = LATE) -> dict[str, Any]:
    """Serve, ask, and return what was seen when."""
    with tempfile.TemporaryDirectory() as name:
        model, reference, rows, truth = split(seed, Path(name))
        plain, moved = rows, shifted(rows)
        if kind == "shifted":
            rows = np.concatenate([plain[:before], moved[before:]])
        taken, answers, order = [], [], random.Random(seed)
        labels, alarm, rang = Labels(LEAST, math.inf, time.monotonic), None, None
        with served(model, "--reference", str(reference), "--max-wait", "0ms") as server:
            connection = HTTPConnection(*server.address)
            for number in range(before + after):
                answer, seconds = asked(connection, rows[number])
                taken.append(seconds)
                answers.append(int(np.argmax(answer)))
                labels.predicted(number, answers[-1])
                if number >= late and labels.came(number - late, int(truth[number - late])) and rang is None:
                    rang = number + 1 - before
                if (number + 1) % EVERY == 0 and alarm is None:
                    found = gauges(server, number + 1)
                    on = [what for what in ("inputs", "predictions") if found[f"tinybench_drift_alarm{what}"]]
                    alarm = (number + 1 - before, on) if on else None
            turns: list[list[float]] = [[], []]
            for number in range(after):
                for place in order.sample(range(2), 2):
                    turns[place].append(asked(connection, (plain, moved)[place][number])[1])
            connection.close()
    right = np.array(answers) == truth[: len(answers)]
    parts = {"before": slice(0, before), "after": slice(before, before + after)}
    return {
        "kind": kind,
        "p50": {part: float(np.quantile(taken[which], 0.5)) for part, which in parts.items()},
        "p99": {part: float(np.quantile(taken[which], 0.99)) for part, which in parts.items()},
        "accuracy": {part: float(right[which].mean()) for part, which in parts.items()},
        "shifted / plain": median(turns[1]) / median(turns[0]),
        "alarm": alarm,
        "labels": rang,
        "first label": late + 1,
    }


def measured(short: bool) -> dict[str, Any]:
    """Return what was seen in each run."""
    kinds, runs = (KINDS[:1], 1) if short else (KINDS, 20)
    sizes = (40, 60, 50) if short else (BEFORE, SHIFTED, LATE)
    return {"runs": [of_run(kind, seed, *sizes) for seed in range(runs) for kind in kinds]}


def middle_of(ratios: list[float]) -> tuple[float, float, float]:
    """Return the median and its 95 % interval by ranks: so many of n values lie below the median as heads come up."""
    n, ordered = len(ratios), sorted(ratios)
    rank = max(0, int(stats.binom.ppf(0.025, n, 0.5)) - 1)
    return median(ordered), ordered[rank], ordered[n - 1 - rank]


def of_kind(found: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [run for run in found["runs"] if run["kind"] == kind]


def goals(found: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether the alarm comes before the labels, and latency says nothing."""
    moved, still = (of_kind(found, kind) for kind in KINDS)
    early = sum(run["alarm"] is not None and 0 < run["alarm"][0] < run["first label"] for run in moved)
    ruined = [run["accuracy"]["before"] - run["accuracy"]["after"] for run in moved]
    ratio, low, high = middle_of([run["shifted / plain"] for run in moved])
    met = {
        f"the alarm comes before the first label of a shifted digit in {early} of {len(moved)} runs": early
        == len(moved),
        f"the accuracy falls by {min(ruined):.0%} at least": min(ruined) > 0.3,
        f"the median latency of shifted pictures is at most {SLOWER:.0%} above that of others, sent in turn: "
        f"{ratio - 1:+.1%} ({low - 1:+.1%} to {high - 1:+.1%})": high <= 1 + SLOWER,
    }
    if still:
        rang = sum(run["alarm"] is not None or run["labels"] is not None for run in still)
        met[f"nothing rings in runs without a shift, in {rang} of {len(still)}"] = rang <= 1
    return met


def page(found: Mapping[str, Any]) -> list[str]:
    """Return a table of what stands on each panel."""
    rows = []
    for kind in KINDS:
        if runs := of_kind(found, kind):
            row = {"requests": kind}
            for name, part in (("p50, ms", "p50"), ("p99, ms", "p99")):
                row[name] = " → ".join(
                    f"{1e3 * median(run[part][when] for run in runs):.2f}" for when in ("before", "after")
                )
            middle, low, high = middle_of([run["shifted / plain"] for run in runs])
            row["p50, shifted / plain in turn"] = f"{middle:.3f} ({low:.3f} to {high:.3f})"
            row["accuracy"] = " → ".join(
                f"{median(run['accuracy'][when] for run in runs):.0%}" for when in ("before", "after")
            )
            row["alarm rang"] = said(sum(run["alarm"] is not None for run in runs), len(runs))
            for name, late in (
                ("requests until the alarm", [run["alarm"][0] for run in runs if run["alarm"]]),
                ("until the labels ring", [run["labels"] for run in runs if run["labels"]]),
            ):
                row[name] = f"{median(late):g} ({min(late)} to {max(late)})" if late else "–"
            row["first label after"] = f"{runs[0]['first label']}"
            rows.append(row)
    return ["Medians over runs of the time before and after the change:", Table(rows).markdown()]
