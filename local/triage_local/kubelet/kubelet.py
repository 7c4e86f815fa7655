"""The nodes of a local cluster: kubelets, scheduler, and what can be done to them."""

import asyncio
import contextlib
import signal
import ssl
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from kubernetes.aio import client

from triage_local.guard import Guard
from triage_local.keys import make_certificate, make_key
from triage_local.kubelet.cluster import MERGE, STRATEGIC, Cluster, Json
from triage_local.kubelet.containers import Container
from triage_local.kubelet.exceptions import ClusterError, NoSuchContainerError
from triage_local.kubelet.images import Image
from triage_local.kubelet.logs import LogServer
from triage_local.kubelet.machine import Machine, Timing
from triage_local.kubelet.memory import MemoryLimits
from triage_local.kubelet.nodes import UNREACHABLE, Node
from triage_local.kubelet.pods import PodRunner
from triage_local.kubelet.scheduling import Scheduler
from triage_local.kubelet.statuses import stamp

_RETRY_SECONDS = 0.1


class ProcessKubelet:
    """Nodes whose pods are processes of this machine, and the scheduler that gives them pods."""

    def __init__(
        self,
        configuration: client.Configuration,
        *,
        folder: Path,
        images: Mapping[str, Image],
        nodes: Sequence[str] = ("node-1", "node-2"),
        node_memory: str = "4Gi",
        timing: Timing | None = None,
    ) -> None:
        """Prepare, and start nothing.

        Args:
            configuration: Of the API server, e.g. ``client.Configuration(host=url)``.
            folder: Of ours alone; removed at the end, also where we are killed.
            images: What the names of images stand for; more can come into ``images`` later.
            nodes: Names.
            node_memory: Allocatable memory of each node.
            timing: How long things take.
        """
        self.images = dict(images)
        self._folder = folder
        self._node_names = nodes
        self._node_memory = node_memory
        self._timing = timing or Timing()
        # A real API server asks kubelets over TLS, and does not ask whose certificate they show.
        self._secure = configuration.host.startswith("https:")
        self._nodes: dict[str, Node] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._cluster = Cluster(configuration, watch_seconds=self._timing.watch_seconds)
        self._resources = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Register the nodes and begin to run pods; returns when the nodes are ready."""
        async with contextlib.AsyncExitStack() as resources:
            self._folder.mkdir(parents=True, exist_ok=True)
            guard = resources.enter_context(Guard())
            guard.watch_folder(self._folder)
            resources.push_async_callback(self._cluster.close)
            logs = LogServer(self._find, await self._tls(guard) if self._secure else None)
            port = await logs.start()
            resources.push_async_callback(logs.close)
            memory = MemoryLimits(self._timing.memory_poll_seconds)
            machine = Machine(
                cluster=self._cluster,
                images=self.images,
                folder=self._folder,
                guard=guard,
                memory=memory,
                timing=self._timing,
            )
            resources.push_async_callback(self._end)
            self._run("memory limits", memory.run())
            self._run("scheduler", Scheduler(self._cluster).run())
            for name in self._node_names:
                self._nodes[name] = Node(name, self._node_memory, port, machine)
                self._run(name, self._nodes[name].run())
            for node in self._nodes.values():
                await node.online.wait()
            self._resources = resources.pop_all()

    async def close(self) -> None:
        """End every process and remove their files; the objects in the API server stay as they are."""
        await self._resources.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def container(self, namespace: str, pod: str, name: str | None = None) -> Container:
        """A container that has been started, by default the first of its pod: its process id, its log.

        Raises:
            NoSuchContainerError: No such pod has one here.
        """
        return self._runner(namespace, pod).container(name)

    def kill(self, namespace: str, pod: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to every process of a pod.

        Raises:
            NoSuchContainerError: No such pod is here.
        """
        self._runner(namespace, pod).signal(number)

    async def cordon(self, node: str, *, unschedulable: bool = True) -> None:
        """Keep new pods off a node, or let them come again."""
        body = {"spec": {"unschedulable": unschedulable or None}}
        await self._cluster.request("PATCH", self._nodes[node].path, body, content_type=MERGE)

    async def drain(self, node: str) -> None:
        """Cordon a node, evict its pods through the eviction API, and wait until they are gone."""
        await self.cordon(node)
        listed = await self._cluster.request("GET", "/api/v1/pods")
        pods = [pod["metadata"] for pod in listed["items"] if pod["spec"].get("nodeName") == node]
        for pod in pods:
            await self._evict(pod)
        await self._nodes[node].wait_for_end({pod["uid"] for pod in pods})

    async def set_memory(self, node: str, memory: str) -> None:
        """Let a node have another amount of memory; its pods keep what they have."""
        await self._nodes[node].set_memory(memory)

    async def lose(self, node: str, number: signal.Signals | None = None) -> None:
        """Silence a node's kubelet: nothing of the API server reaches its pods, nothing of them is reported.

        Args:
            node: Its name.
            number: What its processes get: none, where only the network is gone; SIGSTOP for a machine that
                freezes; SIGKILL for one that is switched off.
        """
        task = self._tasks.pop(node)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if number is not None:
            for runner in self._nodes[node].runners.values():
                runner.signal(number)

    async def recover(self, node: str) -> None:
        """Let a lost node's kubelet speak again, and frozen processes go on."""
        for runner in self._nodes[node].runners.values():
            runner.signal(signal.SIGCONT)
        self._run(node, self._nodes[node].run())
        await self._nodes[node].online.wait()

    async def declare_unreachable(self, node: str) -> None:
        """Do what the control plane does 40 s after a node's last heartbeat: Ready is unknown, two taints."""
        path, now = self._nodes[node].path, stamp(datetime.now(UTC))
        ready = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        }
        taints = [
            {"key": UNREACHABLE, "effect": effect, "timeAdded": now} for effect in ("NoSchedule", "NoExecute")
        ]
        status = {"status": {"conditions": [ready]}}
        await self._cluster.request("PATCH", f"{path}/status", status, content_type=STRATEGIC)
        await self._cluster.request("PATCH", path, {"spec": {"taints": taints}}, content_type=MERGE)

    def _run(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.create_task(work)

    async def _end(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for node in self._nodes.values():
            await node.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _runner(self, namespace: str, pod: str) -> PodRunner:
        runners = [runner for node in self._nodes.values() for runner in node.runners.values()]
        named = [runner for runner in runners if runner.name == (namespace, pod)]
        if not named:
            raise NoSuchContainerError(f'pod "{pod}" in namespace "{namespace}" is not here')
        # The process of one that was deleted by force may still be there beside its successor.
        return min(named, key=lambda runner: runner.removed)

    async def _tls(self, guard: Guard) -> ssl.SSLContext:
        key, certificate = self._folder / "kubelet.key", self._folder / "kubelet.crt"
        await make_key(key, guard)
        await make_certificate(certificate, key, guard)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        return context

    def _find(self, namespace: str, pod: str, container: str) -> Container:
        return self._runner(namespace, pod).container(container)

    async def _evict(self, pod: Json) -> None:
        namespace, name = pod["namespace"], pod["name"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": pod["uid"]}},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        while True:
            try:
                await self._cluster.request("POST", path, body)
            except ClusterError as error:
                if error.status in (404, 409):  # gone, or another pod of the name
                    return
                if error.status != 429:  # what a disruption budget answers for now
                    raise
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return
