"""What the database keeps, as the operator reads and writes it."""

from dataclasses import dataclass
from datetime import datetime

from triage_contract.database.rows import AttemptRow, FenceRow, RunRow
from triage_contract.states import Cause, Outcome
from triage_contract.verdict import Judgement
from triage_operator.snapshot import CallCounts, JournaledCall, Repair

RunKey = tuple[str, str]
"""Namespace and name of a TriageRun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All that the database knows of a run, at ``now`` by its clock. ``row`` None: it was never recorded.

    ``judgement`` None: it was never recorded, or an attempt is open; then ``journal`` is empty, too.
    """

    now: datetime
    row: RunRow | None
    attempts: tuple[AttemptRow, ...]
    fence: FenceRow | None
    judgement: Judgement | None
    journal: tuple[JournaledCall, ...]
    repairs: tuple[Repair, ...]
    calls: CallCounts
    issue: str | None
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRun:
    """A run that is not over by its row.

    ``epoch`` is that of its newest attempt; None: none was made. ``open_serial`` None: none is open. ``node`` is
    that of the open attempt; None: none, or not known.
    """

    row: RunRow
    epoch: int | None
    open_serial: int | None
    node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """What the rows say of an agent.

    ``running`` counts its open attempts. ``undeclared`` are the tools of no declared kind that its newest run has or
    that were called in its newest runs; None: no attempt has told its tools, and none was called. ``fingerprint`` is
    that of the agent tree which the newest run began with; None: none has told it.
    """

    running: int
    undeclared: frozenset[str] | None
    fingerprint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Serials of the claimed attempts, at ``now`` by the database's clock.

    Those whose life lock is held, and whose is free; which sent no heartbeat for long; which gave their token
    up; which are near their memory limit, each with that limit in bytes; which are not their run's first and have
    written something.
    """

    now: datetime
    held: frozenset[int]
    free: frozenset[int]
    silent: frozenset[int]
    released: frozenset[int]
    cramped: frozenset[tuple[int, int]]
    resumed: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an attempt ended."""

    serial: int
    outcome: Outcome
    cause: Cause | None
    counted: bool
    exit_code: int | None
    confirmed: bool
    message: str
