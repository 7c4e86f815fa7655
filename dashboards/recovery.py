"""Recovery: what was lost, why, how fast it went on, and what that saved."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.frame import begin
from dashboards.panels import number, series
from dashboards.queries import counted, quantile, standing

_RECOVERY = "triage_recovery_seconds"


def build() -> Dashboard:
    """Build the dashboard."""
    return (
        begin("recovery", "Recovery", "Attempts that were lost, and how fast their runs went on.")
        .with_panel(
            number(
                "Lost",
                "Attempts lost in the range.",
                counted("triage_losses_total", within="$__range"),
            )
        )
        .with_panel(
            number(
                "Resumed",
                "Pods made to go on with a run.",
                counted("triage_resumes_total", within="$__range"),
            )
        )
        .with_panel(
            number(
                "Refused",
                "Runs with a lost attempt that were ended instead.",
                f"{counted('triage_resumes_refused_total', within='$__range')} or vector(0)",
                alarming=True,
            )
        )
        .with_panel(
            number(
                "p50",
                "From the detection of a loss to the next durable write.",
                quantile(0.5, _RECOVERY, within="$__range"),
                unit="s",
            )
        )
        .with_panel(
            number(
                "p95",
                "From the detection of a loss to the next durable write.",
                quantile(0.95, _RECOVERY, within="$__range"),
                unit="s",
            )
        )
        .with_panel(
            number(
                "Time saved",
                "Seconds of models and tools that were not spent again.",
                counted("triage_seconds_saved_total", within="$__range"),
                unit="s",
            )
        )
        .with_panel(
            series(
                "Losses by cause",
                "Attempts lost in each interval.",
                {"{{cause}}": f"{counted('triage_losses_total', 'cause', within='$__rate_interval')} > 0"},
                stacked=True,
            )
        )
        .with_panel(
            series(
                "Resumes by cause",
                "Pods made to go on, by the cause of the loss, in each interval.",
                {"{{cause}}": f"{counted('triage_resumes_total', 'cause', within='$__rate_interval')} > 0"},
                stacked=True,
            )
        )
        .with_panel(
            series(
                "Loss to first write",
                "Over all causes, of the range up to each point.",
                {
                    f"p{share * 100:.0f}": quantile(share, _RECOVERY, within="$__range")
                    for share in (0.5, 0.95, 0.99)
                },
                unit="s",
                runbook="TriageRecoverySlow",
            )
        )
        .with_panel(
            series(
                "Loss to first write by cause",
                "p95, of the range up to each point.",
                {"{{cause}}": quantile(0.95, _RECOVERY, "cause", within="$__range")},
                unit="s",
            )
        )
        .with_panel(
            series(
                "Runs without a live attempt",
                "Runs that should be at work, and how long the first of them has had no attempt.",
                {
                    "runs": standing("triage_runs_unattended"),
                    "seconds of the first": standing("triage_oldest_unattended_seconds", by="max"),
                },
                runbook="TriageRunUnattended",
            )
        )
        .with_panel(
            series(
                "Resumes refused by reason",
                "Runs with a lost attempt that were ended instead, in the range.",
                {"{{reason}}": counted("triage_resumes_refused_total", "reason", within="$__range")},
                runbook="TriageResumeLoop",
            )
        )
        .with_panel(
            series(
                "Memory raised",
                "Of running attempts in place, and with the next attempt, in each interval.",
                {"{{how}}": counted("triage_memory_raises_total", "how", within="$__rate_interval")},
                runbook="TriageOutOfMemoryAtCap",
            )
        )
        .with_panel(
            series(
                "Tokens not paid twice",
                "Of replies that were in the journal, in the range.",
                {"{{kind}}": counted("triage_tokens_saved_total", "kind", within="$__range")},
            )
        )
        .with_panel(
            series(
                "Seconds not spent twice",
                "Of models and tools, in the range.",
                {"{{kind}}": counted("triage_seconds_saved_total", "kind", within="$__range")},
                unit="s",
            )
        )
    )
