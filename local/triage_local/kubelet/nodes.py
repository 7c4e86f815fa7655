"""One node: its object, its heartbeat, and the pods that are bound to it."""

import asyncio
import logging
import os
import platform
from datetime import UTC, datetime
from functools import partial
from typing import Final

from triage_local.kubelet.cluster import MERGE, STRATEGIC, Json
from triage_local.kubelet.exceptions import ClusterError
from triage_local.kubelet.machine import HOST_IP, Machine
from triage_local.kubelet.pods import PodRunner
from triage_local.kubelet.statuses import stamp

_logger = logging.getLogger(__name__)

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_RETRY_SECONDS = 0.2
# Taints of the control plane: the first two say that a node's kubelet is silent, and go when it speaks again.
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"


class Node:
    """A node with a kubelet that can fall silent while its processes go on."""

    def __init__(self, name: str, memory: str, port: int, machine: Machine) -> None:
        """Prepare, and register nothing yet.

        Args:
            name: Of the node.
            memory: What it has, as a quantity: for the scheduler, and for pods that ask for more than they came with.
            port: Where the kubelet serves logs.
            machine: What it shares with the other nodes.
        """
        self.name = name
        self.runners: dict[str, PodRunner] = {}
        """Pods that have processes or are still objects, by UID."""
        self._capacity = {
            "cpu": str(os.cpu_count() or 1),
            "memory": memory,
            "ephemeral-storage": "100Gi",
            "pods": "110",
        }
        self.online = asyncio.Event()
        """Set while its kubelet is registered and speaks."""
        self._port = port
        self._machine = machine
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def path(self) -> str:
        """Path of its object."""
        return f"/api/v1/nodes/{self.name}"

    async def run(self) -> None:
        """Be the kubelet of this node until cancelled: then it is silent, and its processes go on."""
        try:
            await self._register()
            self.online.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._beat())
                group.create_task(
                    self._machine.cluster.follow(
                        "/api/v1/pods",
                        synced=self._sync,
                        changed=self._change,
                        field_selector=f"spec.nodeName={self.name}",
                    )
                )
        finally:
            self.online.clear()

    async def close(self) -> None:
        """End all processes of all pods; raise what went wrong with one of them, if anything did."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    async def set_memory(self, memory: str) -> None:
        """Have another amount of memory from now on; its pods keep what they have."""
        self._capacity["memory"] = memory
        await self._machine.cluster.request(
            "PATCH", f"{self.path}/status", self._status(), content_type=STRATEGIC
        )

    async def wait_for_end(self, uids: set[str]) -> None:
        """Wait until these pods are neither processes nor objects."""
        if tasks := [task for uid, task in self._tasks.items() if uid in uids]:
            await asyncio.wait(tasks)

    def _sync(self, pods: list[Json]) -> None:
        for pod in pods:
            self._observe(pod)
        there = {pod["metadata"]["uid"] for pod in pods}
        for uid in self.runners.keys() - there:
            self.runners[uid].remove()

    def _change(self, change: str, pod: Json) -> None:
        if change != "DELETED":
            self._observe(pod)
        elif (runner := self.runners.get(pod["metadata"]["uid"])) is not None:
            runner.remove()

    def _observe(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self.runners:
            self.runners[uid] = PodRunner(
                pod, self._machine, self._capacity, partial(self._requested_by_others, uid), self.online
            )
            self._tasks[uid] = asyncio.create_task(self._run_pod(self.runners[uid]))
        self.runners[uid].observe(pod)

    async def _run_pod(self, runner: PodRunner) -> None:
        await runner.run()
        del self.runners[runner.uid], self._tasks[runner.uid]
        # A real kubelet tries them again then, too.
        for other in self.runners.values():
            other.resize()

    def _requested_by_others(self, uid: str) -> int:
        return sum(runner.requested_bytes for other, runner in self.runners.items() if other != uid)

    async def _register(self) -> None:
        """Make the node's object and Lease, or take over what is there, and say that the node is ready."""
        cluster = self._machine.cluster
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": platform.system().lower(),
            "kubernetes.io/arch": _architecture(),
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels}}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": "kube-node-lease"},
            "spec": self._lease_spec(),
        }
        while True:
            try:
                await cluster.create_missing("/api/v1/nodes", node)
                await cluster.create_missing("/api/v1/namespaces", namespace)
                await cluster.create_missing(LEASES, lease)
                await cluster.request("PATCH", f"{self.path}/status", self._status(), content_type=STRATEGIC)
                await self.remove_taints(NOT_READY, UNREACHABLE)
            except ClusterError as error:
                _logger.warning("Could not register a node", extra={"node": self.name, "error": str(error)})
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def remove_taints(self, *keys: str) -> None:
        """Remove taints by their keys."""
        found = await self._machine.cluster.request("GET", self.path)
        taints = found.get("spec", {}).get("taints") or []
        left = [taint for taint in taints if taint["key"] not in keys]
        if left != taints:
            body = {
                "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
                "spec": {"taints": left},
            }
            await self._machine.cluster.request("PATCH", self.path, body, content_type=MERGE)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._machine.timing.heartbeat_seconds)
            try:
                await self._machine.cluster.request(
                    "PATCH", f"{LEASES}/{self.name}", {"spec": self._lease_spec()}, content_type=MERGE
                )
            except ClusterError as error:
                _logger.warning(
                    "Could not renew a node's Lease", extra={"node": self.name, "error": str(error)}
                )

    def _lease_spec(self) -> Json:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"holderIdentity": self.name, "leaseDurationSeconds": 40, "renewTime": now}

    def _status(self) -> Json:
        now = stamp(datetime.now(UTC))
        healthy = {
            "MemoryPressure": (
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
        }
        return {
            "status": {
                "capacity": self._capacity,
                "allocatable": self._capacity,
                "conditions": [
                    {
                        "type": kind,
                        "status": status,
                        "reason": reason,
                        "message": message,
                        "lastHeartbeatTime": now,
                        "lastTransitionTime": now,
                    }
                    for kind, (status, reason, message) in healthy.items()
                ],
                "addresses": [
                    {"type": "InternalIP", "address": HOST_IP},
                    {"type": "Hostname", "address": self.name},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
                "nodeInfo": {
                    "machineID": self.name,
                    "systemUUID": self.name,
                    "bootID": self.name,
                    "kernelVersion": platform.release(),
                    "osImage": platform.platform(),
                    "containerRuntimeVersion": "process://1",
                    "kubeletVersion": "v1.34.0-process",
                    "kubeProxyVersion": "",
                    "operatingSystem": platform.system().lower(),
                    "architecture": _architecture(),
                },
            }
        }


def _architecture() -> str:
    """The processor's name in Go's spelling."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
