"""The work of one attempt, from the claim to its outcome."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from google.adk.apps.app import App
from google.adk.events.event import Event
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_agent.attempt.ending import Ending
from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.running import (
    append_input,
    append_repair,
    open_session,
    run_events,
    stored_reply_keys,
)
from triage_agent.attempt.settings import AttemptSettings
from triage_agent.replay.gate import Gate
from triage_agent.replay.plugin import JournalPlugin
from triage_agent.replay.replies import ReplyBook
from triage_agent.replay.sessions import FencedSessionService
from triage_agent.shapes import inspect_shape, resumable
from triage_contract.database.engine import open_engine, translated
from triage_contract.database.judging import judge
from triage_contract.database.migrating import check_schema
from triage_contract.database.rows import RunRow
from triage_contract.exceptions import CallRunningError, TriageError
from triage_contract.states import ExitCode, Outcome, Verdict
from triage_contract.verdict import Judgement

logger = logging.getLogger(__name__)

_NOTHING_TO_RUN: Final = {
    Verdict.FINISHED: Outcome.FINISHED,
    Verdict.WAITING: Outcome.WAITING,
    Verdict.IN_DOUBT: Outcome.IN_DOUBT,
    Verdict.UNKNOWN: Outcome.UNKNOWN_INVOCATION,
    Verdict.ABORTED: Outcome.FAILED,
}
"""Verdicts with which an attempt leaves at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """What can end an attempt from outside. ``gate`` is shut for a hand-off; ``fenced`` set once it is not current."""

    gate: Gate
    fenced: asyncio.Event


async def work(
    settings: AttemptSettings,
    *,
    serial: int,
    load: Callable[[], App],
    interruptions: Interruptions,
    on_event: Callable[[Event], None],
) -> Ending:
    """Claim the attempt, then start its invocation, go on with it, or leave: the verdict says which.

    ``load`` gives the user's app, and is called after the claim, so that what is wrong with it can be recorded.
    """
    engine = open_engine(settings.database, application=f"triage-agent/{serial}", token=settings.token)
    record = AttemptRecord(engine, settings.database, serial=serial, token=settings.token)
    try:
        await check_schema(engine, settings.database)
        run = await record.claim()
        logger.info("claimed", extra={"action": "claim", "run": str(run.id), "epoch": settings.epoch})
        ending = await _ending(settings, engine, record, run, load, interruptions, on_event)
        return await _record_end(record, ending)
    except TriageError as error:
        return Ending.of_error(error)
    finally:
        await engine.dispose()


async def _ending(
    settings: AttemptSettings,
    engine: AsyncEngine,
    record: AttemptRecord,
    run: RunRow,
    load: Callable[[], App],
    interruptions: Interruptions,
    on_event: Callable[[Event], None],
) -> Ending:
    try:
        judgement = await _judge(engine, settings, run)
        if judgement.verdict in _NOTHING_TO_RUN:
            return _leaving(judgement)
        app = resumable(load())
        shape = inspect_shape(app, settings.tools)
        await record.record_root(shape.to_json())
        run = run if run.root is not None else replace(run, root=shape.to_json())
        service = FencedSessionService(engine, settings.database)
        session = await open_session(service, run.session)
        if run.message is not None:
            await append_input(service, session, run.invocation_id, run.message)
        if judgement.verdict is Verdict.WEDGED:
            logger.warning("repairing", extra={"action": "repair", "run": str(run.id), "why": judgement.why})
            await append_repair(service, session, run.invocation_id, judgement.calls)
        plugin = JournalPlugin(
            journal=record,
            replies=ReplyBook(run.invocation_id, await record.replies(), stored_reply_keys(session)),
            gate=interruptions.gate,
            declared=settings.tools,
        )
        running = asyncio.create_task(_run(app, service, run, plugin, on_event))
        interrupted = await _first(running, interruptions)
        if interrupted is not None:
            return interrupted
        return await _after(running, plugin, engine, settings, run)
    except TriageError as error:
        return Ending.of_error(error)


async def _run(
    app: App,
    service: FencedSessionService,
    run: RunRow,
    plugin: JournalPlugin,
    on_event: Callable[[Event], None],
) -> None:
    async for event in run_events(app, service, run.session, run.invocation_id, plugin):
        on_event(event)


async def _first(running: asyncio.Task[None], interruptions: Interruptions) -> Ending | None:
    """Wait for the run's end (None), or for what ends it before: a boundary after a hand-off, or a moved fence."""
    still = asyncio.create_task(interruptions.gate.stillness())
    fenced = asyncio.create_task(interruptions.fenced.wait())
    try:
        await asyncio.wait({running, still, fenced}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return None
        running.cancel()
        if fenced.done():
            return Ending(exit_code=ExitCode.FENCED, outcome=None, message="the fence moved")
        return Ending.of(Outcome.HANDED_OFF, "released at a step's boundary")
    finally:
        still.cancel()
        fenced.cancel()


async def _after(
    running: asyncio.Task[None],
    plugin: JournalPlugin,
    engine: AsyncEngine,
    settings: AttemptSettings,
    run: RunRow,
) -> Ending:
    error = running.exception()
    ours = plugin.failure or _error_of_ours(error)
    if ours is not None:
        return Ending.of_error(ours)
    if error is not None and plugin.model_failure is not None:
        return Ending.of_model_failure(plugin.model_failure)
    if error is not None:
        logger.error("the agent raised", extra={"action": "run", "run": str(run.id)}, exc_info=error)
        return Ending.of(Outcome.FAILED, f"the agent raised {type(error).__name__}: {error}")
    judgement = await _judge(engine, settings, run)
    if judgement.verdict in _NOTHING_TO_RUN:
        return _leaving(judgement, exit_code=None)
    if plugin.model_failure is not None:
        return Ending.of_model_failure(plugin.model_failure)
    return Ending.of(Outcome.FAILED, f"the agent stopped before its end: {judgement.why}")


async def _judge(engine: AsyncEngine, settings: AttemptSettings, run: RunRow) -> Judgement:
    with translated(settings.database):
        async with engine.connect() as connection:
            return await judge(connection, run)


def _leaving(judgement: Judgement, exit_code: ExitCode | None = ExitCode.ALREADY_FINISHED) -> Ending:
    ending = Ending.of(_NOTHING_TO_RUN[judgement.verdict], judgement.why)
    if judgement.verdict is Verdict.FINISHED and exit_code is not None:
        return Ending(exit_code=exit_code, outcome=ending.outcome, message=ending.message)
    return ending


async def _record_end(record: AttemptRecord, ending: Ending) -> Ending:
    """Write the outcome; a process that is fenced by then leaves as such."""
    if ending.outcome is None:
        return ending
    if ending.outcome is Outcome.HANDED_OFF:
        try:
            await record.release()
        except CallRunningError as error:
            return Ending(exit_code=ExitCode.HANDED_OFF, outcome=None, message=str(error))
        return ending
    failed = ending.exit_code is not ExitCode.FINISHED and ending.outcome is not Outcome.FINISHED
    await record.finish(
        ending.outcome,
        error=ending.message if failed else None,
        retry_after_seconds=ending.retry_after_seconds,
    )
    return ending


def _error_of_ours(error: BaseException | None) -> TriageError | None:
    """Find our error under whatever ADK wrapped around it."""
    while error is not None:
        if isinstance(error, TriageError):
            return error
        error = error.__cause__ or error.__context__
    return None
