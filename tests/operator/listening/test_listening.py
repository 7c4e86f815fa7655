"""Listening and looking: what the database tells wakes the run that it is about."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.databases import Database, a_run
from support.operated import until
from triage_contract.database.engine import open_engine
from triage_contract.database.fence import NewAttempt
from triage_contract.database.migrating import migrate
from triage_contract.database.rows import RunRow
from triage_contract.database.url import DatabaseUrl
from triage_local.postgres import PostgresServer
from triage_operator.listening import Listener, Looker
from triage_operator.lives import Lives
from triage_operator.queueing import WorkQueue
from triage_operator.settings import DecidingSettings, ReconcilingSettings
from triage_operator.store import Store
from triage_operator.stored import RunKey

SETTINGS = ReconcilingSettings(look_seconds=0.02, reconnect_seconds=0.02)
KEY = ("docs", "tokens")
NOW = datetime(2000, 1, 1, tzinfo=UTC)
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'triage-operator/listen'"


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = Store(database.url, "cluster", pool_size=2)
    yield store
    await store.close()


@pytest.fixture
def queue() -> WorkQueue[RunKey]:
    return WorkQueue()


@asynccontextmanager
async def _working(work: Awaitable[None]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _listener(database: Database, *, other_than: object = None) -> object:
    async def found() -> object | None:
        pids = [pid for (pid,) in await database.values(LISTENERS) if pid != other_than]
        # Connected is not yet listening: the last statement is LISTEN once it does.
        said = await database.values(f"{LISTENERS} AND query LIKE 'LISTEN%' AND state = 'idle'")
        return pids[0] if pids and (pids[0],) in said else None

    return await until(found)


async def _woken(queue: WorkQueue[RunKey]) -> None:
    await until(lambda: _in(queue, KEY))
    queue.clear()


async def _in(queue: WorkQueue[RunKey], key: RunKey) -> bool | None:
    return True if key in queue else None


async def _record(store: Store, run: RunRow) -> None:
    attempt = NewAttempt(pod="pod", image=None, memory_limit_bytes=None)
    await store.open_attempt(run, observed_epoch=0, attempt=attempt)


async def _notify(database: Database, payload: object) -> None:
    await database.values("SELECT pg_notify('triage_released', :payload)", payload=str(payload))


async def test_a_release_wakes_its_run_also_after_the_connection_was_lost(
    database: Database, store: Store, queue: WorkQueue[RunKey]
) -> None:
    run = a_run()
    await _record(store, run)
    async with _working(Listener(store, queue, SETTINGS).work()):
        pid = await _listener(database)
        await _notify(database, run.id)
        await _woken(queue)
        await database.values("SELECT pg_terminate_backend(:pid)", pid=pid)
        await _listener(database, other_than=pid)
        await _notify(database, run.id)
        await _woken(queue)


async def test_what_is_no_run_of_this_cluster_wakes_nothing_and_ends_nothing(
    database: Database, store: Store, queue: WorkQueue[RunKey]
) -> None:
    ours, theirs = a_run(), replace(a_run(), cluster_id="elsewhere", name="theirs")
    for run in (ours, theirs):
        await _record(store, run)
    async with _working(Listener(store, queue, SETTINGS).work()):
        await _listener(database)
        for payload in ("nonsense", theirs.id, ours.id):
            await _notify(database, payload)
        await _woken(queue)
    assert ("docs", "theirs") not in queue


async def test_without_a_direct_way_there_is_no_listening(
    database: Database, queue: WorkQueue[RunKey]
) -> None:
    pooled = replace(database.url, direct_dsn=None)
    store = Store(pooled, "cluster", pool_size=1)
    await asyncio.wait_for(Listener(store, queue, SETTINGS).work(), 1)
    await store.close()


async def test_a_claim_is_seen_by_looking(database: Database, store: Store, queue: WorkQueue[RunKey]) -> None:
    await _record(store, a_run())
    looker = Looker(store, queue, Lives(), SETTINGS, DecidingSettings(), recovered=lambda: None)
    async with _working(looker.work()):
        await database.values("UPDATE triage.attempts SET claimed_at = now(), heartbeat_at = now()")
        await _woken(queue)
    assert looker.age_seconds() < 5


async def test_a_database_that_is_back_is_told_once(tmp_path: Path, queue: WorkQueue[RunKey]) -> None:
    with PostgresServer(tmp_path) as server:
        url = DatabaseUrl.parse(server.create_database())
        await migrate(url)
        store = Store(url, "cluster", pool_size=1)
        lives, recovered = Lives(), asyncio.Queue[None]()
        looker = Looker(
            store, queue, lives, SETTINGS, DecidingSettings(), recovered=lambda: recovered.put_nowait(None)
        )
        async with _working(looker.work()):
            engine = open_engine(url, application="test")
            await _record(store, a_run())
            database = Database(url=url, engine=engine)
            await database.values("UPDATE triage.attempts SET claimed_at = now()")
            await _woken(queue)
            server.stop(immediate=True)

            async def blind() -> bool | None:
                return True if lives.sign(None, NOW).reachable_since == NOW else None

            await until(blind)
            server.start()
            await asyncio.wait_for(recovered.get(), 10)
            seen = lives.sign(None, NOW).reachable_since
            await _record(store, replace(a_run(), name="later"))
            await database.values("UPDATE triage.attempts SET claimed_at = now()")
            await until(lambda: _in(queue, ("docs", "later")))
            assert recovered.empty()
            assert lives.sign(None, NOW).reachable_since == seen
        await engine.dispose()
        await store.close()
