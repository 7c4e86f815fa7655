"""The alerts of the chart, by promtool: each is quiet, fires, and resolves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.charts import render
from support.promtool import ROOT, promtool

RUN = 'namespace="docs",agent="reader"'
RUNBOOKS = ROOT / "docs" / "runbooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Series with a value a minute, and the minutes at which an alert is quiet, fires, and is over."""

    alert: str
    series: Mapping[str, str]
    quiet: int
    fires: int
    over: int
    summary: str
    labels: Mapping[str, str] = field(default_factory=lambda: {"namespace": "docs", "agent": "reader"})


CASES = (
    Case(
        alert="TriageRecoverySlow",
        # Five fast losses; then five of which one took longer than a minute.
        series={
            f'triage_recovery_seconds_bucket{{{RUN},cause="oom",le="5"}}': "0 5x19 9x80",
            f'triage_recovery_seconds_bucket{{{RUN},cause="oom",le="60"}}': "0 5x19 9x80",
            f'triage_recovery_seconds_bucket{{{RUN},cause="oom",le="120"}}': "0 5x19 10x80",
            f'triage_recovery_seconds_bucket{{{RUN},cause="oom",le="+Inf"}}': "0 5x19 10x80",
        },
        quiet=10,
        fires=35,
        over=60,
        summary="Lost runs of docs/reader take 1m 45s to go on.",
    ),
    Case(
        alert="TriageResumeLoop",
        # Born with its first count, as a reason's series is.
        series={
            f'triage_resumes_refused_total{{{RUN},reason="NoProgress"}}': "_x10 2x100",
            f'triage_resumes_refused_total{{{RUN},reason="DeadlineExceeded"}}': "_x10 7x100",
        },
        quiet=9,
        fires=12,
        over=80,
        summary="2 runs of docs/reader were given up: NoProgress.",
        labels={"namespace": "docs", "agent": "reader", "reason": "NoProgress"},
    ),
    Case(
        alert="TriageOutOfMemoryAtCap",
        series={
            f'triage_losses_total{{{RUN},cause="oom"}}': "0x4 1x4 2x100",
            f'triage_losses_total{{{RUN},cause="drain"}}': "0x4 5x100",
            f'triage_memory_raises_total{{{RUN},how="next_attempt"}}': "0x4 1x100",
        },
        quiet=8,
        fires=15,
        over=50,
        summary="1 OOM kills of docs/reader were not followed by more memory.",
    ),
    Case(
        alert="TriageCallInDoubt",
        series={f"triage_oldest_in_doubt_seconds{{{RUN}}}": "0x4 60+60x20 0x10"},
        quiet=10,
        fires=22,
        over=28,
        summary="A call of docs/reader has been in doubt for 18m 0s.",
    ),
    Case(
        alert="TriageWaitingForPerson",
        series={f"triage_oldest_waiting_seconds{{{RUN}}}": "0x4 600+600x30 0x10"},
        quiet=20,
        fires=30,
        over=38,
        summary="A run of docs/reader has waited for a person for 4h 20m 0s.",
    ),
    Case(
        alert="TriageRunUnattended",
        series={f"triage_oldest_unattended_seconds{{{RUN}}}": "0x4 60+60x10 0x10"},
        quiet=8,
        fires=11,
        over=18,
        summary="A run of docs/reader has had no live attempt for 7m 0s.",
    ),
    Case(
        alert="TriageDuplicateEffect",
        series={f"triage_duplicate_effects{{{RUN}}}": "0x4 2x4 0x10"},
        quiet=2,
        fires=6,
        over=12,
        summary="Runs of docs/reader filed 2 issues a second time.",
    ),
    Case(
        alert="TriageOperatorStale",
        series={
            'triage_leader{instance="one"}': "1x30",
            'triage_leader{instance="two"}': "0x30",
            'triage_sweep_age_seconds{instance="one"}': "20x4 60+60x8 20x20",
            'triage_sweep_age_seconds{instance="two"}': "9000x30",
            'triage_watch_age_seconds{instance="two",resource="pods"}': "5x30",
        },
        quiet=5,
        fires=10,
        over=16,
        summary="The operator one has not swept, or heard a watch, for 6m 0s.",
        labels={"instance": "one"},
    ),
    Case(
        alert="TriageOperatorLeaderless",
        series={'triage_leader{instance="one"}': "1x4 0x6 1x10"},
        quiet=6,
        fires=9,
        over=12,
        summary="No operator leads.",
        labels={},
    ),
    Case(
        alert="TriageDatabaseUnreachable",
        series={
            'triage_leader{instance="one"}': "1x30",
            'triage_database_up{instance="one"}': "1x4 0x6 1x10",
            'triage_leader{instance="two"}': "0x30",
            'triage_database_up{instance="two"}': "0x30",
        },
        quiet=6,
        fires=9,
        over=12,
        summary="The operator one does not reach its database.",
        labels={"instance": "one"},
    ),
    Case(
        alert="TriageFenceRefusals",
        series={f"triage_fence_refusals_total{{{RUN}}}": "0x4 3x4 9x100"},
        quiet=6,
        fires=10,
        over=80,
        summary="9 attempts of docs/reader went on after they were taken for lost.",
    ),
    Case(
        alert="TriageStartBlocked",
        series={f'triage_starts_blocked{{{RUN},reason="StartBlocked"}}': "_x4 2x20 _x10"},
        quiet=10,
        fires=18,
        over=30,
        summary="2 runs of docs/reader cannot start: StartBlocked.",
        labels={"namespace": "docs", "agent": "reader", "reason": "StartBlocked"},
    ),
)


def _rules(**alerts: Any) -> list[dict[str, Any]]:
    (rule,) = render({"alerts": {"enabled": True, **alerts}}).of("PrometheusRule")
    (group,) = rule["spec"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_is_quiet_then_fires_and_resolves(case: Case, tmp_path: Path) -> None:
    (rule,) = (rule for rule in _rules() if rule["alert"] == case.alert)
    firing = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": {**rule["annotations"], "summary": case.summary},
    }
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [rule]}]}))
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": alerts}
            for minute, alerts in ((case.quiet, []), (case.fires, [firing]), (case.over, []))
        ],
    }
    (tmp_path / "test.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]})
    )
    promtool("test", "rules", tmp_path / "test.yaml")


def test_each_alert_is_tested_and_has_a_runbook_that_its_name_leads_to() -> None:
    names = [rule["alert"] for rule in _rules()]
    assert sorted(names) == sorted(case.alert for case in CASES)
    assert sorted(path.stem for path in RUNBOOKS.glob("*.md")) == sorted(names)
    for rule in _rules():
        assert rule["annotations"]["runbook_url"].endswith(f"docs/runbooks/{rule['alert']}.md")
        text = (RUNBOOKS / f"{rule['alert']}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {rule['alert']}\n")
        assert [line for line in text.splitlines() if line.startswith("## ")] == [
            "## What it means",
            "## How to look",
            "## What to do",
        ]


def test_each_alert_can_be_left_out_and_gets_labels_and_thresholds_from_the_values() -> None:
    names = {rule["alert"] for rule in _rules()}
    left = _rules(
        exclude=["TriageResumeLoop"], extraLabels={"team": "docs"}, thresholds={"inDoubtSeconds": 60}
    )
    assert {rule["alert"] for rule in left} == names - {"TriageResumeLoop"}
    assert {rule["labels"]["team"] for rule in left} == {"docs"}
    (in_doubt,) = (rule for rule in left if rule["alert"] == "TriageCallInDoubt")
    assert in_doubt["expr"].endswith("> 60")
    assert not any("${" in str(rule) for rule in left)
