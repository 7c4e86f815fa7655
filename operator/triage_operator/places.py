"""Places: how many runs of an agent may be at work, or between two attempts for a rollout, and who is next."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

from triage_contract.api.run import AgentRef
from triage_operator.kube import Object
from triage_operator.stored import RunKey


class AgentKey(NamedTuple):
    """Namespace and name of a TriageAgent."""

    namespace: str
    name: str


class Places:
    """The unfinished runs of each agent, the line of those that wait for a place, or may have to, and that of those
    that wait for their turn of a rollout."""

    def __init__(self) -> None:
        self._agents: dict[RunKey, AgentKey] = {}
        self._runs: dict[AgentKey, dict[RunKey, datetime]] = {}
        self._lines: dict[AgentKey, set[RunKey]] = {}
        self._outdated: dict[AgentKey, set[RunKey]] = {}
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
        """Take note that a run is over, or gone, and stands in no line; give its agent, None: it was not known."""
        agent = self._agents.pop(run, None)
        if agent is not None:
            self._runs[agent].pop(run, None)
            self._lines[agent].discard(run)
            self._outdated.get(agent, set()).discard(run)
        return agent

    def note_outdated(self, agent: AgentKey, run: RunKey, *, outdated: bool) -> bool:
        """Take note whether an unfinished run waits for its turn of a rollout; say whether it did not before."""
        line = self._outdated.setdefault(agent, set())
        joined = outdated and run not in line
        (line.add if outdated else line.discard)(run)
        return joined

    def ahead(self, agent: AgentKey, run: RunKey, created_at: datetime) -> int:
        """Count the runs in the line that came before."""
        runs = self._runs.get(agent, {})
        return sum((runs[other], other) < (created_at, run) for other in self._lines.get(agent, ()))

    def next_in_line(self, agent: AgentKey) -> RunKey | None:
        """Give the run that has waited longest for a place; None: none waits."""
        return self._oldest(agent, self._lines)

    def next_outdated(self, agent: AgentKey) -> RunKey | None:
        """Give the oldest run that waits for its turn of a rollout; None: none waits."""
        return self._oldest(agent, self._outdated)

    def unfinished(self, agent: AgentKey) -> tuple[RunKey, ...]:
        """Give the agent's unfinished runs, as far as they were seen."""
        return tuple(self._runs.get(agent, ()))

    def _oldest(self, agent: AgentKey, lines: Mapping[AgentKey, set[RunKey]]) -> RunKey | None:
        runs = self._runs.get(agent, {})
        return min(lines.get(agent, ()), key=lambda run: (runs[run], run), default=None)
