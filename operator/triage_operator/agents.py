"""What the operator says of agents: whether attempts can be started, and which tools nobody declared."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

from triage_contract.api import AgentCondition, parse_agent
from triage_contract.exceptions import ApiError, DatabaseError
from triage_operator.agent_status import build_agent_status
from triage_operator.exceptions import KubeConflictError, KubeError
from triage_operator.holding_up import with_false_condition
from triage_operator.kube import Kube, Object
from triage_operator.metrics.runs import Sample
from triage_operator.places import AgentKey
from triage_operator.queueing import WorkQueue
from triage_operator.reasons import Reason
from triage_operator.settings import ReconcilingSettings
from triage_operator.store import Store

_logger = logging.getLogger(__name__)


class AgentKeeper:
    """Keeps the status of agents. Nobody waits for it, so that many changes make one write."""

    def __init__(self, kube: Kube, store: Store, settings: ReconcilingSettings) -> None:
        self._kube = kube
        self._store = store
        self._settings = settings
        self._queue: WorkQueue[AgentKey] = WorkQueue()
        self._standing: dict[AgentKey, tuple[str, str]] = {}

    def samples(self) -> Iterator[Sample]:
        """Give a sample for each agent that was looked over: its image, and the tree that its newest run began with."""
        for key, (image, fingerprint) in self._standing.items():
            labels = {
                "namespace": key.namespace,
                "agent": key.name,
                "image": image,
                "fingerprint": fingerprint,
            }
            yield "agent_info", labels, 1.0

    def note(self, key: AgentKey) -> None:
        """Have an agent's status looked over in a while."""
        if key not in self._queue:
            self._queue.wake_after(key, self._settings.agent_status_seconds)

    async def work(self) -> None:
        """Look over one agent after the other until cancelled."""
        try:
            await self._queue.work(self._keep, workers=1)
        finally:
            self._queue.clear()

    async def _keep(self, key: AgentKey) -> None:
        try:
            await self._write(key)
        except KubeConflictError:
            self.note(key)
        except (KubeError, DatabaseError) as error:
            _logger.warning("the status of an agent was not written", extra=_about(key, reason=str(error)))
            self._queue.wake_after(key, self._settings.retry_max_seconds)
        # The boundary of the queue: whatever is wrong with one agent must not end the others.
        except Exception:
            _logger.exception("the status of an agent was not written", extra=_about(key))
            self._queue.wake_after(key, self._settings.retry_max_seconds)

    async def _write(self, key: AgentKey) -> None:
        raw = await self._kube.get_agent(*key)
        if raw is None:
            self._standing.pop(key, None)
        if raw is not None and (status := await self._status(key, raw)) is not None:
            await self._kube.write_agent_status({**raw, "status": status})

    async def _status(self, key: AgentKey, raw: Object) -> Object | None:
        """Build the status to write; None: it stands already."""
        now = datetime.now(UTC)
        try:
            agent = parse_agent(raw)
        except ApiError as error:
            unusable = with_false_condition(
                raw, kind=AgentCondition.READY, reason=Reason.BAD_AGENT, message=str(error), now=now
            )
            return None if unusable == (raw.get("status") or {}) else unusable
        facts = await self._store.agent_facts(key.namespace, key.name)
        self._standing[key] = (agent.spec.image, facts.fingerprint or "")
        status = build_agent_status(agent, running=facts.running, undeclared=facts.undeclared, now=now)
        return None if status == agent.status else status.to_json()


def _about(key: AgentKey, **facts: str) -> dict[str, str]:
    return {"action": "keep_agent", "namespace": key.namespace, "agent": key.name, **facts}
