"""The guard process: what an owner leaves is ended and removed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from triage_local.guard import Guard

# Says "ready", then ends by SIGTERM only if it is told to.
_STUBBORN = (
    "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
)
_OBEDIENT = "import sys, time; print('ready', flush=True); time.sleep(60)"


def _start(program: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
    return process


def test_groups_are_ended_by_their_signal_and_the_stubborn_by_sigkill(tmp_path: Path) -> None:
    obedient, stubborn, forgotten = _start(_OBEDIENT), _start(_STUBBORN), _start(_OBEDIENT)
    folder = tmp_path / "left over"
    (folder / "deep").mkdir(parents=True)
    with Guard() as guard:
        guard.watch_group(obedient.pid, ending=signal.SIGTERM)
        guard.watch_group(stubborn.pid, ending=signal.SIGTERM)
        guard.watch_group(forgotten.pid)
        guard.forget_group(forgotten.pid)
        guard.watch_folder(folder)
    assert obedient.wait() == -signal.SIGTERM
    assert stubborn.wait() == -signal.SIGKILL
    assert not folder.exists()
    assert forgotten.poll() is None
    os.killpg(forgotten.pid, signal.SIGKILL)
    forgotten.wait()
