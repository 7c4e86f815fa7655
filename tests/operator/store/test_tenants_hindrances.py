"""Locks that a thief holds with one namespace's credential do not hold up the others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable

import asyncpg
import pytest

from support.databases import a_run
from support.tenancy import Tenancy, tenancy
from triage_contract.database.fence import NewAttempt
from triage_contract.database.migrating import migrate
from triage_contract.states import Cause, Outcome
from triage_operator.store import Store
from triage_operator.stored import End

__all__ = ["tenancy"]

NEW = NewAttempt(pod="pod", image=None, memory_limit_bytes=None)


@pytest.fixture
async def store(tenancy: Tenancy) -> AsyncIterator[Store]:
    """The operator's statements; no more of them at once than fit in its pool."""
    store = Store(tenancy.database.url, "cluster", pool_size=1)
    yield store
    await store.close()


@pytest.fixture
async def thief(tenancy: Tenancy) -> asyncpg.Connection:
    """A connection with the credential of namespace ``docs``, rid of its time limits."""
    connection = await tenancy.connect(await tenancy.admit("docs"))
    await connection.execute("SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0")
    return connection


async def _looking_on(store: Store, work: Awaitable[object]) -> None:
    """Look as the operator does, until some work of it is done."""
    working = asyncio.ensure_future(work)
    async with asyncio.timeout(20):
        while not working.done():
            await store.look(lapse_seconds=15, patience_seconds=0.2)
            await asyncio.sleep(0.05)
    await working


async def test_an_attempts_row_that_a_thief_has_locked_does_not_stop_the_operator(
    tenancy: Tenancy, store: Store, thief: asyncpg.Connection
) -> None:
    run = a_run()
    attempt = await store.open_attempt(run, observed_epoch=0, attempt=NEW)
    await thief.execute("BEGIN")
    await thief.execute("SELECT triage.heartbeat($1, $2, 1, false)", attempt.serial, attempt.token)
    await store.close_fence(run.session, attempt.epoch)
    end = End(
        serial=attempt.serial,
        outcome=Outcome.LOST,
        cause=Cause.NODE_LOST,
        counted=True,
        exit_code=None,
        confirmed=False,
        message="The node is lost.",
    )
    # More at once than the pool has connections: the looks do not wait for one of them.
    await _looking_on(store, asyncio.gather(*(store.end_attempt(end) for _ in range(5))))
    assert await tenancy.database.values("SELECT outcome FROM triage.attempts") == [("lost",)]


@pytest.mark.parametrize(
    "lock",
    ["SELECT pg_advisory_lock(hashtext('triage.migrate'))", "BEGIN; SELECT FROM public.sessions"],
    ids=["of_migrations", "of_a_table"],
)
async def test_a_lock_that_a_thief_holds_does_not_stop_a_migration(
    tenancy: Tenancy, store: Store, thief: asyncpg.Connection, lock: str
) -> None:
    await thief.execute(lock)

    async def change() -> None:
        await migrate(tenancy.database.url)
        await tenancy.database.values("ALTER TABLE public.sessions ADD COLUMN added int")

    await _looking_on(store, change())
