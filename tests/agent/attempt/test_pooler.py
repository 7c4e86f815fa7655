"""Everything holds through a transaction pooler, which gives each transaction another backend."""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.databases import Database, a_run
from support.killing import Agent, At, ended, stopped
from support.pooling import PGBOUNCER, transaction_pooler
from triage_contract.names import AttemptEnv
from triage_contract.states import ExitCode
from triage_local.model.faults import Fault
from triage_local.model.server import ScriptedModel

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.fixture
def pooled_dsn(database: Database, tmp_path: Path) -> Iterator[str]:
    with transaction_pooler(database.url.dsn, tmp_path) as dsn:
        yield dsn


@pytest.fixture(params=[True, False], ids=["direct", "pooler-only"])
def has_direct_url(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def pooled_agent(agent: Agent, pooled_dsn: str, database: Database, has_direct_url: bool) -> Agent:
    environment: dict[str, str] = {
        AttemptEnv.DATABASE_URL: pooled_dsn,
        AttemptEnv.DATABASE_POOLER: "transaction",
        **({AttemptEnv.DATABASE_DIRECT_URL: database.url.dsn} if has_direct_url else {}),
    }
    return replace(agent, environment=environment)


@pytest.mark.parametrize(
    "place",
    [
        At(when="after", step="effect", nth=1),
        At(when="after", step="end_call", nth=3),
        At(when="before", step="append_event", nth=6),
    ],
    ids=str,
)
async def test_a_killed_run_finishes_once(
    database: Database, pooled_agent: Agent, model: ScriptedModel, place: At
) -> None:
    run = a_run()
    attempt = await database.open(run)
    assert await pooled_agent.work(run, attempt, place) == -signal.SIGKILL
    await database.close(run, attempt.epoch)
    attempt = await database.open(run, observed_epoch=attempt.epoch)
    assert await pooled_agent.work(run, attempt) == ExitCode.FINISHED
    assert await database.values("SELECT count(*) FROM triage.issues") == [(1,)]
    assert len(model.requests) == 4


async def test_runs_at_once_do_not_meet(database: Database, pooled_agent: Agent) -> None:
    runs = [a_run(f"The tokens page is wrong, says report {number}.") for number in range(3)]
    attempts = [await database.open(run) for run in runs]
    codes = await asyncio.gather(
        *(pooled_agent.work(run, attempt) for run, attempt in zip(runs, attempts, strict=True))
    )
    assert codes == [ExitCode.FINISHED] * 3
    assert await database.values("SELECT count(*), count(DISTINCT run_id) FROM triage.issues") == [(3, 3)]


async def test_a_hand_off_is_heard_and_the_lock_held_where_there_is_a_direct_way(
    database: Database, pooled_agent: Agent, model: ScriptedModel, has_direct_url: bool
) -> None:
    model.faults.add(Fault(hang=True, step="read_page"))
    run = a_run()
    attempt = await database.open(run)
    process = pooled_agent.start(run, attempt)
    while len(model.requests) < 2:
        await asyncio.sleep(0.01)
    locks = await database.values("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
    assert locks == [(int(has_direct_url),)]
    await database.values("UPDATE triage.attempts SET handoff_reason = 'suspended'")
    for _ in range(2):  # with the second heartbeat the first is known to have been read
        await database.values("UPDATE triage.attempts SET heartbeat_at = NULL")
        while await database.values("SELECT heartbeat_at FROM triage.attempts") == [(None,)]:
            await asyncio.sleep(0.01)
    model.faults.release()
    assert await ended(process) == ExitCode.HANDED_OFF


async def test_a_stale_process_is_fenced(database: Database, pooled_agent: Agent) -> None:
    run = a_run()
    stale = await database.open(run)
    at = At(when="before", step="append_event", nth=3, number=signal.SIGSTOP)
    process = pooled_agent.start(run, stale, at)
    assert process.pid is not None
    await stopped(process.pid)
    await database.close(run, stale.epoch)
    attempt = await database.open(run, observed_epoch=stale.epoch)
    assert await pooled_agent.work(run, attempt) == ExitCode.FINISHED
    events = await database.values("SELECT count(*) FROM events")
    os.kill(process.pid, signal.SIGCONT)
    assert await ended(process) == ExitCode.FENCED
    assert await database.values("SELECT count(*) FROM events") == events
