"""Pods on the process kubelet, for tests: an API server with two nodes, and what a test does to it.

On a real API server (see ``support.servers``) its namespace ``default`` and its nodes go before each test.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import pytest
from kubernetes.aio import client, config

from support.kube import end_of_tls
from support.servers import REAL, emulator
from triage_local.apiserver import ApiServer
from triage_local.kubelet import ProcessKubelet, Timing, python_image
from triage_local.kubelet.cluster import Cluster

Json: TypeAlias = dict[str, Any]

QUICK = Timing(
    termination_delay_seconds=0.05,
    retry_seconds=0.05,
    resize_seconds=0.05,
    forced_grace_seconds=1.0,
    watch_seconds=1,
)
PYTHON = "example/python:1"
_PODS = "/api/v1/namespaces/default/pods"


def build_pod(name: str, *command: str, container: Json | None = None, **spec: Any) -> Json:
    """A pod with one container ``main`` that runs a command of the Python image; both can be changed."""
    main = {"name": "main", "image": PYTHON, "command": list(command), **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [main], **spec},
    }


def python(source: str, *arguments: str) -> list[str]:
    """Command that runs Python source and starts fast."""
    return [sys.executable, "-I", "-S", "-u", "-c", source, *arguments]


class Nodes:
    """An API server with a process kubelet. Every state that a pod was ever in is remembered."""

    def __init__(
        self, configuration: client.Configuration, kubelet: ProcessKubelet, server: ApiServer | None = None
    ) -> None:
        self.configuration = configuration
        # One long watch, since between two of them a state could come and go unseen.
        self.cluster = Cluster(configuration, watch_seconds=600)
        self.kubelet = kubelet
        self._server = server
        self._history: dict[str, list[Json | None]] = {}
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._following = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._following is not None
        self._following.cancel()
        await self.cluster.close()

    @property
    def server(self) -> ApiServer:
        """The emulator; a test on a real API server is skipped."""
        return emulator(self._server)

    async def _follow(self) -> None:
        def note(change: str, pod: Json) -> None:
            states = self._history.setdefault(pod["metadata"]["name"], [])
            states.append(None if change == "DELETED" else pod)
            self._news.set()

        def note_all(pods: list[Json]) -> None:
            for pod in pods:
                note("ADDED", pod)
            for name in self._history.keys() - {pod["metadata"]["name"] for pod in pods}:
                self._history[name].append(None)
            self._news.set()

        await self.cluster.follow(_PODS, synced=note_all, changed=note)

    async def create(self, pod: Json) -> Json:
        """Create a pod."""
        return await self.cluster.request("POST", _PODS, pod)

    async def read(self, name: str) -> Json:
        """Read a pod."""
        return await self.cluster.request("GET", f"{_PODS}/{name}")

    async def delete(self, name: str, grace_seconds: int | None = None) -> None:
        """Delete a pod, with its own grace period by default."""
        body = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        await self.cluster.request("DELETE", f"{_PODS}/{name}", body)

    async def until(self, name: str, holds: Callable[[Json], object]) -> Json:
        """Wait for the first state of a pod for which something holds, and return it."""
        found = await self._until(name, lambda state: state is not None and holds(state))
        assert found is not None
        return found

    async def until_phase(self, name: str, *phases: str) -> Json:
        """Wait until a pod is in one of these phases, and return it."""
        return await self.until(name, lambda pod: pod["status"]["phase"] in phases)

    async def until_gone(self, name: str) -> None:
        """Wait until a pod is deleted."""
        await self._until(name, lambda state: state is None)

    async def _until(self, name: str, holds: Callable[[Json | None], object]) -> Json | None:
        place = 0
        async with asyncio.timeout(20):
            while True:
                states = self._history.get(name, [])
                for state in states[place:]:
                    if holds(state):
                        return state
                place = len(states)
                self._news.clear()
                await self._news.wait()

    async def until_said(self, name: str, words: str) -> str:
        """Wait until a pod's process has said something, and return all that it said."""
        await self.until(name, lambda pod: pod["status"]["phase"] != "Pending")
        async with asyncio.timeout(20):
            while words not in (said := self.kubelet.container("default", name).log.read_text()):
                await asyncio.sleep(0.01)
        return said

    async def start(self, name: str, *command: str, container: Json | None = None, **spec: Any) -> str:
        """Create a pod whose process says ``ready`` when it is; the name of its node."""
        await self.create(build_pod(name, *command, container=container, **spec))
        pod = await self.until_phase(name, "Running")
        await self.until_said(name, "ready")
        node: str = pod["spec"]["nodeName"]
        return node


async def _empty(configuration: client.Configuration) -> None:
    cluster = Cluster(configuration)
    for plural in (
        "namespaces/default/pods",
        "namespaces/default/secrets",
        "namespaces/default/configmaps",
        "nodes",
    ):
        await cluster.request("DELETE", f"/api/v1/{plural}", {"gracePeriodSeconds": 0})
    await cluster.close()


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    """Two nodes with the image ``PYTHON``, with little delay."""
    server = None if REAL else ApiServer()
    async with server or contextlib.nullcontext():
        configuration = client.Configuration(host=server.url if server else None)
        if REAL:
            await config.load_kube_config(str(REAL), client_configuration=configuration)  # type: ignore[no-untyped-call]
            await _empty(configuration)
        kubelet = ProcessKubelet(
            configuration, folder=tmp_path / "kubelet", images={PYTHON: python_image()}, timing=QUICK
        )
        async with kubelet, Nodes(configuration, kubelet, server) as found:
            yield found
    assert not (tmp_path / "kubelet").exists()
    if REAL:
        await end_of_tls()
