"""The panels as a Grafana dashboard, made with grafana-foundation-sdk; what it makes is stored beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tinybench.tools.watching.queries import PANELS, Objective, Panel, panels_for

__all__ = ["STORED", "dashboard_json", "make_dashboard", "stored_dashboard"]

STORED = Path(__file__).with_name("dashboard.json")
UNITS = {"": "short", "s": "s", "share": "percentunit", "per second": "reqps"}
OURS, CHOSEN = '{job="tinybench"', '{job="tinybench",version=~"$version"'
NOT_HERE = "another objective than 99.9 % within 50 ms takes grafana-foundation-sdk: pip install grafana-foundation-sdk"


def stored_dashboard() -> str:
    """Return the dashboard for the usual objective, as JSON that Grafana imports; it needs no other package."""
    return STORED.read_text(encoding="utf-8")


def dashboard_json(objective: Objective = Objective()) -> str:  # noqa: B008
    """Return the dashboard for an objective as JSON that Grafana imports."""
    objective = objective.checked()
    if objective == Objective():
        return stored_dashboard()
    try:
        return make_dashboard(objective)
    except ModuleNotFoundError:
        raise ValueError(NOT_HERE) from None


def make_dashboard(objective: Objective = Objective()) -> str:  # noqa: B008
    """Make the dashboard anew."""
    from grafana_foundation_sdk.builders import dashboard as builders
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import (
        DashboardCursorSync,
        DataSourceRef,
        VariableHide,
        VariableOption,
        VariableRefresh,
    )

    panels = PANELS if objective == Objective() else panels_for(objective)
    source = DataSourceRef(type_val="prometheus", uid="${datasource}")
    versions = builders.QueryVariable("version").label("version").datasource(source).refresh(VariableRefresh(2))
    versions = (
        versions.query('label_values(up{job="tinybench"}, version)').multi(True).include_all(True).all_value(".*")
    )
    every = VariableOption(text="All", value="$__all", selected=True)
    made = (
        builders.Dashboard("TinyBench: fast, and right?")
        .uid("tinybench")
        .description(f"Servers of `tinybench serve`, watched for {objective}.")
        .tags(["tinybench", "generated"])
        .time("now-1h", "now")
        .refresh("10s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(
            builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus").hide(VariableHide(0))
        )
        .with_variable(versions.current(every))
    )
    row = ""
    for number, panel in enumerate(panels, 1):
        if panel.row != row:
            row = panel.row
            made = made.with_row(builders.Row(row).id(100 + number))
        made = made.with_panel(_time_series(panel, number, source))
    return json.dumps(made.build(), cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _time_series(panel: Panel, number: int, source: Any) -> Any:
    """Return the builder of one panel."""
    from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
    from grafana_foundation_sdk.models.common import (
        GraphTresholdsStyleMode,
        LegendDisplayMode,
        LegendPlacement,
        ScaleDistribution,
        TooltipDisplayMode,
        VisibilityMode,
    )
    from grafana_foundation_sdk.models.dashboard import Threshold, ThresholdsMode

    about = panel.about if panel.line is None else f"{panel.about} The line: {panel.line[1]}."
    made = (
        timeseries.Panel()
        .id(number)
        .title(panel.title)
        .description(about)
        .unit(UNITS[panel.unit])
        .datasource(source)
        .span(8)
        .height(8)
        .line_width(2)
        .show_points(VisibilityMode.AUTO)
        .no_value("no data")
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    )
    if panel.log:
        made = made.scale_distribution(common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10))
    else:
        made = made.axis_soft_min(0)
    if panel.line is not None:
        below, above = "transparent", "orange"
        steps = [Threshold(value=None, color=below), Threshold(value=panel.line[0], color=above)]
        made = made.thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        made = made.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED))
    for letter, query in zip("ABCD", panel.queries, strict=False):
        asked = (
            prometheus.Dataquery().expr(for_grafana(query.promql)).legend_format(query.legend).ref_id(letter).range()
        )
        made = made.with_target(asked.datasource(source))
    return made


def for_grafana(promql: str) -> str:
    """Return an expression with the dashboard's variables: the versions chosen, and a window of some readings."""
    found = promql.replace(OURS, CHOSEN).replace("[1m]", "[$__rate_interval]")
    return found.replace(" offset 1m ", " offset $__rate_interval ")
