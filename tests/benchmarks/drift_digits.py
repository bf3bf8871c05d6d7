"""All latency panels are green while shifted digits ruin the accuracy: who says so first?

A classifier of handwritten digits stands behind `tinybench serve --reference`. Requests come one after the other: 200 as
they should be, then 250 with the picture shifted by two pixels to the right. After every tenth request /metrics is read,
when all that was sent has been looked at. True labels would come 200 requests late. Told are the requests after the
change at which ``tinybench_drift_alarm`` is seen, and at which the first label of a shifted picture would come. As many
runs have no shift. Rows are drawn anew for each run: fit, reference and traffic have none in common.

Whether a shifted picture takes longer is asked afterwards, of the same server on the same connection, where 250 pictures
are sent as they were and shifted, in turn, in an order that is drawn: a run gives the ratio of the two medians. Told is
the median of these ratios, with a 95 % interval by ranks.

What a reference costs a request: two servers of one model run beside each other, one of them with a reference. Both get
2,000 requests of one row on one connection, in turn, three times, in an order that is drawn: long enough that what is
noted, each second, is looked at while its own server is measured; before the other's turn the rest is waited for.
Processes of one program differ in speed, as their memory happens to lie, so there are 20 pairs, started anew. Told is the
mean over pairs of the ratio of medians (of three), and of 95th percentiles, with a 95 % interval (Student t, of
logarithms). The requests wait for no others (``--max-wait 0ms``), so nothing hides what is added.
"""

from __future__ import annotations

import json
import random
import time
from argparse import Namespace
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from tests.benchmarks.formats import grouped, interval, lines, ranged, share
from tests.benchmarks.harness import Case, Part, Record, Records, Trial
from tests.tinybench.servers import Served, served
from tinybench.course.lessons.m16 import moved_right
from tinybench.result import percentile_interval, t_interval

BEFORE, SHIFTED, LATE, EVERY = 200, 250, 200, 10
SLOWER = 0.05  # at most, of the median
KINDS = ("shifted", "as they were")
RUNS = 20  # of each kind; pairs of servers
REQUESTS, TURNS, MOST = 2000, 3, 0.03  # that a reference may add to the median
AT_ONCE = ("--max-wait", "0ms")


@cache
def split(seed: int, folder: Path) -> tuple[Path, Path, np.ndarray, np.ndarray]:
    """Write a model and a reference, and return them with rows and labels that neither has seen."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    from tinybench.onnx import to_onnx

    rows, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    rows, labels = rows[order].astype(np.float32) / 16, labels[order]
    model = to_onnx(LogisticRegression(max_iter=500).fit(rows[:700], labels[:700]), rows[:1], folder / f"{seed}.onnx")
    np.savez(reference := folder / f"{seed}.npz", X=rows[700:1300])
    return Path(model), reference, rows[1300:], labels[1300:]


def gauges(server: Served, asked: int) -> dict[str, float]:
    """Return what /metrics says of drift, once it has looked at all requests."""
    while True:
        families = text_string_to_metric_families(server.ask("GET", "/metrics")[2])
        found = {each.name + each.labels.get("what", ""): each.value for family in families for each in family.samples}
        if found["tinybench_drift_rows_total"] >= asked:
            return found
        if not found["tinybench_drift_watching"]:
            raise RuntimeError("nobody watches drift any more")
        time.sleep(0.02)


class Asking:
    """A connection to a server that is asked for a row's digit; it notes the seconds of each request."""

    def __init__(self, server: Served) -> None:
        self.connection, self.seconds = HTTPConnection(*server.address), list[float]()

    def __call__(self, row: np.ndarray) -> int:
        body = json.dumps({"inputs": [row.tolist()]})
        started = time.perf_counter()
        self.connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse().read()
        self.seconds.append(time.perf_counter() - started)
        return int(np.argmax(json.loads(answer)["outputs"][0]))


def cases(options: Namespace) -> list[Case]:
    return [("shifted", 0)] if options.short else [(kind, seed) for kind in KINDS for seed in range(RUNS)]


def measured(trial: Trial) -> Record:
    kind, seed = trial.case
    before, after, late = (40, 60, 50) if trial.short else (BEFORE, SHIFTED, LATE)
    model, reference, rows, truth = split(seed, trial.folder)
    moved, order, answers, alarm = moved_right(rows, 2), random.Random(seed), [], None
    with served(model, "--reference", str(reference), *AT_ONCE) as server:
        ask = Asking(server)
        for number in range(1, before + after + 1):
            answers.append(ask((moved if kind == "shifted" and number > before else rows)[number - 1]))
            if number % EVERY == 0 and alarm is None:
                found = gauges(server, number)
                if any(found[f"tinybench_drift_alarm{what}"] for what in ("inputs", "predictions")):
                    alarm = number - before
        turns: dict[bool, list[float]] = {True: [], False: []}
        for number in range(after):
            for shifted in order.sample([False, True], 2):
                ask((moved if shifted else rows)[number])
                turns[shifted].append(ask.seconds[-1])
        ask.connection.close()
    right = np.array(answers) == truth[: len(answers)]
    record: Record = {}
    for when, part in {"before": slice(0, before), "after": slice(before, before + after)}.items():
        record |= {f"p{q} {when}": float(np.percentile(ask.seconds[part], q)) for q in (50, 99)}
        record[f"accuracy {when}"] = float(right[part].mean())
    return record | {
        "kind": kind,
        "shifted / plain": median(turns[True]) / median(turns[False]),
        "alarm": alarm,
        "first label": late + 1,
    }


def middle_of(ratios: list[float]) -> tuple[float, float, float]:
    """Return the median and its 95 % interval by ranks, or the range of few."""
    few = len(ratios) < 6
    return median(ratios), *((min(ratios), max(ratios)) if few else percentile_interval(ratios, 50))


def goals(found: Records) -> dict[str, bool]:
    moved, still = ([run for run in found if run["kind"] == kind] for kind in KINDS)
    early = sum(run["alarm"] is not None and 0 < run["alarm"] < run["first label"] for run in moved)
    ruined = min(run["accuracy before"] - run["accuracy after"] for run in moved)
    ratio, low, high = middle_of([run["shifted / plain"] for run in moved])
    rang = sum(run["alarm"] is not None for run in still)
    return {
        f"the alarm comes before the first label of a shifted digit in {early} of {len(moved)} runs": early
        == len(moved),
        f"the accuracy falls by {ruined:.0%} at least": ruined > 0.3,
        f"the median latency of shifted pictures is at most {SLOWER:.0%} above that of others, sent in turn: "
        f"{ratio - 1:+.1%} ({low - 1:+.1%} to {high - 1:+.1%})": high <= 1 + SLOWER,
        f"nothing rings in runs without a shift, in {rang} of {len(still)}": rang <= 1,
    }


def row_of(kind: str, runs: Records) -> Record:
    alarms = [run["alarm"] for run in runs if run["alarm"] is not None]
    return {
        **{name: median(run[name] for run in runs) for name in runs[0] if name.startswith(("p50", "p99", "accuracy"))},
        "kind": kind,
        "ratio": interval(*middle_of([run["shifted / plain"] for run in runs]), "{:.3f}"),
        "rang": share(len(alarms), len(runs), 1),
        "alarm": ranged(alarms, "{:g}"),
        "first label": runs[0]["first label"],
    }


def page(found: Records) -> list[str]:
    return [
        "Medians over runs of the time before and after the change:",
        lines(
            (row_of(kind, runs) for (kind,), runs in grouped(found, "kind").items()),
            "requests | p50, ms | p99, ms | p50, shifted / plain in turn | accuracy | alarm rang | "
            "requests until the alarm | first label after",
            "{kind} | {p50 before:1e3×.2f} → {p50 after:1e3×.2f} | {p99 before:1e3×.2f} → {p99 after:1e3×.2f} | {ratio} | "
            "{accuracy before:.0%} → {accuracy after:.0%} | {rang} | {alarm} | {first label}",
        ),
    ]


def pairs(options: Namespace) -> list[Case]:
    return [(pair,) for pair in range(2 if options.short else RUNS)]


def cost_measured(trial: Trial) -> Record:
    turns, requests, order = (1, 50, random.Random(0)) if trial.short else (TURNS, REQUESTS, random.Random(*trial.case))
    model, reference, rows, _ = split(0, trial.folder)
    with served(model, *AT_ONCE) as one, served(model, *AT_ONCE, "--reference", str(reference)) as other:
        asking = {"without": Asking(one), "with": Asking(other)}
        for _ in range(turns + 1):  # the first warms up
            for way in order.sample(list(asking), 2):
                gauges(other, len(asking["with"].seconds))
                for _ in range(requests):
                    asking[way](rows[0])
        for ask in asking.values():
            ask.connection.close()
    return {
        f"p{q} {way}": float(np.median(np.percentile(np.reshape(ask.seconds, (turns + 1, -1))[1:], q, axis=1)))
        for q in (50, 95)
        for way, ask in asking.items()
    }


def ratio(found: Records, what: str) -> tuple[float, float, float]:
    logs = [float(np.log(pair[f"{what} with"] / pair[f"{what} without"])) for pair in found]
    middle, low, high = np.exp([np.mean(logs), *t_interval(logs)]).tolist()
    return middle, low, high


def cost_goals(found: Records) -> dict[str, bool]:
    middle, _, high = ratio(found, "p50")
    what = f"the median of a request grows by less than {MOST:.0%}: {middle - 1:+.1%}, at most {high - 1:+.1%}"
    return {what: high < 1 + MOST}


def cost_page(found: Records) -> list[str]:
    rows = [
        {"of": what, "ratio": interval(*ratio(found, what), "{:.3f}")}
        | {way: median(pair[f"{what} {way}"] for pair in found) for way in ("without", "with")}
        for what in ("p50", "p95")
    ]
    head = "of requests | without, ms | with, ms | with / without"
    return [lines(rows, head, "{of} | {without:1e3×.3f} | {with:1e3×.3f} | {ratio}")]


PART = Part("Shifted digits, through a real server", measured, page, goals, cases)
COST = Part("What it costs a request", cost_measured, cost_page, cost_goals, pairs)
