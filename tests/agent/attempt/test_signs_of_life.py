"""What a live process shows, and when a dead one shows it no more."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil

from support.databases import Database, a_run
from support.killing import Agent, ended
from support.odd_apps import RELEASE
from triage_agent.attempt.settings import AttemptSettings
from triage_agent.attempt.tail import Tail
from triage_agent.attempt.vitals import Vitals
from triage_contract.names import LIFE_LOCK_CLASS, SCARCE_MEMORY, AttemptEnv
from triage_contract.states import ExitCode, InDoubt
from triage_local.model.faults import Fault
from triage_local.model.server import ScriptedModel

MIB = 2**20


async def lock_is_held(database: Database, serial: int) -> bool:
    """Look as the operator does."""
    ((held,),) = await database.values(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = :class AND objid = :serial",
        **{"class": LIFE_LOCK_CLASS},
        serial=serial,
    )
    return held == 1


async def heartbeats(database: Database, times: int) -> None:
    """Wait until so many more have come."""
    seen = set[object]()
    while len(seen) < times + 1:
        seen.add((await database.values("SELECT heartbeat_at FROM triage.attempts"))[0][0])
        await asyncio.sleep(0.01)


async def test_hearts_beat_while_a_tool_blocks_the_process(
    database: Database, agent: Agent, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    environment = {AttemptEnv.APP: "support.odd_apps:blocking", RELEASE: str(release)}
    agent = replace(agent, environment=environment)
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while not release.with_suffix(".ids").exists():
        await asyncio.sleep(0.01)
    await heartbeats(database, 3)
    ((used,),) = await database.values("SELECT memory_used_bytes FROM triage.attempts")
    assert isinstance(used, int)
    assert used > 10_000_000
    release.touch()
    assert await ended(process) == ExitCode.FINISHED


async def memory_told(database: Database, *, more_than: int) -> None:
    """Wait until a heartbeat tells of so much."""
    told = "SELECT coalesce(max(memory_used_bytes), 0) > :bytes FROM triage.attempts"
    while not (await database.values(told, bytes=more_than))[0][0]:
        await asyncio.sleep(0.01)


async def test_memory_that_gets_scarce_is_told_at_once(database: Database) -> None:
    run = a_run()
    attempt = await database.open(run)
    own_bytes = psutil.Process().memory_info().rss
    settings = AttemptSettings(
        run_id=run.id,
        epoch=attempt.epoch,
        token=attempt.token,
        database=database.url,
        app="",
        tools={},
        in_doubt=InDoubt.PARK,
        grace_seconds=30.0,
        heartbeat_seconds=3600.0,
        memory_limit_bytes=int((own_bytes + 40 * MIB) / SCARCE_MEMORY),
        termination_log=Path(os.devnull),
    )
    vitals = Vitals(settings, tail=Tail(), on_handoff=lambda _reason: None, on_fenced=lambda: None)
    vitals.start()
    await memory_told(database, more_than=0)

    hoard = b"x" * (256 * MIB)
    await memory_told(database, more_than=own_bytes + len(hoard) // 4)
    # It may have been given more, so it tells of further growth, too.
    more = b"y" * (192 * MIB)
    await memory_told(database, more_than=own_bytes + len(hoard) + len(more) // 4)

    await asyncio.to_thread(vitals.stop)


async def test_a_killed_process_loses_its_lock_at_once(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    model.faults.add(Fault(hang=True, step="list_pages"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while not model.requests:
        await asyncio.sleep(0.01)
    assert await lock_is_held(database, attempt.serial)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    killed = time.monotonic()
    while await lock_is_held(database, attempt.serial):
        await asyncio.sleep(0.001)
    assert time.monotonic() - killed < 1.0  # 2 ms on an idle machine
    await ended(process)


async def test_a_process_that_loses_its_connection_takes_its_lock_again(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    model.faults.add(Fault(hang=True, step="list_pages"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while not model.requests:
        await asyncio.sleep(0.01)
    ((before,),) = await database.values("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
    await database.values("SELECT pg_terminate_backend(:pid)", pid=before)
    while not (after := await database.values("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")):
        await asyncio.sleep(0.01)
    assert after != [(before,)]
    await heartbeats(database, 2)
    model.faults.release()
    assert await ended(process) == ExitCode.FINISHED


async def test_a_lock_that_somebody_still_holds_is_taken_later(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    """Postgres notices late that a connection is gone whose other end lost its power or its network."""
    model.faults.add(Fault(hang=True, step="list_pages"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while not model.requests:
        await asyncio.sleep(0.01)
    async with database.engine.connect() as other:
        ((before,),) = await database.values("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
        lock = f"SELECT pg_advisory_lock({LIFE_LOCK_CLASS}, {attempt.serial})"
        waiting = asyncio.create_task(other.exec_driver_sql(lock))
        while (await database.values("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")) != [(2,)]:
            await asyncio.sleep(0.01)
        await database.values("SELECT pg_terminate_backend(:pid)", pid=before)
        await waiting
        await heartbeats(database, 2)
        await other.exec_driver_sql("SELECT pg_advisory_unlock_all()")
    while not await lock_is_held(database, attempt.serial):
        await asyncio.sleep(0.01)
    model.faults.release()
    assert await ended(process) == ExitCode.FINISHED
