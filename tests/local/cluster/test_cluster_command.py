"""``triage-local up``: what it tells, and that nothing of it is left, however it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.leftovers import processes_of
from support.servers import API_SERVER

_LAST_LINE = "Ctrl-C ends and removes all of it."


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def up(tmp_path: Path, scratch: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, started with its temporary files in ``scratch``."""
    command = (Path(sys.executable).with_name("triage-local"), "up", "--api-server", API_SERVER)
    with subprocess.Popen(
        [*command, "--kubeconfig", tmp_path / "kubeconfig"],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
        process.kill()


def _told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(_LAST_LINE):
            return "".join(lines)
    raise AssertionError("".join(lines))


def test_up_tells_how_to_reach_the_cluster_and_leaves_nothing(
    up: subprocess.Popen[str], scratch: Path, tmp_path: Path
) -> None:
    told = _told(up)
    kubeconfig = tmp_path / "kubeconfig"
    assert f"export KUBECONFIG={kubeconfig}" in told
    assert yaml.safe_load(kubeconfig.read_text())["contexts"][0]["context"]["namespace"] == "docs"
    assert re.search(r"Metrics of the operator +http://127\.0\.0\.1:\d+/metrics", told)
    assert "postgresql://" not in told
    up.send_signal(signal.SIGTERM)
    assert up.wait(20) == 130
    assert not kubeconfig.exists()
    assert list(scratch.iterdir()) == []
    assert processes_of(scratch) == []


def test_nothing_is_left_by_a_cluster_that_is_killed(up: subprocess.Popen[str], scratch: Path) -> None:
    _told(up)
    assert processes_of(scratch)
    up.kill()
    up.wait()
    until = time.monotonic() + 10
    while (list(scratch.iterdir()) or processes_of(scratch)) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(scratch.iterdir()) == []
    assert processes_of(scratch) == []


def test_an_interrupt_while_it_starts_leaves_nothing(up: subprocess.Popen[str], scratch: Path) -> None:
    until = time.monotonic() + 10
    while not list(scratch.glob("triage-local-*/pgdata")):
        assert time.monotonic() < until
        time.sleep(0.01)
    up.send_signal(signal.SIGINT)
    assert up.wait(20) == 130
    assert list(scratch.iterdir()) == []
    assert processes_of(scratch) == []


def test_a_kubeconfig_in_no_folder_is_refused(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "kubeconfig"
    refused = subprocess.run(
        [Path(sys.executable).with_name("triage-local"), "up", "--kubeconfig", nowhere],
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 1
    assert refused.stderr == f"Error: {nowhere} cannot be written: see whether its folder is there\n"


def test_an_output_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused = subprocess.run(
        [Path(sys.executable).with_name("triage-local"), "demo", "--output", tmp_path / "file" / "results"],
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 1
    assert refused.stderr == f"Error: {tmp_path}/file/results cannot be made: Not a directory\n"


def test_a_kubeconfig_that_exists_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "kubeconfig"
    mine.write_text("mine")
    refused = subprocess.run(
        [Path(sys.executable).with_name("triage-local"), "up", "--kubeconfig", mine],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stderr) == (1, f"Error: {mine} exists: name a file that does not\n")
    assert mine.read_text() == "mine"


def test_a_real_model_needs_a_key() -> None:
    refused = subprocess.run(
        [Path(sys.executable).with_name("triage-local"), "up", "--model", "gemini-3.8-flash"],
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "model gemini-3.8-flash needs a key: set GOOGLE_API_KEY" in refused.stderr


def test_a_real_api_server_that_is_not_installed_is_named(tmp_path: Path) -> None:
    refused = subprocess.run(
        [Path(sys.executable).with_name("triage-local"), "up", "--api-server", "real"],
        env={"PATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "Error: etcd is neither installed beside" in refused.stderr
    assert list(tmp_path.iterdir()) == []
