"""What dashboards have in common: variables, links to each other, and marks for deploys and drains."""

from typing import Final

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.panels import SOURCE
from dashboards.queries import GAP, SELECTED, counted

TAG: Final = "triage-operator"
_NOW: Final = f"max by (agent, image) (triage_agent_info{{{SELECTED}}})"
_BEFORE: Final = f"max by (agent, image) (last_over_time(triage_agent_info[{GAP}] offset 1m))"
DEPLOYS: Final = f"{_NOW} unless {_BEFORE}"
_DRAINED: Final = f'{SELECTED},cause="drain"'
DRAINS: Final = f"{counted('triage_losses_total', 'agent', within='1m', where=_DRAINED)} > 0"


def begin(uid: str, title: str, description: str) -> Dashboard:
    """Begin a dashboard; its panels are added in the order in which they are read."""
    return (
        Dashboard(f"triage-operator / {title}")
        .uid(f"triage-operator-{uid}")
        .description(description)
        .tags([TAG])
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .time("now-6h", "now")
        .timezone("browser")
        .editable()
        .link(
            DashboardLink("Other dashboards")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_of_runs("namespace", "Namespace", "triage_runs"))
        .with_variable(_of_runs("agent", "Agent", 'triage_runs{namespace=~"$namespace"}'))
        .annotation(_marks("Deploys", DEPLOYS, "blue", "{{agent}}: {{image}}"))
        .annotation(_marks("Drains", DRAINS, "orange", "{{agent}}: a node was drained"))
    )


def _of_runs(name: str, label: str, series: str) -> QueryVariable:
    return (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(f"label_values({series}, {name})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".+")
        .current(VariableOption(selected=True, text="All", value="$__all"))
    )


def _marks(name: str, query: str, color: str, text: str) -> AnnotationQuery:
    return (
        AnnotationQuery().name(name).datasource(SOURCE).expr(query).icon_color(color).enable(True).hide(False)
    )
