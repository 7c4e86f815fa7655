"""The work of one attempt, from the claim to its outcome."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.session import Session

from triage_agent.attempt.ending import Ending
from triage_agent.attempt.recognising import recognise_agents, recognise_root
from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.repairing import answers
from triage_agent.attempt.running import (
    append_input,
    open_runner,
    open_session,
    run_invocation,
    stored_reply_keys,
)
from triage_agent.attempt.sessions import AttemptSessionService
from triage_agent.attempt.settings import AttemptSettings
from triage_agent.attempt.settling import settle
from triage_agent.current import CURRENT_ATTEMPT, CurrentAttempt
from triage_agent.exceptions import InDoubtError
from triage_agent.kinds import EFFECT_SESSION
from triage_agent.redacting import redacted
from triage_agent.replay.gate import Gate
from triage_agent.replay.plugins import replaying_plugins
from triage_agent.replay.replies import ReplyBook
from triage_agent.replay.trouble import Trouble
from triage_agent.shapes import inspect_shape, resumable
from triage_contract.database.judging import judge_by
from triage_contract.database.migrating import check_schema
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.rows import RunRow
from triage_contract.exceptions import CallRunningError, TriageError
from triage_contract.states import ExitCode, Outcome, Verdict
from triage_contract.verdict import EVENTS_PREPARED, Judgement, Remedy, event_facts

logger = logging.getLogger(__name__)

RELEASE_SECONDS: Final = 5.0
"""What of the grace period is left for the release and the end of the process."""

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
    configure: Callable[[], RunConfig | None] = lambda: None,
) -> Ending:
    """Claim the attempt, then start its invocation, go on with it, or leave: the verdict says which.

    ``load`` gives the user's app, and is called after the claim, so that what is wrong with it can be recorded.
    ``configure`` then says how it wants to be run; None: as ADK runs it by default.
    """
    CURRENT_ATTEMPT.set(CurrentAttempt(serial=serial, token=settings.token))
    application = f"triage-agent/{serial}"
    connection = PreparedConnection(settings.database, application=application)
    work = _Work(
        settings=settings,
        application=application,
        connection=connection,
        record=AttemptRecord(connection, serial=serial, token=settings.token),
        interruptions=interruptions,
        on_event=on_event,
    )
    try:
        await check_schema(connection, settings.database)
        run = await work.record.claim()
        logger.info("claimed", extra={"action": "claim", "run": str(run.id), "epoch": settings.epoch})
        return await work.record_end(await work.carry_out(run, load, configure))
    except TriageError as error:
        return Ending.of_error(error)
    finally:
        await work.clear_up()
        await connection.close()


@dataclass(slots=True, kw_only=True)
class _Work:
    settings: AttemptSettings
    application: str
    connection: PreparedConnection
    record: AttemptRecord
    interruptions: Interruptions
    on_event: Callable[[Event], None]
    trouble: Trouble = field(default_factory=Trouble)
    running: asyncio.Task[Ending | None] | None = None
    service: AttemptSessionService | None = None

    async def carry_out(
        self, run: RunRow, load: Callable[[], App], configure: Callable[[], RunConfig | None]
    ) -> Ending:
        """Do what the verdict asks for."""
        try:
            judgement = await self._judge(run)
            if (nothing := _nothing_to_run(judgement)) is not None:
                return nothing
            if self.interruptions.gate.is_shut:
                return Ending.of(Outcome.HANDED_OFF, "released before anything began")
            app = resumable(load())
            shape = inspect_shape(app, self.settings.tools)
            recognise_root(run.root, shape.root)
            await self.record.record_root(shape.to_json())
            run = run if run.root is not None else replace(run, root=shape.to_json())
            self.running = asyncio.create_task(self._run(app, run, judgement, configure()))
            return await self._interruption() or await self._after(self.running, run)
        except TriageError as error:
            return Ending.of_error(error)

    async def record_end(self, ending: Ending) -> Ending:
        """Write the outcome; a process that is fenced by then leaves as such."""
        if ending.outcome is None:
            return ending
        if ending.outcome is Outcome.HANDED_OFF:
            try:
                await self.record.release()
            except CallRunningError as error:
                return Ending(exit_code=ExitCode.HANDED_OFF, outcome=None, message=str(error))
            return ending
        await self.record.finish(
            ending.outcome,
            error=None if ending.outcome is Outcome.FINISHED else ending.message,
            retry_after_seconds=ending.retry_after_seconds,
        )
        return ending

    async def clear_up(self) -> None:
        """See a run that was left off to its end: it closes what its tools hold open."""
        if self.running is not None:
            self.running.cancel()
            await asyncio.wait({self.running}, timeout=RELEASE_SECONDS)
        if self.service is not None:
            await self.service.close()

    async def _run(
        self, app: App, run: RunRow, judgement: Judgement, config: RunConfig | None
    ) -> Ending | None:
        """Bring the invocation to its end (None), or to where only others can go on with it."""
        EFFECT_SESSION.set(run.session.session_id)
        assert app.root_agent is not None
        if judgement.verdict is Verdict.IN_DOUBT:
            said = await settle(app.root_agent, run.session.session_id, judgement.doubts, self.record)
            judgement = await self._judge(run)
            if judgement.verdict is Verdict.IN_DOUBT:
                raise InDoubtError(f"{judgement.why} {said}")
        service = self.service = AttemptSessionService(
            self.settings.database,
            application=self.application,
            token=self.settings.token,
            record=self.record,
            own=run.session,
        )
        session = await open_session(service, run.session)
        recognise_agents(app.root_agent, session, run.invocation_id)
        if run.message is not None:
            await append_input(service, session, run.invocation_id, run.message)
        plugins = replaying_plugins(
            journal=self.record,
            replies=ReplyBook(run.invocation_id, await self.record.replies(), stored_reply_keys(session)),
            declared=self.settings.tools,
            gate=self.interruptions.gate,
            trouble=self.trouble,
            in_doubt=self.settings.in_doubt,
        )
        async with open_runner(app, service, run.session, plugins) as runner:
            if judgement.verdict is Verdict.WEDGED:
                await self._repair(runner, session, run, judgement)
                if (nothing := _nothing_to_run(await self._judge(run))) is not None:
                    return nothing
            service.hand_over(session)
            async for event in run_invocation(runner, run.session, run.invocation_id, config):
                self.on_event(event)
        return None

    async def _repair(self, runner: Runner, session: Session, run: RunRow, judgement: Judgement) -> None:
        """Bring the calls to an end that ADK would pass over, and note each for the operator."""
        logger.warning("repairing", extra={"action": "repair", "run": str(run.id), "why": judgement.why})
        async for event in answers(runner, session, run.invocation_id, judgement.calls):
            self.on_event(await runner.session_service.append_event(session, event))
        for call in judgement.calls:
            message = (
                f"ADK would not have run call {call.id} of {call.name} any more: it was brought to its end."
            )
            await self.record.note_repair(call.id, message)

    async def _interruption(self) -> Ending | None:
        """Wait for the run's end (None), or for what ends it before: a hand-off, or a moved fence."""
        assert self.running is not None
        patience_seconds = max(0.0, self.settings.grace_seconds - RELEASE_SECONDS)
        still = asyncio.create_task(self.interruptions.gate.stillness(patience_seconds))
        fenced = asyncio.create_task(self.interruptions.fenced.wait())
        try:
            await asyncio.wait({self.running, still, fenced}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            still.cancel()
            fenced.cancel()
        if self.running.done():
            return None
        self.running.cancel()
        if fenced.done():
            return Ending(exit_code=ExitCode.FENCED, outcome=None, message="the fence moved")
        return Ending.of(Outcome.HANDED_OFF, "released between two steps")

    async def _after(self, running: asyncio.Task[Ending | None], run: RunRow) -> Ending:
        if running.cancelled():
            return Ending.of(Outcome.FAILED, "the agent cancelled itself")
        raised = running.exception()
        ours = self.trouble.error_behind(raised)
        if ours is not None:
            return Ending.of_error(ours)
        if raised is not None:
            failure = self.trouble.model_failure_behind(raised)
            if failure is not None:
                return Ending.of_model_failure(failure)
            logger.error("the agent raised", extra={"action": "run", "run": str(run.id)}, exc_info=raised)
            return Ending.of(Outcome.FAILED, redacted(f"the agent raised {type(raised).__name__}: {raised}"))
        if (ending := running.result()) is not None:
            return ending
        judgement = await self._judge(run)
        if judgement.verdict in _NOTHING_TO_RUN:
            return Ending.of(_NOTHING_TO_RUN[judgement.verdict], judgement.why)
        return Ending.of(Outcome.FAILED, f"the agent stopped before its end: {_described(judgement)}")

    async def _judge(self, run: RunRow) -> Judgement:
        key = run.session
        rows = await self.connection.fetch(
            EVENTS_PREPARED, key.app_name, key.user_id, key.session_id, run.invocation_id
        )
        events = [event_facts(json.loads(row["event"])) for row in rows]
        return judge_by(run, events, await self.record.calls(), self.settings.in_doubt)


def _nothing_to_run(judgement: Judgement) -> Ending | None:
    """Leave at once with this; None: there is something to run."""
    if judgement.verdict is Verdict.FINISHED:
        return Ending(exit_code=ExitCode.ALREADY_FINISHED, outcome=Outcome.FINISHED, message=judgement.why)
    if any(doubt.remedy is Remedy.ASK for doubt in judgement.doubts):
        return None
    if judgement.verdict in _NOTHING_TO_RUN:
        return Ending.of(_NOTHING_TO_RUN[judgement.verdict], judgement.why)
    if judgement.sealed:
        return Ending.of(Outcome.FAILED, _described(judgement))
    return None


def _described(judgement: Judgement) -> str:
    if judgement.error_code is None:
        return judgement.why
    return redacted(f"{judgement.why} {judgement.error_code}: {judgement.error_message or 'no message'}")
