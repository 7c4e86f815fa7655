"""``triage-local api-server``: what it lends, and that nothing of it is left, however it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.leftovers import processes_of
from support.servers import REAL

pytestmark = pytest.mark.skipif(
    REAL is None, reason="needs etcd and kube-apiserver, with which hack/cluster/lone-apiserver runs tests"
)

COMMAND = (Path(sys.executable).with_name("triage-local"), "api-server")


def _is_empty(folder: Path) -> bool:
    return not list(folder.iterdir()) and not processes_of(folder)


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_it_ends_as_its_command_ends(tmp_path: Path, script: str, status: int) -> None:
    told = subprocess.run(
        [
            *COMMAND,
            "sh",
            "-c",
            f'test "$KUBECONFIG" = "$TRIAGE_TEST_KUBECONFIG" && cat $KUBECONFIG && {script}',
        ],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == status, told.stderr
    assert '"server": "https://127.0.0.1:' in told.stdout
    assert _is_empty(tmp_path)


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = subprocess.run(
        [*COMMAND, "no-such-command"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (
        1,
        "Error: no-such-command cannot be run: No such file or directory\n",
    )
    assert _is_empty(tmp_path)


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGKILL])
def test_it_stays_until_its_input_or_it_itself_ends(tmp_path: Path, number: signal.Signals | None) -> None:
    with subprocess.Popen(
        COMMAND,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert Path(process.stdout.readline().strip()).stat().st_mode & 0o077 == 0
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(30) == {None: 0, signal.SIGTERM: 130, signal.SIGKILL: -9}[number]
    until = time.monotonic() + 10
    while not _is_empty(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert _is_empty(tmp_path)
