"""A whole local cluster for system tests: the real operator, real agents, and what is seen of them from outside."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from support.own_agents import OWN_IMAGE
from support.servers import a_server, emulator
from support.site import Site
from triage_contract.database.engine import open_engine
from triage_contract.database.url import DatabaseUrl
from triage_local.apiserver import Faults
from triage_local.cluster import LocalCluster
from triage_local.demo.holds import prepare
from triage_local.exceptions import ProgramError
from triage_local.objects import IMAGE
from triage_local.operating import LocalOperator

TESTS: Final = Path(__file__).parents[1]

SETTINGS: Final = {
    "TRIAGE_OPERATOR_HEARTBEAT_SECONDS": "1",
    "TRIAGE_OPERATOR_HEARTBEAT_LAPSE_SECONDS": "6",
    "TRIAGE_OPERATOR_SWEEP_SECONDS": "3",
    "TRIAGE_OPERATOR_LEAVING_SECONDS": "3",
    "TRIAGE_OPERATOR_REFUSAL_RETRY_SECONDS": "1",
}
"""An operator that is less patient than one needs to be."""

Sample = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The cluster of a test session. Each test has a namespace of its own in it."""

    cluster: LocalCluster
    engine: AsyncEngine
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def faults(self) -> Faults:
        """What the API server can be made to do wrong; a test of a real one is skipped."""
        return emulator(self.cluster.server).faults

    @contextlib.asynccontextmanager
    async def site(self) -> AsyncIterator[Site]:
        """Make a namespace with what agents need in it, and delete it at the end."""
        async with Site(self.cluster, self.engine, f"site-{next(self.numbers)}") as site:
            yield site

    async def values(self, statement: str, **params: object) -> list[tuple[Any, ...]]:
        """Run a statement and give its rows."""
        async with self.engine.connect() as connection:
            return [tuple(row) for row in await connection.execute(text(statement), params)]

    async def samples(self) -> dict[Sample, float]:
        """Scrape the operator: values by name and labels."""
        families = text_string_to_metric_families(await self.cluster.operator.metrics())
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    async def counted(self, name: str, **labels: str) -> float:
        """Give the sum of a metric over all samples with these labels."""
        wanted = labels.items()
        samples = await self.samples()
        return sum(value for (sample, found), value in samples.items() if sample == name and wanted <= found)

    def operator(self, name: str, settings: Mapping[str, str]) -> LocalOperator:
        """Prepare one more operator, with changed settings."""
        cluster = self.cluster
        return LocalOperator(
            database_url=cluster.database_url,
            kubeconfig=cluster.kubeconfig,
            log=cluster.folder / f"{name}.log",
            guard=cluster.guard,
            settings={**SETTINGS, "TRIAGE_OPERATOR_LEASE_IDENTITY": name, **settings},
        )

    async def probe(self, operator: LocalOperator, path: str) -> tuple[int, str]:
        """Ask an operator how it is; gives status and text."""
        async with aiohttp.ClientSession() as session, session.get(f"{operator.url}/{path}") as response:
            return response.status, await response.text()

    @contextlib.asynccontextmanager
    async def restarting(self) -> AsyncIterator[None]:
        """Start the operator again whenever it ends, as Kubernetes does, until the block ends."""
        task = asyncio.create_task(self._restart_for_ever())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        with contextlib.suppress(ProgramError):
            await self.cluster.operator.metrics()
            return
        await self.cluster.operator.start()

    async def _restart_for_ever(self) -> None:
        operator = self.cluster.operator
        while True:
            await operator.wait()
            with contextlib.suppress(ProgramError):
                await operator.start()


@contextlib.asynccontextmanager
async def a_system(operator_log: Path) -> AsyncIterator[System]:
    """Run a cluster until the block ends."""
    async with LocalCluster(
        operator_log=operator_log, operator_settings=SETTINGS, server=a_server()
    ) as cluster:
        image = cluster.kubelet.images[IMAGE]
        cluster.kubelet.images[OWN_IMAGE] = replace(
            image, environment={**image.environment, "PYTHONPATH": str(TESTS)}
        )
        engine = open_engine(DatabaseUrl.parse(cluster.database_url), application="test-system", pool_size=8)
        try:
            await prepare(engine)
            yield System(cluster=cluster, engine=engine)
        finally:
            await engine.dispose()
