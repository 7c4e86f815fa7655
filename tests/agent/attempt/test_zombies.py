"""Processes whose attempt is over, or was never theirs: whatever they do, they begin and write nothing."""

import asyncio
import os
import signal
from dataclasses import replace

import pytest
from sqlalchemy import text

from support.databases import Database, a_run
from support.killing import Agent, At, assert_done_once, ended, stopped
from triage_agent.docs_triage.samples import report
from triage_contract.states import ExitCode

REPORT = report("tokens")

BEGINNING = """
SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%triage.begin_call(%'
"""
ROWS = """
SELECT (SELECT jsonb_agg(to_jsonb(a) - 'fenced_at' ORDER BY serial) FROM triage.attempts a),
    (SELECT jsonb_agg(c) FROM triage.tool_calls c),
    (SELECT count(*) FROM triage.model_replies), (SELECT jsonb_agg(e ORDER BY id) FROM events e),
    (SELECT count(*) FROM triage.issues)
"""


@pytest.mark.parametrize(
    "place",
    [
        At(when="before", step="begin_call", nth=3, number=signal.SIGSTOP),
        At(when="after", step="begin_call", nth=3, number=signal.SIGSTOP),
        At(when="before", step="end_call", nth=3, number=signal.SIGSTOP),
        At(when="after", step="append_event", nth=6, number=signal.SIGSTOP),
        At(when="before", step="store_reply", nth=3, number=signal.SIGSTOP),
        At(when="before", step="effect", nth=1, number=signal.SIGSTOP),
        At(when="after", step="effect", nth=1, number=signal.SIGSTOP),
        At(when="before", step="append_event", nth=7, number=signal.SIGSTOP),
    ],
    ids=str,
)
async def test_stopped_anywhere_and_woken_after_its_successor_has_finished_it_changes_nothing(
    database: Database, agent: Agent, place: At
) -> None:
    run = a_run(REPORT)
    first = await database.open(run)
    process = agent.start(run, first, place)
    assert process.pid is not None
    await stopped(process.pid)
    await database.close(run, first.epoch)
    second = await database.open(run, observed_epoch=first.epoch)
    assert await agent.work(run, second) == ExitCode.FINISHED
    before = await database.values(ROWS)

    os.kill(process.pid, signal.SIGCONT)

    assert await ended(process) == ExitCode.FENCED
    assert await database.values(ROWS) == before
    await assert_done_once(database, run)


async def test_stopped_while_it_begins_a_call_it_does_not_hold_up_its_successor(
    database: Database, agent: Agent
) -> None:
    run = a_run(REPORT)
    first = await database.open(run)
    async with database.engine.connect() as slow:
        await slow.execute(text("LOCK TABLE triage.tool_calls IN SHARE MODE"))
        process = agent.start(run, first)
        assert process.pid is not None
        while await database.values(BEGINNING) == [(0,)]:
            await asyncio.sleep(0.01)
        os.kill(process.pid, signal.SIGSTOP)
        await stopped(process.pid)
        assert await database.close(run, first.epoch)
    assert await database.values("SELECT count(*) FROM triage.tool_calls") == [(0,)]
    second = await database.open(run, observed_epoch=first.epoch)
    assert await agent.work(run, second) == ExitCode.FINISHED
    before = await database.values(ROWS)

    os.kill(process.pid, signal.SIGCONT)

    assert await ended(process) in (ExitCode.FENCED, ExitCode.DATABASE_UNREACHABLE)
    assert await database.values(ROWS) == before


async def test_a_forged_epoch_opens_nothing(database: Database, agent: Agent) -> None:
    run = a_run(REPORT)
    stale = await database.open(run)
    await database.close(run, stale.epoch)
    current = await database.open(run, observed_epoch=stale.epoch)
    before = await database.values(ROWS)
    assert await agent.work(run, replace(stale, epoch=current.epoch)) == ExitCode.FENCED
    assert await agent.work(run, replace(stale, epoch=current.epoch + 1)) == ExitCode.FENCED
    assert await database.values(ROWS) == before


async def test_the_token_of_another_run_opens_nothing(database: Database, agent: Agent) -> None:
    run, other = a_run(REPORT), a_run(REPORT)
    attempt, others = await database.open(run), await database.open(other)
    before = await database.values(ROWS)
    assert await agent.work(run, replace(attempt, token=others.token)) == ExitCode.FENCED
    assert await database.values(ROWS) == before


async def test_without_a_token_nothing_is_tried(database: Database, agent: Agent) -> None:
    run = a_run(REPORT)
    attempt = await database.open(run)
    before = await database.values(ROWS)
    assert await agent.work(run, replace(attempt, token="")) == ExitCode.BAD_CONFIGURATION
    assert await database.values(ROWS) == before
