"""Pods that are resized while they run."""

import signal
from typing import Any, Final

from support.nodes import Json, Nodes, build_pod, python
from triage_local.kubelet.cluster import STRATEGIC

_PODS: Final = "/api/v1/namespaces/default/pods"
_GIB: Final = 2**30
_GROWING: Final = python("""
import signal, time
held = []
def grow(*_):
    held.append(bytearray(150_000_000))
    print("grown")
signal.signal(signal.SIGUSR1, grow)
print("ready")
time.sleep(60)
""")


def _sized(memory: str, request: str | None = None) -> Json:
    return {"resources": {"limits": {"memory": memory}, "requests": {"memory": request or memory}}}


async def _resize(nodes: Nodes, memory: str, request: str | None = None) -> None:
    body = {"spec": {"containers": [{"name": "main", **_sized(memory, request)}]}}
    await nodes.cluster.request("PATCH", f"{_PODS}/run/resize", body, content_type=STRATEGIC)


async def _until_told(nodes: Nodes, told: Json) -> Json:
    return await nodes.until("run", lambda pod: _told(pod) == told)


def _told(pod: Json) -> dict[str, Any]:
    """Give what a status says of a resize: its conditions, and what the container has."""
    conditions = {
        each["type"]: (
            each["observedGeneration"],
            *(each[key] for key in ("reason", "message") if key in each),
        )
        for each in pod["status"].get("conditions", ())
        if each["type"].startswith("PodResize")
    }
    amounts = [
        (each.get("allocatedResources", {}).get("memory"), each["resources"]["limits"]["memory"])
        for each in pod["status"].get("containerStatuses", ())
        if "running" in each["state"]
    ]
    return {"memory": amounts, **conditions}


async def test_a_container_gets_more_memory_while_it_runs(nodes: Nodes) -> None:
    await nodes.start("run", *_GROWING, container=_sized("100Mi", "50Mi"))
    container = nodes.kubelet.container("default", "run")
    before = await _until_told(nodes, {"memory": [("50Mi", "100Mi")]})
    await _resize(nodes, "400Mi", "200Mi")
    await _until_told(nodes, {"memory": [("200Mi", "100Mi")], "PodResizeInProgress": (2,)})
    after = await _until_told(nodes, {"memory": [("200Mi", "400Mi")]})
    nodes.kubelet.kill("default", "run", signal.SIGUSR1)
    await nodes.until_said("run", "grown")
    ids = {pod["status"]["containerStatuses"][0]["containerID"] for pod in (before, after)}
    assert ids == {container.id}
    assert container.alive


async def test_a_node_that_is_too_small_says_so_and_the_limit_stays(nodes: Nodes) -> None:
    await nodes.start("run", *_GROWING, container=_sized("100Mi"))
    await _resize(nodes, "5Gi")
    message = f"Node didn't have enough capacity: memory, requested: {5 * _GIB}, capacity: {4 * _GIB}"
    pending = {"PodResizePending": (2, "Infeasible", message)}
    await _until_told(nodes, {"memory": [("100Mi", "100Mi")], **pending})
    nodes.kubelet.kill("default", "run", signal.SIGUSR1)
    pod = await nodes.until_phase("run", "Failed")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


async def test_a_full_node_gives_when_it_has_room_again(nodes: Nodes) -> None:
    node = await nodes.start("run", *_GROWING, container=_sized("1Gi"))
    await nodes.create(build_pod("other", *_GROWING, container=_sized("2Gi"), nodeName=node))
    await nodes.until_phase("other", "Running")
    await _resize(nodes, "3Gi")
    amounts = f"requested: {3 * _GIB}, used: {2 * _GIB}, capacity: {4 * _GIB}"
    pending = {"PodResizePending": (2, "Deferred", f"Node didn't have enough resource: memory, {amounts}")}
    await _until_told(nodes, {"memory": [("1Gi", "1Gi")], **pending})
    await nodes.delete("other", grace_seconds=1)
    await _until_told(nodes, {"memory": [("3Gi", "3Gi")]})


async def test_a_node_can_have_another_amount_of_memory(nodes: Nodes) -> None:
    node = await nodes.start("run", *_GROWING, container=_sized("1Gi"))
    await nodes.kubelet.set_memory(node, "2Gi")
    await _resize(nodes, "3Gi")
    message = f"Node didn't have enough capacity: memory, requested: {3 * _GIB}, capacity: {2 * _GIB}"
    await _until_told(nodes, {"memory": [("1Gi", "1Gi")], "PodResizePending": (2, "Infeasible", message)})
    # What it does not ask for any more does not wait.
    await _resize(nodes, "1Gi")
    done = {"memory": [("1Gi", "1Gi")]}
    await nodes.until("run", lambda pod: pod["metadata"]["generation"] == 3 and _told(pod) == done)
