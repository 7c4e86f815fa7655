"""What the operator needs for many runs: how fast it launches them, and its memory and CPU while they work.

Pods do not run here: a stub marks them running and does in the database what their processes would, claim,
lock and heartbeat.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psutil
from kubernetes.aio import client
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_contract.api.crds import AGENT, RUN, build_crd
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import API_VERSION, LIFE_LOCK_CLASS
from triage_local.apiserver import ApiServer
from triage_local.guard import Guard
from triage_local.kubelet.cluster import MERGE, Cluster
from triage_local.objects import NAMESPACE, build_agent, build_namespace
from triage_local.operating import LocalOperator
from triage_local.postgres import PostgresServer

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TRIAGE: Final = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_IDLE_SECONDS: Final = 20.0
_HEARTBEAT_SECONDS: Final = 2.0
_CREATORS: Final = 8

_CLAIM: Final = text("SELECT serial FROM triage.attempts WHERE pod = :pod")
_CLAIMED: Final = text(
    "UPDATE triage.attempts SET claimed_at = clock_timestamp(), heartbeat_at = clock_timestamp()"
    " WHERE serial = :serial"
)
_LOCK: Final = text("SELECT pg_advisory_lock(:lock_class, :serial)")
_BEAT: Final = text("UPDATE triage.attempts SET heartbeat_at = clock_timestamp() WHERE ended_at IS NULL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What was measured of one operator. CPU in shares of one core."""

    runs: int
    launch_seconds: float
    resident_bytes: int
    idle_cpu: float

    def lines(self) -> list[str]:
        """Describe it for people."""
        return [
            f"{self.runs} runs launched in {self.launch_seconds:.1f} s: {self.runs / self.launch_seconds:.0f}/s"
            " (operator, API server emulator and Postgres share the machine)",
            f"operator's memory with {self.runs} running runs: {self.resident_bytes / 2**20:.0f} MiB",
            f"operator's CPU while they work, over {_IDLE_SECONDS:.0f} s: {self.idle_cpu:.1%} of a core",
        ]


async def measure_fleet(runs: int) -> Fleet:
    """Launch ``runs`` runs on an operator of their own."""
    async with AsyncExitStack() as resources:
        folder = Path(resources.enter_context(TemporaryDirectory()))
        guard = resources.enter_context(Guard())
        postgres = resources.enter_context(
            PostgresServer(folder, settings={"max_locks_per_transaction": "256"})
        )
        url = DatabaseUrl.parse(postgres.create_database("fleet"))
        await migrate(url)
        server = await resources.enter_async_context(ApiServer())
        server.write_kubeconfig(folder / "kubeconfig", namespace=NAMESPACE)
        api = Cluster(client.Configuration(host=server.url))
        resources.push_async_callback(api.close)
        for crd in (RUN, AGENT):
            await api.request("POST", _CRDS, build_crd(crd))
        await api.request("POST", "/api/v1/namespaces", build_namespace(NAMESPACE))
        await api.request("POST", f"{_TRIAGE}/triageagents", build_agent("scripted", "http://127.0.0.1:1"))
        operator = LocalOperator(
            database_url=url.dsn, kubeconfig=folder / "kubeconfig", log=folder / "operator.log", guard=guard
        )
        resources.push_async_callback(operator.stop)
        await operator.start()
        engine = open_engine(url, application="bench-agents")
        resources.push_async_callback(engine.dispose)
        agents = _Agents(api, engine)
        playing = asyncio.create_task(agents.play())
        resources.callback(playing.cancel)
        began = time.monotonic()
        await _create(api, runs)
        await agents.wait_for(runs)
        launched = time.monotonic() - began
        process = psutil.Process(operator.pid)
        return Fleet(
            runs=runs,
            launch_seconds=launched,
            idle_cpu=await _idle_cpu(process),
            resident_bytes=process.memory_info().rss,
        )


async def _create(api: Cluster, runs: int) -> None:
    numbers = iter(range(runs))

    async def create() -> None:
        for number in numbers:
            metadata = {"name": f"run-{number}", "namespace": NAMESPACE}
            manifest = {
                "apiVersion": API_VERSION,
                "kind": "TriageRun",
                "metadata": metadata,
                "spec": {"report": f"Report {number}."},
            }
            await api.request("POST", f"{_TRIAGE}/triageruns", manifest)

    await asyncio.gather(*(create() for _ in range(_CREATORS)))


async def _idle_cpu(process: psutil.Process) -> float:
    await asyncio.sleep(_HEARTBEAT_SECONDS)  # what the last launches still cause is not idling
    before, began = process.cpu_times(), time.monotonic()
    await asyncio.sleep(_IDLE_SECONDS)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / (time.monotonic() - began)


class _Agents:
    """Plays the kubelet and the agent of every pod."""

    def __init__(self, api: Cluster, engine: AsyncEngine) -> None:
        self._api = api
        self._engine = engine
        self._new: asyncio.Queue[str] = asyncio.Queue()
        self._seen: set[str] = set()
        self._running = 0
        self._changed = asyncio.Event()

    async def wait_for(self, count: int) -> None:
        while self._running < count:
            self._changed.clear()
            await self._changed.wait()

    async def play(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._api.follow(_PODS, synced=self._sync, changed=self._change))
            group.create_task(self._start_pods())
            group.create_task(self._beat())

    def _sync(self, pods: list[dict[str, Any]]) -> None:
        for pod in pods:
            self._change("ADDED", pod)

    def _change(self, _change: str, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if name not in self._seen:
            self._seen.add(name)
            self._new.put_nowait(name)

    async def _start_pods(self) -> None:
        async with self._engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            while True:
                name = await self._new.get()
                await self._api.request(
                    "PATCH", f"{_PODS}/{name}/status", _running_status(), content_type=MERGE
                )
                serial = (await connection.execute(_CLAIM, {"pod": name})).scalar_one()
                await connection.execute(_LOCK, {"lock_class": LIFE_LOCK_CLASS, "serial": serial})
                await connection.execute(_CLAIMED, {"serial": serial})
                self._running += 1
                self._changed.set()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            async with self._engine.begin() as connection:
                await connection.execute(_BEAT)


def _running_status() -> dict[str, Any]:
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {
        "name": "agent",
        "ready": True,
        "restartCount": 0,
        "image": "",
        "imageID": "",
        "state": state,
    }
    return {
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container],
        }
    }
