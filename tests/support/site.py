"""A namespace of a system test, and what a user does in it."""

from collections.abc import Mapping
from types import TracebackType
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from support.workplace import Workplace
from triage_local.apiserver import ApiServer
from triage_local.cluster import LocalCluster
from triage_local.kubelet import Container
from triage_local.kubelet.cluster import MERGE
from triage_local.objects import DATABASE_SECRET, MODEL_SECRET

API_KEY: Final = "AIza-key-of-the-model"


class Site(Workplace):
    """A workplace on the local cluster."""

    def __init__(self, cluster: LocalCluster, engine: AsyncEngine, namespace: str) -> None:
        secrets = {DATABASE_SECRET: {"url": cluster.database_url}, MODEL_SECRET: {"api-key": API_KEY}}
        super().__init__(cluster.api, engine, namespace, secrets=secrets, agent_spec=cluster.agent["spec"])
        self.cluster = cluster

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cluster.model.faults.clear()
        if isinstance(self.cluster.server, ApiServer):
            self.cluster.server.faults.clear()
        await super().__aexit__(kind, error, trace)

    async def container(self, run: str, epoch: int = 1) -> Container:
        """Wait for the agent process of an attempt."""
        return self.cluster.kubelet.container(self.namespace, await self.started(run, epoch))

    async def kill(self, run: str, epoch: int = 1) -> None:
        """Kill the process of an attempt, and wait for its end."""
        container = await self.container(run, epoch)
        self.cluster.kubelet.kill(self.namespace, (await self.pod(run, epoch))["metadata"]["name"])
        await container.reap()

    async def label_node(self, node: str, labels: Mapping[str, str]) -> None:
        """Label a node."""
        body = {"metadata": {"labels": dict(labels)}}
        await self.cluster.api.request("PATCH", f"/api/v1/nodes/{node}", body, content_type=MERGE)

    async def taint_node(self, node: str, *taints: Mapping[str, str]) -> None:
        """Give a node these taints, and no others."""
        body = {"spec": {"taints": [dict(taint) for taint in taints]}}
        await self.cluster.api.request("PATCH", f"/api/v1/nodes/{node}", body, content_type=MERGE)
