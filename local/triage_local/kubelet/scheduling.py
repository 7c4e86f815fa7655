"""A tiny scheduler: a pending pod goes to the node with the most free memory that takes it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from triage_contract.quantities import parse_memory
from triage_local.kubelet.cluster import STRATEGIC, Cluster, Json
from triage_local.kubelet.exceptions import ClusterError

_logger = logging.getLogger(__name__)

SCHEDULER: Final = "default-scheduler"
_RETRY_SECONDS = 0.2
_OVER = ("Succeeded", "Failed")


class Unschedulable(str):
    """Why no node takes a pod, in the words of the real scheduler."""

    __slots__ = ()


def choose_node(pod: Json, nodes: Sequence[Json], pods: Iterable[Json]) -> str | Unschedulable:
    """Choose the node for a pod.

    Args:
        pod: Without a node.
        nodes: All that there are.
        pods: All that there are; those that have a node take from its memory until they are over.

    Returns:
        The name of a node, or why there is none.
    """
    taken: Counter[str] = Counter()
    for other in pods:
        if (node := other["spec"].get("nodeName")) and other.get("status", {}).get("phase") not in _OVER:
            taken[node] += requested_bytes(other)
    wanted = requested_bytes(pod)
    fitting: list[tuple[int, str]] = []
    against: Counter[str] = Counter()
    for node in nodes:
        name = node["metadata"]["name"]
        free = parse_memory(node.get("status", {}).get("allocatable", {}).get("memory", "0")) - taken[name]
        if objection := _objection(pod, node, wanted > free):
            against[objection] += 1
        else:
            fitting.append((-free, name))
    if fitting:
        return min(fitting)[1]
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in against.items()))
    return Unschedulable(
        f"0/{len(nodes)} nodes are available: {reasons or 'no nodes available to schedule pods'}."
    )


def requested_bytes(pod: Json) -> int:
    """Memory that a pod asks a node for: of its containers together, or of its largest init container."""

    def requested(container: Json) -> int:
        resources = container.get("resources") or {}
        memory = (resources.get("requests") or resources.get("limits") or {}).get("memory", "0")
        return parse_memory(memory)

    spec = pod["spec"]
    largest = max(map(requested, spec.get("initContainers") or []), default=0)
    return max(largest, sum(map(requested, spec["containers"])))


def _objection(pod: Json, node: Json, too_small: bool) -> str | None:
    spec = node.get("spec") or {}
    tolerations = pod["spec"].get("tolerations") or []
    selector = pod["spec"].get("nodeSelector") or {}
    if spec.get("unschedulable") and not any(
        _tolerates(toleration, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        for toleration in tolerations
    ):
        return "node(s) were unschedulable"
    for taint in spec.get("taints") or []:
        hard = taint["effect"] in ("NoSchedule", "NoExecute")
        if hard and not any(_tolerates(toleration, taint) for toleration in tolerations):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if selector.items() - (node["metadata"].get("labels") or {}).items():
        return "node(s) didn't match Pod's node affinity/selector"
    return "Insufficient memory" if too_small else None


def _tolerates(toleration: Json, taint: Json) -> bool:
    keys = ("effect", "key") if toleration.get("operator") == "Exists" else ("effect", "key", "value")
    asked = {**taint, "value": "", **toleration}  # without an effect or a key it is for all of them
    return all(asked[key] == taint.get(key, "") for key in keys)


class Scheduler:
    """Watches pods and nodes, and binds."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods: dict[str, Json] = {}
        self._nodes: dict[str, Json] = {}
        self._stirred = asyncio.Event()

    async def run(self) -> None:
        """Schedule; never returns."""
        async with asyncio.TaskGroup() as group:
            for path, known in (("/api/v1/pods", self._pods), ("/api/v1/nodes", self._nodes)):
                group.create_task(self._follow(path, known))
            group.create_task(self._schedule())

    async def _follow(self, path: str, known: dict[str, Json]) -> None:
        def synced(objects: list[Json]) -> None:
            known.clear()
            known.update({each["metadata"]["uid"]: each for each in objects})
            self._stirred.set()

        def changed(change: str, obj: Json) -> None:
            uid = obj["metadata"]["uid"]
            if change == "DELETED":
                known.pop(uid, None)
            else:
                known[uid] = obj
            self._stirred.set()

        await self._cluster.follow(path, synced=synced, changed=changed)

    async def _schedule(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            waiting = [pod for pod in self._pods.values() if _waits(pod)]
            for pod in sorted(waiting, key=lambda each: str(each["metadata"]["creationTimestamp"])):
                try:
                    await self._place(pod)
                except ClusterError as error:
                    if error.status in (404, 409):  # gone, or bound by somebody else: the watch tells
                        continue
                    _logger.warning("Could not schedule a pod", extra={"error": str(error)})
                    await asyncio.sleep(_RETRY_SECONDS)
                    self._stirred.set()

    async def _place(self, pod: Json) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        chosen = choose_node(pod, list(self._nodes.values()), self._pods.values())
        if isinstance(chosen, Unschedulable):
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": str(chosen),
            }
            before = (pod.get("status") or {}).get("conditions") or []
            if not any(condition.items() <= each.items() for each in before):
                body = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
                await self._cluster.request("PATCH", f"{path}/status", body, content_type=STRATEGIC)
            return
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": chosen},
        }
        await self._cluster.request("POST", f"{path}/binding", binding)
        # Counted at once: the next pod must not wait for the watch to tell of this one.
        self._pods[metadata["uid"]] = {**pod, "spec": {**pod["spec"], "nodeName": chosen}}


def _waits(pod: Json) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and spec.get("schedulerName", SCHEDULER) == SCHEDULER
        and "deletionTimestamp" not in pod["metadata"]
        and pod.get("status", {}).get("phase") not in _OVER
    )
