"""By hand on SQLite: verdict and tracker key, but no fence and no journal. One process at a time."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from google.adk.apps.app import App
from google.adk.events.event import Event
from sqlalchemy import text

from triage_agent.attempt.ending import Ending
from triage_agent.attempt.running import append_input, append_repair, open_session, run_events
from triage_agent.exceptions import RefusedError
from triage_agent.hand.identity import new_session
from triage_agent.replay.gate import Gate
from triage_agent.replay.journal import NoJournal
from triage_agent.replay.plugin import JournalPlugin
from triage_agent.replay.replies import ReplyBook
from triage_agent.replay.sessions import StorableSessionService
from triage_agent.shapes import inspect_shape, resumable
from triage_contract.database.rows import SessionKey, session_params
from triage_contract.states import Outcome, Verdict
from triage_contract.verdict import EVENTS_SQLITE, Judgement, RunFacts, event_facts, verdict

_SESSIONS: Final = text("SELECT app_name, user_id FROM sessions WHERE id = :session_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteRun:
    """An invocation in a SQLite file. ``url`` is SQLAlchemy's; ``on_event`` sees each event once it is stored."""

    url: str
    app: App
    on_event: Callable[[Event], None]


async def start(run: SqliteRun, report: str, on_started: Callable[[str, str], None]) -> Ending:
    """Start a session of its own. ``on_started`` hears session and invocation id before anything runs."""
    key, invocation_id = new_session(run.app.name), f"inv-{uuid4()}"
    on_started(key.session_id, invocation_id)
    async with _opened(StorableSessionService(run.url)) as service:
        return await _go_on(run, service, key, invocation_id, report)


async def resume(run: SqliteRun, session_id: str, invocation_id: str) -> Ending:
    """Go on with an invocation.

    Raises:
        RefusedError: no such session, not an invocation of it, or one that needs no resume.
    """
    async with _opened(StorableSessionService(run.url)) as service:
        async with service.db_engine.connect() as connection:
            sessions = (await connection.execute(_SESSIONS, {"session_id": session_id})).all()
        if len(sessions) != 1:
            raise RefusedError(
                f"session {session_id!r} exists for several apps or users"
                if sessions
                else f"there is no session {session_id!r}"
            )
        key = SessionKey(app_name=sessions[0].app_name, user_id=sessions[0].user_id, session_id=session_id)
        judgement = await _judge(run, service, key, invocation_id)
        if judgement.verdict is Verdict.NOT_STARTED:
            raise RefusedError(f"invocation {invocation_id!r} is not in session {session_id!r}")
        if judgement.verdict in (Verdict.FINISHED, Verdict.ABORTED, Verdict.WAITING):
            raise RefusedError(f"invocation {invocation_id} is {judgement.verdict}: {judgement.why}")
        if judgement.verdict is Verdict.WEDGED:
            session = await open_session(service, key)
            await append_repair(service, session, invocation_id, judgement.calls)
        return await _go_on(run, service, key, invocation_id, None)


@asynccontextmanager
async def _opened(service: StorableSessionService) -> AsyncIterator[StorableSessionService]:
    """Create the tables where they are missing, and close the file at the end."""
    try:
        await service.prepare_tables()
        yield service
    finally:
        await service.close()


async def _go_on(
    run: SqliteRun, service: StorableSessionService, key: SessionKey, invocation_id: str, report: str | None
) -> Ending:
    app = resumable(run.app)
    session = await open_session(service, key)
    if report is not None:
        await append_input(service, session, invocation_id, {"parts": [{"text": report}]})
    plugin = JournalPlugin(
        journal=NoJournal(), replies=ReplyBook(invocation_id, (), ()), gate=Gate(), declared={}
    )
    try:
        async for event in run_events(app, service, key, invocation_id, plugin):
            run.on_event(event)
    # Whatever a model or a tool raised: it is the run's end, and told as such.
    except Exception as error:
        if plugin.model_failure is not None:
            return Ending.of_model_failure(plugin.model_failure)
        return Ending.of(Outcome.FAILED, f"{type(error).__name__}: {error}")
    judgement = await _judge(run, service, key, invocation_id)
    if judgement.verdict is Verdict.FINISHED:
        return Ending.of(Outcome.FINISHED, judgement.why)
    return Ending.of(Outcome.FAILED, judgement.why)


async def _judge(
    run: SqliteRun, service: StorableSessionService, key: SessionKey, invocation_id: str
) -> Judgement:
    params = {**session_params(key), "invocation_id": invocation_id}
    async with service.db_engine.connect() as connection:
        rows = (await connection.execute(EVENTS_SQLITE, params)).scalars().all()
    root = inspect_shape(run.app, {}).root
    return verdict([event_facts(row) for row in rows], RunFacts(root=root), None)
