"""Postgres goes away in the middle of an attempt, for a moment or for longer."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.tool_context import ToolContext

from support.databases import Database, a_run
from support.killing import Agent, ended
from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, say
from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.sessions import AttemptSessionService
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUnreachableError
from triage_contract.states import ExitCode, Outcome
from triage_local.model.faults import Fault
from triage_local.model.server import ScriptedModel
from triage_local.postgres import PostgresServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A server of the test's own, and the database in it."""

    server: PostgresServer
    database: Database

    async def stop(self, *, immediate: bool) -> None:
        await asyncio.to_thread(self.server.stop, immediate=immediate)

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)


@pytest.fixture
async def away(tmp_path: Path) -> AsyncIterator[Away]:
    with PostgresServer(tmp_path) as server:
        url = DatabaseUrl.parse(server.create_database())
        await migrate(url)
        engine = open_engine(url, application="test-operator", pool_size=4)
        yield Away(server=server, database=Database(url=url, engine=engine))
        await engine.dispose()


@pytest.mark.parametrize("immediate", [False, True], ids=["restart", "crash"])
async def test_a_restart_while_the_model_thinks_is_survived(
    away: Away, model: ScriptedModel, immediate: bool
) -> None:
    database, agent = away.database, Agent(database=away.database, model_url=model.url)
    model.faults.add(Fault(hang=True, step="file_issue"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while len(model.requests) < 3:
        await asyncio.sleep(0.01)
    await away.stop(immediate=immediate)
    await away.start()
    model.faults.release()
    assert await ended(process) == ExitCode.FINISHED
    assert await database.values("SELECT count(*) FROM triage.issues") == [(1,)]


async def test_without_postgres_an_attempt_says_so_and_the_next_goes_on(
    away: Away, model: ScriptedModel
) -> None:
    database, agent = away.database, Agent(database=away.database, model_url=model.url)
    model.faults.add(Fault(hang=True, step="file_issue"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while len(model.requests) < 3:
        await asyncio.sleep(0.01)
    await away.stop(immediate=False)
    model.faults.release()
    assert await ended(process) == ExitCode.DATABASE_UNREACHABLE
    assert await agent.work(run, attempt) == ExitCode.DATABASE_UNREACHABLE  # at the start, too

    await away.start()
    await database.close(run, attempt.epoch)
    attempt = await database.open(run, observed_epoch=attempt.epoch)
    assert await agent.work(run, attempt) == ExitCode.FINISHED
    assert await database.values("SELECT count(*) FROM triage.issues") == [(1,)]
    events = await database.values("SELECT count(*) FROM events WHERE event_data ? 'error_code'")
    assert events == [(0,)]


STEPS = ["begin_call", "end_call", "store_reply", "append_event", "release", "finish"]


@pytest.mark.parametrize("is_done", [False, True], ids=["undone", "done"])
@pytest.mark.parametrize("step", STEPS)
async def test_a_connection_that_is_cut_in_a_step_costs_the_attempt_and_nothing_else(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, step: str, is_done: bool
) -> None:
    """Whether the step was committed is not known then; either way the next attempt goes on from there."""
    ids: list[str | None] = []

    def effect(tool_context: ToolContext) -> str:
        ids.append(tool_context.function_call_id)
        if step == "release" and stage.epoch == 1:
            stage.gate.shut()
        return "done"

    owner = AttemptSessionService if step == "append_event" else AttemptRecord
    whole = getattr(owner, step)

    async def cut(*args: Any, **kwargs: Any) -> Any:
        event = kwargs.get("event")
        if stage.epoch > 1 or (step == "append_event" and (event is None or event.author == "user")):
            return await whole(*args, **kwargs)
        if is_done:
            await whole(*args, **kwargs)
        raise DatabaseUnreachableError("cut")

    monkeypatch.setattr(owner, step, cut)
    app = an_app(ScriptedLlm(script=by_turn(call("effect"), say("Done."))), [effect])
    ending = await stage.attempt(app)
    assert (ending.outcome, ending.exit_code) == (None, ExitCode.DATABASE_UNREACHABLE), ending.message
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(set(ids)) == 1
    assert len(ids) == (2 if (step, is_done) == ("end_call", False) else 1)
    assert not [event for event in await stage.stored() if "error_code" in event]


async def test_reading_the_session_may_fail_as_well(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any, **__: Any) -> Any:
        raise DatabaseUnreachableError("refused")

    monkeypatch.setattr(AttemptRecord, "read_session", refused)
    ending = await stage.attempt(an_app(ScriptedLlm(script=by_turn(say("Done.")))))
    assert ending.exit_code is ExitCode.DATABASE_UNREACHABLE
