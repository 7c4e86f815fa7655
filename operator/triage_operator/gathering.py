"""Gathering: everything that a decision about one run depends on, read anew each time."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from triage_contract.api import TriageAgent, TriageRun, parse_agent, parse_run
from triage_contract.database.rows import AttemptRow
from triage_contract.exceptions import ApiError
from triage_contract.states import InDoubt, Outcome
from triage_operator.exceptions import KubeRefusedError, TornSnapshotError
from triage_operator.identity import run_row
from triage_operator.kube import Kube, Object
from triage_operator.lives import Lives
from triage_operator.node_taints import Taint, parting_taints
from triage_operator.places import AgentKey, Places
from triage_operator.revision import is_to_restart
from triage_operator.sightings import Sightings, belongs, epoch_of
from triage_operator.snapshot import Handovers, Refusal, Resize, Snapshot
from triage_operator.store import Store
from triage_operator.stored import Records, RunKey

AGENT_SECONDS: Final = 1.0
"""How long an agent that was read serves for its other runs: many start together. A change is told by a watch."""

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""Taint with which a person says that a node is shut down for good, so that nothing on it runs any more."""

_Agent = tuple[TriageAgent | None, str | None]
"""An agent, or why it cannot be used; twice None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A run, its object as read, its agent, its attempts, and then its pods.

    ``agent`` None: none, or an unusable one; see ``agent_error``.
    """

    key: RunKey
    agent_key: AgentKey
    raw: Object
    run: TriageRun
    agent: TriageAgent | None
    agent_error: str | None
    attempts: tuple[AttemptRow, ...]
    pods: tuple[Object, ...]

    @property
    def is_limited(self) -> bool:
        """Whether the run may have to wait for a place."""
        return self.agent is not None and self.agent.spec.concurrency.max_running is not None

    @property
    def in_doubt(self) -> InDoubt:
        """What becomes of undeclared calls in doubt; of an agent that is not there, nothing that cannot be undone."""
        return InDoubt.PARK if self.agent is None else self.agent.spec.resume.in_doubt


class Gatherer:
    """Builds snapshots."""

    def __init__(
        self,
        kube: Kube,
        store: Store,
        *,
        cluster_id: str,
        lives: Lives,
        places: Places,
        sightings: Sightings,
        refusals: Mapping[int, Refusal],
        resizes: Mapping[int, Resize],
    ) -> None:
        self._kube = kube
        self._store = store
        self._cluster_id = cluster_id
        self._lives = lives
        self._places = places
        self._sightings = sightings
        self._refusals = refusals
        self._resizes = resizes
        self._settled: set[str] = set()
        self._agents: dict[AgentKey, tuple[_Agent, float]] = {}
        self._changed: dict[AgentKey, float] = {}

    async def find(self, raw: Object) -> Found:
        """Read a run's object, its agent and its pods.

        Raises:
            ApiError: the run cannot be read; the message names the fields.
        """
        run = parse_run(raw)
        key = (run.metadata.namespace, run.metadata.name)
        agent_key = AgentKey(key[0], run.spec.agent_ref.name)
        (agent, error), (attempts, pods) = await asyncio.gather(self._agent(agent_key), self._pods(run))
        return Found(
            key=key,
            agent_key=agent_key,
            raw=raw,
            run=run,
            agent=agent,
            agent_error=error,
            attempts=attempts,
            pods=pods,
        )

    async def gather(self, found: Found) -> Snapshot:
        """Build the snapshot of a run.

        Its rows are read here, after its pods: what an attempt wrote must not be older than what its pod says of
        its end.

        Raises:
            TornSnapshotError: somebody else has made a pod since.
        """
        run, pods = found.run, found.pods
        records = await self._store.read(
            run_row(run, self._cluster_id),
            in_doubt=found.in_doubt,
            decided=[decision.call for decision in run.spec.decisions],
        )
        if _pods_of(found.attempts) != _pods_of(records.attempts):
            raise TornSnapshotError("another operator made a pod while this one observed the run")
        newest = records.attempts[-1] if records.attempts else None
        open_attempt = newest if newest is not None and newest.ended_at is None else None
        ours = {epoch_of(pod): pod for pod in pods if belongs(pod, run.metadata.uid)}
        last_words = self._sightings.last_words(found.key, run.metadata.uid)
        return Snapshot(
            now=records.now,
            run=run,
            agent=found.agent,
            agent_error=found.agent_error,
            row=records.row,
            attempts=records.attempts,
            fence=records.fence,
            judgement=records.judgement,
            journal=records.journal,
            repairs=records.repairs,
            calls=records.calls,
            issue=records.issue,
            pods=ours,
            last_pods={epoch: pod for epoch, pod in last_words.items() if epoch not in ours},
            foreign_pod=open_attempt is not None and _is_foreign(pods, ours, open_attempt),
            refusal=None if open_attempt is None else self._refusals.get(open_attempt.serial),
            resize=None if open_attempt is None else self._resizes.get(open_attempt.serial),
            parting_taints=await self._parting_taints(None if open_attempt is None else open_attempt.node),
            dead_nodes=frozenset([node async for node in self._dead_nodes(records)]),
            life=self._lives.sign(None if open_attempt is None else open_attempt.serial, records.now),
            running=records.running,
            ahead=self._places.ahead(found.agent_key, found.key, run.metadata.creation_timestamp),
            handovers=await self._handovers(found, records, ours),
        )

    async def _parting_taints(self, name: str | None) -> tuple[Taint, ...]:
        if name is None or name not in self._sightings.parting:
            return ()
        # Read anew: a watch may be late, and a run that left a node which stays would come back, and leave again.
        node = await self._find_node(name)
        return () if node is None else parting_taints(node)

    async def _dead_nodes(self, records: Records) -> AsyncIterator[str]:
        """Give the nodes out of service among those on which a call in doubt was begun."""
        doubts = () if records.judgement is None else records.judgement.doubts
        epochs = {doubt.epoch for doubt in doubts}
        for name in {
            attempt.node
            for attempt in records.attempts
            if attempt.epoch in epochs and attempt.confirmed_at is None and attempt.node is not None
        }:
            node = await self._find_node(name)
            taints = ((node or {}).get("spec") or {}).get("taints") or ()
            if any(taint["key"] == OUT_OF_SERVICE for taint in taints):
                yield name

    async def _find_node(self, name: str) -> Object | None:
        """Find a node; None: it is gone, or this operator may not read nodes, and others have to know."""
        try:
            return await self._kube.find_node(name)
        except KubeRefusedError:
            return None

    def forget_agent(self, key: AgentKey) -> None:
        """Have an agent read anew: it has changed."""
        self._agents.pop(key, None)
        self._changed[key] = time.monotonic()

    async def _agent(self, key: AgentKey) -> _Agent:
        """Read an agent, or take what was read just now for another of its runs."""
        now = time.monotonic()
        known, read_at = self._agents.get(key, (None, 0.0))
        if known is not None and now - read_at < AGENT_SECONDS:
            return known
        stored = await self._kube.get_agent(*key)
        if stored is None:
            return None, None
        try:
            agent: _Agent = parse_agent(stored), None
        except ApiError as unusable:
            agent = None, str(unusable)
        if now > self._changed.get(key, 0.0):
            # Else it may have been read before the change.
            self._agents[key] = agent, now
        return agent

    async def _pods(self, run: TriageRun) -> tuple[tuple[AttemptRow, ...], tuple[Object, ...]]:
        """Read the attempts, then the pods that can matter: the newest, and earlier ones until they are settled."""
        attempts = await self._store.attempts(UUID(run.metadata.uid))
        names = [
            attempt.pod
            for attempt in attempts
            if attempt.pod is not None and (attempt is attempts[-1] or not self._is_settled(attempt))
        ]
        read = await asyncio.gather(*(self._kube.get_pod(run.metadata.namespace, name) for name in names))
        pods = tuple(pod for pod in read if pod is not None)
        for pod in pods:
            self._sightings.pod(pod)
        return attempts, pods

    def _is_settled(self, attempt: AttemptRow) -> bool:
        unknown = attempt.outcome is Outcome.LOST and attempt.cause is None
        return attempt.pod_uid in self._settled and not unknown

    def settle(self, snapshot: Snapshot) -> None:
        """Take note of the pods about which nothing is left to decide, so that they need not be read again."""
        for attempt in snapshot.attempts:
            pod = snapshot.pods.get(attempt.epoch)
            if attempt.ended_at is not None and attempt.pod_uid and (pod is None or _is_over(pod)):
                self._settled.add(attempt.pod_uid)

    async def _handovers(self, found: Found, records: Records, pods: Mapping[int, Object]) -> Handovers:
        attempt = records.attempts[-1] if records.attempts else None
        pod = None if attempt is None else pods.get(attempt.epoch)
        if attempt is None or pod is None or found.agent is None or records.row is None:
            return Handovers()
        if not is_to_restart(attempt, pod, found.agent):
            return Handovers()
        between = await self._store.between(records.row)
        resting = {name for name in between if self._sightings.waits_for_person((found.key[0], name))}
        return Handovers(coming=between - resting, resting=frozenset(resting))

    def forget(self, attempts: Iterable[AttemptRow]) -> None:
        """Forget the pods of a run that is gone."""
        self._settled.difference_update(attempt.pod_uid for attempt in attempts if attempt.pod_uid)


def _pods_of(attempts: Iterable[AttemptRow]) -> list[tuple[int, str | None, str | None]]:
    return [(attempt.serial, attempt.pod, attempt.pod_uid) for attempt in attempts]


def _is_foreign(pods: Iterable[Object], ours: Mapping[int, Object], attempt: AttemptRow) -> bool:
    return attempt.epoch not in ours and any(pod["metadata"]["name"] == attempt.pod for pod in pods)


def _is_over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
