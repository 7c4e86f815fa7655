"""How processes end, and what the status of their pod says of it."""

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from support.nodes import Json, Nodes, build_pod, python

SLEEP = python("print('ready'); import time; time.sleep(60)")
# A process that a SIGTERM does not end.
DEAF = python("import signal, time; signal.signal(15, signal.SIG_IGN); print('ready'); time.sleep(60)")


def _ended(pod: Json) -> Json:
    state: Json = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return state


@pytest.mark.parametrize(
    ("source", "phase", "code", "reason"),
    [("pass", "Succeeded", 0, "Completed"), ("raise SystemExit(86)", "Failed", 86, "Error")],
)
async def test_a_process_ends_by_itself(
    nodes: Nodes, source: str, phase: str, code: int, reason: str
) -> None:
    await nodes.create(build_pod("run", *python(source)))
    pod = await nodes.until_phase("run", "Succeeded", "Failed")
    assert pod["status"]["phase"] == phase
    ended = _ended(pod)
    assert (ended["exitCode"], ended["reason"]) == (code, reason)
    assert ended["startedAt"] <= ended["finishedAt"]
    conditions = {each["type"]: each for each in pod["status"]["conditions"]}
    expected = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("False", expected)


async def test_a_running_pod_is_ready(nodes: Nodes) -> None:
    node = await nodes.start("run", *SLEEP)
    status = (await nodes.read("run"))["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "ContainersReady": "True",
        "Ready": "True",
    }
    container = status["containerStatuses"][0]
    assert container["ready"]
    assert container["started"]
    assert "startedAt" in container["state"]["running"]
    assert node in ("node-1", "node-2")
    assert status["podIP"].startswith("127.")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (signal.SIGTERM, 143)])
async def test_a_signal_is_an_error_with_128_and_its_number(
    nodes: Nodes, number: signal.Signals, code: int
) -> None:
    await nodes.start("run", *SLEEP)
    nodes.kubelet.kill("default", "run", number)
    ended = _ended(await nodes.until_phase("run", "Failed"))
    assert (ended["exitCode"], ended["reason"]) == (code, "Error")


async def test_too_much_memory_is_oom_killed(nodes: Nodes) -> None:
    source = "print('ready'); held = bytearray(200_000_000); import time; time.sleep(60)"
    limited = {"resources": {"limits": {"memory": "100Mi"}}}
    await nodes.create(build_pod("run", *python(source), container=limited))
    ended = _ended(await nodes.until_phase("run", "Failed"))
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


async def test_memory_of_children_counts_and_they_die_with_it(nodes: Nodes) -> None:
    source = """
import os, sys, subprocess, time
child = "held = bytearray(200_000_000); import time; time.sleep(60)"
process = subprocess.Popen([sys.executable, "-I", "-S", "-c", child], start_new_session=True)
print("ready", process.pid)
time.sleep(60)
"""
    limited = {"resources": {"limits": {"memory": "100Mi"}}}
    await nodes.create(build_pod("run", *python(source), container=limited))
    pod = await nodes.until_phase("run", "Failed")
    assert _ended(pod)["reason"] == "OOMKilled"
    child = int(nodes.kubelet.container("default", "run").log.read_text().split()[1])
    async with asyncio.timeout(10):
        while _lives(child):
            await asyncio.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_deletion_is_sigterm_then_the_last_status_then_nothing(nodes: Nodes) -> None:
    source = """
import os, signal, time
def end(*_):
    open(os.environ["TRIAGE_TERMINATION_LOG"], "w").write("handed off")
    raise SystemExit(81)
signal.signal(signal.SIGTERM, end)
print("ready")
time.sleep(60)
"""
    await nodes.start("run", *python(source))
    await nodes.delete("run")
    ended = _ended(await nodes.until_phase("run", "Failed"))
    await nodes.until_gone("run")
    assert (ended["exitCode"], ended["message"]) == (81, "handed off")


async def test_the_deaf_are_killed_after_the_grace_period(nodes: Nodes) -> None:
    await nodes.start("run", *DEAF)
    await nodes.delete("run", grace_seconds=1)
    ended = _ended(await nodes.until_phase("run", "Failed"))
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    await nodes.until_gone("run")


async def test_a_forced_deletion_leaves_the_process_for_a_moment(nodes: Nodes, tmp_path: Path) -> None:
    # SIGTERM comes when the object is already gone; what this process does then proves that it still was there.
    source = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1]).touch())
print("ready")
while True: time.sleep(60)
"""
    await nodes.start("run", *python(source, str(tmp_path / "asked")))
    process = psutil.Process(nodes.kubelet.container("default", "run").pid)
    await nodes.delete("run", grace_seconds=0)
    await nodes.until_gone("run")
    await asyncio.to_thread(process.wait, 10)
    assert (tmp_path / "asked").exists()
