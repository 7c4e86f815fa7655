"""The cluster of a test session: installed anew from the chart, with Postgres and the scripted model in it."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml
from kubernetes.aio import client, config
from sqlalchemy.ext.asyncio import AsyncEngine

from support.charts import CHART, ROOT, merged
from support.kind.gaps import Gap
from support.kind.programs import SYSTEM, Programs
from triage_contract.database.engine import open_engine
from triage_contract.database.url import DatabaseUrl
from triage_local.demo.holds import prepare
from triage_local.kubelet.cluster import Cluster
from triage_local.model.faults import Fault

Json = dict[str, Any]

TRIAL: Final = ROOT / "examples" / "trial"
AGENT_IMAGE: Final = "triage-agent:0.1.0"

_VALUES: Final = merged(
    yaml.safe_load((TRIAL / "values.yaml").read_text()),
    {"agent": {"enabled": False}, "exampleRun": {"enabled": False}},
)
_WORKLOADS: Final = (
    "deployment/scripted-model",
    "statefulset/triage-operator-postgres",
    "deployment/triage-operator",
)
_LOOK_SECONDS: Final = 0.1
_POSTGRES_PORT: Final = 30432
_MODEL_PORT: Final = 30080


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a test reaches of the cluster.

    ``victim`` is a worker on which nothing stands but what a test puts there: it may be lost. ``steady`` is the other.
    """

    programs: Programs
    api: Cluster
    engine: AsyncEngine
    database_url: str = field(repr=False)
    model: aiohttp.ClientSession
    control_plane: str
    steady: str
    victim: str
    gaps: list[Gap]

    async def fault(self, **fault: Any) -> None:
        """Let a fault befall requests to the model."""
        body = Fault(**fault).model_dump(mode="json")
        async with self.model.post("/faults", json=body) as answer:
            assert answer.status < 300, await answer.text()

    async def forget_faults(self) -> None:
        """Let the model answer as usual, also those requests that wait."""
        async with self.model.delete("/faults") as answer:
            assert answer.status < 300, await answer.text()

    async def asked(self, report: str, step: str) -> None:
        """Wait until the model was asked for a step of a report. It tells nobody by itself."""
        while True:
            async with self.model.get("/requests") as answer:
                if any(
                    report in one["report"] and one["step"] == step
                    for one in (await answer.json())["requests"]
                ):
                    return
            await asyncio.sleep(_LOOK_SECONDS)

    async def release(self) -> None:
        """Let the model answer what it was asked and has not answered."""
        async with self.model.post("/release") as answer:
            assert answer.status < 300, await answer.text()

    async def await_node(self, node: str) -> None:
        """Wait until a node is ready."""
        await self.programs.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=170s")

    async def configure(self, *, chart: Path = CHART, **values: Any) -> None:
        """Upgrade the release to other values, or to another chart, and wait until it stands."""
        await self.programs.helm("upgrade", merged(_values(self.steady), values), chart=chart)
        await self.programs.rolled_out(*_WORKLOADS)

    @asynccontextmanager
    async def uninstalled(self) -> AsyncIterator[None]:
        """Take the release away, and install it again when the block ends."""
        await self.programs.helm("uninstall")
        try:
            yield
        finally:
            await self.programs.helm("install", _values(self.steady))
            await self.programs.rolled_out(*_WORKLOADS)


@asynccontextmanager
async def a_kind(kubeconfig: Path, gaps: list[Gap], *, keep: bool) -> AsyncIterator[Kind]:
    """Install the release anew, and take it away at the end; with ``keep`` take the one that is there, and leave it."""
    programs = Programs(kubeconfig=kubeconfig)
    configuration = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]
    api = Cluster(configuration)
    try:
        nodes = (await api.request("GET", "/api/v1/nodes"))["items"]
        steady, victim = sorted(
            node["metadata"]["name"]
            for node in nodes
            if "node-role.kubernetes.io/control-plane" not in node["metadata"]["labels"]
        )
        control_plane = _control_plane(nodes)
        address = _address(control_plane)
        if not (keep and await programs.kubectl("get", "namespace", SYSTEM, "--ignore-not-found")):
            await _take_away(programs)
            async with programs.cordoned(victim):
                await _install(programs, steady)
        database_url = await _database_url(api, address)
        engine = open_engine(DatabaseUrl.parse(database_url), application="test-e2e", pool_size=16)
        try:
            await prepare(engine)
            async with aiohttp.ClientSession(f"http://{address}:{_MODEL_PORT}") as model:
                yield Kind(
                    programs=programs,
                    api=api,
                    engine=engine,
                    database_url=database_url,
                    model=model,
                    control_plane=control_plane["metadata"]["name"],
                    steady=steady,
                    victim=victim,
                    gaps=gaps,
                )
        finally:
            await engine.dispose()
        if not keep:
            await _take_away(programs)
    finally:
        await api.close()


async def _install(programs: Programs, steady: str) -> None:
    await programs.kubectl("create", "namespace", SYSTEM)
    await programs.kubectl("apply", "--namespace", SYSTEM, "-f", str(TRIAL / "model.yaml"))
    await programs.apply(
        _node_port("postgres", _POSTGRES_PORT, 5432, {"app.kubernetes.io/component": "postgres"}),
        _node_port("model", _MODEL_PORT, 8080, {"app": "scripted-model"}),
        namespace=SYSTEM,
    )
    await programs.helm("install", _values(steady))
    await programs.rolled_out(*_WORKLOADS)


def _values(steady: str) -> Json:
    """Give values that keep every operator, also one that comes later, from the node that may be lost."""
    return merged(_VALUES, {"nodeSelector": {"kubernetes.io/hostname": steady}})


async def _take_away(programs: Programs) -> None:
    await programs.helm("uninstall", ignore_not_found=True)
    await programs.kubectl("delete", "namespace", SYSTEM, "--ignore-not-found")


def _node_port(name: str, port: int, target: int, selector: Json) -> Json:
    ports = [{"port": target, "nodePort": port}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"outside-{name}"},
        "spec": {"type": "NodePort", "selector": selector, "ports": ports},
    }


def _control_plane(nodes: list[Json]) -> Json:
    """Give the node that no test loses."""
    (node,) = (
        node for node in nodes if "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]
    )
    return node


def _address(node: Json) -> str:
    return str(next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"))


async def _database_url(api: Cluster, address: str) -> str:
    path = f"/api/v1/namespaces/{SYSTEM}/secrets/triage-operator-postgres"
    password = base64.b64decode((await api.request("GET", path))["data"]["password"]).decode()
    return f"postgresql://triage:{password}@{address}:{_POSTGRES_PORT}/triage"
