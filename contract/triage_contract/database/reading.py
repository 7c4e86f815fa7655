"""Reading rows, and what a verdict goes by, on SQLAlchemy's connections."""

from typing import Final
from uuid import UUID

from sqlalchemy import JSON, text
from sqlalchemy.ext.asyncio import AsyncConnection

from triage_contract.database.judging import judge_by
from triage_contract.database.rows import AttemptRow, FenceRow, RunRow, SessionKey, session_params
from triage_contract.states import InDoubt
from triage_contract.verdict import (
    CALLS,
    EVENTS,
    WHOLE_EVENTS,
    CallFacts,
    EventFacts,
    Judgement,
    event_facts,
)

_RUN: Final = text("SELECT * FROM triage.runs WHERE id = :id")
_ATTEMPTS: Final = text("SELECT * FROM triage.attempts WHERE run_id = :id ORDER BY epoch")
_FENCE: Final = text(
    "SELECT epoch, token FROM triage.fences"
    " WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id"
)

EVENTS_POSTGRES: Final = text(EVENTS).columns(event=JSON)
EVENTS_SQLITE: Final = text(WHOLE_EVENTS).columns(event=JSON)
_CALLS: Final = text(CALLS)


async def read_run(connection: AsyncConnection, run_id: UUID) -> RunRow | None:
    """Read a run's row; None: there is none."""
    row = (await connection.execute(_RUN, {"id": run_id})).mappings().one_or_none()
    return None if row is None else RunRow.from_mapping(row)


async def read_attempts(connection: AsyncConnection, run_id: UUID) -> tuple[AttemptRow, ...]:
    """Read a run's attempts, the oldest first."""
    rows = (await connection.execute(_ATTEMPTS, {"id": run_id})).mappings()
    return tuple(AttemptRow.from_mapping(row) for row in rows)


async def read_fence(connection: AsyncConnection, session: SessionKey) -> FenceRow | None:
    """Read a session's fence; None: no run ever touched the session."""
    row = (await connection.execute(_FENCE, session_params(session))).mappings().one_or_none()
    return None if row is None else FenceRow(**row)


async def judge(connection: AsyncConnection, run: RunRow, in_doubt: InDoubt = InDoubt.PARK) -> Judgement:
    """Judge a recorded run. Read it with a null token, or nothing keeps the verdict true."""
    events = await read_events(connection, run.session, run.invocation_id)
    calls = await _read_calls(connection, run)
    return judge_by(run, events, calls, in_doubt)


async def read_events(
    connection: AsyncConnection, session: SessionKey, invocation_id: str
) -> tuple[EventFacts, ...]:
    """Read the facts of an invocation's events, in their order."""
    params = {**session_params(session), "invocation_id": invocation_id}
    rows = (await connection.execute(EVENTS_POSTGRES, params)).scalars()
    return tuple(event_facts(row) for row in rows)


async def _read_calls(connection: AsyncConnection, run: RunRow) -> tuple[CallFacts, ...]:
    params = {**session_params(run.session), "invocation_id": run.invocation_id}
    return tuple(map(CallFacts.from_row, (await connection.execute(_CALLS, params)).mappings()))
