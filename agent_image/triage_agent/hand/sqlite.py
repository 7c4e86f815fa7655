"""By hand on SQLite: verdict and tracker key, but no fence and no journal. One process at a time."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from google.adk.apps.app import App
from google.adk.events.event import Event
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from triage_agent.attempt.ending import Ending
from triage_agent.attempt.repairing import OUTCOME_UNKNOWN, answer
from triage_agent.attempt.running import append_input, open_session, run_events
from triage_agent.exceptions import ConfigurationError, RefusedError
from triage_agent.hand.identity import new_session
from triage_agent.hand.refusing import refuse_unless_open
from triage_agent.redacting import redacted
from triage_agent.replay.gate import Gate
from triage_agent.replay.journal import NoJournal
from triage_agent.replay.plugins import replaying_plugins
from triage_agent.replay.replies import ReplyBook
from triage_agent.replay.sessions import StorableSessionService
from triage_agent.replay.trouble import Trouble
from triage_agent.shapes import inspect_shape, resumable
from triage_contract.database.reading import EVENTS_SQLITE
from triage_contract.database.rows import SessionKey, session_params
from triage_contract.names import DocsEnv
from triage_contract.states import Outcome, Verdict
from triage_contract.verdict import Judgement, RunFacts, event_facts, verdict

LIMITS: Final = "SQLite keeps no fence and no journal: run one process at a time, and use Postgres for more."

_TABLES: Final = text("SELECT count(*) FROM sqlite_master WHERE name IN ('sessions', 'events')")
_SESSIONS: Final = text("SELECT app_name, user_id FROM sessions WHERE id = :session_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteRun:
    """An invocation in a SQLite file.

    ``url`` is SQLAlchemy's, with its driver. ``on_event`` sees each event once it is stored, ``warn`` hears what
    SQLite does not do.
    """

    url: str
    app: App
    on_event: Callable[[Event], None]
    warn: Callable[[str], None]


def sqlite_url(given: str) -> str:
    """Complete a ``sqlite:///FILE`` with the driver.

    Raises:
        ConfigurationError: it is something else.
    """
    try:
        url = make_url(given)
    except ArgumentError:
        url = None
    if url is None or url.get_backend_name() != "sqlite":
        raise ConfigurationError(f"{DocsEnv.DB} is {given!r}: expected sqlite:///FILE")
    return url.set(drivername="sqlite+aiosqlite").render_as_string(hide_password=False)


async def start(run: SqliteRun, report: str, on_started: Callable[[str, str], None]) -> Ending:
    """Start a session of its own. ``on_started`` hears session and invocation id before anything runs."""
    key, invocation_id = new_session(run.app.name), f"inv-{uuid4()}"
    async with _opened(run) as service:
        await service.prepare_tables()
        on_started(key.session_id, invocation_id)
        return await _go_on(run, service, key, invocation_id, report)


async def resume(run: SqliteRun, session_id: str, invocation_id: str) -> Ending:
    """Go on with an invocation.

    Raises:
        RefusedError: no such session, not an invocation of it, or one that needs no resume.
    """
    if not _exists(run.url):  # opening it would create it
        raise RefusedError(f"there is no session {session_id!r}")
    async with _opened(run) as service:
        key = await _find(service, session_id)
        judgement = await _judge(run, service, key, invocation_id)
        refuse_unless_open(judgement, session_id, invocation_id)
        if judgement.verdict is Verdict.WEDGED:
            session = await open_session(service, key)
            for call in judgement.calls:  # without a journal nobody knows which of them ran
                await service.append_event(session, answer(invocation_id, call, OUTCOME_UNKNOWN))
        return await _go_on(run, service, key, invocation_id, None)


def _exists(url: str) -> bool:
    path = make_url(url).database
    return bool(path) and Path(str(path)).exists()


@asynccontextmanager
async def _opened(run: SqliteRun) -> AsyncIterator[StorableSessionService]:
    path = make_url(run.url).database or ":memory:"
    try:
        # Where the file cannot be opened, aiosqlite leaves a thread behind that outlives the event loop: try it here.
        with closing(sqlite3.connect(path)):
            pass
    except sqlite3.Error as error:
        raise _unusable(path, error) from error
    service = StorableSessionService(run.url)
    try:
        yield service
    except DBAPIError as error:
        raise _unusable(path, error.orig) from error
    finally:
        await service.close()


def _unusable(path: str, reason: BaseException | None) -> ConfigurationError:
    return ConfigurationError(f"{DocsEnv.DB} is the SQLite file {path}: {reason}")


async def _find(service: StorableSessionService, session_id: str) -> SessionKey:
    async with service.db_engine.connect() as connection:
        is_ours = (await connection.execute(_TABLES)).scalar_one() == 2
        found = (await connection.execute(_SESSIONS, {"session_id": session_id})).all() if is_ours else []
    if len(found) != 1:
        raise RefusedError(
            f"session {session_id!r} exists for several apps or users"
            if found
            else f"there is no session {session_id!r}"
        )
    return SessionKey(app_name=found[0].app_name, user_id=found[0].user_id, session_id=session_id)


async def _go_on(
    run: SqliteRun, service: StorableSessionService, key: SessionKey, invocation_id: str, report: str | None
) -> Ending:
    run.warn(LIMITS)
    session = await open_session(service, key)
    if report is not None:
        await append_input(service, session, invocation_id, {"parts": [{"text": report}]})
    trouble = Trouble()
    plugins = replaying_plugins(
        journal=NoJournal(),
        replies=ReplyBook(invocation_id, (), ()),
        declared={},
        gate=Gate(),
        trouble=trouble,
    )
    raised: Exception | None = None
    try:
        async for event in run_events(resumable(run.app), service, key, invocation_id, plugins):
            run.on_event(event)
    # Whatever a model or a tool raised: it is the run's end, and told as such.
    except Exception as error:  # noqa: BLE001
        raised = error
    if (ours := trouble.error_behind(raised)) is not None:
        return Ending.of_error(ours)
    if raised is not None:
        failure = trouble.model_failure_behind(raised)
        if failure is not None:
            return Ending.of_model_failure(failure)
        return Ending.of(Outcome.FAILED, redacted(f"the agent raised {type(raised).__name__}: {raised}"))
    judgement = await _judge(run, service, key, invocation_id)
    outcome = Outcome.FINISHED if judgement.verdict is Verdict.FINISHED else Outcome.FAILED
    return Ending.of(outcome, judgement.why)


async def _judge(
    run: SqliteRun, service: StorableSessionService, key: SessionKey, invocation_id: str
) -> Judgement:
    params = {**session_params(key), "invocation_id": invocation_id}
    async with service.db_engine.connect() as connection:
        rows = (await connection.execute(EVENTS_SQLITE, params)).scalars().all()
    root = inspect_shape(run.app, {}).root
    # No row of a run says that an invocation without events was ever asked for.
    return verdict([event_facts(row) for row in rows], RunFacts(root=root) if rows else None, None)
