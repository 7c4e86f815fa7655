"""Fleet: what the runs do now, what arrives, what waits, and how it ends."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.frame import begin
from dashboards.panels import listing, number, series
from dashboards.queries import SELECTED, counted, quantile, standing

_ENDED = "triage_runs_ended_total"
_SUCCEEDED = f'{SELECTED},state="succeeded"'


def build() -> Dashboard:
    """Build the dashboard."""
    at_work = f'{SELECTED},phase=~"Running|Recovering"'
    succeeded = counted(_ENDED, within="$__range", where=_SUCCEEDED)
    share = f"({succeeded}) / ({counted(_ENDED, within='$__range')} > 0)"
    return (
        begin("fleet", "Fleet", "Runs by phase, what arrives and waits, and how runs end.")
        .with_panel(
            number(
                "At work",
                "Runs that an attempt works on, or is about to.",
                standing("triage_runs", where=at_work),
            )
        )
        .with_panel(
            number(
                "For a person",
                "Runs that wait for a person or an answer.",
                standing("triage_runs_waiting"),
                alarming=True,
            )
        )
        .with_panel(
            number("Queued", "Runs that wait for a place of their agent.", standing("triage_runs_queued"))
        )
        .with_panel(
            number(
                "Blocked",
                "Runs whose pod cannot be made or start.",
                f"{standing('triage_starts_blocked')} or vector(0)",
                alarming=True,
            )
        )
        .with_panel(number("Ended", "Runs that ended in the range.", counted(_ENDED, within="$__range")))
        .with_panel(number("Succeeded", "Share of them that succeeded.", share, unit="percentunit"))
        .with_panel(
            series(
                "Runs by phase",
                "All runs that exist.",
                {"{{phase}}": standing("triage_runs", "phase")},
                stacked=True,
            )
        )
        .with_panel(
            series(
                "Arrivals and ends",
                "Runs taken up and runs ended, in each interval.",
                {
                    "arrived": counted("triage_runs_created_total", within="$__rate_interval"),
                    "{{state}}": counted(_ENDED, "state", within="$__rate_interval"),
                },
            )
        )
        .with_panel(
            series(
                "The first in the queue",
                "How long the oldest run of an agent has waited for a place.",
                {
                    "{{namespace}}/{{agent}}": standing(
                        "triage_oldest_queued_seconds", "namespace", "agent", by="max"
                    )
                },
                unit="s",
            )
        )
        .with_panel(
            listing(
                "Ends by reason",
                "Runs that ended in the range.",
                counted(_ENDED, "state", "reason", within="$__range"),
            )
        )
        .with_panel(
            series(
                "Attempts of a run",
                "How many attempts runs had that ended in the range.",
                {
                    f"p{share * 100:.0f}": quantile(share, "triage_attempts_per_run", within="$__range")
                    for share in (0.5, 0.95)
                },
            )
        )
        .with_panel(
            listing(
                "Agents",
                "What the next attempt of each agent starts with: image, and fingerprint of the tree.",
                f"max by (namespace, agent, image, fingerprint) (triage_agent_info{{{SELECTED}}})",
            )
        )
        .with_panel(
            series(
                "Starts that are blocked",
                "Runs whose pod cannot be made or start, by reason.",
                {"{{reason}}": standing("triage_starts_blocked", "reason")},
                runbook="TriageStartBlocked",
            )
        )
        .with_panel(
            series(
                "A start, by stage",
                "Seconds from the record of an attempt, p95 of those that ended in the range.",
                {"{{stage}}": quantile(0.95, "triage_start_seconds", "stage", within="$__range")},
                unit="s",
            )
        )
        .with_panel(
            series(
                "Waits for the model",
                "Waits that a model's endpoint asked for, in each interval.",
                {"{{agent}}": counted("triage_model_waits_total", "agent", within="$__rate_interval")},
            )
        )
    )
