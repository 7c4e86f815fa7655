"""Operator: whether it leads, sweeps, watches, and how fast its database and its API server answer."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.frame import begin
from dashboards.panels import listing, number, series

_RATE = "$__rate_interval"
_REQUESTS = f"sum by (verb, resource, code) (rate(triage_api_requests_total[{_RATE}]))"
# The metrics of any process, of those that are operators.
_OURS = "and on (instance, job) triage_leader"
_MEMORY = f"max by (instance) (process_resident_memory_bytes {_OURS})"
_PROCESSOR = f"max by (instance) (rate(process_cpu_seconds_total[{_RATE}]) {_OURS})"


def _quantile(share: float, metric: str, label: str) -> str:
    return f"histogram_quantile({share:g}, sum by (le, {label}) (rate({metric}_bucket[{_RATE}])))"


def build() -> Dashboard:
    """Build the dashboard."""
    return (
        begin("operator", "Operator", "How each operator does its work.")
        .with_panel(number("Leaders", "One, but for moments.", "sum(triage_leader)"))
        .with_panel(
            number(
                "Last sweep",
                "Since what should be was last compared with what is.",
                "min(triage_sweep_age_seconds and triage_leader == 1)",
                unit="s",
            )
        )
        .with_panel(
            number(
                "Last look",
                "Since the database last told the signs of life.",
                "min(triage_look_age_seconds and triage_leader == 1)",
                unit="s",
            )
        )
        .with_panel(
            number(
                "Oldest watch",
                "Since the API server was last heard on a watch.",
                "max(triage_watch_age_seconds)",
                unit="s",
            )
        )
        .with_panel(number("Queue", "Runs that wait for a worker.", "sum(triage_queue_depth)"))
        .with_panel(
            number("Database", "1: it answers the leader.", "min(triage_database_up and triage_leader == 1)")
        )
        .with_panel(
            series(
                "Leader",
                "Which operator leads.",
                {"{{instance}}": "max by (instance) (triage_leader)"},
                stacked=True,
                runbook="TriageOperatorLeaderless",
            )
        )
        .with_panel(
            series(
                "Sweep and look",
                "Age of the last of each, of the leader.",
                {
                    "sweep": "min(triage_sweep_age_seconds and triage_leader == 1)",
                    "look": "min(triage_look_age_seconds and triage_leader == 1)",
                },
                unit="s",
                runbook="TriageOperatorStale",
            )
        )
        .with_panel(
            series(
                "Watches",
                "Since the API server was last heard.",
                {"{{resource}}": "max by (resource) (triage_watch_age_seconds)"},
                unit="s",
                runbook="TriageOperatorStale",
            )
        )
        .with_panel(
            series(
                "Passes",
                "Passes over runs in a second, by what was done.",
                {"{{action}}": f"sum by (action) (rate(triage_reconcile_seconds_count[{_RATE}]))"},
                unit="ops",
            )
        )
        .with_panel(
            series(
                "A pass takes",
                "p95 by what was done.",
                {"{{action}}": _quantile(0.95, "triage_reconcile_seconds", "action")},
                unit="s",
            )
        )
        .with_panel(
            series(
                "Runs that wait for a worker",
                "By operator.",
                {"{{instance}}": "max by (instance) (triage_queue_depth)"},
            )
        )
        .with_panel(
            series(
                "A statement takes",
                "p95 by what is asked of the database.",
                {"{{operation}}": _quantile(0.95, "triage_database_seconds", "operation")},
                unit="s",
                runbook="TriageDatabaseUnreachable",
            )
        )
        .with_panel(
            series(
                "Connections",
                "To the database, of all operators.",
                {"{{state}}": "sum by (state) (triage_database_connections)"},
                stacked=True,
            )
        )
        .with_panel(
            series(
                "Requests to the API server",
                "In a second, by resource and answer.",
                {"{{verb}} {{resource}} {{code}}": _REQUESTS},
                unit="reqps",
            )
        )
        .with_panel(
            series(
                "An answer takes",
                "p95 by verb.",
                {"{{verb}}": _quantile(0.95, "triage_api_request_seconds", "verb")},
                unit="s",
            )
        )
        .with_panel(
            series(
                "Memory",
                "Resident, by operator.",
                {"{{instance}}": _MEMORY},
                unit="bytes",
            )
        )
        .with_panel(
            series(
                "Processor",
                "Share of a core, by operator.",
                {"{{instance}}": _PROCESSOR},
                unit="percentunit",
            )
        )
        .with_panel(listing("Versions", "What runs.", "max by (instance, version) (triage_build_info)"))
    )
