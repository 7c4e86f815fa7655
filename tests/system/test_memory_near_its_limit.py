"""Memory that comes near its limit: raised while the run goes on, or left for a bigger pod before it runs out."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.own_agents import own_agent
from support.sight import Json
from support.site import Site
from support.system import System

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _create_growing(site: Site, folder: Path) -> None:
    """Have an agent that grows beyond its limit of 256 MiB, and may have 512 MiB."""
    await site.create_agent(
        "growing",
        **own_agent("growing", FOLDER=str(folder)),
        resources={"limits": {"memory": "256Mi"}},
        resume={"memory": {"factor": 2, "limit": "512Mi"}},
    )


def _given(run: Json) -> bool | None:
    attempts: list[dict[str, Any]] = (run.get("status") or {}).get("attempts") or []
    return True if [one["memoryLimit"] for one in attempts] == ["512Mi"] else None


@contextlib.asynccontextmanager
async def _too_small(site: Site, node: str, other: str) -> AsyncIterator[None]:
    """Let the next pod come to a node that has room for it, and never for more; later ones may go to the other."""
    kubelet = site.cluster.kubelet
    await kubelet.set_memory(node, "400Mi")
    await kubelet.cordon(other)
    try:
        yield
    finally:
        await kubelet.cordon(other, unschedulable=False)
        await kubelet.set_memory(node, "4Gi")


async def test_memory_near_its_limit_is_raised_and_the_run_goes_on(
    system: System, site: Site, tmp_path: Path
) -> None:
    await _create_growing(site, tmp_path)
    await site.create_run("growing", agentRef={"name": "growing"})
    (message,) = await site.told("growing", "RaisingMemory")
    assert "its limit is to be raised from 256Mi to 512Mi" in message
    await site.until("growing", _given, "has 512Mi")
    (tmp_path / "go").touch()
    status = await site.ended("growing")
    assert status["phase"] == "Succeeded", status
    (attempt,) = status["attempts"]
    assert (attempt["memoryLimit"], attempt.get("cause")) == ("512Mi", None)
    assert (status["resumes"], status["noProgress"]) == (0, 0)
    (container,) = (await site.pod("growing"))["status"]["containerStatuses"]
    assert container["restartCount"] == 0
    assert await system.counted("triage_memory_raises_total", namespace=site.namespace) == 1
    assert await system.counted("triage_losses_total", namespace=site.namespace) == 0


async def test_a_node_without_room_is_left_for_a_bigger_pod_before_memory_runs_out(
    system: System, site: Site, tmp_path: Path
) -> None:
    await _create_growing(site, tmp_path)
    async with _too_small(site, "node-1", "node-2"):
        await site.create_run("growing", agentRef={"name": "growing"})
        assert (await site.pod("growing"))["spec"]["nodeName"] == "node-1"
        await site.cluster.kubelet.cordon("node-2", unschedulable=False)
        _, message = await site.told("growing", "RaisingMemory", "HandingOff")
        await site.asked_to_hand_off("growing")
        assert "Infeasible: Node didn't have enough capacity: memory" in message
        (tmp_path / "go").touch()
        status = await site.ended("growing")
    assert status["phase"] == "Succeeded", status
    short, following = status["attempts"]
    assert (short["outcome"], short["cause"]) == ("handed_off", "short_of_memory")
    assert [one["memoryLimit"] for one in (short, following)] == ["256Mi", "512Mi"]
    assert [one["node"] for one in (short, following)] == ["node-1", "node-2"]
    assert status["noProgress"] == 0
    # The tool that was at work came to its end: nothing was done again.
    assert status["toolCalls"] == {"begun": 2, "done": 2, "suppressed": 0}
    assert await system.counted("triage_losses_total", namespace=site.namespace, cause="oom") == 0
    raises = partial(system.counted, "triage_memory_raises_total", namespace=site.namespace)
    assert (await raises(how="in_place"), await raises(how="next_attempt")) == (0, 1)
