"""A service-level objective, its PromQL expressions, and the panels that the dashboard and the figures share."""

from __future__ import annotations

import math
from typing import NamedTuple

from tinybench.tools.serving.counters import SECONDS

__all__ = ["PANELS", "WINDOWS", "Objective", "Panel", "Query", "Window", "burn", "panels_for", "promql_time"]

COUNTED = "200|499|5.."  # other 4xx codes are invalid requests, which are not the server's failure
COUNTED_CODES = f'code=~"{COUNTED}"'
RIGHT = "(?i:true|yes|1)"


class Objective(NamedTuple):
    """A service-level objective: at least the proportion `share` of requests is answered within `bound` seconds."""

    share: float = 0.999
    bound: float = 0.05

    def checked(self) -> Objective:
        """Return the objective with rounded numbers. If it cannot be monitored, raise ValueError with the reason."""
        if not 0 < self.share < 1:
            raise ValueError(f"an objective of {self.share:.6g} is no share between 0 and 1; write 99.9% or 0.999")
        bound = next((end for end in SECONDS if math.isclose(self.bound, end)), None)
        if bound is None:
            near = sorted(SECONDS, key=lambda end: abs(math.log(end / self.bound)) if self.bound > 0 else end)[:2]
            ends = " or ".join(f"{1e3 * end:g}ms" for end in sorted(near))
            raise ValueError(
                f"a bound of {1e3 * self.bound:g} ms lies within a bucket of the server's histogram, which cannot tell "
                f"how many answers took less; take {ends}"
            )
        return Objective(round(self.share, 12), bound)  # 99.9% is read as 0.9990000000000001

    @property
    def le(self) -> str:
        """The bound as text, as in the ``le`` label of the histogram's buckets."""
        return str(self.checked().bound)

    @property
    def budget(self) -> float:
        """The proportion of requests that may fail or be late."""
        return 1 - self.share

    def __str__(self) -> str:
        return f"{100 * self.share:.6g} % within {1e3 * self.bound:g} ms"


class Window(NamedTuple):
    """An alert condition: the error budget burns `factor` times too fast over `long` and over `short` seconds."""

    name: str
    factor: float
    long: float
    short: float
    severity: str

    def scaled(self, scale: float) -> Window:
        """Return the condition with both windows multiplied by `scale`."""
        return self._replace(long=self.long * scale, short=self.short * scale)


HOUR = 3600.0
WINDOWS = (  # Google, The Site Reliability Workbook, chapter 5: 2 %, 5 % and 10 % of a budget of 30 days
    Window("Fast", 14.4, HOUR, HOUR / 12, "page"),
    Window("Slowly", 6, 6 * HOUR, HOUR / 2, "page"),
    Window("Steadily", 1, 72 * HOUR, 6 * HOUR, "ticket"),
)


def promql_time(seconds: float) -> str:
    """Return a duration in the notation of PromQL, such as 5m, 90s or 250ms."""
    for unit, length in (("h", HOUR), ("m", 60.0), ("s", 1.0)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(1, round(1000 * seconds))}ms"


def per_second(metric: str, window: str, labels: str = "", by: str = "version") -> str:
    """Return the PromQL for a counter's events per second, for use in ratios of two rates over the same window."""
    return f'sum by ({by}) (rate({metric}{{job="tinybench"{labels and ","}{labels}}}[{window}]))'


def full_rate(metric: str, window: str, labels: str = "") -> str:
    """Return the PromQL for a counter's events per second on servers that were scraped for a whole window.

    For a newer server, `rate` would divide its few events by the whole window. Ratios of rates cancel this.
    """
    rate = f'rate({metric}{{job="tinybench"{labels and ","}{labels}}}[{window}])'
    return f"sum by (version) ({rate} and on (version, instance) {read_since(window)})"


def read_since(window: str) -> str:
    """Return the PromQL for the servers that were already scraped at the beginning of a window that ends now."""
    return f'(up{{job="tinybench"}} offset {window} == 1)'


def requests(window: str) -> str:
    """Return the PromQL for the requests per second that count towards the objective."""
    return per_second("tinybench_requests_total", window, COUNTED_CODES)


def in_time(objective: Objective, window: str) -> str:
    """Return the PromQL for the proportion of requests answered within the bound; NaN without requests."""
    good = per_second("tinybench_request_seconds_bucket", window, f'le="{objective.le}"')
    return f"clamp_max({good} / {requests(window)}, 1)"


def burn(objective: Objective, window: str) -> str:
    """Return the PromQL for the burn rate: how many times faster than allowed the error budget is spent."""
    return f"(1 - {in_time(objective, window)}) / {objective.budget:.12g}"


def quantile(q: float, metric: str, window: str) -> str:
    """Return the PromQL for a quantile of a histogram."""
    return f"histogram_quantile({q:g}, {per_second(f'{metric}_bucket', window, by='version, le')})"


class Query(NamedTuple):
    """A PromQL expression and the legend for its series. In the legend, label names are in double braces."""

    promql: str
    legend: str


class Panel(NamedTuple):
    """A plot of one or more PromQL expressions over time.

    ``unit``: ``""``, ``"s"``, ``"share"`` or ``"per second"``. ``line``: a threshold and its name.
    """

    row: str
    title: str
    unit: str
    about: str
    queries: tuple[Query, ...]
    line: tuple[float, str] | None = None
    log: bool = False


def panels_for(objective: Objective = Objective(), rate: str = "1m", scale: float = 1.0) -> tuple[Panel, ...]:  # noqa: B008
    """Return the panels for an objective.

    Parameters
    ----------
    objective
        The service-level objective.
    rate
        Window of the rates, in the notation of PromQL; it must span a few scrapes.
    scale
        Factor for the lengths of the burn-rate windows; 1 leaves the lengths unchanged.
    """
    fast = WINDOWS[0].scaled(scale)
    long, short, lasting = map(promql_time, (fast.long, fast.short, scale * WINDOWS[-1].long))
    whole = "A server appears once it has been read for a whole window of the rate."
    failed = per_second("tinybench_requests_total", rate, 'code=~"499|5.."')
    labelled, right = (per_second("tinybench_labelled_total", long, label) for label in ("", f'correct=~"{RIGHT}"'))
    compared, disagreed = (per_second(f"tinybench_shadow_{what}_total", long) for what in ("compared", "disagreed"))
    answers, by_label = (per_second("tinybench_predictions_total", rate, by=by) for by in ("version", "version, label"))
    which, job = "{{version}}", '{job="tinybench"}'
    return (
        Panel(
            "Promised",
            "Requests",
            "per second",
            f"All requests to /predict. {whole}",
            (Query(full_rate("tinybench_requests_total", rate), which),),
        ),
        Panel(
            "Promised",
            "Answered in time",
            "share",
            f"Share of requests answered within {1e3 * objective.bound:g} ms; refused for their form: not counted.",
            (Query(in_time(objective, rate), which),),
            (objective.share, "objective"),
        ),
        Panel(
            "Promised",
            "Failed",
            "share",
            "Share of requests that the server failed to answer, or whose client left.",
            (Query(f"{failed} / {requests(rate)}", which),),
            (objective.budget, "budget"),
        ),
        Panel(
            "Promised",
            "Burn rate",
            "",
            "How many times faster than allowed the budget of failures is spent. Above the line in both windows: act.",
            (Query(burn(objective, long), f"{which}, {long}"), Query(burn(objective, short), f"{which}, {short}")),
            (fast.factor, f"{fast.factor:g} times too fast"),
        ),
        Panel(
            "Promised",
            f"Budget left of {lasting}",
            "share",
            f"The share left of the failures and late answers allowed for the last {lasting}, or since the first "
            "reading, if that is later. Below 0, there were more than allowed.",
            (Query(f"1 - {burn(objective, lasting)}", which),),
            (0.0, "budget spent"),
        ),
        Panel(
            "Promised",
            "Users with the new version",
            "share",
            "Share of users who get the new version.",
            (Query(f"max by (version) (tinybench_rollout_share{job})", which),),
        ),
        Panel(
            "Fast",
            "Latency",
            "s",
            "As the histogram's buckets estimate it: the truth may lie anywhere in the bucket.",
            tuple(Query(quantile(q, "tinybench_request_seconds", rate), f"{which}, p{100 * q:g}") for q in (0.5, 0.99)),
            (objective.bound, "bound"),
            log=True,
        ),
        Panel(
            "Fast",
            "Time of the model",
            "s",
            "p99 of one call of the model: what is left of the latency is waiting.",
            (Query(quantile(0.99, "tinybench_model_seconds", rate), f"{which}, p99"),),
            log=True,
        ),
        Panel(
            "Fast",
            "Requests in one call",
            "",
            "Mean size of a batch.",
            (Query(" / ".join(per_second(f"tinybench_batch_size_{of}", rate) for of in ("sum", "count")), which),),
        ),
        Panel(
            "Fast",
            "Under way",
            "",
            "Requests without an answer yet, and of these those that wait for a worker.",
            (
                Query(f"sum by (version) (tinybench_requests_open{job})", f"{which}, open"),
                Query(f"sum by (version) (tinybench_queue_length{job})", f"{which}, waiting"),
            ),
        ),
        Panel("Fast", "Servers", "", "Those that can be read.", (Query(f"sum by (version) (up{job})", which),)),
        Panel(
            "Fast",
            "Workers that died",
            "",
            f"Within {long}.",
            (Query(f"sum by (version) (round(increase(tinybench_worker_restarts_total{job}[{long}])))", which),),
        ),
        Panel(
            "Right",
            "Evidence of drift",
            "",
            "An e value against 'nothing has changed': where nothing has, it is above 100 in 1 % of cases, ever.",
            (Query(f"max by (version, what) (tinybench_drift_evidence{job})", f"{which}, {{{{what}}}}"),),
            (100.0, "alarm"),
            log=True,
        ),
        Panel(
            "Right",
            "Distance from the reference",
            "",
            "Population stability index of the last rows. With few it is large also where nothing has changed.",
            (Query(f"max by (version, what) (tinybench_drift_psi{job})", f"{which}, {{{{what}}}}"),),
        ),
        Panel(
            "Right",
            "Answers by label",
            "share",
            "Share of each predicted label.",
            (Query(f"{by_label} / on (version) group_left () {answers}", f"{which}, {{{{label}}}}"),),
        ),
        Panel(
            "Right",
            "Disagreement in shadow",
            "share",
            "Share of mirrored requests that the two versions answered differently.",
            (Query(f"{disagreed} / {compared}", which),),
        ),
        Panel(
            "Right",
            "Right, where labels came",
            "share",
            "Share of right answers among those whose label has come; missing labels are no right answers.",
            (Query(f"{right} / {labelled}", which),),
        ),
        Panel(
            "Right",
            "Labels that came",
            "per second",
            f"Labels for answers given, right or wrong; compare with the requests. {whole}",
            (Query(full_rate("tinybench_labelled_total", rate), which),),
        ),
    )


PANELS = panels_for()
