"""The operators of an incident: one that works, and one that takes over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from observe.prometheus import SCRAPE_SECONDS, Prometheus
from triage_local.cluster import LocalCluster
from triage_local.exceptions import ProgramError
from triage_local.operating import LocalOperator

SETTINGS: Final = {
    "TRIAGE_OPERATOR_HEARTBEAT_SECONDS": "1",
    "TRIAGE_OPERATOR_HEARTBEAT_LAPSE_SECONDS": "6",
    "TRIAGE_OPERATOR_SWEEP_SECONDS": "3",
    "TRIAGE_OPERATOR_LEAVING_SECONDS": "3",
}
"""An operator that is less patient than one needs to be."""

_FIRST: Final = "triage-operator-1"
_SECOND: Final = "triage-operator-2"
_SEEN_SECONDS: Final = 4 * SCRAPE_SECONDS
_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of time."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.start).total_seconds()


@dataclass(slots=True, kw_only=True)
class Operators:
    """Who works, and what Prometheus watches of them."""

    cluster: LocalCluster
    prometheus: Prometheus
    _second: LocalOperator = field(init=False)

    def __post_init__(self) -> None:
        cluster = self.cluster
        self._second = LocalOperator(
            database_url=cluster.database_url,
            kubeconfig=cluster.kubeconfig,
            log=cluster.operator.log.with_name("second-operator.log"),
            guard=cluster.guard,
            settings={**SETTINGS, "TRIAGE_OPERATOR_LEASE_IDENTITY": _SECOND},
        )
        self.prometheus.watch({_FIRST: cluster.operator.url})

    async def change_leader(self) -> None:
        """Start a second operator that stands by, then end the first one as Kubernetes would."""
        self.prometheus.watch({_FIRST: self.cluster.operator.url, _SECOND: self._second.url})
        async with asyncio.TaskGroup() as group:
            group.create_task(self._second.start())
            await self._second_stands_by()
            await self.cluster.operator.stop()
        self.prometheus.watch({_SECOND: self._second.url})

    async def stop(self) -> None:
        """End the second one."""
        await self._second.stop()

    @asynccontextmanager
    async def leaving(self, what: str, windows: dict[str, Window]) -> AsyncIterator[None]:
        """Note the time from before an operator leaves until all has been scraped that the block did."""
        await asyncio.sleep(_SEEN_SECONDS)
        start = datetime.now(UTC)
        yield
        await asyncio.sleep(_SEEN_SECONDS)
        windows[what] = Window(start=start, end=datetime.now(UTC))

    async def _second_stands_by(self) -> None:
        async with asyncio.timeout(_START_SECONDS):
            while True:
                with suppress(ProgramError):
                    await self._second.metrics()
                    return
                await asyncio.sleep(_LOOK_SECONDS)
