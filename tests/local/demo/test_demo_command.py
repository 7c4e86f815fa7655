"""``triage-local demo``: what it shows is true, and nothing of it is left."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.leftovers import processes_of
from support.servers import API_SERVER


@contextmanager
def _demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, with its temporary files in ``folder/temporary`` and its results in ``folder/results``."""
    scratch = folder / "temporary"
    scratch.mkdir()
    command = (Path(sys.executable).with_name("triage-local"), "demo", "--api-server", API_SERVER)
    with subprocess.Popen(
        [*command, "--output", folder / "results"],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.mark.timeout(300)
def test_every_run_is_finished_with_one_issue_and_nothing_is_left(tmp_path: Path) -> None:
    with _demo(tmp_path) as process:
        told, _ = process.communicate()
    assert process.returncode == 0, told
    summary = json.loads((tmp_path / "results" / "summary.json").read_text())
    assert summary["ok"] is True
    assert summary["control"] == {"issues_filed": 2}
    runs = {run["name"]: run for run in summary["runs"]}
    # Which cause the pod has that nobody saw go is up to how far its process came.
    away = runs["operator-away"]["causes"]
    assert away in (["sigterm"], ["vanished"])
    assert {name: (run["attempts"], run["causes"]) for name, run in runs.items()} == {
        "killed-after-write": (2, ["sigkill"]),
        "out-of-memory": (2, ["oom"]),
        "drained": (2, ["drain"]),
        "operator-away": (2, away),
        "half-done": (2, ["sigkill"]),
        "in-doubt": (2, ["sigkill"]),
        "undisturbed": (1, []),
    }
    assert {(run["phase"], run["issues_filed"]) for run in runs.values()} == {("Succeeded", 1)}
    assert runs["killed-after-write"]["duplicates_suppressed"] == 1
    assert runs["half-done"]["duplicates_suppressed"] == 1
    assert {name: run["decisions"] for name, run in runs.items() if run["decisions"]} == {
        "in-doubt": ["RunAgain"]
    }
    assert "asks about a call of file_issue in attempt 1" in told
    assert runs["undisturbed"]["recovery_seconds"] == []
    (seconds,) = runs["drained"]["recovery_seconds"]
    assert 0 < seconds < 60
    for name, run in runs.items():
        assert f"{name:20}is Succeeded, issue {run['issue']}\n" in told
    assert "is already finished" in told
    assert 'triage_losses_total{agent="archived",cause="oom",namespace="docs"} 1.0' in told
    assert "Each report has exactly one issue." in told
    assert list((tmp_path / "temporary").iterdir()) == []
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("moment", ["starts: ", "attempt 1 is on", "SIGKILL to the operator"])
def test_an_interrupt_at_any_moment_leaves_nothing(tmp_path: Path, moment: str) -> None:
    with _demo(tmp_path) as process:
        assert process.stdout is not None
        assert any(moment in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        told = process.stdout.read()
        assert process.wait() == 130, told
    assert "Traceback" not in told
    assert not (tmp_path / "results" / "summary.json").exists()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert processes_of(tmp_path) == []
