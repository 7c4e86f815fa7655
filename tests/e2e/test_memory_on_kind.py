"""Memory near its limit: raised by a real kubelet while the run goes on, or left for a bigger pod."""

from typing import Any

import pytest

from support.kind.cluster import AGENT_IMAGE, Kind
from support.kind.site import KindSite
from support.sight import Json
from triage_contract.quantities import format_memory, parse_memory

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

_FOLDER = "/tmp"
_LEFT = 400 * 2**20
"""Bytes that a node has left: enough for an attempt, and not for more of it."""


async def _create_growing(site: KindSite) -> None:
    """Have an agent that grows beyond its limit of 256 MiB, and may have 512 MiB."""
    await site.create_own_agent(
        "growing",
        "growing",
        env={"FOLDER": _FOLDER},
        resources={"limits": {"memory": "256Mi"}},
        resume={"memory": {"factor": 2, "limit": "512Mi"}},
    )


async def _grow_on(site: KindSite) -> None:
    pod = (await site.pod("growing"))["metadata"]["name"]
    await site.kind.programs.kubectl(
        *("exec", "--namespace", site.namespace, pod, "--container", "agent"), "--", "touch", f"{_FOLDER}/go"
    )


async def _fill(kind: Kind, site: KindSite, node: str) -> None:
    """Have a pod that leaves a node ``_LEFT`` to give."""
    allocatable = (await kind.api.request("GET", f"/api/v1/nodes/{node}"))["status"]["allocatable"]
    request = {"memory": format_memory(parse_memory(allocatable["memory"]) - _LEFT)}
    container = {
        "name": "filler",
        "image": AGENT_IMAGE,
        "command": ["sleep", "600"],
        "resources": {"requests": request},
    }
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    await site.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "filler"}, "spec": spec})
    await site.pods.until(_runs, "the filler runs")


def _runs(pods: Any) -> bool | None:
    return True if "filler" in pods and pods["filler"]["status"].get("phase") == "Running" else None


def _has_more(run: Json) -> bool | None:
    attempts: list[Json] = (run.get("status") or {}).get("attempts") or []
    return True if [one["memoryLimit"] for one in attempts] == ["512Mi"] else None


async def test_memory_near_its_limit_is_raised_and_the_run_goes_on(site: KindSite) -> None:
    await _create_growing(site)
    await site.create_run("growing", agentRef={"name": "growing"})
    await site.told("growing", "RaisingMemory")
    await site.until("growing", _has_more, "has 512Mi")
    await _grow_on(site)
    status = await site.ended("growing")
    assert status["phase"] == "Succeeded", status
    assert [one.get("cause") for one in status["attempts"]] == [None]
    (container,) = (await site.pod("growing"))["status"]["containerStatuses"]
    assert container["restartCount"] == 0


async def test_a_full_node_is_left_for_a_bigger_pod_before_memory_runs_out(
    kind: Kind, site: KindSite
) -> None:
    await _fill(kind, site, kind.victim)
    await _create_growing(site)
    pinned = {"kubernetes.io/hostname": kind.victim}
    await site.change("TriageAgent", "growing", podTemplate={"spec": {"nodeSelector": pinned}})
    await site.create_run("growing", agentRef={"name": "growing"})
    await site.pod("growing")
    await site.change("TriageAgent", "growing", podTemplate={"spec": {"nodeSelector": None}})
    _, message = await site.told("growing", "RaisingMemory", "HandingOff")
    assert "Deferred: Node didn't have enough resource: memory" in message
    await site.asked_to_hand_off("growing")
    await _grow_on(site)
    status = await site.ended("growing")
    assert status["phase"] == "Succeeded", status
    assert [one.get("cause") for one in status["attempts"]] == ["short_of_memory", None]
    assert [one["memoryLimit"] for one in status["attempts"]] == ["256Mi", "512Mi"]
    assert [one["node"] for one in status["attempts"]] == [kind.victim, kind.steady]
    assert status["toolCalls"] == {"begun": 2, "done": 2, "suppressed": 0}
