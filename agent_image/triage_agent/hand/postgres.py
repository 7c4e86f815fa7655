"""By hand on Postgres: the same claim, fence and journal as in a pod, with this process as its own operator."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from google.adk.apps.app import App
from google.adk.events.event import Event
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_agent.attempt.ending import Ending
from triage_agent.attempt.settings import AttemptSettings
from triage_agent.attempt.tail import Tail
from triage_agent.attempt.vitals import Vitals
from triage_agent.attempt.working import Interruptions, work
from triage_agent.exceptions import RefusedError
from triage_agent.hand.deciding import HOW_TO_GO_ON, Decisions, decide
from triage_agent.hand.identity import BY_HAND, new_session
from triage_agent.hand.refusing import refuse_unless_open
from triage_agent.replay.gate import Gate
from triage_agent.shapes import inspect_shape
from triage_contract.database.engine import open_engine, translated
from triage_contract.database.fence import NewAttempt, close_fence, open_attempt
from triage_contract.database.reading import read_events, read_fence
from triage_contract.database.rows import RunRow, SessionKey
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import SessionBusyError
from triage_contract.states import Outcome, RunState
from triage_contract.verdict import RunFacts, verdict

_SESSIONS: Final = text("SELECT app_name, user_id FROM sessions WHERE id = :session_id")
_RUN: Final = text(
    "SELECT * FROM triage.runs WHERE session_id = :session_id AND invocation_id = :invocation_id"
)
_END_ATTEMPT: Final = text(
    "UPDATE triage.attempts SET ended_at = clock_timestamp(), outcome = coalesce(outcome, :outcome)"
    " WHERE run_id = :run_id AND ended_at IS NULL"
)
_END_RUN: Final = text(
    "UPDATE triage.runs SET state = :state, ended_at = clock_timestamp() WHERE id = :run_id AND state = 'active'"
)
_REOPEN_RUN: Final = text("UPDATE triage.runs SET state = 'active', ended_at = NULL WHERE id = :run_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandSettings:
    """How a run by hand is carried out. ``on_event`` sees each event once it is stored.

    ``decisions`` are about calls that an earlier attempt left in doubt, and those that come to be so.
    """

    database: DatabaseUrl
    load: Callable[[], App]
    app_name: str
    on_event: Callable[[Event], None]
    decisions: Decisions = field(default_factory=Decisions)


async def start(settings: HandSettings, report: str, on_started: Callable[[RunRow], None]) -> Ending:
    """Start a run of its own session. ``on_started`` hears its ids before anything runs."""
    run = _new_run(new_session(settings.app_name), f"inv-{uuid4()}", report)
    on_started(run)
    engine = open_engine(settings.database, application="triage-by-hand")
    try:
        return await _work(settings, engine, run, observed_epoch=0)
    finally:
        await engine.dispose()


async def resume(settings: HandSettings, session_id: str, invocation_id: str) -> Ending:
    """Go on with an invocation, whoever started it: its fence is closed first, so that nobody else does.

    Raises:
        RefusedError: no such session, not an invocation of it, or one that needs no resume.
        InDoubtError: a call may have happened, and nobody decided what to do about it, or to give up.
        SessionBusyError: another run of the session is active.
    """
    engine = open_engine(settings.database, application="triage-by-hand")
    try:
        with translated(settings.database):
            run, is_new = await _find(engine, session_id, invocation_id)
            async with engine.connect() as connection:
                fence = await read_fence(connection, run.session)
            if fence is not None:
                await close_fence(engine, run.session, fence.epoch)
            if is_new:
                # Made without us: what its calls did is in no journal.
                async with engine.connect() as connection:
                    events = await read_events(connection, run.session, invocation_id)
                root = inspect_shape(settings.load(), {}).root
                judgement = verdict(events, RunFacts(root=root) if events else None, None)
            else:
                judgement = await decide(engine, run, settings.decisions)
            refuse_unless_open(judgement, session_id, invocation_id)
            await _reopen(engine, run)
        return await _work(settings, engine, run, observed_epoch=fence.epoch if fence else 0)
    finally:
        await engine.dispose()


async def _reopen(engine: AsyncEngine, run: RunRow) -> None:
    try:
        async with engine.begin() as connection:
            await connection.execute(_END_ATTEMPT, {"run_id": run.id, "outcome": Outcome.LOST})
            await connection.execute(_REOPEN_RUN, {"run_id": run.id})
    except IntegrityError as error:
        raise SessionBusyError(f"another run of session {run.session.session_id} is still active") from error


async def _work(settings: HandSettings, engine: AsyncEngine, run: RunRow, *, observed_epoch: int) -> Ending:
    with translated(settings.database):
        attempt = await open_attempt(
            engine,
            run,
            observed_epoch=observed_epoch,
            attempt=NewAttempt(pod=None, image=None, memory_limit_bytes=None),
        )
    loop = asyncio.get_running_loop()
    interruptions = Interruptions(gate=Gate(), fenced=asyncio.Event())

    def hand_off(_reason: str) -> None:
        loop.call_soon_threadsafe(interruptions.gate.shut)

    def lose() -> None:
        loop.call_soon_threadsafe(interruptions.fenced.set)

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)  # a second one ends the process
        interruptions.gate.shut()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, interruptions.gate.shut)
    attempt_settings = AttemptSettings(
        run_id=run.id,
        epoch=attempt.epoch,
        token=attempt.token,
        database=settings.database,
        app="",
        tools={},
        in_doubt=settings.decisions.in_doubt,
        grace_seconds=0.0,  # a person waits: for a call that has begun, but not for the model
        heartbeat_seconds=2.0,
        memory_limit_bytes=None,
        termination_log=Path("/dev/null"),
    )
    vitals = Vitals(attempt_settings, tail=Tail(), on_handoff=hand_off, on_fenced=lose)
    vitals.start()
    try:
        serial = await asyncio.to_thread(vitals.serial)
        ending = await work(
            attempt_settings,
            serial=serial,
            load=settings.load,
            interruptions=interruptions,
            on_event=settings.on_event,
        )
    finally:
        await asyncio.to_thread(vitals.stop)
    await _record(settings, engine, run, ending)
    if ending.outcome is Outcome.HANDED_OFF:
        again = f"triage resume {run.session.session_id} {run.invocation_id}"
        return Ending.of(Outcome.HANDED_OFF, f"stopped; `{again}` goes on")
    if ending.outcome is Outcome.IN_DOUBT:
        return Ending.of(Outcome.IN_DOUBT, f"{ending.message.rstrip('.')}; {HOW_TO_GO_ON}")
    return ending


async def _record(settings: HandSettings, engine: AsyncEngine, run: RunRow, ending: Ending) -> None:
    if ending.outcome is None:
        return  # another attempt has the run now
    with translated(settings.database):
        async with engine.begin() as connection:
            await connection.execute(_END_ATTEMPT, {"run_id": run.id, "outcome": ending.outcome})
            if ending.outcome is Outcome.FINISHED:
                await connection.execute(_END_RUN, {"run_id": run.id, "state": RunState.SUCCEEDED})


async def _find(engine: AsyncEngine, session_id: str, invocation_id: str) -> tuple[RunRow, bool]:
    """Find the run, or make a row for an invocation that has none; says whether it did."""
    params = {"session_id": session_id, "invocation_id": invocation_id}
    async with engine.connect() as connection:
        rows = (await connection.execute(_RUN, params)).mappings().all()
        sessions = (await connection.execute(_SESSIONS, params)).all()
    if len(rows) == 1:
        return RunRow.from_mapping(rows[0]), False
    if not rows and not sessions:
        raise RefusedError(f"there is no session {session_id!r}")
    if rows or len(sessions) > 1:
        raise RefusedError(f"session {session_id!r} exists for several apps or users")
    key = SessionKey(app_name=sessions[0].app_name, user_id=sessions[0].user_id, session_id=session_id)
    return _new_run(key, invocation_id, None), True


def _new_run(session: SessionKey, invocation_id: str, report: str | None) -> RunRow:
    run_id = uuid4()
    return RunRow(
        id=run_id,
        cluster_id=BY_HAND,
        namespace=BY_HAND,
        name=str(run_id),
        agent=BY_HAND,
        session=session,
        invocation_id=invocation_id,
        message=None if report is None else {"parts": [{"text": report}]},
        root=None,
        state=RunState.ACTIVE,
        reason=None,
        created_at=None,
        ended_at=None,
    )
