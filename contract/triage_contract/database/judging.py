"""The verdict on an invocation, from what the database holds of it."""

from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from triage_contract.database.rows import RunRow, SessionKey, session_params
from triage_contract.verdict import (
    EVENTS_POSTGRES,
    CallFacts,
    EventFacts,
    Judgement,
    Root,
    RunFacts,
    event_facts,
    verdict,
)

_CALLS: Final = text(
    "SELECT call_id, tool, state, kind FROM triage.tool_calls"
    " WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id"
    " AND invocation_id = :invocation_id ORDER BY begun_at"
)


async def judge(connection: AsyncConnection, run: RunRow) -> Judgement:
    """Judge a recorded run. Read it with a null token, or nothing keeps the verdict true."""
    events = await read_events(connection, run.session, run.invocation_id)
    calls = await _read_calls(connection, run)
    facts = RunFacts(root=None if run.root is None else Root.from_record(run.root))
    return verdict(events, facts, calls)


async def read_events(
    connection: AsyncConnection, session: SessionKey, invocation_id: str
) -> tuple[EventFacts, ...]:
    """Read the facts of an invocation's events, in their order."""
    params = {**session_params(session), "invocation_id": invocation_id}
    rows = (await connection.execute(EVENTS_POSTGRES, params)).scalars()
    return tuple(event_facts(row) for row in rows)


async def _read_calls(connection: AsyncConnection, run: RunRow) -> tuple[CallFacts, ...]:
    params = {**session_params(run.session), "invocation_id": run.invocation_id}
    return tuple(CallFacts.from_row(**row) for row in (await connection.execute(_CALLS, params)).mappings())
