"""The kubelet and an API server that gives trouble."""

import asyncio

import psutil
import pytest

from support.nodes import Nodes, build_pod, python
from triage_local.apiserver import Answer

SLEEP = python("print('ready'); import time; time.sleep(60)")


async def test_a_server_that_was_away_is_found_again(nodes: Nodes) -> None:
    await nodes.start("before", *SLEEP)
    await nodes.server.stop()
    nodes.kubelet.kill("default", "before")
    await nodes.server.start()
    await nodes.until_phase("before", "Failed")
    await nodes.start("after", *SLEEP)


@pytest.mark.parametrize("status", [409, 429, 500])
async def test_refusals_are_got_over(nodes: Nodes, status: int) -> None:
    for method, target in (("POST", "/binding"), ("PATCH", "/pods/.*/status"), ("GET", "/api/v1/pods")):
        nodes.server.faults.answer(Answer(method=method, target=target, left=2, status=status))
    await nodes.create(build_pod("run", *python("pass")))
    await nodes.until_phase("run", "Succeeded")


async def test_broken_watches_are_begun_again(nodes: Nodes) -> None:
    faults = nodes.server.faults
    for number, trouble in enumerate((faults.drop_watches, faults.truncate_watches, faults.freeze_watches)):
        trouble("/api/v1/pods")
        await nodes.create(build_pod(f"run-{number}", *python("pass")))
        await nodes.until_phase(f"run-{number}", "Succeeded")


async def test_a_deletion_that_no_watch_tells_is_noticed(nodes: Nodes) -> None:
    await nodes.start("run", *SLEEP)
    process = psutil.Process(nodes.kubelet.container("default", "run").pid)
    nodes.server.faults.lose_deleted("pods", 1)
    await nodes.delete("run", grace_seconds=0)
    await asyncio.to_thread(process.wait, 10)
