"""Places: how many runs of an agent may be at work at once, and who is next."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

from triage_operator.store import RunKey


class AgentKey(NamedTuple):
    """Namespace and name of a TriageAgent."""

    namespace: str
    name: str


class Places:
    """The unfinished runs of each agent, and those of them that wait for a place."""

    def __init__(self) -> None:
        self._agents: dict[RunKey, AgentKey] = {}
        self._runs: dict[AgentKey, dict[RunKey, datetime]] = {}
        self._queued: dict[AgentKey, set[RunKey]] = {}
        self._turns: dict[AgentKey, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, agent: AgentKey) -> AsyncIterator[None]:
        """Let nobody else count the agent's attempts and open one until this is over."""
        async with self._turns.setdefault(agent, asyncio.Lock()):
            yield

    def note(self, agent: AgentKey, run: RunKey, created_at: datetime, *, queued: bool) -> None:
        """Take note of an unfinished run, and whether it waits for a place."""
        self._agents[run] = agent
        self._runs.setdefault(agent, {})[run] = created_at
        waiting = self._queued.setdefault(agent, set())
        (waiting.add if queued else waiting.discard)(run)

    def forget(self, run: RunKey) -> None:
        """Take note that a run is over, or gone."""
        agent = self._agents.pop(run, None)
        if agent is None:
            return
        self._runs.get(agent, {}).pop(run, None)
        self._queued.get(agent, set()).discard(run)

    def ahead(self, agent: AgentKey, run: RunKey, created_at: datetime) -> int:
        """Count the runs that wait for a place and came before."""
        runs = self._runs.get(agent, {})
        return sum((runs[other], other) < (created_at, run) for other in self._queued.get(agent, ()))

    def next_in_line(self, agent: AgentKey) -> RunKey | None:
        """Give the run that has waited longest for a place; None: none waits."""
        runs = self._runs.get(agent, {})
        return min(self._queued.get(agent, ()), key=lambda run: (runs[run], run), default=None)

    def unfinished(self, agent: AgentKey) -> tuple[RunKey, ...]:
        """Give the agent's unfinished runs, as far as they were seen."""
        return tuple(self._runs.get(agent, ()))
