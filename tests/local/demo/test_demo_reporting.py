"""The summary for programs and the report for people."""

import io
import json
from pathlib import Path

from rich.console import Console

from triage_local.demo.evidence import AttemptSeen, ByHand, Evidence, RunSeen
from triage_local.demo.reporting import print_report, write_summary

RUN = RunSeen(
    name="drained",
    phase="Succeeded",
    attempts=(
        AttemptSeen(cause="drain", node="node-1", memory_limit_bytes=None),
        AttemptSeen(cause=None, node="node-2", memory_limit_bytes=None),
    ),
    issue="3",
    issues=("3",),
    suppressed={"journal": 2, "tracker": 1},
    recovery_seconds=(2.25,),
)
EVIDENCE = Evidence(
    runs=(RUN,),
    stray_issues=0,
    by_hand=ByHand(refusal="is already finished", issues_without_key=2),
    metrics='triage_losses_total{cause="drain"} 1.0\ntriage_losses_total{cause="oom"} 0.0\nother 1.0\n',
)


def test_the_summary_has_what_was_observed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "summary.json"
    write_summary(path, EVIDENCE, ())
    assert json.loads(path.read_text()) == {
        "runs": [
            {
                "name": "drained",
                "phase": "Succeeded",
                "attempts": 2,
                "causes": ["drain"],
                "issue": 3,
                "issues_filed": 1,
                "duplicates_suppressed": 3,
                "recovery_seconds": [2.25],
                "decisions": [],
            }
        ],
        "control": {"issues_filed": 2},
        "ok": True,
    }


def test_the_summary_of_a_demo_that_broke_off_is_not_ok(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_summary(path, Evidence(runs=(), stray_issues=0, by_hand=None, metrics=""), ("the operator died",))
    assert json.loads(path.read_text()) == {"runs": [], "control": None, "ok": False}


def _printed(*problems: str) -> str:
    console = Console(file=io.StringIO(), width=132, highlight=False)
    print_report(console, EVIDENCE, problems)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_report_shows_table_refusal_control_and_metrics() -> None:
    printed = _printed()
    row = next(line for line in printed.splitlines() if "drained" in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == [
        "drained",
        "Succeeded",
        "drain",
        "2",
        "3",
        "2 by the journal, 1 by the tracker",
        "-",
        "2.2 s",
    ]
    assert "A resume of a finished run is refused: is already finished\n" in printed
    assert "make 2 issues of one report" in printed
    assert '\n  triage_losses_total{cause="drain"} 1.0\n' in printed
    assert "oom" not in printed
    assert "other 1.0" not in printed
    assert "Each report has exactly one issue." in printed


def test_the_report_names_what_is_off() -> None:
    printed = _printed("drained: has 2 issues in the tracker, not one")
    assert "Something is off:\n  drained: has 2 issues in the tracker, not one\n" in printed
    assert "exactly one issue" not in printed
