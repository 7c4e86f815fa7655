"""``python -m observe``: an interrupt leaves nothing of cluster and Prometheus, and help says what it does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from observe.programs import find_prometheus

from support.leftovers import processes_of
from triage_local.exceptions import ProgramError

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "observe")


async def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    try:
        await find_prometheus()
    except ProgramError as error:
        pytest.skip(str(error))
    scratch = tmp_path / "temporary"
    scratch.mkdir()
    with subprocess.Popen(
        [*COMMAND, "--output", tmp_path / "results"],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("attempt 1 is on" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        told = process.stdout.read()
        assert process.wait() == 130, told
    assert "Traceback" not in told
    assert list(scratch.iterdir()) == []
    assert processes_of(tmp_path) == []


def test_help_comes_without_a_cluster() -> None:
    done = subprocess.run([*COMMAND, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--picture" in done.stdout
