"""What became of the runs, as the API server and the database show it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from triage_contract.database.reading import read_attempts
from triage_contract.database.rows import AttemptRow

Json = dict[str, Any]

_ISSUES: Final = text("SELECT number FROM triage.issues WHERE run_id = :id ORDER BY number")
_ALL_ISSUES: Final = text("SELECT count(*) FROM triage.issues")
_SUPPRESSED: Final = text(
    "SELECT coalesce(sum(suppressed_by_journal), 0) AS journal, coalesce(sum(suppressed_by_tracker), 0) AS tracker"
    " FROM triage.tool_calls WHERE session_id = :session"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSeen:
    """One attempt of a run."""

    cause: str | None
    """Why it was lost; None: it was not."""
    node: str | None
    memory_limit_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """One run at its end."""

    name: str
    phase: str | None
    """None: no operator has written a status."""
    attempts: tuple[AttemptSeen, ...]
    issue: str | None
    """What the status says."""
    issues: tuple[str, ...]
    """What the tracker has for this run."""
    suppressed: Mapping[str, int]
    """Repeated tool calls without a second effect, by what suppressed them."""
    recovery_seconds: tuple[float, ...]
    """For each loss that was made good, from the loss to the first thing that the next attempt stored."""
    decisions: tuple[str, ...] = ()
    """What a person decided about calls in doubt."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Why attempts were lost, the first one first."""
        return tuple(attempt.cause for attempt in self.attempts if attempt.cause is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand:
    """What the command line did."""

    refusal: str
    """What was said to a resume of a finished run; empty: it was not refused."""
    issues_without_key: int
    """Issues of one report after a crash and a resume without an idempotency key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that was observed."""

    runs: tuple[RunSeen, ...]
    stray_issues: int
    """Issues that belong to none of the runs."""
    by_hand: ByHand | None
    """None: it did not come to that."""
    metrics: str
    """What the operator exports; empty: it did not answer."""
    failures: tuple[str, ...] = field(default=())
    """What could not be done or did not come, each in a line."""


async def see_runs(
    engine: AsyncEngine,
    objects: Sequence[Json],
    losses: Mapping[str, datetime],
    archive: Sequence[Json],
) -> tuple[tuple[RunSeen, ...], int]:
    """Look at all runs.

    Args:
        engine: On the database.
        objects: The TriageRuns.
        losses: When a run was disturbed, by its name.
        archive: New issues in the file of issues.

    Returns:
        The runs, and the number of issues that belong to none of them.
    """
    async with engine.connect() as connection:
        runs = [await _see_run(connection, obj, losses, archive) for obj in objects]
        count = (await connection.execute(_ALL_ISSUES)).scalar_one()
    return tuple(runs), count + len(archive) - sum(len(run.issues) for run in runs)


async def _see_run(
    connection: AsyncConnection, obj: Json, losses: Mapping[str, datetime], archive: Sequence[Json]
) -> RunSeen:
    uid, name = UUID(obj["metadata"]["uid"]), obj["metadata"]["name"]
    status = obj.get("status") or {}
    attempts = await read_attempts(connection, uid)
    numbers = (await connection.execute(_ISSUES, {"id": uid})).scalars().all()
    # A key begins with the session that filed under it.
    filed = [issue["number"] for issue in archive if str(issue["key"]).startswith(f"run-{uid}/")]
    suppressed = (await connection.execute(_SUPPRESSED, {"session": f"run-{uid}"})).mappings().one()
    return RunSeen(
        name=name,
        phase=status.get("phase"),
        attempts=tuple(
            AttemptSeen(cause=attempt.cause, node=attempt.node, memory_limit_bytes=attempt.memory_limit_bytes)
            for attempt in attempts
        ),
        issue=status.get("issue"),
        issues=tuple(map(str, [*numbers, *filed])),
        suppressed=Counter({place: count for place, count in suppressed.items() if count}),
        recovery_seconds=_recoveries(attempts, losses.get(name)),
        decisions=tuple(decision["action"] for decision in obj["spec"].get("decisions") or ()),
    )


def _recoveries(attempts: Sequence[AttemptRow], disturbed_at: datetime | None) -> tuple[float, ...]:
    """From each loss to the next attempt's first write. A loss begins when we caused it, else when it was noticed."""
    seconds = []
    for lost, following in pairwise(attempts):
        caused_here = disturbed_at is not None and lost.created_at <= disturbed_at <= following.created_at
        began = disturbed_at if caused_here else lost.ended_at
        if began is not None and following.first_write_at is not None:
            seconds.append(round((following.first_write_at - began).total_seconds(), 3))
    return tuple(seconds)
