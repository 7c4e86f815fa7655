"""What panels have in common: a title, a sentence, a unit, and a legend."""

from collections.abc import Mapping
from typing import Final

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLink,
    DashboardLinkType,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
RUNBOOKS: Final = "https://github.com/triage-operator/triage-operator/blob/main/docs/runbooks"

Queries = Mapping[str, str]
"""Legend to query; a legend may name labels as ``{{cause}}``."""


def number(
    title: str, description: str, query: str, *, unit: str = "short", alarming: bool = False
) -> stat.Panel:
    """Build a panel of one number; an ``alarming`` one turns red above zero."""
    steps = [Threshold(value=None, color="green")]
    if alarming:
        steps.append(Threshold(value=0.000001, color="red"))
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .with_target(_target("A", title, query).instant())
        .color_mode(BigValueColorMode.VALUE if alarming else BigValueColorMode.NONE)
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .height(4)
        .span(4)
    )


def series(
    title: str,
    description: str,
    queries: Queries,
    *,
    unit: str = "short",
    stacked: bool = False,
    runbook: str | None = None,
) -> timeseries.Panel:
    """Build a panel of lines over time, or of ``stacked`` areas. ``runbook`` names the alert that watches it."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .min(0)
        .datasource(SOURCE)
        .height(8)
        .span(8)
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(30)
    if runbook is not None:
        panel.links([_link(f"Runbook: {runbook}", f"{RUNBOOKS}/{runbook}.md")])
    for letter, (legend, query) in zip("ABCDEFGH", queries.items(), strict=False):
        panel.with_target(_target(letter, legend, query))
    return panel


def listing(title: str, description: str, query: str) -> table.Panel:
    """Build a table with a row for each series."""
    return (
        table.Panel()
        .title(title)
        .description(description)
        .unit("short")
        .datasource(SOURCE)
        .height(8)
        .span(8)
        .with_target(_target("A", "", query).instant().format(PromQueryFormat.TABLE))
    )


def _target(letter: str, legend: str, query: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().ref_id(letter).datasource(SOURCE).expr(query).legend_format(legend)


def _link(title: str, url: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).type(DashboardLinkType.LINK).url(url).target_blank(True)


__all__ = ["RUNBOOKS", "SOURCE", "DashboardLink", "listing", "number", "series"]
