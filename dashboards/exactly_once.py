"""Exactly once: duplicates that were suppressed, calls in doubt, and writes that were refused."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.frame import begin
from dashboards.panels import number, series
from dashboards.queries import counted, standing

_SUPPRESSED = "triage_duplicates_suppressed_total"


def build() -> Dashboard:
    """Build the dashboard."""
    return (
        begin("exactly-once", "Exactly once", "Whether effects happened once, and what nobody can vouch for.")
        .with_panel(
            number(
                "Suppressed",
                "Repeated calls without a second effect, in the range.",
                f"{counted(_SUPPRESSED, within='$__range')} or vector(0)",
            )
        )
        .with_panel(
            number(
                "In doubt", "Calls that are in doubt now.", standing("triage_calls_in_doubt"), alarming=True
            )
        )
        .with_panel(
            number(
                "Since",
                "How long the oldest of them is.",
                standing("triage_oldest_in_doubt_seconds", by="max"),
                unit="s",
            )
        )
        .with_panel(
            number(
                "Refused",
                "Attempts that were refused a write, in the range.",
                counted("triage_fence_refusals_total", within="$__range"),
            )
        )
        .with_panel(
            number(
                "Repaired",
                "Sessions that were put right, in the range.",
                counted("triage_repairs_total", within="$__range"),
            )
        )
        .with_panel(
            number(
                "Happened twice",
                "Issues that a run filed again, of the last day.",
                f"{standing('triage_duplicate_effects')} or vector(0)",
                alarming=True,
            )
        )
        .with_panel(
            series(
                "Duplicates suppressed by tool",
                "Repeated calls that had no second effect, in the range.",
                {"{{tool}}, by the {{where}}": counted(_SUPPRESSED, "tool", "where", within="$__range")},
            )
        )
        .with_panel(
            series(
                "Calls in doubt",
                "How many, and since when the oldest is.",
                {"{{namespace}}/{{agent}}": standing("triage_calls_in_doubt", "namespace", "agent")},
                runbook="TriageCallInDoubt",
            )
        )
        .with_panel(
            series(
                "Age of the oldest call in doubt",
                "By agent.",
                {
                    "{{namespace}}/{{agent}}": standing(
                        "triage_oldest_in_doubt_seconds", "namespace", "agent", by="max"
                    )
                },
                unit="s",
                runbook="TriageCallInDoubt",
            )
        )
        .with_panel(
            series(
                "Came to be in doubt by tool",
                "Calls, in the range. Declare what repeating the tool does, or let it be asked.",
                {"{{tool}}": counted("triage_calls_in_doubt_found_total", "tool", within="$__range")},
            )
        )
        .with_panel(
            series(
                "Decided by people",
                "Decisions that were carried out, in the range.",
                {"{{action}}": counted("triage_decisions_total", "action", within="$__range")},
            )
        )
        .with_panel(
            series(
                "Waiting for a person",
                "How long the first run of an agent has waited.",
                {
                    "{{namespace}}/{{agent}}": standing(
                        "triage_oldest_waiting_seconds", "namespace", "agent", by="max"
                    )
                },
                unit="s",
                runbook="TriageWaitingForPerson",
            )
        )
        .with_panel(
            series(
                "Writes refused by the fence",
                "Attempts that learned that they had been overtaken, in each interval.",
                {"{{agent}}": counted("triage_fence_refusals_total", "agent", within="$__rate_interval")},
                runbook="TriageFenceRefusals",
            )
        )
        .with_panel(
            series(
                "Repairs",
                "Sessions that were put right before their agent went on, in each interval.",
                {"{{agent}}": counted("triage_repairs_total", "agent", within="$__rate_interval")},
            )
        )
        .with_panel(
            series(
                "Replies given again",
                "Model replies that were not asked for again, in the range.",
                {"{{agent}}": counted("triage_replies_replayed_total", "agent", within="$__range")},
            )
        )
    )
