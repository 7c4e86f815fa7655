"""The result: a table for people, and a summary for programs."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from triage_local.demo.evidence import Evidence, RunSeen

_SHOWN_METRICS: Final = (
    "triage_runs{",
    "triage_losses_total{",
    "triage_resumes_total{",
    "triage_duplicates_suppressed_total{",
    "triage_recovery_seconds_count{",
    "triage_recovery_seconds_sum{",
)


def print_report(console: Console, evidence: Evidence, problems: Sequence[str]) -> None:
    """Print the table, the checks, and what the operator's metrics say."""
    console.print()
    console.print(_table(evidence.runs))
    if evidence.by_hand is not None:
        said = evidence.by_hand.refusal
        console.print(f"A resume of a finished run is refused: {said}", markup=False, soft_wrap=True)
        count = evidence.by_hand.issues_without_key
        console.print(f"Without the idempotency key, a crash and a resume make {count} issues of one report.")
    console.print()
    console.print("The operator's metrics, in part:")
    for line in _metrics(evidence.metrics):
        console.print(f"  {line}", markup=False, soft_wrap=True)
    console.print()
    if problems:
        console.print("Something is off:", style="bold red")
        for problem in problems:
            console.print(f"  {problem}", style="red", markup=False, soft_wrap=True)
    else:
        console.print("Each report has exactly one issue.", style="bold green")


def write_summary(path: Path, evidence: Evidence, problems: Sequence[str]) -> None:
    """Write the summary as JSON."""
    control = None if evidence.by_hand is None else {"issues_filed": evidence.by_hand.issues_without_key}
    summary = {"runs": [_summary(run) for run in evidence.runs], "control": control, "ok": not problems}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def _summary(run: RunSeen) -> dict[str, Any]:
    number = run.issue
    return {
        "name": run.name,
        "phase": run.phase,
        "attempts": len(run.attempts),
        "causes": list(run.causes),
        "issue": int(number) if number is not None and number.isdecimal() else number,
        "issues_filed": len(run.issues),
        "duplicates_suppressed": sum(run.suppressed.values()),
        "recovery_seconds": list(run.recovery_seconds),
        "decisions": list(run.decisions),
    }


def _table(runs: Sequence[RunSeen]) -> Table:
    table = Table(title="What became of the runs", title_justify="left")
    for heading in (
        "Run",
        "Phase",
        "Lost to",
        "Attempts",
        "Issue",
        "Duplicates suppressed",
        "Decided",
        "Loss to first event",
    ):
        table.add_column(heading)
    for run in runs:
        table.add_row(
            run.name,
            run.phase,
            ", ".join(run.causes) or "-",
            str(len(run.attempts)),
            ", ".join(run.issues) or "-",
            ", ".join(f"{count} by the {place}" for place, count in run.suppressed.items()) or "0",
            ", ".join(run.decisions) or "-",
            ", ".join(f"{seconds:.1f} s" for seconds in run.recovery_seconds) or "-",
        )
    return table


def _metrics(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith(_SHOWN_METRICS) and not line.endswith(" 0.0"):
            yield line
