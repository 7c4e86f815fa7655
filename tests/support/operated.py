"""An API server for the operator's tests, operators on it, and pods that a test moves by hand."""

import asyncio
import dataclasses
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import aiohttp
import yaml
from kubernetes.aio.client import (
    ApiClient,
    Configuration,
    CoordinationV1Api,
    CoreV1Api,
    CustomObjectsApi,
    V1Binding,
    V1Container,
    V1Eviction,
    V1ObjectMeta,
    V1ObjectReference,
    V1Pod,
    V1PodSpec,
)

from support.databases import Database
from triage_contract.names import GROUP, MANAGER, VERSION, Label
from triage_local.apiserver import ApiServer
from triage_operator.kube import Kube
from triage_operator.running import run
from triage_operator.settings import (
    DatabaseSettings,
    DecidingSettings,
    KubeSettings,
    LeaseSettings,
    ReconcilingSettings,
    ServingSettings,
    Settings,
)
from triage_operator.steps import Checkpoint, go_on

CRDS = Path(__file__).parents[2] / "crds"
NAMESPACE = "default"
RUNNING: Final = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
"""The state of a container that runs."""
PATIENCE_SECONDS = 30.0
"""How long something that should come within a moment is waited for, on a machine that has other work too."""

Json = dict[str, Any]
Found = TypeVar("Found")

_identities = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running API server with our resources, and a client of the test's own."""

    server: ApiServer
    settings: KubeSettings
    client: ApiClient

    def connect(self, **changes: Any) -> AbstractAsyncContextManager[Kube]:
        """Open one more connection of the operator's kind, with changed settings."""
        return Kube.connect(replace(self.settings, **changes))

    async def create_agent(self, name: str = "default", **spec: Any) -> Json:
        """Create a TriageAgent."""
        database = {"urlSecretRef": {"name": "triage-database", "key": "url"}}
        return await self._create("triageagents", name, {"image": "agent:1", "database": database, **spec})

    async def create_run(self, name: str = "tokens", **spec: Any) -> Json:
        """Create a TriageRun."""
        return await self._create("triageruns", name, {"report": "The tokens page is wrong.", **spec})

    async def change_run(self, name: str = "tokens", **spec: Any) -> None:
        """Change fields of a TriageRun's spec."""
        await CustomObjectsApi(self.client).patch_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, "triageruns", name, {"spec": spec}, _content_type=MERGE
        )

    async def delete_run(self, name: str = "tokens") -> None:
        """Delete a TriageRun."""
        await CustomObjectsApi(self.client).delete_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, "triageruns", name
        )

    async def edit_status(self, name: str = "tokens", **status: Any) -> None:
        """Change a TriageRun's status, as somebody with too many rights does by hand."""
        await CustomObjectsApi(self.client).patch_namespaced_custom_object_status(
            GROUP, VERSION, NAMESPACE, "triageruns", name, {"status": status}, _content_type=MERGE
        )

    async def change_agent(self, name: str = "default", **spec: Any) -> None:
        """Change fields of a TriageAgent's spec."""
        await CustomObjectsApi(self.client).patch_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, "triageagents", name, {"spec": spec}, _content_type=MERGE
        )

    async def runs(self) -> list[Json]:
        """Read all TriageRuns."""
        listed = await CustomObjectsApi(self.client).list_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, "triageruns"
        )
        return cast(list[Json], cast(Json, listed)["items"])

    async def create_pod(self, name: str) -> None:
        """Create a pod that is none of ours."""
        body = V1Pod(
            metadata=V1ObjectMeta(name=name),
            spec=V1PodSpec(containers=[V1Container(name="agent", image="other:1")]),
        )
        await CoreV1Api(self.client).create_namespaced_pod(NAMESPACE, body)

    async def run(self, name: str = "tokens") -> Json:
        """Read a TriageRun."""
        got = await CustomObjectsApi(self.client).get_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, "triageruns", name
        )
        return cast(Json, got)

    async def run_in(self, phase: str, name: str = "tokens", *, seconds: float = PATIENCE_SECONDS) -> Json:
        """Wait until a TriageRun is in a phase, and read it."""

        async def found() -> Json | None:
            run = await self.run(name)
            return run if (run.get("status") or {}).get("phase") == phase else None

        return await until(found, seconds=seconds)

    async def pods(self) -> list[Json]:
        """Read the pods of attempts, the oldest first."""
        listed = await CoreV1Api(self.client).list_namespaced_pod_without_preload_content(
            NAMESPACE, label_selector=f"{Label.MANAGED_BY}={MANAGER}"
        )
        items: list[Json] = (await listed.json())["items"]
        return sorted(items, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    async def pod_of(self, epoch: int, run: str = "tokens", *, seconds: float = PATIENCE_SECONDS) -> Json:
        """Wait for the pod of an attempt, and read it."""

        async def found() -> Json | None:
            for pod in await self.pods():
                owner = pod["metadata"]["ownerReferences"][0]["name"]
                if (owner, pod["metadata"]["labels"][Label.EPOCH]) == (run, str(epoch)):
                    return pod
            return None

        return await until(found, seconds=seconds)

    async def set_pod(self, pod: Json, phase: str, state: Json, **status: Any) -> None:
        """Let a pod be in a phase, and its agent container in a state, with the resources that the pod asks for."""
        (asked,) = (one for one in pod["spec"]["containers"] if one["name"] == "agent")
        container = {
            "name": "agent",
            "image": "agent:1",
            "imageID": "agent:1",
            "ready": "running" in state,
            "restartCount": 0,
            "state": state,
            "resources": asked.get("resources") or {},
        }
        body = {"status": {"phase": phase, "containerStatuses": [container], **status}}
        await CoreV1Api(self.client).patch_namespaced_pod_status(
            pod["metadata"]["name"], NAMESPACE, body, _content_type=MERGE
        )

    async def start_pod(self, pod: Json) -> None:
        """Bind a pod to a node, and let its container run."""
        name = pod["metadata"]["name"]
        binding = V1Binding(
            metadata=V1ObjectMeta(name=name, namespace=NAMESPACE),
            target=V1ObjectReference(api_version="v1", kind="Node", name="node-1"),
        )
        await CoreV1Api(self.client).create_namespaced_pod_binding_without_preload_content(
            name, NAMESPACE, binding
        )
        await self.set_pod(pod, "Running", RUNNING)

    async def end_pod(self, pod: Json, exit_code: int, reason: str = "Error") -> None:
        """Let a pod's container end."""
        state = {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:00:01Z",
        }
        await self.set_pod(pod, "Succeeded" if exit_code == 0 else "Failed", {"terminated": state})

    async def evict_pod(self, pod: Json) -> None:
        """Evict a pod, as a drain does."""
        name = pod["metadata"]["name"]
        eviction = V1Eviction(metadata=V1ObjectMeta(name=name, namespace=NAMESPACE))
        await CoreV1Api(self.client).create_namespaced_pod_eviction_without_preload_content(
            name, NAMESPACE, eviction
        )

    async def remove_pod(self, pod: Json) -> None:
        """Delete a pod at once, as a force deletion does."""
        await CoreV1Api(self.client).delete_namespaced_pod(
            pod["metadata"]["name"], NAMESPACE, grace_period_seconds=0
        )

    async def lease(self) -> Json:
        """Read the operators' Lease."""
        response = await CoordinationV1Api(self.client).read_namespaced_lease_without_preload_content(
            "triage-operator", NAMESPACE
        )
        return cast(Json, await response.json())

    async def held_up(self, reason: str, name: str = "tokens") -> Json:
        """Wait until a TriageRun is held up for a reason, and give its status."""

        async def found() -> Json | None:
            status: Json = (await self.run(name)).get("status") or {}
            held = ("Progressing", "False", reason)
            conditions = [(it["type"], it["status"], it["reason"]) for it in status.get("conditions", ())]
            return status if held in conditions else None

        return await until(found)

    async def told(self, reason: str, times: int = 1) -> list[str]:
        """Wait for Events of a reason, and give their messages."""

        async def found() -> list[str] | None:
            listed = await CoreV1Api(self.client).list_namespaced_event(NAMESPACE)
            messages = [str(event.message) for event in listed.items if event.reason == reason]
            return messages if len(messages) >= times else None

        return await until(found)

    async def reasons(self) -> list[str]:
        """Give the reasons of all Events."""
        listed = await CoreV1Api(self.client).list_namespaced_event(NAMESPACE)
        return [str(event.reason) for event in listed.items]

    async def _create(self, plural: str, name: str, spec: Json) -> Json:
        kind = {"triageruns": "TriageRun", "triageagents": "TriageAgent"}[plural]
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        made = await CustomObjectsApi(self.client).create_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, plural, body
        )
        return cast(Json, made)


MERGE = "application/merge-patch+json"


@asynccontextmanager
async def a_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Run an API server in this process; its kubeconfig is in ``folder``."""
    kubeconfig = folder / "kubeconfig"
    async with ApiServer() as server, ApiClient(Configuration(host=server.url)) as client:
        server.write_kubeconfig(kubeconfig)
        # As it is: the client's own model of a schema loses what is nested in it.
        definitions = f"{server.url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            for path in sorted(CRDS.glob("*.yaml")):
                await session.post(definitions, json=yaml.safe_load(path.read_text()))
        yield Cluster(server=server, settings=KubeSettings(config=str(kubeconfig)), client=client)


def settings_for(cluster: Cluster, database: Database, **deciding: float) -> Settings:
    """Settings of an operator that goes about its work quickly."""
    identity = f"operator-{next(_identities)}"
    return Settings(
        namespaces=(),
        cluster_id=None,
        database=DatabaseSettings(url=database.url.dsn),
        kube=cluster.settings,
        lease=LeaseSettings(namespace=NAMESPACE, identity=identity, duration_seconds=1, retry_seconds=0.1),
        serving=ServingSettings(host="127.0.0.1", port=0),
        reconciling=ReconcilingSettings(sweep_seconds=1.0, reconnect_seconds=0.1, agent_status_seconds=0.2),
        deciding=dataclasses.replace(DecidingSettings(), **deciding),
    )


async def looked(database: Database) -> None:
    """Wait until the operator has looked at the signs of life as they are now, and taken in what it saw."""
    statement = "SELECT query_start FROM pg_stat_activity WHERE application_name = 'triage-operator/look'"
    begun: set[object] = set(await database.values(statement))
    # Two statements make a look: after the fourth that is new, one began, and was over, since.
    wanted = len(begun) + 4
    while len(begun) < wanted:
        begun.update(await database.values(statement))
        await asyncio.sleep(0.01)


@asynccontextmanager
async def operating(settings: Settings, checkpoint: Checkpoint = go_on) -> AsyncIterator[asyncio.Task[None]]:
    """Run an operator in this process until the block ends."""
    stop = asyncio.Event()
    task = asyncio.create_task(run(settings, stop, checkpoint=checkpoint))
    try:
        yield task
    finally:
        stop.set()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


async def until(found: Callable[[], Awaitable[Found | None]], *, seconds: float = PATIENCE_SECONDS) -> Found:
    """Ask until there is an answer that is not None."""
    deadline = time.monotonic() + seconds
    while (answer := await found()) is None:
        assert time.monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.02)
    return answer


def environment(pod: Mapping[str, Any]) -> dict[str, str]:
    """Give the plain environment variables of a pod's agent container."""
    (container,) = (one for one in pod["spec"]["containers"] if one["name"] == "agent")
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}
