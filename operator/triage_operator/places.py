"""Places: how many runs of an agent may be at work at once, and who is next."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

from triage_contract.api.run import AgentRef
from triage_operator.kube import Object
from triage_operator.store import RunKey


class AgentKey(NamedTuple):
    """Namespace and name of a TriageAgent."""

    namespace: str
    name: str


class Places:
    """The unfinished runs of each agent, and the line of those that wait for a place, or may have to."""

    def __init__(self) -> None:
        self._agents: dict[RunKey, AgentKey] = {}
        self._runs: dict[AgentKey, dict[RunKey, datetime]] = {}
        self._lines: dict[AgentKey, set[RunKey]] = {}
        self._turns: dict[AgentKey, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, agent: AgentKey) -> AsyncIterator[None]:
        """Let nobody else count the agent's attempts and open one until this is over."""
        async with self._turns.setdefault(agent, asyncio.Lock()):
            yield

    def expect(self, run: Object) -> None:
        """Put an unfinished run in the line of its agent until it is decided about, unless it was before.

        So runs that are seen together get their places by age, whichever is looked at first.
        """
        metadata = run["metadata"]
        key = (metadata["namespace"], metadata["name"])
        if key not in self._agents:
            name = (run["spec"].get("agentRef") or {}).get("name", AgentRef().name)
            created_at = datetime.fromisoformat(metadata["creationTimestamp"])
            self.note(AgentKey(key[0], name), key, created_at, queued=True)

    def note(self, agent: AgentKey, run: RunKey, created_at: datetime, *, queued: bool) -> bool:
        """Take note of an unfinished run, and whether it waits for a place; say whether it left the line."""
        self._agents[run] = agent
        self._runs.setdefault(agent, {})[run] = created_at
        line = self._lines.setdefault(agent, set())
        left = run in line and not queued
        (line.add if queued else line.discard)(run)
        return left

    def forget(self, run: RunKey) -> AgentKey | None:
        """Take note that a run is over, or gone; give the agent whose line it left, None: it was in none."""
        agent = self._agents.pop(run, None)
        if agent is None:
            return None
        self._runs[agent].pop(run, None)
        left = run in self._lines[agent]
        self._lines[agent].discard(run)
        return agent if left else None

    def ahead(self, agent: AgentKey, run: RunKey, created_at: datetime) -> int:
        """Count the runs in the line that came before."""
        runs = self._runs.get(agent, {})
        return sum((runs[other], other) < (created_at, run) for other in self._lines.get(agent, ()))

    def next_in_line(self, agent: AgentKey) -> RunKey | None:
        """Give the run that has waited longest for a place; None: none waits."""
        runs = self._runs.get(agent, {})
        return min(self._lines.get(agent, ()), key=lambda run: (runs[run], run), default=None)

    def unfinished(self, agent: AgentKey) -> tuple[RunKey, ...]:
        """Give the agent's unfinished runs, as far as they were seen."""
        return tuple(self._runs.get(agent, ()))
