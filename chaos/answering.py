"""A person who answers what an agent waits for, behind a fence of the person's own."""

from collections.abc import Iterable
from typing import Any

from google.adk.events.event import Event
from google.adk.platform.time import get_time
from google.genai.types import Content, FunctionResponse, Part
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_agent.attempt.running import open_session
from triage_agent.replay.sessions import FencedSessionService
from triage_contract.database.engine import open_engine
from triage_contract.database.fence import NewAttempt, close_fence, open_attempt
from triage_contract.database.rows import RunRow
from triage_contract.database.url import DatabaseUrl
from triage_contract.verdict import Call


async def answer(
    engine: AsyncEngine, run: RunRow, epoch: int, calls: Iterable[Call], url: DatabaseUrl
) -> int:
    """Answer each call where its agent looks; gives the epoch that this took."""
    nobody = NewAttempt(pod=None, image=None, memory_limit_bytes=None)
    opened = await open_attempt(engine, run, observed_epoch=epoch, attempt=nobody)
    own = open_engine(url, application="chaos-person", token=opened.token, pool_size=1)
    try:
        service = FencedSessionService(own, url)
        session = await open_session(service, run.session)
        for call in calls:
            part = Part(
                function_response=FunctionResponse(id=call.id, name=call.name, response=_response(call))
            )
            event = Event(
                invocation_id=run.invocation_id,
                author="user",
                branch=call.branch or None,
                isolation_scope=call.scope or None,
                content=Content(role="user", parts=[part]),
                timestamp=get_time(),
            )
            await service.append_event(session, event)
    finally:
        await own.dispose()
    await close_fence(engine, run.session, opened.epoch)
    return opened.epoch


def _response(call: Call) -> dict[str, Any]:
    return {"confirmed": True} if call.gate else {"approved": True}
