"""The verdict on an invocation, from what the database holds of it."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from triage_contract.database.rows import RunRow, SessionKey, session_params
from triage_contract.states import InDoubt
from triage_contract.verdict import (
    CALLS,
    EVENTS_POSTGRES,
    CallFacts,
    EventFacts,
    Judgement,
    Root,
    RunFacts,
    event_facts,
    verdict,
)


async def judge(connection: AsyncConnection, run: RunRow, in_doubt: InDoubt = InDoubt.PARK) -> Judgement:
    """Judge a recorded run. Read it with a null token, or nothing keeps the verdict true."""
    events = await read_events(connection, run.session, run.invocation_id)
    calls = await _read_calls(connection, run)
    return judge_by(run, events, calls, in_doubt)


def judge_by(
    run: RunRow, events: Sequence[EventFacts], calls: Sequence[CallFacts], in_doubt: InDoubt
) -> Judgement:
    """Judge a recorded run by what was read of it."""
    facts = RunFacts(root=None if run.root is None else Root.from_record(run.root), in_doubt=in_doubt)
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
    return tuple(map(CallFacts.from_row, (await connection.execute(CALLS, params)).mappings()))
