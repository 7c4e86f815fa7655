"""What one reconcile knows: gathered once, then frozen. No clock, client or database is read below it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from triage_contract.api import TriageAgent, TriageRun
from triage_contract.database.rows import AttemptRow, FenceRow, RunRow
from triage_contract.verdict import Judgement
from triage_operator.node_taints import Taint

Pod = Mapping[str, Any]
"""A pod as the API server gives it, in JSON's own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts:
    """The run's tool calls by state, and the duplicates that were suppressed."""

    begun: int
    done: int
    suppressed_by_journal: int
    suppressed_by_tracker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledCall:
    """A call that began and did not end, or about which a person decided.

    ``key`` names it in decisions; ``epoch`` is that of the attempt that began it last, for the ``begun_times``-th time.
    ``state``, ``kind`` and ``doubt`` are as the row holds them, maybe of a later release. ``arguments`` are JSON, cut.
    ``doubt_message`` is what the agent learned of it. ``cleared``: it may run again. ``decided``: a person settled it.
    """

    key: str
    tool: str
    kind: str
    state: str
    epoch: int
    arguments: str
    begun_at: datetime
    begun_times: int
    doubt: str | None
    doubt_message: str | None
    cleared: bool
    decided: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A session was put right by an attempt before ADK went on with it."""

    id: int
    epoch: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeSign:
    """Signs of life of the open attempt beside its pod, by the database's clock.

    ``lock_free_since`` is when the operator first saw the attempt's advisory lock free; None: held, or not
    looked at. ``reachable_since`` is since when the operator itself has reached the database without a gap: a
    heartbeat counts as lapsed only over a span in which it could have been seen.
    """

    lock_free_since: datetime | None
    reachable_since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The API server refused the open attempt's pod, in its own words.

    ``passing``: for want of room, such as a quota, which others give back; else something has to be changed.
    """

    message: str
    at: datetime
    passing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """A memory limit that this operator asked for the open attempt's running pod, at ``at`` by the database's clock.

    ``refusal`` is what the API server said to it; None: it took the request. ``binds_next``: it would say so of the
    next attempt's pod as well.
    """

    limit_bytes: int
    at: datetime
    refusal: str | None
    binds_next: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Handovers:
    """The names of the other runs of the agent that are between two attempts for a rollout: an attempt of theirs was
    asked to hand off, and no later one has written anything yet.

    ``coming``: the next attempt goes on by itself. ``resting``: it waits for a person, and the rollout not for it.
    """

    coming: frozenset[str] = frozenset()
    resting: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a decision about one run may depend on.

    ``now`` is by the database's clock, as the times in rows are. ``agent`` None: no such TriageAgent, or one
    that cannot be read (``agent_error`` says which). ``row`` None: the run was never recorded. ``judgement``
    None: no row, or an attempt is open, which may change it at any moment; then ``journal`` is empty, too. It
    holds the calls that did not end, and those named in ``spec.decisions``. ``repairs`` are those of the last
    hour. ``pods`` are the run's pods by epoch, found by their labels; ``last_pods`` is the last that was seen of
    those that are gone, as far as this operator saw any. ``issue`` is the number of the issue that the run filed,
    by the journaled result of its tool call. ``foreign_pod``: another's pod stands under the name that the open
    attempt's pod should have. ``refusal`` None: the open attempt's pod was not refused, as far as this operator
    knows; ``resize`` None: it asked for no other memory limit. ``parting_taints`` are those by which the node of
    the open attempt's pod is about to go; ``dead_nodes`` are those of attempts with calls in doubt that a person
    has declared out of service. ``running`` counts open attempts of the same agent in the namespace; ``ahead`` the
    runs of that agent that wait for a place and came before. ``handovers`` are read only where the open attempt
    is to be replaced itself.

    Pods are read before rows: what an attempt wrote must not be older here than what its pod says of its end.
    """

    now: datetime
    run: TriageRun
    agent: TriageAgent | None
    agent_error: str | None
    row: RunRow | None
    attempts: tuple[AttemptRow, ...]
    fence: FenceRow | None
    judgement: Judgement | None
    journal: tuple[JournaledCall, ...]
    repairs: tuple[Repair, ...]
    calls: CallCounts
    issue: str | None
    pods: Mapping[int, Pod]
    last_pods: Mapping[int, Pod]
    foreign_pod: bool
    refusal: Refusal | None
    resize: Resize | None
    parting_taints: tuple[Taint, ...]
    dead_nodes: frozenset[str]
    life: LifeSign
    running: int
    ahead: int
    handovers: Handovers

    def pod_of(self, attempt: AttemptRow) -> Pod | None:
        """Give an attempt's pod; None: it is gone, or was not made. One with its labels and another UID is a copy."""
        pod = self.pods.get(attempt.epoch)
        if pod is None or attempt.pod_uid not in (None, pod["metadata"]["uid"]):
            return None
        return pod

    @property
    def newest(self) -> AttemptRow | None:
        """The newest attempt; None: none was made."""
        return self.attempts[-1] if self.attempts else None

    @property
    def open_attempt(self) -> AttemptRow | None:
        """The attempt that has not ended in our books; None: all have."""
        newest = self.newest
        return None if newest is None or newest.ended_at is not None else newest
